# SPDX-License-Identifier: BSD-3-Clause
"""Recordings with packet ids, as `ringtap record --ids` writes them, of an application whose every deed is known.
Written from the specification of pcapng, independent of ringtap's writer and reader."""

import random
import struct
from dataclasses import dataclass, field

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw

RX, TX = 1, 2
START = 1_700_000_000_000_000_000


class Writer:
    """A pcapng file in memory. order: "<" or ">"."""

    def __init__(self, order="<"):
        self.order = order
        self.data = bytearray()
        self._block(0x0A0D0D0A, self._pack("IHHq", 0x1A2B3C4D, 1, 0, -1))

    def _pack(self, layout, *values):
        return struct.pack(self.order + layout, *values)

    def _block(self, kind, body):
        body += b"\0" * (-len(body) % 4)
        length = self._pack("I", len(body) + 12)
        self.data += self._pack("I", kind) + length + body + length

    def _options(self, options):
        out = b"".join(
            self._pack("HH", code, len(value)) + value + b"\0" * (-len(value) % 4) for code, value in options
        )
        return out + self._pack("HH", 0, 0) if options else b""

    def interface(self, name, app="app", tsresol=9, filter=None, tsoffset=0, description=None, link=1):
        if description is None:
            description = f"port 0 of DPDK application {app}, 0000:01:00.0"
        options = [(2, name.encode()), (3, description.encode()), (9, bytes([tsresol]))]
        options += [(11, b"\0" + filter.encode())] if filter else []
        options += [(14, self._pack("q", tsoffset))] if tsoffset else []
        self._block(1, self._pack("HHI", link, 0, 262144) + self._options(options))

    def packet(self, interface, ticks, data, direction=0, queue=None, id=None, length=None, dropped=0):
        options = [(2, self._pack("I", direction))] if direction else []
        options += [(6, self._pack("I", queue))] if queue is not None else []
        options += [(5, self._pack("Q", id))] if id else []
        options += [(4, self._pack("Q", dropped))] if dropped else []
        head = self._pack("IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), length or len(data))
        self._block(6, head + data + b"\0" * (-len(data) % 4) + self._options(options))

    def statistics(self, interface, received, lost, start=0):
        options = [(2, self._pack("II", 0, start)), (4, self._pack("Q", received)), (7, self._pack("Q", lost))]
        self._block(5, self._pack("III", interface, 0, 0) + self._options(options))

    def fates(self, kind, entries=(), ns=START):
        """kind 1: they begin; 2: (id, ns, interface, queue, fate[, reason]) of packets; 3: the end, with (interface, queue,
        received, offered, not offered, open, unknown, likely offered, lost) of queues; 4: (source, number, text) of
        reasons."""
        size = {1: 0, 2: 24, 3: 64, 4: 64}[kind]
        body = self._pack("HHIII", kind, size, len(entries), ns >> 32, ns & 0xFFFFFFFF)
        for e in entries:
            if kind == 2:
                body += self._pack("QIIIHBB", e[0], e[1] >> 32, e[1] & 0xFFFFFFFF, *e[2:], *[0] * (6 - len(e)))
            elif kind == 4:
                body += self._pack("BB62s", *e)
            else:
                body += self._pack("IHHQQQQQQQ", *e[:2], 0, *e[2:])
        self._block(0x80525446, body)

    def other(self, kind, body=b"1234"):
        """A block that readers skip."""
        self._block(kind, body)

    def write(self, path):
        path.write_bytes(self.data)
        return path


@dataclass
class Sending:
    ns: int
    port: int
    queue: int
    frame: bytes
    changes: set
    number: int = 0  # frame in the file


@dataclass
class Received:
    id: int
    ns: int
    port: int
    queue: int
    frame: bytes
    flow: int
    sendings: list = field(default_factory=list)
    number: int = 0
    reordered: bool = False


def _flow(rng, n):
    """A packet of one of the kinds that there are; its ports tell flows apart."""
    ether = Ether(dst="02:00:00:00:00:01", src=f"02:00:00:00:01:{n % 256:02x}")
    ports = {"sport": 1000 + n, "dport": rng.choice([53, 80, 5000])}
    kind = n % 6
    if kind == 0:
        return ether / IP(src=f"192.0.2.{n % 250 + 1}", dst="198.51.100.7", ttl=64) / UDP(**ports)
    if kind == 1:
        return ether / IP(src="192.0.2.1", dst=f"198.51.100.{n % 250 + 1}", ttl=9, tos=0x28) / TCP(**ports)
    if kind == 2:
        return ether / IPv6(src="2001:db8::1", dst=f"2001:db8::{n + 1:x}", hlim=64) / UDP(**ports)
    if kind == 3:
        return ether / Dot1Q(vlan=n % 4000 + 1) / IP(src="192.0.2.9", dst="198.51.100.9") / UDP(**ports)
    if kind == 4:
        return (
            ether / Dot1Q(vlan=7) / Dot1Q(vlan=n % 4000 + 1) / IPv6(src="2001:db8::2", dst="2001:db8::3") / TCP(**ports)
        )
    return ether / ARP(psrc="192.0.2.1", pdst=f"192.0.2.{n % 250 + 1}")


def _rewritten(rng, packet):
    """Actions of applications on packets, and the differences in the trace."""
    p, changes = packet.copy(), set()
    ip = p.getlayer(IP) or p.getlayer(IPv6)
    if rng.random() < 0.7:
        p.src, p.dst = "02:00:00:00:00:01", "02:00:00:00:00:02"
        changes |= {"src_mac", "dst_mac"}
    if ip and rng.random() < 0.7:
        name = "ttl" if IP in p else "hlim"
        setattr(ip, name, getattr(ip, name) - 1)
        changes.add("ttl")
    if ip and rng.random() < 0.3:
        ip.src = "203.0.113.5" if IP in p else "2001:db8:ffff::5"
        ip.payload.sport = rng.randrange(20000, 30000)
        changes |= {"src_address", "src_port"}
    if ip and rng.random() < 0.2:
        ip.dst = "203.0.113.6" if IP in p else "2001:db8:ffff::6"
        ip.payload.dport = 8080
        changes |= {"dst_address", "dst_port"}
    if ip and rng.random() < 0.1:
        tos = "tos" if IP in p else "tc"
        setattr(ip, tos, getattr(ip, tos) ^ 0xB8)
        changes.add("dscp")
    if ip and rng.random() < 0.1:
        tos = "tos" if IP in p else "tc"
        setattr(ip, tos, getattr(ip, tos) ^ 1)
        changes.add("ecn")
    what = rng.random()
    if what < 0.1:
        rest = p.payload.copy()
        p.remove_payload()
        p.type = 0x8100
        p = p / Dot1Q(vlan=99, type=packet.type) / rest
        changes |= {"vlan_added", "length"}
    elif what < 0.2 and Dot1Q in p:
        rest = p[Dot1Q].payload.copy()
        p.remove_payload()
        p = p / rest
        p.type = {ARP: 0x806, IP: 0x800, IPv6: 0x86DD, Dot1Q: 0x8100}[type(rest)]
        changes |= {"vlan_removed", "length"}
    elif what < 0.3 and Dot1Q in p:
        p[Dot1Q].vlan = 4001
        changes.add("vlan")
    if rng.random() < 0.1:
        p = p / Raw(b"x" * 8)
        changes.add("length")
    for layer in (IP, TCP, UDP, IPv6):  # lengths and checksums are computed again
        if layer in p:
            for name in ("len", "chksum", "plen"):
                if name in p[layer].fields:
                    delattr(p[layer], name)
    return bytes(p), changes


class Plan:
    """Packets that are received at two ports, and what an application does to each, by chance.
    timeout_ns: nothing is sent later than that, or so much later that it must count as not sent."""

    def __init__(self, seed, packets=2000, flows=40, timeout_ns=10**7):
        rng = random.Random(seed)
        self.timeout_ns = timeout_ns
        self.received, self.made, self.unknown = [], [], []
        templates = [_flow(rng, n) for n in range(flows)]
        ns, id = START, rng.randrange(1, 1 << 50)
        for _ in range(packets):
            ns += rng.randrange(200, 40_000)
            id += rng.randrange(1, 1000)
            flow = rng.randrange(flows)
            packet = Ether(bytes(templates[flow] / Raw(b"p" * rng.choice([0, 20, 100, 700, 1300]))))
            r = Received(id, ns, flow % 2, flow % 4, bytes(packet), flow)
            self._act(rng, r, packet)
            self.received.append(r)
        for _ in range(packets // 50):
            ns = rng.randrange(START, self.received[-1].ns)
            self.made.append(Sending(ns, rng.randrange(2), 0, bytes(templates[0]), set()))
            self.unknown.append((id := id + 1, Sending(ns + 1, rng.randrange(2), 0, bytes(templates[1]), set())))
        self._times_differ()
        self._number()
        self._order()

    def _act(self, rng, r, packet):
        what = rng.random()
        if what < 0.1:
            return  # dropped
        late = rng.randrange(300, 3000) if rng.random() < 0.8 else rng.randrange(10_000, self.timeout_ns // 20)
        out = rng.randrange(2) if rng.random() < 0.1 else 1 - r.port
        frame, changes = _rewritten(rng, packet)
        r.sendings.append(Sending(r.ns + late, out, r.queue, frame, changes))
        while rng.random() < 0.05:
            frame, changes = _rewritten(rng, packet)
            last = r.sendings[-1]
            port = last.port if rng.random() < 0.3 else 1 - last.port
            r.sendings.append(Sending(last.ns + rng.randrange(10, 5000), port, r.queue, frame, changes))

    def _events(self):
        """(holder of ns and number, what a record needs)"""
        events = [(r, (r.port, r.frame, RX, r.queue, r.id)) for r in self.received]
        events += [(s, (s.port, s.frame, TX, s.queue, r.id)) for r in self.received for s in r.sendings]
        events += [(s, (s.port, s.frame, TX, s.queue, None)) for s in self.made]
        events += [(s, (s.port, s.frame, TX, s.queue, id)) for id, s in self.unknown]
        return sorted(events, key=lambda e: e[0].ns)

    def _times_differ(self):
        last = 0
        for holder, _ in self._events():
            holder.ns = last = max(holder.ns, last + 1)

    def _number(self):
        for number, (holder, _) in enumerate(self._events(), 1):
            holder.number = number
        self.end_ns = max(holder.ns for holder, _ in self._events())

    def _order(self):
        """By the definition: sent after a packet of its flow that was received later."""
        for flow in {r.flow for r in self.received}:
            sent = sorted((r for r in self.received if r.flow == flow and r.sendings), key=lambda r: r.sendings[0].ns)
            newest = 0
            for r in sent:
                r.reordered = r.number < newest
                newest = max(newest, r.number)

    def fate(self, r):
        if r.sendings:
            return "sent"
        return "not_sent" if self.end_ns - r.ns >= self.timeout_ns else "open"

    def write(self, writer, ticks=lambda ns: ns, names=("p0", "p1"), parts=None):
        """Adds all packets to the file; with parts, a list of writers, to one after the other."""
        writers = parts or [writer]
        for w in writers:
            for name in names:
                w.interface(name)
        events = self._events()
        for i, (holder, (port, frame, direction, queue, id)) in enumerate(events):
            writers[i * len(writers) // len(events)].packet(port, ticks(holder.ns), frame, direction, queue, id)
        return writer
