# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive hops`: where packets are delayed, reordered and lost between recorders."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import clocks, document, follow, options, show, units
from .errors import Refused

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from .engine import DuckEngine
    from .follow import Clocks, Follower, Leg
    from .main import Parser


def arguments(parser: Parser) -> None:
    options.archive(parser)
    options.window(parser)
    options.recorders(parser)
    options.engine(parser)
    follow_arguments(parser)
    parser.add_argument("--lost", action="store_true", help="list the packets that entered and never came out")
    parser.add_argument(
        "--limit", metavar="N", type=units.count, default=100, help="list at most N packets; 0: all (default: 100)"
    )
    options.as_json(parser)


def follow_arguments(parser: Parser) -> None:
    """Adds options for following packets."""
    parser.add_argument(
        "--between",
        metavar="NAME,NAME...",
        type=_names,
        default=[],
        help="only between these recorders or interfaces (RECORDER:INTERFACE)",
    )
    parser.add_argument(
        "--where",
        metavar="SQL",
        default="1 = 1",
        help="only packets for which this is true, for example \"dst_port = 443\"",
    )
    parser.add_argument(
        "--apart",
        metavar="TIME",
        type=units.duration,
        default=10**9,
        help="packets with the same contents that are further apart are not the same packet (default: 1s)",
    )
    parser.add_argument(
        "--offset",
        metavar="RECORDER=TIME",
        type=_offset,
        action="append",
        default=[],
        help="the clock of this recorder is known to be ahead by this time, for example -3ms",
    )
    parser.add_argument(
        "--same-clock", action="store_true", help="the clocks of all recorders are known to agree, as with PTP"
    )
    parser.add_argument(
        "--path",
        metavar="NAME,NAME...",
        type=_names,
        default=[],
        help="packets that go one way only pass the recorders in this order",
    )


def _names(text: str):
    return [name for name in text.split(",") if name]


def _offset(text: str):
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not an offset; give RECORDER=TIME, for example core=-3ms")
    return name, units.signed_duration(value)


def follower(con: DuckEngine, args: Namespace) -> Follower:
    return follow.Follower(
        con,
        where=args.where,
        apart_ns=args.apart,
        ahead=dict(args.offset),
        same_clock=args.same_clock,
        path=args.path,
        between=args.between,
    )


def run(args: Namespace) -> Any:
    with options.connect(args) as con:
        return _run(con, args)


def _run(con: DuckEngine, args: Namespace):
    found = follower(con, args).run()
    _refuse(found)
    lost = found.lost(args.limit or None) if args.lost else None
    missing = found.missing()
    captured = follow.rows_of(con, follow.statement("hops_captured"))
    states = clocks.of_recorders(con.parts)
    if args.json:
        document.write("hops", as_json(found, lost, missing, captured, states), indent=2)
    else:
        for line in text(found, lost, missing, captured, states, args.limit):
            show.say(line)
    return 0


def _refuse(found: Follower):
    if len(found.points) < 2:
        raise Refused(
            "nothing to follow: packets of one place only are in this window; ingest those of another one, or widen "
            "--from and --to"
            if found.points
            else "no packets in this window; widen --from and --to"
        )
    if not found.legs:
        raise Refused(why_nothing(found))


def why_nothing(found: Follower) -> str:
    """The reason for a result without legs."""
    return "; ".join(clock_text(c) for c in found.clocks if not c.directed) or (
        "no packet was recorded at two places within the time of --apart; NAT, tunnels and proxies change packets so that they "
        "cannot be followed"
    )


# ---- text


def leg_row(leg: Leg) -> list[str]:
    c = leg.counts
    mark = "" if leg.timed else "*"
    delays = [show.duration(c[k]) + mark for k in ("min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")]
    return [
        str(leg.start),
        str(leg.end),
        show.count(c["arrived"]),
        show.count(c["lost"]),
        show.percent(c["lost"], c["arrived"] + c["lost"]),
        show.count(c["reordered"]),
        *delays,
    ]


def _legs(legs: list[Leg]):
    head = ["FROM", "TO", "ARRIVED", "LOST", "LOSS", "REORDERED", "MIN", "P50", "P90", "P99", "MAX"]
    return show.table(head, [leg_row(g) for g in legs], right=range(2, len(head)))


def clock_text(c: Clocks) -> str:
    pair = f"{c.b} - {c.a}"
    seen = f"{c.forth:,} packets from {c.a} to {c.b}, {c.back:,} back"
    if c.known:
        return f"{pair}: as given"
    if not c.directed:
        return (
            f"{pair}: cannot tell the direction: packets go one way only, and the clocks differ by "
            f"{show.duration(abs(c.coarse_ns))} or so; give --path {c.a},{c.b} or --path {c.b},{c.a}"
        )
    if c.offset_ns is None:
        return (
            f"{pair}: cannot be told from delay: packets go one way only; delays (*) contain it"
            if c.packets
            else f"{pair}: no packet in common"
        )
    if c.slices:
        return (
            f"{pair}: drifts by {c.drift * 1e6:+.2f} ppm, one offset for each minute, on average "
            f"{show.duration(c.offset_ns, True)} ({seen})"
        )
    if not c.steady:
        return f"{pair}: about {show.duration(c.offset_ns, True)}; no single offset explains all packets: did a clock step? ({seen})"
    return f"{pair}: {show.estimate(c.offset_ns, c.bound_ns)} ({seen})"


