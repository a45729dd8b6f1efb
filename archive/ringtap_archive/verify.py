# SPDX-License-Identifier: BSD-3-Clause
"""Checks parts: files against their SHA-256, and the index against the packets, decoded again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from . import decoder, document, frames, layout, options, private, schema, show
from .errors import Lost, Refused
from .store import Archive

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from pyarrow import ChunkedArray, Table

    from .layout import Part
    from .main import Parser

MEMORY = 256 << 20  # what is larger is decompressed into a file
TABLES = ("pcapng", "packets", "flows")
LATER = ["latency_p50_ns", "latency_p99_ns", "offered", "not_offered", "open", "unknown", *schema.REASONS]


def arguments(parser: Parser) -> None:
    options.archive(parser)
    options.window(parser)
    options.recorders(parser)
    parser.add_argument("--quick", action="store_true", help="compare checksums only, not the index with the packets")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="make damaged indexes again, and cut damaged frames out; what is replaced is kept in .damaged",
    )
    options.shared(parser)
    options.as_json(parser)


class Found:
    """Damage of one part. pcapng, packets, flows, meta, and repair, if that was not possible:
    texts, None where all is well."""

    def __init__(self, name: str, part: Part | None = None):
        self.name, self.part = name, part
        self.problems = dict.fromkeys((*TABLES, "meta"))
        self.outcome = None  # outcome of the repair
        self.lost = 0  # packets; None: some, nothing says how many

    def __bool__(self):
        return any(self.problems.values())

    def texts(self) -> list[str]:
        return [f"{what}: {text}" for what, text in self.problems.items() if text]

    def as_json(self) -> dict:
        return {
            "part": self.name,
            "problems": {k: v for k, v in self.problems.items() if v},
            "repaired": self.outcome,
            "packets_lost": self.lost,
        }


def digest_of(path: Path) -> str:
    with os.fdopen(private.open_regular(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum(path: Path, meta: dict) -> str | None:
    try:
        size = path.stat().st_size
        if size != meta.get("bytes", size):
            return f"{size} bytes, not {meta['bytes']}"
        return None if digest_of(path) == meta["sha256"] else "other bytes than were written (SHA-256)"
    except FileNotFoundError:
        return "missing"
    except OSError as e:
        return f"unreadable: {e.strerror}"


@contextlib.contextmanager
def uncompressed(part: Part) -> Iterator:
    """A path of the part's pcapng as it was. In memory or an unnamed file: verify writes nothing to the
    archive."""
    if part.pcapng.suffix != ".zst":
        yield part.pcapng
        return
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(frames.Reader(part.pcapng))
        if source.size <= MEMORY:
            out = stack.enter_context(os.fdopen(os.memfd_create("pcapng"), "wb"))
        else:
            out = stack.enter_context(tempfile.TemporaryFile())
        for _, piece in source.pieces():
            out.write(piece)
        out.flush()
        yield Path(f"/proc/self/fd/{out.fileno()}")


def _plain(column: ChunkedArray):
    """Dictionaries of a file and of the decoder may have other numbers for the same values."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def differing(ours: Table, theirs: Table) -> list:
    """Names of columns that are not the same."""
    return [name for name in ours.schema.names if not _plain(ours[name]).equals(_plain(theirs[name]))]


def _compare_packets(path: Path, batches: Iterator):
    file = pq.ParquetFile(path, page_checksum_verification=True)
    done, pending, ready = 0, [], 0
    for group in range(file.num_row_groups):
        wanted = file.metadata.row_group(group).num_rows
        while ready < wanted:
            batch = next(batches, None)
            if batch is None:
                return f"more packets than the pcapng has ({done + ready})"
            pending.append(batch)
            ready += batch.num_rows
        table = pa.Table.from_batches(pending)
        columns = differing(table.slice(0, wanted), file.read_row_group(group))
        if columns:
            return f"rows {done} to {done + wanted} differ from the packets in {', '.join(columns)}"
        pending = table.slice(wanted).to_batches()
        ready -= wanted
        done += wanted
    if ready or any(batch.num_rows for batch in batches):
        return f"fewer packets than the pcapng has ({done})"
    return None


