# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap web`: what the page shows while applications run."""

import json
import re
import signal
from bisect import bisect_left
from itertools import accumulate

import pytest
from harness.live import LiveView, Web
from harness.proc import check, freeze, until

RATE = 2000
STEADY = ("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", RATE)


@pytest.fixture
def web(closing):
    return lambda *apps, args=(): closing(Web(*apps, args=args))


@pytest.fixture
def steady(fwd):
    """An application that sends and receives a known number of packets a second."""
    return fwd(*STEADY).running()


def overview(shown, app):
    return next((row for row in shown.table("applications") if row["application"] == app.prefix), None)


@pytest.mark.smoke
def test_the_overview_has_the_rate(browser, steady, web):
    shown = LiveView(browser, web())
    rate = until(lambda: (overview(shown, steady) or {}).get("received"))
    shown.updates(3)
    row = overview(shown, steady)
    assert rate == pytest.approx(RATE, rel=0.2) and row["received"] == pytest.approx(RATE, rel=0.2)
    assert row["sent"] == pytest.approx(RATE, rel=0.2) and row["lost"] == 0
    shown.check()


def follow(shown, text):
    """Clicks the link of this text."""
    until(lambda: shown.ask(f"[...document.querySelectorAll('a')].some(a => a.textContent === {json.dumps(text)})"))
    shown.run(f"[...document.querySelectorAll('#page a')].findLast(a => a.textContent === {json.dumps(text)}).click()")


def rows(shown, table):
    return until(lambda: shown.table(table), what=table)


def test_drill_down(browser, steady, web):
    """From all applications to one, to a port and its queues, to a thread, and back."""
    shown = LiveView(browser, web())
    follow(shown, steady.prefix)
    until(lambda: [row["port"] for row in shown.table("ports")] == ["net_ring_a"])
    assert {(row["direction"], row["thread"]) for row in rows(shown, "queues")} == {
        ("rx", "lcore 1"),
        ("tx", "lcore 1"),
    }
    assert [row["thread"] for row in rows(shown, "threads")] == ["lcore 1"]
    follow(shown, "net_ring_a")
    until(lambda: shown.ask("view.panels.some(p => p.spec.id === 'queue-rates')"))
    shown.updates(2)
    assert {row["direction"] for row in rows(shown, "queues")} == {"rx", "tx"} and not shown.table("threads")
    for row in shown.table("queues"):
        assert row["packets"] == pytest.approx(RATE, rel=0.3)
    follow(shown, "lcore 1")
    until(lambda: shown.table("threads") and not shown.table("ports"))
    follow(shown, "All applications")
    until(lambda: overview(shown, steady))
    shown.check()


def test_a_killed_application_is_shown_as_gone_and_comes_back(browser, fwd, web):
    app = fwd(*STEADY).running()
    shown = LiveView(browser, web())
    until(lambda: (overview(shown, app) or {}).get("received"))
    before = len(overview(shown, app)["received, 10 min"])
    app.proc.kill()
    row = until(lambda: (r := overview(shown, app)) and r["received"] is None and r)
    assert "has ended" in row["verdict of the last seconds"]
    fwd(*STEADY, name=app.prefix).running()
    until(lambda: (overview(shown, app) or {}).get("received"))
    curve = overview(shown, app)["received, 10 min"]
    assert len(curve) > before and None in curve[before:]
    assert len(shown.table("applications")) == 1
    shown.check()


def test_a_note_that_changes_does_not_build_the_page_again(browser, fwd, web):
    """Text in a filter of a table stays, although rates change each second."""
    app = fwd("--vdev", "net_null0", "--role", "sink:0@1").running()
    shown = LiveView(browser, web(), app=app.prefix)
    rows(shown, "queues")
    note = "document.querySelector('.pipeline .note')?.textContent ?? null"
    first = until(lambda: shown.ask(note))
    shown.run("view.page.kept = true")
    until(lambda: shown.ask(note) != first)
    shown.updates(2)
    assert shown.ask("view.page.kept")
    shown.check()


def test_dark_and_narrow(browser, steady, web):
    browser.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    served = web()
    for width in 400, 1280:
        browser.open("about:blank", width)
        shown = LiveView(browser, served, width, app=steady.prefix)
        rows(shown, "queues")
        shown.updates(1)
        assert shown.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
        shown.check()


