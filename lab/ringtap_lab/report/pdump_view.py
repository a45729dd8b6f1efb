# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts and tables of the experiment pdump."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import plots, sources
from .blocks import BETTER, CONFIRMED, DASH, DIFFERENT, OPEN, PARTLY, Claim, Plot, Table, Value, Verdict, mpps, percent

if TYPE_CHECKING:
    from typing import Any

    from matplotlib.axes import Axes

    from ..tools.results import Results

PORTS = 2
SIZES = (64, 128, 256, 320, 384, 512)
SMALLEST = SIZES[0]
LINE_BPS = PORTS * 10e9
GAP = 20  # bytes of preamble and gap before and after a frame on the wire
UNTOUCHED, DUMPCAP, PACKET, BUFFER, BATCH, TOUCH = "untouched", "dumpcap", "packet", "buffer", "batch", "touch"
WAYS = {
    UNTOUCHED: "no capture",
    DUMPCAP: "dpdk-dumpcap (both directions)",
    PACKET: "a write for each packet",
    BUFFER: "copied into a buffer of 1 MiB",
    BATCH: "ringtap record: batches as they are",
    TOUCH: "read only, not written",
}
OURS = (PACKET, BUFFER, BATCH, TOUCH)
CAPTURED = {DUMPCAP: 6.5, BUFFER: 13.9, BATCH: 19.1}  # published Gbit/s of 20
CAPTURED_TEXT = "6.5 → 13.9 → 19.1 of 20 Gbit/s"
FORWARDED_TEXT = "2 × 9.8 → 7.2 → 9.5 Gbit/s"  # published, meanwhile; the last one certainly with batches
PUBLISHED = sources.Published.of(
    sources.PDUMP,
    *((f"captured, {WAYS[way]}", f"{value} of 20 Gbit/s, 64-byte packets") for way, value in CAPTURED.items()),
    ("forwarded meanwhile", FORWARDED_TEXT),
)
G = 1e-9


def line_pps(size: Any) -> float:
    """Packets per second of both ports at line rate."""
    return LINE_BPS / 8 / (size + GAP)


def _sizes(results: Results):
    return [s for s in SIZES if any(results.cell(f"{way}-{s}") for way in WAYS)]


def _row(key: str, name: str, way: str, size: Any):
    def of_capture(value: Any):
        return value if way != UNTOUCHED else DASH

    known = f"{CAPTURED[way]:.1f}" if size == SMALLEST and way in CAPTURED else DASH
    return [
        f"{size} B, {name}",
        of_capture(Value(key, "captured_bps", G)),
        known,
        of_capture(mpps(key, "captured_pps")),
        of_capture(percent(key, "captured_line")),
        of_capture(percent(key, "loss", 2)),
        Value(key, "forwarded_bps", G),
        mpps(key, "forwarded_pps"),
        percent(key, "forwarded_line"),
        of_capture(percent(key, "of_untouched")),
        percent(key, "disturbed"),
    ]


def _table(results: Results):
    rows = [
        _row(f"{way}-{size}", name, way, size)
        for size in _sizes(results)
        for way, name in WAYS.items()
        if results.cell(f"{way}-{size}")
    ]
    return Table(
        "Captured, and forwarded meanwhile, at the application's limit",
        [
            "size, way",
            "captured, Gbit/s",
            "published",
            "Mpps",
            "of line rate, %",
            "lost, %",
            "forwarded, Gbit/s",
            "Mpps",
            "of line rate, %",
            "of untouched, %",
            "disturbed, %",
        ],
        rows,
        published=f"{SMALLEST} B, captured {CAPTURED_TEXT}, as dpdk-dumpcap was (a write for each packet), with buffered writes, and "
        f"with batches; forwarded meanwhile {FORWARDED_TEXT}.",
        note="Of both ports together; line rate is 20 Gbit/s, with 20 bytes of preamble and gap for each packet, which all rates in "
        "bit/s contain. The application is not bound by it: its CPU is the limit. dpdk-dumpcap cannot capture one direction "
        "only: half of what it captures is what the ports send, so that it can reach twice what is forwarded. Disturbed: the "
        "share of the time that the polling thread waited for its CPU; the rates do not contain that time, but a capture has more "
        "time than it would have otherwise.",
    )


def _paced(results: Results):
    rows = [
        [
            WAYS[way],
            Value(key, "captured_bps", G, 2),
            percent(key, "captured_line", 2),
            percent(key, "loss", 4),
            percent(key, "forwarded_line", 2),
        ]
        for way in OURS
        if results.cell(key := f"paced-{way}")
    ]
    return (
        [
            Table(
                f"Captured at exactly line rate, {SMALLEST} bytes",
                ["way", "captured, Gbit/s", "of line rate, %", "lost, %", "received, of line rate, %"],
                rows,
                note="Received: while the tool was attached. ringtap-fwd takes at most what two ports of 10 Gbit/s receive, and at the "
                "beginning up to 20 ms of that at once. dpdk-dumpcap cannot attach to it: an application has to call rte_pdump_init() "
                "for that.",
            )
        ]
        if rows
        else []
    )


