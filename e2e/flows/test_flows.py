# SPDX-License-Identifier: BSD-3-Clause
"""ringtap flows with unmodified programs, against tshark's conversations of the same packets."""

import random
import re
import shlex
import signal
from pathlib import Path

import pytest
from harness import pcap, tmux
from harness.cases import nightly
from harness.known import Measuring
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.prometheus import Exporter
from harness.tmux import Terminal

PACKETS = 100_000


@pytest.fixture
def flows(closing):
    """flows(app, option, ...) counts until it gets a signal, and prints one document then."""
    return lambda app, *args, **kwargs: closing(
        Measuring("flows", app, "--once", "--duration", "1h", "--json", "--limit", "1000", *args, **kwargs)
    )


def udp(flow, length=60):
    """A frame of this flow: source and port are its number."""
    ip = bytes([0x45, 0]) + (length - 14).to_bytes(2, "big") + bytes([0, 0, 0, 0, 64, 17, 0, 0])
    ip += bytes([10, flow >> 16 & 255, flow >> 8 & 255, flow & 255, 192, 0, 2, 1])
    ports = (1024 + flow % 50000).to_bytes(2, "big") + (53).to_bytes(2, "big")
    frame = bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + ports + (length - 34).to_bytes(2, "big")
    return frame + bytes(length - len(frame))


def many_protocols(files):
    """Ethernet frames of many protocols, made and captured; testpmd sends whole frames of up to 1518 bytes."""
    frames = []
    for path in files:
        data = path.read_bytes()
        if int.from_bytes(data[20:24], "little") & 0xFFFF == 1 and data[:4] in (
            b"\xd4\xc3\xb2\xa1",
            b"\x4d\x3c\xb2\xa1",
        ):
            frames += pcap.frames(path)
    return [frame for frame in frames if 14 <= len(frame) <= 1518]


@pytest.fixture
def with_packets(testpmd, tmp_path):
    """A testpmd whose first port receives these frames after its start, and that forwards them to the second."""

    def start(frames):
        file = pcap.write(tmp_path / "in.pcap", frames)
        pmd = testpmd(f"net_pcap0,rx_pcap={file},tx_pcap=/dev/null", "net_null0,no-rx=1", args=("--no-flush-rx",))
        return pmd, file, len(frames)

    return start


def run_all(pmd, count):
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] == count, what="everything is received")
    pmd.stop()


def conversations(file, kind):
    """{(source, destination): packets} as tshark counts conversations, of each direction that has packets."""
    out = {}
    for line in check(["tshark", "-n", "-q", "-r", file, "-z", f"conv,{kind}"]).splitlines():
        if "<->" not in line:
            continue
        a, b, *rest = line.replace("<->", " ").split()
        to_a, _, to_b = [int(word) for word in rest if word.isdigit()][:3]
        out.update({key: n for key, n in (((b, a), to_a), ((a, b), to_b)) if n})
    return out


def sizes(file):
    """{(source, destination): bytes} of UDP over IPv4, as tshark dissects it."""
    out = {}
    names = ("ip.src", "udp.srcport", "ip.dst", "udp.dstport", "frame.len")
    for line in check(["tshark", "-r", file, "-T", "fields", *(x for n in names for x in ("-e", n))]).splitlines():
        src, src_port, dst, dst_port, length = line.split("\t")
        key = f"{src}:{src_port}", f"{dst}:{dst_port}"
        out[key] = out.get(key, 0) + int(length)
    return out


def of_protocol(report, protocol):
    out = {}
    for f in report["flows"]:
        if f["protocol"] != protocol or f["source_port"] is None:
            continue
        key = tuple(
            f"[{a}]:{p}" if ":" in a else f"{a}:{p}"
            for a, p in ((f["source"], f["source_port"]), (f["destination"], f["destination_port"]))
        )
        out[key] = (f["counted"], f["bytes"]["value"])
    return out


