# SPDX-License-Identifier: BSD-3-Clause
"""Filters with --inner find what tshark's display filter finds, in tunnels around frames of the corpus."""

import pytest
from harness import pcap
from harness.pcapng import check_sums
from harness.proc import check, until
from harness.ringtap import packets_of
from scapy.all import GRE, ICMP, IP, TCP, UDP, VXLAN, Ether, IPv6, Raw, raw
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS

pytestmark = [pytest.mark.nightly, pytest.mark.tools]

OUTER = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
IP4 = IP(src="192.0.2.1", dst="192.0.2.2", flags="DF")
IP6 = IPv6(src="2001:db8::1", dst="2001:db8::2")
# pcap-filter(7), and the same as a display filter.
FILTERS = {
    "tcp port 80": "tcp.port == 80",
    "udp port 53": "udp.port == 53",
    "icmp": "icmp",
    "src net 10.0.0.0/8": "ip.src == 10.0.0.0/8",
}


def tunnels(frame):
    """A frame of Ethernet with IPv4 in each kind of tunnel."""
    packet, whole = Raw(frame[14:]), Raw(frame)
    gtp = raw(GTP_U_Header(teid=5, gtp_type=255, length=len(frame) - 14))[:8]
    return [
        frame,
        OUTER / IP4 / UDP(sport=5555, dport=4789) / VXLAN(vni=7) / whole,
        OUTER / IP6 / UDP(sport=5555, dport=6081) / GENEVE(vni=7, proto=0x6558) / whole,
        OUTER / IP4 / UDP(sport=2152, dport=2152) / Raw(gtp) / packet,
        OUTER / IP4 / GRE(proto=0x0800, key_present=1, key=9) / packet,
        OUTER / IP6 / GRE(proto=0x6558) / whole,
        Ether(dst="02:00:00:00:00:01", type=0x8847) / MPLS(label=16, s=0, ttl=9) / MPLS(label=17, s=1, ttl=9) / packet,
        OUTER / IP(src="192.0.2.1", dst="192.0.2.2", proto=4) / packet,
        OUTER / IP(src="192.0.2.1", dst="192.0.2.2", proto=4) / IP4 / UDP(sport=1, dport=4789) / VXLAN(vni=7) / whole,
    ]


def is_plain(frame):
    """IPv4 without options, not a fragment, and not a tunnel itself, nor an error of ICMP with another packet in it."""
    return (
        frame[12:15] == b"\x08\x00\x45"
        and not int.from_bytes(frame[20:22]) & 0x3FFF
        and frame[23] in (1, 6, 17)
        and (frame[23] != 1 or frame[34] in (0, 8))
        and 60 <= len(frame) <= 1200
        and 14 + int.from_bytes(frame[16:18]) <= len(frame)
        and not {4789, 6081, 2152} & {int.from_bytes(frame[i : i + 2]) for i in (34, 36)}
    )


@pytest.fixture(scope="module")
def frames(corpus_files):
    plain = [f for path in corpus_files for f in pcap.frames(path) if is_plain(f)]
    some = plain[:: max(len(plain) // 100, 1)]
    inner = (UDP(dport=53), TCP(dport=80), ICMP())
    named = [raw(OUTER / IP(src="10.1.2.3", dst="10.1.2.4") / one / bytes(30)) for one in inner]
    return [raw(frame) for one in some + named for frame in tunnels(one)]


@pytest.fixture(scope="module")
def source(frames, tmp_path_factory):
    return pcap.write(tmp_path_factory.mktemp("inner") / "tunnels.pcap", frames)


def test_as_tshark_finds_them(testpmd, record, frames, source):
    pmd = testpmd(
        f"net_pcap0,rx_pcap={source},tx_pcap=/dev/null",
        "net_null1",
        args=["--no-flush-rx", "--forward-mode=rxonly"],
    )
    options = ("--on-full", "wait", "--buffer", "1M", "--inner", "-f")
    recorders = {f: record(pmd, *options, f, ports=["net_pcap0"]) for f in FILTERS}
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] >= len(frames), what="all frames played")
    pmd.stop()
    for expression, recorder in recorders.items():
        recorder.finish()
        file = recorder.file()
        check_sums(file)
        found = check(["tshark", "-r", source, "-Y", FILTERS[expression], "-T", "fields", "-e", "frame.number"])
        expected = [frames[int(number) - 1] for number in found.split()]
        assert 0 < len(expected) < len(frames)
        assert [p.data for p in packets_of(file, "net_pcap0")] == expected, expression
