# SPDX-License-Identifier: BSD-3-Clause
"""Flows, identifiers and digests of the index against plain references over tshark's fields."""

import collections
import itertools
import math
import random
import struct

import pytest
from harness import archiving, dissected, pcapng
from harness.paths import REPO
from harness.pcapng_write import File
from scapy.all import (
    ICMP,
    IP,
    TCP,
    UDP,
    Dot1Q,
    Ether,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    Raw,
    fragment,
)
from scapy.layers.sctp import SCTP, SCTPChunkData

pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("ringtap_archive", reason=f"not in this environment: {REPO / 'archive'}")
from ringtap_archive import decoder, generate  # noqa: E402

START = 1_700_000_000 * 10**9 // (3600 * 10**9) * 3600 * 10**9
K0, K1, MASK = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, (1 << 64) - 1
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FIN, SYN, RST, ACK = 1, 2, 4, 16


def write(path, packets):
    f = File().section().interface(1, 0, (9, b"\x09"))
    for i, data in enumerate(packets):
        f.packet(bytes(data), START + i * 1000)
    return f.write(path)


# ---- identifiers, as decoder.h has them ----


def mix(a, b):
    return (a * b & MASK) ^ (a * b >> 64)


def hashed(data):
    """Hash of whole words."""
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    h = len(words)
    for word in words:
        h = mix(word ^ K0, h ^ K1)
    return h


def flow_id(src, dst, protocol, src_port, dst_port):
    (a, a_port), (b, b_port) = sorted([(src, src_port or 0), (dst, dst_port or 0)])
    h = hashed(a + b + struct.pack("<Q", a_port | b_port << 16 | protocol << 32))
    return h - (1 << 64) if h >> 63 else h


CHECKSUMS = {6: (16, 18), 17: (6, 8), 1: (2, 4), 58: (2, 4), 132: (8, 12)}
HEADERS = {17: 8, 1: 8, 58: 8, 132: 12}


def digest(frame):
    """Digest of an Ethernet frame with an IP packet, by scapy's reading of it."""
    packet = Ether(frame)
    if IP in packet:
        ip = packet[IP]
        raw = bytes(ip.original)[: ip.len]
        src, dst = (dissected.address(a) for a in (ip.src, ip.dst))
        number, more, offset, protocol, length = ip.id, "MF" in ip.flags, ip.frag, ip.proto, ip.len
        payload, wire = raw[ip.ihl * 4 :], ip.len - ip.ihl * 4
    else:
        ip = packet[IPv6]
        src, dst = (dissected.address(a) for a in (ip.src, ip.dst))
        raw = bytes(ip.original)[40 : 40 + ip.plen]
        number = more = offset = 0
        protocol, length, payload, wire = ip.nh, ip.plen, raw, ip.plen
        while protocol in (0, 43, 44, 60) and not offset:
            size = 8 if protocol == 44 else 8 + 8 * payload[1]
            if protocol == 44:
                offset, more, number = (
                    struct.unpack(">H", payload[2:4])[0] >> 3,
                    payload[3] & 1,
                    struct.unpack(">I", payload[4:8])[0],
                )
            protocol, payload, wire = payload[0], payload[size:], wire - size
    header = 0 if offset else max(20, (payload[12] >> 4) * 4) if protocol == 6 else HEADERS.get(protocol, 0)
    n = min(header + 64, wire)
    if len(payload) < n:
        n = header + (len(payload) - header) // 16 * 16
    data = bytearray(payload[:n])
    if not offset and protocol in CHECKSUMS:
        first, end = CHECKSUMS[protocol]
        data[first:end] = bytes(end - first)
    head = (
        src
        + dst
        + struct.pack(
            "<IHBBII", number, offset | (0x8000 if more else 0), protocol, 6 if IPv6 in packet else 4, length, n
        )
    )
    data = head + bytes(data)
    h = hashed(data + bytes(-len(data) % 8))
    return (h ^ h >> 32) & 0xFFFFFFFF


def kinds():
    """Packets of each kind that a digest tells apart."""
    text = bytes(range(200))
    ip, ip6 = IP(src="10.0.0.9", dst="10.0.0.2", id=77), IPv6(src="2001:db8::9", dst="2001:db8::2")
    for net in (ip, ip6):
        for n in (0, 3, 40, 64, 100):
            yield net / UDP(sport=5, dport=6) / Raw(text[:n])
            yield (
                net
                / TCP(sport=5, dport=6, seq=9, options=[("MSS", 1460), ("Timestamp", (1, 2))][: n % 3])
                / Raw(text[:n])
            )
            yield net / SCTP(sport=5, dport=6) / SCTPChunkData(data=text[:n])
        yield net / Raw(text) if net is ip6 else net.copy() / Raw(text)
    yield ip / ICMP() / text
    yield ip6 / ICMPv6EchoRequest(data=text)
    yield from fragment(ip / UDP(sport=5, dport=6) / Raw(text * 10), 600)
    yield ip6 / IPv6ExtHdrHopByHop() / UDP(sport=1, dport=2) / text
    yield ip6 / IPv6ExtHdrFragment(offset=0, m=1, id=99, nh=17) / UDP(sport=1, dport=2) / text
    yield ip6 / IPv6ExtHdrFragment(offset=30, m=0, id=99, nh=17) / Raw(text)


