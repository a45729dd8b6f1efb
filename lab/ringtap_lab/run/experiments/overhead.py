# SPDX-License-Identifier: BSD-3-Clause
"""The cost of observing: the rate of receive-only forwarding with each tool there but off, and on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ...report import overhead_view
from ...tools.errors import Trouble, Unavailable
from .. import lttng
from ..experiment import Cell, Experiment, Measurement
from ..lab import PLUGIN
from ..overhead_ways import BURST, SIZE, WAYS, Subject
from ..testpmd import MEMORY_MB, TestPmd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..lab import Lab

SPARE_MB = 64
ATTEMPTS = 3  # dpdk-dumpcap ends some applications
TRIES, CALM = 3, 0.04  # measured again if the application by itself changed by more meanwhile
LIVES = 3
BUDGET_S = 800  # time of all of it; a quick run has a part of it


class Overhead(Experiment):
    name = "overhead"
    title = "Overhead: what observing costs the application"
    question = "By how much does the rate of an application change when a tool is there but off, and when it is on?"
    conditions = (
        f"dpdk-testpmd as it is, receive-only (rxonly), {SIZE}-byte packets from net_null in bursts of {BURST}; its one "
        "polling thread has one CPU, the tool that reads has the other. The driver takes a few nanoseconds for a packet, "
        "the application none: the cost of a tool shows at its worst. Each tool that is on is compared with the same "
        "application just before and just after (dpdk-dumpcap and dpdk-pdump: before), and measured again, up to twice, if that "
        f"changed by more than 4 % and time allows. What is off is compared between applications with and without, {LIVES} processes of each by turns, "
        "of which the fastest counts: the place of memory differs from process to process. Rates are packets per second that the polling "
        "thread ran, so that other programs on its CPU do not count; of four parts of each measurement the fastest counts, as "
        "others only slow it down (but not where packets are captured, which comes in waves). Disabled: the tool is loaded, or was attached and has "
        "ended. Enabled: it reads each packet, or, where it traces, each burst."
    )
    published = overhead_view.PUBLISHED
    view = overhead_view
    order = 40
    length_s = 0.8, 0.4
    root_for = "DPDK's run-time folders and huge pages"
    programs = ("ringtap",)
    built = (PLUGIN,)
    tools = {"dpdk-testpmd": "dpdk-dev", "taskset": "util-linux"}
    huge_mb = MEMORY_MB + SPARE_MB
    quick_repetitions = 1

    def cells(self, lab: Lab) -> Any:
        return [
            Cell(
                way.key,
                {"tool": way.key.rpartition("-")[0] or way.key, "on": int(way.key.endswith("-on"))},
                self._seconds(lab, way),
            )
            for way in WAYS
        ]

    def _seconds(self, lab: Lab, way: Any):
        length = self.length(lab)
        return way.seconds + (LIVES * 2 * (length + 0.7) if way.lives else 3 * length + 1.5)

    def run(self, lab: Lab, cell: Any, repetition: int) -> Any:
        way = next(w for w in WAYS if w.key == cell.key)
        if way.lives:
            return between(lab, way, repetition)
        best = None
        for _ in range(TRIES):
            found = within(lab, way)
            best = min(found, best or found, key=drift)
            if drift(best) < CALM or lab.spare_s(BUDGET_S) < cell.seconds:
                break
        return best


def start(lab: Lab, source: Any, plugin: Any, wrap: Any) -> Any:
    return TestPmd(source, lab.cpus, True, plugin, lab.unique("app"), wrap)


@contextlib.contextmanager
def testpmd(lab: Lab, way: Any) -> Iterator:
    """The application under a way's conditions: a Subject."""
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(lttng.Daemon(lab)) if way.lttng else None
        app = start(lab, *way.application(lab), daemon.prefix if daemon else ())
        stack.callback(app.stop)
        yield Subject(lab, app, EXPERIMENT.length(lab), daemon)


def alive(lab: Lab, way: Any, measure: Any) -> Any:
    """measure(subject), with another application if the tool ends one."""
    for attempt in range(1, ATTEMPTS + 1):
        with testpmd(lab, way) as subject:
            try:
                return measure(subject)
            except (Trouble, Unavailable):
                raise
            except Exception as e:
                if way.steady or attempt == ATTEMPTS:
                    raise RuntimeError(f"{e}{subject.app.obituary()}") from e
    raise AssertionError("not reached")


def compared(values: Any, untouched: Any, **more) -> Any:
    pps = values["pps"]
    if "hooks_pps" in values:
        values["hooks_change"] = values["hooks_pps"] / untouched - 1
    return Measurement(
        {
            **values,
            "untouched_pps": untouched,
            "change": pps / untouched - 1,
            "added_ns": 1e9 / pps - 1e9 / untouched,
            **more,
        }
    )


def within(lab: Lab, way: Any) -> Any:
    """On, against the same application just before and just after; of a stock DPDK tool, which may change an application for good,
    just before."""

    def measure(subject: Any):
        rate = subject.fastest if way.even else subject.rate
        before = rate()
        values = way.measure(subject)
        if not way.steady:
            return compared(values, before)
        after = rate()
        return compared(values, (before + after) / 2, drift=after / before - 1)

    return alive(lab, way, measure)


def drift(m: Any) -> float:
    return abs(m.values.get("drift", 0))


def between(lab: Lab, way: Any, repetition: int) -> Any:
    """The fastest of some processes, with and without by turns: the place of memory matters, too, and differs between
    processes."""
    ways = {"pps": way, "untouched_pps": WAYS[0]}
    rates = {what: [] for what in ways}
    for _ in range(LIVES):
        for what in sorted(ways, reverse=repetition % 2 == 0):
            rates[what].append(alive(lab, ways[what], lambda s, w=ways[what]: w.measure(s)["pps"]))
    return compared(
        {"pps": max(rates["pps"])},
        max(rates["untouched_pps"]),
        spread=max(rates["untouched_pps"]) / min(rates["untouched_pps"]) - 1,
    )


EXPERIMENT = Overhead()
