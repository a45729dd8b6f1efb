# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts and tables of the experiment overhead."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import plots, sources
from .blocks import CONFIRMED, DASH, DIFFERENT, MINUS, OPEN, PARTLY, Claim, Plot, Table, Verdict, count, mpps, percent

if TYPE_CHECKING:
    from typing import Any

    from matplotlib.axes import Axes

    from ..tools.results import Results

ONCE = 0.03  # error of what was measured only once
TOO_NOISY = 0.05  # share of the rate: nothing follows about what is off
NOTHING = 0.01  # share of the rate: smaller differences mean nothing, like those of "nothing, twice"


@dataclass(frozen=True)
class Row:
    """off, on: cells. published_off, published_on: percent, DPDK 19.11."""

    name: str
    off: str | None
    on: str
    published_off: float | None = None
    published_on: float | None = None


ROWS = [
    Row("nothing, twice: error of the method", None, "same"),
    Row("ringtap record", "probe-off", "record-on"),
    Row("ringtap record, filter passes all", "probe-off", "record-all-on"),
    Row("ringtap record, filter passes none", "probe-off", "record-none-on"),
    Row("dpdk-dumpcap", "dumpcap-off", "dumpcap-on"),
    Row("dpdk-dumpcap, filter passes all", "dumpcap-off", "dumpcap-all-on"),
    Row("dpdk-dumpcap, filter passes none", "dumpcap-off", "dumpcap-none-on"),
    Row("dpdk-pdump", "pdump-off", "pdump-on", None, -36.85),
    Row("LTTng", "lttng-off", "lttng-on", -0.42, -0.02),
    Row("USDT, bpftrace counts", "probe-off", "usdt-on", -0.01, -56.72),
    Row("USDT, ringtap trace burst", "probe-off", "trace-burst-on"),
    Row("rte_trace", "probe-off", "rte_trace-on"),
    Row("ringtap top, polls only", "probe-off", "polls-on"),
    Row("ringtap top", "probe-off", "top-on"),
    Row("ringtap latency", "probe-off", "latency-on"),
    Row("testpmd --latencystats", None, "latencystats-on"),
]
BY_CELL = {row.on: row for row in ROWS}
CAPTURING = [
    f"{name}-on" for name in ("record", "record-all", "record-none", "dumpcap", "dumpcap-all", "dumpcap-none", "pdump")
]
TRACING = ["lttng-on", "usdt-on", "trace-burst-on", "rte_trace-on"]


def _published(value: float):
    return DASH if value is None else f"{value:.2f} %".replace("-", MINUS)


PUBLISHED = sources.Published.of(
    sources.TRACING,
    *(
        (f"{row.name}, {state}", _published(value))
        for row in ROWS
        for state, value in (("off", row.published_off), ("on", row.published_on))
        if value is not None
    ),
)


def _change(key: str, metric: str = "change"):
    return percent(key, metric, 2, "%") if key else DASH


def _rows(results: Results, keys: Any = BY_CELL):
    return [BY_CELL[key] for key in keys if results.cell(key)]


def _changes(results: Results):
    rows = [
        [
            r.name,
            _change(r.off),
            _published(r.published_off),
            _change(r.on),
            _published(r.published_on),
            count(r.on, "added_ns", 2),
            mpps(r.on),
            mpps(r.on, "untouched_pps"),
            percent(r.on, "drift", 1),
        ]
        for r in _rows(results)
    ]
    return Table(
        "Change of received packets per second",
        [
            "tool",
            "disabled",
            "published",
            "enabled",
            "published",
            "ns added to a packet",
            "Mpps",
            "Mpps without",
            "drift, %",
        ],
        rows,
        note="Disabled: of ringtap, USDT and rte_trace the probe is loaded without its hooks; of LTTng the provider is loaded, too, "
        "and a session daemon runs; dpdk-dumpcap and dpdk-pdump were attached, and have ended. latencystats is chosen when "
        "testpmd starts, and its periodic update runs on another lcore. As nothing is sent, ringtap latency and latencystats "
        "do only what they do at reception. Drift: how much faster the application by itself was afterwards than before. The "
        "published values were measured with another version, on a NIC, with trace points at other places: their "
        "percentages are those of that set-up.",
    )


def _captured(results: Results):
    rows = [
        [r.name, mpps(r.on), mpps(r.on, "captured_pps", 2), percent(r.on, "loss", 2)] for r in _rows(results, CAPTURING)
    ]
    return Table(
        "Captured meanwhile",
        ["tool", "application, Mpps", "captured, Mpps", "lost of what should be captured, %"],
        rows,
        note="To /dev/null. Filters read the same bytes, \"not udp port 53\" and \"udp port 53\". dpdk-pdump has none; its "
        "loss is counted from just after it was attached, and so a little too low.",
    )


