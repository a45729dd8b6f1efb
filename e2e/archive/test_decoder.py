# SPDX-License-Identifier: BSD-3-Clause
"""Each row of the index has tshark's fields of the packet; damaged fields are null, and nothing crashes."""

import random
import struct

import pytest
from harness import corpus
from harness.dissected import differences
from harness.paths import REPO
from harness.pcapng_write import File
from scapy.all import GRE, IP, TCP, UDP, Dot1Q, Ether, IPv6, IPv6ExtHdrHopByHop, Raw
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.layers.vxlan import VXLAN

pa = pytest.importorskip("pyarrow")
pytest.importorskip("ringtap_archive", reason=f"not in this environment: {REPO / 'archive'}")
from ringtap_archive import decoder, schema  # noqa: E402
from ringtap_archive.errors import Refused  # noqa: E402

# With addresses: scapy would ask the network for them.
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
SECOND, HOUR = 10**9, 3600 * 10**9
START = 1_700_000_000 * SECOND // HOUR * HOUR


def rows(path, **options):
    """All rows, valid and of the schema, and the damage of the file. By flow, the rows are the same in another order."""
    found = decoded(path, **options)
    assert decoded(path, by_flow=True, **options) == found
    return found[0], found[2]


def decoded(path, **options):
    """Rows in the order of the file, flows and damage."""
    out, flows = [], []
    with decoder.open(path, **options) as d:
        for part in d.parts():
            found = []
            for batch in part.batches():
                batch.validate(full=True)
                assert batch.schema.equals(schema.PACKETS)
                found += batch.to_pylist()
            out += sorted(found, key=lambda row: row["file_offset"]) if options.get("by_flow") else found
            if options.get("flows", True):
                part.flows().validate(full=True)
                assert part.flows().schema.equals(schema.FLOWS)
                flows += part.flows().to_pylist()
        return out, flows, d.torn


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """All packets of the corpus."""
    found = []
    for path in corpus.make(tmp_path_factory.mktemp("corpus")):
        with decoder.open(path, flows=False) as d:
            for part in d.parts():
                for batch in part.batches():
                    for at, captured in zip(batch["file_offset"].to_pylist(), batch["captured"].to_pylist()):
                        found.append(d.read(at + 28, captured))
    assert len(found) >= len(corpus.KINDS) * corpus.COUNT
    return found


@pytest.fixture(scope="module")
def whole(frames, tmp_path_factory):
    path = _write(tmp_path_factory.mktemp("whole") / "whole.pcapng", [(data, len(data)) for data in frames])
    return path, rows(path)[0]


def _write(path, packets):
    f = File().section().interface(1, 0, (9, b"\x09"))
    for i, (data, length) in enumerate(packets):
        f.packet(data, START + i * 1000, length=length)
    return f.write(path)


@pytest.mark.smoke
@pytest.mark.parametrize("packets", ["all", *corpus.LEFT_OUT])
def test_all_of_the_corpus(whole, packets):
    path, found = whole
    assert differences(found, path) == []
    for column in ("vlan", "ip_id", "tcp_flags", "tunnel", "inner_src_port", "flow_id", "digest"):
        assert sum(row[column] is not None for row in found) >= 20, column
    assert {row["tunnel"] for row in found} >= {"vxlan", "gre"}


def test_truncated_packets(frames, whole, tmp_path):
    """Fields that are cut off are null; the rest of a cut header equals that of the whole packet."""
    chance = random.Random(1)
    cut = [(data[: chance.randrange(min(len(data), 130) + 1)], len(data)) for data in frames]
    path = _write(tmp_path / "cut.pcapng", cut)
    found, torn = rows(path)
    assert torn is None and differences(found, path, whole=whole[1]) == []
    assert sum(row["src_port"] is None and row["src"] is not None for row in found) > 100


def test_damaged_packets(frames, tmp_path):
    chance = random.Random(2)
    damaged = []
    for data in frames:
        data = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 4))):
            data[chance.randrange(min(len(data), 90))] = chance.choice((0, 255, chance.randrange(256)))
        damaged.append((bytes(data), len(data)))
    path = _write(tmp_path / "damaged.pcapng", damaged)
    found, torn = rows(path)
    assert torn is None and differences(found, path) == []


