# SPDX-License-Identifier: BSD-3-Clause
"""Ports that are added, removed, stopped, restarted or reconfigured during a capture."""
import json

import pytest

from harness import pcap, pcapng
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.ringtap import listing, packets_of, sessions


@pytest.mark.smoke
def test_port_is_added(play, record):
    app = play()
    app.ring("a")
    recorder = record(app)
    app.rx(0, n=5)
    assert app.plug("net_null7") == 1
    app.hooked(1)
    app.one("poll 1 0 n=320")
    app.rx(0, n=5)
    recorder.finish()
    file = recorder.file()
    assert [i.name for i in file.interfaces] == ["net_ring_a", "net_null7"]
    assert len(packets_of(file, "net_null7")) == 320
    assert len(packets_of(file, "net_ring_a")) == 10


def test_port_is_added_to_an_application_without_ports(play, record):
    app = play()
    recorder = record(app)
    app.plug("net_null0")
    app.hooked(0)
    app.one("poll 0 0 n=64")
    recorder.finish()
    assert len(recorder.file().packets) == 64


def test_port_that_comes_back(play, record):
    """Its id is reused, and its interface continues, although net_null has a new random address."""
    app = play()
    app.ring("a")
    recorder = record(app)
    counts = []
    for round_ in range(3):
        port = app.plug("net_null7")
        app.hooked(port)
        counts.append(32 * (round_ + 1))
        app.one(f"poll {port} 0 n={counts[-1]}")
        app.do("unplug net_null7")
    app.rx(0, n=5)
    recorder.finish()
    file = recorder.file()
    per_interface = [sum(p.interface == i for p in file.packets) for i in range(len(file.interfaces))]
    assert [i.name for i in file.interfaces] == ["net_ring_a", "net_null7"]
    assert per_interface == [5, sum(counts)]
    assert [pcapng.stat(i, 8) for i in file.interfaces] == per_interface


ARRIVALS = 200


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


def test_port_comes_back_hundreds_of_times(play, record):
    app = play()
    app.ring("a")
    recorder = record(app, "-s", "64")
    received = arrivals(app, ["net_null7"] * ARRIVALS)
    app.rx(0, n=5)
    recorder.finish()
    assert "not captured" not in recorder.proc.output
    file = recorder.file()
    assert [i.name for i in file.interfaces] == ["net_ring_a", "net_null7"]
    assert [pcapng.stat(i, 8) for i in file.interfaces] == [5, received]
    assert len(file.packets) == received + 5
    text = check(["capinfos", recorder.out])
    assert "Number of interfaces in file: 2" in text


def test_hundreds_of_ports_one_after_the_other(play, record):
    app = play()
    app.ring("a")
    recorder = record(app, "-s", "64")
    names = [f"net_null{i}" for i in range(ARRIVALS)]
    received = arrivals(app, names)
    recorder.finish()
    assert "not captured" not in recorder.proc.output
    file = recorder.file()
    assert [i.name for i in file.interfaces] == ["net_ring_a", *names]
    assert [pcapng.stat(i, 8) for i in file.interfaces[1:]] == [32 * (i % 3 + 1) for i in range(ARRIVALS)]
    assert len(file.packets) == received
    assert f"Number of interfaces in file: {ARRIVALS + 1}" in check(["capinfos", recorder.out])


PORTS = 32  # RTE_MAX_ETHPORTS in distributions


def test_maximum_number_of_ports(testpmd, record):
    names = [f"net_null{i}" for i in range(PORTS)]
    pmd = testpmd(*names, memory_mb=512, mbufs=16384)
    pmd.start()
    ports, = [a["ports"] for a in listing() if a["name"] == pmd.prefix]
    assert [p["name"] for p in ports] == names
    assert all(p["link_up"] and p["rx_queues"] == 1 for p in ports)
    recorder = record(pmd, "-s", "64", "--json", out="/dev/null")

    def all_have_traffic():
        top = json.loads(check([RINGTAP, "top", "--once", "--json", "-n", "2", pmd.prefix]))
        rates = {p["name"]: p["driver_per_second"] for p in top["applications"][0]["ports"]}
        assert sorted(rates) == sorted(names)
        return all(r["ipackets"] and r["opackets"] for r in rates.values())

    until(all_have_traffic, what="traffic of all ports while top measured")
    output = recorder.finish()
    report = json.loads(output[output.index("{"):output.rindex("}") + 1])
    assert sorted(i["name"] for i in report["interfaces"]) == sorted(names)
    assert all(i["captured"] and i["nic"]["ipackets"] for i in report["interfaces"])
    assert pmd.quit() == 0


def test_stopped_port_has_no_earlier_counters(testpmd, record):
    """Packets that the driver counted before the session do not count."""
    pmd = testpmd("net_null0", args=("--forward-mode=rxonly",))
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] > 1000, 10, "packets")
    pmd.stop()
    pmd.cmd("port stop 0")
    recorder = record(pmd, "-s", "64", "--json", out="/dev/null")
    pmd.cmd("port start 0")
    output = recorder.finish()
    report = json.loads(output[output.index("{"):output.rindex("}") + 1])
    assert pmd.stats(0)["RX-packets"] > 1000  # the counter continues
    assert report["interfaces"][0]["nic"]["ipackets"] == 0
    assert pmd.quit() == 0


def test_all_ports_are_removed(play, record):
    app = play()
    app.plug("net_null0")
    recorder = record(app)
    app.one("poll 0 0 n=32")
    app.do("unplug net_null0")
    recorder.finish()
    assert len(recorder.file().packets) == 32


@pytest.mark.smoke
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
        app.hooked(0, 2 * queues)
        for queue in range(queues):
            sent += app.rx(0, queue, n=3, seq=queue)[0] + app.tx(0, queue, n=3, seq=queue)[0]
    recorder.finish()
    file = recorder.file()
    assert len(file.packets) == sent
    assert all(p.data in [pcap.frame(64, p.queue + i) for i in range(3)] for p in file.packets)


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
