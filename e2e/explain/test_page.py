# SPDX-License-Identifier: BSD-3-Clause
"""The page and the plots of `ringtap explain`: complete, correct, and without references to anything else."""

import re
import xml.etree.ElementTree as xml

import pytest
from harness.paths import RINGTAP
from harness.proc import check
from harness.traced import RX, START, TX, Plan, Writer


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


def test_page_in_a_browser(traced, plan, browser):
    out = page_of(traced)
    for width in (1200, 420):
        browser.open(out, width)
        assert browser.ask("document.documentElement.scrollWidth") <= width  # tables scroll by themselves
        assert browser.ask("[...document.images].every(i => i.complete && i.naturalWidth > 500)")
    assert browser.complaints == []
    assert all(url.startswith(("file://", "data:")) for url in browser.requests)
    text = browser.ask("document.body.innerText")
    dropped = sum(plan.fate(r) == "not_sent" for r in plan.received)
    assert f"Of {len(plan.received):,} received packets, {dropped} were not sent" in text
    for title in ("Latency from receiving to sending", "Not sent", "Changed on the way", "How it was measured"):
        assert title in text
    rows = browser.ask(
        "[...document.querySelectorAll('h2')].find(h => h.innerText == 'Changed on the way')"
        ".nextElementSibling.innerText"
    )
    ttl = sum("ttl" in s.changes for r in plan.received for s in r.sendings)
    assert re.search(rf"TTL, hop limit\s+{ttl}\s", rows)


def test_pages_and_plots(traced, tmp_path):
    """A page names nothing outside, names in a file are no markup, and plots of a single packet have an extent."""
    assert not re.search(r"(src|href)=\"(?!data:)|url\(|@import|<script", page_of(traced).read_text())
    w = Writer()
    w.interface("<script>alert(1)</script>", "<b>&\"app")
    w.interface("e\x1b[31m\xe9", "<b>&\"app")
    w.packet(0, START, bytes(60), RX, 0, 1)
    w.packet(1, START + 100, bytes(60), TX, 0, 1)
    path = w.write(tmp_path / "names.pcapng")
    text = page_of(path).read_text()
    assert "<script>" not in text and "&lt;script&gt;alert(1)" in text and "&lt;b&gt;&amp;&quot;app" in text
    out = check([RINGTAP, "explain", path])
    assert "\x1b" not in out and "<script>alert(1)</scr" in out and "ipt> > e?[31m??" in out  # folded in its column
    for n, path in ((1, None), (1500, traced)):
        if not path:
            w = Writer()
            w.interface("p0")
            w.packet(0, START, bytes(60), RX, 0, 1)
            w.packet(0, START, bytes(60), TX, 0, 1)
            path = w.write(tmp_path / "small.pcapng")
        svg, png = tmp_path / f"{n}.svg", tmp_path / f"{n}.png"
        for plot in (svg, png):
            check([RINGTAP, "explain", path, "--timeout", "10ms", "--plot", plot])
        assert xml.parse(svg).getroot().tag.endswith("svg")
        assert not re.search(r'[" ](nan|inf)[" ]', svg.read_text())
        assert png.read_bytes().startswith(b"\x89PNG")
