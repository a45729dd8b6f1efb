# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap host` records what tcpdump records on the same interface: the corpus, fragments, tags, lengths and link types."""

import collections
import signal
import socket
import struct
import sys

import pytest
from harness import pcap, pcapng
from harness.cases import nightly
from harness.host import PROGRAM
from harness.paths import RINGTAP
from harness.proc import run, until

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

HERE, THERE = "10.83.0.1", "10.83.0.2"
SO_TIMESTAMPNS = 35
ETHERNET, RAW, SLL, SLL2 = 1, 101, 113, 276
# Where the kernel merges packets, the buffer has room for hundreds only.
SMALL = ["--frame-size", "1900"]

# Sends the frames of a file from an interface.
SENDER = """
import socket, struct, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
data, at = open(sys.argv[2], "rb").read(), 24
while at < len(data):
    n, = struct.unpack_from("<I", data, at + 8)
    s.send(data[at + 16:at + 16 + n])
    at += 16 + n
"""
# Makes a tun interface of an ARPHRD type, and sends the packets of a file through it after SIGUSR1.
TUN = """
import fcntl, os, signal, struct, subprocess, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
fd = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22s", b"tun0", 0x1001, b""))
fcntl.ioctl(fd, 0x400454cd, int(sys.argv[1]))
for command in ("ip addr add 10.84.0.1/24 dev tun0", "ip link set tun0 up"):
    subprocess.run(command.split(), check=True)
print("up", flush=True)
signal.sigwait([signal.SIGUSR1])
data, at = open(sys.argv[2], "rb").read(), 24
while at < len(data):
    n, = struct.unpack_from("<I", data, at + 8)
    os.write(fd, data[at + 16:at + 16 + n])
    at += 16 + n
print("sent", flush=True)
signal.sigwait([signal.SIGUSR1])
"""


def recorded(path):
    """Packets of a file that is being written."""
    return pcap.parse(path.read_bytes(), whole=False) if path.exists() else []


def linktype(path):
    return struct.unpack_from("<I", path.read_bytes(), 20)[0]


class Both:
    """tcpdump and ringtap record on one interface, with one filter. What ends is compared."""

    def __init__(self, space, device, expression, host, record, closing, folder, args):
        # With a socket that requests time stamps, the kernel takes them once for all.
        asking = closing(socket.socket(type=socket.SOCK_DGRAM))
        asking.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.path = folder / "theirs.pcap"
        self.host = host(space, device, args=args)
        self.theirs = closing(
            space.start(
                [
                    "tcpdump",
                    "-U",
                    "-B",
                    "65536",
                    "--time-stamp-precision=nano",
                    "-i",
                    device,
                    "-w",
                    self.path,
                    expression,
                ]
            )
        )
        self.theirs.expect("listening on")
        self.recorder = record(self.host, "-f", expression)

    def end(self):
        """(tcpdump's packets, our packets, our interface) when both have what was sent."""
        self.host.looked_after()
        self.recorder.finish()
        file = self.recorder.file()
        until(lambda: len(recorded(self.path)) >= len(file.packets), what="tcpdump has as many")
        self.theirs.stop(signal.SIGINT)
        assert file.interfaces[0].linktype == linktype(self.path)
        pcapng.assert_in_order(file)
        return pcap.read(self.path), file.packets, file.interfaces[0]


@pytest.fixture
def both(host, record, closing, tmp_path):
    def start(space, device, expression="", args=()):
        return Both(space, device, expression, host, record, closing, tmp_path, args)

    return start


@pytest.fixture(scope="module")
def frames(corpus_files):
    """All frames of Ethernet of the corpus, generated and captured."""
    found = []
    for path in corpus_files:
        found += [frame for frame in pcap.frames(path) if len(frame) >= 14]
    return found


def send(space, device, frames, path):
    pcap.write(path, frames)
    space.check([sys.executable, "-c", SENDER, device, path])


# No IPv4 or IPv6 of the hosts themselves: only the corpus.
@pytest.mark.parametrize(
    "mtu, args",
    [(1500, []), nightly(1500, ["--queues", "2", "--cpus", "0,1"]), (9000, ["--frame-size", "2K"])],
    ids=["usual", "queues", "cut"],
)
def test_corpus_as_by_tcpdump(net, both, frames, tmp_path, mtu, args):
    """The same packets, times, lengths, tags and order; sent packets are TX. With several queues, packets of one time may be
    in another order."""
    space, device = net.add_host(THERE, mtu=mtu)
    capture = both(net.hub, device, args=args)
    some = [frame for frame in frames if len(frame) <= mtu + 14]
    send(space, "eth0", some, tmp_path / "in.pcap")
    send(net.hub, device, some[::3], tmp_path / "out.pcap")
    theirs, ours, _interface = capture.end()
    assert len(ours) == len(theirs) >= len(some) + len(some[::3])
    order = sorted if "--queues" in args else list
    for (ns, data, length), p in zip(
        order(theirs), sorted(ours, key=lambda p: (p.ns, p.data)) if order is sorted else ours
    ):
        assert (p.ns, p.length) == (ns, length)
        assert p.data == data if mtu == 1500 else p.data == data[: len(p.data)] and len(p.data) >= min(length, 1966)
    assert (mtu == 9000) == any(len(p.data) < p.length for p in ours)
    assert collections.Counter(p.direction for p in ours)[pcapng.TX] >= len(some[::3])