def _traced(results: Results):
    rows = [
        [
            r.name,
            _change(r.off),
            _change(r.on, "hooks_change"),
            _change(r.on),
            *(count(r.on, m) for m in ("event_ns", "per_event", "events", "lost_events")),
        ]
        for r in _rows(results, TRACING)
    ]
    return Table(
        "Cost of a traced event",
        [
            "tracer",
            "hooks out",
            "hooks in, no tracing",
            "traced",
            "ns added by an event",
            "packets of an event",
            "events",
            "discarded",
        ],
        rows,
        note="An event is a burst. bpftrace counts events and adds up their packets, ringtap trace burst makes a histogram of them, "
        "LTTng records them to the disk, rte_trace keeps the last ones in memory and overwrites the others, which count as "
        "discarded; its events are bursts of 32, and so are LTTng's, whose number is computed from the packets that the port "
        "received. An event that is discarded costs less than one that is recorded. An event's time is that of a packet while "
        "traced, less that with the hooks in, times its packets.",
    )


def _plot(results: Results):
    shown = [r for r in ROWS if results.series(r.on, "change")]
    known = [(r.published_on, place) for place, r in enumerate(shown) if r.published_on is not None]

    def draw(axes: Axes):
        series = [results.series(r.on, "change") for r in shown]
        axes.barh(
            range(len(shown)),
            [s.mean() * 100 for s in series],
            xerr=[(s.deviation() or 0) * 100 for s in series],
            height=0.6,
        )
        if known:
            plots.stars(axes, *zip(*known))
            plots.legend(axes, "above")
        axes.set_yticks(range(len(shown)), [r.name for r in shown], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("change of the application's rate, %")
        axes.grid(axis="y", visible=False)

    texts = "; ".join(f"{r.name} {_published(r.published_on)}" for r in ROWS if r.published_on is not None)
    return Plot(
        "Change of the application's rate, enabled",
        draw,
        [r.on for r in shown],
        published=f"{texts} (stars)",
        note="Mean and standard deviation.",
        height=0.3 + 0.05 * len(shown),
    )


def blocks(results: Results) -> list:
    found = [_changes(results), _plot(results), _captured(results), _traced(results)]
    return [b for b in found if isinstance(b, Plot) or b.rows]


def _noise(results: Results):
    """Changes of what has nothing on; also gains, as nothing that is off makes an application faster."""
    gains = [statistics.median(s) for key in {r.off for r in ROWS if r.off} if (s := results.series(key, "change"))]
    return max([NOTHING, *(abs(c) for c in results.series("same", "change")), *gains])


def _costs_something(results: Results, key: str):
    """More than the noise, and than is likely to be chance."""
    series = results.series(key, "change")
    error = series.deviation() / len(series) ** 0.5 if len(series) > 1 else ONCE
    return series.mean() < -_noise(results) - 2 * error


def _verdict(
    results: Results,
    off: Any,
    on: Any,
    most: Any,
    confirmed: Any,
    *,
    costless: str = "",
    costly: str = "",
    costly_off: str = "",
):
    """most: the claimed change when it is on, None: nothing that matters. The texts: the claim holds; it costs nothing
    measurable although it should; it costs something although it should not; it does so even when it is off."""
    if any(key and not results.series(key, "change") for key in (off, on)):
        return Verdict(OPEN)
    if off and _costs_something(results, off):
        return Verdict(DIFFERENT, costly_off)
    costs = _costs_something(results, on)
    if _noise(results) > TOO_NOISY and (off or not costs):
        return Verdict(OPEN, "Applications with nothing on differ by more than it may cost.")
    if most is None:
        return Verdict(PARTLY, costly) if costs else Verdict(CONFIRMED, confirmed)
    if not costs:
        return Verdict(DIFFERENT, costless)
    if results.mean(on, "change") > most:
        return Verdict(PARTLY, "It costs something, but less than that.")
    return Verdict(CONFIRMED, confirmed)


def summary(results: Results) -> list:
    def ours(*rows):
        return [(name, _change(key)) for name, key in rows]

    def published(key: str, *states):
        return "; ".join(f"{_published(getattr(BY_CELL[key], 'published_' + s))}, {s}" for s in states)

    bare = "this application does nothing else with a packet"
    return [
        Claim(
            "dpdk-pdump costs an application more than a third of its rate.",
            published("pdump-on", "on"),
            ours(
                ("dpdk-pdump, on", "pdump-on"),
                ("dpdk-dumpcap, on", "dumpcap-on"),
                ("ringtap record, on", "record-on"),
                ("ringtap, off", "probe-off"),
            ),
            _verdict(
                results,
                None,
                "pdump-on",
                -1 / 3,
                f"Capturing each packet has a cost with every tool, and {bare}.",
                costless="It costs nothing measurable.",
            ),
        ),
        Claim(
            "LTTng costs nothing that matters, neither off nor on.",
            published("lttng-on", "off", "on"),
            ours(("LTTng, off", "lttng-off"), ("LTTng, on", "lttng-on")),
            _verdict(
                results,
                "lttng-off",
                "lttng-on",
                None,
                "Nothing measurable.",
                costly=f"Off it costs nothing measurable; on it does, as {bare}.",
                costly_off="Even off it costs something.",
            ),
        ),
        Claim(
            "bpftrace costs nothing while it is not attached, and more than half of the rate while it is.",
            published("usdt-on", "off", "on"),
            ours(("ringtap with USDT, off", "probe-off"), ("USDT, bpftrace, on", "usdt-on")),
            _verdict(
                results,
                "probe-off",
                "usdt-on",
                -1 / 2,
                "Off nothing measurable; on, each burst traps into the kernel.",
                costless="On it costs nothing measurable.",
                costly_off="Even off it costs something.",
            ),
        ),
    ]
