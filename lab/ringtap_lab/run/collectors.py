# SPDX-License-Identifier: BSD-3-Clause
"""`make bench`: what ringtap's collectors cost an application, each by itself and all of them, beside DPDK's latencystats and
testpmd's burst statistics."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from .attached import Top
from .testpmd import IoForwarding, TestPmd

if TYPE_CHECKING:
    from typing import Any

SIZE = 64
WINDOW_S = 0.2
SETTLE_S = 0.05  # until the application has removed what a reader had switched on
TURNS = 2  # turns of one application of each kind
ROUNDS = 2  # rounds of all collectors in one application

POLLS, POLLING, LATENCY, ALL = "polls", "polls,busy,gaps", "latency", "all"
LATENCY_16 = "latency of one packet in 16"
COLLECTORS = {  # what is on, and a view of ringtap top that switches nothing else on
    POLLS: (POLLS, "ports"),
    "polls,busy": ("polls,busy", "ports"),
    POLLING: (POLLING, "ports"),
    "polls,busy,bytes": ("polls,busy,bytes", "ports"),
    "pools": ("pools", "pools"),
    "addresses,pools": ("addresses,pools", "pools"),
    LATENCY: (LATENCY, "latency"),
    LATENCY_16: (LATENCY, "latency", "--latency-sample", "16"),
    ALL: ("polls,bytes,busy,gaps,latency,addresses,pools", "ports"),
}
UNTOUCHED, LOADED = "untouched", "probe loaded, none"
LATENCYSTATS, BURST_STATS = "--latencystats=1", "--record-burst-stats"  # testpmd's own
ROWS = [UNTOUCHED, LOADED, *COLLECTORS, BURST_STATS, LATENCYSTATS]


def _add(bench: Any, label: str, rate: Any, without: Any):
    """without: the rate in the same conditions, with nothing on."""
    for quantity, value in (
        ("collecting", rate),
        ("collecting_share", rate / without),
        ("collecting_seconds", 1 / rate - 1 / without),
    ):
        bench.store.add(value, quantity, "net_null", SIZE, label)
    print(f"{label}: {rate / 1e6:.1f} Mpps, {rate / without * 100:.1f} % of {without / 1e6:.1f}", flush=True)


def _application(bench: Any, measure: Any, plugin: Any = None, more: Any = ()):
    """Median of measure(application)."""
    app = TestPmd(IoForwarding(1, SIZE, more), bench.o.cpus, bench.o.huge, plugin)
    try:
        return statistics.median(measure(app))
    finally:
        app.stop()


def _rates(app: Any):
    return [app.rate_of_own_time(WINDOW_S) for _ in range(3)]


def _switch(bench: Any, app: Any):
    """Each collector by turns with nothing, as clocks change; gives the rates with nothing."""
    off = [app.rate_of_own_time(WINDOW_S)]
    for i in range(1 if bench.o.quick else ROUNDS):
        for label in list(COLLECTORS)[:: 1 if i % 2 == 0 else -1]:
            names, view, *options = COLLECTORS[label]
            with Top(bench.lab, app, names, ["--view", view, *options]):
                on = app.rate_of_own_time(WINDOW_S)
            time.sleep(SETTLE_S)
            off.append(app.rate_of_own_time(WINDOW_S))
            _add(bench, label, on, (off[-2] + off[-1]) / 2)
    return off


def _turn(bench: Any, backwards: Any):
    """latencystats measures with any lcore's number. With that of the polling lcore it would also publish its statistics in
    each round, and be slower."""
    kinds = {
        UNTOUCHED: lambda: _application(bench, _rates),
        BURST_STATS: lambda: _application(bench, _rates, more=[BURST_STATS]),
        LATENCYSTATS: lambda: _application(bench, _rates, more=[LATENCYSTATS]),
    }
    if bench.has_ringtap():
        kinds[LOADED] = lambda: _application(bench, lambda app: _switch(bench, app), str(bench.plugin))
    rates = {}
    for label in list(kinds)[:: -1 if backwards else 1]:
        bench.try_to(f"collectors, {label}", lambda: rates.update({label: kinds[label]()}))
    for label, rate in rates.items():
        if UNTOUCHED in rates:
            _add(bench, label, rate, rates[UNTOUCHED])


def measure(bench: Any, repetition: int) -> None:
    for turn in range(1 if bench.o.quick else TURNS):
        _turn(bench, (repetition + turn) % 2 == 1)
