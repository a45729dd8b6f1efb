# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap trace timeline`: every burst is in the file, at its time, on the track of its thread."""

from collections import Counter

import pytest
from harness import pcap
from harness.paths import REPO
from harness.pftrace import BOOTTIME, REALTIME, Timeline
from harness.proc import until
from harness.tracing import Tracing

pytestmark = pytest.mark.nightly

SLACK = 100_000  # ns: times of the probe, of the application and of perf come from three clocks

MOUNTED = ("unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing 2>&-; exec "$@"', "sh")


@pytest.fixture
def timeline(closing, tmp_path):
    """Starts one; the second value is its file."""

    def start(app, *args, **kwargs):
        file = tmp_path / "app.pftrace"
        return closing(Tracing(app, tmp_path, "timeline", "-w", file, "--json", *args, **kwargs)), file

    return start


def bursts(file):
    """(thread, slice) of all bursts, in the order of each thread."""
    return [(t.tid, s) for t in file.of("thread") for s in t.slices]


def counts(file):
    return Counter((s.name, s.args["packets"]) for _, s in bursts(file))


def sums(file):
    return Counter(
        {name: sum(n * times for (what, n), times in counts(file).items() if what == name) for name, _ in counts(file)}
    )


def well_formed(file):
    """Slices of a track lie in each other or behind each other, in order of time."""
    for t in file.tracks.values():
        last, ends = 0, []
        for s in t.slices:
            assert last <= s.ns <= s.end
            last = s.ns
            del ends[s.depth :]
            assert len(ends) == s.depth and all(s.end <= end for end in ends), (t.name, s)
            ends += [] if s.instant else [s.end]
        assert [ns for ns, _ in t.values] == sorted(ns for ns, _ in t.values)


def test_each_burst_of_an_application(app, timeline):
    """Sizes, order and times are those of the application's own calls."""
    trace, path = timeline(app)
    sent = []
    for n in (100, 7, 1, 64):
        sent.append(("rx net_ring_a:0", *app.rx(n=n, burst=32)))
        sent.append(("tx net_ring_a:0", *app.tx(n=n, burst=64)))
    doc = trace.json()
    file = Timeline(path)
    well_formed(file)
    by_call = {"rx net_ring_a:0": 32, "tx net_ring_a:0": 64}
    expected = [
        (name, min(most, n - at)) for name, n, *_ in sent for most in [by_call[name]] for at in range(0, n, most)
    ]
    (thread,) = file.of("thread")
    assert [(s.name, s.args["packets"]) for s in thread.slices] == expected
    at = iter(thread.slices)
    for _, n, before, after in sent:
        left = n
        while left:
            burst = next(at)
            assert before - SLACK <= burst.ns <= after + SLACK, "outside of the application's own call"
            left -= burst.args["packets"]
    assert doc["received"]["packets"] == doc["sent"]["packets"] == 172
    assert doc["lost"] == 0 and doc["bytes"] == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600


def test_golden_file(tmp_path):
    """The file of the unit test cli/trace/timeline_test.c has the stream that it was given."""
    path = tmp_path / "golden.pftrace"
    path.write_bytes(bytes.fromhex((REPO / "cli/trace/golden/timeline.hex").read_text()))
    file = Timeline(path)
    well_formed(file)
    start = file.clocks[REALTIME]
    assert start == 1700000000123456789 and file.clocks[BOOTTIME] == 1000
    (process,) = file.of("process")
    assert (process.name, process.pid) == ("app?", 4711)
    first, poller = file.of("thread")
    (unknown,) = file.of("slices", "unknown thread")
    assert (first.name, first.pid, first.tid) == ("lcore 1 (worker-1, 11)", 4711, 11)
    assert unknown.name == "unknown thread" and poller.name == "thread poller (12)"
    assert all(t.parent == process.uuid for t in (first, unknown, poller))

    def shown(slices):
        return [(s.name, s.ns - start, s.end - start, s.args) for s in slices]

    assert shown(first.slices) == [
        ("rx p0:0", 100, 150, {"packets": 32, "bytes": 2048}),
        ("tx p1:0", 140, 140, {"packets": 30, "bytes": 1920}),
        ("tx p1:0", 150, 150, {"packets": 2, "bytes": 128}),
        ("rx p0:0", 1000200, 1000200, {"packets": 4, "bytes": 256, "lost_before": 7}),
    ]
    assert [s.depth for s in first.slices] == [0, 1, 1, 0]
    assert shown(unknown.slices) == [("rx p0", 170, 170, {"packets": 1, "bytes": 64})]
    assert shown(file.children(first, "polling gaps")) == [
        ("gap with work after p0:1", 300, 340, {"packets": 2}),
        ("idle gap", 9000, 10000, {"packets": 0, "lasts": 1}),
    ]
    assert shown(file.children(poller, "busy periods")) == [("busy period", 200, 700, {"packets": 36})]
    assert shown(file.children(first, "without a CPU")) == [
        ("waits for a CPU", 600, 700, {}),
        ("page fault", 800, 800, {}),
    ]
    assert shown(file.children(process, "CPU 3")) == [
        ("hog", 600, 700, {"tid": 99}),
        ("worker-1", 750, 2000000, {"tid": 11}),
    ]
    (fates,) = file.of("slices", "fates")
    assert shown(fates.slices) == [
        ("not offered p0:0", 1000200, 1000200, {"packets": 2}),
        ("unknown p0:0", 1000200, 1000200, {"packets": 1}),
    ]
    values = {t.name: [(ns - start, n) for ns, n in t.values] for t in file.of("counter")}
    assert values == {
        "ring work: used": [(1000, 5), (2000, 8)],
        "mempool pool: available": [(1000, 100)],
        "p0 missed": [(500, 0), (1500, 3)],
    }


@pytest.fixture
def forwarding(testpmd, tmp_path):
    """testpmd with 5000 packets in each of two files, and its own counts of what it has forwarded."""
    for i in (0, 1):
        pcap.write(tmp_path / f"in{i}.pcap", [pcap.frame(60 + 50 * i, k) for k in range(5000)])
    return testpmd(
        *(f"net_pcap{i},rx_pcap={tmp_path}/in{i}.pcap,tx_pcap={tmp_path}/out{i}.pcap" for i in (0, 1)),
        args=("--no-flush-rx", "--burst=17"),
    )


def test_all_packets_of_testpmd(forwarding, timeline):
    """Packets, bytes and sizes of bursts equal the driver's own counters; with --latency the
    reception of each sent packet is known, and the arrows lead there."""
    trace, path = timeline(forwarding, "--latency", "--duration", "1h")
    forwarding.start()
    until(lambda: forwarding.stats(0)["TX-packets"] == forwarding.stats(1)["TX-packets"] == 5000, what="all are sent")
    forwarding.stop()
    doc = trace.json()
    file = Timeline(path)
    well_formed(file)
    expected = Counter({f"{way} net_pcap{i}:0": 5000 for i in (0, 1) for way in ("rx", "tx")})
    assert sums(file) == expected and doc["lost"] == 0
    assert doc["received"]["packets"] == doc["sent"]["packets"] == doc["timed"] == 10000
    assert {name for name, _ in counts(file)} == set(expected)
    assert max(n for _, n in counts(file)) == 17
    for i in (0, 1):
        stats = forwarding.stats(i)
        of = {
            way: sum(s.args["bytes"] for _, s in bursts(file) if s.name == f"{way} net_pcap{i}:0")
            for way in ("rx", "tx")
        }
        assert of == {"rx": stats["RX-bytes"], "tx": stats["TX-bytes"]}
    (thread,) = [t for t in file.of("thread") if t.slices]
    received = {s.flows[0]: s for s in thread.slices if s.name.startswith("rx")}
    assert len(received) == doc["received"]["bursts"]
    for s in thread.slices:
        if s.name.startswith("tx"):
            (flow,) = s.flows
            took = s.ns - received[flow].ns
            assert s.args["timed"] == s.args["packets"] == received[flow].args["packets"]
            assert s.args["latency_mean_ns"] == s.args["latency_max_ns"] == took
            assert received[flow].end == s.ns


def test_packets_that_are_not_offered(app, timeline):
    """Each names the burst that received it."""
    trace, path = timeline(app, "--fates")
    app.rx(n=5000, burst=32)  # into mbufs that are used again and again
    doc = trace.json()
    file = Timeline(path)
    well_formed(file)
    received = {flow: s for _, s in bursts(file) for flow in s.flows}
    (fates,) = file.of("slices", "fates")
    of = Counter()
    for s in fates.slices:
        (flow,) = s.flows
        of[flow] += s.args["packets"]
        assert s.name == "not offered net_ring_a:0"
        assert s.args["received_ns"] == received[flow].ns < s.ns
    assert sum(of.values()) == doc["not_offered"] > 0
    # The first mbufs were used again first.
    assert all(n == received[flow].args["packets"] for flow, n in of.items() if flow + 1 in of)


def test_the_file_is_bounded(busy, timeline):
    trace, path = timeline(busy, "--max-file", "1M", "--duration", "600s")
    doc = trace.json(number=None)
    assert doc["ended_by"] == "size" and "full at 1M" in trace.proc.output
    assert 1 << 20 <= path.stat().st_size == doc["bytes"] < 3 << 19
    well_formed(Timeline(path))


def test_the_application_is_killed(app, timeline):
    """The file has what it did until then."""
    trace, path = timeline(app)
    app.rx(n=320, burst=32)
    app.proc.kill()
    doc = trace.json(number=None)
    assert doc["ended_by"] == "application" and doc["received"] == {"bursts": 10, "packets": 320}
    file = Timeline(path)
    well_formed(file)
    assert counts(file) == {("rx net_ring_a:0", 32): 10}


def test_one_port(play, timeline):
    app = play()
    app.ring("a")
    app.ring("b")
    trace, path = timeline(Port(app, 1), "--fates")
    app.rx(0, n=5000)
    app.rx(1, n=4000)
    doc = trace.json()
    file = Timeline(path)
    assert sums(file) == {"rx net_ring_b:0": 4000}
    (fates,) = file.of("slices", "fates")
    assert {s.name for s in fates.slices} == {"not offered net_ring_b:0"} and doc["not_offered"] > 0


class Port:
    """A port of an application, as an operand."""

    def __init__(self, app, port):
        self.prefix = f"{app.prefix}:{port}"


def test_switches_of_the_scheduler(testpmd, timeline, hog):
    """While the polling thread waits for its CPU, another task is on the track of the CPU."""
    pmd = testpmd("net_ring0")
    pmd.start()
    trace, path = timeline(pmd, "--duration", "1h", prefix=MOUNTED)
    hog(1).kill()
    doc = trace.json()
    if doc["switches"] is None:
        pytest.skip("the kernel refuses perf's events of the scheduler")
    file = Timeline(path)
    well_formed(file)
    (process,) = file.of("process")
    (thread,) = [t for t in file.of("thread") if file.children(t, "without a CPU")]
    waits = [s for s in file.children(thread, "without a CPU") if s.name == "waits for a CPU"]
    ran = [s for s in file.children(process, "CPU 1") if s.name == "rt-hog"]
    assert sum(s.end - s.ns for s in ran) > 20e6
    # It took the CPU from the polling thread, or from a task that had. A wait that had begun before the trace, or that
    # goes on at its end, is not in the file.
    for s in ran:
        if waits[0].ns <= s.ns and s.end <= waits[-1].end:
            assert any(w.ns - SLACK <= s.ns and s.end <= w.end + SLACK for w in waits), s


def test_without_switches(app, timeline):
    """A line gives the reason, and the rest is there."""
    hidden = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs /sys/kernel/tracing && exec "$@"', "sh")
    trace, path = timeline(app, "--duration", "600s", prefix=hidden)
    app.rx(n=320, burst=32)
    until(lambda: "without switches" in trace.proc.output, what="the line")
    doc = trace.json()
    assert doc["switches"] is None
    assert trace.proc.output.count("without switches of the scheduler: No such file or directory; mount ") == 1
    assert sums(Timeline(path)) == {"rx net_ring_a:0": 320} and doc["received"]["packets"] == 320
