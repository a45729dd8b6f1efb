# SPDX-License-Identifier: BSD-3-Clause
"""The page of a window: complete by itself, and with the numbers of the other commands."""

import html.parser
import re

import pytest
from harness.site import SECOND, START, TCP, Recorder, Site

pytest.importorskip("duckdb")
MS = 10**6
FORTH, BACK = ("10.0.0.1", "10.0.0.2", 40000, 443, TCP), ("10.0.0.2", "10.0.0.1", 443, 40000, TCP)
EVIL = "<script>alert(1)</script>"
VOID = {"meta", "link", "br", "img"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = Site(
        tmp_path_factory.mktemp("report"), Recorder("a"), Recorder("b", ahead=lambda t: 3 * MS, interfaces=(EVIL,))
    )
    for n in range(3000):
        t = START + SECOND + n * 2 * MS
        site.send("ab", FORTH, t, lost={"b": 0.05 if 1000 < n < 1500 else 0}, delay=lambda a, b: MS + n * 1000)
        site.send("ba", BACK, t + MS, delay=lambda a, b: MS)
    return site.ingest()


@pytest.fixture(scope="module")
def page(site):
    path = site.folder / "report.html"
    site.run("report", "--html", path, "--title", f"A {EVIL} title")
    return path


class Reader(html.parser.HTMLParser):
    """Elements are closed in order; what they refer to."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.tables, self.ids, self.seen = [], [], [], set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        attrs = dict(attrs)
        self.links += [attrs[k] for k in ("href", "src") if k in attrs]
        self.ids.add(attrs.get("id"))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def read(page):
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    assert not reader.open
    return reader


def test_it_needs_nothing_else(page, read):
    assert all(link.startswith(("#", "data:")) for link in read.links)
    assert {link[1:] for link in read.links if link.startswith("#")} <= read.ids
    assert "script" not in read.seen and "@import" not in page.read_text() and "url(" not in page.read_text()


def test_numbers_are_those_of_hops_and_top(site, read):
    hops = {(h["from"], h["to"]): h for h in site.json("hops")["hops"]}
    table = next(t for t in read.tables if t[0][:2] == ["From", "To"])
    assert len(table) == 3
    for row in table[1:]:
        hop = hops[row[0], row[1]]
        assert row[2:4] == [f"{hop['arrived']:,}", f"{hop['lost']:,}"]
    lost = sum(h["lost"] for h in hops.values())
    assert lost == sum(bool(p.lost_at) for p in site.sent) > 0
    talkers = next(t for t in read.tables if t[0][0] == "Address")
    assert {row[0]: row[1] for row in talkers[1:]} == {"10.0.0.1": "3,000", "10.0.0.2": "3,000"}


def test_curves_show_the_time_of_the_losses(page):
    """Losses were in the second to third second, and the delay rises."""
    text = page.read_text()
    chart = re.search(r'aria-label="Loss over time".*?</svg>', text, re.S).group()
    spots = re.findall(
        r'<circle class="spot" cx="([\d.]+)" cy="([\d.]+)".*?<title>a:eth0 to .*?\n(\S+): (\S+) %', chart
    )
    lossy = {float(x) for x, _, _, value in spots if float(value) > 0}
    all_x = [float(x) for x, _, _, _ in spots]
    assert lossy and min(all_x) + 0.3 * (max(all_x) - min(all_x)) < min(lossy) < max(lossy) < min(all_x) + 0.55 * (
        max(all_x) - min(all_x)
    )
    delays = re.search(r'aria-label="Median delay over time".*?</svg>', text, re.S).group()
    heights = [
        float(y) for y in re.findall(r'<circle class="spot" cx="[\d.]+" cy="([\d.]+)".*?<title>a:eth0 to ', delays)
    ]
    assert heights[0] > heights[len(heights) // 2] > heights[-1]  # the y axis points down


@pytest.mark.parametrize("width,colours", [(1280, "light"), (400, "dark")])
def test_in_a_browser(browser, page, width, colours):
    browser.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    browser.open(page, width)
    assert browser.complaints == [] and len(browser.requests) <= 2  # the page, and its icon
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("document.querySelectorAll('figure svg').length") >= 5
    overlap = """[...document.querySelectorAll('svg')].flatMap(s => { const b = [...s.querySelectorAll('text.time')].map(
        t => t.getBoundingClientRect()); return b.slice(1).map((r, i) => b[i].right > r.left); }).some(x => x)"""
    assert browser.ask(overlap) is False
    inside = """[...document.querySelectorAll('svg')].every(s => { const o = s.getBoundingClientRect();
        return [...s.querySelectorAll('text')].every(t => { const r = t.getBoundingClientRect();
            return r.left >= o.left - 1 && r.right <= o.right + 1 && r.bottom <= o.bottom + 1; }); })"""
    assert browser.ask(inside) is True
    light = browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == (colours == "light")


def test_one_recorder_alone_has_a_page(tmp_path):
    site = Site(tmp_path, Recorder("a"))
    for n in range(5):
        site.send("a", FORTH, START + n * MS)
    site.ingest().run("report", "--html", tmp_path / "page.html")
    assert "no packet was recorded at two places" in (tmp_path / "page.html").read_text()


def test_a_page_that_cannot_be_written_is_refused(site):
    assert "cannot write" in site.run("report", "--no-hops", "--html", "/proc/nothing/page.html", status=1)
