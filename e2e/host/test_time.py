# SPDX-License-Identifier: BSD-3-Clause
"""Packets of kernel interfaces have the kernel's time stamps, in order."""
import signal
import socket
import struct
import sys
import time

import pytest

from harness import pcap, pcapng
from harness.host import PROGRAM
from harness.paths import BUILD, RINGTAP
from harness.proc import Proc, check, run, until

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

HERE, THERE = "10.79.0.1", "10.79.0.2"
SO_TIMESTAMPNS = 35
PAUSE_NS = 3_000_000

# Answers each datagram PAUSE_NS after its arrival; the test measures the pause.
RESPONDER = f"""
import select, socket, time
s = socket.socket(type=socket.SOCK_DGRAM)
s.bind(('', 7))
print('up', flush=True)
while True:
    data, peer = s.recvfrom(2000)
    came = time.time_ns()
    while time.time_ns() < came + {PAUSE_NS}:
        select.select([], [], [], 0.0005)
    s.sendto(data, peer)
"""
ASK = f"""
import socket, time
s = socket.socket(type=socket.SOCK_DGRAM)
s.connect(('{THERE}', 7))
for i in range(10):
    sent = time.time_ns()
    s.send(bytes([i]))
    s.recv(2000)
    print(sent, time.time_ns())
"""
SERVER = """
import socket
import struct
s = socket.create_server(('', 5001))
print('up', flush=True)
while True:
    c, _ = s.accept()
    c.recv(1)
    c.close()
"""
CONNECT = f"""
import socket, time
for i in range(10):
    sent = time.time_ns()
    s = socket.create_connection(('{THERE}', 5001))
    print(sent, time.time_ns())
    s.close()
"""


class Wire:
    def __init__(self, net):
        self.here = net.hub
        self.there, self.device = net.add_host(THERE)
        self.here.check(["ip", "addr", "add", f"{HERE}/24", "dev", self.device])

    def python(self, code):
        """Runs it on the first host; returns the printed pairs of numbers."""
        return [tuple(map(int, line.split()))
                for line in self.here.check([sys.executable, "-c", code]).splitlines()]


@pytest.fixture
def wire(net):
    return Wire(net)


def tshark(path, expression, *fields):
    args = [a for f in fields for a in ("-e", f)]
    out = check(["tshark", "-r", path, "-Y", expression, "-T", "fields", *args])
    return [line.split("\t") for line in out.splitlines()]


def count(path):
    try:
        return len(pcap.read(path))
    except (AssertionError, KeyError, OSError, struct.error):  # the file is being written
        return 0


