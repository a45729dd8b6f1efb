# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap record --html`: what was seen and lost, and when, as a page."""

import itertools
import signal

import pytest
from harness.cases import nightly
from harness.documents import ns_of
from harness.proc import freeze
from harness.ringtap import sessions
from harness.view import View, document_of


def packets(panel, name, start=0, end=2**63):
    """Packets of a curve, in the time from start to end."""
    (values,) = (s["values"] for s in panel["series"] if s["name"] == name)
    edges = panel["edges_ns"]
    times = itertools.pairwise(edges)
    return round(sum(v * (b - a) / 1e9 for (a, b), v in zip(times, values, strict=True) if a < end and b > start))


def test_a_pause_of_the_recorder(app, record, tmp_path, browser):
    html = tmp_path / "x.html"
    recorder = record(app, "--html", html, "--buffer", "1M")
    app.rx(n=100, len=60)
    freeze(recorder.proc.pid)
    _, begun, ended = app.rx(n=100_000, len=60)
    recorder.proc.send_signal(signal.SIGCONT)
    app.tx(n=64, len=60)
    recorder.finish()
    document = document_of(html)
    panels = {p["id"]: p for p in document["panels"] if "id" in p}
    lost = packets(panels["lost"], "net_ring_a")
    assert packets(panels["seen"], "net_ring_a") == 100_164
    assert packets(panels["captured"], "net_ring_a") == 100_164 - lost == len(recorder.file().packets)
    assert 50_000 < lost < 100_000
    origin = ns_of(document["origin"])
    assert packets(panels["lost"], "net_ring_a", begun - origin, ended - origin) == lost
    assert {f["name"]: f["value"] for f in document["facts"]}["application"] == app.prefix
    (fault,) = document["findings"]
    assert fault["grade"] == "fault" and fault["evidence"][0].startswith(f"{lost:,} packets were lost (")
    assert "would have held them" in fault["advice"]
    assert [row[1] for row in panels["files"]["rows"]] == [100_164 - lost]
    (table,) = (p for p in document["panels"] if p.get("title") == "Interfaces and queues")
    assert table["rows"][0][:2] == ["net_ring_a", "100,164"]
    view = View(browser, html)
    view.check()
    assert "would have held them" in view.ask("document.body.innerText")


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>.pcapng", nightly("a&lt;b.pcapng")])
def test_names_stay_text(app, record, tmp_path, browser, name):
    html = tmp_path / "x.html"
    recorder = record(app, "--html", html, out=tmp_path / name)
    app.rx(n=10, len=60)
    recorder.finish()
    document = document_of(html)
    assert document["findings"] == [{"grade": "ok", "title": "The capture lost no packet", "evidence": []}]
    view = View(browser, html)
    view.check()
    assert name in view.ask("document.body.innerText")


def test_a_page_that_cannot_be_written(app, record):
    """The application is not attached to."""
    recorder = record(app, "--html", "/nonexistent/x.html", attach=False)
    recorder.done(status=1)
    assert "/nonexistent/x.html: No such file" in recorder.proc.output
    assert not sessions(app)
