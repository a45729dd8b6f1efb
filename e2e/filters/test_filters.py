# SPDX-License-Identifier: BSD-3-Clause
"""A filter in the application selects what tcpdump selects from the same bytes. Each kind of expression:
probe/capture/filter_test.c and filter_loop_test.c have more of them, on more bytes."""

import signal
import struct

import pytest
from harness import pcap, pcapng
from harness.cases import nightly
from harness.known import Measuring
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.ringtap import frames_of

EXPRESSIONS = [
    "ip6",
    "arp",
    "not (ip or ip6)",
    "tcp port 179",
    "udp dst portrange 3000-4000",
    "src net 10.0.0.0/8",
    "ip6 net fe80::/10",
    "ether multicast",
    "ether[0] & 1 = 1",
    "less 64",
    "len > 100 and len <= 200",
    "ip[6:2] & 0x1fff != 0",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "vlan 5 and tcp",
    "vlan and vlan",
    "mpls",
    "udp[ip[0] & 0xf:4] != 0",
    "ip[ip[8] & 0x1f] < 0x20",
    "ip[2:2] / 3 > 100",
    "ip[2:2] % ip[8] = 3",
    "ip[0] << 2 = 276",
    "ip[12:4] > 0xc0000000",
    "ether[len - 64:4] = 0",
    "ether[ether[0:4]:4] = 1",
    "llc",
    # DPDK's verifier would take years for these: too many paths.
    " or ".join(f"(net {10 + 7 * i}.0.0.0/8 and port {(53, 80, 443, 179, 1000 + i)[i % 5]})" for i in range(30)),
    " or ".join(f"host fe80::{i:x}:{i:x}" for i in range(60)) + " or ip6 multicast",
    " and ".join(f"not (net {10 + i}.0.0.0/8 and port {(53, 80, 443, 179, 67)[i % 5]})" for i in range(30)),
]
AT_ONCE = 14  # parallel sessions, which must not affect each other's filters


def groups(items, n):
    return [items[i : i + n] for i in range(0, len(items), n)]


def with_tag(data, tci, tpid=0x8100):
    return data[:12] + struct.pack(">HH", tpid, tci) + data[12:]


@pytest.fixture(scope="module")
def frames(corpus_files):
    """The corpus, and a part of it again with one or two VLAN tags, which are rare in it."""
    plain = [f for path in corpus_files for f in pcap.frames(path)]
    some = [f for f in plain[::7] if len(f) >= 14]
    tagged = [with_tag(f, 5 + i % 3) for i, f in enumerate(some)]
    double = [with_tag(with_tag(f, 5), 7, 0x88A8) for f in some[::5]]
    return plain + tagged + double


@pytest.fixture(scope="module")
def reference(frames, tmp_path_factory):
    folder = tmp_path_factory.mktemp("filters")
    source = pcap.write(folder / "all.pcap", frames)

    def selected(expression):
        out = folder / "selected.pcap"
        check(["tcpdump", "-r", source, "-w", out, expression])
        return pcap.frames(out)

    selected.source = source
    return selected


def compare(recorders, reference):
    for expression, recorder in recorders.items():
        got = [p.data for p in recorder.file().packets]
        expected = reference(expression)
        assert len(got) == len(expected), f"{expression}: {len(got)}, tcpdump has {len(expected)}"
        assert got == expected, expression


@pytest.mark.parametrize("expressions", groups(EXPRESSIONS, AT_ONCE), ids=lambda g: g[0])
def test_same_packets_as_tcpdump(testpmd, record, reference, expressions):
    pmd = testpmd(
        f"net_pcap0,rx_pcap={reference.source},tx_pcap=/dev/null",
        "net_null1",
        args=["--no-flush-rx", "--forward-mode=rxonly"],
    )
    recorders = {
        e: record(pmd, "--on-full", "wait", "--buffer", "1M", "--tags", "as-is", "-f", e, ports=["net_pcap0"])
        for e in expressions
    }
    total = len(pcap.frames(reference.source))
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] >= total, what="all frames played")
    pmd.stop()
    for recorder in recorders.values():
        recorder.finish()
    compare(recorders, reference)


def strip(data):
    """Strips tags as a NIC does: from the frame into arguments of rt_play."""
    if data[12:14] == b"\x88\xa8" and data[16:18] == b"\x81\x00":
        outer, inner = struct.unpack(">H2xH", data[14:20])
        return data[:12] + data[20:], {"vlan": inner, "qinq": outer}
    if data[12:14] == b"\x81\x00":
        return data[:12] + data[16:], {"vlan": struct.unpack(">H", data[14:16])[0]}
    return data, {}


