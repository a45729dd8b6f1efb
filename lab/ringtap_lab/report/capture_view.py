# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts and tables of the experiment capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import plots, sources
from .blocks import CONFIRMED, DASH, DIFFERENT, OPEN, PARTLY, Claim, Plot, Table, Text, Verdict, count, percent

if TYPE_CHECKING:
    from typing import Any

    from matplotlib.axes import Axes

    from ..tools.results import Results

PUBLISHED_PPS = 450_000
MOST = {"loss": 0.0002, "system": 0.12}  # published, at that rate
NONE, LIBPCAP, HOST, XDP, PORT = "none", "libpcap", "host", "xdp", "port"
WAYS = {
    NONE: "veth, no capture",
    LIBPCAP: "veth, system's libpcap",
    HOST: "veth, ringtap host (af_packet)",
    XDP: "veth, ringtap host (af_xdp)",
    PORT: "DPDK port, ringtap",
}
SHORT = {
    LIBPCAP: "system's libpcap on a veth",
    HOST: "ringtap host, af_packet",
    XDP: "ringtap host, af_xdp",
    PORT: "ringtap on a DPDK port",
}
LIMITS = {metric: f"below {most * 100:g} % at more than {PUBLISHED_PPS:,} packets/s" for metric, most in MOST.items()}
WANTED = {"system": f"system mode {LIMITS['system']}", "loss": f"loss {LIMITS['loss']}"}
PUBLISHED = sources.Published.of(
    sources.CAPTURE,
    ("FreeBSD, the same idea: system load", LIMITS["system"]),
    ("FreeBSD, the same idea: loss", LIMITS["loss"]),
)
REACHED = 0.95  # share of the rate that was requested


def _claim(results: Results, metric: str, digits: int, what: str):
    most, key = MOST[metric], f"-{PUBLISHED_PPS // 1000}k"
    values = {way: percent(way + key, metric, digits, "%") for way in SHORT}
    numbers = {way: v.number(results) for way, v in values.items()}
    alone = percent(NONE + key, metric, digits, "%")
    # Without a capture there is no loss, but system mode: the sender's own is not held against the captures.
    too_much = (alone.number(results) or 0) >= most
    known = [way for way in SHORT if numbers[way] is not None and (way == PORT or not too_much)]
    slow = [way for way in known if results.mean(values[way].cell, "pps") < REACHED * PUBLISHED_PPS]
    kept, missed = (
        [SHORT[way] for way in known if way not in slow and (numbers[way] < most) == below] for below in (True, False)
    )
    ours = [(SHORT[way], v) for way, v in values.items()]
    if alone.number(results) is not None:
        ours.insert(0, (WAYS[NONE], alone))
    return Claim(what, WANTED[metric], ours, _verdict([SHORT[way] for way in slow], kept, missed, too_much))


def _verdict(slow: Any, kept: Any, missed: Any, too_much: Any):
    """Each a list of ways; too_much: of the veth, sending by itself takes more than was published."""
    parts = [
        f"It holds for {', '.join(kept)}." if kept else "",
        f"It does not hold for {', '.join(missed)}." if missed else "",
        f"With {', '.join(slow)} the sender did not reach this rate." if slow else "",
        "On the veth, sending by itself takes more than that." if too_much else "",
    ]
    kind = (PARTLY if slow or missed or too_much else CONFIRMED) if kept else DIFFERENT if missed else OPEN
    return Verdict(kind, " ".join(filter(None, parts)))


def summary(results: Results) -> list:
    return [
        _claim(results, "loss", 3, "A libpcap program counts 450,000 packets/s and more, and loses almost none."),
        _claim(results, "system", 1, "Meanwhile the CPUs spend little time in system mode."),
    ]


def _limits(results: Results):
    """Packets that the sender could not send are not lost, but limit the rates that are shown."""
    reached = [(o.params["rate"], o.series("pps").mean()) for o in results.measured() if o.params["way"] != PORT]
    if all(pps >= REACHED * rate for rate, pps in reached):
        return []
    best = max(pps for _, pps in reached)
    return [
        Text(
            f"On the veth the sender reached at most {best:,.0f} packets/s, since all of the kernel's work up to the "
            "capturing socket is done on its CPU; points beyond stand at the rate that was reached."
        )
    ]


def _table(results: Results):
    rows = [
        [
            f"{text}, {o.params['rate']:,}",
            count(o.key, "pps"),
            *(percent(o.key, m, 1) for m in ("system", "system_sender", "system_capture")),
            percent(o.key, "loss", 4) if way != NONE else DASH,
        ]
        for way, text in WAYS.items()
        for o in results.measured()
        if o.params["way"] == way
    ]
    return Table(
        "System mode and loss",
        [
            "way, packets/s requested",
            "packets/s sent",
            "system mode, %",
            "of the sender's CPU",
            "of the capturing CPU",
            "lost, %",
        ],
        rows,
        published=f"{WANTED['system']}; {WANTED['loss']}",
    )


def _plot(results: Results, metric: str, title: str, unit: str):
    shown = [o for o in results.measured() if o.series(metric) and (o.params["way"] != NONE or metric == "system")]

    def draw(axes: Axes):
        for i, way in enumerate(WAYS):
            plots.curve(
                axes,
                i,
                WAYS[way],
                sorted((o.series("pps").mean(), o.series(metric)) for o in shown if o.params["way"] == way),
                100,
            )
        plots.stars(axes, [PUBLISHED_PPS], [MOST[metric] * 100], "published: below")
        plots.log(axes, "x")
        axes.set(xlabel="packets/s", ylabel=unit)
        if metric == "loss":
            axes.set_yscale("symlog", linthresh=0.01)
            axes.yaxis.set_major_formatter("{x:g}")
            axes.set_ylim(top=max(axes.get_ylim()[1], 1))
        axes.set_ylim(bottom=0)
        plots.legend(axes)

    return Plot(
        f"{title} against packet rate",
        draw,
        [o.key for o in shown],
        note="Mean and standard deviation.",
        published=f"{WANTED[metric]} (star)",
        height=0.85,
    )


def blocks(results: Results) -> list:
    return [
        *_limits(results),
        _table(results),
        _plot(results, "system", "System mode", "% of both CPUs"),
        _plot(results, "loss", "Loss", "% of packets"),
    ]
