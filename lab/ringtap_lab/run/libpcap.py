# SPDX-License-Identifier: BSD-3-Clause
"""A libpcap program in `make bench`: on a port, on a veth by the system's libpcap, and with a filter
that passes one packet in a hundred."""
import struct
import time

from ..tools import process
from ..tools.telemetry import Telemetry
from . import forwarder
from .counter import Counter
from .lab import Lab
from .testpmd import Source, TestPmd

SIZE = 64
FRAMES = 100  # of which one passes
EXPRESSION = "udp port 53"
WINDOW_S = 0.3
TURNS = 3
STEADY_PPS = 30_000_000
STEADY = f"net_null at {STEADY_PPS // 10**6} Mpps"
ONE_IN_100, NOTHING = "net_pcap, 1 of 100 passes", "net_null, nothing passes"


def _udp_frame(port):
    payload = bytes(SIZE - 14 - 20 - 8)
    udp = struct.pack(">HHHH", 9, port, 8 + len(payload), 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp + payload), 0, 0, 64, 17, 0,
                     bytes([198, 18, 0, 1]), bytes([198, 18, 0, 2]))
    return bytes.fromhex("0200000000010200000000020800") + ip + udp + payload


def write_frames(path):
    """UDP, one frame to port 53, in a pcap file."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for i in range(FRAMES):
            f.write(struct.pack("<IIII", 1, i, SIZE, SIZE) + _udp_frame(53 if i == FRAMES // 2 else 5000))


class FromFile(Source):
    """net_pcap plays a file round and round. net_null's packets never change: a filter takes all of
    them or none."""

    def __init__(self, path):
        self.name, self.size, self.ports = "net_pcap", SIZE, ["net_pcap0"]
        self.eal = ["--vdev", f"net_pcap0,rx_pcap={path},infinite_rx=1"]
        self.app = ["--forward-mode=rxonly", "--no-flush-rx"]


def _ours(bench, app, expression=""):
    launcher = [str(bench.ringtap), "run", "--"]
    return Counter(bench.o.build, bench.o.cpus[1], f"ringtap:{app.prefix}:{app.source.ports[0]}",
                   launcher, expression)


def _rates(counts):
    return counts["packets"] / counts["seconds"], \
        counts["dropped"] / max(counts["dropped"] + counts["packets"], 1)


def on_port(bench):
    """Everything that testpmd receives from net_null."""
    app = TestPmd(Source("net_null", SIZE), bench.o.cpus, bench.o.huge, str(bench.plugin))
    try:
        before = app.polling_times()
        with _ours(bench, app) as counter:
            time.sleep(bench.o.seconds)
            counts = counter.finish()
        disturbed = process.waiting_share(before, app.polling_times())
    finally:
        app.stop()
    _add(bench, "net_null", "ringtap", counts, disturbed)


def at_a_steady_rate(bench):
    """As a wire would send: at full rate testpmd is faster than any reader of packets can be. What the
    port received between two looks, both while the counter was attached, has to be counted."""
    lab = Lab(bench.o)
    end = forwarder.End([], ["--vdev", f"net_null0,size={SIZE}", "--no-huge"], "net_null0", bench.o.cpus[0])
    try:
        sink = forwarder.Forwarder(lab, end, "sink", ["--sink-rate", str(STEADY_PPS)])
        name = sink.argv[sink.argv.index("--name") + 1]
        with sink, Counter(bench.o.build, bench.o.cpus[1], f"ringtap:{name}:net_null0",
                           [str(bench.ringtap), "run", "--"]) as counter:
            telemetry = Telemetry(name)
            try:
                _, before = telemetry.received([0])
                time.sleep(bench.o.seconds)
                _, after = telemetry.received([0])
            finally:
                telemetry.close()
            counts = counter.finish()
    finally:
        lab.close()
    if after <= before:
        raise RuntimeError("the port received nothing")
    counts["dropped"] += max(after - before - counts["packets"] - counts["dropped"], 0)
    _add(bench, STEADY, "ringtap", counts, 0.0)


def on_veth(bench):
    """Everything that a sender in the kernel's way can send; at its own pace if that is slower."""
    lab = Lab(bench.o)
    try:
        with lab.hosts() as (a, b):
            end = forwarder.End(a.prefix, ["--plane", "packet-mmap"], "eth0", bench.o.cpus[0])
            with Counter(bench.o.build, bench.o.cpus[1], "eth0", b.prefix) as counter, \
                    forwarder.Forwarder(lab, end, "generate",
                                        ["--frame", "udp", "--sizes", str(SIZE), "--rate", "max"]) as sender:
                time.sleep(bench.o.seconds)
                report = sender.finish()
                time.sleep(0.2)  # libpcap hands out a block that is not full after 0.1 s
                counts = counter.finish()
    finally:
        lab.close()
    # Starting and ending the sender is not its time.
    counts["seconds"] = report.data["seconds"]
    _add(bench, "veth", "system", counts, 0.0)


def _add(bench, source, tool, counts, disturbed):
    pps, loss = _rates(counts)
    bench.store.add(pps, "pcap", source, SIZE, tool, disturbed=disturbed)
    bench.store.add(loss, "pcap_loss", source, SIZE, tool, disturbed=disturbed)
    print(f"pcap_loop on {source} by {tool}: {pps / 1e6:.2f} Mpps, {counts['dropped']} lost", flush=True)


def _check_share(counts, inner, outer, share):
    """A filter that passes what it should not, or nothing, measures something else. inner, outer:
    packets received in times within and around that of the counter."""
    passed = counts["packets"] + counts["dropped"]
    if not 0.9 * share * inner <= passed <= 1.1 * share * outer:
        raise RuntimeError(f"{passed} of {inner} to {outer} packets passed the filter, not {share:.0%}")


def filtered(bench, source, name, share):
    """The application's rate before, and while a filter looks at its packets; by turns, as clocks
    change. share: of the packets, that passes."""
    app = TestPmd(source, bench.o.cpus, bench.o.huge, str(bench.plugin))
    try:
        for _ in range(TURNS):
            alone = app.rate_of_own_time(WINDOW_S)
            _, first = app.received()
            with _ours(bench, app, EXPRESSION) as counter:
                _, before = app.received()
                attached = app.rate_of_own_time(WINDOW_S)
                _, after = app.received()
                counts = counter.finish()
            _, last = app.received()
            _check_share(counts, after - before, last - first, share)
            bench.store.add(alone, "unfiltered", name, SIZE)
            bench.store.add(attached, "filtered", name, SIZE)
            print(f"filter on {name}: application {alone / 1e6:.1f} -> {attached / 1e6:.1f} Mpps, "
                  f"{counts['packets']} passed", flush=True)
    finally:
        app.stop()


def measure(bench):
    bench.o.out.mkdir(parents=True, exist_ok=True)
    file = bench.o.out / "one-in-100.pcap"
    write_frames(file)
    for what, function in (
            ("pcap_loop on a port", lambda: on_port(bench)),
            ("pcap_loop at a steady rate", lambda: at_a_steady_rate(bench)),
            ("pcap_loop on a veth", lambda: on_veth(bench)),
            (f"filter, {ONE_IN_100}", lambda: filtered(bench, FromFile(file), ONE_IN_100, 1 / FRAMES)),
            (f"filter, {NOTHING}", lambda: filtered(bench, Source("net_null", SIZE), NOTHING, 0))):
        try:
            function()
        except Exception as e:  # any: the rest is worth measuring
            bench.store.error(what, e)