def test_tunnels(tmp_path):
    inner = IP(src="192.168.1.1", dst="192.168.1.2", id=7) / TCP(sport=1000, dport=2000)
    inner6 = IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=53, dport=4000) / b"data"
    outer = ETHER / IP(src="10.0.0.1", dst="10.0.0.2", id=9)
    packets = [
        outer / UDP(dport=4789) / VXLAN(vni=77) / ETHER / Dot1Q(vlan=3) / inner,
        outer / UDP(dport=8472) / VXLAN(vni=0xFFFFFF) / ETHER / inner6,
        outer / UDP(sport=4789, dport=9) / VXLAN(vni=1) / ETHER / inner,
        outer / GRE() / inner,
        outer / GRE(key_present=1, key=0xFFFFFFFE) / inner6,
        outer / GRE(chksum_present=1, key_present=1, seqnum_present=1, key=5) / inner,
        outer / GRE(proto=0x6558, key_present=1, key=6) / ETHER / inner,
        outer / GRE(version=1, key_present=1, key=6) / Raw(b"x" * 20),
        outer / UDP(dport=2152) / GTP_U_Header(teid=0x12345678) / inner,
        outer / UDP(dport=2152) / GTP_U_Header(teid=3, S=1, seq=4) / inner6,
        outer / UDP(dport=2152) / GTP_U_Header(teid=4, E=1) / GTPPDUSessionContainer(type=1, QFI=3) / inner,
        outer / UDP(dport=2152) / GTP_U_Header(teid=0, gtp_type=1) / Raw(b"\x0e\x00"),
        ETHER
        / IPv6(src="2001:db8::a", dst="2001:db8::b")
        / IPv6ExtHdrHopByHop()
        / UDP(dport=4789)
        / VXLAN(vni=9)
        / ETHER
        / inner6,
    ]
    path = _write(tmp_path / "tunnels.pcapng", [(bytes(p), len(bytes(p))) for p in packets])
    found, _ = rows(path)
    assert differences(found, path) == []
    assert [(row["tunnel"], row["tunnel_id"]) for row in found] == [
        ("vxlan", 77),
        ("vxlan", 0xFFFFFF),
        (None, None),
        ("gre", None),
        ("gre", 0xFFFFFFFE),
        ("gre", 5),
        ("gre", 6),
        (None, None),
        ("gtpu", 0x12345678),
        ("gtpu", 3),
        ("gtpu", 4),
        (None, None),
        ("vxlan", 9),
    ]
    assert sum(row["inner_src_port"] is not None for row in found) == 10


def test_link_types(tmp_path):
    ip, ip6 = (
        bytes(net / UDP(sport=5, dport=6) / b"data")
        for net in (IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="::2", dst="::3"))
    )
    sll = struct.pack(">HHH8sH", 0, 1, 6, bytes(8), 0x0800)
    sll2 = struct.pack(">HHIHBB8s", 0x86DD, 0, 1, 1, 4, 6, bytes(8))
    packets = [
        (1, bytes(ETHER)[:12] + b"\x08\x00" + ip),
        (101, ip),
        (101, ip6),
        (12, ip),
        (228, ip),
        (229, ip6),
        (113, sll + ip),
        (276, sll2 + ip6),
        (0, struct.pack("<I", 2) + ip),
        (0, struct.pack(">I", 30) + ip6),
        (0, struct.pack("<I", 28) + ip6),
        (108, struct.pack(">I", 2) + ip),
        (108, struct.pack(">I", 24) + ip6),
        (105, b"\x08\x01" + bytes(30)),
    ]
    f = File().section()
    for linktype, _ in packets:
        f.interface(linktype, 0, (9, b"\x09"))
    for i, (_, data) in enumerate(packets):
        f.packet(data, START + i, i)
    path = f.write(tmp_path / "links.pcapng")
    found, _ = rows(path)
    assert differences(found, path) == []
    assert [row["src_port"] for row in found] == [5] * (len(packets) - 1) + [None]
    assert [row["interface"] for row in found] == list(range(len(packets)))


