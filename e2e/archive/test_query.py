# SPDX-License-Identifier: BSD-3-Clause
"""`query` returns tshark's values in each form, and skips files and row groups without matches."""

import collections
import csv
import io
import json
import re
import struct
import subprocess

import pytest
from harness import archived, corpus

HOUR = 3600
BEGIN = 1_767_225_600  # 2026-01-01 00:00:00 UTC
KINDS = ("tcp", "udp", "arp", "vlan", "icmp")


def write(path, begin, step_ns, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        for i, data in enumerate(frames):
            f.write(struct.pack("<IIII", *divmod(begin * 10**9 + i * step_ns, 10**9), len(data), len(data)) + data)
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two recorders: of one hour, and of three hours."""
    folder = tmp_path_factory.mktemp("recorded")
    frames = [frame for kind in KINDS for frame in corpus.frames(kind)]
    files = {
        "one": write(folder / "one.pcap", BEGIN + 60, 10**6, frames),
        "three": write(folder / "three.pcap", BEGIN, 3 * HOUR * 10**9 // len(frames), frames),
    }
    archive = folder / "archive"
    statuses, errors = archived.many(
        ["ingest", "-q", "-A", archive, "--recorder", name, path] for name, path in files.items()
    )
    assert not any(statuses), errors
    return archive, files, frames


def rows_of(text):
    document = json.loads(text)
    assert all(list(row) == document["columns"] for row in document["rows"])
    return document["rows"]


def query(archive, sql, *options, **more):
    return archived.run("query", "-A", archive, *options, sql, **more).stdout


def test_talkers_as_tshark_counts_them(recorded):
    archive, files, _frames = recorded
    out = subprocess.run(
        [
            "tshark",
            "-n",
            "-r",
            files["one"],
            "-T",
            "fields",
            "-E",
            "occurrence=f",
            "-e",
            "ip.src",
            "-e",
            "ipv6.src",
            "-e",
            "arp.src.proto_ipv4",
            "-e",
            "frame.len",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    expected = collections.defaultdict(lambda: [0, 0])
    for four, six, arp, length in (line.split("\t") for line in out.splitlines()):
        if source := four or six or arp:
            expected[source][0] += 1
            expected[source][1] += int(length)
    rows = rows_of(
        query(
            archive,
            "SELECT src, count(*) AS packets, sum(length) AS bytes FROM packets "
            "WHERE src IS NOT NULL AND recorder = 'one' GROUP BY src",
            "--json",
        )
    )
    assert {row["src"]: [row["packets"], row["bytes"]] for row in rows} == expected
    assert any(":" in address for address in expected) and any("." in address for address in expected)


def test_forms(recorded, tmp_path):
    archive, _files, frames = recorded
    sql = "SELECT recorder, count(*) AS packets, ip('10.0.0.1') AS address, NULL AS nothing FROM packets GROUP BY recorder ORDER BY 1"
    words = ["query", "-A", archive, sql]
    done, errors = archived.outputs(
        [
            words,
            [*words, "--csv"],
            [*words, "--json"],
            [*words, "--arrow", tmp_path / "file.arrow"],
            ["query", "-A", archive, "--json", "SELECT 1 AS one WHERE false"],
        ]
    )
    table, text, objects, nothing, empty = [out for status, out in done if status == 0]
    n = len(frames)
    assert not errors and not nothing and rows_of(empty) == []
    assert table.splitlines() == [
        "recorder  packets  address   nothing",
        *(f"{name:8}  {n:7}  10.0.0.1" for name in ("one", "three")),
    ]
    assert list(csv.reader(io.StringIO(text))) == [
        ["recorder", "packets", "address", "nothing"],
        *([name, str(n), "10.0.0.1", ""] for name in ("one", "three")),
    ]
    assert rows_of(objects) == [
        {"recorder": name, "packets": n, "address": "10.0.0.1", "nothing": None} for name in ("one", "three")
    ]
    show = (
        "import pyarrow, sys; print(pyarrow.ipc.open_file(sys.argv[1]).read_all().column('address')[0].as_py().hex())"
    )
    out = subprocess.run(
        [archived.python(), "-c", show, tmp_path / "file.arrow"], check=True, capture_output=True, text=True
    ).stdout
    assert out.strip() == "0" * 20 + "ffff0a000001"


def test_text_of_addresses_in_sql(recorded):
    texts = [
        "10.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "1::",
        "2001:db8::1",
        "1:0:0:2::3",
        "1:2:3:4:5:6:7:8",
        "fe80::a00:0:0:1",
    ]
    sql = "SELECT " + ", ".join(f"ip_text(ip('{text}')) AS t{i}, ip('{text}') AS a{i}" for i, text in enumerate(texts))
    (row,) = rows_of(query(recorded[0], sql, "--json"))
    assert list(row.values()) == [text for text in texts for _ in range(2)]
    (row,) = rows_of(query(recorded[0], "SELECT ip('10.0.0.' || 7) AS address, 'ip(''x'')' AS text", "--json"))
    assert row == {"address": "10.0.0.7", "text": "ip('x')"}


def test_window_and_recorders(recorded):
    archive, _files, frames = recorded
    sql = "SELECT count(*) AS n, min(time_ns) AS first, max(hour) AS hour FROM packets"
    (row,) = rows_of(
        query(archive, sql, "--json", "--recorder", "three", "--from", "2026-01-01T01:00:00", "--to", "@1767232800")
    )
    step = 3 * HOUR * 10**9 // len(frames)
    inside = [i * step for i in range(len(frames)) if HOUR * 10**9 <= i * step < 2 * HOUR * 10**9]
    assert row == {"n": len(inside), "first": str(BEGIN * 10**9 + inside[0]), "hour": 1}
    assert rows_of(query(archive, sql, "--json", "--from", "2027-01-01")) == [{"n": 0, "first": None, "hour": None}]


def scanned(plan):
    """(files, row groups read) of a plan that was run."""
    files = re.search(r"Total Files Read: (\d+)", plan)
    groups = re.search(r"Row Groups Scanned: (\d+) / \d+", plan)
    return int(files[1]) if files else 0, int(groups[1]) if groups else 0


def test_what_cannot_matter_is_not_read(recorded):
    hour = ["--from", "2026-01-01T01:10:00", "--to", "2026-01-01T01:20:00"]
    total = "SELECT sum(length) FROM packets"
    cases = [
        ([total], (4, 4)),
        # Recorder, date and hour: of the files' names. Times: of meta.json.
        ([f"{total} WHERE recorder = 'three' AND hour = 2"], (1, 1)),
        ([total, *hour], (1, 1)),
        # Statistics, then bloom filters: no packet is of this flow, but its id is between those of others.
        ([f"{total} WHERE time_ns < {BEGIN * 10**9}"], (None, 0)),
        ([f"{total} WHERE flow_id = 1"], (None, 0)),
        (["SELECT sum(packets_ab) FROM flows WHERE src = ip('10.0.0.2')"], (None, 0)),
        (["SELECT sum(packets_ab) FROM flows WHERE src = ip('10.0.0.1')"], (None, 4)),
    ]
    done, errors = archived.outputs(
        ["query", "-A", recorded[0], "--json", f"EXPLAIN ANALYZE {sql}", *more] for (sql, *more), _ in cases
    )
    assert not errors
    for (words, (files, groups)), (status, out) in zip(cases, done):
        plan = rows_of(out)[0]["explain_value"]
        found = scanned(plan)
        assert status == 0 and found[1] == groups and files in (None, found[0]), f"{words}: {plan}"


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT nothing FROM packets", 'Binder Error: Referenced column "nothing" not found in FROM clause!'),
        ("SELEKT", 'Parser Error: syntax error at or near "SELEKT"'),
        ("SELECT ip('10.0.0')", "'10.0.0' is not an IP address; ip() takes one such as '10.0.0.1' or '2001:db8::1'"),
    ],
)
def test_one_line_says_what_is_wrong(recorded, sql, line):
    done = archived.run("query", "-A", recorded[0], sql, status=1)
    assert done.stderr == f"ringtap: archive: {line}\n" and not done.stdout


def test_columns_of_one_name_are_refused_in_json(recorded):
    """An object has one of them, the others would be lost."""
    sql = "SELECT 1 AS one, 2 AS two, 3 AS one"
    assert query(recorded[0], sql, "--csv").split() == ["one,two,one", "1,2,3"]
    done = archived.run("query", "-A", recorded[0], "--json", sql, status=1)
    assert done.stderr.strip().endswith("two columns are called 'one'; rename one of them by AS") and not done.stdout


def test_no_such_archive_or_recorder(recorded, tmp_path):
    assert (
        "no recorder 'four'; it has one, three"
        in archived.run("query", "-A", recorded[0], "--recorder", "four", "SELECT 1", status=1).stderr
    )
    assert "not an archive" in archived.run("query", "-A", tmp_path, "SELECT 1", status=1).stderr
    archived.run("query", "-A", recorded[0], "--master", "local", "SELECT 1", status=2)


def test_reader_of_a_pipe_may_end(recorded):
    command = [
        archived.python(),
        "-m",
        "ringtap_archive.main",
        "query",
        "-A",
        recorded[0],
        "--csv",
        "SELECT a.* FROM packets a, packets b",
    ]
    with subprocess.Popen(
        command, env=archived.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().startswith(b"time_ns,")
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(30) == 0