def test_identifiers_are_those_of_the_formula(tmp_path):
    frames = [bytes(ETHER / packet) for packet in kinds()]
    rows, flows = archiving.decode(write(tmp_path / "kinds.pcapng", frames))
    assert [row["digest"] for row in rows] == [digest(frame) for frame in frames]
    assert [row["flow_id"] for row in rows] == [
        flow_id(row["src"], row["dst"], row["protocol"], row["src_port"], row["dst_port"]) for row in rows
    ]
    assert len({row["digest"] for row in rows}) == len(rows)
    assert [flow["flow_id"] for flow in flows] == sorted({row["flow_id"] for row in rows})


def test_digests_do_not_change_on_the_way(tmp_path):
    """TTL, DSCP, checksums, MAC addresses and VLAN tags do not change a digest; all other fields do."""
    before, after = [], []
    for packet in kinds():
        before.append(bytes(ETHER / packet))
        moved = packet.copy()
        moved = moved.__class__(bytes(moved))
        if IP in moved:
            moved[IP].ttl, moved[IP].tos = 3, 0xB9
        else:
            moved[IPv6].hlim, moved[IPv6].tc = 3, 0xB9
        for layer in (IP, TCP, UDP, ICMP):
            if layer in moved and (layer is IP or not moved[IP].frag if IP in moved else True):
                moved[layer].chksum = 0x1234
        after.append(bytes(Ether(src="02:00:00:00:00:09", dst="02:00:00:00:00:08") / Dot1Q(vlan=7) / moved))
    first, second = (
        archiving.decode(write(tmp_path / name, frames))[0] for name, frames in (("a", before), ("b", after))
    )
    assert [row["digest"] for row in first] == [row["digest"] for row in second]
    chance, changed = random.Random(4), []
    for frame in before:
        at = 26 + chance.randrange(4)  # a byte of an address
        changed.append(frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :])
    third = archiving.decode(write(tmp_path / "c", changed))[0]
    assert not {row["digest"] for row in first} & {row["digest"] for row in third}


def test_snaplen_cuts_digests_at_whole_units(tmp_path):
    frame = bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / bytes(range(200)))
    found = {}
    for captured in range(30, 120):
        f = File().section().interface(1, 0, (9, b"\x09")).packet(frame[:captured], START, length=len(frame))
        found[captured] = archiving.decode(f.write(tmp_path / "cut"))[0][0]["digest"]
        if captured >= 42:
            assert found[captured] == digest(frame[:captured])
    assert all(found[captured] is None for captured in range(30, 42))
    assert len({found[captured] for captured in range(42, 106)}) == 4 and found[106] == found[119] == digest(frame)


# ---- flows ----


class Side:
    """Ranges that an end of a TCP connection has sent, in numbers that do not wrap around."""

    def __init__(self, seq):
        self.last, self.isn, self.seen = seq, None, []

    def unwrapped(self, seq):
        distance = (seq - self.last) & 0xFFFFFFFF
        return self.last + (distance - (1 << 32) if distance >> 31 else distance)

    def repeats(self, begin, end):
        covered, at = True, begin
        for first, last in sorted(self.seen):
            if last <= at:
                continue
            if first > at:
                break
            at = last
        covered = at >= end
        self.seen.append((begin, end))
        self.last = max(self.last, end)
        return covered