@pytest.mark.smoke
def test_all_packets_are_those_of_tshark(with_packets, flows, tmp_path):
    """1000 flows of different sizes: packet by packet and byte by byte."""
    frames = [udp(i % (1 + i % 999), 60 + i % 1400) for i in range(20_000)]
    pmd, file, count = with_packets(frames)
    it = flows(pmd, "--sample", "1")
    run_all(pmd, count)
    report = it.json(signal.SIGINT)
    assert report["counts"] == {"seen": count, "captured": count, "filtered": 0, "not_sampled": 0, "lost": 0}
    expected, length = conversations(file, "udp"), sizes(file)
    assert len(expected) > 500
    assert of_protocol(report, "UDP") == {key: (n, length[key]) for key, n in expected.items()}
    assert report["entries"] == len(expected)


@pytest.mark.nightly
def test_a_hundred_thousand_flows_are_those_of_tshark(fwd, flows, tmp_path):
    """Their number, and the 1000 largest. Most are small (Zipf); a generator sends at a rate at which nothing is lost."""
    count, chance = 300_000, random.Random(1)
    weights = [1 / (k + 1) for k in range(150_000)]
    which = [*range(100_000), *chance.choices(range(len(weights)), weights, k=count - 100_000)]
    file = pcap.write(tmp_path / "in.pcap", [udp(k, 60 + k % 700) for k in which])
    # Flows are counted from the pause on.
    sending = ("--replay", file, "--stages", f"0:10s,{count // 4}:60s", "--packets", count)
    app = fwd("--ring", "a:65536", "--role", "generate:a@0", "--role", "sink:a@1", *sending).running()
    it = flows(app, "--sample", "1", "--max-flows", "400k")
    # Its report comes when all are sent; the probe's last ones are read before the application is gone.
    assert app.done().role("generate")["total"]["tx_packets"] == count
    report = it.json()
    assert report["counts"] == {"seen": count, "captured": count, "filtered": 0, "not_sampled": 0, "lost": 0}
    expected, length = conversations(file, "udp"), sizes(file)
    assert report["entries"] == len(expected) >= 100_000
    found = of_protocol(report, "UDP")
    assert len(found) == 1000 and min(n for n, _ in found.values()) >= sorted(expected.values())[-1000]
    assert found == {key: (expected[key], length[key]) for key in found}


VIEWS = ["5-tuple", "host", "vlan", "vni", "inner"]


@pytest.mark.parametrize("views", [VIEWS, nightly(["pair", "port", "protocol", "dscp", "mac", "queue", "thread"])])
def test_real_packets_of_many_protocols(with_packets, flows, views, corpus_files):
    """Tunnels, fragments, tags, cut and broken headers: each packet is in one entry, in each view."""
    pmd, _file, count = with_packets(many_protocols(corpus_files))
    them = {view: flows(pmd, "--sample", "1", "--view", view) for view in views}
    run_all(pmd, count)
    for view, it in them.items():
        report = it.json(signal.SIGINT)
        assert report["counts"]["captured"] == count, view
        if report["entries"] <= 1000:
            counted = sum(f["counted"] for f in report["flows"])
            # At both hosts, or once where they are one.
            assert count < counted <= 2 * count if view == "host" else counted == count, view
        assert all(0 <= f["share"]["value"] <= 1 and f["share"]["bound"] == 0 for f in report["flows"]), view
        assert report["view"] == view


