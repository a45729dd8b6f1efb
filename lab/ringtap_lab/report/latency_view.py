# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts and tables of the experiment latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tools import clock
from . import plots, sources
from .blocks import CONFIRMED, DASH, DIFFERENT, OPEN, Claim, Plot, Ratio, Table, Text, Value, Verdict, count, percent

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from matplotlib.axes._subplots import AxesSubplot

    from ..tools.results import Results

WITHIN, ROUND_TRIP = "within", "roundtrip"
TESTS = {WITHIN: "test 1, within the forwarder", ROUND_TRIP: "test 2, round trip at the sender"}
PLANES = {
    "packet": "PF_PACKET, read and write",
    "mmap": "PF_PACKET, TPACKET_V3",
    "af_packet": "DPDK net_af_packet",
    "af_xdp": "DPDK net_af_xdp",
    "memif": "DPDK net_memif",
    "ring": "DPDK net_ring, one process",
}
LESS = 100  # times; published, of DPDK in test 1
SAME = 1.5  # times; less is equal
WANTED = {WITHIN: "30 cycles with DPDK, 3,000 with PF_PACKET", ROUND_TRIP: "4,500 cycles with both"}
PUBLISHED = sources.Published.of(
    sources.LATENCY,
    ("test 1, DPDK", "30 cycles per packet"),
    ("test 1, PF_PACKET", "3,000 cycles per packet"),
    ("test 2, DPDK and PF_PACKET", "4,500 cycles per packet"),
)


def published(test: str, plane: str) -> int | None:
    """Cycles per packet, None where nothing comparable is known."""
    if plane == "mmap":
        return None
    return 4500 if test == ROUND_TRIP else 3000 if plane == "packet" else 30


def planes(test: str) -> list[str]:
    """Test 2 needs a peer, which one process has not."""
    return [p for p in PLANES if test == WITHIN or p != "ring"]


def _median(test: str, plane: str):
    return Value(f"{test}-{plane}", "cycles_p50", 1, 0, "cycles")


def _claim(
    results: Results,
    test: str,
    plane: str,
    digits: int,
    what: str,
    published_text: str,
    more: list[tuple],
    judge: Callable,
):
    """The packet socket against a plane of DPDK. more: DPDK's values. judge(how many times more cycles): a Verdict."""
    ours, kernel = _median(test, plane), _median(test, "packet")
    gap = Ratio(kernel, ours, digits)
    times = gap.number(results)
    return Claim(
        what,
        published_text,
        [*more, ("packet socket", kernel), ("packet socket against DPDK", gap)],
        Verdict(OPEN) if times is None else judge(times),
    )


def _judge_within(times: Any):
    if times >= LESS / 2:
        return Verdict(
            CONFIRMED,
            "DPDK itself is cheaper by about two orders of magnitude. On an interface of the kernel it is "
            "not: its packets go through the kernel as well.",
        )
    return Verdict(DIFFERENT, "DPDK is cheaper, but not by two orders of magnitude.")


def _judge_round_trip(results: Results, times: Any):
    if 1 / SAME < times < SAME:
        return Verdict(CONFIRMED, "Both take about as long.")
    if times < SAME:
        return Verdict(DIFFERENT, "The round trip with DPDK takes longer.")
    link = Ratio(_median(ROUND_TRIP, "packet"), _median(ROUND_TRIP, "af_packet")).number(results)
    same = link is not None and 1 / SAME < link < SAME
    return Verdict(
        DIFFERENT,
        "Where packets go between processes without the kernel, the round trip with DPDK is faster"
        f"{'; on the same virtual link both are about equal' if same else ''}.",
    )