class Flow:
    def __init__(self, row):
        self.ends, self.packets, self.bytes, self.flags, self.again, self.rtt = row["ends"], [0, 0], [0, 0], 0, 0, None
        self.first = self.last = row["time_ns"]
        self.sides, self.points, self.shake = [None, None], [None, None], {}

    def add(self, row, values):
        end = int(row["ends"] != self.ends)
        self.packets[end] += 1
        self.bytes[end] += row["length"]
        self.first, self.last = min(self.first, row["time_ns"]), max(self.last, row["time_ns"])
        if row["tcp_flags"] is not None:
            self.flags |= row["tcp_flags"]
            self.points[end] = self.points[end] or row["point"]
            if self.points[end] == row["point"] and values["tcp.len"]:
                self.segment(row, end, int(values["tcp.len"][0]), int(values["tcp.ack_raw"][0]))

    def segment(self, row, end, length, ack):
        flags, seq = row["tcp_flags"], row["tcp_seq"]
        if flags & (SYN | ACK | RST) == SYN:
            self.shake = {"opener": end, "ns": row["time_ns"], "seq": seq}
        elif flags & (SYN | ACK | RST) == SYN | ACK:
            if self.shake.get("opener") == 1 - end and ack == self.shake["seq"] + 1 & 0xFFFFFFFF:
                self.shake["answer"] = seq
        elif flags & (SYN | ACK | RST) == ACK and self.shake.get("opener") == end and "answer" in self.shake:
            if (seq, ack) == (self.shake["seq"] + 1 & 0xFFFFFFFF, self.shake["answer"] + 1 & 0xFFFFFFFF):
                self.rtt = row["time_ns"] - self.shake["ns"] if self.rtt is None else self.rtt
                self.shake = {}
        size = length + bool(flags & SYN) + bool(flags & FIN)
        if not size or flags & RST:
            return
        side = self.sides[end]
        if side is None or (flags & SYN and side.isn != seq):
            side = self.sides[end] = Side(seq)
            side.isn = seq if flags & SYN else None
        begin = side.unwrapped(seq)
        if not (length == size == 1 and begin == side.last - 1):
            self.again += side.repeats(begin, begin + size)


def reference(path):
    """The flows of all packets, out of tshark's fields."""
    flows = {}
    interfaces = [packet.interface for packet in pcapng.read(path).packets]
    for values, interface in zip(dissected.fields(path), interfaces, strict=True):
        row = dissected.row(values)
        if row["src"] is None or row["protocol"] is None:
            continue
        row["ends"] = (row["src"], row["src_port"] or 0), (row["dst"], row["dst_port"] or 0)
        row["point"] = interface, row["direction"]
        key = frozenset(row["ends"]), row["protocol"]
        flows.setdefault(key, Flow(row)).add(row, values)
    return flows


def compare(found, expected):
    assert len(found) == len(expected)
    for flow in found:
        ends = (flow["src"], flow["src_port"] or 0), (flow["dst"], flow["dst_port"] or 0)
        right = expected[frozenset(ends), flow["protocol"]]
        is_tcp = flow["protocol"] == 6
        assert ends == right.ends
        assert flow["flow_id"] == flow_id(
            flow["src"], flow["dst"], flow["protocol"], flow["src_port"], flow["dst_port"]
        )
        assert ([flow["packets_ab"], flow["packets_ba"]], [flow["bytes_ab"], flow["bytes_ba"]]) == (
            right.packets,
            right.bytes,
        )
        assert (flow["first_ns"], flow["last_ns"]) == (right.first, right.last)
        assert (flow["tcp_flags"], flow["retransmissions"]) == (
            (right.flags, right.again) if is_tcp else (None, None)
        ), flow
        assert flow["rtt_ns"] == right.rtt, flow


@pytest.mark.smoke
def test_flows_of_realistic_traffic(tmp_path):
    path = tmp_path / "realistic.pcapng"
    generate.write(path, packets=6_000, flows=150, seed=5)
    rows, flows = archiving.decode(path)
    expected = reference(path)
    compare(flows, expected)
    assert sum(flow["packets_ab"] + flow["packets_ba"] for flow in flows) == sum(
        row["flow_id"] is not None for row in rows
    )
    measured, again = collections.defaultdict(set), 0  # by tshark, of each connection
    for values in dissected.fields(path):
        row = dissected.row(values)
        again += bool(values["tcp.analysis.retransmission"]) and row["tcp_flags"] is not None  # not those in tunnels
        if values["tcp.analysis.initial_rtt"] and row["protocol"] == 6:
            key = flow_id(row["src"], row["dst"], 6, row["src_port"], row["dst_port"])
            measured[key].add(round(float(values["tcp.analysis.initial_rtt"][0]) * 1e9))
    assert sum(flow["retransmissions"] or 0 for flow in flows) == again > 5
    times = {flow["flow_id"]: flow["rtt_ns"] for flow in flows if flow["rtt_ns"] is not None}
    assert len(times) > 50 and sum(times[key] in found for key, found in measured.items() if key in times) > 0.9 * len(
        times
    )


