# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder's packets are in a recording of both directions twice: what Wireshark makes of it."""

import pytest
from harness.paths import RINGTAP
from harness.proc import Proc, check, together
from harness.two_hosts import TwoHosts

FIELDS = "ip.src", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags"
MARKS = "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.duplicate_ack"
NOTE = "--direction rx records it once, --split writes a file for each direction or interface"


@pytest.fixture
def hosts(plugin, closing, tmp_path):
    (tmp_path / "pages").mkdir()
    return closing(TwoHosts(plugin, tmp_path / "pages"))


def record(hosts, closing, path, count, *options):
    """The summary of a recording of a page that is fetched."""
    proc = closing(Proc([RINGTAP, "record", "my-app", "-f", "tcp port 80", "-c", count, "-w", path, *options]))
    proc.expect("^Capturing on")
    hosts.fetch()
    assert proc.wait() == 0, proc.output
    return " ".join(proc.output.split())


def read(path):
    """(packets of the connection, those that tshark marks, those that came twice) of a file."""
    names = [word for field in (*FIELDS, *MARKS) for word in ("-e", field)]
    lines = check(["tshark", "-r", path, "-Y", "tcp", "-T", "fields", *names]).splitlines()
    rows, marks = zip(
        *((row[: len(FIELDS)], row[len(FIELDS) :]) for row in (line.split("\t") for line in lines)), strict=True
    )
    return len(rows), sum(map(any, marks)), len(rows) - len(set(map(tuple, rows)))


def recorded(hosts, closing, path, count, *options):
    return (record(hosts, closing, path, count, *options), *read(path))


def test_retransmissions_that_are_none(hosts, closing, tmp_path):
    summary, packets, marked, _ = recorded(hosts, closing, tmp_path / "both", 20)
    assert NOTE in summary and packets == 20 and marked
    summary, packets, marked, twice = recorded(hosts, closing, tmp_path / "rx", 10, "--direction", "rx")
    # On a busy machine a host may really send a segment again.
    assert NOTE not in summary and packets == 10 and marked <= twice


def test_a_file_for_each(hosts, closing, tmp_path):
    for what, names in (("direction", ["rx", "tx"]), ("interface", ["net_af_packet0", "net_af_packet1"])):
        summary = record(hosts, closing, tmp_path / f"{what}.pcapng", 20, "--split", what)
        assert NOTE not in summary
        files = sorted(tmp_path.glob(f"{what}_*.pcapng"))
        assert [path.stem for path in files] == [f"{what}_{name}" for name in names]
        found = together(read, files)
        assert sum(packets for packets, _, _ in found) == 20
        assert all(packets and marked <= twice for packets, marked, twice in found)
