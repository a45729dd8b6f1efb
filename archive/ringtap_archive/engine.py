# SPDX-License-Identifier: BSD-3-Clause
"""Views over an archive's Parquet files, in DuckDB or in Spark, with the same names and types of columns.

The files come from the parts' meta.json: of the recorders and of the hours that are asked for. Within
a file the engine skips row groups by statistics and bloom filters; see docs/archive.md.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import pathlib
import re
import tempfile
import warnings
from typing import TYPE_CHECKING

from . import addresses, layout, show
from .errors import Refused, Refusing
from .store import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from duckdb import DuckDBPyConnection
    from pyarrow import RecordBatchReader, Table

    from .layout import Part

_VIEWS = re.compile(r"\b(losses|interfaces)\b", re.IGNORECASE)

# Views that meta.json holds: name, type in both engines, key.
LOSSES = [
    ("time_ns", "BIGINT", "time_ns"),
    ("interface", "INT", "interface"),
    ("queue", "BIGINT", "queue"),
    ("direction", "STRING", "direction"),
    ("packets", "BIGINT", "packets"),
    ("reason", "STRING", "reason"),
]
INTERFACES = [
    ("interface", "INT", "index"),
    ("name", "STRING", "name"),
    ("description", "STRING", "description"),
    ("linktype", "INT", "linktype"),
    ("snaplen", "BIGINT", "snaplen"),
    ("app", "STRING", "app"),
    ("port", "BIGINT", "port"),
]
PARTITION = [("recorder", "STRING"), ("date", "DATE"), ("hour", "INT")]


def number(part: Part) -> int:
    """A part's number: the same at every opening and in both engines, and exact in the doubles of JSON's readers."""
    key = f"{part.recorder}/{part.folder.parent.name[5:]}/{int(part.folder.name[5:])}/{part.number}"
    return int(hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()[:13], 16)


def mentioned(text: str) -> set[str]:
    """Views from meta.json that the text may mention: few texts need them."""
    return {match.lower() for match in _VIEWS.findall(text)}


def rows(found: list[Part], kind: str) -> tuple:
    """Rows of a view that comes from meta.json: one list a column, then the part's columns."""
    columns = LOSSES if kind == "losses" else INTERFACES
    values = [[] for _ in range(len(columns) + 4)]
    for part in found:
        for entry in part.meta.get(kind) or []:
            row = [entry.get(key) for _, _, key in columns]
            date = datetime.date.fromisoformat(part.folder.parent.name[5:])
            for column, value in zip(values, [*row, part.recorder, date, int(part.folder.name[5:]), number(part)]):
                column.append(value)
    names = [(name, kind) for name, kind, _ in columns] + [*PARTITION, ("part", "BIGINT")]
    return names, values


def windows(since: int | None, until: int | None) -> dict[str, str]:
    """The condition of each view on its times."""

    def bounds(first: str, last: str):
        terms = [f"{last} >= {since}"] if since is not None else []
        terms += [f"{first} < {until}"] if until is not None else []
        return " AND ".join(terms) or "true"

    return {
        "packets": bounds("time_ns", "time_ns"),
        "flows": bounds("first_ns", "last_ns"),
        "losses": bounds("time_ns", "time_ns"),
        "interfaces": "true",
    }


