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
from harness.paths import RINGTAP
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
        return [tuple(map(int, line.split())) for line in self.here.check([sys.executable, "-c", code]).splitlines()]


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


def test_times_are_those_of_tcpdump_and_of_programs(wire, host, record, closing, tmp_path):
    """With a socket that requests time stamps, the kernel takes them once for all sockets; not for TCP, which uses the field
    for pacing. The time of a request is after its sending, and that of its reply before its reception."""
    asking = closing(socket.socket(type=socket.SOCK_DGRAM))
    asking.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    it = host(wire.here, wire.device)
    file = tmp_path / "kernel.pcap"
    theirs = closing(
        wire.here.start(
            ["tcpdump", "-U", "--time-stamp-precision=nano", "-i", wire.device, "-w", file, "icmp or tcp or udp port 7"]
        )
    )
    theirs.expect("listening on")
    recorder = record(it, "-f", "icmp or tcp or udp port 7")
    for program in (SERVER, RESPONDER):
        closing(wire.there.start([sys.executable, "-c", program])).expect("^up$")
    wire.here.check(["ping", "-q", "-c", "20", "-i", "0.01", THERE])
    connected, asked = wire.python(CONNECT), wire.python(ASK)
    it.looked_after()
    recorder.finish()
    ours = recorder.file().packets
    pcapng.assert_in_order(recorder.file())
    until(lambda: count(file) >= len(ours), what="tcpdump has them")
    theirs.stop(signal.SIGINT)
    kernels = pcap.read(file)
    assert len(ours) >= 40 + 20 + 10 * 3
    # ICMP has sequence numbers, TCP has sequence numbers and time stamps, UDP has a number.
    pairs = list(zip(sorted((p.data, p.ns) for p in ours), sorted((d, ns) for ns, d, _ in kernels)))
    assert len(ours) == len(kernels) and all(a[0] == b[0] for a, b in pairs)
    off = {tcp: [abs(a[1] - b[1]) for a, b in pairs if (a[0][23] == 6) == tcp] for tcp in (False, True)}
    assert off[False] == [0] * 60
    assert sorted(off[True])[len(off[True]) // 2] < 20_000
    assert_round_trips(asked, [p.ns for p in ours if p.data[23] == socket.IPPROTO_UDP])
    assert_handshakes_and_pings(connected, recorder.out)


def assert_round_trips(brackets, times):
    """The difference includes the pause of the other host."""
    assert len(times) == 20
    for (sent, answered), request, reply in zip(brackets, times[::2], times[1::2]):
        assert sent <= request and reply <= answered
        assert reply - request >= PAUSE_NS


def assert_handshakes_and_pings(brackets, path):
    """As tshark computes them."""
    streams = {}
    for stream, ns in tshark(path, "tcp", "tcp.stream", "frame.time_epoch"):
        streams.setdefault(int(stream), []).append(int(ns.replace(".", "")))
    for i, (sent, connected) in enumerate(brackets):
        syn, syn_ack, ack = streams[i][:3]
        assert sent <= syn < syn_ack < ack <= connected
    rtts = tshark(path, "tcp.flags.syn == 1 && tcp.flags.ack == 1", "tcp.analysis.ack_rtt")
    assert len(rtts) == 10 and all(float(rtt) > 0 for (rtt,) in rtts)
    pings = tshark(path, "icmp.type == 0", "icmp.resptime")
    assert len(pings) == 20 and all(float(ms) > 0 for (ms,) in pings)


def test_every_packet_in_order_across_interfaces(net, host, record, closing):
    """Two interfaces, polled by one thread or by several."""
    hosts = [net.add_host(f"10.8{i}.0.2") for i in range(2)]
    for i, (_space, device) in enumerate(hosts):
        net.hub.check(["ip", "addr", "add", f"10.8{i}.0.1/24", "dev", device])
    for args in ([], ["--queues", "2", "--cpus", "0,1"], ["--busy-poll"]):
        # Buffers for all packets of a recording: 1,500 pings take less time than a thread may wait for its CPU.
        it = host(net.hub, *(device for _space, device in hosts), args=[*args, "--buffer", "8M"])
        # Some are late where a thread has no CPU for longer than the merge waits.
        assert late_packets(it, hosts, record, closing) < 1500, args
        it.finish()


def late_packets(it, hosts, record, closing):
    """Records 1500 pings of each host, in order. Returns the number of replies with the time of
    their request, which shows that they were too late."""
    count = 2 * 2 * 1500
    recorder = record(it, "-f", "icmp", "-c", count)
    pings = [
        closing(space.start(["ping", "-q", "-f", "-c", 1500, "-w", 60, f"10.8{i}.0.1"]))
        for i, (space, _device) in enumerate(hosts)
    ]
    assert [ping.wait() for ping in pings] == [0, 0]
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


def types_of(interface):
    """The types that tcpdump offers for -j."""
    done = run([RINGTAP, "run", "--", "tcpdump", "-J", "-i", interface])
    assert done.returncode == 0, done.stderr
    return {line.split()[0] for line in (done.stdout + done.stderr).splitlines()[1:]}


def takes(interface, kind):
    done = run([RINGTAP, "run", "--", "tcpdump", "-n", "-c", "1", "-w", "/dev/null", "-i", interface, "-j", kind])
    assert done.returncode == 0, done.stderr


def test_programs_of_libpcap_and_a_silent_interface(net, host, closing, tmp_path):
    """Packets have the host's time. A thread that receives nothing publishes that: packets of other threads are returned at
    once."""
    (space, device), (_other, silent) = [net.add_host(f"10.8{i}.0.2") for i in range(2)]
    net.hub.check(["ip", "addr", "add", "10.80.0.1/24", "dev", device])
    it = host(net.hub, device, silent, args=["--cpus", "0,1"])
    interface = f"ringtap:{it.prefix}:{device}"
    assert types_of(interface) == {"host"}
    out = tmp_path / "out.pcap"
    tcpdump = closing(Proc([RINGTAP, "run", "--", "tcpdump", "-U", "-i", interface, "-j", "host", "-w", out, "icmp"]))
    tcpdump.expect("listening on")
    read = closing(
        Proc([RINGTAP, "run", "--", "tcpdump", "-l", "-n", "-c", "10", "-i", f"ringtap:{it.prefix}", "icmp"])
    )
    read.expect("listening on")
    took = []
    for _ in range(5):
        space.check(["ping", "-q", "-c", "1", "10.80.0.1"])
        sent = time.monotonic()
        read.expect("echo reply")
        took.append(time.monotonic() - sent)
    assert sorted(took)[2] < 0.4, took  # the merge ignores a stopped thread after 0.5 s, each time
    assert read.wait() == 0
    until(lambda: count(out) == 10, what="5 requests and replies")
    assert tcpdump.stop(signal.SIGINT) == 0
    assert [frame[34] for _ns, frame, _ in pcap.read(out)] == [8, 0] * 5


def test_types_of_time_stamps_of_ports(testpmd, tmp_path):
    path = pcap.write(tmp_path / "p.pcap", [pcap.frame(64, i) for i in range(10)])
    pmd = testpmd(f"net_pcap0,rx_pcap={path},infinite_rx=1", "net_null0", args=["--no-flush-rx"])
    pmd.start()
    for ports, types in (
        ("net_pcap0", {"host", "adapter"}),
        ("0", {"host", "adapter"}),
        ("net_null0", {"host"}),
        ("net_pcap0+net_null0", {"host"}),
        ("", {"host"}),
    ):
        assert types_of(f"ringtap:{pmd.prefix}:{ports}".rstrip(":")) == types
    for ports, kind in (("net_pcap0", "host"), ("net_pcap0", "adapter"), ("net_pcap0+net_null0", "host")):
        takes(f"ringtap:{pmd.prefix}:{ports}", kind)
