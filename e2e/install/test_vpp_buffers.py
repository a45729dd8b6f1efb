# SPDX-License-Identifier: BSD-3-Clause
"""Packets that VPP, built by hand, puts together of several buffers, or sends several times: see test_vpp.py."""

import signal
import sys

import pytest
from harness import pcapng
from harness.attach import attach
from harness.known import Measuring
from harness.proc import run, until
from harness.vpp import BUILDS, KINDS, TAPS, Kernel, Vpp, routed

SENT = 200
# Numbers, each of this size, to an address.
SEND = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for n in range(int(sys.argv[1])):
    s.sendto(n.to_bytes(int(sys.argv[3]), "big"), (sys.argv[2], 9))
"""
# A closed port would answer, through VPP.
SINK = "import socket; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('', 9))\nwhile True: s.recv(9000)"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build")]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["-".join(map(str, kind)) for kind in KINDS])


def send(host, address, size):
    host.check([sys.executable, "-c", SEND, str(SENT), address, str(size)])


def fates(drops):
    report = drops.json(signal.SIGINT)
    return {fate: report[fate] for fate in ("received", "offered", "not_offered", "open", "unknown")}


@kinds
@pytest.mark.parametrize("size", (50, 1000))  # VPP copies small packets, and sends larger ones' buffers several times
def test_flooded(kind, size, net, record, closing, tmp_path):
    """A bridge sends each packet to two ports: one received packet that is offered, and the bytes are the kernel's."""
    vpp, (a, b, c) = routed(net, closing, kind, count=3)
    for name in vpp.names:
        vpp.ctl(f"set interface l2 bridge {name} 1")
    kernels = [closing(Kernel(vpp.namespace, "to1", SENT, tmp_path / "0.pcap"))]
    kernels += [closing(Kernel(h, "eth0", SENT, tmp_path / f"{i}.pcap")) for i, h in enumerate((b, c), 1)]
    recorder = record(vpp, "-f", "udp")
    drops = closing(Measuring("drops", vpp, "--once", "--duration", "1h", "--json", "-f", "udp", "--buffer", "16M"))
    send(a, "10.99.1.255", size)
    for kernel in kernels:
        assert kernel.proc.wait() == 0
    assert fates(drops) == {"received": SENT, "offered": SENT, "not_offered": 0, "open": 0, "unknown": 0}
    recorder.finish()
    for port, kernel in enumerate(kernels):
        kernel.assert_recorded(recorder.file(), f"net_af_packet{port}", pcapng.TX if port else pcapng.RX)


@kinds
def test_reassembled(kind, net, record, closing, tmp_path):
    """VPP copies the second fragment to the first one's buffer, which it resets: that one is unknown, not dropped."""
    vpp, (a, b) = routed(net, closing, kind, frame=3072)
    # The driver has the kernel put IPv4's fragments together, and has set the device's MTU to its own.
    vpp.namespace.check(["ip", "link", "set", "to2", "mtu", "9000"])
    b.check(["ip", "link", "set", "eth0", "mtu", "9000"])
    a.check(["ip", "link", "set", "eth0", "mtu", "1400"])
    for i, (host, name) in enumerate(zip((a, b), vpp.names), 1):
        host.check(["sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"])
        host.check(["ip", "addr", "add", f"fd00:{i}::1/64", "dev", "eth0", "nodad"])
        host.check(["ip", "route", "add", "default", "via", f"fd00:{i}::254"])
        vpp.ctl(f"set interface ip address {name} fd00:{i}::254/64")
    vpp.ctl(f"set interface reassembly {vpp.names[0]} on")
    vpp.ctl(f"set interface mtu packet 9000 {vpp.names[1]}")
    until(lambda: run([*a.prefix, "ping", "-q", "-c", "1", "-W", "1", "fd00:2::1"]).returncode == 0, what="an answer")
    closing(b.start([sys.executable, "-c", SINK]))
    received = closing(Kernel(vpp.namespace, "to1", 2 * SENT, tmp_path / "received.pcap"))
    sent = closing(Kernel(b, "eth0", SENT, tmp_path / "sent.pcap"))
    recorder = record(vpp, "-f", "udp")
    drops = closing(Measuring("drops", vpp, "--once", "--duration", "1h", "--json", "-f", "udp", "--buffer", "16M"))
    send(a, "fd00:2::1", 2400)
    assert received.proc.wait() == sent.proc.wait() == 0
    found = fates(drops)
    others = found["received"] - 2 * SENT  # that IPv6 needs to find addresses
    assert found["unknown"] == SENT and 0 <= found["offered"] <= others < 20, found
    assert SENT <= found["not_offered"] + found["open"] <= SENT + others, found  # it frees without DPDK
    recorder.finish()
    received.assert_recorded(recorder.file(), "net_af_packet0", pcapng.RX, in_order=kind[1] < 2)
    sent.assert_recorded(recorder.file(), "net_af_packet1", pcapng.TX, in_order=kind[1] < 2)


