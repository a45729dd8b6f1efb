# SPDX-License-Identifier: BSD-3-Clause
"""Ports that are added, removed, stopped, restarted or reconfigured during a capture."""

import json

import pytest
from harness import pcap, pcapng
from harness.documents import only
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.ringtap import listing, packets_of, sessions


@pytest.mark.smoke
def test_ports_that_come_and_go(play, record):
    """The id of a removed port is reused; its interface continues, although net_null has a new random address. A recorder
    of one port captures no other."""
    app = play()
    recorder = record(app)  # without ports yet
    app.ring("a")
    app.hooked(0)
    of_one = record(app, ports=["net_ring_a"])
    app.rx(0, n=5)
    counts = []
    for round_ in range(3):
        port = app.plug("net_null7")
        assert port == 1
        app.hooked(port)
        counts.append(32 * (round_ + 1))
        app.one(f"poll {port} 0 n={counts[-1]}")
        app.do("unplug net_null7")
    app.rx(0, n=5)
    of_one.finish()
    recorder.finish()
    file, one = recorder.file(), of_one.file()
    per_interface = [sum(p.interface == i for p in file.packets) for i in range(len(file.interfaces))]
    assert [i.name for i in file.interfaces] == ["net_ring_a", "net_null7"]
    assert per_interface == [10, sum(counts)]
    assert [pcapng.stat(i, 8) for i in file.interfaces] == per_interface
    assert [i.name for i in one.interfaces] == ["net_ring_a"] and len(one.packets) == 10


ARRIVALS = 70  # more than the statistics have entries of ports


def captured(app, ports):
    """Waits until the session of the application captures as many ports, of a queue each. Callbacks do not show that: a hook
    keeps its own for a while when its port goes."""
    until(lambda: [s["taps"] for s in sessions(app)] == [2 * ports], what=f"{ports} ports are captured")


def arrivals(app, names):
    """Adds, uses and removes ports, one after the other. Returns what they received."""
    received = 0
    for i, name in enumerate(names):
        port = app.plug(name)
        captured(app, 2)
        app.one(f"poll {port} 0 n={32 * (i % 3 + 1)}")
        received += 32 * (i % 3 + 1)
        app.do(f"unplug {name}")
        captured(app, 1)
    return received


@pytest.mark.nightly
def test_hundreds_of_ports_one_after_the_other(play, record):
    """One name again and again, then as many names."""
    app = play()
    app.ring("a")
    recorder = record(app, "-s", "64")
    again = arrivals(app, ["net_null7"] * ARRIVALS)
    names = [f"net_null{i}" for i in range(10, 10 + ARRIVALS)]
    received = arrivals(app, names)
    app.rx(0, n=5)
    recorder.finish()
    assert "not captured" not in recorder.proc.output
    file = recorder.file()
    assert [i.name for i in file.interfaces] == ["net_ring_a", "net_null7", *names]
    assert [pcapng.stat(i, 8) for i in file.interfaces[:2]] == [5, again]
    assert [pcapng.stat(i, 8) for i in file.interfaces[2:]] == [32 * (i % 3 + 1) for i in range(ARRIVALS)]
    assert len(file.packets) == 5 + again + received
    assert f"Number of interfaces in file: {ARRIVALS + 2}" in check(["capinfos", recorder.out])


PORTS = 32  # RTE_MAX_ETHPORTS in distributions


def test_maximum_number_of_ports(testpmd, record):
    names = [f"net_null{i}" for i in range(PORTS)]
    pmd = testpmd(*names, memory_mb=512, mbufs=16384)
    pmd.start()
    (ports,) = [a["ports"] for a in listing() if a["name"] == pmd.prefix]
    assert [p["name"] for p in ports] == names
    assert all(p["link_up"] and p["rx_queues"] == 1 for p in ports)
    recorder = record(pmd, "-s", "64", "--json", out="/dev/null")

    def all_have_traffic():
        top = json.loads(check([RINGTAP, "top", "--once", "--json", "--interval", "2s", pmd.prefix]))
        rates = {p["name"]: p["driver_per_second"] for p in top["applications"][0]["ports"]}
        assert sorted(rates) == sorted(names)
        return all(r["rx_packets"] and r["tx_packets"] for r in rates.values())

    until(all_have_traffic, what="traffic of all ports while top measured")
    output = recorder.finish()
    report = json.loads(output[output.index("{") : output.rindex("}") + 1])
    assert sorted(i["name"] for i in only(report)["interfaces"]) == sorted(names)
    assert all(i["captured"] and i["nic"]["rx_packets"] for i in only(report)["interfaces"])
    assert pmd.quit() == 0


def test_stopped_ports_of_testpmd(testpmd, record):
    """Packets that the driver counted before the session do not count. Then it stops, changes and closes a port."""
    pmd = testpmd("net_null0", "net_null1", args=("--forward-mode=rxonly",))
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] > 1000, what="packets")
    pmd.stop()
    pmd.cmd("port stop 0")
    recorder = record(pmd, "-s", "64", "--json", out="/dev/null")
    pmd.cmd("port start 0")
    output = recorder.finish()
    report = json.loads(output[output.index("{") : output.rindex("}") + 1])
    assert pmd.stats(0)["RX-packets"] > 1000  # the counter continues
    assert only(report)["interfaces"][0]["nic"]["rx_packets"] == 0
    recorder = record(pmd, "-s", "64", out="/dev/null")
    pmd.start()
    pmd.stop()
    for line in ("port stop 1", "port config all rxq 1", "port start 1", "port stop 1", "port detach 1"):
        pmd.cmd(line)
    recorder.finish()
    assert pmd.quit() == 0


@pytest.mark.smoke
def test_ports_that_are_stopped_restarted_and_reconfigured(play, record):
    """Also with more and with fewer queues."""
    app = play()
    app.ring("a")
    app.ring("b", rxq=4, txq=4)
    recorder = record(app)
    for i in range(3):
        app.rx(0, n=4, seq=4 * i)
        app.do("stop 0")
        app.do("start 0")
    app.tx(0, n=4, seq=12)
    sent = 0
    for queues in (1, 4, 2, 4):
        app.do(f"reconf 1 rxq={queues} txq={queues}")
        app.hooked(1, 2 * queues)
        for queue in range(queues):
            sent += app.rx(1, queue, n=3, seq=queue)[0] + app.tx(1, queue, n=3, seq=queue)[0]
    recorder.finish()
    file = recorder.file()
    assert [p.data for p in packets_of(file, "net_ring_a")] == [pcap.frame(64, i) for i in range(16)]
    packets = packets_of(file, "net_ring_b")
    assert len(packets) == sent
    assert all(p.data in [pcap.frame(64, p.queue + i) for i in range(3)] for p in packets)


def test_ports_are_removed_under_traffic(play, record):
    """Another port receives at the maximum rate meanwhile."""
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
    until(lambda: app.one("callbacks 0") == 0, what="no callback is left")


def test_all_ports_are_removed(play, record):
    app = play()
    app.plug("net_null0")
    recorder = record(app)
    app.one("poll 0 0 n=32")
    app.do("unplug net_null0")
    recorder.finish()
    assert len(recorder.file().packets) == 32
