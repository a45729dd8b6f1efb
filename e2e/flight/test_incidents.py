# SPDX-License-Identifier: BSD-3-Clause
"""The folder of an incident has the other files beside its packets, and extract finds packets in it."""

import collections
import json
import os
import signal
import stat

import pytest
from harness import flight, pcapng
from harness.documents import ns_of, only
from harness.paths import RINGTAP
from harness.proc import check, freeze
from harness.ringtap import FAILED, USAGE
from harness.view import View, runs
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.utils import wrpcap

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FRAMES = [  # each flow has another number of packets in a round of the generator
    *3 * [ETHER / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=1001, dport=53) / (b"x" * 40)],
    *2 * [ETHER / Dot1Q(vlan=12) / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=1002, dport=80) / (b"x" * 900)],
    *4 * [ETHER / IPv6(src="fd00::1", dst="fd00::2") / UDP(sport=1003, dport=443) / (b"x" * 200)],
    ETHER / ARP(hwsrc="02:00:00:00:00:01", psrc="10.0.0.1", pdst="10.0.0.2"),
]
ROUND = {
    ("10.0.0.1", 1001, "10.0.0.2", 53, "UDP", None): 3,
    ("10.0.0.1", 1002, "10.0.0.2", 80, "TCP", 12): 2,
    ("fd00::1", 1003, "fd00::2", 443, "UDP", None): 4,
    ("02:00:00:00:00:01", None, "02:00:00:00:00:02", None, "ARP", None): 1,
}


@pytest.fixture
def kept(fwd, keep, tmp_path):
    """An incident of a stream with four flows, over two ports."""
    wrpcap(str(tmp_path / "frames.pcap"), FRAMES)
    app = fwd(
        "--ring",
        "a",
        "--ring",
        "b",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@1",
        "--role",
        "sink:b@0",
        "--replay",
        tmp_path / "frames.pcap",
        "--rate",
        "5k",
    ).running()
    kept = keep(app, "--before", "500ms", "--after", "50ms", "--collectors", "all")
    check(["sleep", "1.2"])
    # A gap that is among the longest, however busy the machine is.
    freeze(app.proc.pid)
    check(["sleep", "0.2"])
    app.proc.send_signal(signal.SIGCONT)
    flight.command("trigger", kept.folder)
    kept.incidents(1)
    kept.finish()
    return kept