def summary(results: Results) -> list[Claim]:
    return [
        _claim(
            results,
            WITHIN,
            "ring",
            0,
            f"A forwarder takes {LESS} times fewer cycles for a packet with DPDK than with packet sockets.",
            "30 against 3,000 cycles",
            [
                ("DPDK, pointers passed on", _median(WITHIN, "ring")),
                ("DPDK, between processes", _median(WITHIN, "memif")),
            ],
            _judge_within,
        ),
        _claim(
            results,
            ROUND_TRIP,
            "memif",
            1,
            "For the sender both are equal: the round trip hides the difference.",
            "4,500 cycles with both",
            [
                ("DPDK, between processes", _median(ROUND_TRIP, "memif")),
                ("DPDK on a virtual link", _median(ROUND_TRIP, "af_packet")),
            ],
            lambda times: _judge_round_trip(results, times),
        ),
    ]


def _tables(test: str, text: str):
    cycles, times = [], []
    for plane in planes(test):
        key, name, known = f"{test}-{plane}", PLANES[plane], published(test, plane)
        cycles.append(
            [
                name,
                f"{known:,}" if known else DASH,
                *(count(key, f"cycles_{k}") for k in ("mean", "p50", "p99")),
                count(key, "cycles_max", how="greatest"),
                Value(key, "per_burst"),
                count(key, "packets", how="sum"),
                percent(key, "disturbed"),
            ]
        )
        times.append(
            [
                name,
                *(count(key, f"ns_{k}") for k in ("mean", "p50", "p99")),
                count(key, "ns_max", how="greatest"),
                Value(key, "projected_pps", 1e-6, 3),
                count(key, "projected_gbps", 3),
                Value(key, "projected_mean_pps", 1e-6, 3),
            ]
        )
    title = text[0].upper() + text[1:]
    return [
        Table(
            f"{title}: cycles per packet",
            ["plane", "published", "mean", "p50", "p99", "max", "packets in a burst", "packets", "disturbed, %"],
            cycles,
            published=WANTED[test],
            note="Max is that of all runs. Disturbed: share of the time that a polling thread did not have its CPU, because "
            "others used it; it is in mean, p99 and max.",
        ),
        Table(
            f"{title}: nanoseconds per packet, and the rate that follows",
            ["plane", "mean", "p50", "p99", "max", "projected Mpps, of medians", "Gbit/s", "of means, Mpps"],
            times,
            published=f"{WANTED[test]}; not in nanoseconds",
            note="Projected: what one core would do if each packet took the median (or mean), of frames of 64 bytes with preamble "
            "and gap" + (". In test 2: with one packet on its way." if test == ROUND_TRIP else "."),
        ),
    ]


def _plot(results: Results, test: str, text: str):
    shown = [p for p in planes(test) if results.mean(f"{test}-{p}", "cycles_mean")]
    if not shown:
        return []

    def draw(axes: AxesSubplot):
        for i, plane in enumerate(shown):
            mean, p50, p99 = (results.mean(f"{test}-{plane}", f"cycles_{k}") for k in ("mean", "p50", "p99"))
            axes.plot([p50, p99], [i, i], color="#999999", linewidth=3, zorder=1, solid_capstyle="butt")
            axes.plot(mean, i, "o", color=plots.COLOURS[0], markersize=7, label="mean")
            for x, colour, name in ((p50, 2, "p50"), (p99, 1, "p99")):
                axes.plot(x, i, "|", color=plots.COLOURS[colour], markersize=14, markeredgewidth=2, label=name)
            if published(test, plane):
                plots.stars(axes, published(test, plane), i)
        plots.log(axes, "x")
        axes.set_yticks(range(len(shown)), [PLANES[p].replace(", ", ",\n") for p in shown])
        axes.set(ylim=(len(shown) - 0.5, -0.5), xlabel="cycles per packet")
        names = {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
        axes.legend(names.values(), names, loc="upper center", bbox_to_anchor=(0.4, 1.15), ncols=4)

    return [
        Plot(f"Cycles per packet, {text}", draw, [f"{test}-{p}" for p in shown], published=f"{WANTED[test]} (stars)")
    ]


def blocks(results: Results) -> list:
    parts = [Text(w, warning=True) for w in clock.warnings(results.machine)]
    for test, text in TESTS.items():
        parts += _tables(test, text) + _plot(results, test, text)
    return parts
