# SPDX-License-Identifier: BSD-3-Clause
"""Two guests of an unmodified Open vSwitch, between a NIC's receptions and its sendings."""

import re
from pathlib import Path

from . import pcapng
from .ovs import VSWITCHD, Guest
from .proc import check, until
from .ringtap import frames_of

# Sends the frames of a file, a few at a time, and waits until as many have come back.
FEW = 8
EXCHANGE = f"""
FEW = {FEW}
import socket, sys
sys.path.insert(0, sys.argv[1])
from harness import pcap
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 0))
print("ready", flush=True)
frames = pcap.frames(sys.argv[2])
rounds = int(sys.argv[3])
for i in range(rounds):
    for k in range(0, len(frames), FEW):
        some = frames[k : k + FEW]
        for f in some:
            s.send(f)
        back = 0
        while back < len(some):
            back += s.recvfrom(65536)[1][2] != socket.PACKET_OUTGOING
print("all came back", flush=True)
"""
# Sends the frames of a file once, or again and again; none needs to come back.
SEND = """
import itertools, socket, sys, time
sys.path.insert(0, sys.argv[1])
from harness import pcap
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
frames = pcap.frames(sys.argv[2])
for i, frame in enumerate(itertools.cycle(frames) if sys.argv[3:] else frames):
    s.send(frame)
    if i % 32 == 0:
        time.sleep(0.001)  # 20,000 packets/s at most: readers need the CPU, too
"""
E2E = Path(__file__).parents[1]
NIC, GUESTS = "p0", ("vm0", "vm1")
# Where a packet passes, in this order.
WAY = [
    ("p0", pcapng.RX),
    ("vm0", pcapng.TX),
    ("vm0", pcapng.RX),
    ("vm1", pcapng.TX),
    ("vm1", pcapng.RX),
    ("p0", pcapng.TX),
]


class Site:
    """NIC to vm0 to vm1 to NIC. switch, guest: arguments of Ovs and Guest."""

    def __init__(self, ovs, net, closing, switch=None, guest=None, guests=GUESTS):
        self.closing, self.guest = closing, guest or {}
        self.host, device = net.add_host("10.99.0.1")
        self.ovs = ovs(**(switch or {}))
        self.device = self.ovs.add_port(NIC, device)
        self.paths = {name: self.ovs.add_vhost(name) for name in guests}
        self.ovs.pass_on(NIC, *guests)
        self.guests = {}
        for name in guests:
            self.start_guest(name)

    def start_guest(self, name, **kwargs):
        self.paths[name].unlink(missing_ok=True)  # a killed guest leaves it
        self.guests[name] = self.closing(Guest(self.paths[name], **(kwargs or self.guest)))
        until(lambda: self.ovs.is_connected(name), what=f"{name} connected")

    def exchange(self, file, rounds=1):
        return self.host.start(["/usr/bin/python3", "-c", EXCHANGE, E2E, file, rounds])

    def exchange_all(self, file, rounds=1):
        sender = self.exchange(file, rounds)
        sender.expect("all came back")
        assert sender.wait() == 0


def record_whole(site, record, frames):
    """Records what is exchanged with the guests: all of it, as the switch counted it, in the order of time. Returns the
    file."""
    sent, path = frames
    recorder = record(site.ovs)
    site.exchange_all(path)
    recorder.finish()
    file = recorder.file()
    pcapng.assert_in_order(file)
    assert_frames(file, sent)
    for name in GUESTS:
        assert site.ovs.statistic(name, "rx pkts") == site.ovs.statistic(name, "tx pkts") == len(sent)
    assert not any(pcapng.stat(i, pcapng.LOST) for i in file.interfaces)
    return file


def is_changed(f):
    """By net_af_packet: it waits for the other fragments, and OVS ignores where it puts tags."""
    return f[12:14] in (b"\x81\x00", b"\x88\xa8") or (
        f[12:14] == b"\x08\x00" and int.from_bytes(f[20:22], "big") & 0x3FFF
    )


def assert_frames(file, sent):
    """At every point. The switch sends the packets of a burst by flows: their order changes, but not from a port to its
    guest and back."""
    for name, direction in WAY:
        got = frames_of(file, name, direction)
        assert len(got) == len(sent), (name, direction)
        for k in range(0, len(sent), FEW):
            assert sorted(got[k : k + FEW]) == sorted(sent[k : k + FEW]), (name, direction, k)
    assert frames_of(file, NIC, pcapng.RX) == sent
    for name in GUESTS:
        assert frames_of(file, name, pcapng.TX) == frames_of(file, name, pcapng.RX)


class Slots:
    """The dynamic loader's slots of the switch's calls, and the protections of its memory."""

    def __init__(self, pid):
        self.pid = pid
        lines = check(["readelf", "-rW", VSWITCHD]).splitlines()
        found = [re.match(r"([0-9a-f]{16}) .* rte_vhost_(\w+)@", line) for line in lines]
        self._slots = {m[2]: int(m[1], 16) for m in found if m}
        assert {"dequeue_burst", "enqueue_burst", "get_ifname", "driver_unregister"} <= self._slots.keys()

    def maps(self):
        """Mappings of the switch's own objects: others come and go."""
        return [
            line
            for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines()
            if "vswitchd" in line or "vhost" in line
        ]

    def values(self):
        base = int(self.maps()[0].split("-")[0], 16)
        with open(f"/proc/{self.pid}/mem", "rb") as mem:
            return {name: (mem.seek(base + at), mem.read(8))[1] for name, at in self._slots.items()}
