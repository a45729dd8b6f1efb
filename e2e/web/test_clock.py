# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap web` in a browser whose host has another clock: all times are those of the server."""

import json
import signal
import time
from datetime import UTC, datetime

import pytest
from harness.cases import nightly
from harness.flight import Flight
from harness.live import LiveView, Web
from harness.paths import RINGTAP
from harness.proc import check, freeze, until

HOUR_MS = 3600_000
NEAR_NS = 10**8  # an application that has just started measures its clock still
SHIFTED = """
const Real = Date, by = %d;
globalThis.Date = class extends Real {
  constructor(...all) { super(...(all.length ? all : [Real.now() + by])); }
  static now() { return Real.now() + by; }
};
"""


def at(shown, panel, expression):
    """Nanoseconds since the epoch of a time in a panel; p is its specification."""
    spec = f"view.panels.find(p => p.spec.id === {json.dumps(panel)}).spec"
    return int(shown.ask(f"String(view.page.origin + BigInt(Math.round((p => {expression})({spec}))))"))


def text_of(ns):
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize("shift, zone", [(-HOUR_MS, "Asia/Kolkata"), nightly(HOUR_MS, "America/New_York")])
def test_the_clock_of_the_browser_does_not_matter(browser, fwd, closing, tmp_path, shift, zone):
    """A thread that was stopped has its bar at the server's time; so have heat map, sparklines and incidents."""
    roles = "generate:0@1", "oneway:0,1@1", "sink:1@1"
    app = fwd("--ring", "a", "--ring", "b", *(w for r in roles for w in ("--role", r)), "--rate", 2000).running()
    flight = closing(Flight(app, tmp_path / "kept"))
    browser.do("Page.addScriptToEvaluateOnNewDocument", source=SHIFTED % shift)
    browser.do("Emulation.setTimezoneOverride", timezoneId=zone)
    web = closing(Web(args=("--collectors", "polls,busy,gaps,latency", "--allow-actions")))
    shown = LiveView(browser, web, app=app.prefix)
    assert abs(shown.ask("Date.now()") + -shift - time.time() * 1000) < 60_000
    assert shown.ask("Intl.DateTimeFormat().resolvedOptions().timeZone").replace("Calcutta", "Kolkata") == zone
    until(lambda: shown.ask("['gaps', 'latency-heat', 'rates'].every(id => view.panels.some(p => p.spec.id === id))"))
    before = time.time_ns()
    freeze(app.proc.pid)
    stopped = time.time_ns()
    try:
        until(lambda: time.time_ns() > stopped + 3 * 10**8)
        goes_on = time.time_ns()
    finally:
        app.proc.send_signal(signal.SIGCONT)
    longest = "p.lanes.flatMap(l => l.intervals).reduce((a, b) => (a && a[1] > b[1] ? a : b), null)"
    until(
        lambda: at(shown, "gaps", f"{longest}?.[1] ?? 0")
        and shown.ask(f"(p => {longest})(view.panels.find(p => p.spec.id === 'gaps').spec)[1]") > 2.5e8
    )
    start, end = at(shown, "gaps", f"{longest}[0]"), at(shown, "gaps", f"{longest}[0] + {longest}[1]")
    assert before - NEAR_NS < start < stopped + NEAR_NS and goes_on - NEAR_NS < end < time.time_ns() + NEAR_NS

    bar = shown.ask(f"(p => {longest})(view.panels.find(p => p.spec.id === 'gaps').spec)")
    lines = shown.hover("gaps", bar[0] + bar[1] / 2)
    assert any(text_of(start)[11:] in line for line in lines), lines
    for panel in "latency-heat", "rates":
        now, shown_to = time.time_ns(), at(shown, panel, "p.edges_ns.at(-1)")
        assert now - 60e9 < shown_to <= now
    status = shown.ask("document.querySelector('.tools [role=status]').textContent")
    assert status.startswith(text_of(int(shown.ask("String(view.page.origin + BigInt(Math.round(view.time.from)))"))))
    assert " UTC" in status and abs(at(shown, "rates", "view.time.to") - time.time_ns()) < 60e9

    asked = time.time_ns()
    check([RINGTAP, "flight", "trigger"])  # it finds the only recorder
    flight.incidents(1)
    row = until(lambda: shown.table("incidents"))[0]
    assert text_of(asked - NEAR_NS) <= row["UTC"] <= text_of(time.time_ns())
    shown.run("location.hash = ''")
    row = until(lambda: next((r for r in shown.table("applications") if r["application"] == app.prefix), None))
    spark = row["received, 10 min"]
    assert len(spark) > 1 and spark[-1] > 500
    shown.check()
