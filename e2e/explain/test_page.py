# SPDX-License-Identifier: BSD-3-Clause
"""The page of `ringtap explain`: complete and correct."""

import pytest
from harness.flight import counts
from harness.paths import RINGTAP
from harness.proc import check
from harness.traced import RX, START, TX, Plan, Writer
from harness.view import View, document_of


@pytest.fixture(scope="module")
def plan():
    return Plan(11, packets=1500)


@pytest.fixture(scope="module")
def traced(plan, tmp_path_factory):
    return plan.write(Writer()).write(tmp_path_factory.mktemp("page") / "trace.pcapng")


def page_of(path, *args):
    out = path.with_suffix(".html")
    check([RINGTAP, "explain", path, "--timeout", "10ms", "--html", out, *args])
    return out


def panels(document):
    return {p["title"]: p for p in document["panels"]}


def test_document(traced, plan):
    """Each drawing and each table has the known facts about the packets."""
    document = document_of(page_of(traced))
    dropped = sum(plan.fate(r) == "not_sent" for r in plan.received)
    assert any(
        n.startswith(f"Of {len(plan.received):,} received packets, {dropped} were not sent") for n in document["notes"]
    )
    shown = panels(document)
    assert sum(counts(shown["Packets received"])["received"]) == len(plan.received)
    assert sum(counts(shown["Packets that were not sent, or not in order"])["not sent"]) == dropped
    heat = shown["Latency of all packets, by the time of reception"]
    latencies = sum(max(n, 0) for column in heat["counts"] for n in column)
    assert latencies == sum(bool(r.sendings) for r in plan.received)
    for column in heat["counts"]:
        assert sum(-n if n < 0 else 1 for n in column) == len(heat["y_edges"]) - 1
    rows = {row[0]: row[1:] for row in shown["Changed on the way"]["rows"]}
    assert int(rows["TTL, hop limit"][0]) == sum("ttl" in s.changes for r in plan.received for s in r.sendings)
    for title in ("Latency from receiving to sending", "Not sent"):
        assert shown[title]["rows"]
    assert document["findings"][0]["title"] == "How it was measured"


def test_page_in_a_browser(traced, browser):
    for width in 1280, 400:
        shown = View(browser, page_of(traced), width)
        shown.check()
        assert len(shown.ask("view.panels.map(p => p.plot.over.clientWidth)")) == 4
        assert shown.ask("[...document.querySelectorAll('section.table')].length") >= 7


def test_names_and_single_packets(tmp_path, browser):
    """Names in a file are no markup, and a single packet has an extent."""
    w = Writer()
    w.interface("<script>alert(1)</script>", "<b>&\"app")
    w.interface("e\x1b[31m\xe9", "<b>&\"app")
    w.packet(0, START, bytes(60), RX, 0, 1)
    w.packet(1, START + 100, bytes(60), TX, 0, 1)
    path = w.write(tmp_path / "names.pcapng")
    shown = View(browser, page_of(path))
    shown.check()
    assert shown.ask("document.scripts.length") == 3
    assert "<script>alert(1)</script>" in shown.ask("document.body.innerText")
    assert document_of(path.with_suffix(".html"))["applications"][0]["name"] == '<b>&"app'
    out = check([RINGTAP, "explain", path])
    assert "\x1b" not in out and "<script>alert(1)</scr" in out and "ipt> > e?[31m??" in out  # folded in its column
    w = Writer()
    w.interface("p0")
    w.packet(0, START, bytes(60), RX, 0, 1)
    w.packet(0, START, bytes(60), TX, 0, 1)
    View(browser, page_of(w.write(tmp_path / "small.pcapng"))).check()