class Engine:
    """Base class of both engines. prune and compact wait until it is closed."""

    def __init__(self, archive: Any, since: int | None, until: int | None, recorders: list[str] | None):
        self.archive, self.since, self.until = pathlib.Path(archive), since, until
        self._numbers = None
        with contextlib.ExitStack() as reading:
            store = Archive(self.archive)
            reading.enter_context(store.reading())
            self.parts = store.parts(since=since, until=until, recorders=recorders)
            self._warn_of_missing()
            if unknown := set(recorders or ()) - set(layout.recorders_of(self.archive)):
                raise Refused(
                    f"{self.archive}: has no recorder '{min(unknown)}'; it has "
                    f"{', '.join(layout.recorders_of(self.archive)) or 'none'}"
                )
            self._reading = reading.pop_all()

    def _warn_of_missing(self):
        sampled = [i["sample"] for part in self.parts for i in part.meta["interfaces"] if i.get("sample")]
        if sampled:
            show.warn(
                f"recordings in '{self.archive}' have one of up to {max(sampled)} packets (record --sample): counts and "
                "bytes are those of the sample, and maxima are too low"
            )
        if any(i.get("first") for part in self.parts for i in part.meta["interfaces"]):
            show.warn(
                f"recordings in '{self.archive}' have the beginning of each flow (record --first): counts and bytes are "
                "those of the recorded packets; what came later is not lost"
            )

    def close(self) -> None:
        self._reading.close()

    def part(self, number_: int) -> Part:
        """The part of a row's column `part`."""
        if self._numbers is None:
            self._numbers = {number(part): part for part in self.parts}
        return self._numbers[number_]

    def files(self, view: str, parts: list[Part] | None = None) -> list[str]:
        """Files of the view "packets" or "flows"."""
        return [
            str(getattr(part, view)) for part in (self.parts if parts is None else parts) if part.meta[view]["rows"]
        ]

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def open(
    archive: Path,
    engine: str = "duckdb",
    since: int | None = None,
    until: int | None = None,
    recorders: list[str] | None = None,
    **options,
) -> Any:
    """Views packets, flows, losses, interfaces of the times [since, until) in ns; ip() and ip_text() in SQL."""
    if engine == "spark":
        from . import spark

        return spark.SparkEngine(archive, since, until, recorders, **options)
    return DuckEngine(archive, since, until, recorders, **options)


def quoted(text: str) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def file_list(files: list[str]) -> str:
    """DuckDB takes file names for patterns."""
    return "[" + ", ".join(quoted(re.sub(r"([\[*?])", r"[\1]", name)) for name in files) + "]"


def blob(data: bytes) -> str:
    """DuckDB's literal of bytes."""
    return "'" + "".join(f"\\x{byte:02X}" for byte in data) + "'::BLOB"


# `part` in SQL, of the columns of the path.
PART = "CAST('0x' || left(md5(concat(recorder, '/', date, '/', hour, '/', regexp_extract(filename, '([0-9]+)[.][a-z]+[.]parquet$', 1))), 13) AS BIGINT)"


