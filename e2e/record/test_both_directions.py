# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder's packets are in a recording of both directions twice: what Wireshark makes of it."""

import pytest
from harness.paths import RINGTAP
from harness.proc import Proc, check
from harness.two_hosts import TwoHosts

MARKED = "tcp.analysis.retransmission or tcp.analysis.out_of_order or tcp.analysis.duplicate_ack"
FIELDS = "ip.src", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags"
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
    rows = check(["tshark", "-r", path, "-T", "fields", *(w for f in FIELDS for w in ("-e", f))]).splitlines()
    counts = [check(["tshark", "-r", path, "-Y", filter]).count("\n") for filter in ("tcp", MARKED)]
    return (*counts, len(rows) - len(set(rows)))


def recorded(hosts, closing, path, count, *options):
    return (record(hosts, closing, path, count, *options), *read(path))


def test_retransmissions_that_are_none(hosts, closing, tmp_path):
    summary, packets, marked, _ = recorded(hosts, closing, tmp_path / "both", 20)
    assert NOTE in summary and packets == 20 and marked
    summary, packets, marked, twice = recorded(hosts, closing, tmp_path / "rx", 10, "--direction", "rx")
    # On a busy machine a host may really send a segment again.
    assert NOTE not in summary and packets == 10 and marked <= twice


@pytest.mark.parametrize("what", ["direction", "interface"])
def test_a_file_for_each(hosts, closing, tmp_path, what):
    summary = record(hosts, closing, tmp_path / "a.pcapng", 20, "--split", what)
    assert NOTE not in summary
    files = sorted(tmp_path.glob("a_*.pcapng"))
    names = {"direction": ["a_rx", "a_tx"], "interface": ["a_net_af_packet0", "a_net_af_packet1"]}[what]
    assert [path.stem for path in files] == names
    assert sum(read(path)[0] for path in files) == 20
    for path in files:
        packets, marked, twice = read(path)
        assert packets and marked <= twice