def test_filters_of_tags_in_the_mbuf(play, record, reference, frames):
    """The tags are only in mbuf fields; the filter applies to the frame as in the file."""
    expressions = [
        "vlan",
        "not vlan",
        "vlan 5 and ip",
        "ether[12:2] = 0x8100",
        "vlan and vlan",
        "ip",
        "ether proto 0x88a8",
        "less 68",
    ]
    app = play()
    app.ring("a")
    some = [f for f in frames if len(f) <= 2000][::9] + frames[-60:]
    source = pcap.write(reference.source.with_name("some.pcap"), some)
    options = ("--on-full", "wait", "--buffer", "1M", "--tags", "as-is")
    recorders = {e: record(app, *options, "-f", e) for e in expressions}
    for data in some:
        bare, words = strip(data)
        for direction in ("rx", "tx"):
            app.burst(direction, data=bare, **words)
    for expression, recorder in recorders.items():
        recorder.finish()
        out = source.with_name("selected.pcap")
        check(["tcpdump", "-r", source, "-w", out, expression])
        for direction in (pcapng.RX, pcapng.TX):
            assert frames_of(recorder.file(), direction=direction) == pcap.frames(out), expression
    assert recorders["vlan"].file().packets, "no packet with a tag: this shows nothing"


def test_tagged_packets_match_as_untagged_ones(play, record, frames, tmp_path):
    """The default selects the frames that tcpdump selects without their tags, also if the tags are only in the mbuf."""
    expressions = ["udp", "not udp", "tcp port 179", "arp or ip6", "net 10.0.0.0/8 and not tcp"]
    app = play()
    app.ring("a")
    some = [f for f in frames if 18 <= len(f) <= 1500 and f[12:14] not in (b"\x81\x00", b"\x88\xa8")][::29]
    recorders = {e: record(app, "--on-full", "wait", "--buffer", "1M", "-f", e) for e in expressions}
    variants = []
    for data in some:
        for frame in (data, with_tag(data, 5), with_tag(with_tag(data, 5), 7, 0x88A8)):
            variants.append((data, frame))
            app.burst("rx", data=frame)
            bare, words = strip(frame)
            app.burst("tx", data=bare, **words)
    for expression, recorder in recorders.items():
        recorder.finish()
        out = tmp_path / "selected.pcap"
        check(["tcpdump", "-r", pcap.write(tmp_path / "bare.pcap", some), "-w", out, expression])
        selected = set(pcap.frames(out))
        assert 0 < len(selected) < len(set(some)), expression
        for direction in (pcapng.RX, pcapng.TX):
            expected = [frame for data, frame in variants if data in selected]
            assert frames_of(recorder.file(), direction=direction) == expected, expression


@pytest.mark.parametrize("tags", ["any", nightly("as-is")])
def test_tags_of_flows_and_drops(play, closing, tmp_path, tags):
    """Three frames of UDP, with no tag, one and two, which the application receives and frees."""
    app = play()
    app.ring("a")
    bare = bytes.fromhex("02000000000102000000000208004500002a0000000040110000c0000201c0000202")
    bare += bytes.fromhex("1000003500160000") + bytes(18)
    sent = [bare, with_tag(bare, 5), with_tag(with_tag(bare, 5), 7, 0x88A8)]
    options = ("--once", "--duration", "1h", "--json", "--buffer", "16M", "-f", "udp port 53", "--tags", tags)
    flows = closing(Measuring("flows", app, *options, "--sample", "1"))
    file = tmp_path / "dropped.pcapng"
    drops = closing(Measuring("drops", app, *options, "-w", file))
    for frame in sent:
        assert app.rx(data=frame)[0] == 1
    expected = sent if tags == "any" else sent[:1]
    counts = flows.json(signal.SIGINT)["counts"]
    assert (counts["seen"], counts["captured"], counts["filtered"]) == (3, len(expected), 3 - len(expected))
    assert drops.json(signal.SIGINT)["not_offered"] == 3
    assert sorted(p.data for p in pcapng.read(file).packets) == sorted(expected)


@pytest.mark.smoke
def test_filters_on_chains_of_segments(play, record):
    """The filter reads bytes of the third segment."""
    app = play()
    app.ring("a")
    recorder = record(app, "-f", "ether[40] = 0x42")
    data = bytearray(pcap.frame(120))
    for value in (0x41, 0x42, 0x43):
        data[40] = value
        app.rx(data=bytes(data), seg=16)
    recorder.finish()
    assert [p.data[40] for p in recorder.file().packets] == [0x42]


def test_dump_is_that_of_tcpdump():
    for expression in ("ip", "tcp port 80", "vlan 5 and udp"):
        ours = check([RINGTAP, "record", "-d", "--tags", "as-is", "-f", expression])
        theirs = check(["tcpdump", "-d", "-y", "EN10MB", expression])
        assert [line for line in theirs.splitlines() if line.startswith("(")] == [
            line for line in ours.splitlines() if line.startswith("(")
        ]
