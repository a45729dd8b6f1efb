# SPDX-License-Identifier: BSD-3-Clause
"""ringtap latency with every forwarding mode of unmodified testpmd: each sent packet is timed for
certain, inferred, or counted as not timed. Modes that reset the flags of mbufs lose the mark."""

import itertools
import signal
import struct

import pytest
from harness import pcap
from harness.dpdk import telemetry
from harness.known import Measuring
from harness.proc import until
from harness.prometheus import Exporter

PACKETS = 600  # packets of each port
CERTAIN, INFERRED, NOTHING = "certain", "inferred", "nothing"
# All modes of 22.11 except the generators, and ieee1588, which distributions do not build.
FORWARDING = {
    "io": CERTAIN,
    "noisy": CERTAIN,
    "mac": INFERRED,
    "macswap": INFERRED,
    "5tswap": INFERRED,
    "csum": INFERRED,
    "icmpecho": CERTAIN,
    "rxonly": NOTHING,
    "shared_rxq": NOTHING,
}


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def echo_request(number):
    icmp = struct.pack(">BBHHH", 8, 0, 0, 77, number) + bytes(56)
    icmp = icmp[:2] + struct.pack(">H", checksum(icmp)) + icmp[4:]
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(icmp), number, 0, 64, 1, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    )
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return bytes.fromhex("020000000002020000000001") + b"\x08\x00" + ip + icmp


@pytest.fixture
def latency(closing):
    return lambda app, *args, **kwargs: closing(Measuring("latency", app, *args, **kwargs))


@pytest.fixture
def with_packets(testpmd, tmp_path):
    """A testpmd with two ports, each of which receives PACKETS after its start."""

    def start(mode):
        file = pcap.write(tmp_path / "in.pcap", map(echo_request, range(PACKETS)))
        app = testpmd(
            *(f"net_pcap{i},rx_pcap={file},tx_pcap={tmp_path}/out{i}.pcap" for i in (0, 1)),
            args=("--no-flush-rx", "--rxq-share"),
        )  # shared_rxq crashes otherwise
        assert f"Set {mode} packet forwarding mode" in app.cmd(f"set fwd {mode}")
        return app

    return start


def received(app):
    return sum(app.stats(port)["RX-packets"] for port in (0, 1))


def sums(report):
    """(certain, inferred, without time stamp, shared) packets."""
    return (
        sum(p["packets"] for p in report["pairs"]),
        sum(p["packets"] for p in report["inferred"]),
        sum(u["unstamped"] for u in report["not_timed"]),
        sum(u["shared"] for u in report["not_timed"]),
    )


def test_received_packets(with_packets, latency):
    """Ports that start again receive the same packets again."""
    app = with_packets("io")
    for mode, kind in FORWARDING.items():
        app.cmd("port stop all")
        assert f"Set {mode} packet forwarding mode" in app.cmd(f"set fwd {mode}")
        app.cmd("port start all")
        app.cmd("clear port stats all")
        it = latency(app, "--duration", "1h", "--json")
        app.start()
        until(lambda: received(app) == 2 * PACKETS, what="everything is received")
        sent = sum(tx for _, tx, _, _ in app.stop().values())
        assert sent == (0 if kind == NOTHING else 2 * PACKETS), mode
        report = it.json(signal.SIGINT)
        assert sums(report) == (sent if kind == CERTAIN else 0, sent if kind == INFERRED else 0, 0, 0), mode
        for pair in report["pairs"] + report["inferred"]:
            assert sum(n for _, _, n in pair["histogram_cycles"]) == pair["packets"], mode
            assert 0 < pair["min_ns"] <= pair["p50_ns"] <= pair["max_ns"], mode
            assert (pair["rx_port"] == pair["tx_port"]) == (mode == "icmpecho")


def test_generated_packets_are_never_certain(testpmd, latency):
    app = testpmd("net_null0", "net_null1")
    for mode, every in itertools.product(("flowgen", "txonly"), (1, 16)):
        # The pool has mbufs with old time stamps.
        app.cmd("clear port stats all")
        app.cmd("set fwd rxonly")
        it = latency(app, "--duration", "1h", "--json", "--sample", str(every))
        app.start()
        until(lambda: received(app) > 20000, what="packets are received")
        app.stop()
        app.cmd(f"set fwd {mode}")
        app.start()
        until(lambda: app.stats(1)["TX-packets"] > 200000, what="packets are sent")
        sent = sum(tx + dropped for _, tx, _, dropped in app.stop().values())
        certain, inferred, unstamped, shared = sums(it.json(signal.SIGINT))
        assert certain == 0 and shared == 0
        assert inferred + unstamped == sent, (mode, every)
        if mode == "txonly":
            assert inferred <= 8192 + 1024, "no more than there were mbufs with a time stamp"


def test_inferred_times_are_marked_in_all_outputs(with_packets, latency, closing):
    app = with_packets("macswap")
    text = latency(app, "--duration", "1h", "--histogram")
    exporter = closing(Exporter(app, args=("--collectors", "latency")))
    exporter.series()  # attached
    app.start()
    until(lambda: received(app) == 2 * PACKETS, what="everything is received")
    answer = telemetry(app.prefix, "/ringtap/latency")
    app.stop()
    assert all(p["inferred"] == 1 for p in answer["/ringtap/latency"]["pairs"] if "packets" in p)
    report = text.finish(signal.SIGINT)
    assert "net_pcap0 > net_pcap1: 600 packets, inferred" in report
    assert "net_pcap0 > net_pcap1 (inferred)" in report and "\ninferred: " in report
    name = f'ringtap_inferred_latency_seconds_count{{app="{app.prefix}",'
    until(lambda: any(s.startswith(name) for s in exporter.series()), what="the metric")
    ports = {"rx_port": "net_pcap0", "tx_port": "net_pcap1"}
    assert exporter.value("ringtap_inferred_latency_seconds_count", **ports) == PACKETS
    assert not any(s.startswith("ringtap_latency_seconds_count") for s in exporter.series())


@pytest.mark.nightly
def test_open_vswitch_keeps_the_mark(ovs, net, latency):
    hosts = [net.add_host(f"10.99.0.{i}") for i in (1, 2)]
    switch = ovs()
    for i, (_, port) in enumerate(hosts):
        switch.add_port(f"p{i}", port)
    names = ["p0", "p1"]
    it = latency(switch, "--duration", "1h", "--json")
    hosts[0][0].ping("10.99.0.2", 50)
    report = it.json(signal.SIGINT)
    pairs = {(p["rx_port"]["name"], p["tx_port"]["name"]): p["packets"] for p in report["pairs"]}
    assert pairs[names[0], names[1]] >= 50 and pairs[names[1], names[0]] >= 50
    assert not report["inferred"]