def test_a_forwarded_packet_counts_once_with_ids(with_packets, flows):
    pmd, _file, count = with_packets([udp(i % 10) for i in range(5000)])
    it = flows(pmd, "--sample", "1", "--ids")
    both = flows(pmd, "--sample", "1", "--direction", "both")
    threads = flows(pmd, "--sample", "1", "--direction", "both", "--view", "thread")
    run_all(pmd, count)
    report = it.json(signal.SIGINT)
    assert [f["counted"] for f in report["flows"]] == [500] * 10
    for f in report["flows"]:
        assert f["forwarded"] == 500 == f["latency"]["count"]
        assert f["received_by"]["port"]["name"] == "net_pcap0" and f["sent_by"]["port"]["name"] == "net_null0"
        p50, p99 = f["latency"]["p50_ns"], f["latency"]["p99_ns"]
        assert 0 < p50["value"] <= p99["value"] <= f["latency"]["max_ns"] < 60e9 and not p50["bound"] + p99["bound"]
    assert [f["counted"] for f in both.json(signal.SIGINT)["flows"]] == [1000] * 10
    (tid,) = [int(t.name) for t in Path(f"/proc/{pmd.pid}/task").iterdir() if "worker-1" in (t / "comm").read_text()]
    found = {f["name"]: (f["thread"], f["counted"]) for f in threads.json(signal.SIGINT)["flows"]}
    thread = {"lcore": 1, "name": "rte-worker-1", "tid": tid}
    assert found == {f"lcore 1 (rte-worker-1, {tid}), {did}": (thread, count) for did in ("received", "sent")}


def test_a_flow_shows_what_the_application_does_not_offer(testpmd, flows, tmp_path):
    """testpmd answers echo requests and drops other packets: 1 % of one flow, all of another."""

    def icmp(host, kind):
        ip = bytes([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, host, 192, 0, 2, 1])
        return bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + bytes([kind]) + bytes(25)

    frames = [frame for _ in range(50) for frame in [icmp(1, 0), *[icmp(1, 8)] * 99, *[icmp(2, 0)] * 3]]
    file = pcap.write(tmp_path / "in.pcap", frames)
    args = ("--no-flush-rx", "--forward-mode=icmpecho")
    pmd = testpmd(f"net_pcap0,rx_pcap={file},tx_pcap=/dev/null", "net_null0,no-rx=1", args=args)
    it = flows(pmd, "--sample", "1", "--fates")
    run_all(pmd, len(frames))
    report = it.json(signal.SIGINT)
    assert report["counts"]["lost"] == 0 == report["not_offered_unread"]
    found = {f["source"]: (f["counted"], f["not_offered"]) for f in report["flows"]}
    assert found == {"10.0.0.1": (5000, 50), "10.0.0.2": (150, 150)}


def test_estimates_of_a_sample_have_bounds(with_packets, flows):
    """A flow of half of the packets: the truth is within twice the bound."""
    pmd, _file, count = with_packets([udp(i % 100 if i % 2 else 0) for i in range(PACKETS)])
    it = flows(pmd, "--sample", "16")
    run_all(pmd, count)
    report = it.json(signal.SIGINT)
    counts = report["counts"]
    assert counts["seen"] == count == counts["captured"] + counts["not_sampled"] + counts["lost"]
    first = report["flows"][0]
    assert first["source_port"] == 1024
    assert abs(first["packets"]["value"] - PACKETS / 2) < 2 * first["packets"]["bound"] + 16 * counts["lost"]
    assert report["entries"] is None and first["latency"] is None


def test_memory_is_bounded(with_packets, flows):
    """Random 5-tuples among a large flow: the table is full, and says so."""
    pmd, _file, count = with_packets([udp(0 if i % 4 == 0 else i) for i in range(PACKETS)])
    it = flows(pmd, "--sample", "1", "--max-flows", "1k")
    run_all(pmd, count)
    report = it.json(signal.SIGINT)
    lost = report["counts"]["lost"]
    assert report["evicted"] > 10_000
    first = report["flows"][0]
    assert first["source_port"] == 1024
    assert first["counted"] <= PACKETS / 4 <= first["counted"] + report["evicted_packets_most"] + lost


def test_the_table_says_what_it_is(with_packets, closing):
    pmd, _file, count = with_packets([udp(i % 3) for i in range(3000)])
    it = closing(Measuring("flows", pmd, "--once", "--duration", "1h", "--sample", "2"))
    run_all(pmd, count)
    text = it.finish(signal.SIGINT)
    assert "3,000 packets seen: " in text and "One of 2 packets is counted" in text
    assert "10.0.0.1:1025 > 192.0.2.1:53 UDP" in text and "±" in text


