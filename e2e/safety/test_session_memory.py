# SPDX-License-Identifier: BSD-3-Clause
"""The reader owns the memory of a capture session: allocates it, is charged for it, and frees
it."""

import os
import random
import signal
import threading
from pathlib import Path

import pytest
from harness import dpdk, wire
from harness.paths import RINGTAP
from harness.proc import child, run, until
from harness.ringtap import FAILED, listing, sessions

MIB = 1 << 20
GROWTH = 2 * MIB  # growth of the application's memory charge in a session, without page tables


def page_tables(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmPTE:")[1].split()[0]) * 1024


# ---- Limits of memory ------------------------------------------------------------------------


def test_recorder_is_charged_for_the_rings(memory_limit, testpmd, record):
    """The rings exceed the memory limit of the application."""
    limit = 80 * MIB
    group = memory_limit(limit)
    pmd = testpmd("net_null0", "net_null1", namespace=group, memory_mb=64, mbufs=2048)
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] > 100_000, what="traffic")
    listing()  # starts the thread of the probe
    before, tables = group.usage, page_tables(pmd.pid)
    assert before < limit / 2
    recorder = record(pmd, "-s", "64", "-c", "200000", buffer=None)
    recorder.done()
    assert len(recorder.file().packets) == 200_000
    recorder = record(pmd, "-s", "64", out="/dev/null", buffer=None)
    start = pmd.stats(0)["RX-packets"]
    until(lambda: pmd.stats(0)["RX-packets"] > start + 1_000_000, what="traffic under a session")
    until(lambda: sessions(pmd)[0]["buffer_bytes"] > limit, what="the whole buffer")
    grown = group.usage - before - (page_tables(pmd.pid) - tables)
    assert grown < GROWTH, f"{grown} bytes more"
    recorder.finish()
    assert group.oom_kills == 0
    assert pmd.quit() == 0


def test_recorder_with_a_limit_of_memory(memory_limit, app, record, tmp_path):
    """The recorder gets the error, before the kernel kills it; the application continues. A smaller buffer fits."""
    group = memory_limit(64 * MIB)
    out = tmp_path / "none.pcapng"
    done = run([*group.prefix, RINGTAP, "record", "-i", f"{app.prefix}:", "-w", out, "--buffer", "64M"])
    assert done.returncode == FAILED
    assert "not enough memory: " in done.stderr and "--buffer" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
    until(lambda: app.one("callbacks 0") == 0, what="callbacks gone")
    recorder = record(app, "--buffer", "1M", prefix=group.prefix)
    app.rx(n=100)
    recorder.finish()
    assert len(recorder.file().packets) == 100
    assert group.oom_kills == 0


def test_application_that_locks_its_memory(memory_limit, play, record, closing):
    """It is recorded. It does not fill sparse memory: populating a hole would be charged to it."""
    group = memory_limit(1 << 30)
    app = play(namespace=group)
    app.ring("a")
    app.do("lock")
    recorder = record(app, "--buffer", "1M")
    app.rx(n=500)
    recorder.finish()
    assert len(recorder.file().packets) == 500
    before = group.usage
    it = closing(wire.Reader(dpdk.RUN_DIR / app.prefix))
    it.fds = [wire.memfd(size, fill=False) for size in it.request(buffer_size=16 * MIB).sizes]
    kind, body = it.pass_memory(it.fds)
    assert kind == wire.ERROR and b"it has holes" in body
    assert [os.fstat(fd).st_blocks for fd in it.fds] == [0, 0, 0]
    assert group.usage - before < GROWTH


# ---- A reader that keeps writing -------------------------------------------------------------


