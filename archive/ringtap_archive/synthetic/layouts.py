# SPDX-License-Identifier: BSD-3-Clause
"""Headers of packets: each layout is a packed numpy type, which is filled for all packets that have it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy import ndarray

    from .conversations import Packets, Slots

FRAGMENTS = ((1480, 520), (1448, 500))  # bytes behind the IP header(s): first and second, IPv4 and IPv6
FRAGMENTS_SMALL = ((32, 30), (24, 30))


class Kind(enum.Enum):
    """Kind of a flow."""

    UDP4, TCP4, TCP6, UDP6, DNS, VXLAN, VXLAN6, GRE, GTPU, FRAG4, FRAG6, ICMP, ARP = range(13)


BLOCK = [
    ("type", "<u4"),
    ("total", "<u4"),
    ("interface", "<u4"),
    ("time_high", "<u4"),
    ("time_low", "<u4"),
    ("captured", "<u4"),
    ("length", "<u4"),
]
BLOCK_LENGTH = 28
ETH = [("to", ">u4"), ("to_low", ">u2"), ("from", ">u4"), ("from_low", ">u2")]
VLAN = [("tpid", ">u2"), ("tci", ">u2")]
TYPE = [("ethertype", ">u2")]
IP4 = [
    ("version", "u1"),
    ("tos", "u1"),
    ("bytes", ">u2"),
    ("id", ">u2"),
    ("fragment", ">u2"),
    ("ttl", "u1"),
    ("protocol", "u1"),
    ("sum", ">u2"),
    ("src", ">u4"),
    ("dst", ">u4"),
]
IP6 = [
    ("version", ">u4"),
    ("bytes", ">u2"),
    ("protocol", "u1"),
    ("ttl", "u1"),
    ("src_net", ">u8"),
    ("src", ">u8"),
    ("dst_net", ">u8"),
    ("dst", ">u8"),
]
FRAGMENT6 = [("next", "u1"), ("reserved", "u1"), ("offset", ">u2"), ("id", ">u4")]
UDP = [("sport", ">u2"), ("dport", ">u2"), ("bytes", ">u2"), ("sum", ">u2")]
TCP = [
    ("sport", ">u2"),
    ("dport", ">u2"),
    ("seq", ">u4"),
    ("ack", ">u4"),
    ("offset", "u1"),
    ("flags", "u1"),
    ("window", ">u2"),
    ("sum", ">u2"),
    ("urgent", ">u2"),
]
ICMP = [("type", "u1"), ("code", "u1"), ("sum", ">u2"), ("id", ">u2"), ("seq", ">u2")]
VXLAN = [("flags", ">u4"), ("vni", ">u4")]
GRE = [("flags", ">u2"), ("protocol", ">u2"), ("key", ">u4")]
GTPU = [("flags", "u1"), ("type", "u1"), ("bytes", ">u2"), ("teid", ">u4")]
ARP = [
    ("hardware", ">u2"),
    ("protocol", ">u2"),
    ("sizes", ">u2"),
    ("op", ">u2"),
    ("sender_mac", ">u4"),
    ("sender_mac_low", ">u2"),
    ("sender", ">u4"),
    ("target_mac", ">u4"),
    ("target_mac_low", ">u2"),
    ("target", ">u4"),
]
NAME = b"\x08host0000\x07example\x03net\x00"
DNS = [
    ("id", ">u2"),
    ("flags", ">u2"),
    ("questions", ">u2"),
    ("answers", ">u2"),
    ("authority", ">u4"),
    ("name", f"S{len(NAME)}"),
    ("qtype", ">u2"),
    ("qclass", ">u2"),
]
ANSWER = [("pointer", ">u2"), ("type", ">u2"), ("class", ">u2"), ("ttl", ">u4"), ("size", ">u2"), ("address", ">u4")]

PROTOCOLS = {"udp": 17, "tcp": 6, "icmp": 1, "gre": 47}
TYPES = {"ip4": 0x0800, "ip6": 0x86DD, "arp": 0x0806}
VXLAN_PORT, GTPU_PORT = 4789, 2152

# Pieces of each kind behind Ethernet; i_: inside of a tunnel. Of some, also of the second packet of a pair.
PIECES = {
    Kind.UDP4: [dict(ip4=IP4, udp=UDP)],
    Kind.TCP4: [dict(ip4=IP4, tcp=TCP)],
    Kind.TCP6: [dict(ip6=IP6, tcp=TCP)],
    Kind.UDP6: [dict(ip6=IP6, udp=UDP)],
    Kind.DNS: [dict(ip4=IP4, udp=UDP, dns=DNS), dict(ip4=IP4, udp=UDP, dns=DNS, answer=ANSWER)],
    Kind.VXLAN: [dict(ip4=IP4, udp=UDP, vxlan=VXLAN, i_eth=ETH + TYPE, i_ip4=IP4, i_tcp=TCP)],
    Kind.VXLAN6: [dict(ip4=IP4, udp=UDP, vxlan=VXLAN, i_eth=ETH + TYPE, i_ip6=IP6, i_tcp=TCP)],
    Kind.GRE: [dict(ip4=IP4, gre=GRE, i_ip4=IP4, i_udp=UDP)],
    Kind.GTPU: [dict(ip4=IP4, udp=UDP, gtpu=GTPU, i_ip4=IP4, i_tcp=TCP)],
    Kind.FRAG4: [dict(ip4=IP4, udp=UDP), dict(ip4=IP4)],
    Kind.FRAG6: [dict(ip6=IP6, fragment6=FRAGMENT6, udp=UDP), dict(ip6=IP6, fragment6=FRAGMENT6)],
    Kind.ICMP: [dict(ip4=IP4, icmp=ICMP)],
    Kind.ARP: [dict(arp=ARP)],
}


class Layout:
    def __init__(self, kind: Kind, second: int, vlan: bool, pieces: dict[str, list[tuple]]):
        self.kind, self.second, self.vlan = kind, second, vlan
        self.pieces = dict(eth=ETH, **({"tag": VLAN} if vlan else {}), type=TYPE, **pieces)
        self.dtype = np.dtype([("block", BLOCK), *self.pieces.items()])
        self.length = self.dtype.itemsize - BLOCK_LENGTH

    def offset(self, piece: str) -> int:
        """In the frame."""
        return self.dtype.fields[piece][1] - BLOCK_LENGTH


ALL = [
    Layout(kind, second, vlan, pieces)
    for kind, variants in PIECES.items()
    for second, pieces in enumerate(variants)
    for vlan in (False, True)
]
LENGTHS = np.array([layout.length for layout in ALL])
LONGEST = int(LENGTHS.max())
_INDEX = np.zeros((len(Kind), 2, 2), np.uint8)
for _i, _l in enumerate(ALL):
    _INDEX[_l.kind.value, _l.second, int(_l.vlan)] = _i
SECOND_FRAGMENTS = [i for i, layout in enumerate(ALL) if layout.second and layout.kind in (Kind.FRAG4, Kind.FRAG6)]

NET_A, NET_B = 0x20010DB800000000, 0x20010DB800010000
ENDPOINT_A, ENDPOINT_B = 0xAC100001, 0xAC110001  # endpoints of tunnels: 172.16.0.1, 172.17.0.1
ROUTER_MAC, HOST_MAC = 0x02000000, 0x02000001


def of_kind(kind: ndarray, second: ndarray, vlan: ndarray) -> ndarray:
    return _INDEX[kind, second, vlan.astype(np.uint8)]


class Filler:
    """Makes the headers of packets that have the same layout."""

    def __init__(self, slots: Slots, pool: ndarray, fragments: tuple):
        self.slots, self.pool, self.fragments = slots, pool, fragments
        self.prefix = np.concatenate([[0], np.cumsum(pool.view(">u2"), dtype=np.int64)])

    def fill(self, layout: Layout, p: Packets) -> ndarray:
        """p: packets with interface, tx, frame. Returns an array of layout.dtype, its block not filled in."""
        slot = p["slot"]
        h = np.zeros(len(slot), layout.dtype)
        self._ethernet(h, layout, p)
        ports = (
            np.where(p["from_a"], p["port_a"], self.slots.port_b[slot]),
            np.where(p["from_a"], self.slots.port_b[slot], p["port_a"]),
        )
        ends = self._ends(p, self.slots.a[slot], self.slots.b[slot])
        if layout.kind == Kind.ARP:
            self._arp(h["arp"], p, ends)
        elif "gre" in layout.pieces or "vxlan" in layout.pieces or "gtpu" in layout.pieces:
            endpoint = self.slots.endpoint[slot]
            self._inner(h, layout, p, ends, ports)
            self._tunnel(h, layout, p, self._ends(p, ENDPOINT_A + endpoint, ENDPOINT_B + endpoint))
        else:
            self._plain(h, layout, p, ends, ports)
        return h

    @staticmethod
    def _ends(p: Packets, a: int | ndarray, b: int | ndarray):
        return np.where(p["from_a"], a, b), np.where(p["from_a"], b, a)

    def _ethernet(self, h: ndarray, layout: Layout, p: Packets):
        router, host = (ROUTER_MAC, p["interface"]), (HOST_MAC, p["interface"])
        tx = p["tx"]
        for end, first, low in (("to", host, router), ("from", router, host)):
            h["eth"][end] = np.where(tx, first[0], low[0])
            h["eth"][f"{end}_low"] = np.where(tx, first[1], low[1])
        if layout.vlan:
            h["tag"]["tpid"] = 0x8100
            h["tag"]["tci"] = self.slots.vid[p["slot"]]
        h["type"]["ethertype"] = next(TYPES[piece] for piece in layout.pieces if piece in TYPES)

    def _arp(self, arp: ndarray, p: Packets, ends: tuple):
        arp["hardware"], arp["protocol"], arp["sizes"] = 1, 0x0800, 0x0604
        arp["op"] = np.where(p["from_a"], 1, 2)
        arp["sender"], arp["target"] = ends
        arp["sender_mac"], arp["sender_mac_low"] = HOST_MAC, p["interface"]
        arp["target_mac"] = np.where(p["from_a"], 0, HOST_MAC)
        arp["target_mac_low"] = np.where(p["from_a"], 0, 1 - p["interface"])

    def _ip(self, h: ndarray, layout: Layout, prefix: str, p: Packets, ends: tuple, protocol: int):
        """Returns the sum of the pseudo header's addresses."""
        slot, ttl = p["slot"], 64 - p["tx"].astype(np.uint8) * (prefix == "")
        behind = layout.length + p["payload"]
        if f"{prefix}ip4" in layout.pieces:
            ip = h[f"{prefix}ip4"]
            ip["version"], ip["ttl"], ip["protocol"] = 0x45, ttl, protocol
            ip["bytes"] = behind - layout.offset(f"{prefix}ip4")
            ip["id"], ip["fragment"] = p["ip_id"], 0x4000
            if layout.kind == Kind.FRAG4:
                ip["fragment"] = self.fragments[0][0] // 8 if layout.second else 0x2000
            ip["src"], ip["dst"] = ends
            ip["sum"] = checksum(words(ip))
            return np.sum([(e >> 16) + (e & 0xFFFF) for e in ends], axis=0)
        ip = h[f"{prefix}ip6"]
        ip["version"], ip["ttl"] = 0x60000000 | (slot & 0xFFFF), ttl
        ip["bytes"] = behind - layout.offset(f"{prefix}ip6") - 40
        ip["protocol"] = protocol
        if "fragment6" in layout.pieces:
            fragment = h["fragment6"]
            ip["protocol"], fragment["next"] = 44, protocol
            fragment["offset"] = self.fragments[1][0] if layout.second else 1
            fragment["id"] = 0x10000 + p["ip_id"]
        ip["src_net"], ip["dst_net"] = self._ends(p, np.uint64(NET_A), np.uint64(NET_B))
        ip["src"], ip["dst"] = ends
        return words(ip)[:, 4:20].sum(axis=1, dtype=np.int64)

    def _payload_sum(self, p: dict[str, ndarray] | Packets):
        """Sum of the payload in the pool, as 16-bit words."""
        start, size = p["start"], p["payload"]
        even = self.prefix[(start + size) >> 1] - self.prefix[start >> 1]
        odd = np.where(size & 1, self.pool[start + size - 1].astype(np.int64) << 8, 0)
        return np.where(size > 0, even + odd, 0)

    def _plain(self, h: ndarray, layout: Layout, p: Packets, ends: tuple, ports: tuple):
        fragmented = layout.kind in (Kind.FRAG4, Kind.FRAG6)
        protocol = next((PROTOCOLS[piece] for piece in layout.pieces if piece in PROTOCOLS), 17)
        pseudo = self._ip(h, layout, "", p, ends, protocol)
        if layout.second and fragmented:
            return
        payload = self._payload_sum(p)
        if "icmp" in layout.pieces:
            icmp = h["icmp"]
            icmp["type"] = np.where(p["from_a"], 8, 0)
            icmp["id"], icmp["seq"] = p["slot"] & 0xFFFF, p["generation"] & 0xFFFF
            icmp["sum"] = checksum(words(icmp), payload)
        elif "tcp" in layout.pieces:
            self._tcp(h, layout, "tcp", p, ports, pseudo, payload)
        else:
            self._udp(h, layout, p, ports, pseudo, payload)

    def _udp(self, h: ndarray, layout: Layout, p: Packets, ports: tuple, pseudo: ndarray, payload: ndarray):
        udp = h["udp"]
        udp["sport"], udp["dport"] = ports
        udp["bytes"] = layout.length + p["payload"] - layout.offset("udp")
        if layout.kind in (Kind.FRAG4, Kind.FRAG6):
            rest = self.fragments[layout.kind == Kind.FRAG6][1]
            udp["bytes"] += rest
            payload = self._payload_sum(dict(start=p["start"], payload=p["payload"] + rest))
        if "dns" in layout.pieces:
            payload = self._dns(h, layout, p)
        udp["sum"] = checksum(words(udp), pseudo + 17 + udp["bytes"].astype(np.int64) + payload)
        udp["sum"][udp["sum"] == 0] = 0xFFFF

    def _dns(self, h: ndarray, layout: Layout, p: Packets):
        dns = h["dns"]
        dns["id"] = p["generation"] & 0xFFFF
        dns["flags"], dns["questions"], dns["answers"] = 0x8180 if layout.second else 0x0100, 1, layout.second
        dns["name"], dns["qtype"], dns["qclass"] = NAME, 1, 1
        total = words(dns).sum(axis=1, dtype=np.int64)
        if layout.second:
            answer = h["answer"]
            answer["pointer"], answer["type"], answer["class"], answer["size"] = 0xC00C, 1, 1, 4
            answer["ttl"], answer["address"] = 300, self.slots.b[p["slot"]]
            total += words(answer).sum(axis=1, dtype=np.int64)
        return total

    def _tcp(self, h: ndarray, layout: Layout, piece: str, p: Packets, ports: tuple, pseudo: ndarray, payload: ndarray):
        tcp = h[piece]
        tcp["sport"], tcp["dport"] = ports
        tcp["seq"], tcp["ack"] = p["seq"], p["ack"]
        tcp["offset"], tcp["flags"], tcp["window"] = 0x50, p["tcp_flags"], 0xFFFF
        tcp["sum"] = checksum(words(tcp), pseudo + 6 + 20 + p["payload"] + payload)

    def _inner(self, h: ndarray, layout: Layout, p: Packets, ends: tuple, ports: tuple):
        payload = self._payload_sum(p)
        protocol = 6 if "i_tcp" in layout.pieces else 17
        pseudo = self._ip(h, layout, "i_", p, ends, protocol)
        if protocol == 6:
            self._tcp(h, layout, "i_tcp", p, ports, pseudo, payload)
            return
        udp = h["i_udp"]
        udp["sport"], udp["dport"] = ports
        udp["bytes"] = 8 + p["payload"]
        udp["sum"] = checksum(words(udp), pseudo + 17 + 8 + p["payload"] + payload)
        udp["sum"][udp["sum"] == 0] = 0xFFFF

    def _tunnel(self, h: ndarray, layout: Layout, p: Packets, endpoints: tuple):
        slot = p["slot"]
        tunnel_id = self.slots.tunnel_id[slot]
        if "gre" in layout.pieces:
            h["gre"]["flags"], h["gre"]["protocol"], h["gre"]["key"] = 0x2000, 0x0800, tunnel_id
            self._ip(h, layout, "", p, endpoints, PROTOCOLS["gre"])
            return
        self._ip(h, layout, "", p, endpoints, PROTOCOLS["udp"])
        udp = h["udp"]  # checksum 0: none, as RFC 7348 and 3GPP TS 29.281 allow over IPv4
        udp["bytes"] = layout.length + p["payload"] - layout.offset("udp")
        if "vxlan" in layout.pieces:
            udp["sport"], udp["dport"] = 49152 + (p["rss"] & 0x3FFF), VXLAN_PORT
            h["vxlan"]["flags"], h["vxlan"]["vni"] = 0x08000000, tunnel_id << 8
            eth = h["i_eth"]
            eth["to"], eth["from"], eth["to_low"], eth["from_low"] = 0x02000002, 0x02000002, 1, 2
            eth["ethertype"] = TYPES["ip6" if "i_ip6" in layout.pieces else "ip4"]
        else:
            udp["sport"], udp["dport"] = GTPU_PORT, GTPU_PORT
            gtpu = h["gtpu"]
            gtpu["flags"], gtpu["type"], gtpu["teid"] = 0x30, 255, tunnel_id
            gtpu["bytes"] = layout.length + p["payload"] - layout.offset("gtpu") - 8


def words(piece: ndarray) -> ndarray:
    """A piece of all packets as 16-bit words, one row each."""
    size = piece.dtype.itemsize
    odd = size & 1
    raw = np.ascontiguousarray(piece).view(np.uint8).reshape(len(piece), size)
    if odd:
        raw = np.concatenate([raw, np.zeros((len(piece), 1), np.uint8)], axis=1)
    return raw.view(">u2")


def checksum(rows: ndarray, more: int | ndarray = 0) -> ndarray:
    """RFC 1071, for rows and a further sum; the field itself is 0 in rows."""
    total = rows.sum(axis=1, dtype=np.int64) + more
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