def _plot(results: Results, metric: str, title: str, ways: Any, known: dict | None = None):
    shown = {
        way: [(s, found) for s in _sizes(results) if (found := results.series(f"{way}-{s}", metric))] for way in ways
    }

    def draw(axes: Axes):
        for i, way in enumerate(WAYS):
            plots.curve(axes, i, WAYS[way], shown.get(way), G)
        axes.axhline(LINE_BPS * G, color="grey", linestyle="--", label="line rate of two ports")
        if known:
            plots.stars(axes, [SMALLEST] * len(known), list(known.values()))
        axes.set(xlabel="bytes of a packet", ylabel="Gbit/s")
        plots.log(axes, "y")
        plots.legend(axes)

    return Plot(
        title,
        draw,
        [f"{way}-{size}" for way, points in shown.items() for size, _ in points],
        height=0.85,
        note="Mean and standard deviation. Log scale.",
        published=f"{SMALLEST} B: " + (f"{CAPTURED_TEXT} (stars)" if known else FORWARDED_TEXT),
    )


def blocks(results: Results) -> list:
    return [
        _table(results),
        _plot(results, "captured_bps", "Captured by packet size", (DUMPCAP, *OURS), CAPTURED),
        _plot(results, "forwarded_bps", "Forwarded by packet size", WAYS),
        *_paced(results),
    ]


def _bits(way: str, metric: str = "captured_bps"):
    return Value(f"{way}-{SMALLEST}", metric, G, 1, "Gbit/s")


def _claim_ways(results: Results):
    one, buffered, batch = (_bits(way).number(results) for way in (PACKET, BUFFER, BATCH))
    if None in (one, buffered, batch):
        verdict = Verdict(OPEN)
    elif one < buffered < batch and batch >= CAPTURED[BATCH] / CAPTURED[DUMPCAP] * one:
        verdict = Verdict(CONFIRMED, "Batches in the file's format gain as much as published, or more.")
    elif one < batch:
        verdict = Verdict(
            PARTLY, "Batches capture more than one write for each packet; the steps are not those published."
        )
    else:
        verdict = Verdict(DIFFERENT, "The way of writing does not decide here.")
    return Claim(
        "How packets are written decides how many are captured: one by one, buffered, in batches.",
        CAPTURED_TEXT,
        [
            ("dpdk-dumpcap, both directions", _bits(DUMPCAP)),
            ("ringtap, one by one", _bits(PACKET)),
            ("ringtap, buffered", _bits(BUFFER)),
            ("ringtap, batches", _bits(BATCH)),
        ],
        verdict,
    )


def _claim_line_rate(results: Results):
    share, lost = (percent(f"paced-{BATCH}", metric, 2, "%") for metric in ("captured_line", "loss"))
    reached, offered = share.number(results), results.mean(share.cell, "forwarded_line")
    known = CAPTURED[BATCH] / (LINE_BPS * G)
    if reached is None:
        verdict = Verdict(OPEN)
    elif offered < known:
        verdict = Verdict(OPEN, "The application itself did not receive at line rate.")
    elif reached >= known:
        verdict = Verdict(CONFIRMED, "Also with the smallest packets.")
    else:
        verdict = Verdict(DIFFERENT, "Less of it is captured here.")
    return Claim(
        "Batches capture almost all that two ports of 10 Gbit/s receive.",
        f"{CAPTURED[BATCH]} of 20 Gbit/s",
        [("captured, of line rate", share), ("lost", lost)],
        verdict,
    )


def _claim_forwarding(results: Results):
    dumpcap, batch = (_bits(way, "forwarded_bps").number(results) for way in (DUMPCAP, BATCH))
    if None in (dumpcap, batch):
        verdict = Verdict(OPEN)
    elif batch > dumpcap:
        verdict = Verdict(BETTER, "It forwards faster than with dpdk-dumpcap, though more is captured.")
    elif batch > 0.9 * dumpcap:
        verdict = Verdict(CONFIRMED, "Nearly as fast, though more is captured.")
    else:
        verdict = Verdict(DIFFERENT, "Slower than with dpdk-dumpcap.")
    names = {
        UNTOUCHED: "no capture",
        DUMPCAP: "dpdk-dumpcap",
        PACKET: "ringtap, one by one",
        BUFFER: "ringtap, buffered",
        BATCH: "ringtap, batches",
    }
    return Claim(
        "With batches the application forwards nearly as fast as with dpdk-dumpcap, which captures less.",
        FORWARDED_TEXT,
        [(name, _bits(way, "forwarded_bps")) for way, name in names.items()],
        verdict,
    )


def summary(results: Results) -> list:
    return [_claim_ways(results), _claim_line_rate(results), _claim_forwarding(results)]