def compare(part: Part, found: Found) -> None:
    """The index against the packets."""
    with uncompressed(part) as path, decoder.open(path, lean=part.meta["lean"], by_flow=part.by_flow) as source:
        decoded = next(source.parts())
        batches = decoded.batches()
        try:
            found.problems["packets"] = _compare_packets(part.packets, batches)
        except (pa.ArrowException, OSError) as e:
            found.problems["packets"] = f"unreadable: {e}"
        for _ in batches:
            pass
        flows = decoded.flows()
        try:
            table = pq.read_table(part.flows, partitioning=None, page_checksum_verification=True)
            if not part.has_reasons:
                flows = flows.drop(schema.REASONS)
            if part.meta["later"]:  # what another file had: of these columns only the checksum holds
                flows, table = (t.drop([name for name in LATER if name in t.column_names]) for t in (flows, table))
            columns = differing(flows, table) if flows.num_rows == table.num_rows else ["their number"]
            found.problems["flows"] = (
                f"flows differ from those of the packets in {', '.join(columns)}" if columns else None
            )
        except (pa.ArrowException, OSError) as e:
            found.problems["flows"] = f"unreadable: {e}"
        if source.torn:
            found.problems["pcapng"] = source.torn


def check(part: Part, name: str, quick: bool) -> Found:
    found = Found(name, part)
    for what in TABLES:
        found.problems[what] = checksum(getattr(part, what), part.meta[what])
    try:
        if not found and part.meta["pcapng"]["frames"]:
            with frames.Reader(part.pcapng) as file:
                if file.frames() != part.meta["pcapng"]["frames"] or file.size != part.meta["pcapng"]["uncompressed"]:
                    found.problems["pcapng"] = "its seek table is not that of its meta.json"
        if not found and not quick:
            compare(part, found)
    except (frames.Corrupt, Lost) as e:
        found.problems["pcapng"] = str(e)
    except (OSError, pa.ArrowException) as e:
        raise Refused(f"cannot check {name}: {e}") from e
    return found


def orphans(archive: Path) -> list[tuple]:
    """Stems (folder, number) of files without a meta.json."""
    stems = {}
    for recorder in layout.recorders_of(archive):
        for path in (archive / f"recorder={recorder}").glob("date=*/hour=*/*"):
            number = layout.NUMBER.match(path.name)
            if number:
                stems.setdefault((path.parent, number[1]), []).append(path.name[number.end() - 1 :])
    return [(folder, number) for (folder, number), kinds in sorted(stems.items()) if layout.META not in kinds]


def _name(archive: Path, path: Path):
    return str(path.relative_to(archive)).removesuffix(layout.META)


def examine(archive: Archive, args: Namespace) -> Iterator:
    """Yields a Found for each part; those of lost and damaged metas too."""
    damaged = []
    with archive.listing():
        parts = layout.list_parts(archive.path, args.since, args.until, args.recorders, damaged)
        alone = orphans(archive.path)
    for path, error in damaged:
        found = Found(_name(archive.path, path))
        found.problems["meta"] = str(error).split(": ", 1)[1].split("; run")[0]
        yield found
    for folder, number in alone:
        found = Found(_name(archive.path, folder / number))
        found.problems["meta"] = "missing"
        yield found
    for part in parts:
        with archive.reading():
            found = check(part, part.name, args.quick) if part.meta_path.exists() else None
        # Not pruned in the meantime; a repair of it waits for readers.
        if found is not None and (not found or part.meta_path.exists()):
            yield found


def run(args: Namespace) -> Any:
    archive = Archive(args.archive, shared=args.shared)
    results, checked = [], 0
    state = archive.recover() if args.repair else (archive.unfinished(), 0)
    if state[0] and not args.json:
        show.say(
            "a change that was interrupted " + ("was completed" if args.repair else "is to be completed: --repair")
        )
    for found in examine(archive, args):
        checked += 1
        if not found:
            continue
        if args.repair:
            from . import repair

            if not repair.repair(archive, found):
                continue
        results.append(found)
        if not args.json:
            show.say(f"{found.name}: {'; '.join(found.texts())}" + (f"; {found.outcome}" if found.outcome else ""))
    bad = [found for found in results if not found.outcome or found.lost != 0]
    if args.json:
        document.write(
            "verify",
            {"parts": checked, "damaged": [found.as_json() for found in results], "interrupted": state[0]},
        )
    else:
        show.say(
            f"{checked} parts, {len(results)} damaged"
            + ("; --repair repairs what can be repaired" if results and not args.repair else "")
        )
    return 1 if bad or (state[0] and not args.repair) else 0
