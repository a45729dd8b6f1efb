# SPDX-License-Identifier: BSD-3-Clause
"""`make bench`: a libpcap program on a port, on a veth with the system's libpcap, and with a filter that passes one packet in a
hundred."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ..tools import process
from ..tools.telemetry import Telemetry
from . import attached, forwarder
from .testpmd import Source, TestPmd

if TYPE_CHECKING:
    from typing import Any

SIZE = 64
FRAMES = 100  # one of them passes
EXPRESSION = "udp port 53"
WINDOW_S = 0.3
TURNS = 3
STEADY_PPS = 30_000_000
STEADY = f"net_null at {STEADY_PPS // 10**6} Mpps"
ONE_IN_100, NOTHING = "net_pcap, 1 of 100 passes", "net_null, nothing passes"


def write_frames(path: str) -> None:
    """UDP, one frame to port 53, in a pcap file."""

    def frame(port: Any):
        head = (
            Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
            / IP(src="198.18.0.1", dst="198.18.0.2")
            / UDP(sport=9, dport=port)
        )
        return head / bytes(SIZE - len(head))

    wrpcap(str(path), [frame(53 if i == FRAMES // 2 else 5000) for i in range(FRAMES)])


class FromFile(Source):
    """net_pcap plays a file again and again. net_null's packets never change: a filter takes all of them or none."""

    def __init__(self, path: str):
        self.name, self.size, self.ports = "net_pcap", SIZE, ["net_pcap0"]
        self.eal = ["--vdev", f"net_pcap0,rx_pcap={path},infinite_rx=1"]
        self.app = ["--forward-mode=rxonly", "--no-flush-rx"]


def _add(bench: Any, source: Any, tool: Any, counts: Any, disturbed: float = 0.0):
    pps, lost = counts["packets"] / counts["seconds"], counts["dropped"]
    bench.store.add(pps, "pcap", source, SIZE, tool, disturbed=disturbed)
    bench.store.add(lost / max(lost + counts["packets"], 1), "pcap_loss", source, SIZE, tool, disturbed=disturbed)
    print(f"pcap_loop on {source} by {tool}: {pps / 1e6:.2f} Mpps, {lost} lost", flush=True)


def _application(bench: Any, source: Any):
    return TestPmd(source, bench.o.cpus, bench.o.huge, str(bench.plugin))


def _counter(bench: Any, app: Any, expression: str = ""):
    return attached.on_port(bench.lab, app.prefix, app.source.ports[0], expression)


def on_port(bench: Any) -> None:
    """All that testpmd receives from net_null."""
    app = _application(bench, Source("net_null", SIZE))
    try:
        before = app.polling_times()
        with _counter(bench, app) as counter:
            time.sleep(bench.o.seconds)
            counts = counter.counts()
        disturbed = process.waiting_share(before, app.polling_times())
    finally:
        app.stop()
    _add(bench, "net_null", "ringtap", counts, disturbed)


def at_a_steady_rate(bench: Any) -> None:
    """As a wire would send: at full rate testpmd is faster than any reader of packets can be. What the port received between
    two readings of its counters, both while the counter was attached, has to be counted."""
    end = forwarder.End([], ["--vdev", f"net_null0,size={SIZE}", "--no-huge"], "net_null0", bench.o.cpus[0])
    with (
        forwarder.Forwarder(bench.lab, end, "sink", ["--sink-rate", str(STEADY_PPS)]) as sink,
        attached.on_port(bench.lab, sink.prefix, "net_null0") as counter,
    ):
        telemetry = Telemetry(sink.prefix)
        try:
            _, before = telemetry.received([0])
            time.sleep(bench.o.seconds)
            _, after = telemetry.received([0])
        finally:
            telemetry.close()
        counts = counter.counts()
    if after <= before:
        raise RuntimeError("the port received nothing")
    counts["dropped"] += max(after - before - counts["packets"] - counts["dropped"], 0)
    _add(bench, STEADY, "ringtap", counts)


def on_veth(bench: Any) -> None:
    """All that a sender can send through the kernel; at its own pace if that is slower."""
    lab = bench.lab
    with lab.hosts() as (a, b):
        end = forwarder.End(a.prefix, ["--plane", "packet-mmap"], "eth0", bench.o.cpus[0])
        with (
            attached.Counter(lab, "eth0", b.prefix) as counter,
            forwarder.Forwarder(
                lab, end, "generate", ["--frame", "udp", "--sizes", str(SIZE), "--rate", "max"]
            ) as sender,
        ):
            time.sleep(bench.o.seconds)
            report = sender.report()
            time.sleep(0.2)  # libpcap hands out a block that is not full after 0.1 s
            counts = counter.counts()
    # Starting and ending the sender is not its time.
    _add(bench, "veth", "system", counts | {"seconds": report.data["duration_s"]})


def _check_share(counts: Any, inner: Any, outer: Any, share: float):
    """A filter that passes wrong packets, or nothing, measures something else. inner, outer: packets received in times within
    and around that of the counter."""
    passed = counts["packets"] + counts["dropped"]
    if not 0.9 * share * inner <= passed <= 1.1 * share * outer:
        raise RuntimeError(f"{passed} of {inner} to {outer} packets passed the filter, not {share:.0%}")


def filtered(bench: Any, source: Any, name: str, share: float) -> None:
    """The application's rate before, and while a filter reads its packets; by turns, as clocks change. share: of the packets,
    that passes."""
    app = _application(bench, source)
    try:
        for _ in range(TURNS):
            alone = app.rate_of_own_time(WINDOW_S)
            _, first = app.received()
            with _counter(bench, app, EXPRESSION) as counter:
                _, before = app.received()
                rate = app.rate_of_own_time(WINDOW_S)
                _, after = app.received()
                counts = counter.counts()
            _, last = app.received()
            _check_share(counts, after - before, last - first, share)
            bench.store.add(alone, "unfiltered", name, SIZE)
            bench.store.add(rate, "filtered", name, SIZE)
            print(
                f"filter on {name}: application {alone / 1e6:.1f} -> {rate / 1e6:.1f} Mpps, {counts['packets']} passed",
                flush=True,
            )
    finally:
        app.stop()


def measure(bench: Any, _repetition: Any) -> None:
    file = bench.o.out / "one-in-100.pcap"
    write_frames(file)
    bench.try_to("pcap_loop on a port", lambda: on_port(bench))
    bench.try_to("pcap_loop at a steady rate", lambda: at_a_steady_rate(bench))
    bench.try_to("pcap_loop on a veth", lambda: on_veth(bench))
    bench.try_to(f"filter, {ONE_IN_100}", lambda: filtered(bench, FromFile(file), ONE_IN_100, 1 / FRAMES))
    bench.try_to(f"filter, {NOTHING}", lambda: filtered(bench, Source("net_null", SIZE), NOTHING, 0))