def test_hostile_names_stay_text(browser, fwd, web):
    """An application's name is a folder's, so it has no slash; its length is that of a file's name."""
    name = "<img src=x onerror=document.title='run'>&\"'\u202e#app=x"
    app = fwd(*STEADY, name=name).running()
    shown = LiveView(browser, web())
    until(lambda: overview(shown, app))
    shown.updates(1)
    follow(shown, name)
    rows(shown, "queues")
    assert name in shown.text() and "run" not in shown.ask("document.title").split(",")[0].replace(name, "")
    assert shown.ask("document.querySelectorAll('img').length") == 0
    shown.check()


def test_the_window_follows_unless_it_is_moved(browser, steady, web):
    shown = LiveView(browser, web())
    until(lambda: (overview(shown, steady) or {}).get("received"))
    until(lambda: shown.window()[1] - shown.window()[0] > 1e9)
    start, end = shown.window()
    shown.run(f"view.time.show({start}, {start + 1e9})")
    shown.updates(2)
    assert shown.window() == pytest.approx([start, start + 1e9])
    shown.key("0")
    shown.updates(1)
    assert shown.window()[1] > end


def test_a_stream_is_documents_of_the_schema(steady, web):
    """The document has the history, an update the newest step; both name the same origin."""
    server = web()
    stream = server.events(app=steady.prefix)
    kinds = []
    while kinds[-3:] != ["update"] * 3:
        kind, document = next(stream)
        kinds.append(kind)
    assert kinds[0] == "document"
    again = server.events(app=steady.prefix)
    kind, whole = next(again)
    assert kind == "document" and whole["origin"] == document["origin"]
    (rates,) = (p for p in whole["panels"] if p["id"] == "rates")
    assert len(rates["edges_ns"]) > 3 and all(len(s["values"]) == len(rates["edges_ns"]) - 1 for s in rates["series"])
    stream.close()
    again.close()


def test_without_the_token_there_is_nothing(browser, web):
    server = web()
    for path in "/", "/events", "/?token=0", "/nothing":
        status, _, text = server.request(path, Authorization=None)
        assert status == 403 and b"token" in text
    assert server.request("/", Host="evil.example")[0] == 403
    assert server.request("/")[0] == 200


def test_packets_are_recorded_for_a_client(steady, web, tmp_path):
    server = web(args=("--allow-actions",))
    stream = server.events(app=steady.prefix)  # applications are watched while there is a client
    while not any(panel.get("rows") for panel in next(stream)[1]["panels"]):
        pass
    path = f"/record?app={steady.prefix}&seconds=1&filter=arp"
    assert server.request(path)[0] == 405
    assert server.request(path, "POST", Origin="http://evil.example")[0] == 403
    status, headers, packets = server.request(path, "POST")
    assert status == 200 and "packets.pcapng" in headers["Content-Disposition"]
    file = tmp_path / "packets.pcapng"
    file.write_bytes(packets)
    assert int(check(["capinfos", "-Mc", file]).split()[-1]) > RATE / 4
    status, _, text = server.request(path.replace("filter=arp", "filter=nonsense"), "POST")
    assert status == 500 and b"nonsense" in text
    stream.close()


def follow_packets(shown):
    """The application frees all that it receives, at once."""
    shown.run("document.querySelector('.actions input[aria-label=\"seconds to follow packets\"]').value = 1")
    for button, section in (("Not sent", "drops"), ("Held", "held")):
        shown.run(f"[...document.querySelectorAll('.actions button')].find(b => b.textContent === '{button}').click()")
        until(lambda: shown.ask(f"document.querySelectorAll('#{section}').length"))
        said = shown.ask(f"document.querySelector('#{section} .note').textContent")
        rows = shown.ask(
            f"[...document.querySelectorAll('#{section} .table')].map(t => [t.id, [...t.querySelector('.space .row').children]"
            ".map(c => c.textContent)])"
        )
        if section == "held":
            assert said == "0 received packets were neither passed to a port nor freed, 0 of them older than 1 s."
            continue
        received, dropped = (int(n.replace(",", "")) for n in re.findall(r"[\d,]{3,}(?= packets| \()", said))
        assert received == dropped > RATE / 2, said
        tables = dict(rows)
        assert tables["drops-reasons"][:3] == ["net_ring_a", "0", "0"] and tables["drops-reasons"][-1] == "running"
        assert tables["drops-fates"][2:6] == [f"{received:,}", "0", f"{received:,}", "100 %"]
        assert tables["drops-kinds"][:2] == ["ARP", f"{received:,}"] and "198.18.0.1" in tables["drops-kinds"][3]


