# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive fetch`: packets of all recorders, as one pcapng in the order of time."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from . import bpf, engine, filters, options, pick, private, show, units
from .errors import Refused, WrongCommandLine

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator
    from typing import Any

    from .bpf import Condition
    from .engine import DuckEngine
    from .layout import Part
    from .main import Parser
    from .pick import Output

MEMORY = "1GB"  # DuckDB's; it sorts more than that on disk
FLOWS_MAX = 100_000  # as many flows are looked for by their ids; more by what the filter says of packets
TOGETHER = 1 << 21  # packets of flows that one query sorts, however long they last

PAGE = """Examples:
  ringtap archive fetch -A /archive "tcp and host 10.0.0.1" --from -2h -w talk.pcapng
  ringtap archive fetch -A /archive --where "flow_id = -3387461136927407407" -w - | tshark -r -
  ringtap archive fetch -A /archive "port 53" --from 2026-11-24 --to 2026-11-25 --wireshark"""


def arguments(parser: Parser) -> None:
    options.archive(parser)
    parser.add_argument("filter", nargs="?", metavar="FILTER", help="what packets, as in pcap-filter(7) (all)")
    parser.add_argument(
        "--tags",
        choices=("any", "as-is"),
        default="any",
        help="what FILTER means for packets with VLAN tags: the same as for others, unless it says vlan (any), or what "
        "libpcap defines (as-is)",
    )
    parser.add_argument("--where", metavar="SQL", help="what packets, as a condition on the view packets")
    options.window(parser)
    options.recorders(parser)
    parser.add_argument("-w", "--write", dest="file", metavar="FILE", help="the pcapng to write; -: to standard output")
    options.group(parser)
    parser.add_argument("--wireshark", action="store_true", help="start Wireshark, and write to it")
    parser.add_argument("-c", "--packets", type=units.positive, metavar="N", help="stop after N packets")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.formatter_class, parser.epilog = options.Page, PAGE


def _groups(parts: list[Part]):
    """Lists of parts that overlap in time, one after the other."""
    group, end = [], None
    for part in sorted(parts, key=lambda part: part.first_ns):
        if group and part.first_ns > end:
            yield group
            group = []
        end = part.last_ns if not group else max(end, part.last_ns)
        group.append(part)
    if group:
        yield group


class Plan:
    """The rows of `packets` to read: queries that together have all matching packets, and more."""

    def __init__(self, con: DuckEngine, condition: Condition, where: str | None):
        self.con, self.condition = con, condition
        self.where = f"({where}\n)" if where else None  # it may end in a comment
        self.damaged = {}  # error by file
        self.parts = [part for part in con.parts if part.meta["packets"]["rows"]]

    def rows(self) -> Iterator:
        """Lists of (time, part's number, offset, interface), in the order of time."""
        for make, parts in self._queries():
            yield from self._sorted(make, parts)

    def _sorted(self, make: Any, parts: list[Part]):
        def run(some: list[Part]):
            return self.con.sql(f"{make(some)} ORDER BY time_ns, part, file_offset").batches()

        try:
            first = next(batches := run(parts), None)
        except Refused as error:  # no row has come yet, as they are sorted
            good = self._readable(make, parts, error)
            first = next(batches := run(good), None) if good else None
        if first:
            yield first
            yield from batches

    def _readable(self, make: Callable, parts: list[Part], error: Refused):
        """The parts without damage in their index."""
        self._check_where()
        good = []
        for part in parts:
            try:
                self.con.sql(f"SELECT count(COLUMNS(*)) FROM ({make([part])})").all()
                good.append(part)
            except Refused as why:
                self.damaged[part.name] = why
        if not self.damaged:
            raise error
        return good

    def check(self) -> None:
        """Refuses a condition that is not SQL, before a file is written."""
        if self.where and self.parts:
            try:
                self.con.sql(f"EXPLAIN {self._select(self.parts[:1], self.where)}").all()
            except Refused:
                self._check_where()

    def _check_where(self):
        """A condition that is not SQL is not damage."""
        if self.where:
            self.con.sql(f"SELECT 1 FROM ({self.con.select('packets', [])}) WHERE {self.where}").all()

    def _queries(self):
        """Functions that make a SELECT of the rows of parts, and the parts."""
        if self.condition.never or not self.parts:
            return
        terms = ([self.where] if self.where else []) + (
            [] if self.condition.always else [self.condition.sql(engine.blob)]
        )
        condition = " AND ".join(terms) or "true"
        by_flow = not self.where and not self.condition.of_flows.always
        if by_flow and (packets := self._find_flows()) is not None:
            having = {number for (number,) in self.con.sql("SELECT DISTINCT part FROM wanted").all()}
            for group in [self.parts] if packets <= TOGETHER else _groups(self.parts):
                yield lambda parts: self._of_flows(parts, having, condition), group
            return
        for group in _groups(self.parts):
            yield lambda parts: self._select(parts, condition), group

    def _select(self, parts: list[Part], condition: str):
        view = self.con.select("packets", parts)
        return f"SELECT time_ns, part, file_offset, interface FROM ({view}) WHERE {condition}"

    def _find_flows(self):
        """Makes a table of the flows that may match; returns the number of their packets. None: there are too many."""

        def make(parts: list[Part]):
            view = self.con.select("flows", parts)
            columns = "part, flow_id, packets_ab + packets_ba AS packets"
            found = [f"SELECT {columns} FROM ({view}) WHERE {text}" for text in self.condition.flows(engine.blob)]
            return f"SELECT DISTINCT * FROM ({' UNION ALL '.join(found)}) LIMIT {FLOWS_MAX + 1}"

        try:
            self.con.sql(f"CREATE TABLE wanted AS {make(self.parts)}").all()
        except Refused as error:
            self.parts = self._readable(make, self.parts, error)
            self.con.sql(f"CREATE TABLE wanted AS {make(self.parts)}").all()
        count, packets = self.con.sql("SELECT count(*), coalesce(sum(packets), 0) FROM wanted").all()[0]
        return packets if count <= FLOWS_MAX else None

    def _of_flows(self, parts: list[Part], having: set[int], condition: str):
        """Packets of the flows, in the parts that have them; and packets without a flow."""
        found = [part for part in parts if engine.number(part) in having]
        return " UNION ALL ".join(
            [*([self._select(found, self._flow_ids())] if found else []), *self._without_flow(parts, condition)]
            or [self._select([], "false")]
        )

    def _flow_ids(self):
        """A comparison with one flow_id uses statistics and bloom filters; with many, a join."""
        ids = self.con.sql("SELECT DISTINCT flow_id FROM wanted LIMIT 2").all()
        return f"flow_id = {ids[0][0]}" if len(ids) == 1 else "flow_id IN (SELECT flow_id FROM wanted)"

    def _without_flow(self, parts: list[Part], condition: str):
        """Packets of other ethertypes than IP's; and of IP with headers that are cut or malformed, which few parts have."""
        others = self.condition.of_non_ip
        whole = [part for part in parts if part.meta["packets"].get("flowless") == 0]
        rest = [part for part in parts if part.meta["packets"].get("flowless") != 0]
        return (
            [self._select(whole, f"flow_id IS NULL AND {others.sql(engine.blob)}")]
            if whole and not others.never
            else []
        ) + ([self._select(rest, f"flow_id IS NULL AND {condition}")] if rest else [])


