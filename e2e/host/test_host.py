# SPDX-License-Identifier: BSD-3-Clause
"""Capturing on kernel interfaces: by packet sockets, which keep the host's network working, and by
AF_XDP."""

import collections
import json
import signal
import socket
import struct
import sys

import pytest
from harness import pcap, pcapng
from harness.documents import only
from harness.host import PROGRAM, start_refused
from harness.paths import RINGTAP
from harness.proc import check, freeze, run, until
from harness.ringtap import FAILED, listing, packets_of
from harness.sandbox import public

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

HERE, THERE = "10.77.0.1", "10.77.0.2"
SENDER = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for i in range(int(sys.argv[2])):
    s.send(bytes.fromhex("ffffffffffff020000000009") + b"\\x88\\xb5" + i.to_bytes(4, "big") + bytes(46))
"""


class Wire:
    """Two hosts; the capture is on the interface of the first."""

    def __init__(self, net):
        self.here = net.hub
        self.there, self.device = net.add_host(THERE)
        self.here.check(["ip", "addr", "add", f"{HERE}/24", "dev", self.device])

    def ping(self, count=3, patience=1):
        """Number of replies that the other host receives, up to count, within the time limit."""
        done = run([*self.there.prefix, "ping", "-q", "-c", count, "-i", "0.01", "-w", patience, HERE])
        return int(done.stdout.split(" received")[0].split()[-1])

    def blast(self, count):
        """Sends frames with sequence numbers from the other host."""
        self.there.check([sys.executable, "-c", SENDER, "eth0", str(count)])

    def transfer(self, size):
        """Sends this number of bytes by TCP to the other host; returns the received ones."""
        code = (
            "import socket, sys; s = socket.create_server(('', 5001)); print('up', flush=True); "
            "c, _ = s.accept(); n = 0\nwhile True:\n d = c.recv(65536); n += len(d)\n "
            "if not d: print(n); break"
        )
        server = self.there.start([sys.executable, "-c", code])
        try:
            server.expect("^up$")
            self.here.check(
                [
                    sys.executable,
                    "-c",
                    f"import socket; s = socket.create_connection(('{THERE}', 5001)); s.sendall(bytes({size}))",
                ]
            )
            assert server.wait() == 0
            return int(server.output.split()[-1])
        finally:
            server.close()

    def mac(self):
        found = json.loads(self.here.check(["ip", "-j", "link", "show", self.device]))
        return bytes.fromhex(found[0]["address"].replace(":", ""))

    def details(self):
        return self.here.check(["ip", "-d", "link", "show", self.device])


@pytest.fixture
def wire(net):
    return Wire(net)


def huge_pages():
    """Whether huge pages are available to EAL."""
    with open("/proc/meminfo", encoding="ascii") as f:
        free = int(f.read().split("HugePages_Free:")[1].split()[0])
    with open("/proc/mounts", encoding="ascii") as f:
        return free > 128 and any(line.split()[2] == "hugetlbfs" for line in f)


def frames_so_far(path):
    """Frames in a file that is being written."""
    try:
        return pcap.frames(path)
    except (AssertionError, KeyError, struct.error):
        return []


def numbers(file):
    """Sequence numbers of Wire.blast()."""
    return [int.from_bytes(p.data[14:18], "big") for p in file.packets if p.data[12:14] == b"\x88\xb5"]


def test_both_directions_with_a_working_network(wire, host, record, closing, tmp_path):
    """The same packets as tcpdump on the same interface; ping and TCP work meanwhile. With TSO the kernel passes packets of
    up to 64 KiB, which are captured completely."""
    for space, device in ((wire.here, wire.device), (wire.there, "eth0")):
        space.check(["ethtool", "-K", device, "tx", "on", "tso", "on", "gso", "on"])
    it = host(wire.here, wire.device)
    (entry,) = [a for a in listing() if a["name"] == it.prefix]
    assert [(p["name"], p["driver"]) for p in entry["ports"]] == [(wire.device, "af_packet")]
    theirs = closing(wire.here.start(["tcpdump", "-U", "-B", "16384", "-i", wire.device, "-w", tmp_path / "t.pcap"]))
    theirs.expect("listening on")
    recorder = record(it)
    assert wire.ping(5, patience=20) == 5
    assert wire.transfer(2_000_000) == 2_000_000
    it.looked_after()
    recorder.finish()
    packets = recorder.file().packets
    ours = [p.data for p in packets]
    until(lambda: len(frames_so_far(tmp_path / "t.pcap")) >= len(ours), what="tcpdump has them")
    theirs.stop(signal.SIGINT)
    # Two sockets may receive simultaneous packets of two CPUs in different order.
    assert collections.Counter(ours) == collections.Counter(pcap.frames(tmp_path / "t.pcap"))
    own = wire.mac()
    directions = {(p.direction, p.data[6:12] == own) for p in packets}
    assert directions == {(pcapng.RX, False), (pcapng.TX, True)}
    stream = [d for d in ours if d[6:12] == own and d[12:14] == b"\x08\x00" and d[23] == socket.IPPROTO_TCP]
    payload = sum(int.from_bytes(d[16:18], "big") - 20 - (d[46] >> 4) * 4 for d in stream)
    assert payload >= 2_000_000
    assert all(len(d) == 14 + int.from_bytes(d[16:18], "big") for d in stream)
    assert max(map(len, stream)) > 10_000
    it.finish()
    assert not it.run_dir.exists()
    assert "promiscuity 0" in wire.details()


def test_losses_of_the_kernel_are_counted(wire, host, record):
    """While the process is stopped, the buffer of the kernel overflows: lost packets are
    counted."""
    it = host(wire.here, wire.device, args=["--buffer", "64K"])
    recorder = record(it, "--json", "-f", "ether proto 0x88b5")
    freeze(it.proc.pid)
    wire.blast(3000)
    it.proc.send_signal(signal.SIGCONT)
    it.looked_after()
    output = recorder.finish()
    summary = json.loads(output[output.index("{\n") : output.rindex("}") + 1])
    (interface,) = only(summary)["interfaces"]
    assert interface["nic"]["missed"] > 2000
    assert interface["nic"]["missed"] + len(numbers(recorder.file())) == 3000
    assert pcapng.stat(recorder.file().interfaces[0], 5) == interface["nic"]["missed"]


def test_several_interfaces_and_the_loopback(net, host, record):
    """Packets of the loopback are captured once, when they are received, as by tcpdump. An idle capture sleeps: a spinning thread has almost no voluntary context
    switches."""
    hosts = [net.add_host(f"10.78.{i}.2") for i in range(2)]
    it = host(net.hub, "lo", *(device for _space, device in hosts))
    before = sum(it.slept().values())
    until(lambda: sum(it.slept().values()) > before + 1000, what="a thousand naps")
    recorder = record(it, "-f", "udp port 9 or ether proto 0x88b5")
    for (space, _device), count in zip(hosts, (10, 20)):
        space.check([sys.executable, "-c", SENDER, "eth0", str(count)])
    net.hub.check(
        [
            sys.executable,
            "-c",
            "import socket; s = socket.socket(type=socket.SOCK_DGRAM); "
            "[s.sendto(bytes([i]), ('127.0.0.1', 9)) for i in range(10)]",
        ]
    )
    it.looked_after()
    recorder.finish()
    file = recorder.file()
    got = collections.Counter(file.interfaces[p.interface].name for p in file.packets)
    assert got == {"lo": 10, hosts[0][1]: 10, hosts[1][1]: 20}
    assert [p.data[42] for p in packets_of(file, "lo")] == list(range(10))
    assert {p.direction for p in packets_of(file, "lo")} == {pcapng.RX}


XDP_SOCKET = """
import ctypes, mmap, socket, sys
AF_XDP, SOL_XDP, UMEM_REG, RX_RING, FILL, COMPLETION, COPY = 44, 283, 4, 2, 5, 6, 2
s = socket.socket(AF_XDP, socket.SOCK_RAW)
libc = ctypes.CDLL(None, use_errno=True)
area = mmap.mmap(-1, 64 * 4096)
umem = (ctypes.c_uint64 * 4)(ctypes.addressof(ctypes.c_char.from_buffer(area)), 64 * 4096, 4096, 0)
s.setsockopt(SOL_XDP, UMEM_REG, bytes(umem))
for ring in (FILL, COMPLETION, RX_RING):
    s.setsockopt(SOL_XDP, ring, 64)
