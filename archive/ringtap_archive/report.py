# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive report`: a window of time as one HTML file that needs nothing else."""

import os
import sys
import tempfile
from html import escape
from pathlib import Path

from . import charts, clocks, follow, hops, options, show, top, units
from .errors import Refused

_STYLE = Path(__file__).with_name("page.css")
SECTIONS = ("talkers", "conversations", "protocols", "ports")
CURVES = 7  # more in one chart cannot be told apart


def arguments(parser):
    options.archive(parser)
    options.window(parser)
    options.recorders(parser)
    options.engine(parser)
    parser.add_argument("--html", metavar="FILE", required=True, help="write this file; -: standard output")
    options.group(parser)
    parser.add_argument("--title", metavar="TEXT", help="heading of the page")
    parser.add_argument("--limit", metavar="N", type=int, default=10, help="rows in each table (default: 10)")
    parser.add_argument("--no-hops", action="store_true", help="do not follow packets between recorders")
    hops.follow_arguments(parser)


def run(args):
    with options.connect(args) as con:
        page = Page(con, args).text()
    if args.html == "-":
        sys.stdout.write(page)
    else:
        _write(Path(args.html), page, args.group)
    return 0


def _write(path, text, group):
    """All of it or nothing."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".", delete=False) as f:
            f.write(text)
        os.chmod(f.name, 0o640 if group else 0o600)
        os.replace(f.name, path)
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from None


# ---- parts of a page


def _table(head, rows, names, shares=None, bad=None):
    """names: how many columns are names. shares: {column: [0..1 of each row]}. bad: pairs of row and column."""
    out = ['<div class="scroll" tabindex="0"><table><thead><tr>']
    out += [f'<th scope="col"{" class=name" if n < names else ""}>{escape(text)}</th>' for n, text in enumerate(head)]
    out.append("</tr></thead><tbody>")
    for number, row in enumerate(rows):
        out.append("<tr>")
        for n, text in enumerate(row):
            kind = ' class="name"' if n < names else ""
            if shares and n in shares:
                kind = f' class="share" style="--part:{100 * shares[n][number]:.1f}%"'
            if bad and (number, n) in bad:
                kind = ' class="bad"'
            out.append(f"<td{kind}>{escape(str(text))}</td>")
        out.append("</tr>")
    return "".join(out) + "</tbody></table></div>"


def _tile(value, name, bad=False):
    return f'<div class="tile{" bad" if bad else ""}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'


def _figure(title, chart, note=""):
    more = f'<figcaption class="note">{escape(note)}</figcaption>' if note else ""
    return f"<figure><h3>{escape(title)}</h3>{chart.svg()}{more}</figure>"


def _list(lines):
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def _capital(words):
    """A head of a table on the command line, as words."""
    return [w if w in ("P50", "P90", "P99", "ID", "A", "B") else w.replace("/S", "/s").capitalize() for w in words]


class Page:
    """The page of a window."""

    def __init__(self, con, args):
        self.con, self.args = con, args
        self.first, self.last = top.span(con)
        self.bucket = charts.bucket_ns(self.first, self.last)
        self.zero = self.first // self.bucket * self.bucket
        self.recorders = sorted(top.top(con, "recorders", 10**6), key=lambda r: r["recorded"])
        self.captured = follow.rows_of(con, follow.statement("hops_captured"))
        self.rates = follow.rows_of(con, follow.statement("report_rates", zero=self.zero, bucket=self.bucket))
        self.found = None if args.no_hops else self._follow()

        self.missing = self.found.missing() if self.found else []

    def _follow(self):
        found = hops.follower(self.con, self.args).run()
        self.nothing = None if found.legs else hops.why_nothing(found)
        return found if found.legs else None

    def _buckets(self, rows, value, first=None, last=None):
        """Points of a curve: 0 where nothing was, from first to last; without these, gaps."""
        have = {r["bucket"]: value(r) for r in rows}
        low = min(have, default=0) if first is None else (first - self.zero) // self.bucket
        high = max(have, default=-1) if last is None else (last - self.zero) // self.bucket
        empty = None if first is None else 0
        return [(self.zero + n * self.bucket + self.bucket // 2, have.get(n, empty)) for n in range(low, high + 1)]

    # ---- sections

    def _summary(self):
        lacking = sum(r["packets"] for r in self.captured)
        octets = {}
        for r in self.rates:
            octets[r["recorder"]] = octets.get(r["recorder"], 0) + r["bytes"]
        out = [
            _tile(str(len(self.recorders)), "recorder" if len(self.recorders) == 1 else "recorders"),
            _tile(show.duration(self.last - self.first), "from first to last packet"),
            _tile(show.si(sum(r["packets"] for r in self.recorders)), "recorded packets"),
            _tile(
                show.si(max(octets.values(), default=0) * 8 / max((self.last - self.first) / 1e9, 1e-9), "bit/s"),
                "at the busiest recorder, on average",
            ),
            _tile(show.si(lacking), "packets that recordings lack", bad=lacking > 0),
        ]
        if self.found:
            direct = [g for g in self.found.legs if not g.via]
            lost = sum(g.counts["lost"] for g in direct)
            out.append(_tile(show.si(lost), "packets lost between recorders", bad=lost > 0))
        return f'<div class="tiles">{"".join(out)}</div>'

    def _findings(self):
        """What to look at first, as sentences."""
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
        rows, bad = [], set()
        for n, r in enumerate(self.recorders):
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
            bad |= {(n, 7)} if lacking else set()
        return _table(
            ["Recorder", "First packet (UTC)", "Last packet", "Packets", "Bytes", "Packet/s", "Bit/s", "Not captured"],
            rows,
            3,
            bad=bad,
        )

    def _rates(self):
        rows = self.rates
        seconds = self.bucket / 1e9
        busiest = [r["recorded"] for r in sorted(self.recorders, key=lambda r: -r["bytes"])[:CURVES]]
        bits = charts.Chart("Bits a second over time", self.first, self.last, show.si)
        packets = charts.Chart("Packets a second over time", self.first, self.last, show.si)
        for name in sorted(busiest):
            mine = [r for r in rows if r["recorder"] == name]
            ends = (self.zero + mine[0]["bucket"] * self.bucket, self.zero + mine[-1]["bucket"] * self.bucket)
            bits.add(name, self._buckets(mine, lambda r: r["bytes"] * 8 / seconds, *ends))
            packets.add(name, self._buckets(mine, lambda r: r["packets"] / seconds, *ends))
        twice = (
            " What an application received and sent counts once."
            if any(i.get("app") is not None for p in self.con.parts for i in p.meta.get("interfaces") or [])
            else ""
        )
        note = f"Each point: {show.duration(self.bucket)}.{twice}" + (
            f" The {CURVES} busiest of {len(self.recorders)} recorders." if len(self.recorders) > CURVES else ""
        )
        return f'<div class="plots">{_figure("Bits a second", bits, note)}{_figure("Packets a second", packets, note)}</div>'

    def _captured_chart(self):
        rows = follow.rows_of(self.con, follow.statement("report_losses", zero=self.zero, bucket=self.bucket))
        if not rows:
            return "<p>The recordings lack no packet, by their own account.</p>"
        chart = charts.Chart("Packets that recordings lack, over time", self.first, self.last, show.si, height=180)
        for name in sorted({r["recorder"] for r in rows})[:CURVES]:
            mine = [r for r in rows if r["recorder"] == name]
            chart.add(name, self._buckets(mine, lambda r: r["packets"], self.first, self.last))
        reasons = _table(
            ["Recorder", "Reason", "Packets"],
            [[r["recorder"], r["reason"], show.count(r["packets"])] for r in self.captured],
            2,
        )
        return f'<div class="plots">{_figure("Packets that recordings lack", chart)}<div><h3>By reason</h3>{reasons}</div></div>'

    def _tops(self):
        for name in SECTIONS:
            kind = top.KINDS[name]
            rows = top.top(self.con, name, self.args.limit, where=None)
            head, *body = top.cells(kind, rows, self.first, self.last)
            share = [r["bytes"] * kind.halves / max(r["recorder_bytes"], 1) for r in rows]
            names = len(kind.head)
            table = _table(_capital(head), body, names, {len(head) - 2: share}) if body else "<p>None.</p>"
            yield f'<h3 id="{name}">{kind.title}</h3>{table}'

    def _leg_table(self, legs):
        head = ["From", "To", "Arrived", "Lost", "Loss", "Reordered", "Min", "P50", "P90", "P99", "Max"]
        rows = [hops.leg_row(g) for g in legs]
        bad = {(n, c) for n, g in enumerate(legs) if g.counts["lost"] for c in (3, 4)}
        return _table(head, rows, 2, bad=bad)

    def _leg_charts(self, direct):
        rows = self.found.over_time(self.zero, self.bucket)
        p50, p99, loss = (
            charts.Chart(title, self.first, self.last, text, height=240, log=log)
            for title, text, log in (
                ("Median delay over time", show.duration, True),
                ("99 % of delays over time", show.duration, True),
                ("Loss over time", lambda v: f"{v:.3g} %", False),
            )
        )
        for leg in sorted(direct, key=lambda g: -g.counts["arrived"])[:CURVES]:
            mine = [r for r in rows if (r["pair"], r["way"]) == (leg.pair, leg.way)]
            name = f"{leg.start} to {leg.end}" + ("" if leg.timed else " *")
            p50.add(name, self._buckets(mine, lambda r: r["p50_ns"]))
            p99.add(name, self._buckets(mine, lambda r: r["p99_ns"]))
            loss.add(name, self._buckets(mine, lambda r: 100 * r["lost"] / (r["arrived"] + r["lost"])))
        shown = "".join(
            _figure(title, c)
            for title, c in (("Median delay", p50), ("99 % of packets are faster than", p99), ("Loss", loss))
        )
        return f'<div class="plots">{shown}</div>'

    def _lost_table(self):
        rows = self.found.lost(self.args.limit)
        if not rows:
            return ""
        head, *body = hops.lost_cells(self.found, rows)
        command = f"ringtap archive hops -A {self.args.archive} --lost"
        return (
            f"<h3>Lost packets: the first {len(rows)}</h3>{_table(_capital(head), body, 6)}"
            f'<p class="note">All of them: <code>{escape(command)}</code></p>'
        )

    def _missing_table(self):
        head, *body = hops.missing_cells(self.found, self.missing)
        return (
            f"<h3>Flows of which nothing came out</h3><p>Lost altogether, or routed elsewhere.</p>"
            f"{_table(_capital(head), body, 5)}"
            if body
            else ""
        )

    def _hops(self):
        if self.args.no_hops:
            return ""
        out = ['<h2 id="hops">Between recorders</h2>']
        if not self.found:
            return f"{out[0]}<p>Nothing can be followed: {escape(self.nothing)}.</p>"
        direct = [g for g in self.found.legs if not g.via]
        over = [g for g in self.found.legs if g.via]
        out.append(self._leg_table(direct))
        if any(not g.timed for g in self.found.legs):
            out.append(
                '<p class="warning">* Delays contain the offset between the clocks: packets go one way only, so that the '
                "two cannot be told apart.</p>"
            )
        out.append(self._leg_charts(direct))
        if over:
            out.append(f"<h3>End to end</h3>{self._leg_table(over)}")
        out += [
            f"<h3>Clocks</h3>{_list([*map(hops.clock_text, self.found.clocks), *clocks.notes(clocks.of_recorders(self.con.parts))])}"
            if self.found.clocks
            else "",
            self._missing_table(),
            self._lost_table(),
        ]
        notes = _list(hops.notes(self.found, self.captured))
        out.append(f"<h3>Notes</h3>{notes}" if notes else "")
        return "".join(out)

    def text(self):
        """The page."""
        title = self.args.title or f"Packets of {Path(self.args.archive).resolve().name}"
        parts = [("rates", "Rates"), ("losses", "Losses of recordings"), *((s, s.capitalize()) for s in SECTIONS)]
        parts += [] if self.args.no_hops else [("hops", "Between recorders")]
        links = "".join(f'<a href="#{name}">{text}</a>' for name, text in parts)
        body = [
            f"<header><h1>{escape(title)}</h1>",
            f'<p class="soft">{units.moment_text(self.first)} to {units.moment_text(self.last)} UTC</p>',
            f"<nav>{links}</nav></header>",
            self._summary(),
            _list(self._findings()),
            self._recorder_table(),
            '<h2 id="rates">Rates</h2>',
            self._rates(),
            '<h2 id="losses">Losses of the recordings</h2>',
            self._captured_chart(),
            "<h2>Most of the traffic</h2>",
            '<p class="note">Packets pass several recorders: each row counts at the recorder that has most of it (At).</p>',
            *self._tops(),
            self._hops(),
        ]
        style = _STYLE.read_text(encoding="utf-8")
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
            f"<title>{escape(title)}</title>\n<style>\n{style}</style></head><body>\n"
            + "\n".join(filter(None, body))
            + "\n</body></html>\n"
        )