def test_enter_shows_the_packets_of_a_flow_and_how_to_record_it(testpmd, closing, tmp_path):
    if tmux.missing():
        pytest.skip(tmux.missing())
    file = pcap.write(tmp_path / "in.pcap", [udp(i) for i in (0, 0, 0, 1, 1, 2)])
    pmd = testpmd(f"net_pcap0,rx_pcap={file},infinite_rx=1", "net_null0,no-rx=1")
    pmd.start()
    term = closing(Terminal([RINGTAP, "flows", pmd.prefix, "--sample", "64"], 160, 40, {"LC_ALL": "C.UTF-8"}))
    term.shows(r"10\.0\.0\.1:1025 > ")
    term.keys("Down", "Enter")
    lines = term.shows(
        r"^  \d\d:\d\d:\d\d\.\d{9}  net_pcap0, queue 0 received, 60 bytes: 10\.0\.0\.1:1025 > .* TTL 64$"
    )
    assert not any("10.0.0.0:1024" in line or "10.0.0.2:1026" in line for line in lines)
    (command,) = [line.strip() for line in lines if "ringtap record" in line]
    term.keys("Enter")
    term.shows(r"10\.0\.0\.2:1026 > ")
    term.keys("q")
    assert term.ended() == 0
    words = [RINGTAP, *shlex.split(command)[1:-1], tmp_path / "flow.pcapng", "-c", "100"]
    check(words)
    assert set(conversations(tmp_path / "flow.pcapng", "udp")) == {("10.0.0.1:1025", "192.0.2.1:53")}


def test_the_largest_flows_as_metrics(testpmd, closing, tmp_path):
    """Six of nine packets, two, and one; the third flow is one too many, and the table follows the application's end."""
    file = pcap.write(tmp_path / "in.pcap", [udp(i) for i in (0, 0, 0, 0, 0, 0, 1, 1, 2)])
    pmd = testpmd(f"net_pcap0,rx_pcap={file},infinite_rx=1", "net_null0,no-rx=1")
    pmd.start()
    it = closing(Exporter(pmd, args=("--flows", "2")))
    pattern = rf'^ringtap_flow_(\w+)\{{app="{pmd.prefix}",flow="10\.0\.0\.(\d):.* UDP"\}} (\S+)$'
    found = until(lambda: re.findall(pattern, it.text(), re.M), what="an interval of ten seconds")
    rates = {(what, int(flow)): float(value) for what, flow, value in found}
    assert set(rates) == {(what, flow) for what in ("packets_per_second", "bits_per_second") for flow in (0, 1)}
    assert rates["packets_per_second", 0] / rates["packets_per_second", 1] == pytest.approx(3, rel=0.05)
    assert rates["bits_per_second", 0] == pytest.approx(60 * 8 * rates["packets_per_second", 0])
    pmd.close()
    until(lambda: "10.0.0.0:1024" not in it.text(), what="its flows are gone")


def test_syns_of_a_sample_are_not_called_unanswered(with_packets, flows):
    """Each SYN has its answer: a sample has many of them without it."""
    frames = []
    for i in range(2000):
        hosts = (bytes([10, 0, i >> 8, i & 255]), bytes([192, 0, 2, 1]))
        for (a, b), flags in ((hosts, 2), (hosts[::-1], 18)):
            ip = bytes([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]) + a + b
            ports = bytes([0, 80, 0, 80]) + bytes(8) + bytes([0x50, flags]) + bytes(6)
            frames.append(bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + ports + bytes(6))
    pmd, _file, count = with_packets(frames)
    some, every = flows(pmd, "--sample", "2"), flows(pmd, "--sample", "1")
    run_all(pmd, count)
    assert {f["syn_unanswered"] for f in some.json(signal.SIGINT)["flows"]} == {None}
    assert {f["syn_unanswered"] for f in every.json(signal.SIGINT)["flows"]} == {0}
