# SPDX-License-Identifier: BSD-3-Clause
"""Mempools with a use that grows, and `ringtap doctor`: a leak is found and its packets are named; what is only
filled, or comes and goes, is not a leak."""

import json
import time

import pytest
from harness.doctor import FAULT
from harness.paths import RINGTAP
from harness.proc import Proc

ARP = bytes.fromhex("ffffffffffff02000000000208060001080006040001020000000002c0000201000000000000c0000202") + bytes(18)
BASE = 1000  # mbufs in use at first: net_ring has no descriptors, caches and a burst explain 416
RATE = 100  # a second; with BASE the pool of 4,095 lasts 30 s
LONG = ("--duration", "10s")  # the application does nothing for a second, now and then, on a busy machine
pytestmark = pytest.mark.slow
FOLLOWING = "following received packets for 5 s"


class Watched:
    """A doctor, and what the application does while it watches: act(n), RATE times a second."""

    def __init__(self, closing, app, act, *args):
        proc = closing(Proc([RINGTAP, "doctor", "--json", *args, app.prefix]))
        begin, done = time.monotonic(), 0
        while not proc.ends_within(0.05):
            n = int((time.monotonic() - begin) * RATE) - done
            if n:
                act(n, proc.output)
            done += n
        self.status = proc.wait()
        self.text = proc.output
        (it,) = json.loads(self.text[self.text.index("{\n") :])["applications"]
        self.growing = {v["where"]: "\n".join(v["evidence"]) for v in it["verdicts"] if v["verdict"] == "pool_grows"}

    def one(self):
        assert self.status == FAULT, self.text
        assert self.growing, self.text
        ((where, evidence),) = self.growing.items()
        assert where == "small"
        return evidence


@pytest.fixture
def app(play):
    """It has two queues, and holds what it receives."""
    it = play()
    it.ring("a", rxq=2)
    it.do("hold 1")
    it.rx(0, 0, n=BASE)
    return it


def test_packets_that_are_held_are_named(app, closing):
    found = Watched(closing, app, lambda n, _: app.rx(0, 1, data=ARP, n=n), *LONG)
    evidence = found.one()
    assert FOLLOWING in found.text
    assert "of its 4,095 buffers were in use at first" in evidence
    assert "all of these packets were received at net_ring_a queue 1" in evidence
    assert "all are ARP, such as 192.0.2.1 > 192.0.2.2 ARP, 60 bytes" in evidence
    assert "not received packets" not in evidence


@pytest.mark.nightly
def test_mbufs_that_were_not_received(app, closing):
    found = Watched(closing, app, lambda n, _: app.do(f"leak small {n}"), *LONG)
    evidence = found.one()
    assert "it holds 0 of this mempool for more than a second" in evidence
    assert "the application allocates these mbufs itself" in evidence


@pytest.mark.nightly
def test_held_packets_of_a_plan_are_no_leak(play, closing, tmp_path):
    """rt_deeds holds up to 512 packets of each thread, among all that applications do."""
    app = play(program="rt_deeds")
    proc = closing(Proc([RINGTAP, "doctor", "--json", app.prefix]))
    while proc.alive():
        app.do(f"run 20000 seed=3 log={tmp_path}/log")
    assert proc.wait() in (0, FAULT)
    assert "pool_grows" not in proc.output, proc.output
