# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive report`: a window of time as one self-contained HTML file."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import clocks, follow, hops, options, page, show, top, units
from .errors import Refused

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from .engine import DuckEngine
    from .follow import Leg
    from .main import Parser

SECTIONS = ("talkers", "conversations", "protocols", "ports")
BUCKETS = 600  # in a window, at most


def arguments(parser: Parser) -> None:
    options.archive(parser)
    options.window(parser)
    options.recorders(parser)
    options.engine(parser)
    parser.add_argument("--html", metavar="FILE", required=True, help="write this file; -: standard output")
    options.group(parser)
    parser.add_argument("--title", metavar="TEXT", help="heading of the page")
    parser.add_argument("--limit", metavar="N", type=units.count, default=10, help="rows in each table (default: 10)")
    parser.add_argument("--no-hops", action="store_true", help="do not follow packets between recorders")
    hops.follow_arguments(parser)


def run(args: Namespace) -> Any:
    with options.connect(args) as con:
        text = Report(con, args).text()
    if args.html == "-":
        sys.stdout.write(text)
    else:
        _write(Path(args.html), text, args.group)
    return 0


def _write(path: Path, text: str, group: bool):
    """Writes the whole file or nothing."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as f:
            f.write(text)
        os.chmod(f.name, 0o640 if group else 0o600)
        os.replace(f.name, path)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from None


def bucket_ns(first_ns: int, last_ns: int) -> int:
    """Length of intervals: 1, 2 or 5 times a power of ten, so that there are no more than BUCKETS."""
    rough = max(last_ns - first_ns, 1) / BUCKETS
    power = 10 ** math.floor(math.log10(max(rough, 10_000)))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough)


def _capital(words: list[str]):
    """A head of a table on the command line, as words."""
    return [w if w in ("P50", "P90", "P99", "ID", "A", "B") else w.replace("/S", "/s").capitalize() for w in words]


class Report:
    """The document of a window."""

    def __init__(self, con: DuckEngine, args: Namespace):
        self.con, self.args = con, args
        self.first, self.last = top.span(con)
        self.bucket = bucket_ns(self.first, self.last)
        self.zero = self.first // self.bucket * self.bucket
        self.buckets = (self.last - self.zero) // self.bucket + 1
        self.edges = [max(self.zero + n * self.bucket, self.first) for n in range(self.buckets)] + [self.last + 1]
        self.recorders = sorted(top.top(con, "recorders", 10**6), key=lambda r: r["recorded"])
        self.captured = follow.rows_of(con, follow.statement("hops_captured"))
        self.rates = follow.rows_of(con, follow.statement("report_rates", zero=self.zero, bucket=self.bucket))
        self.found = None if args.no_hops else self._follow()
        self.missing = self.found.missing() if self.found else []
        title = args.title or f"Packets of {Path(args.archive).resolve().name}"
        self.out = page.Document("archive report", title, self.first, self.last)

    def _follow(self):
        found = hops.follower(self.con, self.args).run()
        self.nothing = None if found.legs else hops.why_nothing(found)
        return found if found.legs else None

    def _seconds(self, n: int):
        """Length of an interval; the first and the last one may be shorter."""
        return (self.edges[n + 1] - self.edges[n]) / 1e9

    def _values(self, rows: list, value: Callable, first: Any = None, last: Any = None):
        """A value for each interval: without a row unknown, or 0 from first to last."""
        out = [None] * self.buckets
        if first is not None:
            low, high = ((ns - self.zero) // self.bucket for ns in (first, last))
            out[low : high + 1] = [0] * (high + 1 - low)
        for r in rows:
            if 0 <= r["bucket"] < self.buckets:
                out[r["bucket"]] = value(r)
        return out

    # ---- sections

    def _facts(self):
        fact, lacking, octets = self.out.fact, sum(r["packets"] for r in self.captured), {}
        for r in self.rates:
            octets[r["recorder"]] = octets.get(r["recorder"], 0) + r["bytes"]
        fact("window", f"{units.moment_text(self.first)} to {units.moment_text(self.last)} UTC")
        fact("duration", show.duration(self.last - self.first), "from first to last packet")
        fact("recorders", show.count(len(self.recorders)))
        fact("packets", show.count(sum(r["packets"] for r in self.recorders)), "recorded")
        busiest = max(octets.values(), default=0) * 8 / max((self.last - self.first) / 1e9, 1e-9)
        fact("rate", show.si(busiest, "bit/s"), "at the busiest recorder, on average")
        fact("not captured", show.count(lacking), "packets that recordings lack, by their own account")
        if self.found:
            lost = sum(g.counts["lost"] for g in self.found.legs if not g.via)
            fact("lost", show.count(lost), "packets, between recorders")

    def _findings(self):
        """Findings to check first, as sentences."""
        direct = [g for g in self.found.legs if not g.via] if self.found else []
        for g in sorted(direct, key=lambda g: -g.counts["lost"] / (g.counts["arrived"] + g.counts["lost"]))[:3]:
            if lost := g.counts["lost"]:
                share = show.percent(lost, lost + g.counts["arrived"])
                yield f"{g.start} to {g.end}: {lost:,} packets lost, {share}."
        timed = [g for g in direct if g.timed]
        if timed:
            slow = max(timed, key=lambda g: g.counts["p50_ns"])
            yield (
                f"{slow.start} to {slow.end} has the longest median delay, {show.duration(slow.counts['p50_ns'])}; 1 % of its "
                f"packets take more than {show.duration(slow.counts['p99_ns'])}."
            )
        if self.missing:
            flows = "1 flow" if len(self.missing) == 1 else f"{len(self.missing):,} flows"
            yield f"Of {flows} nothing came out at the next recorder."
        for r in self.captured[:3]:
            yield f"The recording of {r['recorder']} lacks {r['packets']:,} packets ({r['reason']})."

    def _recorder_table(self):
        spans = {}
        for part in self.con.parts:
            if part.meta.get("first_ns") is not None:
                first, last = spans.get(part.recorder, (part.meta["first_ns"], part.meta["last_ns"]))
                spans[part.recorder] = min(first, part.meta["first_ns"]), max(last, part.meta["last_ns"])
        rows = []
        for r in self.recorders:
            first, last = spans[r["recorded"]]
            first, last = max(first, self.first), min(last, self.last)
            seconds = max(last - first, 1) / 1e9
            lacking = sum(x["packets"] for x in self.captured if x["recorder"] == r["recorded"])
            rows.append(
                [
                    r["recorded"],
                    units.moment_text(first),
                    units.moment_text(last),
                    show.count(r["packets"]),
                    show.count(r["bytes"]),
                    show.si(r["packets"] / seconds),
                    show.si(r["bytes"] * 8 / seconds),
                    show.count(lacking),
                ]
            )
        head = [
            "Recorder",
            "First packet (UTC)",
            "Last packet",
            "Packets",
            "Bytes",
            "Packet/s",
            "Bit/s",
            "Not captured",
        ]
        self.out.table("recorders", "Recorders", head, rows, 3)

    def _rates(self):
        busiest = [r["recorded"] for r in sorted(self.recorders, key=lambda r: -r["bytes"])[: page.CURVES]]
        bits, packets = {}, {}
        for name in sorted(busiest):
            mine = [r for r in self.rates if r["recorder"] == name]
            ends = (self.zero + mine[0]["bucket"] * self.bucket, self.zero + mine[-1]["bucket"] * self.bucket)
            bits[name] = self._values(mine, lambda r: r["bytes"] * 8 / self._seconds(r["bucket"]), *ends)
            packets[name] = self._values(mine, lambda r: r["packets"] / self._seconds(r["bucket"]), *ends)
        many = len(self.recorders)
        twice = any(i.get("app") is not None for p in self.con.parts for i in p.meta.get("interfaces") or [])
        notes = [
            f"Each step: {show.duration(self.bucket)}.",
            "What an application received and sent counts once." if twice else "",
            f"The {page.CURVES} busiest of {many} recorders." if many > page.CURVES else "",
        ]
        self.out.levels("bits", "Bits a second", "/s", self.edges, bits, notes)
        self.out.levels("rates", "Packets a second", "/s", self.edges, packets, notes)

    def _captured(self):
        rows = follow.rows_of(self.con, follow.statement("report_losses", zero=self.zero, bucket=self.bucket))
        if not rows:
            return
        series = {}
        for name in sorted({r["recorder"] for r in rows}):
            mine = [r for r in rows if r["recorder"] == name]
            series[name] = self._values(mine, lambda r: r["packets"], self.first, self.last)
        self.out.levels("losses", "Packets that recordings lack", "count", self.edges, series)
        reasons = [[r["recorder"], r["reason"], show.count(r["packets"])] for r in self.captured]
        self.out.table("reasons", "Why recordings lack packets", ["Recorder", "Reason", "Packets"], reasons, 2)

    def _tops(self):
        for name in SECTIONS:
            kind = top.KINDS[name]
            rows = top.top(self.con, name, self.args.limit, where=None)
            head, *body = top.cells(kind, rows, self.first, self.last)
            note = "Packets pass several recorders: each row counts at the recorder that has most of it (At)."
            self.out.table(name, kind.title, _capital(head), body, len(kind.head), [note])

    def _leg_table(self, name: str, title: str, legs: list[Leg], notes: Any = ()):
        head = ["From", "To", "Arrived", "Lost", "Loss", "Reordered", "Min", "P50", "P90", "P99", "Max"]
        self.out.table(name, title, head, [hops.leg_row(g) for g in legs], 2, notes)

    def _leg_panels(self, direct: list[Leg]):
        rows = self.found.over_time(self.zero, self.bucket)
        p50, p99, loss = {}, {}, {}
        for leg in sorted(direct, key=lambda g: -g.counts["arrived"])[: page.CURVES]:
            mine = [r for r in rows if (r["pair"], r["way"]) == (leg.pair, leg.way)]
            name = f"{leg.start} to {leg.end}" + ("" if leg.timed else " *")
            # A delay may be below 0 where clocks differ, which no logarithmic axis shows.
            p50[name] = self._values(mine, lambda r: r["p50_ns"])
            p99[name] = self._values(mine, lambda r: r["p99_ns"])
            loss[name] = self._values(mine, lambda r: r["lost"] / (r["arrived"] + r["lost"]))
        for name, title, series in (("p50", "Median delay", p50), ("p99", "99 % of packets are faster than", p99)):
            known = [v for values in series.values() for v in values if v is not None]
            self.out.levels(name, title, "ns", self.edges, series, log=bool(known) and min(known) > 0)
        self.out.levels("loss", "Loss", "share", self.edges, loss)

    def _lost_table(self):
        rows = self.found.lost(self.args.limit)
        if rows:
            head, *body = hops.lost_cells(self.found, rows)
            note = f"All of them: ringtap archive hops -A {self.args.archive} --lost"
            self.out.table("lost", f"Lost packets: the first {len(rows)}", _capital(head), body, 6, [note])

    def _missing_table(self):
        head, *body = hops.missing_cells(self.found, self.missing)
        if body:
            note = "Lost altogether, or routed elsewhere."
            self.out.table("gone", "Flows of which nothing came out", _capital(head), body, 5, [note])

    def _hops(self):
        if self.args.no_hops:
            return
        if not self.found:
            self.out.finding("note", "Between recorders", [f"Nothing can be followed: {self.nothing}."])
            return
        direct = [g for g in self.found.legs if not g.via]
        over = [g for g in self.found.legs if g.via]
        offset = "* Delays contain the offset between the clocks: packets go one way only, so that the two cannot be told apart."
        self._leg_table("hops", "Between recorders", direct, [] if all(g.timed for g in self.found.legs) else [offset])
        self._leg_panels(direct)
        if over:
            self._leg_table("ends", "End to end", over)
        self._missing_table()
        self._lost_table()
        if self.found.clocks:
            own = clocks.notes(clocks.of_recorders(self.con.parts))
            self.out.finding("note", "Clocks", [*map(hops.clock_text, self.found.clocks), *own])
        if notes := [*hops.notes(self.found, self.captured)]:
            self.out.finding("note", "Between recorders", notes)

    def text(self) -> str:
        """The page."""
        self._facts()
        if findings := [*self._findings()]:
            self.out.finding("note", "What to look at first", findings)
        self._recorder_table()
        self._rates()
        self._captured()
        self._tops()
        self._hops()
        return self.out.page()