class Result:
    """Rows of DuckDB, which computes them as they are fetched."""

    def __init__(self, cursor: DuckDBPyConnection):
        self._cursor = cursor
        self.columns = [column[0] for column in cursor.description or []]
        self.addresses = [
            i for i, column in enumerate(cursor.description or []) if str(column[1]) in ("BLOB", "BINARY")
        ]

    def batches(self, count: int = 4096) -> Iterator:
        """Lists of at most `count` rows."""
        with refusing():
            while rows := self._cursor.fetchmany(count):
                yield rows

    def all(self) -> list[tuple]:
        with refusing():
            return self._cursor.fetchall()

    def arrow(self) -> Table:
        with refusing(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a copy: results are small
            return self._cursor.to_arrow_table()

    def reader(self, count: int = 65536) -> RecordBatchReader:
        """A pyarrow.RecordBatchReader."""
        with refusing(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._cursor.to_arrow_reader(count)


class refusing(Refusing):
    """DuckDB's errors, by their first line."""

    def reason(self, error: Any) -> Any:
        import duckdb

        if not isinstance(error, duckdb.Error):
            return None
        lines = str(error).strip().splitlines()
        return lines[0] + (f" {lines[1]}" if lines[0].endswith(":") and len(lines) > 1 else "")


class DuckEngine(Engine):
    """DuckDB in this process."""

    def __init__(
        self,
        archive: Any,
        since: int | None = None,
        until: int | None = None,
        recorders: list[str] | None = None,
        memory: str | None = None,
        threads: int | None = None,
    ):
        super().__init__(archive, since, until, recorders)
        import duckdb

        self._temporary = tempfile.TemporaryDirectory(
            prefix="ringtap-archive-"
        )  # its files hold rows, and have known names
        self.con = duckdb.connect(
            config={"autoinstall_known_extensions": "false", "temp_directory": self._temporary.name}
            | ({"memory_limit": memory} if memory else {})
            | ({"threads": threads} if threads else {})
        )
        # A file's footer is read once, however many queries there are.
        self.con.execute("SET parquet_metadata_cache = true")
        self.con.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")  # as Spark
        self._made = set()
        text = addresses.text_function(
            lambda text, pattern, by: f"regexp_replace({text}, '{pattern}', '{by}', 'g')",
            lambda value, name, text: f"list_transform([{value}], lambda {name}: {text})[1]",
        )
        self.con.execute(f"CREATE MACRO ip_text(b) AS {text}")
        with refusing():
            for view in ("packets", "flows"):
                self.con.execute(f"CREATE VIEW {view} AS {self.select(view, self.parts)}")

    def select(self, view: str, parts: list[Part]) -> str:
        """A SELECT of the view's rows in these parts. Flows of format 1 have no reasons."""
        from . import schema

        old = [part for part in parts if view == "flows" and not part.has_reasons]
        new = [part for part in parts if view != "flows" or part.has_reasons]
        found = [
            self._select(view, self.files(view, some), lacks) for some, lacks in ((new, ()), (old, schema.REASONS))
        ]
        return " UNION ALL BY NAME ".join(filter(None, found)) or _nothing(view)

    def _select(self, view: str, files: list[str], lacks: list[str] | tuple):
        """None: no files."""
        if not files:
            return None
        types = ", ".join(f"'{name}': {kind.replace('STRING', 'VARCHAR')}" for name, kind in PARTITION)
        names = ", ".join(name for name, _ in PARTITION)
        nulls = "".join(f"NULL::BIGINT AS {name}, " for name in lacks)
        return (
            f"SELECT * EXCLUDE ({names}), {nulls}{names}, {PART} AS part FROM read_parquet({file_list(files)}, hive_partitioning = true, "
            f"hive_types = {{{types}}}) WHERE {windows(self.since, self.until)[view]}"
        )

    def _prepare(self, text: str):
        """Makes views that only some texts need; returns the text with addresses for calls of ip()."""
        for view in mentioned(text) - self._made:
            self._made.add(view)
            names, values = rows(self.parts, view)
            columns = ", ".join(f"unnest(?::{kind}[]) AS {name}" for name, kind in names)
            self.con.execute(f"CREATE TABLE {view}_rows AS SELECT {columns}", values)
            condition = windows(self.since, self.until)[view]
            self.con.execute(f"CREATE VIEW {view} AS SELECT * FROM {view}_rows WHERE {condition}")
        text = addresses.fold(text, blob)
        if "ip" not in self._made and addresses.calls_remain(text):
            self._made.add("ip")
            self.con.create_function("ip", addresses.packed, ["VARCHAR"], "BLOB")
        return text

    def sql(self, text: str) -> Result | None:
        """Runs the text; rows are computed as they are fetched."""
        with refusing():
            text = self._prepare(text)
            return Result(self.con.cursor().execute(text))

    def keep(self, name: str, text: str) -> None:
        """A table of this name with the rows, computed once."""
        self.sql(f"CREATE OR REPLACE TABLE {name} AS {text}").all()

    def close(self) -> None:
        self.con.close()
        self._temporary.cleanup()
        super().close()


def _nothing(view: str):
    """A view of an archive without files."""
    from . import schema

    types = {"uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "int64": "BIGINT"}
    fields = schema.PACKETS if view == "packets" else schema.FLOWS
    columns = [(f.name, types.get(str(f.type), "BLOB" if f.type == schema.ADDRESS else "VARCHAR")) for f in fields]
    columns += [*PARTITION, ("part", "BIGINT")]
    return "SELECT " + ", ".join(f"NULL::{kind} AS {name}" for name, kind in columns) + " WHERE false"