def _condition(con: DuckEngine, expression: str | None, any_tags: bool):
    linktypes = {interface["linktype"] for part in con.parts for interface in part.meta["interfaces"]}
    if not expression:
        return bpf.Condition(bpf.TRUE)
    return filters.condition(expression, sorted(linktypes or {filters.ETHERNET}), any_tags)


def _comment(args: Namespace):
    terms = [
        args.filter or "all packets",
        args.where and f"where {args.where}",
        args.since is not None and f"from {units.moment_text(args.since)}",
        args.until is not None and f"to {units.moment_text(args.until)}",
    ]
    return "fetched: " + "; ".join(term for term in terms if term)


@contextlib.contextmanager
def _opened(args: Namespace):
    """The file to write."""
    if args.wireshark:
        import subprocess

        try:
            program = subprocess.Popen(["wireshark", "-k", "-i", "-"], stdin=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise Refused(f"cannot start wireshark: {error.strerror}; install it, or write a file with -w") from None
        with program.stdin:
            yield program.stdin
    elif args.file == "-":
        yield sys.stdout.buffer
    else:
        try:
            file = os.fdopen(private.create(args.file, args.group), "wb")
        except OSError as error:
            raise Refused(f"cannot write '{args.file}': {error.strerror}") from None
        with file:
            yield file


def _copy(plan: Plan, output: Output, most: int | None):
    for rows in plan.rows():
        for row in rows:
            output.add(*row)
            if output.packets == most:
                return


def _report(output: Output, plan: Plan, quiet: bool):
    for error, count in output.missing.items():
        show.warn(f"fetch: {error}: {count} packet{'s' * (count != 1)} missing")
    for name, error in plan.damaged.items():
        show.warn(
            f"fetch: {name}: its index cannot be read ({error}): its packets are missing; run ringtap archive verify"
        )
    if not quiet:
        print(
            f"{output.packets} packets of {len(output.recorders)} recorders; {output.frames_read} frames read",
            file=sys.stderr,
        )
    return 1 if output.missing or plan.damaged else 0


def run(args: Namespace) -> Any:
    if bool(args.file) == args.wireshark:
        raise WrongCommandLine("fetch: give -w FILE, -w - or --wireshark")
    if args.file == "-" and os.isatty(1):
        raise WrongCommandLine("fetch: -w - writes pcapng, and standard output is a terminal; redirect it")
    with engine.open(args.archive, since=args.since, until=args.until, recorders=args.recorders, memory=MEMORY) as con:
        any_tags = args.tags == "any"
        condition = _condition(con, args.filter, any_tags)
        plan = Plan(con, condition, args.where)
        plan.check()
        with _opened(args) as file:
            output = pick.Output(file, plan.parts, con.part, _comment(args), args.filter, any_tags)
            _copy(plan, output, args.packets)
            output.close()
        return _report(output, plan, args.quiet)