def test_blocks_times_and_options_of_both_byte_orders(tmp_path):
    """Sections of both orders in one file; interfaces are counted over all of them."""
    data = bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1, dport=2) / b"odd")
    f = File()
    for order in "<>":
        f.order = order
        f.section((1, b"a comment"), (4, b"tests"))
        f.interface(1, 0)  # microseconds
        f.interface(1, 0, (2, b"eth0"), (9, b"\x09"), (14, f.pack("q", 100)))
        f.interface(1, 40, (9, bytes([0x80 | 20])))
        f.packet(data, START // 1000 + 1, 0)
        f.packet(
            data,
            START + 2,
            1,
            options=[
                (2, f.pack("I", 1)),
                (6, f.pack("I", 3)),
                (5, f.pack("Q", 1 << 63 | 5)),
                (3, b"\x05" + f.pack("I", 0xDEADBEEF)),
                (4, f.pack("Q", 7)),
            ],
        )
        f.packet(data, START + 3, 1, options=[(1, b"comment"), (2, f.pack("I", 2)), (6, f.pack("I", 65535))])
        f.packet(data, (START // SECOND << 20) + 5, 2)
        f.obsolete(data, START // 1000 + 9, 0, drops=4, options=[(2, f.pack("I", 1))])
    path = f.write(tmp_path / "blocks.pcapng")
    found, torn = rows(path)
    assert torn is None and differences(found, path) == []
    assert [row["interface"] for row in found] == [0, 1, 1, 2, 0, 3, 4, 4, 5, 3]
    assert [row["queue"] for row in found] == 2 * [None, 3, 65535, None, None]
    assert [row["rss_hash"] for row in found] == 2 * [None, 0xDEADBEEF, None, None, None]
    with decoder.open(path) as d:
        (part,) = d.parts()
        part.finish()
    assert [(loss["interface"], loss["queue"], loss["packets"]) for loss in part.losses] == [
        (1, 3, 7),
        (0, None, 4),
        (4, 3, 7),
        (3, None, 4),
    ]
    assert part.interfaces[1]["name"] == "eth0" and part.section["application"] == "tests"


def test_simple_packets_have_the_time_of_the_packet_before(tmp_path):
    data = bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / bytes(100))
    f = (
        File()
        .section()
        .interface(1, 60, (9, b"\x09"))
        .packet(data[:60], START, length=len(data))
        .simple(data[:60], len(data))
    )
    found, _ = rows(f.write(tmp_path / "simple.pcapng"))
    assert [(row["time_ns"], row["captured"], row["length"]) for row in found] == [(START, 60, len(data))] * 2


def test_offsets_parts_and_cuts(tmp_path):
    """A file over three hours: each part is a file that tshark reads, with the rows' packets at their offsets."""
    f = File().section((3, b"Linux")).interface(1, 0, (2, b"alpha"), (9, b"\x09"))
    one = bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / bytes(900))
    data = [one[:18] + struct.pack(">H", i) + one[20:] for i in range(4000)]
    hours = [0] * 1500 + [1] * 1500 + [0] * 10 + [3] * 990  # ten are late
    for i, (packet, hour) in enumerate(zip(data, hours)):
        f.packet(packet, START + hour * HOUR + i)
        if i == 1400:
            f.interface(1, 0, (2, b"later"), (9, b"\x09"))
    path, seen, at = f.write(tmp_path / "hours.pcapng"), 0, 0
    with decoder.open(path) as d:
        for number, part in enumerate(d.parts()):
            found = [row for batch in part.batches() for row in batch.to_pylist()]
            own = tmp_path / f"part{number}.pcapng"
            own.write_bytes(part.header + d.read(part.begin, part.end - part.begin))
            assert part.begin == at and all(part.begin < cut < part.end for cut in part.cuts)
            at = part.end
            assert len(part.cuts) == (part.end - part.begin) // (1 << 20)
            content = own.read_bytes()
            for row in found:
                offset = row["file_offset"]
                assert content[offset + 28 : offset + 28 + row["captured"]] == data[seen]
                seen += 1
            assert differences(found, own) == []
            assert [i["name"] for i in part.interfaces] == ["alpha", "later"]
            assert (part.first_ns, part.last_ns) == (min(r["time_ns"] for r in found), max(r["time_ns"] for r in found))
            assert part.late == (number == 1)
    assert seen == 4000 and number == 2 and at == path.stat().st_size


def test_torn_files_end_where_they_are_torn(tmp_path):
    data = bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP())
    f = File().section().interface(1, 0, (9, b"\x09"))
    ends = [len(f.packet(data, START + i).data) for i in range(20)]
    path = tmp_path / "torn.pcapng"
    for cut in random.Random(3).sample(range(60, len(f.data)), 40):
        path.write_bytes(f.data[:cut])
        found, torn = rows(path)
        good = [end for end in ends if end <= cut]
        assert len(found) == len(good)
        assert (torn is None) == (cut in ends) or cut < ends[0]
        with decoder.open(path) as d:
            (part,) = d.parts()
            part.finish()
            assert part.end == max(good, default=part.end)
    path.write_bytes(f.data[: ends[3]] + b"garbage " * 10)
    found, torn = rows(path)
    assert len(found) == 4 and str(ends[3]) in torn


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "none"
    for content in (b"", b"\x0a\x0d", b"no recording" * 10, b"\xd4\xc3\xb2\xa1"):
        path.write_bytes(content)
        with pytest.raises(Refused, match="none"):
            decoder.open(path)
    with pytest.raises(Refused, match="missing"):
        decoder.open(tmp_path / "missing")


def test_classic_pcap_files(frames, tmp_path):
    """Both byte orders and units; the conversion keeps packets and times."""
    for order, magic, unit in (
        ("<", 0xA1B2C3D4, 1000),
        (">", 0xA1B2C3D4, 1000),
        ("<", 0xA1B23C4D, 1),
        (">", 0xA1B23C4D, 1),
    ):
        path, made = tmp_path / "classic.pcap", tmp_path / "made.pcapng"
        content = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, 1)
        for i, data in enumerate(frames[:300]):
            content += struct.pack(order + "IIII", START // SECOND, i * 7, len(data), len(data) + 3) + data
        path.write_bytes(content)
        found, torn = rows(path)
        assert torn is None and differences(found, path) == []
        assert [row["time_ns"] for row in found] == [START + i * 7 * unit for i in range(300)]
        with decoder.open(path) as d:
            assert d.converted
            d.convert(made)
        assert rows(made)[0] == found
    path.write_bytes(content[:-5])
    found, torn = rows(path)
    assert len(found) == 299 and "middle of a packet" in torn


def test_lean_rows_and_rows_without_digest(whole):
    path, full = whole
    found, _ = rows(path, lean=True, digest=False, flows=False)
    left_out = {"tcp_seq", "ip_id", "digest"}
    assert all(row[column] is None for row in found for column in left_out)
    assert [{k: v for k, v in row.items() if k not in left_out} for row in found] == [
        {k: v for k, v in row.items() if k not in left_out} for row in full
    ]


def test_batches_outlive_their_decoder(whole):
    path, full = whole
    with decoder.open(path) as d:
        batches = [batch for part in d.parts() for batch in part.batches()]
    assert pa.Table.from_batches(batches).to_pylist() == full


def test_losses_are_counted_once(tmp_path):
    """Losses before a packet and further losses in statistics count, but not those of the capture's other files."""
    data = bytes(ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP())
    f = File().section().interface(1, 0, (9, b"\x09"))

    def statistics(ns, nic, lost, delivered):
        f.statistics(0, ns, (5, f.pack("Q", nic)), (7, f.pack("Q", lost)), (8, f.pack("Q", delivered)))

    f.packet(data, START, options=[(4, f.pack("Q", 7)), (2, f.pack("I", 1)), (6, f.pack("I", 2))])
    statistics(START + SECOND, 3, 10, 1)
    f.packet(data, START + 2 * SECOND, options=[(4, f.pack("Q", 2))])
    f.packet(data, START + 2 * SECOND + 1, options=[(4, f.pack("Q", 4))])
    statistics(START + 5 * SECOND, 5, 20, 3)
    f.section().interface(1, 0, (9, b"\x09")).packet(data, START + 6 * SECOND)
    statistics(START + 7 * SECOND, 50, 1000, 1000)  # 999 of these packets are in files before
    f.packet(data, START + 8 * SECOND, options=[(4, f.pack("Q", 100))])
    statistics(START + 9 * SECOND, 50, 1100, 1001)
    with decoder.open(f.write(tmp_path / "losses.pcapng")) as d:
        part = next(d.parts())
        part.finish()
    found = [
        (loss["time_ns"] - START, loss["reason"], loss["packets"], loss["queue"], loss["direction"])
        for loss in part.losses
    ]
    assert found == [
        (0, "capture", 7, 2, "rx"),
        (SECOND, "capture", 3, None, None),
        (SECOND, "nic", 3, None, None),
        (2 * SECOND, "capture", 6, None, None),
        (5 * SECOND, "capture", 4, None, None),
        (5 * SECOND, "nic", 2, None, None),
        (8 * SECOND, "capture", 100, None, None),
    ]
    assert part.interfaces[1]["statistics"]["os_dropped"] == 1100
