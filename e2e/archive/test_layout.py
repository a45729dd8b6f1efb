# SPDX-License-Identifier: BSD-3-Clause
"""Parquet files have the layout of docs/archive.md, by the metadata that pyarrow reads."""

import re

import pyarrow.parquet as pq
import pytest
from harness import archiving
from harness.archiving import call, parts
from harness.paths import REPO
from ringtap_archive import index

PACKETS, ROWS, FLOW_ROWS = 200_000, 1 << 17, 1 << 10
BATCH = 1 << 18  # rows that are sorted at a time
# As docs/archive.md has it.
DELTA = {"time_ns", "file_offset", "packet_id", "tcp_seq", "ip_id", "first_ns", "last_ns", "rtt_ns"}
PLAIN = {"packets": {"digest", "src_port", "dst_port", "rss_hash", "flow_id"}, "flows": {"flow_id"}}


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """A part of several row groups, which are smaller here."""
    folder = tmp_path_factory.mktemp("layout")
    file = archiving.recording(folder / "a.pcapng", PACKETS, rate=100_000, ids=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "ROWS", ROWS)
        patch.setattr(index, "FLOW_ROWS", FLOW_ROWS)
        assert call("ingest", "-q", "-A", folder / "archive", file) == 0
    (part,) = parts(folder / "archive")
    return part


def groups(path):
    metadata = pq.read_metadata(path)
    return [metadata.row_group(i) for i in range(metadata.num_row_groups)]


def columns(path):
    return [group.column(i) for group in groups(path) for i in range(group.num_columns)]


def test_sizes_are_those_of_the_description():
    text = (REPO / "docs" / "archive.md").read_text()
    assert index.ROWS == 2 ** int(re.search(r"Row groups of 2\^(\d+) packets", text)[1]) == 1 << 20
    assert f"pages of {index.PAGE_ROWS:,} rows" in text and f"each row group of {index.FLOW_ROWS:,} flows" in text


def test_row_groups(part):
    """Batches are not cut: a group ends with the batch that fills it."""
    sizes = [group.num_rows for group in groups(part.packets)]
    assert len(sizes) > 1 and sum(sizes) == pq.read_metadata(part.packets).num_rows
    assert all(ROWS <= size < ROWS + BATCH for size in sizes[:-1]) and 0 < sizes[-1] < ROWS + BATCH
    sizes = [group.num_rows for group in groups(part.flows)]
    assert sum(sizes) == part.meta["flows"]["rows"] and all(size >= FLOW_ROWS for size in sizes[:-1])


def of_flow(row):
    """The upper 31 bits of the flow_id, then the end that the packet comes from."""
    if row["flow_id"] is None:
        return -(1 << 30), False
    return row["flow_id"] >> 33, (row["src"], row["src_port"] or 0) > (row["dst"], row["dst_port"] or 0)


def test_order(part):
    """Packets of a batch by flow and direction, then in the order of the file; flows by their id."""
    columns = ["flow_id", "src", "dst", "src_port", "dst_port", "file_offset"]
    rows = pq.read_table(part.packets, columns=columns).to_pylist()
    expected = sorted(rows, key=lambda row: row["file_offset"])
    for begin in range(0, len(rows), BATCH):
        assert rows[begin : begin + BATCH] == sorted(expected[begin : begin + BATCH], key=of_flow)
    for before, group in zip(groups(part.packets), groups(part.packets)[1:]):
        assert before.column(0).statistics.max <= group.column(0).statistics.min
    ids = pq.read_table(part.flows, columns=["flow_id"])["flow_id"].to_pylist()
    assert ids == sorted(ids) and len(set(ids)) == len(ids)
    assert not groups(part.packets)[0].sorting_columns  # recordings may have packets out of order
    (order,) = groups(part.flows)[0].sorting_columns
    assert pq.read_schema(part.flows).names[order.column_index] == "flow_id" and not order.descending


@pytest.mark.parametrize("table", ["packets", "flows"])
def test_pages_have_an_index(part, table):
    """Pages of all columns have an index; columns without statistics have offsets only."""
    for column in columns(getattr(part, table)):
        assert column.has_offset_index, column.path_in_schema
        expected = table == "flows" or column.path_in_schema not in index.NO_STATISTICS
        assert column.has_column_index == expected, column.path_in_schema


@pytest.mark.parametrize("table", ["packets", "flows"])
def test_encodings(part, table):
    """Levels of optional columns are RLE; a dictionary itself is PLAIN."""
    for column in columns(getattr(part, table)):
        name, found = column.path_in_schema, set(column.encodings) - {"RLE"}
        if name in DELTA:
            assert found == {"DELTA_BINARY_PACKED"}, name
        elif name in PLAIN[table]:
            assert found == {"PLAIN"} and not column.has_dictionary_page, name
        else:
            assert "RLE_DICTIONARY" in found and column.has_dictionary_page, name
        bare = name == "digest" or (table, name) == ("flows", "flow_id")
        assert column.compression == ("UNCOMPRESSED" if bare else "ZSTD"), name


def test_bloom_filters(part):
    for table, expected in (("packets", {"flow_id"}), ("flows", {"flow_id", "src", "dst"})):
        found = columns(getattr(part, table))
        having = [column.path_in_schema for column in found if column.bloom_filter_offset is not None]
        assert set(having) == expected and len(having) == len(expected) * len(groups(getattr(part, table)))
        assert all(column.bloom_filter_length > 0 for column in found if column.path_in_schema in expected)
