# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive top`: the largest talkers, flows, ports and so on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import addresses, document, follow, options, show, units
from .engine import number
from .errors import Refused

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from .engine import DuckEngine
    from .main import Parser

ALL = 2**31 - 1  # rows
IP = "coalesce(ethertype, 0) NOT IN (2054, 32821)"  # ARP and RARP have addresses, and are in no flow


@dataclass(frozen=True)
class Kind:
    """Kind of rows. columns: columns of packets that identify a row, if it is not made of flows."""

    title: str
    head: list
    keys: list
    name: object  # row -> texts under head
    ways: tuple = ()  # titles of the two directions
    columns: str = ""
    halves: int = 1  # in how many rows of its recorder a packet counts; 0: there is one row


def _address(blob: bytes):
    return show.DASH if blob is None else addresses.text(blob)


def _end(row: dict, end: str):
    return show.endpoint(_address(row[end]), row[f"{end}_port"])


def _layers(row: dict):
    if row["protocol"] is not None:
        return show.protocol(row["protocol"])
    if row["ethertype"] is None:
        return "unknown"
    return show.ethertype(row["ethertype"])


KINDS = {
    "talkers": Kind(
        "Talkers", ["ADDRESS"], ["address"], lambda r: [_address(r["address"])], ("SENT", "RECEIVED"), halves=2
    ),
    "conversations": Kind(
        "Conversations", ["A", "B"], ["a", "b"], lambda r: [_address(r["a"]), _address(r["b"])], ("A TO B", "B TO A")
    ),
    "flows": Kind(
        "Flows",
        ["A", "B", "PROTOCOL"],
        ["a", "a_port", "b", "b_port", "protocol"],
        lambda r: [_end(r, "a"), _end(r, "b"), show.protocol(r["protocol"])],
        ("A TO B", "B TO A"),
    ),
    "protocols": Kind(
        "Protocols",
        ["PROTOCOL", "OVER"],
        ["ethertype", "protocol"],
        lambda r: [_layers(r), show.ETHERTYPES.get(r["ethertype"], show.DASH) if r["protocol"] is not None else ""],
        columns="recorder, ethertype, protocol",
    ),
    "ports": Kind(
        "Ports",
        ["PORT", "PROTOCOL"],
        ["protocol", "port"],
        lambda r: [r["port"], show.protocol(r["protocol"])],
        ("TO IT", "FROM IT"),
    ),
    "recorders": Kind("Recorders", ["RECORDED"], ["recorded"], lambda r: [r["recorded"]], halves=0),
    "interfaces": Kind(
        "Interfaces",
        ["INTERFACE", "DIRECTION"],
        ["place", "direction"],
        lambda r: [r["place"], r["direction"] or show.DASH],
    ),
    "vlans": Kind(
        "VLANs", ["VLAN"], ["vlan"], lambda r: [show.DASH if r["vlan"] is None else r["vlan"]], columns="recorder, vlan"
    ),
    "tunnels": Kind(
        "Tunnels",
        ["TUNNEL", "ID"],
        ["tunnel", "tunnel_id"],
        lambda r: [r["tunnel"] or "none", show.DASH if r["tunnel_id"] is None else r["tunnel_id"]],
        columns="recorder, tunnel, tunnel_id",
    ),
}


def arguments(parser: Parser) -> None:
    options.archive(parser)
    options.window(parser)
    options.recorders(parser)
    options.engine(parser)
    parser.add_argument(
        "--view", metavar="WHAT", choices=KINDS, default="talkers", help=f"{', '.join(KINDS)} (default: talkers)"
    )
    parser.add_argument(
        "--limit", metavar="N", type=units.count, default=10, help="at most N rows; 0: all (default: 10)"
    )
    parser.add_argument(
        "--by", choices=("bytes", "packets"), default="bytes", help="what the largest is (default: bytes)"
    )
    parser.add_argument(
        "--sum", action="store_true", help="add up what all recorders have, also packets that passed several of them"
    )
    parser.add_argument(
        "--where", metavar="SQL", help="only packets for which this is true, for example \"dst_port = 443\""
    )
    options.as_json(parser)


def _cut(con: DuckEngine):
    """Parts that are not completely in the window."""
    return [
        p
        for p in con.parts
        if p.meta.get("first_ns") is not None
        and (
            (con.since is not None and p.meta["first_ns"] < con.since)
            or (con.until is not None and p.meta["last_ns"] >= con.until)
        )
    ]


def _by_packets(con: DuckEngine):
    """Parts whose flows are not enough: cut by the window, or of an application, which may have received and sent the same
    packets."""
    both = {r["part"] for r in follow.rows_of(con, follow.statement("top_directions"))}
    return sorted(both | {number(p) for p in _cut(con)})


