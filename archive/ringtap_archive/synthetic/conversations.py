# SPDX-License-Identifier: BSD-3-Clause
"""The next packets: flows of a Zipf distribution, each a sequence of conversations.

A flow is a *slot* with a rank; the packets of a slot are numbered. All that a packet has follows from
its slot and number by a hash, but for TCP's sequence numbers, which are summed up. So a slice of the
traffic is computed with operations on whole arrays, and what is kept between slices is three numbers
for each slot. Only integers are used: floating-point functions may differ from CPU to CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import layouts
from .layouts import Kind

if TYPE_CHECKING:
    from numpy import ndarray

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

# Flows of each kind among 64.
SHARES = {
    "udp": {Kind.UDP4: 64},
    "realistic": {
        Kind.TCP4: 30,
        Kind.TCP6: 8,
        Kind.UDP4: 6,
        Kind.UDP6: 3,
        Kind.DNS: 5,
        Kind.VXLAN: 3,
        Kind.VXLAN6: 1,
        Kind.GRE: 2,
        Kind.GTPU: 2,
        Kind.FRAG4: 1,
        Kind.FRAG6: 1,
        Kind.ICMP: 1,
        Kind.ARP: 1,
    },
}
SHUFFLE = 37  # odd: neighbours in rank are of different kinds

IMIX = [64] * 7 + [590] * 4 + [1514]  # frames without FCS
TCP_DATA = [90] * 2 + [151] * 2 + [220] * 2 + [350] * 2 + [590] * 3 + [1024] * 2 + [1514] * 11
TCP_LENGTHS = [10, 14, 14, 24, 24, 60, 200, 1000, 4000]  # packets of a conversation
HANDSHAKE = CLOSING = 3
TCP_PORTS = [443, 443, 443, 443, 80, 8443, 5001, 5002]
UDP_PORTS = [443, 5001, 5002, 9999]
TUNNELLED_TCP = (Kind.VXLAN, Kind.VXLAN6, Kind.GTPU)
PORTS_LOW, PORTS_HIGH = 50_000, 61_000  # the client's, 4096 each: Wireshark has no protocol for these ports
PAIRS = (Kind.DNS, Kind.ICMP, Kind.ARP, Kind.FRAG4, Kind.FRAG6)  # conversations of two packets
ENDLESS = 1 << 40
ELEPHANTS = 32  # flows of the first ranks are of no such pairs
LONGER = 100  # conversations of the first rank are that many times as long, of the second half so
PAYLOAD_LEAST = 8

POOL_ZEROS = 4096
POOL_STARTS = 1 << 18  # number of places of the pool at which payloads begin


def mix(*parts) -> ndarray:
    """Hash of arrays of integers: splitmix64, chained."""
    x = np.zeros(1, np.uint64)
    for part in parts:
        x = x + np.asarray(part).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return x


def _bits(h: ndarray, shift: int, mask: int):
    return ((h >> np.uint64(shift)) & np.uint64(mask)).astype(np.int64)


def pool(seed: int) -> ndarray:
    """Payloads are cut out of these bytes: zeros, then text, so that dissectors find no protocol in it."""
    words = mix(np.arange((2 * POOL_STARTS + 4096) // 8), seed)
    letters = (words.view(np.uint8) & 15) + ord("a")
    return np.concatenate([np.zeros(POOL_ZEROS, np.uint8), letters])


class Slots:
    """Constants of each flow, and its progress."""

    def __init__(self, flows: int, seed: int, kinds: dict[Kind, int]):
        self.flows, self.seed = flows, seed
        slot = np.arange(flows)
        h = mix(slot, seed)
        pattern = np.repeat([k.value for k in kinds], list(kinds.values()))
        self.kind = pattern[(slot * SHUFFLE) % len(pattern)].astype(np.uint8)
        self.kind[:ELEPHANTS][np.isin(self.kind[:ELEPHANTS], [k.value for k in PAIRS])] = Kind.TCP4.value
        self.vlan = (_bits(h, 0, 3) == 0) & (len(kinds) > 1)
        self.vid = 100 + _bits(h, 2, 15)
        self.upload = _bits(h, 8, 3) == 0
        self.reset = _bits(h, 10, 7) == 0
        self.tcp = np.isin(self.kind, [k.value for k in (Kind.TCP4, Kind.TCP6, *TUNNELLED_TCP)])
        self.a = 0x0A000000 | (((slot >> 2) * 0x9E3779B1) & 0xFFFFFF)  # four flows of a client
        servers = min(max(flows // 16, 1), 4096)
        self.b = 0xC6120000 + 1 + _bits(h, 16, 0xFFFF) % servers
        self.port_of_four = (slot & 3) << 10
        self.port_first = _bits(h, 32, 2047)
        ports = np.array(TCP_PORTS)[_bits(h, 48, 7)]
        ports = np.where(self.tcp, ports, np.array(UDP_PORTS)[_bits(h, 48, 3)])
        self.port_b = np.where(self.kind == Kind.DNS.value, 53, ports)
        self.endpoint = _bits(h, 52, 31)  # endpoint of tunnels
        self.tunnel_id = 1000 + _bits(h, 57, 63)
        length = np.array(TCP_LENGTHS)[_bits(h, 28, 0xFFFF) % len(TCP_LENGTHS)] * np.maximum(1, LONGER // (slot + 1))
        self.length = np.where(self.tcp, length, ENDLESS)
        self.length[np.isin(self.kind, [k.value for k in PAIRS])] = 2
        self.done = np.zeros(flows, np.int64)  # packets until now
        self.seq_a = np.zeros(flows, np.int64)
        self.seq_b = np.zeros(flows, np.int64)
        total = np.cumsum((1 << 50) // (slot + 1))  # weight 1/rank; integers, so that each machine draws the same
        self.threshold = total // ((int(total[-1]) >> 32) + 1)

    def draw(self, random32: ndarray) -> ndarray:
        return np.minimum(np.searchsorted(self.threshold, random32, side="right"), self.flows - 1)


class Packets(dict):
    """Arrays of one length, a packet in each place."""

    def take(self, index: ndarray, names: tuple | None = None) -> Packets:
        return Packets({name: self[name][index] for name in names or self})

    @staticmethod
    def concat(parts: list[Packets]) -> Packets:
        return Packets({name: np.concatenate([p[name] for p in parts]) for name in parts[0]})


class Conversations:
    """Slices of traffic, sorted by slot; order tells the place of each packet in time."""

    def __init__(self, flows: int, seed: int, size: str, traffic: str):
        self.slots = Slots(flows, seed, SHARES[traffic])
        self.seed = seed
        self.least = 64 if size == "64" else 60
        self.udp_sizes = np.array([64] if size == "64" else IMIX)
        self.tcp_sizes = np.array([64] if size == "64" else TCP_DATA)
        self.fragments = layouts.FRAGMENTS_SMALL if size == "64" else layouts.FRAGMENTS
        self.echo = 22 if size == "64" else 56
        self.simple = traffic == "udp"

    def slice(self, slot: ndarray) -> tuple:
        """slot: of each packet, in time order. Returns order and packets: packets[i] is the order[i]-th."""
        s = self.slots
        order = np.argsort(slot, kind="stable")
        slot = slot[order]
        begin = np.flatnonzero(np.diff(slot, prepend=-1))
        count = np.diff(begin, append=len(slot))
        number = np.arange(len(slot)) + np.repeat(s.done[slot[begin]] - begin, count)
        s.done[slot[begin]] += count
        p = Packets(slot=slot, number=number, kind=s.kind[slot])
        generation = number // s.length[slot]
        p["place"] = number - generation * s.length[slot]
        turn = (s.port_first[slot] + generation) & 2047
        p["port_a"] = np.where(turn < 1024, PORTS_LOW, PORTS_HIGH - 1024) + turn + s.port_of_four[slot]
        p["generation"] = generation
        p["resent"] = np.zeros(len(slot), bool)
        p["tcp_flags"] = np.zeros(len(slot), np.uint8)
        self._datagrams(p)
        tcp = s.tcp[slot]
        if tcp.any():
            self._tcp(p, np.flatnonzero(tcp))
        if not self.simple:
            self._pairs(p)
        self._lengths(p)
        self._sequence(p, begin, tcp)
        self._identify(p)
        return order, p

    def _datagrams(self, p: Packets):
        """UDP, and of all the hash that payloads follow from."""
        p["hash"] = mix(p["slot"], p["number"], self.seed)
        p["from_a"] = (p["hash"] & np.uint64(3)) != 0
        p["payload"] = np.full(len(p["slot"]), -1)  # -1: what the frame has room for
        p["frame"] = self.udp_sizes[_bits(p["hash"], 4, 0xFFFF) % len(self.udp_sizes)]
        p["layout"] = layouts.of_kind(p["kind"], np.zeros(len(p["slot"]), int), self.slots.vlan[p["slot"]])

    def _tcp(self, p: Packets, rows: ndarray):
        """Handshake, data and acknowledgements in turns of six packets, FIN or RST."""
        slot, number, place = p["slot"][rows], p["number"][rows], p["place"][rows]
        left = self.slots.length[slot] - place  # 3, 2, 1: the end
        middle = (place >= HANDSHAKE) & (left > CLOSING)
        turn = (place - HANDSHAKE) % 6
        h = p["hash"][rows]
        resent = middle & (turn == 2) & (_bits(h, 40, 63) == 0)
        h = np.where(resent, mix(slot, number - 1, self.seed), h)
        p["hash"][rows], p["resent"][rows] = h, resent
        request, data = middle & (turn == 0), middle & ((turn == 1) | (turn == 2) | (turn == 4))
        from_a = np.where(middle, (data == self.slots.upload[slot]) | request, (place != 1) & (left != 2))
        flags = np.select(
            [request | (middle & (turn == 4)), middle, place == 0, place == 1], [PSH | ACK, ACK, SYN, SYN | ACK], ACK
        )
        closing = ~middle & (left <= CLOSING)
        reset = self.slots.reset[slot]
        flags = np.where(closing & ~reset & (left > 1), FIN | ACK, flags)
        p["tcp_flags"][rows] = np.where(closing & reset & (left == 1), RST | ACK, flags)
        p["from_a"][rows] = from_a
        p["payload"][rows] = np.where(request | data, -1, 0)
        frame = self.tcp_sizes[_bits(h, 4, 0xFFFF) % len(self.tcp_sizes)]
        p["frame"][rows] = np.where(request, np.minimum(frame, 350), frame)

    def _pairs(self, p: Packets):
        """Request and reply, or two fragments."""
        rows = np.flatnonzero(np.isin(p["kind"], [k.value for k in PAIRS]))
        kind, second = p["kind"][rows], p["place"][rows] == 1
        fragment4, fragment6 = kind == Kind.FRAG4.value, kind == Kind.FRAG6.value
        fragment = fragment4 | fragment6
        p["from_a"][rows] = ~second | fragment
        p["layout"][rows] = layouts.of_kind(
            kind,
            np.where(fragment | (kind == Kind.DNS.value), second, False).astype(int),
            self.slots.vlan[p["slot"][rows]],
        )
        (first4, rest4), (first6, rest6) = self.fragments
        p["payload"][rows] = np.select(
            [fragment4 & ~second, fragment4, fragment6 & ~second, fragment6, kind == Kind.ICMP.value],
            [first4 - 8, rest4, first6 - 8, rest6, self.echo],
            0,
        )
        # Both fragments are of one payload, echo reply has that of the request.
        p["hash"][rows] = mix(p["slot"][rows], p["generation"][rows], self.seed)

    def _lengths(self, p: Packets):
        header = layouts.LENGTHS[p["layout"]]
        room = np.maximum(p["frame"] - header, PAYLOAD_LEAST)
        p["payload"] = np.where(p["payload"] < 0, room, p["payload"])
        p["frame"] = np.maximum(header + p["payload"], self.least)
        start = POOL_ZEROS + 2 * _bits(p["hash"], 20, POOL_STARTS - 1)
        rest = np.isin(p["layout"], layouts.SECOND_FRAGMENTS)
        if rest.any():
            (first4, _), (first6, _) = self.fragments
            start[rest] += np.where(p["kind"][rest] == Kind.FRAG4.value, first4 - 8, first6 - 8)
        p["start"] = np.where(p["payload"] > 0, start, header)  # none: padding of zeros

    def _sequence(self, p: Packets, begin: ndarray, tcp: ndarray):
        """Sequence numbers: bytes of the conversation before, by direction."""
        if not tcp.any():
            p["seq"] = p["ack"] = np.zeros(len(tcp), np.int64)
            return
        s, slot = self.slots, p["slot"]
        adds = np.where(tcp & ~p["resent"], p["payload"] + ((p["tcp_flags"] & (SYN | FIN)) != 0), 0)
        first = p["place"] == 0
        restart = first.copy()
        restart[begin] = True
        at = np.flatnonzero(restart)
        size = np.diff(at, append=len(slot))
        last = np.append(begin[1:], len(slot)) - 1
        fresh = mix(slot[at], p["generation"][at], self.seed + 1)
        sent = []
        for state, from_this, shift in ((s.seq_a, p["from_a"], 0), (s.seq_b, ~p["from_a"], 32)):
            add = np.where(from_this, adds, 0)
            before = np.cumsum(add) - add
            base = np.where(first[at], _bits(fresh, shift, 0xFFFFFFFF), state[slot[at]])
            value = before + np.repeat(base - before[at], size)
            state[slot[last]] = (value[last] + add[last]) & 0xFFFFFFFF
            sent.append(value)
        p["seq"] = (np.where(p["from_a"], sent[0], sent[1]) - np.where(p["resent"], p["payload"], 0)) & 0xFFFFFFFF
        p["ack"] = np.where(p["tcp_flags"] & ACK, np.where(p["from_a"], sent[1], sent[0]), 0) & 0xFFFFFFFF

    def _identify(self, p: Packets):
        """IP id: counted by each sender. Hash of the NIC: of the 5-tuple as it is sent."""
        own = mix(p["slot"] * 2 + p["from_a"], self.seed + 2)
        pair = np.isin(p["kind"], (Kind.FRAG4.value, Kind.FRAG6.value))
        p["ip_id"] = (_bits(own, 0, 0xFFFF) + np.where(pair, p["generation"], p["number"])) & 0xFFFF
        p["rss"] = _bits(mix(p["slot"] * 2 + p["from_a"], p["generation"], self.seed + 3), 0, 0xFFFFFFFF)
