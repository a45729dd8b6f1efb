# SPDX-License-Identifier: BSD-3-Clause
"""Test packets: a generated set, the same in every run, and captured ones, which are not in this repository. Without them
less is tested, and a test that is skipped says so. With RINGTAP_CORPUS set, as .ci/run does, that is an error."""

import os
import random
import struct

import pytest
from scapy.all import (
    ARP,
    BOOTP,
    DHCP,
    DNS,
    DNSQR,
    GRE,
    ICMP,
    IP,
    LLC,
    PPP,
    SNAP,
    STP,
    TCP,
    UDP,
    Dot1AD,
    Dot1Q,
    Dot3,
    Ether,
    ICMPv6EchoRequest,
    ICMPv6ND_NS,
    IPOption_Router_Alert,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PPPoE,
    Raw,
    fragment,
)
from scapy.contrib.mpls import MPLS
from scapy.layers.sctp import SCTP, SCTPChunkData
from scapy.layers.vxlan import VXLAN

from . import pcap
from .paths import CORPUS

COUNT = 120  # packets of each kind


class Maker:
    """Random fields, from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def mac(self):
        kind = self.random.choice((0x02, 0x02, 0x02, 0x01, 0x33))
        return ":".join(f"{b:02x}" for b in (kind, *self.random.randbytes(5)))

    def ether(self, **fields):
        dst = self.random.choice((self.mac(), self.mac(), "ff:ff:ff:ff:ff:ff", "01:80:c2:00:00:00"))
        return Ether(src=self.mac(), dst=dst, **fields)

    def ip(self, **fields):
        nets = (
            "10.0.0.1",
            f"10.{self.byte()}.0.{self.byte()}",
            f"192.168.1.{self.byte()}",
            f"224.0.0.{self.byte()}",
            f"{self.byte() | 1}.2.3.4",
        )
        return IP(
            src=self.random.choice(nets),
            dst=self.random.choice(nets),
            ttl=self.byte(),
            id=self.word(),
            flags=self.random.choice((0, "DF")),
            tos=self.byte(),
            **fields,
        )

    def ip6(self, **fields):
        nets = ("fe80::1", f"2001:db8::{self.word():x}", f"ff02::{self.byte():x}")
        return IPv6(src=self.random.choice(nets[:2]), dst=self.random.choice(nets), hlim=self.byte(), **fields)

    def network(self):
        return self.random.choice((self.ip, self.ip6))()

    def byte(self):
        return self.random.randrange(256)

    def word(self):
        return self.random.randrange(1 << 16)

    def data(self, longest=400):
        return Raw(self.random.randbytes(self.random.randrange(longest)))

    def port(self):
        return self.random.choice((22, 53, 67, 179, 443, 1023, 3500, 5353, self.word()))

    def tcp(self):
        options = self.random.choice(([], [("MSS", 1460)], [("Timestamp", (self.word(), 0)), ("NOP", None)]))
        return TCP(
            sport=self.port(),
            dport=self.port(),
            seq=self.random.getrandbits(32),
            options=options,
            flags=self.random.choice(("S", "SA", "A", "PA", "FA", "R")),
        ) / self.data(1300)

    def udp(self):
        return UDP(sport=self.port(), dport=self.port()) / self.data()


def broken(m):
    """Headers with too large lengths, wrong checksums and lengths, truncated frames."""
    whole = bytes(m.ether() / m.network() / m.tcp())
    kind = m.random.randrange(4)
    if kind == 0:
        return whole[: m.random.randrange(14, 60)]
    if kind == 1:
        return whole[:14] + bytes([0x40 | m.random.randrange(16)]) + whole[15:]
    if kind == 2:
        return whole[:16] + struct.pack(">H", m.word()) + whole[18:]
    return m.random.randbytes(m.random.randrange(14, 1514))


def fragments(m):
    packet = m.ip(proto=17) / m.udp() / Raw(m.random.randbytes(3000))
    return [m.ether() / part for part in fragment(packet, 1400)]


KINDS = {
    "arp": lambda m: m.ether() / ARP(op=m.random.choice((1, 2)), psrc="10.0.0.1", pdst=f"10.0.0.{m.byte()}"),
    "bridging": lambda m: m.random.choice(
        (
            Dot3(dst="01:80:c2:00:00:00", src=m.mac()) / LLC() / STP(bridgeid=m.word()),
            Dot3(dst="01:80:c2:00:00:14", src=m.mac()) / LLC(dsap=0xFE, ssap=0xFE, ctrl=3) / m.data(200),
            Dot3(dst="01:00:0c:cc:cc:cc", src=m.mac())
            / LLC(dsap=0xAA, ssap=0xAA, ctrl=3)
            / SNAP(OUI=0xC, code=0x2000)
            / m.data(90),
            m.ether(type=0x88CC) / m.data(120),
        )
    ),
    "broken": broken,
    "extensions": lambda m: m.ether()
    / m.ip6()
    / m.random.choice(
        (
            IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / m.tcp(),
            IPv6ExtHdrRouting() / m.udp(),
            IPv6ExtHdrFragment(offset=m.random.randrange(100), m=1) / m.data(),
        )
    ),
    "fragments": fragments,
    "icmp": lambda m: m.ether()
    / m.random.choice(
        (
            m.ip() / ICMP(type=m.random.choice((0, 3, 8, 11))) / m.data(),
            m.ip6() / ICMPv6EchoRequest(seq=m.word()) / m.data(),
            m.ip6() / ICMPv6ND_NS(tgt="fe80::2"),
        )
    ),
    "jumbo": lambda m: m.ether() / m.ip() / UDP() / Raw(m.random.randbytes(m.random.randrange(1500, 9000))),
    "mpls": lambda m: m.ether() / MPLS(label=m.word(), s=0) / MPLS(label=m.word(), s=1) / m.ip() / m.tcp(),
    "names": lambda m: m.ether()
    / m.network()
    / m.random.choice(
        (
            UDP(dport=53) / DNS(id=m.word(), qd=DNSQR(qname=f"host{m.byte()}.example")),
            UDP(sport=68, dport=67) / BOOTP(xid=m.word()) / DHCP(options=[("message-type", "discover"), "end"]),
            UDP(sport=5353, dport=5353) / DNS(qd=DNSQR(qname="printer.local")),
        )
    ),
    "pppoe": lambda m: m.ether() / PPPoE(sessionid=m.word()) / PPP(proto=0x21) / m.ip() / m.udp(),
    "routing": lambda m: m.ether()
    / m.random.choice(
        (
            m.ip(proto=89),
            m.ip6(nh=89),
            m.ip(proto=103),
            m.ip(proto=112),
            m.ip(proto=2, options=[IPOption_Router_Alert()]),
        )
    )
    / m.data(200),
    "sctp": lambda m: m.ether() / m.network() / SCTP(sport=m.port()) / SCTPChunkData(data=m.random.randbytes(50)),
    "tcp": lambda m: m.ether() / m.network() / m.tcp(),
    "tunnels": lambda m: m.ether()
    / m.ip()
    / m.random.choice(
        (
            GRE() / m.ip() / m.tcp(),
            UDP(dport=4789) / VXLAN(vni=m.word()) / m.ether() / m.ip() / m.udp(),
            m.ip6() / m.tcp(),
        )
    ),
    "udp": lambda m: m.ether() / m.network() / m.udp(),
    "vlan": lambda m: m.ether()
    / m.random.choice(
        (
            Dot1Q(vlan=5, prio=m.random.randrange(8)) / m.network() / m.tcp(),
            Dot1AD(vlan=m.random.randrange(4095)) / Dot1Q(vlan=5) / m.network() / m.udp(),
        )
    ),
}


def frames(kind):
    """All frames of a kind, padded to 60 bytes as on a wire."""
    m, out = Maker(kind), []
    while len(out) < COUNT:
        made = KINDS[kind](m)
        out += [bytes(p).ljust(60, b"\0") for p in (made if isinstance(made, list) else [made])]
    return out


REAL = sorted(CORPUS.glob("*.pcap"))
FILES = len(KINDS) + len(REAL)
WITHOUT = (
    None if REAL else f"no captured packets: {CORPUS} has no *.pcap; name a folder that has with RINGTAP_CORPUS=FOLDER"
)
# For the parameters of a test: a case that is skipped.
LEFT_OUT = [pytest.param("captured", marks=pytest.mark.skip(reason=WITHOUT))] if WITHOUT else []


def make(folder):
    """Writes a file of each kind; returns these files and the captured ones."""
    if WITHOUT and "RINGTAP_CORPUS" in os.environ:
        raise FileNotFoundError(WITHOUT)
    for kind in KINDS:
        pcap.write(folder / f"{kind}.pcap", frames(kind))
    return files(folder)


def files(folder):
    """Those of make(folder)."""
    return [folder / f"{kind}.pcap" for kind in sorted(KINDS)] + REAL