def test_the_page_switches_collectors_and_records(browser, steady, web):
    """The price is beside each; without --allow-actions nothing can be switched."""
    shown = LiveView(browser, web(args=("--allow-actions",)), app=steady.prefix)
    rows(shown, "queues")
    boxes = "[...document.querySelectorAll('.actions input[type=checkbox]')]"
    assert shown.ask(f"{boxes}.map(b => [b.parentNode.textContent.trim(), b.checked, b.disabled])") == [
        ["latency", False, False],
        ["gaps", False, False],
        ["bytes", False, False],
        ["xstats", False, False],
        ["devices", False, False],
        ["flows", False, False],
    ]
    assert "28 % of the rate of a bare forwarder" in shown.ask("document.querySelector('.actions').textContent")
    shown.run(f"{boxes}[1].click()")
    until(
        lambda: shown.ask(f"{boxes}[1].checked && document.querySelector('.actions [role=status]').textContent")
        == "switched\n"
    )
    shown.run("document.querySelector('.actions input[aria-label=seconds]').value = 1")
    shown.run("[...document.querySelectorAll('.actions button')].find(b => b.textContent === 'Record').click()")
    until(lambda: shown.ask("document.querySelector('.actions [role=status]').textContent") == "recorded")
    follow_packets(shown)
    shown.check()


def test_nothing_can_be_switched_by_default(browser, steady, web):
    shown = LiveView(browser, web(), app=steady.prefix)
    rows(shown, "queues")
    assert shown.ask("[...document.querySelectorAll('.actions input')].map(b => b.disabled)") == [True] * 6
    assert shown.ask("document.querySelectorAll('.actions button').length") == 0
    shown.check()


def test_latencies_have_a_heat_map(browser, fwd, web):
    """A column a second, with all packets; a second in which the application is stopped has none."""
    roles = "generate:0@1", "oneway:0,1@1", "sink:1@1"
    app = fwd("--ring", "a", "--ring", "b", *(w for r in roles for w in ("--role", r)), "--rate", RATE).running()
    server = web(args=("--collectors", "polls,latency", f"{app.prefix}:1", "nosuch"))
    server.proc.expect("web: no application is called 'nosuch'")
    shown = LiveView(browser, server, app=app.prefix)
    assert [row["port"] for row in rows(shown, "ports")] == ["net_ring_b"]
    heat = "view.panels.find(p => p.spec.id === 'latency-heat')"
    until(lambda: shown.ask(f"{heat} !== undefined"))
    sums = f"{heat}.spec.counts.map(c => c.reduce((a, b) => a + b, 0))"
    until(lambda: sum(n > RATE / 2 for n in shown.ask(sums)) > 2)
    counts, edges, levels, series, drawn = shown.ask(
        f"[{heat}.spec.counts, {heat}.spec.edges_ns, {heat}.spec.y_edges, {heat}.spec.series, {heat}.edges]"
    )
    assert len(edges) == len(counts) + 1 and [s["name"] for s in series] == ["p50", "p99"]
    for column, p50, p99 in zip(counts, *(s["values"] for s in series), strict=True):
        assert len(column) in (0, len(levels) - 1) and (p50 is None) == (not any(column))
        if p50 is None:
            continue
        assert drawn[0] <= p50 <= p99 <= drawn[1]
        for value, share in (p50, 0.5), (p99, 0.99):
            # A bucket of the probe, a cycle or 1.6 % wide, may lie across an edge of rows.
            row = bisect_left(list(accumulate(column)), share * sum(column))
            assert levels[row] / 1.02 - 1 <= value <= levels[row + 1] * 1.02 + 1
    freeze(app.proc.pid)
    try:
        until(lambda: shown.ask(sums)[-1] == 0, what="a column without packets")
    finally:
        app.proc.send_signal(signal.SIGCONT)
    assert shown.hover("latency-heat", sum(edges[-2:]) / 2)
    shown.check()


def test_polling_gaps_have_lanes_once_they_are_collected(browser, steady, web):
    """A thread that is stopped for a while has a bar as long as that."""
    shown = LiveView(browser, web(args=("--collectors", "polls,busy,gaps")), app=steady.prefix)
    until(lambda: shown.ask("view.panels.some(p => p.spec.id === 'gaps')"))
    freeze(steady.proc.pid)
    try:
        shown.updates(2)
    finally:
        steady.proc.send_signal(signal.SIGCONT)
    longest = "Math.max(0, ...view.panels.find(p => p.spec.id === 'gaps').spec.lanes.flatMap(l => l.intervals.map(v => v[1])))"
    until(lambda: shown.ask(longest) > 0.9e9)
    shown.check()