address = (ctypes.c_uint16 * 8)(AF_XDP, COPY, socket.if_nametoindex(sys.argv[1]) & 0xffff,
                                socket.if_nametoindex(sys.argv[1]) >> 16)
sys.exit(libc.bind(s.fileno(), address, 16) and f"bind: error {ctypes.get_errno()}")
"""


@pytest.fixture
def xdp(wire, host):
    """AF_XDP if the kernel supports it, which is tested without ringtap."""
    done = run([*wire.here.prefix, sys.executable, "-c", XDP_SOCKET, wire.device])
    if done.returncode:
        pytest.skip(f"no AF_XDP here: {done.stderr.strip().splitlines()[-1]}")
    return host(wire.here, wire.device, args=["--driver", "af_xdp"])


def test_af_xdp(wire, xdp, host, record):
    """It captures what is received, which the host has again when the program was killed, and when it has ended."""
    assert f"{wire.device}: what is received is captured and kept from the host" in xdp.proc.output
    recorder = record(xdp)
    assert wire.ping() == 0
    wire.blast(2000)
    xdp.looked_after()
    recorder.finish()
    assert numbers(recorder.file()) == list(range(2000))
    xdp.proc.kill()
    until(lambda: wire.ping() == 3, what="the host answers")
    assert "promiscuity 0" in wire.details()
    again = host(wire.here, wire.device, args=["--driver", "af_xdp"])
    recorder = record(again)
    wire.blast(10)
    again.looked_after()
    recorder.finish()
    assert numbers(recorder.file()) == list(range(10))
    again.finish()
    assert "xdp" not in wire.details() and "promiscuity 0" in wire.details()
    until(lambda: wire.ping() == 3, what="the host answers")


@pytest.mark.smoke
def test_name_in_use_until_it_is_killed(wire, host):
    it = host(wire.here, wire.device)
    status, output = start_refused(wire.here, "--name", it.prefix, wire.device)
    assert status == FAILED and it.prefix in output and len(output.strip().splitlines()) == 1
    it.proc.kill()
    assert "promiscuity 0" in wire.details()
    assert it.prefix not in check([RINGTAP, "list"])
    proc = wire.here.start([RINGTAP, "host", "--name", it.prefix, wire.device])
    try:
        proc.expect("Ctrl-C ends it$")
        proc.send_signal(signal.SIGTERM)
        assert proc.wait() == 0
    finally:
        proc.close()


def test_duration(wire, host):
    """It ends by itself, and removes its folder."""
    it = host(wire.here, wire.device, args=("--duration", "2s"))
    assert it.proc.wait() == 0 and not it.run_dir.exists()


def test_interface_is_renamed_and_removed(wire, host, record):
    """The interface stays the same; another one with its old name is not captured."""
    it = host(wire.here, wire.device)
    recorder = record(it)
    for command in (
        ["set", wire.device, "down"],
        ["set", wire.device, "name", "renamed0"],
        ["set", "renamed0", "up"],
        ["add", wire.device, "type", "veth", "peer", "other0"],
    ):
        wire.here.check(["ip", "link", *command])
    it.looked_after()
    wire.blast(10)
    it.looked_after()
    recorder.finish()
    assert numbers(recorder.file()) == list(range(10))
    wire.here.check(["ip", "link", "del", "renamed0"])
    assert it.proc.wait() == FAILED
    assert f"{wire.device}: the interface has gone" in it.proc.output


NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def test_what_the_kernel_or_dpdk_refuses(net):
    """In one line; cli/host/host_test.c has the options."""
    for args, how, words in (
        (["no-such-if0"], {}, "no-such-if0: no such interface"),
        (["--huge-pages", "--dpdk-memory", "64G", "lo"], {}, "--huge-pages: "),
        (["--dpdk-memory", "16M", "lo"], {}, "memory"),
        (["lo"], {"prefix": NOBODY, "program": public(RINGTAP)}, "root"),
    ):
        status, output = start_refused(net.hub, *args, **how)
        assert status == FAILED and words in output, output
        assert len(output.strip().splitlines()) == 1, output


def test_host_program_is_not_in_path(installation):
    """Only `ringtap host` starts it, so it is not in PATH."""
    (found,) = installation.rglob("ringtap-host")
    assert found.parent.name == "ringtap"
    assert "ringtap host" in next(installation.rglob("ringtap-host.1")).read_text()


@pytest.mark.nightly
def test_huge_pages(wire, host, record):
    """With huge pages, if EAL finds any."""
    args = ["--huge-pages", wire.device]
    status, output = start_refused(wire.here, *args) if not huge_pages() else (None, "")
    if status is not None:
        pytest.skip(output.strip())
    it = host(wire.here, wire.device, args=["--huge-pages"])
    recorder = record(it)
    wire.blast(10)
    it.looked_after()
    recorder.finish()
    assert numbers(recorder.file()) == list(range(10))
