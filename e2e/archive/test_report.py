# SPDX-License-Identifier: BSD-3-Clause
"""The page of a window is self-contained, and has the numbers of the other commands."""

import pytest
from harness.site import SECOND, START, TCP, Recorder, Site
from harness.view import View, document_of

pytest.importorskip("duckdb")
MS = 10**6
FORTH, BACK = ("10.0.0.1", "10.0.0.2", 40000, 443, TCP), ("10.0.0.2", "10.0.0.1", 443, 40000, TCP)
EVIL = "<script>alert(1)</script>"


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


@pytest.fixture(scope="module")
def panels(page):
    return {p["id"]: p for p in document_of(page)["panels"]}


def test_numbers_are_those_of_hops_and_top(site, panels):
    hops = {(h["from"], h["to"]): h for h in site.json("hops")["hops"]}
    assert len(panels["hops"]["rows"]) == 2
    for row in panels["hops"]["rows"]:
        hop = hops[row[0], row[1]]
        assert row[2:4] == [f"{hop['arrived']:,}", f"{hop['lost']:,}"]
    lost = sum(h["lost"] for h in hops.values())
    assert lost == sum(bool(p.lost_at) for p in site.sent) > 0
    assert {row[0]: row[1] for row in panels["talkers"]["rows"]} == {"10.0.0.1": "3,000", "10.0.0.2": "3,000"}


def test_rates_add_up_to_the_packets(page, panels):
    """Each recorder's steps, times their length, are its packets."""
    edges = panels["rates"]["edges_ns"]
    packets = {row[0]: int(row[3].replace(",", "")) for row in panels["recorders"]["rows"]}
    assert edges[0] == 0 and edges[-1] == document_of(page)["range"]["to_ns"] + 1
    for series in panels["rates"]["series"]:
        steps = zip(edges, edges[1:], series["values"])
        total = sum((b - a) * rate / 1e9 for a, b, rate in steps if rate is not None)
        assert total == pytest.approx(packets[series["name"]], rel=1e-6)


def test_steps_show_the_time_of_the_losses(panels):
    """Losses were in the second to third second, and the delay rises."""
    edges = panels["loss"]["edges_ns"]
    (loss,) = (s["values"] for s in panels["loss"]["series"] if s["name"].startswith("a:eth0 to "))
    lossy = [edges[n] / edges[-1] for n, v in enumerate(loss) if v]
    assert lossy and 0.3 < lossy[0] < lossy[-1] < 0.55
    (delays,) = (s["values"] for s in panels["p50"]["series"] if s["name"].startswith("a:eth0 to "))
    known = [v for v in delays if v is not None]
    assert known[0] < known[len(known) // 2] < known[-1]


@pytest.mark.parametrize("width,colours", [(1280, "light"), (400, "dark")])
def test_in_a_browser(browser, page, width, colours):
    browser.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    shown = View(browser, page, width)
    shown.check()
    assert shown.ask("view.panels.length") == 5 and shown.ask("document.scripts.length") == 3
    assert shown.ask("document.querySelector('h1').textContent") == f"A {EVIL} title"
    light = shown.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == (colours == "light")


def test_one_recorder_alone_has_a_page(tmp_path):
    site = Site(tmp_path, Recorder("a"))
    for n in range(5):
        site.send("a", FORTH, START + n * MS)
    site.ingest().run("report", "--html", tmp_path / "page.html")
    assert any(
        "no packet was recorded at two places" in e
        for f in document_of(tmp_path / "page.html")["findings"]
        for e in f["evidence"]
    )


def test_a_page_that_cannot_be_written_is_refused(site):
    assert "cannot write" in site.run("report", "--no-hops", "--html", "/proc/nothing/page.html", status=1)
