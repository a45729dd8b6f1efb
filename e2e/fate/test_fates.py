# SPDX-License-Identifier: BSD-3-Clause
"""The fates of packets, against what an application has done with each."""

import os

import pytest
from harness import dpdk
from harness.paths import BUILD
from harness.proc import Proc, check

# Sum over two threads.
PACKETS = int(os.environ.get("RINGTAP_FATES", 1_000_000))


@pytest.fixture
def checker(closing, tmp_path):
    def start(app, packets):
        proc = closing(Proc([BUILD / "e2e" / "check_fates", dpdk.RUN_DIR / app.prefix, packets, tmp_path / "logfates"]))
        proc.expect("^armed$")
        return proc

    return start


def compared(checker):
    """(noticed by hooks, found free, rests offered, walks)"""
    checker.send("end")
    found = checker.expect(r"^(\d+) (\d+) (\d+) (\d+)$")
    assert checker.wait() == 0
    return [int(g) for g in found.groups()]


def test_fates_of_all_that_applications_do(play, checker, tmp_path):
    """rt_deeds writes down what becomes of each packet; every counter, record and free mbuf agrees."""
    app = play(program="rt_deeds")
    it = checker(app, PACKETS)
    app.do(f"run {PACKETS // 2} seed=9 infer=1 log={tmp_path}/log", timeout=60 + PACKETS // 10_000)
    noticed, free, rest, walks = compared(it)
    assert noticed > PACKETS // 5
    assert 0 < free < 16384
    assert rest > PACKETS // 200
    assert walks > 1
    # What the comparison is worth: one fate that is written down wrongly is found.
    it = checker(app, 2000)
    app.do(f"run 1000 seed=7 log={tmp_path}/log")
    fates = bytearray((tmp_path / "logfates").read_bytes())
    fates[4] = 1 if fates[4] == 2 else 2
    (tmp_path / "logfates").write_bytes(fates)
    it.send("end")
    it.expect("another fate was written down: 4")
    assert it.wait() == 1


def test_fates_of_packets_that_pass_through_another_process(deeds_and_visitor, checker, tmp_path):
    """A packet that the other process frees was not offered."""
    app = deeds_and_visitor()
    it = checker(app, 20_000)
    app.do(f"run 10000 seed=10 leave=1 log={tmp_path}/log")
    compared(it)


def totals(app, count):
    """Counts of N sessions: (received, noticed, free, open)"""
    out = check([BUILD / "e2e" / "check_fates", dpdk.RUN_DIR / app.prefix, "stops", str(count)])
    lines = [tuple(map(int, line.split())) for line in out.splitlines()]
    assert len(lines) == count
    return lines


def null_ports(testpmd, mode, queues):
    app = testpmd(
        "net_null0", "net_null1", args=(f"--forward-mode={mode}", f"--rxq={queues}", f"--txq={queues}", "--mbcache=0")
    )
    app.start()
    return app


def test_starts_and_stops_under_traffic_find_no_fates_of_their_own(testpmd):
    """testpmd sends on whatever it receives, on many queues."""
    app = null_ports(testpmd, "io", 32)
    for received, noticed, free, held in totals(app, 20):
        assert received > 0
        assert (noticed, free) == (0, 0)
        assert held <= 2 * 32 * 32


def test_stops_under_traffic_know_what_was_dropped(testpmd):
    """testpmd drops all that it receives; what is left is in its hands."""
    app = null_ports(testpmd, "rxonly", 1)
    for received, noticed, free, held in totals(app, 10):
        assert received == noticed + free + held
        assert held <= 2 * 32