def notes(found: Follower, captured: list) -> Iterator:
    for leg in found.legs:
        if leg.via:
            continue
        c, name = leg.counts, f"{leg.start} to {leg.end}"
        if c["not_judged"]:
            yield f"{name}: {c['not_judged']:,} packets before the first or after the last of the other recorder: not judged"
        if c["appeared"]:
            yield f"{name}: {c['appeared']:,} packets came out that had not entered: duplicates, or not captured at {leg.start}"
    for r in captured:
        yield f"{r['recorder']}: its recording lacks {r['packets']:,} packets ({r['reason']}): they count as lost here"
    for c in found.clocks:
        if c.known and c.both and not c.least_ns <= 0 <= c.most_ns:
            yield (
                f"{c.b} - {c.a}: the given clocks contradict the packets, by which the offset is between "
                f"{show.duration(c.least_ns, True)} and {show.duration(c.most_ns, True)} more"
            )


def _section(title: str, lines: list[str] | Iterator):
    lines = list(lines)
    return ["", title, *lines] if lines else []


def lost_cells(found: Follower, lost: list[dict]) -> Iterator:
    """Texts of a table, its head first."""
    yield ["ENTERED", "LAST SEEN AT", "NOT AT", "PROTOCOL", "SOURCE", "DESTINATION", "BYTES", "DIGEST"]
    for r in lost:
        leg = found.leg(r)
        yield [
            units.moment_text(r["in_ns"]),
            str(leg.start),
            str(leg.end),
            show.protocol(r["protocol"]),
            show.endpoint(r["src"], r["src_port"]),
            show.endpoint(r["dst"], r["dst_port"]),
            show.count(r["length"]),
            f"{r['digest']:08x}",
        ]


def _list_lost(found: Follower, lost: list[dict], limit: int):
    head, *rows = lost_cells(found, lost)
    yield from show.table(head, rows, right=[6])
    if limit and len(lost) >= limit:
        yield f"The first {limit:,}; --limit 0 lists all."


def missing_cells(found: Follower, missing: list) -> Iterator:
    """Texts of a table, its head first."""
    yield ["LAST SEEN AT", "NOT AT", "PROTOCOL", "SOURCE", "DESTINATION", "PACKETS", "FIRST"]
    for r in missing:
        leg = found.leg(r)
        yield [
            str(leg.start),
            str(leg.end),
            show.protocol(r["protocol"]),
            show.endpoint(r["src"], r["src_port"]),
            show.endpoint(r["dst"], r["dst_port"]),
            show.count(r["packets"]),
            units.moment_text(r["first_ns"]),
        ]


def _list_missing(found: Follower, missing: list):
    head, *rows = missing_cells(found, missing)
    return show.table(head, rows, right=[5]) if rows else []


def text(
    found: Follower, lost: list[dict] | None, missing: list, captured: list, states: dict[str, dict], limit: int
) -> list[str]:
    """Lines."""
    direct, over = [g for g in found.legs if not g.via], [g for g in found.legs if g.via]
    lines = list(_legs(direct))
    lines += _section("End to end (over points above)", _legs(over) if over else [])
    lines += _section(
        "Clocks", [f"  {clock_text(c)}" for c in found.clocks] + [f"  {note}" for note in clocks.notes(states)]
    )
    lines += _section(
        "Flows of which nothing came out: lost altogether, or routed elsewhere", _list_missing(found, missing)
    )
    lines += _section("Notes", (f"  {x}" for x in notes(found, captured)))
    if lost is not None:
        lines += _section("Lost packets", _list_lost(found, lost, limit) if lost else ["  none"])
    return lines


# ---- JSON


def _clocks_json(c: Clocks):
    return {
        "recorder": c.b,
        "against": c.a,
        "offset_ns": c.offset_ns,
        "bound_ns": c.bound_ns,
        "least_ns": _plus(c.least_ns, c),
        "most_ns": _plus(c.most_ns, c),
        "packets": [c.forth, c.back],
        "given": c.known,
        "directed": c.directed,
        "drift_ppm": None if c.drift is None else c.drift * 1e6,
        "steady": c.steady or c.known,
    }


def _plus(ns: int | None, c: Clocks):
    return None if ns is None else ns + c.coarse_ns


def _row_json(found: Follower, row: dict):
    leg = found.leg(row)
    rest = {k: v for k, v in row.items() if k not in ("pair", "way")}
    return {"from": str(leg.start), "to": str(leg.end), **rest}


def as_json(found: Any, lost: list[dict] | None, missing: list[dict], captured: list, states: dict[str, dict]) -> dict:
    hops = [
        {"from": str(g.start), "to": str(g.end), "via": [str(p) for p in g.via], "timed": g.timed, **g.counts}
        for g in found.legs
    ]
    out = {
        "hops": hops,
        "clocks": [_clocks_json(c) for c in found.clocks],
        "missing_flows": [_row_json(found, r) for r in missing],
        "not_captured": captured,
        "recorder_clocks": states,
    }
    out["lost"] = None if lost is None else [_row_json(found, r) for r in lost]
    return out