def test_overwriting_reader_affects_only_its_capture(app, record, closing):
    """A reader that writes to all that it shares with the application, and one that passes no memory."""
    listing()  # wakes the probe
    silent = closing(wire.Reader(dpdk.RUN_DIR / app.prefix))
    layout = silent.request()
    known = {int(p.name[4:]) for p in Path("/sys/devices/system/node").glob("node[0-9]*")} or {-1}
    assert set(layout.nodes[layout.shares - 2 :]) == {-1}, "a spare share has a node"
    assert set(layout.nodes[: layout.shares - 2]) <= known

    good = record(app, "--buffer", "128M")  # room for all: the scribbler takes CPU time from the recorder
    it = closing(wire.Reader(dpdk.RUN_DIR / app.prefix))
    it.open(buffer_size=1 << 16)
    noise = [random.Random(i).randbytes(len(m)) for i, m in enumerate(it.maps)]
    done = threading.Event()
    rounds = 0

    def scribble():
        nonlocal rounds
        while not done.is_set():
            for memory, bytes_ in zip(it.maps, noise):
                memory[:] = bytes_ if rounds % 2 else bytes_[::-1]
            rounds += 1

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for i in range(40):
            app.rx(n=500, len=60 + 30 * (i % 40))
            app.tx(n=500, len=60 + 30 * (i % 40))
        until(lambda: rounds > 20, what="scribbled")
        app.rx(n=500)
    finally:
        done.set()
        thread.join()
    good.finish()
    assert len(good.file().packets) == 40 * 1000 + 500
    it.sock.close()
    silent.sock.close()
    until(lambda: app.one("callbacks 0") == 0, what="callbacks gone")


# ---- Ends at any point -----------------------------------------------------------------------


POINTS = ["observing", "laid out", "memory passed", "opened", "started"]


def reader_up_to(folder, point):
    """Runs a reader that is killed at this point."""
    it = wire.Reader(folder)
    it.send(wire.open_request())
    if point == "observing":
        os.kill(os.getpid(), signal.SIGKILL)
    layout = wire.Layout(it.receive()[1])
    if point == "laid out":
        os.kill(os.getpid(), signal.SIGKILL)
    fds = [wire.memfd(size) for size in layout.sizes]
    wire.socket.send_fds(it.sock, [wire.message(wire.MEMORY)], fds)
    if point == "memory passed":
        os.kill(os.getpid(), signal.SIGKILL)
    it.receive()
    if point == "started":
        it.send(wire.message(wire.START))
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.smoke
def test_readers_killed_at_any_point(busy, record, tmp_path):
    """Own readers, and recorders in a system call. Nothing stays, and the next recorder is served."""
    listing()
    before = dpdk.Resources(busy.pid)
    for point in POINTS * 2:
        reader = child(reader_up_to, dpdk.RUN_DIR / busy.prefix, point)
        assert os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == -signal.SIGKILL, point
    for call, number in (("memfd_create", 1), ("mbind", 1), ("ftruncate", 2), ("sendmsg", 4)):
        command = [
            "strace",
            "-f",
            "-o",
            "/dev/null",
            "-e",
            f"inject={call}:signal=KILL:when={number}",
            RINGTAP,
            "record",
            "-i",
            f"{busy.prefix}:",
            "-s",
            "64",
            "-c",
            "1000",
            "-w",
            tmp_path / "killed.pcapng",
        ]
        # A recorder calls mbind() for threads that the probe has seen poll. Without a CPU they have not yet.
        until(lambda command=command: run(command).returncode != 0, what=f"a recorder calls {call}")
    until(lambda: busy.one("callbacks 0") == 0, what="callbacks gone")
    until(lambda: dpdk.Resources(busy.pid).fds <= before.fds, what="descriptors closed")
    until(lambda: dpdk.Resources(busy.pid).maps <= before.maps + 2, what="memory unmapped")
    record(busy, "-s", "64", "-c", "1000").done()


def test_application_killed_while_it_is_attached(play, record):
    for _ in range(3):
        app = play()
        app.ring("a")
        recorder = record(app, attach=False)
        until(
            lambda: (dpdk.RUN_DIR / app.prefix / "ringtap.sock").exists() or not recorder.proc.alive(),
            what="recorder has come",
        )
        app.proc.kill()
        assert recorder.proc.wait() in (FAILED, 0)
