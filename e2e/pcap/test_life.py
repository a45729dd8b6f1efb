# SPDX-License-Identifier: BSD-3-Clause
"""Handles: break, close, fork, errors. e2e/apps/pcap_life.c checks the results."""

import threading

import pytest
from harness import dpdk, wire
from harness.paths import BUILD, RINGTAP
from harness.proc import PATIENCE, Proc, run, until
from harness.ringtap import sessions

LIFE = BUILD / "e2e" / "pcap_life"


@pytest.fixture
def app(module_app):
    return module_app.unhooked()


@pytest.fixture
def own_app(play):
    """For tests that end it, or its port."""
    it = play()
    it.ring("a")
    return it


@pytest.fixture
def life(closing):
    """life(what, device, count, answer) runs the program to its end; answer() handles its requests
    other than those for frames."""

    def start(what, prefix, count=10, send=None, answer=None, timeout=PATIENCE):
        proc = closing(Proc([RINGTAP, "run", LIFE, what, f"ringtap:{prefix}:0", count]))
        while True:
            line = proc.expect(r"^(.*)\r?\n", timeout).group(1).decode()
            if line == "good":
                return
            if line.startswith("send "):
                _, n, length = line.split()
                send(n=int(n), len=int(length))
            elif not answer or not answer(line):
                raise AssertionError(line)
            proc.send("")

    return start


def test_breakloop(life, app):
    for what in ("breaks_from_a_thread", "breaks_from_a_signal", "breaks_from_the_callback"):
        life(what, app.prefix, 100, app.rx)


@pytest.mark.nightly
def test_a_hundred_times(life, busy):
    """Neither the program nor the application keeps resources."""
    before = dpdk.Resources(busy.pid)
    life("opens_and_closes", busy.prefix, 100, timeout=500)
    until(lambda: sessions(busy) == [], what="all sessions ended")
    until(lambda: dpdk.Resources(busy.pid).fds <= before.fds + 3, what=f"as few descriptors as {before}")
    after = dpdk.Resources(busy.pid)
    assert after.maps <= before.maps + 10, (before, after)


@pytest.mark.smoke
def test_handles(life, app):
    for what in (
        "closes_in_the_callback",
        "two_handles",
        "opens_too_many",
        "child_closes",
        "child_cannot_read",
        "child_reads_as_daemon",
    ):
        life(what, app.prefix, send=app.rx)
        until(lambda: sessions(app) == [], what=f"all sessions ended: {what}")


def test_descriptor_is_readable_for_each_packet_and_no_other(life, app):
    life("waits_for_each_packet", app.prefix, 500, app.rx)


def test_capture_ends_although_a_child_has_descriptors(life, app):
    def ended(line):
        until(lambda: app.one("callbacks 0") == 0, what="nothing is captured any more")
        return line == "callbacks"

    life("child_keeps_descriptors", app.prefix, send=app.rx, answer=ended)
    until(lambda: sessions(app) == [], what="all sessions ended")


def test_timeouts_during_a_rejected_flood(life, busy):
    life("filters_a_flood", busy.prefix)


def test_application_or_port_that_vanishes(life, own_app, play):
    """A port does as when a kernel's interface is removed."""
    life(
        "outlives_the_application",
        own_app.prefix,
        send=own_app.rx,
        answer=lambda line: line == "kill" and own_app.proc.kill() is not None,
    )
    other = play()
    other.ring("a")
    life(
        "outlives_the_application",
        other.prefix,
        send=other.rx,
        answer=lambda line: line == "kill" and other.do("unplug net_ring_a") is not None,
    )


class Stream(threading.Thread):
    """Sends frames with sequence numbers, in bursts, until done is set."""

    def __init__(self, app):
        super().__init__()
        self.app, self.done, self.seq = app, threading.Event(), 0

    def run(self):
        while not self.done.is_set():
            self.app.rx(n=512, len=64, seq=self.seq)
            self.seq += 512

    def answer(self, line):
        if line == "go":
            self.start()
        elif line == "stop":
            self.done.set()
            self.join()
        return line in ("go", "stop")


def test_filter_is_replaced_under_traffic(life, app):
    stream = Stream(app)
    try:
        life("replaces_filters", app.prefix, 40, answer=stream.answer)
    finally:
        stream.done.set()
    assert stream.seq > 40 * 2000


# ---- fake applications ------------------------------------------------------------------


@pytest.fixture
def impostor(closing):
    made = []

    def start(answer):
        prefix = dpdk.new_prefix("fake")
        made.append(prefix)
        closing(wire.Impostor(dpdk.RUN_DIR / prefix, "ringtap.sock", answer))
        return prefix

    yield start
    for prefix in made:
        dpdk.remove_run_dir(prefix)


GOOD = wire.epb(b"A" * 60)
CORRUPT = {
    "length zero": wire.epb(b"B" * 60, total=0),
    "length beyond the head": wire.epb(b"B" * 60, total=4096),
    "captured beyond the block": wire.epb(b"B" * 60, captured=1 << 20),
    "no such interface": wire.epb(b"B" * 60, interface=7),
}


def test_corrupt_records(life, impostor):
    for what, record in CORRUPT.items():
        output = []
        prefix = impostor(wire.fake_probe(wire.segment(records=GOOD * 3 + record)))
        life("reads_corrupt_records", prefix, answer=lambda line: output.append(line) or True)
        assert "corrupt" in output[0], what


def tcpdump(prefix, *args):
    return run([RINGTAP, "run", "tcpdump", "-nn", "-i", f"ringtap:{prefix}:0", *args])


def test_applications_that_cannot_be_captured(impostor, testpmd):
    """Another version, no probe, answers that are invalid."""
    prefix = impostor(
        lambda c: (c.recv(1000), c.send(wire.message(wire.WELCOME, b"\0" * 260, version=wire.VERSION + 1)))
    )
    done = tcpdump(prefix)
    assert done.returncode == 1
    assert "different versions" in done.stderr
    pmd = testpmd("net_null0", plugin=None)
    done = tcpdump(pmd.prefix)
    assert done.returncode == 1
    assert "probe" in done.stderr
    prefix = impostor(lambda c: (c.recv(1000), c.send(b"\xff" * 100)))
    done = tcpdump(prefix)
    assert done.returncode == 1
    assert "invalid answer" in done.stderr