def test_lost_reordered_and_repeated_segments(tmp_path):
    """Conversations with faults, sequence numbers that wrap around, ports that are used again, and what keeps one open."""
    chance, packets = random.Random(6), []
    for number in range(30):
        ends = [{"src": f"10.0.0.{number}", "dst": "10.1.0.1"}, {"src": "10.1.0.1", "dst": f"10.0.0.{number}"}]
        ports = [{"sport": 1000 + number, "dport": 80}, {"sport": 80, "dport": 1000 + number}]
        for _ in range(chance.choice((1, 1, 2))):
            seq = [chance.choice((0xFFFFFF00, chance.getrandbits(32))) for _ in range(2)]

            def segment(end, flags, at, size=0):
                tcp = TCP(
                    flags=flags, seq=at & 0xFFFFFFFF, ack=seq[1 - end] & 0xFFFFFFFF if "A" in flags else 0, **ports[end]
                )
                packets.append(ETHER / IP(**ends[end]) / tcp / Raw(bytes(size)))

            for _ in range(chance.choice((1, 1, 2))):
                segment(0, "S", seq[0])
            seq[0] += 1
            segment(1, "SA", seq[1])
            seq[1] += 1
            segment(0, "A", seq[0])
            sizes = [chance.randrange(1, 200) for _ in range(20)]
            sent = list(itertools.accumulate(sizes, initial=seq[0]))
            order = [i for i in range(20) if chance.random() > 0.1]  # the others are lost
            for i in range(len(order) - 1):
                if chance.random() < 0.15:
                    order[i], order[i + 1] = order[i + 1], order[i]
            for i in order:
                for _ in range(chance.choice((1, 1, 1, 2))):
                    segment(0, "PA", sent[i], sizes[i])
            segment(0, "A", sent[order[-1]] + sizes[order[-1]] - 1, 1)
            segment(0, "FA", sent[20])
            segment(1, "RA", seq[1])
    path = write(tmp_path / "faults.pcapng", packets)
    flows = archiving.decode(path)[1]
    expected = reference(path)
    compare(flows, expected)
    assert sum(flow.again for flow in expected.values()) > 50


def percentile(values, percent):
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def test_latency_and_fates_of_each_flow(tmp_path):
    """A forwarder's recording with ids and fates; packets outside of the file have no entry."""
    path = tmp_path / "forwarded.pcapng"
    generate.write(path, packets=8_000, flows=80, seed=7, ids=True, fates=True, loss=0.01)
    file = pcapng.read(path)
    rows, flows = archiving.decode(path)
    received, times, outcome = {}, collections.defaultdict(list), collections.defaultdict(collections.Counter)
    for row in rows:
        if row["direction"] == "rx" and row["flow_id"] is not None:
            outcome[row["flow_id"]]["received"] += 1
            received[row["packet_id"]] = row
        elif row["direction"] == "tx" and row["packet_id"] in received:
            origin = received[row["packet_id"]]
            times[origin["flow_id"]].append(row["time_ns"] - origin["time_ns"])
    names = {
        pcapng.NOT_OFFERED: "not_offered",
        pcapng.UNKNOWN: "unknown",
        pcapng.INFERRED: "unknown",
        pcapng.OPEN: "open",
    }
    for fate in file.fates:
        if fate.id in received:
            outcome[received[fate.id]["flow_id"]][names[fate.fate]] += 1
    assert sum(count["not_offered"] for count in outcome.values()) > 5
    for flow in flows:
        count, own = outcome[flow["flow_id"]], times[flow["flow_id"]]
        if own:
            for column, percent in (("latency_p50_ns", 50), ("latency_p99_ns", 99)):
                assert flow[column] == pytest.approx(percentile(own, percent), rel=0.017)
        else:
            assert flow["latency_p50_ns"] is flow["latency_p99_ns"] is None
        if not count["received"]:
            continue
        rest = count["received"] - count["not_offered"] - count["unknown"] - count["open"]
        assert (flow["offered"], flow["not_offered"], flow["open"], flow["unknown"]) == (
            rest,
            count["not_offered"],
            count["open"],
            count["unknown"],
        )
    assert sum(len(own) for own in times.values()) > 4_000


def test_more_flows_than_memory_holds(tmp_path):
    """Flows in the temporary file are merged again: each is one row, in order, with all its packets."""
    path, count = tmp_path / "many.pcapng", 1_300_000
    head = bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2))
    f = File().section().interface(1, 0, (9, b"\x09"))
    f.packet(head, START)
    block = bytes(f.data[-76:])
    with open(path, "wb") as out:
        out.write(f.data[:-76])
        for i in range(count):
            out.write(block[:54] + struct.pack(">I", i) + block[58:])
        for i in range(0, count, 13):  # again, from the other end
            out.write(block[:54] + struct.pack(">I", i) + block[58:])
    for by_flow in (False, True):
        _check_many(path, count, by_flow)


def _check_many(path, count, by_flow):
    with decoder.open(path, digest=False, by_flow=by_flow) as d:
        part = next(d.parts())
        rows = sum(batch.num_rows for batch in part.batches())
        seen, last, twice = 0, None, 0
        for batch in part.flow_batches():
            ids = batch["flow_id"].to_numpy()
            assert (ids[1:] > ids[:-1]).all() and (last is None or ids[0] > last)
            seen, last = seen + len(ids), ids[-1]
            twice += int((batch["packets_ab"].to_numpy() == 2).sum())
    assert rows == count + len(range(0, count, 13)) and seen == count and twice == len(range(0, count, 13))
