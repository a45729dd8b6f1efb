# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder's packets are in a recording of both directions twice: what Wireshark makes of it."""

import pytest
from harness.paths import RINGTAP
from harness.proc import Proc, check
from harness.two_hosts import TwoHosts

MARKED = "tcp.analysis.retransmission or tcp.analysis.out_of_order or tcp.analysis.duplicate_ack"
FIELDS = "ip.src", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags"
NOTE = "--direction rx records it once"


@pytest.fixture
def hosts(plugin, closing, tmp_path):
    (tmp_path / "pages").mkdir()
    return closing(TwoHosts(plugin, tmp_path / "pages"))


def recorded(hosts, closing, path, count, *options):
    """(summary, packets of the connection, those that tshark marks, those that came twice) of a page that is fetched."""
    proc = closing(Proc([RINGTAP, "record", "my-app", "-f", "tcp port 80", "-c", count, "-w", path, *options]))
    proc.expect("^Capturing on")
    hosts.fetch()
    assert proc.wait() == 0, proc.output
    rows = check(["tshark", "-r", path, "-T", "fields", *(w for f in FIELDS for w in ("-e", f))]).splitlines()
    counts = [check(["tshark", "-r", path, "-Y", filter]).count("\n") for filter in ("tcp", MARKED)]
    return (" ".join(proc.output.split()), *counts, len(rows) - len(set(rows)))


def test_retransmissions_that_are_none(hosts, closing, tmp_path):
    summary, packets, marked, _ = recorded(hosts, closing, tmp_path / "both", 20)
    assert NOTE in summary and packets == 20 and marked
    summary, packets, marked, twice = recorded(hosts, closing, tmp_path / "rx", 10, "--direction", "rx")
    # On a busy machine a host may really send a segment again.
    assert NOTE not in summary and packets == 10 and marked <= twice
