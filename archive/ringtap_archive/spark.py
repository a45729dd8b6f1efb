# SPDX-License-Identifier: BSD-3-Clause
"""The views in Apache Spark: the same files, names and types, computed by a cluster.

Driver and executors open the archive's files by the same path: on a shared file system, or each on its own."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import TYPE_CHECKING

from . import addresses, engine, schema
from .errors import Refused, Refusing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MASTER = "local[*]"
_LOGGING = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %m%n
"""
# Spark has no unsigned types; it reads those of Parquet as the next wider signed ones.
_TYPES = {"uint8": "SMALLINT", "uint16": "INT", "uint32": "BIGINT", "int64": "BIGINT"}
_SPLIT = re.compile(r"\b(tcp_seq|ip_id)\b|\*(?!\s*\))", re.IGNORECASE)
PART = (
    "CAST(conv(left(md5(concat_ws('/', recorder, CAST(date AS STRING), CAST(hour AS STRING), "
    "regexp_extract(_metadata.file_name, '([0-9]+)[.][a-z]+[.]parquet$', 1))), 13), 16, 10) AS BIGINT)"
)


def _ddl(columns: Any):
    return ", ".join(f"`{name}` {kind}" for name, kind in columns)


def _columns(view: str):
    fields = schema.PACKETS if view == "packets" else schema.FLOWS
    return [(f.name, _TYPES.get(str(f.type), "BINARY" if f.type == schema.ADDRESS else "STRING")) for f in fields]


def _packed():
    """ip() of an expression. By value: executors have no package of ours."""

    def ip(text: str):
        import ipaddress

        address = None if text is None else ipaddress.ip_address(text)
        return address and (bytes(10) + b"\xff\xff" + address.packed if address.version == 4 else address.packed)

    return ip


def literal(data: Any) -> str:
    return f"X'{data.hex()}'"


class refusing(Refusing):
    """Spark's errors, by their first line."""

    def reason(self, error: Any) -> Any:
        from pyspark.errors import PySparkException

        known = isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")
        return f"Spark: {_reason(str(error))}" if known else None


def _reason(text: str):
    """The first line; of a trace of Java, the last cause."""
    lines = text.strip().splitlines() or ["it failed"]
    causes = [line.split(": ", 2)[-1] for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else lines[0]


class Result:
    """Rows of a DataFrame."""

    def __init__(self, frame: Any):
        self._frame = frame
        self.columns = frame.columns
        self.addresses = [i for i, field in enumerate(frame.schema) if field.dataType.typeName() == "binary"]

    def batches(self, count: int = 4096) -> Iterator:
        """Lists of at most `count` rows; the driver holds a partition at a time."""
        with refusing():
            batch = []
            for row in self._frame.toLocalIterator():
                batch.append(tuple(bytes(v) if isinstance(v, bytearray) else v for v in row))
                if len(batch) == count:
                    yield batch
                    batch = []
            if batch:
                yield batch

    def all(self) -> list:
        return [row for batch in self.batches() for row in batch]

    def arrow(self) -> Any:
        with refusing():
            return self._frame.toArrow()

    def reader(self, count: int = 65536) -> Any:
        return self.arrow().to_reader(count)


class SparkEngine(engine.Engine):
    """A session of Spark: `master` is where it runs, as in spark-submit; `settings` are Spark's."""

    def __init__(
        self,
        archive: Any,
        since: int | None = None,
        until: int | None = None,
        recorders: list[str] | None = None,
        master: Any = MASTER,
        settings: Any = None,
    ):
        super().__init__(archive, since, until, recorders)
        self._folder = tempfile.TemporaryDirectory(prefix="ringtap-spark-")
        self._made = set()
        try:
            with refusing():
                self.session = self._session(master, settings or {})
                self._functions()
                for view in ("packets", "flows"):
                    self._frame(view).createOrReplaceTempView(view)
        except BaseException:
            self._folder.cleanup()
            super().close()
            raise

    def _session(self, master: Any, settings: Any):
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise Refused(
                f"{error}; install it with '.venv-archive/bin/pip install pyspark', and a Java "
                "runtime with 'devtools/deps.sh spark'"
            ) from None
        logging = os.path.join(self._folder.name, "log4j2.properties")
        with open(logging, "w", encoding="ascii") as file:
            file.write(_LOGGING)
        builder = SparkSession.builder.master(master).appName("ringtap archive")
        options = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # Jobs of their own that list files cost more than the files.
            "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.warehouse.dir": os.path.join(self._folder.name, "warehouse"),
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
        }
        if master.startswith("local"):
            options |= {
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.pyspark.python": sys.executable,
            }
        for key, value in (options | settings).items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    def _functions(self):
        text = addresses.text_function(
            lambda value, pattern, by: f"regexp_replace({value}, '{pattern}', '{by}')",
            lambda value, name, body: f"transform(array({value}), {name} -> {body})[0]",
        )
        self.session.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION ip_text(b BINARY) RETURNS STRING RETURN {text}")

    def _frame(self, view: str):
        columns, files = _columns(view), self.files(view)
        if not files:
            return self.session.createDataFrame([], _ddl([*columns, *engine.PARTITION, ("part", "BIGINT")]))
        frame = (
            self.session.read.schema(_ddl([*columns, *engine.PARTITION]))
            .option("basePath", str(self.archive))
            .parquet(*map(_escaped, files))
        )
        names = [f"`{name}`" for name, _ in [*columns, *engine.PARTITION]]
        return frame.selectExpr(*names, f"{PART} AS part").where(engine.windows(self.since, self.until)[view])

    def _prepare(self, text: str):
        for view in engine.mentioned(text) - self._made:
            self._made.add(view)
            names, values = engine.rows(self.parts, view)
            frame = self.session.createDataFrame(list(zip(*values)), _ddl(names))
            frame.where(engine.windows(self.since, self.until)[view]).createOrReplaceTempView(view)
        text = addresses.fold(text, literal)
        if "ip" not in self._made and addresses.calls_remain(text):
            self._made.add("ip")
            self.session.udf.register("ip", _packed(), "binary")
        return text

    def sql(self, text: str) -> Result:
        with refusing():
            return Result(self._planned(text))

    def _planned(self, text: str):
        """Spark 4 reads columns in batches, but for unsigned ones that are split by bytes: a statement that may have
        those is read row by row."""
        batches = "false" if _SPLIT.search(text) else "true"
        self.session.conf.set("spark.sql.parquet.enableVectorizedReader", batches)
        frame = self.session.sql(self._prepare(text))
        frame._jdf.queryExecution().executedPlan()  # with this setting, whenever it is run
        return frame

    def keep(self, name: str, text: str) -> None:
        """A table of this name with the rows, computed once."""
        with refusing():
            # Without its plan: the text of plans that are made of plans fills the heap after a dozen.
            self._planned(text).localCheckpoint().createOrReplaceTempView(name)

    def close(self) -> None:
        self.session.stop()
        self._folder.cleanup()
        super().close()


def _escaped(path: Any):
    """Spark takes paths for patterns."""
    return "".join(f"\\{c}" if c in "[]{}*?\\" else c for c in path)