def check_steps_are_those_of_the_file(incident):
    """Each step is compared with the packets of the file."""
    rates = flight.panel(incident, "rates")
    grid, shown = rates["grid"], flight.counts(rates)
    assert grid["from_ns"] == 0 and grid["to_ns"] == incident.at("to") - incident.at("from") + 1
    steps = -(-grid["to_ns"] // grid["step_ns"])
    counts = {"received": [0] * steps, "sent": [0] * steps}
    for p in incident.file.packets:
        counts["sent" if p.direction == pcapng.TX else "received"][(p.ns - incident.at("from")) // grid["step_ns"]] += 1
    assert shown == counts and 1000 < steps <= 50_000


def check_packets_are_those_of_the_file(incident):
    rows, file = flight.panel(incident, "packets")["rows"], incident.file
    before = [p for p in file.packets if p.ns < incident.at("event_to")][-50_000:]
    after = [p for p in file.packets if p.ns >= incident.at("event_to")][:50_000]
    assert len(rows) == len(before) + len(after)
    for row, p in zip(rows, before + after):
        name = file.interfaces[p.interface].name
        direction = "sent" if p.direction == pcapng.TX else "received"
        assert row[1:6] == [p.ns - incident.at("from"), name, direction, p.queue, p.length]
        assert file.packets[row[0] - 1] == p
    assert {row[6] for row in rows} >= {"10.0.0.1:1001 > 10.0.0.2:53 UDP", "[fd00::1]:1003 > [fd00::2]:443 UDP"}


def check_intervals_are_those_of_the_file(incident):
    """A busy machine makes thousands of gaps; the windows of the probe have eight a second."""
    file = incident.file
    ended = sorted((v.start - incident.at("from"), v.ns) for v in file.intervals)
    shown = []
    for lane in flight.panel(incident, "threads")["lanes"]:
        last = [v for v in lane["intervals"] if "; it lasts" in v[3]]
        rest = [v for v in lane["intervals"] if v not in last]
        assert len(last) <= 1 and not any(abs(v[0] - r[0]) < 1000 and v[1] < r[1] for v in last for r in rest)
        shown += [(v[0], v[1]) for v in rest]
    assert ended == sorted(shown) and not file.interval_losses
    assert max(v.ns for v in file.intervals if v.kind == pcapng.GAP) >= 190_000_000
    assert min(v.ns for v in file.intervals) >= 9_900
    # What a poll brought had been received by then, and was counted.
    assert sum(v.packets for v in file.intervals if v.kind == pcapng.GAP) <= len(file.packets)
    assert all(-v.ns <= v.start - incident.at("from") <= incident["window_ns"] for v in file.intervals)


def check_seconds_are_those_of_the_metrics(incident):
    metrics = only(json.loads((incident.folder / "metrics.json").read_text()))["seconds"]
    latency, pools = (flight.panel(incident, name) for name in ("latency", "pools"))
    edges = [ns_of(metrics[0]["from"]), *(ns_of(s["to"]) for s in metrics)]
    assert latency["edges_ns"] == pools["edges_ns"][:-1] == [ns - incident.at("from") for ns in edges]
    assert pools["edges_ns"][-1] >= incident["window_ns"]
    shown = {s["name"]: s["values"] for s in latency["series"]}
    timed = 0
    for k, s in enumerate(metrics):
        p99 = max((p["p99_ns"] for p in s["latency"] if p["packets"]), default=None)
        timed += p99 is not None
        assert shown["99 %"][k] == (None if p99 is None else pytest.approx(p99, abs=1))
        free = {p["name"]: p["available"] / p["size"] for p in s["pools"]}
        assert {p["name"]: pytest.approx(p["values"][k + 1], rel=1e-6) for p in pools["series"]} == free
    assert timed


def check_the_page_names_its_origin(incident):
    facts = flight.facts(incident)
    assert facts["host"] == os.uname().nodename and facts["condition"] == "command"
    assert facts["recorder"].startswith("ringtap flight ") and " --before 500ms " in facts["recorder"]
    assert "ringtap-fwd" in facts["command line"] and "DPDK" in facts["versions"]
    assert facts["window"].startswith("500 ms before to 50 ms after") and facts["kept"] == "all of it"


def check_the_stall_in_a_browser(incident, browser):
    """A process that was stopped for 200 ms: each lane has the bar, and no packet is drawn in it."""
    shown = View(browser, incident.folder / "index.html")
    lanes = flight.panel(incident, "threads")["lanes"]
    for k, lane in enumerate(lanes):
        start, ns, _state, text = max((v for v in lane["intervals"]), key=lambda v: v[1] if "poll" in v[3] else 0)
        assert ns >= 190_000_000 and "after a poll" in text
        pixels = shown.pixels("threads")
        row = pixels[34 * k + 24]
        middle = row[round((start + ns / 2) / shown.window()[1] * len(row))]
        run = next(r for r in runs(row, lambda p, colour=middle: p == colour) if r[1] - r[0] > 50)
        pixel = shown.window()[1] / len(row)
        assert abs(run[0] * pixel - start) <= 1.5 * pixel and abs((run[1] + 1) * pixel - start - ns) <= 2 * pixel
    shown.check()


def tshark(path, *args):
    return check(["tshark", "-r", path, *args]).splitlines()


def flow_of(f):
    return (
        f["source"],
        f["source_port"],
        f["destination"],
        f["destination_port"],
        f["protocol"],
        f["vlan"],
    )


def check_flows_are_those_of_the_file(incident):
    """Counted again here, from the frames that were sent."""
    sizes = {bytes(f): key for f, key in zip((FRAMES[0], FRAMES[3], FRAMES[5], FRAMES[-1]), ROUND)}
    packets, size = collections.Counter(), collections.Counter()
    for p in incident.file.packets:
        packets[sizes[p.data], p.direction] += 1
        size[sizes[p.data]] += p.length
    flows = incident["flows"]
    assert flows["count"] == 4 and flows["uncounted_packets_at_most"] == 0
    for kind, key in (("by_packets", lambda f: f["received"] + f["sent"]), ("by_bytes", lambda f: f["bytes"])):
        numbers = [key(f) for f in flows[kind]]
        assert len(numbers) == 4 and numbers == sorted(numbers, reverse=True)
        for f in flows[kind]:
            assert f["received"] == packets[flow_of(f), pcapng.RX]
            assert f["sent"] == packets[flow_of(f), pcapng.TX]
            assert f["bytes"] == size[flow_of(f)]
    assert flow_of(flows["by_packets"][0])[1] == 1003 and flow_of(flows["by_bytes"][0])[1] == 1002
    shown = {row[0]: row[1:] for row in flight.panel(incident, "flows")["rows"]}
    assert len(shown) == 4 and {
        "10.0.0.1:1002 > 10.0.0.2:80 TCP, VLAN 12",
        "[fd00::1]:1003 > [fd00::2]:443 UDP",
    } <= set(shown)
    assert sorted(shown.values()) == sorted([f["received"], f["sent"], f["bytes"]] for f in flows["by_bytes"])


def check_metrics_reach_to_the_end_of_the_window(incident):
    """Which is within a second that is not over yet."""
    metrics = only(json.loads((incident.folder / "metrics.json").read_text()))
    assert ns_of(metrics["all"]["from"]) <= incident.at("from") < incident.at("to") <= ns_of(metrics["all"]["to"])


def check_trace_has_the_event_and_what_threads_did(incident):
    trace = json.loads((incident.folder / "trace.json").read_text())
    events = trace["traceEvents"]
    window_us = (incident.at("to") - incident.at("from")) / 1e3
    (event,) = (e for e in events if e["name"] == "command")
    assert event["ts"] == pytest.approx((incident.at("event_from") - incident.at("from")) / 1e3)
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {"lcore 1", "lcore 2"} <= {name.split(" (")[0] for name in named.values()}
    spans = [e for e in events if e["ph"] == "X" and e is not event]
    assert any(e["name"] == "busy period" for e in spans) and any("gap" in e["name"] for e in spans)
    for e in spans:
        assert e["ts"] <= window_us and e["ts"] + e["dur"] >= 0 and e["tid"] in named
    assert len({(e["name"], e["tid"], round(e["ts"], 3)) for e in spans}) == len(spans)
    rates = [(e["ts"], e["args"]["received"]) for e in events if e["ph"] == "C"]
    ends = [ts for ts, _ in rates[1:]] + [window_us]
    received = sum(p.direction == pcapng.RX for p in incident.file.packets)
    assert sum((end - ts) * rate / 1e6 for (ts, rate), end in zip(rates, ends)) == pytest.approx(received, rel=0.001)
    assert trace["otherData"]["from"] == incident["from"]


def check_lists(kept, incident):
    listed = json.loads(flight.command("list", kept.folder, "--json"))
    assert [i["name"] for i in listed["incidents"]] == [incident.folder.name]
    assert incident.folder.name in flight.command("list", kept.folder)
    assert "trigger: command" in flight.command("show", kept.folder, incident.folder.name)
    assert "watched for" in (incident.folder / "doctor.txt").read_text()
    assert "the comment marks the first one (tshark -Y frame.comment)" in flight.advice(incident)


def test_reports(kept):
    """All files beside the packets are compared with these."""
    (incident,) = kept.incidents(1)
    metrics = only(json.loads((incident.folder / "metrics.json").read_text()))
    assert {p["name"] for p in metrics["all"]["ports"]} == {i.name for i in incident.file.interfaces}
    check_lists(kept, incident)
    check_metrics_reach_to_the_end_of_the_window(incident)
    check_flows_are_those_of_the_file(incident)
    check_steps_are_those_of_the_file(incident)
    check_packets_are_those_of_the_file(incident)
    check_seconds_are_those_of_the_metrics(incident)
    check_intervals_are_those_of_the_file(incident)
    check_the_page_names_its_origin(incident)
    check_trace_has_the_event_and_what_threads_did(incident)


def test_page(kept, browser):
    (incident,) = kept.incidents(1)
    check_the_stall_in_a_browser(incident, browser)


def check_extract_by_a_filter(incident, out):
    whole = incident.file
    flight.command("extract", incident.folder.parent, incident.folder.name, "-f", "vlan 12 and tcp", "-w", out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    some = pcapng.read(out)
    tagged = bytes(FRAMES[3])
    wanted = [p for p in whole.packets if p.data == tagged]
    assert 0 < len(some.packets) == len(wanted) < len(whole.packets)
    # As they are in the incident: times, options, interfaces, the section's comment, and the counts of the window.
    names = [i.name for i in whole.interfaces]
    assert [i.name for i in some.interfaces] == names and some.section == whole.section
    assert some.packets == wanted
    assert sum(pcapng.stat(i, pcapng.DELIVERED) for i in some.interfaces) == len(whole.packets)
    check(["capinfos", out])


def check_extract_twice_to_a_pipe(incident, out):
    """By path, and by name; a section each."""
    check(
        [
            "sh",
            "-c",
            '"$0" flight extract "$1" "$2" --folder "$3" | cat > "$4"',
            RINGTAP,
            incident.folder,
            incident.folder.name,
            incident.folder.parent,
            out,
        ]
    )
    one = (incident.folder / flight.PACKETS).read_bytes()
    assert out.read_bytes() == 2 * one
    assert len(tshark(out)) == 2 * incident["packets"]


def test_extract(kept, tmp_path):
    (incident,) = kept.incidents(1)
    check_extract_by_a_filter(incident, tmp_path / "some.pcapng")
    check_extract_twice_to_a_pipe(incident, tmp_path / "both.pcapng")
    packets = incident.folder / flight.PACKETS
    size = packets.stat().st_size
    text = flight.command("extract", kept.folder, incident.folder.name, "-w", packets, status=USAGE)
    assert "own file" in text and packets.stat().st_size == size
    # One that was cut, at an odd byte among its packets: polling gaps, which follow them, may be many.
    packets.write_bytes(packets.read_bytes()[: size // 2 | 1])
    out = tmp_path / "cut.pcapng"
    text = flight.command("extract", kept.folder, incident.folder.name, "-w", out, status=FAILED)
    assert "the file ends in the middle of a block" in text
    assert 0 < len(pcapng.read(out).packets) < incident["packets"]