def _traffic_of_packets(chosen: str):
    """Traffic from packets: for parts that the window cuts, and with conditions on packets."""
    return follow.statement(
        "top_packets",
        columns="recorder, src, dst, protocol, src_port, dst_port",
        chosen=f"src IS NOT NULL AND {IP} AND {chosen}",
    )


def _traffic(con: DuckEngine, where: str | None):
    """Traffic from flows where possible: they are far fewer than packets."""
    if where:
        return _traffic_of_packets(f"({where})")
    some = _by_packets(con)
    flows = follow.statement("top_traffic_flows", cut=", ".join(map(str, some)) or "-1")
    if not some:
        return flows
    packets = _traffic_of_packets(f"part IN ({', '.join(map(str, some))})")
    return packets if len(some) == len(con.parts) else f"{flows}\nUNION ALL\n{packets}"


def _rows(con: DuckEngine, name: str, where: str | None):
    kind = KINDS[name]
    if name in ("recorders", "interfaces"):
        return follow.statement(f"top_{name}", chosen=where or "1 = 1")
    if kind.columns:
        return follow.statement("top_packets", columns=kind.columns, chosen=where or "1 = 1")
    return follow.statement(f"top_{name}", traffic=_traffic(con, where))


def top(
    con: DuckEngine, name: str, limit: int = 10, measure: str = "bytes", add_up: bool = False, where: str | None = None
) -> list[dict]:
    """Rows of a kind, most first."""
    kind = KINDS[name]
    text = follow.statement(
        "top",
        rows=_rows(con, name, where),
        keys=", ".join(kind.keys),
        limit=limit or ALL,
        measure=measure,
        recorder="'all'" if add_up else "recorder",
    )
    return follow.rows_of(con, text)


def span(con: DuckEngine) -> tuple:
    """(first, last) of the window's packets, ns; refused if there are none. Whole parts need no look into them."""
    cut = {number(p) for p in _cut(con)}
    whole = [p.meta for p in con.parts if number(p) not in cut and p.meta.get("first_ns") is not None]
    first, last = [m["first_ns"] for m in whole], [m["last_ns"] for m in whole]
    if cut:
        row = follow.rows_of(con, follow.statement("top_span"))[0]
        first, last = ([*x, row[k]] if row[k] is not None else x for x, k in ((first, "first_ns"), (last, "last_ns")))
    if not first:
        raise Refused("no packets in this window; widen --from and --to")
    return min(first), max(last)


def run(args: Namespace) -> Any:
    with options.connect(args) as con:
        first, last = span(con)
        rows = top(con, args.view, args.limit, args.by, args.sum, args.where)
    if args.json:
        rows = [as_json(r) for r in rows]
        document.write("top", {"view": args.view, "first_ns": first, "last_ns": last, "rows": rows}, indent=2)
    else:
        for line in text(KINDS[args.view], rows, first, last, args.sum):
            show.say(line)
    return 0


def as_json(row: Any) -> dict:
    return {k: _address(v) if isinstance(v, bytes) else v for k, v in row.items()}


def cells(kind: Any, rows: Any, first: int, last: Any) -> Any:
    """Texts of a table, its head first."""
    seconds = max(last - first, 1) / 1e9
    two = [f"{unit} {way}" for unit in ("PACKETS", "BYTES") for way in kind.ways] or ["PACKETS", "BYTES"]
    yield [*kind.head, *two, "PACKET/S", "BIT/S", "SHARE", "AT"]
    for r in rows:
        counts = (
            [r["packets_out"], r["packets_back"], r["bytes_out"], r["bytes_back"]]
            if kind.ways
            else [r["packets"], r["bytes"]]
        )
        others = f" +{r['recorders'] - 1}" if r["recorders"] > 1 else ""
        yield [
            *map(str, kind.name(r)),
            *map(show.count, counts),
            show.si(r["packets"] / seconds),
            show.si(r["bytes"] * 8 / seconds),
            show.percent(r["bytes"] * kind.halves, kind.halves and r["recorder_bytes"]),
            r["recorder"] + others,
        ]


def text(kind: Kind, rows: list[dict], first: int, last: int, add_up: bool) -> Iterator:
    """Lines."""
    head, *body = cells(kind, rows, first, last)
    yield f"{units.moment_text(first)} to {units.moment_text(last)}, {show.duration(last - first)}"
    if any(r["recorders"] > 1 for r in rows):
        yield "Each row counts at the recorder that has most of it (AT); --sum adds recorders up."
    names = len(kind.head)
    yield from show.table(head, body, right=range(names, len(head) - 1))
