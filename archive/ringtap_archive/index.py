# SPDX-License-Identifier: BSD-3-Clause
"""Parquet files of a part. Encodings and sizes of row groups were chosen by measuring: docs/archive.md."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from . import private, schema, shape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from pyarrow import RecordBatch, Schema

ROWS = 1 << 20  # rows of a row group of packets
PAGE_ROWS = 20_000
FLOW_ROWS = 1 << 17
BUFFER = 1 << 18
DICTIONARY_BYTES = 4 << 20  # more values than that have no dictionary: few repeat
FALSE_POSITIVES = 0.01
SOURCE = b"ringtap.source"  # in the file's metadata: what is needed to make a lost meta.json again

# All others have dictionaries. Times, offsets and sequence numbers grow in a flow; of what is the same in all of a flow's
# packets and different in most flows, a dictionary would only be one more copy. Digests and the ids of flows are random.
# None has BYTE_STREAM_SPLIT: Spark's vectorized reader does not know it.
INCOMPRESSIBLE = {"packets": {"digest"}, "flows": {"flow_id"}}
ENCODINGS = {
    "time_ns": "DELTA_BINARY_PACKED",
    "file_offset": "DELTA_BINARY_PACKED",
    "packet_id": "DELTA_BINARY_PACKED",
    "tcp_seq": "DELTA_BINARY_PACKED",
    "ip_id": "DELTA_BINARY_PACKED",
    "digest": "PLAIN",
    "src_port": "PLAIN",
    "dst_port": "PLAIN",
    "rss_hash": "PLAIN",
    "flow_id": "PLAIN",
}
FLOW_ENCODINGS = {
    "first_ns": "DELTA_BINARY_PACKED",
    "last_ns": "DELTA_BINARY_PACKED",
    "rtt_ns": "DELTA_BINARY_PACKED",
    "flow_id": "PLAIN",
}


class Digested:
    """A file that counts and, by default, digests the written bytes: pyarrow, zstd and others write to it."""

    def __init__(self, path: Path, digest: bool = True, group: bool = False):
        self.path = path
        self.digest = hashlib.sha256() if digest else None
        self.bytes = 0
        self.closed = False
        self._fd = private.create(path, group, new=True)

    def write(self, data: bytes | memoryview) -> int:
        if self.closed:  # after an error, Arrow writes what it still has
            return len(data)
        if self.digest:
            self.digest.update(data)
        view = memoryview(data).cast("B")
        self.bytes += len(view)
        while view:
            view = view[os.write(self._fd, view) :]
        return self.bytes

    def tell(self) -> Any:
        return self.bytes

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def finish(self) -> None:
        os.fsync(self._fd)
        self.close()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self._fd)


# Columns without statistics: least and greatest value exclude no row group.
NO_STATISTICS = {
    "digest",
    "tcp_seq",
    "rss_hash",
    "src",
    "dst",
    "inner_src",
    "inner_dst",
    "direction",
    "tunnel",
    "flow_id",
}


def _options(
    columns: list[str], encodings: dict[str, str], bare: set[str], bloom: dict[str, dict], statistics: list[str]
):
    return {
        "compression": {name: "none" if name in bare else "zstd" for name in columns},
        "compression_level": {name: 1 for name in columns if name not in bare},
        "use_dictionary": [name for name in columns if name not in encodings],
        "column_encoding": encodings,
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
        "write_statistics": statistics,
        "write_page_index": True,
        "write_page_checksum": True,
        "max_rows_per_page": PAGE_ROWS,
        "bloom_filter_options": bloom,
        "store_schema": True,
    }


class Table:
    """One Parquet file that grows by row groups."""

    def __init__(
        self,
        path: Path,
        columns: Schema,
        encodings: dict[str, str],
        bare: set[str],
        bloom: dict[str, dict],
        sorting: str | None,
        without: set[str] | tuple = (),
        group: bool = False,
    ):
        self.file = Digested(path, group=group)
        self.rows = 0
        order = [pq.SortingColumn(columns.get_field_index(sorting))] if sorting else None
        statistics = [name for name in columns.names if name not in without]
        try:
            self._stream = pa.BufferedOutputStream(pa.PythonFile(self.file, "w"), BUFFER)
            self._writer = pq.ParquetWriter(
                self._stream,
                columns,
                sorting_columns=order,
                **_options(columns.names, encodings, bare, bloom, statistics),
            )
        except BaseException:
            self.file.close()
            raise

    def group(self, batches: list[RecordBatch]) -> None:
        table = pa.Table.from_batches(batches)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.rows += table.num_rows

    def finish(self, source: dict[str, dict] | None = None) -> None:
        if source is not None:
            self._writer.add_key_value_metadata({SOURCE: json.dumps(source).encode()})
        self._writer.close()
        self._stream.flush()
        self.file.finish()

    def close(self) -> None:
        """After an error. The writer is not closed: that would write a footer, and on a full disk fail."""
        self.file.close()


class Packets:
    """Collects batches into row groups."""

    def __init__(self, path: Path, rows_likely: int, group: bool = False):
        bloom = {"flow_id": {"ndv": max(64, min(rows_likely, 1 << 17)), "fpp": FALSE_POSITIVES}}
        self.table = Table(
            path, schema.PACKETS, ENCODINGS, INCOMPRESSIBLE["packets"], bloom, None, NO_STATISTICS, group
        )
        self._pending, self._rows = [], 0

    def add(self, batch: RecordBatch) -> None:
        self._pending.append(batch)
        self._rows += batch.num_rows
        if self._rows >= ROWS:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self.table.group(self._pending)
            self._pending, self._rows = [], 0

    def finish(self, source: dict[str, dict]) -> None:
        self.flush()
        self.table.finish(source)


def write_flows(path: Path, batches: Iterator, group: bool = False) -> Table:
    """Row groups of FLOW_ROWS flows, each with bloom filters of flow_id and addresses. Returns the Table,
    which is finished."""
    table, pending, count = None, [], 0
    try:
        for batch in batches:
            pending.append(batch)
            count += batch.num_rows
            if count >= FLOW_ROWS:
                table = table or _flow_table(path, FLOW_ROWS, group)
                table.group(pending)
                pending, count = [], 0
        table = table or _flow_table(path, count, group)
        if pending:
            table.group(pending)
        table.finish()
    finally:
        if table:
            table.close()
    return table


def _flow_table(path: Path, rows: int, group: bool):
    one = {"ndv": max(64, rows), "fpp": FALSE_POSITIVES}
    return Table(
        path,
        schema.FLOWS,
        FLOW_ENCODINGS,
        INCOMPRESSIBLE["flows"],
        dict.fromkeys(("flow_id", "src", "dst"), one),
        "flow_id",
        group=group,
    )


def source_of(path: Path) -> dict | None:
    """The source that finish() has written; None: there is none, or the file is damaged."""
    try:
        with os.fdopen(private.open_regular(path), "rb") as file:
            found = json.loads(pq.ParquetFile(file).metadata.metadata[SOURCE])
        shape.check(found, shape.ORIGIN, "")
        return found
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, RecursionError):
        return None
