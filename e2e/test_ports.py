# SPDX-License-Identifier: BSD-3-Clause
"""Ports that appear, vanish, stop, restart or get other queues while a capture runs."""
from harness import pcap, pcapng
from harness.proc import until
from harness.ringtap import packets_of


def hooked(app, port, n):
    until(lambda: app.one(f"callbacks {port}") == n, 10, f"{n} callbacks on port {port}")


def test_port_that_appears(play, record):
    app = play()
    app.ring("a")
    recorder = record(app)
    app.rx(0, n=5)
    assert app.plug("net_null7") == 1
    hooked(app, 1, 2)
    app.one("poll 1 0 n=320")
    app.rx(0, n=5)
    recorder.finish()
    file = recorder.file()
    assert [i.name for i in file.interfaces] == ["net_ring_a", "net_null7"]
    assert len(packets_of(file, "net_null7")) == 320
    assert len(packets_of(file, "net_ring_a")) == 10


def test_port_that_appears_after_an_empty_start(play, record):
    app = play()
    recorder = record(app)
    app.plug("net_null0")
    hooked(app, 0, 2)
    app.one("poll 0 0 n=64")
    recorder.finish()
    assert len(recorder.file().packets) == 64


def test_port_that_vanishes_and_comes_back(play, record):
    """An id is used again; packets before and after belong to different interfaces."""
    app = play()
    app.ring("a")
    recorder = record(app)
    counts = []
    for round_ in range(3):
        port = app.plug("net_null7")
        hooked(app, port, 2)
        counts.append(32 * (round_ + 1))
        app.one(f"poll {port} 0 n={counts[-1]}")
        app.do("unplug net_null7")
    app.rx(0, n=5)
    recorder.finish()
    file = recorder.file()
    per_interface = [sum(p.interface == i for p in file.packets) for i in range(len(file.interfaces))]
    assert per_interface == [5, *counts]
    assert [pcapng.stat(i, 8) for i in file.interfaces] == per_interface


def test_all_ports_vanish(play, record):
    app = play()
    app.plug("net_null0")
    recorder = record(app)
    app.one("poll 0 0 n=32")
    app.do("unplug net_null0")
    recorder.finish()
    assert len(recorder.file().packets) == 32


def test_stop_and_restart(play, record):
    app = play()
    app.ring("a")
    recorder = record(app)
    for i in range(3):
        app.rx(0, n=4, seq=4 * i)
        app.do("stop 0")
        app.do("start 0")
    app.tx(0, n=4, seq=12)
    recorder.finish()
    assert [p.data for p in recorder.file().packets] == [pcap.frame(64, i) for i in range(16)]


def test_more_and_fewer_queues(play, record):
    app = play()
    app.ring("a", rxq=4, txq=4)
    recorder = record(app)
    sent = 0
    for queues in (1, 4, 2, 4):
        app.do(f"reconf 0 rxq={queues} txq={queues}")
        hooked(app, 0, 2 * queues)
        for queue in range(queues):
            sent += app.rx(0, queue, n=3, seq=queue)[0] + app.tx(0, queue, n=3, seq=queue)[0]
    recorder.finish()
    file = recorder.file()
    assert len(file.packets) == sent
    assert all(p.data in [pcap.frame(64, p.queue + i) for i in range(3)] for p in file.packets)


def test_vanishing_under_traffic(play, record):
    """The port next to it is at full rate meanwhile."""
    app = play()
    app.plug("net_null0")
    app.do("loop 0 0")
    recorder = record(app, "-s", "64", out="/dev/null")
    for _ in range(30):
        port = app.plug("net_null7")
        app.one(f"poll {port} 0 n=32")
        app.do("unplug net_null7")
    recorder.finish()
    assert app.one("unloop") > 0
    hooked(app, 0, 0)


def test_named_port_only(play, record):
    app = play()
    app.ring("a")
    recorder = record(app, ports=["net_ring_a"])
    port = app.plug("net_null7")
    app.one(f"poll {port} 0 n=32")
    app.rx(0, n=2)
    recorder.finish()
    assert [i.name for i in recorder.file().interfaces] == ["net_ring_a"]
    assert len(recorder.file().packets) == 2


def test_testpmd_stops_and_closes_a_port(testpmd, record):
    pmd = testpmd("net_null0", "net_null1")
    recorder = record(pmd, "-s", "64", out="/dev/null")
    pmd.start()
    pmd.stop()
    for line in ("port stop 1", "port config all rxq 1", "port start 1", "port stop 1",
                 "port detach 1"):
        pmd.cmd(line)
    recorder.finish()
    assert pmd.quit() == 0