# Frames of these lengths in turn, numbered, to a device.
FRAMES = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for n in range(int(sys.argv[2])):
    length = int(sys.argv[3:][n % len(sys.argv[3:])])
    s.send((bytes.fromhex("02000000000202000000000188b5") + b"".join(n.to_bytes(4, "big") for _ in range(length // 4)))[:length])
"""
LENGTHS = (60, 2048, 2049, 4096, 4097, 9014)  # a buffer has 2048 bytes
NUMBERED = "ether proto 0x88b5"


def pass_through(net, tmp_path, closing):
    """Once a short frame has come through, VPP has handled those before it. One behind a long frame, which the driver
    refuses, may be dropped with it."""
    last = closing(Kernel(net.hub, "second", 1, tmp_path / "last.pcap", "ether proto 0x88b6"))
    short = [sys.executable, "-c", FRAMES.replace("88b5", "88b6"), "first", "1", "60"]
    until(lambda: net.hub.check(short) is not None and not last.proc.alive(), what="a short frame")


@pytest.mark.parametrize("kind", TAPS, ids=["-".join(map(str, kind)) for kind in TAPS])
def test_received_in_several_buffers(kind, net, record, closing, tmp_path):
    """Long frames are chains of VPP's buffers, received from one device of the kernel and sent to another. DPDK 22.11's
    net_tap refuses a larger MTU: it receives them, and sends none."""
    longer = kind[0] == "newest"
    taps = ("net_tap0,iface=first", "net_tap1,iface=second")
    vpp = closing(Vpp(net.hub, {}, *kind, vdevs=taps, dev=f"num-tx-queues {max(kind[1], 1)}"))
    attach(vpp.pid)
    for device, name, other in zip(("first", "second"), vpp.names, reversed(vpp.names)):
        net.hub.check(["ip", "link", "set", device, "mtu", "9000", "up"])
        if longer:
            vpp.ctl(f"set interface mtu 9000 {name}")
        vpp.ctl(f"set interface l2 xconnect {name} {other}")
        vpp.ctl(f"set interface state {name} up")
    received = closing(Kernel(net.hub, "first", SENT, tmp_path / "received.pcap", NUMBERED, "out"))
    sent = closing(Kernel(net.hub, "second", SENT, tmp_path / "sent.pcap", NUMBERED))
    recorder = record(vpp, "-f", NUMBERED)
    drops = closing(Measuring("drops", vpp, "--once", "--duration", "1h", "--json", "-f", NUMBERED, "--buffer", "16M"))
    net.hub.check([sys.executable, "-c", FRAMES, "first", str(SENT), *map(str, LENGTHS)])
    assert received.proc.wait() == 0
    if longer:
        assert sent.proc.wait() == 0
    else:
        pass_through(net, tmp_path, closing)
    found = fates(drops)
    offered = found["offered"]  # what the driver refuses VPP offers again, and it counts again
    assert offered == SENT or (offered > SENT and not longer), found
    assert found == {"received": offered, "offered": offered, "not_offered": 0, "open": 0, "unknown": 0}
    recorder.finish()
    received.assert_recorded(recorder.file(), "net_tap0", pcapng.RX)
    if longer:
        sent.assert_recorded(recorder.file(), "net_tap1", pcapng.TX)
    assert {len(p.data) for p in recorder.file().packets} == set(LENGTHS)