def test_fragments_arrive_each(net, both, tmp_path):
    """Also those of a packet of which others never come, and with several queues."""
    space, device = net.add_host(THERE)
    net.hub.check(["ip", "addr", "add", f"{HERE}/24", "dev", device])
    for args in ([], ["--queues", "2"]):
        capture = both(net.hub, device, "icmp or ip[6:2] & 0x1fff != 0", args=args)
        space.check(["ping", "-q", "-c", "2", "-i", "0.01", "-s", "4000", HERE])
        until(lambda: len(recorded(capture.path)) >= 12, what="requests and replies of three fragments")
        fragments = [d for _ns, d, _length in recorded(capture.path)]
        send(space, "eth0", [next(d for d in fragments if d[20:22] == b"\x20\xb9")], tmp_path / "one.pcap")
        theirs, ours, _interface = capture.end()
        assert len(ours) == len(theirs) == 13
        assert sorted(d for _ns, d, _length in theirs) == sorted(p.data for p in ours)
        capture.host.finish()


@pytest.mark.parametrize("arphrd, link", [(65534, RAW), nightly(776, RAW), nightly(512, SLL), nightly(778, SLL)])
def test_interfaces_without_ethernet(net, both, closing, frames, tmp_path, arphrd, link):
    """tun, sit, PPP and GRE, made of a tun interface: link type, packets and filter are tcpdump's."""
    packets = [frame[14:] for frame in frames if frame[12:14] in (b"\x08\x00", b"\x86\xdd") and 40 < len(frame) <= 1514]
    tun = closing(net.hub.start([sys.executable, "-c", TUN, str(arphrd), pcap.write(tmp_path / "in.pcap", packets)]))
    tun.expect("^up$")
    capture = both(net.hub, "tun0", "udp or icmp", SMALL)
    tun.send_signal(signal.SIGUSR1)
    tun.expect("^sent$")
    run([*net.hub.prefix, "ping", "-q", "-c", "3", "-i", "0.01", "-W", "0.1", "10.84.0.2"])
    theirs, ours, interface = capture.end()
    assert interface.linktype == link
    assert sorted((p.ns, p.data, p.length) for p in ours) == sorted(theirs)
    assert len(ours) > 100
    assert collections.Counter(p.direction for p in ours)[pcapng.TX] == 3


def test_all_interfaces(net, both, frames, tmp_path):
    """'any' has LINUX_SLL2 headers, and a packet of the loopback once. Filters, also of libpcap's programs, match."""
    space, _device = net.add_host(THERE)
    capture = both(net.hub, "any", "udp or icmp", SMALL)
    send(space, "eth0", [frame for frame in frames if len(frame) <= 1514], tmp_path / "in.pcap")
    net.hub.check(["ping", "-q", "-c", "2", "-i", "0.01", "127.0.0.1"])
    theirs, ours, interface = capture.end()
    assert interface.linktype == SLL2
    assert sorted((p.ns, p.data, p.length) for p in ours) == sorted(theirs)
    assert len(ours) > 100


def test_programs_of_libpcap_get_the_link_type(net, host, closing, tmp_path):
    """tcpdump in `ringtap run`: its link type, its filter, and its refusal of two types in one handle."""
    tun = closing(net.hub.start([sys.executable, "-c", TUN, "65534", pcap.write(tmp_path / "in.pcap", [])]))
    tun.expect("^up$")
    it = host(net.hub, "tun0", "lo")
    path = tmp_path / "out.pcap"
    program = closing(
        net.hub.start(
            [RINGTAP, "run", "--", "tcpdump", "-U", "-c", "2", "-i", f"ringtap:{it.prefix}:tun0", "-w", path, "icmp"]
        )
    )
    program.expect("link-type RAW")
    run([*net.hub.prefix, "ping", "-q", "-c", "2", "-i", "0.01", "-W", "0.1", "10.84.0.2"])
    assert program.wait() == 0
    assert linktype(path) == RAW and [d[9] for d in pcap.frames(path)] == [1, 1]
    refused = run([*net.hub.prefix, RINGTAP, "run", "--", "tcpdump", "-i", f"ringtap:{it.prefix}"])
    assert refused.returncode == 1 and "name ports of one link type" in refused.stderr


def test_ports_of_two_link_types_in_one_recording(net, host, record, closing, tmp_path):
    """The filter means the same for both in pcapng; a pcap file is refused."""
    tun = closing(net.hub.start([sys.executable, "-c", TUN, "65534", pcap.write(tmp_path / "in.pcap", [])]))
    tun.expect("^up$")
    it = host(net.hub, "tun0", "lo")
    recorder = record(it, "-f", "icmp[0] = 8")
    run([*net.hub.prefix, "ping", "-q", "-c", "2", "-i", "0.01", "-W", "0.1", "10.84.0.2"])
    net.hub.check(["ping", "-q", "-c", "3", "-i", "0.01", "127.0.0.1"])
    it.looked_after()
    recorder.finish()
    file = recorder.file()
    assert {f.name: f.linktype for f in file.interfaces} == {"tun0": RAW, "lo": ETHERNET}
    got = collections.Counter(file.interfaces[p.interface].name for p in file.packets)
    assert got == {"tun0": 2, "lo": 3}
    done = run([RINGTAP, "record", "-i", f"{it.prefix}:", "-P", "-w", tmp_path / "no.pcap"])
    assert done.returncode == 2 and "a pcap file has one" in done.stderr
    recorder = record(it, "-P", "-c", "1", ports=["tun0"], out=tmp_path / "raw.pcap")
    run([*net.hub.prefix, "ping", "-q", "-c", "1", "-W", "0.1", "10.84.0.2"])
    recorder.done()
    assert linktype(tmp_path / "raw.pcap") == RAW
