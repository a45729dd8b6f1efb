# SPDX-License-Identifier: BSD-3-Clause
"""The page of web/ in a browser: what it draws is read from its canvases."""

import copy
import itertools
import json
import math

import fastjsonschema
import pytest
from harness import axe, view
from harness.proc import until
from harness.view import View, runs

MS = 1_000_000
STALL, STALL_END = 700 * MS, 736 * MS
KEPT = 150 * MS  # nothing before was kept
STEP = 50_000
VERMILION = (0xD5, 0x5E, 0x00)
DIRECTIONS = ["received", "sent"]
TOOK = ["1,200 ns", "9.5 us", None, "2 ms"]
NAMES = [
    "</script><script>document.title = 'run'</script>",
    "<img src=x onerror=\"document.title = 'run'\">",
    "\x01\x1b[31m\x7f\u202e",
    "x" * 10_000,
]
SHORT = range(1100 * MS, 1200 * MS, MS // 2)  # gaps of 10 us


def rates():
    """20,000 packets/s, none in time that was not kept and in the stall, and behind it those that waited, in a
    millisecond."""
    values = [1] * 30_000
    for i in [*range(KEPT // STEP), *range(STALL // STEP, STALL_END // STEP)]:
        values[i] = 0
    for i in range(STALL_END // STEP, STALL_END // STEP + 20):
        values[i] = 37
    return values


def packed(values):
    """With runs of zeros as one number."""
    return [
        n for zero, run in itertools.groupby(values, lambda v: v == 0) for n in ([-len(list(run))] if zero else run)
    ]


def document(name="my-app", rows=500):
    return {
        "schema": 1,
        "ringtap": "0.1.0",
        "command": "flight",
        "time": "2026-11-27T14:30:03.000000000Z",
        "host": "r1",
        "applications": [{"name": name}],
        "view": 1,
        "title": f"incident of {name}",
        "origin": "2026-11-27T14:30:00.123456789Z",
        "range": {"from_ns": 0, "to_ns": 1500 * MS},
        "zero_ns": STALL_END,
        "facts": [{"name": name, "value": name, "note": name}],
        "notes": [name],
        "missing": [{"from_ns": 0, "to_ns": KEPT, "reason": f"the recorder had just begun {name}"}],
        "events": [{"from_ns": STALL, "to_ns": STALL_END, "name": name}],
        "findings": [{"grade": "fault", "title": name, "evidence": [name], "advice": name}],
        "panels": [
            {
                "kind": "lanes",
                "id": "threads",
                "title": name,
                "states": [
                    {"name": name, "colour": 1, "meaning": name},
                    {"name": "busy", "colour": 5, "low": True},
                    {"name": "idle", "colour": 2},
                ],
                "lanes": [
                    {"name": name, "intervals": [[STALL, STALL_END - STALL, 0, name], [STALL_END, 2 * MS, 1]]},
                    {
                        "name": "lcore 2",
                        "intervals": [[1000 * MS, 200_000, 0], *([at, 10_000, 0] for at in SHORT)],
                        "unknown": [[1400 * MS, 1500 * MS]],
                    },
                ],
            },
            {
                "kind": "counts",
                "id": "rates",
                "title": name,
                "unit": "packets",
                "grid": {"from_ns": 0, "step_ns": STEP, "to_ns": 1500 * MS},
                "series": [{"name": name, "values": packed(rates()), "note": name}],
            },
            {
                "kind": "levels",
                "id": "latency",
                "title": name,
                "unit": "ns",
                "log": True,
                "limit": {"name": name, "value": 200_000},
                "edges_ns": [0, 500 * MS, 1000 * MS, 1500 * MS],
                "series": [{"name": "p50", "values": [1200, 1500, 1300]}, {"name": name, "values": [5000, 36e6, None]}],
            },
            {
                "kind": "heat",
                "id": "heat",
                "title": name,
                "name": name,
                "unit": "ns",
                "log": True,
                "edges_ns": [0, 500 * MS, 1000 * MS, 1500 * MS],
                "y_edges": [1000, 2000, 4000, 8000],
                "counts": [[1, 5, 0], [100, 4, 1], [-2, 3]],
                "series": [{"name": name, "values": [1500, None, 6000], "colour": 2}],
                "points": [[STALL_END, 7000]],
                "limit": {"name": name, "value": 5000},
            },
            {
                "kind": "spread",
                "id": "spread",
                "title": name,
                "unit": "ns",
                "of": "packets",
                "edges": [100, 200, 400, 800, 1600],
                "series": [{"name": name, "values": [0, 60, 30, 10]}],
                "marks": [{"name": name, "value": 390, "colour": 0}],
            },
            {
                "kind": "tail",
                "id": "tail",
                "title": name,
                "unit": "ns",
                "of": "packets",
                "edges": [100, 200, 400, 800, 1600],
                "series": [{"name": name, "values": [0, 60, 30, 10]}],
            },
            {
                "kind": "points",
                "id": "points",
                "title": name,
                "unit": "bytes",
                "of": "points",
                "end": 1000,
                "marks": [500],
                "series": [{"name": name, "x": [0, 250, 1000], "y": [0, 1 << 20, 2 << 20]}],
            },
            {
                "kind": "table",
                "id": "packets",
                "title": name,
                "columns": [
                    {"name": "frame", "kind": "frame"},
                    {"name": "time", "kind": "time"},
                    {"name": name, "kind": "text", "note": name},
                    {"name": "bytes", "kind": "bytes"},
                    {"name": "took", "kind": "label"},
                    {"name": "direction", "kind": "text"},
                ],
                "rows": [
                    [i + 1, 500 * MS + i * 10_000, f"{name} {i % 7}", 64 * i, TOOK[i % 4], DIRECTIONS[i % 3 > 0]]
                    for i in range(rows)
                ],
            },
            {
                "kind": "table",
                "id": "flows",
                "title": name,
                "groups": {"table": "packets", "by": name, "count": "direction", "sum": "bytes"},
                "columns": [
                    {"name": "flow", "kind": "text"},
                    {"name": "received", "kind": "count"},
                    {"name": "sent", "kind": "count"},
                    {"name": "bytes", "kind": "count"},
                ],
                "rows": [["all of them", rows, 0, 1]],
            },
        ],
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return view.write(tmp_path_factory.mktemp("page") / "page.html", document(rows=50_000))


@pytest.fixture
def shown(browser, page):
    shown = View(browser, page)
    yield shown
    shown.check()


def bars(shown, lane=0, colour=lambda p: p == VERMILION):
    """[start, end] of the bars of a lane."""
    pixels = shown.pixels("threads")[24 + 34 * lane]
    start, end = shown.window()
    return [[start + x / len(pixels) * (end - start) for x in (a, b + 1)] for a, b in runs(pixels, colour)]


@pytest.mark.smoke
def test_a_bar_is_where_the_stall_was(shown):
    """Read from the canvas, to a pixel, and after zooming to a few microseconds. The line of the event hides its end."""
    start, end = shown.window()
    pixel = (end - start) / shown.box("threads")[2]
    ((first, last),) = bars(shown)
    assert abs(first - STALL) <= pixel and abs(last - STALL_END) <= 2 * pixel
    for _ in range(12):
        shown.wheel("threads", STALL, -200)
    start, end = shown.window()
    assert end - start < 2 * MS and start <= STALL <= end
    ((first, last),) = bars(shown)
    assert abs(first - STALL) <= 5_000 and abs(last - end) <= 5_000


def test_many_short_gaps_do_not_look_like_a_long_one(shown):
    """They cover 2 % of their time, and are pale until the page is zoomed to them."""
    paler = bars(shown, 1, lambda p: VERMILION[2] + 60 < p[2] < p[0] - 10)
    assert not bars(shown, 1) and min(a for a, _ in paler if a > 1050 * MS) == pytest.approx(SHORT[0], abs=2 * MS)
    for _ in range(16):
        shown.wheel("threads", SHORT[20], -200)
    found = bars(shown, 1)
    assert len(found) >= 1 and any(
        abs(a - SHORT[20]) <= 1_000 and abs(b - SHORT[20] - 10_000) <= 1_000 for a, b in found
    )


def test_nothing_is_drawn_between_two_steps(shown):
    """A value holds for its time: the curve is as high as its value in every column of pixels but those of an edge."""
    pixels = shown.pixels("latency")
    edge = [round(len(pixels[0]) * share) for share in (1 / 3, 2 / 3)]
    heights = {}
    for x in range(4, len(pixels[0]) - 4):
        rows = [y for y, row in enumerate(pixels) if max(abs(a - b) for a, b in zip(row[x], VERMILION)) < 25]
        if min(abs(x - e) for e in edge) > 3 and rows:
            heights.setdefault(x > edge[0], set()).update(rows)
            assert x < edge[1], "the value is unknown there"
    assert set(heights) == {False, True}
    for rows in heights.values():
        assert max(rows) - min(rows) <= 2
    assert min(heights[False]) > max(heights[True]) + 10
    assert_stall_is_empty_and_burst_is_short(shown)


def assert_stall_is_empty_and_burst_is_short(shown):
    """Steps within the stall are 0, at each zoom; the burst's rate is that of its time."""
    for window in ([0, 1500 * MS], [650 * MS, 800 * MS], [735 * MS, 738 * MS]):
        shown.run(f"view.time.show({window[0]}, {window[1]})")
        at, sums, _least, most = shown.ask("view.panels.find(p => p.spec.id === 'rates').points()")
        steps = list(zip(at, at[1:], sums, most))
        inside = [s for s in steps if s[0] >= STALL and s[1] <= STALL_END]
        assert inside and all(s[2] == s[3] == 0 for s in inside)
        after = [s for s in steps if s[0] <= STALL_END < s[1]]
        assert after[0][3] >= after[0][2] > 20_000
        # All packets are in the steps.
        counted = sum((b - a) * (rate or 0) / 1e9 for a, b, rate, _ in steps)
        wanted = sum(v for i, v in enumerate(rates()) if at[0] <= i * STEP < at[-1])
        assert counted == pytest.approx(wanted, rel=1e-6)


def test_the_end_of_a_step_that_is_short(browser, tmp_path):
    """The last step ends with the window: its rate is not too low."""
    d = document()
    d["panels"] = [p for p in d["panels"] if p.get("id") == "rates"]
    d["panels"][0].update(
        grid={"from_ns": 0, "step_ns": 100, "to_ns": 250}, series=[{"name": "received", "values": [1, 1, 1]}]
    )
    d["range"] = {"from_ns": 0, "to_ns": 250}
    shown = View(browser, view.write(tmp_path / "page.html", d))
    at, rate, _least, _most = shown.ask("view.panels[0].points()")
    assert at == [0, 100, 200, 250] and rate == [1e7, 1e7, 2e7, 2e7]


def test_time_that_was_not_kept_is_hatched(shown):
    """In each panel, for as long as it was, and nowhere else; the reason is on the page."""
    for panel in "threads", "rates", "latency", "heat":
        pixels = shown.pixels(panel)
        width = len(pixels[0])
        dark = [sum(sum(row[x]) < 3 * 0x90 for row in pixels) for x in range(width)]
        hatched = [x for x in range(round(0.1 * width)) if dark[x]]
        assert len(hatched) > 0.095 * width, panel
    at, sums, _least, most = shown.ask("view.panels.find(p => p.spec.id === 'rates').points()")
    unknown = [t for t, rate in zip(at, sums) if rate is None]
    assert unknown == [t for t, end in itertools.pairwise(at) if end <= KEPT]
    assert all(most[at.index(t)] is None for t in unknown)
    assert shown.hover("rates", 50 * MS)[-1] == "my-app: –"
    assert shown.hover("rates", 720 * MS)[-1].startswith("my-app: 0 ")
    lane = shown.pixels("threads")[34 + 22]
    hatched = [1500 * x / len(lane) for x, p in enumerate(lane) if sum(p) < 3 * 0x90 and p != VERMILION]
    assert len(hatched) > 10 and all(ms < 152 or ms > 1398 or 733 < ms < 739 for ms in hatched), hatched
    assert "150 ms were not kept, from 2026-11-27 14:30:00.123456789 UTC on: the recorder had just begun" in shown.ask(
        "document.body.innerText"
    )


def test_zoom_pan_and_keys(shown):
    shown.wheel("rates", STALL, -200)
    start, end = shown.window()
    assert (STALL - start) / (end - start) == pytest.approx(STALL / (1500 * MS), abs=0.01) and end - start < 1000 * MS
    shown.drag("rates", start + 0.5 * (end - start), start + 0.4 * (end - start), modifiers=8)
    moved = shown.window()
    assert moved[0] == pytest.approx(start + 0.1 * (end - start), abs=5 * MS)
    assert moved[1] - moved[0] == pytest.approx(end - start)
    shown.wheel("rates", sum(moved) / 2, -100, modifiers=8)
    assert shown.window()[0] < moved[0] and shown.window()[1] - shown.window()[0] == pytest.approx(end - start)
    for key, wanted in (("0", 1500), ("+", 750), ("-", 1500)):
        shown.key(key)
        assert shown.window()[1] - shown.window()[0] == pytest.approx(wanted * MS), key
    shown.key("+")
    before = shown.window()
    shown.key("ArrowRight")
    assert shown.window()[0] > before[0]
    shown.drag("rates", before[0] + 400 * MS, before[0] + 500 * MS)
    shown.key("Enter")
    assert shown.window()[1] - shown.window()[0] == pytest.approx(100 * MS, rel=0.05)
    shown.key("Escape")
    assert shown.ask("view.time.selection") is None
    for key in "+" * 40:
        shown.key(key)
    assert shown.window()[1] - shown.window()[0] >= 200
    shown.key("Home")
    assert shown.window() == [0, 1500 * MS]


def test_hover(shown):
    legend = "[...document.querySelectorAll('#threads .legend > span')].map(s => s.textContent)"
    assert shown.ask(legend) == ["my-app my-app", "busy"], "no bar is idle"
    lines = shown.hover("threads", STALL + 10 * MS, below=0.3)
    assert "36 ms, from 14:30:00.823456789 to 14:30:00.859456789" in "".join(lines) and lines[1] == "my-app"
    assert lines[0].startswith("2026-11-27 14:30:00.83") and "UTC" in lines[0] and "(-2" in lines[0]
    assert shown.hover("threads", 300 * MS, below=0.3)[1:] == ["my-app"]
    assert "my-app: 36 ms (of 500 ms)" in shown.hover("latency", 600 * MS)
    assert "my-app: – (of 500 ms)" in shown.hover("latency", 1200 * MS)
    (rate,) = shown.hover("rates", 300 * MS)[1:]
    assert rate.startswith("my-app: ") and "(20 k/s; " in rate
    assert any(line.endswith("100 (of 500 ms)") for line in shown.hover("heat", 700 * MS, below=0.95))
    shown.mouse("mouseMoved", 2, 2)
    assert shown.ask("document.getElementById('tip').hidden")


def rows(shown, table="packets"):
    return shown.ask(
        f"[...document.querySelectorAll('#{table} .space .row')].map(r => [...r.children].map(c => c.textContent))"
    )


def state(shown):
    return shown.ask("document.querySelector('#packets .bar .soft').textContent")


def test_tables(shown):
    """Virtual, sorted, filtered by a text and by a time; with the filter for Wireshark."""
    assert state(shown) == "50,000 of 50,000 rows" and 10 < len(rows(shown)) < 60
    assert rows(shown)[0] == ["1", "14:30:00.623456789", "my-app 0", "0 B", "1,200 ns", "received"]
    shown.run("document.querySelector('.body').scrollTop = 1e9")
    shown.run("document.querySelector('.body').onscroll()")
    assert rows(shown)[-1][0] == "50000"
    shown.drag("threads", 600 * MS, 700 * MS)
    selected = shown.ask("view.time.selection")
    wanted = [i for i in range(50_000) if selected[0] <= 500 * MS + i * 10_000 <= selected[1]]
    assert state(shown) == f"{len(wanted):,} of 50,000 rows (selected time)"
    value = "document.querySelector('#packets input[readonly]').value"
    assert shown.ask(value) == f"frame.number in {{{wanted[0] + 1}..{wanted[-1] + 1}}}"
    shown.run(
        "document.querySelectorAll('.head button')[0].click(), document.querySelectorAll('.head button')[0].click()"
    )
    assert rows(shown)[0][0] == str(wanted[-1] + 1)
    shown.run("document.querySelector('.space .row').click()")
    assert shown.ask(value) == f"frame.number == {wanted[-1] + 1}"
    details = "[...document.querySelectorAll('#packets dd')].map(d => d.textContent)"
    assert shown.ask(details) == [f"my-app {wanted[-1] % 7}", DIRECTIONS[wanted[-1] % 3 > 0]]
    groups = [[i for i in wanted if i % 7 == k] for k in range(7)]
    assert sorted(rows(shown, "flows")) == [
        [
            f"my-app {k}",
            f"{sum(i % 3 == 0 for i in g):,}",
            f"{sum(i % 3 > 0 for i in g):,}",
            f"{sum(64 * i for i in g):,}",
        ]
        for k, g in enumerate(groups)
    ]
    shown.run("(i => { i.value = 'APP 3'; i.oninput(); })(document.querySelector('#packets input[type=search]'))")
    matching = [i for i in wanted if i % 7 == 3]
    assert state(shown) == f"{len(matching):,} of 50,000 rows (selected time)"
    shown.key("Escape")
    assert rows(shown, "flows") == [["all of them", "50,000", "0", "1"]]
    shown.run("(i => { i.value = 'no such'; i.oninput(); })(document.querySelector('#packets input[type=search]'))")
    assert state(shown) == "0 of 50,000 rows" and shown.ask(value) == "" and shown.ask(details) == []


def test_a_hundred_thousand_rows(browser, tmp_path):
    """They scroll to the last one, and a text and a time filter them. Texts are in the document once."""
    many, flows = document(), [f"198.18.0.1:{i} > 198.18.0.2:9 UDP" for i in range(1000)]
    columns = [("frame", "frame"), ("time", "time"), ("direction", "text"), ("packet", "text")]
    table = {
        "kind": "table",
        "id": "many",
        "title": "Packets",
        "columns": [{"name": n, "kind": k} for n, k in columns],
        "rows": [[i + 1, KEPT + 10_000 * i, i % 2, i % 1000] for i in range(100_000)],
    }
    table["columns"][2]["texts"], table["columns"][3]["texts"] = DIRECTIONS, flows
    many["panels"].append({**table, "rows": table["rows"][:10]})
    view.validate(many)
    many["panels"][-1] = table
    shown = View(browser, view.write(tmp_path / "x.html", many))
    one = "view.tables.find(t => t.spec.id === 'many')"

    def rows():
        return shown.ask(f"[...{one}.space.children].map(r => [...r.children].map(c => c.textContent))")

    def says():
        return shown.ask(f"{one}.says.textContent")

    assert says() == "100,000 of 100,000 rows" and len(rows()) < 40
    assert rows()[1][0::2] == ["2", "sent"] and rows()[1][3] == flows[1]
    shown.run(f"{one}.body.scrollTop = 1e9")
    until(lambda: rows()[-1][0] == "100000", what="the last row")
    assert len(rows()) < 40
    shown.run(f"{one}.input.value = '.1:77 '; {one}.input.dispatchEvent(new Event('input'))")
    assert says() == "100 of 100,000 rows" and {r[3] for r in rows()} == {flows[77]}
    shown.run(f"view.time.select([{KEPT}, {KEPT + 10_000 * 50_000 - 1}])")
    assert says() == "50 of 100,000 rows (selected time)"
    shown.check()


def test_texts_with_a_unit_are_sorted_by_their_value(shown):
    shown.run("document.querySelectorAll('#packets .head button')[4].click()")
    assert {r[4] for r in rows(shown)} == {"1,200 ns"}
    shown.run("document.querySelectorAll('#packets .head button')[4].click()")
    assert {r[4] for r in rows(shown)} == {"2 ms"}


def test_distributions(shown):
    """Shares along an axis of their own, which has its own zoom."""
    at, shares = shown.ask("view.panels.find(p => p.spec.id === 'spread').points()")
    assert [round(10**x) for x in at] == [100, 200, 400, 800, 1600] and shares == [0, 0.6, 0.3, 0.1, 0.1]
    _, shares = shown.ask("view.panels.find(p => p.spec.id === 'tail').points()")
    assert shares == [1, 1, 0.4, 0.1, 0.1]
    left, top, width, height = shown.box("spread")
    shown.mouse("mouseMoved", left + 0.4 * width, top + height / 2)
    tip = "[...document.getElementById('tip').children].map(p => p.textContent)"
    assert shown.ask(tip)[1:] == ["200 ns to 400 ns", "my-app: 60 % (60)", "my-app: 390 ns"]
    left, top, width, height = shown.box("tail")
    shown.mouse("mouseMoved", left + 0.7 * width, top + height / 2)
    assert shown.ask(tip)[2] == "my-app: 40 % take this or longer"
    before = shown.window()
    shown.mouse("mouseWheel", left + 0.7 * width, top + height / 2, deltaX=0, deltaY=-200)
    low, high = shown.ask("(p => [p.time.from, p.time.to])(view.panels.find(p => p.spec.id === 'tail'))")
    assert high - low < 1 and shown.window() == before


def test_points(shown):
    pixels = shown.pixels("points")
    blue = [(x, y) for y, row in enumerate(pixels) for x, p in enumerate(row) if p[0] < 60 < p[2] - p[0]]
    across, down = len(pixels[0]), len(pixels)
    assert any(abs(x / across - 0.25) < 0.01 and abs(y / down - 0.5) < 0.02 for x, y in blue)
    left, top, width, height = shown.box("points")
    shown.mouse("mouseMoved", left + 0.25 * width, top + 0.5 * height)
    assert shown.ask("document.getElementById('tip').lastChild.textContent") == "my-app: 1 MiB"
    ticks = "view.panels.find(p => p.spec.id === 'points').axis().values(null, [1022500, 1023000, 1048576])"
    assert shown.ask(ticks) == ["998.5 KiB", "999 KiB", "1 MiB"]


def test_what_lies_over_a_heat_map(shown):
    """The steps of a percentile, the threshold, and a ring around a single packet."""
    pixels = shown.pixels("heat")
    height, width = len(pixels), len(pixels[0])

    def row_of(value):
        return round((1 - math.log(value / 1000) / math.log(8)) * (height - 1))

    def has(colour, value, ms):
        rows = pixels[max(0, row_of(value) - 3) : row_of(value) + 4]
        x = round(ms / 1500 * (width - 1))
        return any(math.dist(pixel, colour) < 60 for row in rows for pixel in row[max(0, x - 3) : x + 4])

    green = (0x00, 0x9E, 0x73)
    assert has(green, 1500, 300) and has(green, 6000, 1200) and not any(has(green, v, 750) for v in (1500, 3000, 6000))
    assert not has(green, 6000, 300) and not has(green, 1500, 1200)
    text = shown.pixels("heat")[row_of(7000)][round(736 / 1500 * (width - 1)) + 2 :][:4]
    assert any(sum(p) < 3 * 0x90 for p in text)
    assert any(line.startswith("my-app: ") and "us" in line for line in shown.hover("heat", 300 * MS, below=0.95))


def test_dark_and_light(shown):
    shown.browser.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert shown.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    until(lambda: not bars(shown), what="drawn in the other colours")
    assert runs(shown.pixels("threads")[24], lambda p: p == (0xFF, 0x85, 0x33))
    shown.run("document.querySelector('header button:last-child').click()")
    assert shown.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    until(lambda: bars(shown), what="drawn in the first colours")


def test_no_serious_fault_of_access(browser, page):
    """Contrast, names of controls, roles, order of headings, of both themes in a wide and in a narrow window."""
    for width in 1280, 400:
        shown = View(browser, page, width)
        for theme in "light", "dark":
            shown.ask(f"document.documentElement.dataset.theme = '{theme}'")
            assert axe.faults(shown) == [], (width, theme)
    shown.run("document.documentElement.removeAttribute('lang')")
    assert [fault.split(":")[0] for fault in axe.faults(shown)] == ["html-has-lang"]


def test_narrow(browser, page):
    shown = View(browser, page, width=400)
    shown.check()
    for panel in "threads", "rates", "latency", "heat":
        left, _top, width, _height = shown.box(panel)
        assert left >= 40 and width > 250 and left + width <= 400
    ((first, last),) = bars(shown)
    assert abs(first - STALL) <= 6 * MS and abs(last - STALL_END) <= 12 * MS


def test_hostile_names_stay_text(browser, tmp_path):
    """Scripts, markup, control characters, long ones."""
    for name in NAMES:
        d = document(name)
        view.validate(d)
        shown = View(browser, view.write(tmp_path / "page.html", d))
        shown.hover("threads", STALL + MS, below=0.3)
        shown.check()
        assert shown.ask("document.title").startswith("incident of ")
        assert shown.ask("document.scripts.length") == 3 and shown.ask("document.images.length") == 0
        if len(name) < 100:
            assert name in shown.ask("document.querySelector('h1').textContent")


def test_a_document_of_another_version(browser, tmp_path):
    View(browser, view.write(tmp_path / "page.html", document() | {"view": 2}))
    assert "this page draws documents of version 1, not 2" in browser.ask("document.body.innerText")


def test_none_of_a_million_steps_is_left_out(browser, tmp_path):
    """Ten of them have a packet; all are in what is drawn at first, and each is found by zooming."""
    d = document()
    values = [0] * 1_000_000
    busy = [7 + 99_991 * k for k in range(10)]
    for i in busy:
        values[i] = 1
    d["panels"] = [p for p in d["panels"] if p.get("id") == "rates"]
    d["panels"][0].update(
        grid={"from_ns": 0, "step_ns": 1500, "to_ns": 1500 * MS}, series=[{"name": "received", "values": values}]
    )
    shown = View(browser, view.write(tmp_path / "page.html", d))
    at, rate, _least, most = shown.ask("view.panels[0].points()")
    assert len(at) < 1000 and sum(m > 0 for m in most[:-1] if m) == 10 == sum(r > 0 for r in rate[:-1] if r)
    for i in busy:
        shown.run(f"view.time.show({(i - 20) * 1500}, {(i + 20) * 1500})")
        at, rate, _least, _most = shown.ask("view.panels[0].points()")
        assert [a for a, r in zip(at[:-1], rate) if r] == [i * 1500]
    shown.check()


def test_files_of_the_page(shown):
    """The buttons save the document unchanged, values as CSV with quotes where needed, and an image."""
    shown.run("globalThis.saved = []; URL.createObjectURL = (b) => { saved.push(b); return 'blob:null/x'; }; undefined")
    shown.run("HTMLAnchorElement.prototype.click = function () { saved.push(this.download); }; undefined")
    for button in "JSON", "CSV", "PNG":
        shown.run(f"[...document.querySelectorAll('header button')].find(b => b.textContent === '{button}').click()")

    shown.run("new Promise(r => { const wait = () => saved.length === 6 ? r(1) : setTimeout(wait, 5); wait(); })")
    names = shown.ask("saved.filter(s => typeof s === 'string')")
    assert names == ["incident-of-my-app.json", "incident-of-my-app.csv", "incident-of-my-app.png"]
    text, values = (shown.run(f"saved.filter(s => typeof s !== 'string')[{n}].text()") for n in (0, 1))
    assert json.loads(text) == document(rows=50_000)
    assert "my-app,700000000,36000000,my-app,my-app\r\n" in values
    assert "736000000,37\r\n" in values
    assert shown.run("saved.filter(s => typeof s !== 'string')[2].type") == "image/png"
    assert shown.run("saved.filter(s => typeof s !== 'string')[2].size") > 10_000


def spoil(change):
    d = copy.deepcopy(document())
    change(d)
    return d


SPOILT = {
    "no version": lambda d: d.pop("view"),
    "another version": lambda d: d.update(view=2),
    "a local time": lambda d: d.update(origin="2026-11-27T14:30:00"),
    "an unknown kind": lambda d: d["panels"][0].update(kind="pie"),
    "a text as value": lambda d: d["panels"][1]["series"][0]["values"].__setitem__(0, "1"),
    "an interval without state": lambda d: d["panels"][0]["lanes"][0]["intervals"].append([1, 2]),
    "an unknown key": lambda d: d["panels"][2].update(color="red"),
    "a time with a fraction": lambda d: d["missing"][0].update(to_ns=1.5),
}


def test_the_schema(page):
    assert view.document_of(page)["panels"] == document(rows=50_000)["panels"]
    for name, change in SPOILT.items():
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            view.validate(spoil(change))
            pytest.fail(name)
