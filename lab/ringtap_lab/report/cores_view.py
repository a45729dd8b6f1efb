# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the experiment cores. It has no claims, because nothing is published about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import plots
from .blocks import Plot, Ratio, Table, Value, count, mpps, percent

if TYPE_CHECKING:
    from typing import Any

    from matplotlib.axes import Axes

    from ..tools.results import Results

THREADS, RECORDERS = (1, 2, 4, 6, 12), (1, 2)
MERGES = (1, 2, 4, 8, 16)  # rings: powers of two
QUEUES, TOUR_THREADS = 64, 14
NAMES = {1: "one recorder", 2: "two recorders, half of the ports each"}
NS = 1e9


def _keys(results: Results, recorders: Any):
    return [o.key for o in results.measured() if o.key.startswith("record-") and o.params["recorders"] == recorders]


def _recorded(results: Results):
    rows = [
        [
            f"{o.params['threads']}, {NAMES[o.params['recorders']]}",
            mpps(o.key, "alone_pps"),
            mpps(o.key, "attached_pps"),
            mpps(o.key, "captured_pps"),
            percent(o.key, "loss", 2),
            percent(o.key, "kept", 1),
            Value(o.key, "added_s", NS, 2),
            percent(o.key, "buffer_used"),
            Value(o.key, "pause_s", 1e3, 2),
            count(o.key, "cores", how="least"),
        ]
        for o in results.measured()
        if o.key.startswith("record-")
    ]
    return (
        [
            Table(
                "Recorded, lost and paid for, by polling threads",
                [
                    "polling threads, recorders",
                    "received alone, Mpps",
                    "received while recorded, Mpps",
                    "captured, Mpps",
                    "lost, %",
                    "of the rate alone, %",
                    "added to a packet, ns",
                    "buffer used at most, %",
                    "longest pause of a recorder, ms",
                    "cores used",
                ],
                rows,
                note="Rates of all threads together. Added: of each thread's time per packet. Lost: the recorder's buffer was full; the application "
                "receives as fast as it can, so a recorder at its limit loses the rest. Cores: where these are fewer than threads and "
                "recorders, some share a core.",
            )
        ]
        if rows
        else []
    )


def _plot(results: Results):
    shown = {r: keys for r in RECORDERS if (keys := _keys(results, r))}

    def draw(axes: Axes):
        for i, (recorders, keys) in enumerate(shown.items()):
            for metric, style, what in (("captured_pps", i, "captured"), ("attached_pps", i + 2, "received")):
                plots.curve(
                    axes,
                    style,
                    f"{what}, {NAMES[recorders].split(',')[0]}",
                    sorted((results.cell(key).params["threads"], results.series(key, metric)) for key in keys),
                    1e-6,
                )
        axes.set(xlabel="polling threads", ylabel="Mpps")
        axes.set_ylim(bottom=0)
        plots.legend(axes)

    return (
        [
            Plot(
                "Received and captured by polling threads",
                draw,
                [k for keys in shown.values() for k in keys],
                height=0.85,
                note="Mean and standard deviation.",
            )
        ]
        if shown
        else []
    )


def _merged(results: Results):
    rows = [
        [str(rings), mpps(key, "merged_pps"), mpps(key, "merged_least_pps")]
        for rings in MERGES
        if results.cell(key := f"merge-{rings}")
    ]
    return (
        [
            Table(
                "Merging alone, by rings",
                ["rings", "Mpps", "least, Mpps"],
                rows,
                note="One thread; the median and the least of five readings in each repetition.",
            )
        ]
        if rows
        else []
    )


def _tour(results: Results):
    if not results.series("tour", "alone_pps"):
        return []
    names = {
        "alone_pps": "without a tool, just after the start",
        "top_pps": "ringtap top",
        "between_pps": "without a tool, after it",
        "latency_pps": "ringtap latency, of every packet",
        "after_pps": "without a tool, at the end",
    }
    rows = [
        [name, mpps("tour", metric), Ratio(Value("tour", metric), Value("tour", "between_pps"), change=True)]
        for metric, name in names.items()
    ]
    shown = [
        ["queues that ringtap top shows as receiving", count("tour", "top_queues", how="least")],
        ["threads that it shows as receiving", count("tour", "top_threads", how="least")],
        ["pairs of ports that ringtap latency times", count("tour", "latency_pairs", how="least")],
        ["packets that it timed in a repetition, millions", Value("tour", "latency_packets", 1e-6, 1)],
        ["their median stay, ns (greatest of the pairs)", Value("tour", "latency_p50_s", NS, 0)],
        ["99th percentile, ns", Value("tour", "latency_p99_s", NS, 0)],
    ]
    times = [
        ["attach, until it captures", *(Value("tour", m, 1e3, 1) for m in ("attach_s", "attach_most_s"))],
        ["detach, until the recorder has ended", *(Value("tour", m, 1e3, 1) for m in ("detach_s", "detach_most_s"))],
    ]
    tour = results.cell("tour").params
    return [
        Table(
            f"{QUEUES} queues, {tour['threads']} polling threads",
            ["with", "Mpps", "against the rate between both tools"],
            rows,
            note="All threads together. They reach their rate only in the second after the start, with the first tool. While `ringtap top` runs, its default collectors are on: polls, busy times, mempools.",
        ),
        Table("What the monitors show there", ["", "least, or mean"], shown),
        Table("Attaching and detaching there", ["a recorder of all ports", "median, ms", "most, ms"], times),
    ]


def blocks(results: Results) -> list:
    return [*_recorded(results), *_plot(results), *_merged(results), *_tour(results)]


def summary(results: Results) -> list:
    return []