def test_times_are_those_of_tcpdump(wire, host, record, closing, tmp_path):
    """With a socket that requests time stamps, the kernel takes them once for all sockets; not for
    TCP, which uses the field for pacing."""
    asking = closing(socket.socket(type=socket.SOCK_DGRAM))
    asking.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    it = host(wire.here, wire.device)
    file = tmp_path / "kernel.pcap"
    theirs = closing(wire.here.start(["tcpdump", "-U", "--time-stamp-precision=nano", "-i",
                                      wire.device, "-w", file, "icmp or tcp"]))
    theirs.expect("listening on")
    recorder = record(it, "-f", "icmp or tcp")
    server = closing(wire.there.start([sys.executable, "-c", SERVER]))
    server.expect("^up$")
    wire.here.check(["ping", "-q", "-c", "20", "-i", "0.01", THERE])
    wire.python(CONNECT)
    it.looked_after()
    recorder.finish()
    ours = recorder.file().packets
    pcapng.assert_in_order(recorder.file())
    until(lambda: count(file) >= len(ours), 10, "tcpdump has them")
    theirs.stop(signal.SIGINT)
    kernels = pcap.read(file)
    assert len(ours) >= 40 + 10 * 3
    # ICMP has sequence numbers, TCP has sequence numbers and time stamps.
    pairs = list(zip(sorted((p.data, p.ns) for p in ours), sorted((d, ns) for ns, d, _ in kernels)))
    assert len(ours) == len(kernels) and all(a[0] == b[0] for a, b in pairs)
    off = {tcp: [abs(a[1] - b[1]) for a, b in pairs if (a[0][23] == 6) == tcp] for tcp in (False, True)}
    assert off[False] == [0] * 40
    assert sorted(off[True])[len(off[True]) // 2] < 20_000


def test_round_trips(wire, host, record, closing):
    """The time of a request is after its sending, and that of its reply before its reception; the
    difference includes the pause of the other host."""
    it = host(wire.here, wire.device)
    recorder = record(it, "-f", "udp port 7")
    closing(wire.there.start([sys.executable, "-c", RESPONDER])).expect("^up$")
    brackets = wire.python(ASK)
    it.looked_after()
    recorder.finish()
    times = [p.ns for p in recorder.file().packets]
    assert len(times) == 20
    for (sent, answered), request, reply in zip(brackets, times[::2], times[1::2]):
        assert sent <= request and reply <= answered
        assert reply - request >= PAUSE_NS


def test_handshakes_and_pings_in_tshark(wire, host, record, closing):
    it = host(wire.here, wire.device)
    recorder = record(it, "-f", "tcp or icmp")
    closing(wire.there.start([sys.executable, "-c", SERVER])).expect("^up$")
    brackets = wire.python(CONNECT)
    wire.here.check(["ping", "-q", "-c", "10", "-i", "0.01", THERE])
    it.looked_after()
    recorder.finish()
    streams = {}
    for stream, ns in tshark(recorder.out, "tcp", "tcp.stream", "frame.time_epoch"):
        streams.setdefault(int(stream), []).append(int(ns.replace(".", "")))
    for i, (sent, connected) in enumerate(brackets):
        syn, syn_ack, ack = streams[i][:3]
        assert sent <= syn < syn_ack < ack <= connected
    rtts = tshark(recorder.out, "tcp.flags.syn == 1 && tcp.flags.ack == 1", "tcp.analysis.ack_rtt")
    assert len(rtts) == 10 and all(float(rtt) > 0 for rtt, in rtts)
    pings = tshark(recorder.out, "icmp.type == 0", "icmp.resptime")
    assert len(pings) == 10 and all(float(ms) > 0 for ms, in pings)


@pytest.mark.parametrize("args", [[], ["--queues", "2", "--cpus", "0,1"], ["--busy-poll"]],
                         ids=lambda a: " ".join(a) or "plain")
def test_in_order_across_interfaces(net, host, record, closing, args):
    """Two interfaces, polled by one thread or by several."""
    hosts = [net.add_host(f"10.8{i}.0.2") for i in range(2)]
    for i, (_space, device) in enumerate(hosts):
        net.hub.check(["ip", "addr", "add", f"10.8{i}.0.1/24", "dev", device])
    # Buffers for all packets of a recording: 1,500 pings take less time than a thread may wait for its CPU.
    it = host(net.hub, *(device for _space, device in hosts), args=[*args, "--buffer-size", "8M"])
    # If a thread has no CPU for longer than the merge waits, a packet is late: that must not happen
    # in every recording.
    late = []
    while not late or late[-1] >= 30:
        assert len(late) < 5, late
        late.append(late_packets(it, hosts, record, closing))


def late_packets(it, hosts, record, closing):
    """Records 1500 pings of each host, in order. Returns the number of replies with the time of
    their request, which shows that they were too late."""
    count = 2 * 2 * 1500
    recorder = record(it, "-f", "icmp", "-c", count)
    pings = [closing(space.start(["ping", "-q", "-f", "-c", 1500, "-w", 60, f"10.8{i}.0.1"]))
             for i, (space, _device) in enumerate(hosts)]
    assert [ping.wait(90) for ping in pings] == [0, 0]
    output = recorder.done()
    file = recorder.file()
    pcapng.assert_in_order(file)
    assert "out of time order" not in output
    assert len(file.packets) == count, output
    echoes = {}
    for p in file.packets:
        echoes.setdefault((p.interface, p.data[38:42]), []).append((p.ns, p.data[34]))
    assert all([kind for _ns, kind in seen] == [8, 0] for seen in echoes.values())
    return sum(seen[0][0] == seen[1][0] for seen in echoes.values())


def test_queues_whose_sockets_are_in_another_order(net, host, record, monkeypatch):
    """As where another thread of DPDK closes a descriptor between the sockets of two queues."""
    space, device = net.add_host("10.80.0.2")
    net.hub.check(["ip", "addr", "add", "10.80.0.1/24", "dev", device])
    monkeypatch.setenv("LD_PRELOAD", str(BUILD / "e2e" / "librt_descriptors.so"))
    it = host(net.hub, device, args=["--queues", "2"])
    monkeypatch.delenv("LD_PRELOAD")
    recorder = record(it, "-f", "icmp", "-c", 20)
    space.check(["ping", "-q", "-c", 10, "-i", "0.01", "10.80.0.1"])
    recorder.done(timeout=20)
    pcapng.assert_in_order(recorder.file())


def test_silent_interface_delays_no_other(net, host, record, closing):
    """A thread that receives nothing publishes that: packets of other threads are returned at
    once."""
    (space, device), (_other, silent) = [net.add_host(f"10.8{i}.0.2") for i in range(2)]
    net.hub.check(["ip", "addr", "add", "10.80.0.1/24", "dev", device])
    it = host(net.hub, device, silent, args=["--cpus", "0,1"])
    read = closing(Proc([RINGTAP, "run", "--", "tcpdump", "-l", "-n", "-c", "10", "-i",
                         f"ringtap:{it.prefix}", "icmp"]))
    read.expect("listening on", 30)
    took = []
    for _ in range(5):
        space.check(["ping", "-q", "-c", "1", "10.80.0.1"])
        sent = time.monotonic()
        read.expect("echo reply")
        took.append(time.monotonic() - sent)
    assert sorted(took)[2] < 0.4, took  # the merge ignores a stopped thread after 0.5 s, each time
    assert read.wait() == 0


def types_of(interface):
    """The types that tcpdump offers for -j."""
    done = run([RINGTAP, "run", "--", "tcpdump", "-J", "-i", interface])
    assert done.returncode == 0, done.stderr
    return {line.split()[0] for line in (done.stdout + done.stderr).splitlines()[1:]}


def takes(interface, kind):
    done = run([RINGTAP, "run", "--", "tcpdump", "-n", "-c", "1", "-w", "/dev/null", "-i", interface,
                "-j", kind], timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.smoke
def test_types_of_time_stamps_that_tcpdump_offers(wire, host, closing):
    it = host(wire.here, wire.device)
    interface = f"ringtap:{it.prefix}:{wire.device}"
    closing(wire.there.start(["ping", "-q", "-i", "0.05", HERE]))
    assert types_of(interface) == {"host"}
    takes(interface, "host")


def test_types_of_time_stamps_of_ports(testpmd, tmp_path):
    path = pcap.write(tmp_path / "p.pcap", [pcap.frame(64, i) for i in range(10)])
    pmd = testpmd(f"net_pcap0,rx_pcap={path},infinite_rx=1", "net_null0", args=["--no-flush-rx"])
    pmd.start()
    for ports, types in (("net_pcap0", {"host", "adapter"}), ("0", {"host", "adapter"}),
                         ("net_null0", {"host"}), ("net_pcap0+net_null0", {"host"}), ("", {"host"})):
        interface = f"ringtap:{pmd.prefix}:{ports}".rstrip(":")
        assert types_of(interface) == types
        for kind in types:
            takes(interface, kind)
