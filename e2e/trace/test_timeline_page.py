# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap trace timeline --html`: the page has what the file for Perfetto has."""

import json
from collections import Counter

import pytest
from harness import pcap
from harness.pftrace import Timeline
from harness.proc import until
from harness.tracing import Tracing
from harness.view import View, document_of

pytestmark = pytest.mark.nightly


def panel(document, name):
    return next(p for p in document["panels"] if p.get("id") == name)


def test_the_page_has_the_bursts_of_the_file(testpmd, closing, browser, tmp_path):
    """Each bar is a slice of the file, at its time, with its length and packets; a browser draws them."""
    pcap.write(tmp_path / "in.pcap", [pcap.frame(60, k) for k in range(5000)])
    app = testpmd(
        f"net_pcap0,rx_pcap={tmp_path}/in.pcap,tx_pcap={tmp_path}/out0.pcap",
        f"net_pcap1,rx_pcap={tmp_path}/in.pcap,tx_pcap={tmp_path}/out1.pcap",
        args=("--no-flush-rx",),
    )
    path, page = tmp_path / "app.pftrace", tmp_path / "app.html"
    trace = closing(
        Tracing(app, tmp_path, "timeline", "-w", path, "--html", page, "--json", "--latency", "--duration", "1h")
    )
    app.start()
    until(lambda: app.stats(0)["TX-packets"] == app.stats(1)["TX-packets"] == 5000, what="all are sent")
    app.stop()
    doc = trace.json()
    assert (doc["file"], doc["page"]) == (str(path), str(page)) and page.stat().st_mode & 0o777 == 0o600
    (thread,) = [t for t in Timeline(path).of("thread") if t.slices]
    document = document_of(page)
    lanes = {lane["name"]: lane["intervals"] for lane in panel(document, "threads")["lanes"]}
    first = thread.slices[0]
    at = {s.ns: s for s in thread.slices}
    assert len(lanes[thread.name]) == len(thread.slices)
    shift = first.ns - lanes[thread.name][0][0]
    for begin, ns, _state, text in lanes[thread.name]:
        s = at[begin + shift]
        assert ns == s.end - s.ns and f", {s.args['packets']} packets, {s.args['bytes']} bytes" in text
    values = [sum(n for n in s["values"] if n > 0) for s in panel(document, "rates")["series"]]
    assert values == [doc["received"]["packets"], doc["sent"]["packets"]] == [10000, 10000]
    assert {f"{thread.name}, {what}" for what in ("polling gaps", "busy periods")} <= lanes.keys()
    shown = View(browser, page)
    shown.check()
    rows = shown.ask("view.panels.find(p => p.spec.id === 'threads').rows().length")
    assert rows == 1 + sum(map(len, lanes.values()))
    levels = {p["title"] for p in document["panels"] if p["kind"] == "levels"}
    assert "Available objects of mempools" in levels


def test_without_a_file_the_timeline_ends_with_the_page(busy, closing, browser, tmp_path):
    page = tmp_path / "app.html"
    trace = closing(Tracing(busy, tmp_path, "timeline", "--html", page, "--json", "--duration", "600s"))
    doc = trace.json(number=None)
    assert doc["ended_by"] == "size" and f"{page} is full at 100,000 bars" in trace.proc.output
    assert doc["file"] is None and doc["bytes"] == 0
    document = document_of(page)
    bars = Counter(v[2] for lane in panel(document, "threads")["lanes"] for v in lane["intervals"])
    assert sum(bars.values()) > 99_000 and document["range"]["to_ns"] < doc["duration_ns"] + 1e9
    assert any("The page ends after" in note for note in document["notes"])
    assert json.dumps(document).count("\n") == 0 and page.stat().st_size < 20 << 20
    View(browser, page).check()


def test_pages_that_cannot_be_written(busy, closing, tmp_path):
    """The file for Perfetto remains."""
    path = tmp_path / "app.pftrace"
    trace = closing(
        Tracing(busy, tmp_path, "timeline", "-w", path, "--html", "/dev/full", "--json", "--duration", "600s")
    )
    trace.proc.send_signal(2)
    assert trace.proc.wait() == 1 and "/dev/full: No space left on device" in trace.proc.output
    assert Timeline(path).of("thread")
