# SPDX-License-Identifier: BSD-3-Clause
"""Readers and applications that start, end, or are killed."""

import signal

import pytest
from harness import dpdk, pcap, pcapng
from harness.paths import BUILD
from harness.proc import Proc, check, freeze, until

CLIENTS, CYCLES = 4, 500
RATE_WINDOW = 200_000  # packets; long enough to tell a stuck application from a running one


def detached(app, ports=(0,)):
    """Waits until all callbacks are removed: up to 2.5 s after an earlier removal."""
    until(lambda: all(app.one(f"callbacks {p}") == 0 for p in ports), what="callbacks gone")


def keeps_moving(app):
    start = app.one("count")
    until(lambda: app.one("count") > start + RATE_WINDOW, what="traffic")


@pytest.fixture
def busy(play):
    """net_null at the maximum rate, forwarded by a worker of rt_play."""
    app = play()
    app.plug("net_null0")
    app.do("loop 0 0")
    return app


@pytest.mark.smoke
def test_recorders_that_are_killed_or_stopped(busy, record):
    """The application continues, and nothing stays in it."""
    for _ in range(10):
        record(busy, "-s", "64", attach=False).proc.kill()  # while it attaches
    detached(busy)
    keeps_moving(busy)
    before = dpdk.Resources(busy.pid)
    killed = record(busy, "-s", "64")
    stopped = record(busy, "--buffer", "64K", "-s", "64")
    assert busy.one("callbacks 0") == 2
    killed.proc.kill()
    freeze(stopped.proc.pid)
    keeps_moving(busy)
    stopped.proc.send_signal(signal.SIGCONT)
    stopped.finish()
    assert pcapng.stat(stopped.file().interfaces[0], 7) > 0
    detached(busy)
    keeps_moving(busy)
    until(lambda: dpdk.Resources(busy.pid).fds <= before.fds + 2, what="descriptors closed")


@pytest.mark.smoke
def test_file_of_a_killed_application_is_complete(play, record):
    """All published packets are in the file, which is complete and states the reason of the end."""
    app = play()
    app.ring("a")
    recorder = record(app, "--buffer", "16M")
    freeze(recorder.proc.pid)  # so that all packets are still in the buffer
    app.rx(n=3000, len=500)
    app.tx(n=3000, len=500)
    app.proc.kill()
    recorder.proc.send_signal(signal.SIGCONT)
    output = recorder.proc
    output.wait()
    file = recorder.file()
    for direction in (pcapng.RX, pcapng.TX):
        got = [p.data for p in file.packets if p.direction == direction]
        assert got == [pcap.frame(500, i) for i in range(3000)]
    assert pcapng.stat(file.interfaces[0], 8) == 6000
    assert app.prefix in output.output
    check(["capinfos", recorder.out])


def test_killed_application_under_full_traffic(busy, record):
    recorder = record(busy, "-s", "64")
    keeps_moving(busy)
    busy.proc.kill()
    recorder.proc.wait()
    file = recorder.file()
    assert file.packets
    pcapng.assert_in_order(file)


def test_one_of_two_applications_is_killed(play, record):
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
    recorder = record(apps[0], "-i", f"{apps[1].prefix}:")
    apps[0].rx(n=10)
    apps[0].proc.kill()
    recorder.proc.expect(apps[0].prefix)
    apps[1].rx(n=20)
    recorder.finish()
    assert [p.interface for p in recorder.file().packets] == [0] * 10 + [1] * 20


def test_thread_that_stopped_polling_does_not_block_detaching(app, record):
    """The main thread of rt_play has polled, and waits for a command now. The end of the application ends a capture."""
    recorder = record(app)
    app.rx(n=5)
    recorder.finish()
    assert len(recorder.file().packets) == 5
    detached(app)
    recorder = record(app)
    app.rx(n=10)
    assert app.quit() == 0
    recorder.done()
    assert len(recorder.file().packets) == 10


def test_four_sessions_under_full_traffic(busy, record):
    recorders = [
        record(busy, "-s", "64", "--buffer", "1M", "-f", f, out="/dev/null")
        for f in ("less 100", "greater 60", "not ip", "ether[0] = 0")
    ]
    keeps_moving(busy)
    for recorder in recorders[::2]:
        recorder.proc.kill()
    keeps_moving(busy)
    for recorder in recorders[1::2]:
        recorder.finish()
    detached(busy)
    keeps_moving(busy)


def test_attachments_leave_no_callback(busy, closing):
    """Two clients at a time, under full traffic; every third time one closes without a stop."""
    clients = [closing(Proc([BUILD / "e2e" / "rt_cycle", dpdk.RUN_DIR / busy.prefix, 50])) for _ in range(2)]
    for client in clients:
        assert client.wait(300) == 0, client.output
    detached(busy)
    keeps_moving(busy)


@pytest.mark.slow
@pytest.mark.nightly
def test_two_thousand_attachments_under_full_traffic(testpmd, closing):
    """Four clients at a time. No crash, no leak. (Speed afterwards is a matter of the benchmark.)"""
    pmd = testpmd("net_null0", "net_null1")
    pmd.start()
    cycle = [BUILD / "e2e" / "rt_cycle", dpdk.RUN_DIR / pmd.prefix]
    check([*cycle, 20])  # one-time allocations are done
    before = dpdk.Resources(pmd.pid)
    clients = [closing(Proc([*cycle, CYCLES])) for _ in range(CLIENTS)]
    for client in clients:
        assert client.wait(300) == 0, client.output
        assert client.output.startswith(f"{CYCLES} cycles, ")
        assert int(client.output.split()[2]) > 0
    until(lambda: dpdk.Resources(pmd.pid).fds <= before.fds, what="descriptors closed")
    after = dpdk.Resources(pmd.pid)
    assert after.threads == before.threads
    assert after.maps <= before.maps + 8, f"{before} became {after}"
    assert after.rss_kb < before.rss_kb + 4096, f"{before} became {after}"
    forwarded = pmd.stop()
    assert forwarded[0][0] > 0
    assert pmd.quit() == 0
