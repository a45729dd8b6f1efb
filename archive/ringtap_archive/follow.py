# SPDX-License-Identifier: BSD-3-Clause
"""Follows packets from one place of recording to another. The statements in sql/ do the work, in DuckDB and Spark; this module
finds places, pairs of places, and the offsets between the recorders' clocks."""

from __future__ import annotations

import itertools
import statistics
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from . import clocks as recorder_clocks

if TYPE_CHECKING:
    from typing import Any

    from .engine import DuckEngine

SLICE_NS = 60_000_000_000  # one offset for each, where clocks drift
FATES = ("passed", "lost", "appeared", "not judged", "not judged")
UNDIRECTED = 2  # one_way where the direction is unknown
_SQL = Path(__file__).with_name("sql")


@dataclass(frozen=True)
class Point:
    """A place of recording: an interface, and a direction if the recording has them."""

    recorder: str
    name: str
    direction: str

    def __str__(self):
        return f"{self.recorder}:{self.name}" + (f" {self.direction}" if self.direction else "")


@dataclass
class Clocks:
    """Two recorders. offset_ns: the clock of b less that of a. least_ns, most_ns: bounds of it, from packets of one or both
    directions."""

    a: str
    b: str
    packets: int = 0
    coarse_ns: int = 0
    least_ns: int = None
    most_ns: int = None
    forth: int = 0
    back: int = 0
    known: bool = False  # given by the caller
    way: int = 0  # packets that go one way only: 1 from a to b, -1 from b to a, 0 as the clocks say
    error_ns: int = None  # largest error of both clocks, as their recorders state
    slices: dict = field(default_factory=dict)  # number -> offset, without coarse_ns
    drift: float = None  # change of the offset in a second, by time

    @property
    def both(self) -> bool:
        return self.least_ns is not None and self.most_ns is not None

    @property
    def directed(self) -> bool:
        """Whether the way of packets that go one way only is known. For clocks that differ by half of --apart or more, the whole
        difference is removed, and none is left that shows the way."""
        return bool(self.known or self.both or self.way or not self.coarse_ns)

    @property
    def steady(self) -> bool:
        """Whether one offset explains all packets."""
        return self.both and self.least_ns <= self.most_ns

    @property
    def fine_ns(self) -> int:
        if self.known or not self.both:
            return 0
        return (self.least_ns + self.most_ns) // 2

    @property
    def offset_ns(self) -> int | None:
        """None: it cannot be separated from the delay."""
        return self.coarse_ns + self.fine_ns if self.known or self.both else None

    @property
    def bound_ns(self) -> int | None:
        return 0 if self.known else abs(self.most_ns - self.least_ns + 1) // 2 if self.both else None


@dataclass
class Leg:
    """Two points, in the order in which packets pass them, and the fates of the packets."""

    pair: int
    way: int
    start: Point
    end: Point
    clocks: Clocks  # None: one clock
    ahead_ns: int = 0  # the clock at the end, compared with that at the start
    least_ns: int = 0
    most_ns: int = 0
    via: list = field(default_factory=list)  # points between
    counts: dict = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        """Whether delays do not contain an offset."""
        return self.clocks is None or self.clocks.known or self.clocks.both


def statement(name: str, **values) -> str:
    text = (_SQL / f"{name}.sql").read_text(encoding="utf-8")
    return Template(text).substitute({k: str(v) for k, v in values.items()})


def _literal(x: int | str):
    if isinstance(x, str):
        return "'" + x.replace("'", "''") + "'"
    return "CAST(NULL AS BIGINT)" if x is None else str(x)


def values(columns: Any, rows: Any) -> str:
    """A table of these rows, as text: both engines read it. Without rows, a table of none."""
    names = ", ".join(columns)
    some = rows or [[0] * len(columns)]
    listed = ", ".join("(" + ", ".join(map(_literal, row)) + ")" for row in some)
    return f"SELECT * FROM (VALUES {listed}) AS t({names})" + ("" if rows else " WHERE 1 = 0")


def rows_of(con: DuckEngine, text: str) -> list:
    """Rows as dicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # DuckDB copies the rows: they are few
        return con.sql(text).arrow().to_pylist()


def keep(con: DuckEngine, name: str, text: str) -> None:
    """A table with the rows of the statement, computed once, for as long as con is open."""
    if hasattr(con, "keep"):
        con.keep(name, text)
    else:
        con.sql(f"CREATE OR REPLACE TABLE {name} AS {text}").all()


def _in_order(path: list[str], a: str, b: str):
    """1: a stands before b in the path; -1: behind it; 0: it does not say."""
    return 0 if a not in path or b not in path or a == b else 1 if path.index(a) < path.index(b) else -1


def _place_name(r: dict):
    """Name of an interface; its number if it has none."""
    return str(r["interface"]) if r["name"] in (None, f"interface {r['interface']}") else r["name"]


class Follower:
    """con: of engine.open(). apart_ns: largest difference of one packet's times, without the offset of clocks. ahead:
    {recorder: ns} of the caller; same_clock: the others are 0. path: recorders in the order in which packets that go one
    way only pass them. between: names of recorders or points; others are left out."""

    def __init__(
        self,
        con: DuckEngine,
        where: str = "1 = 1",
        apart_ns: int = 1_000_000_000,
        ahead: dict[str, int] | None = None,
        same_clock: bool = False,
        path: Any = (),
        between: Any = (),
    ):
        self.con, self.filter, self.apart_ns = con, where, apart_ns
        self.ahead, self.same_clock, self.path, self.between = ahead or {}, same_clock, list(path), set(between)
        self.points, self.clocks, self.legs, self.zero = [], [], [], 0
        self.parts = []

    # ---- what the statements have to know

    def _read_points(self):
        rows = rows_of(self.con, statement("hops_where"))
        numbers = {}
        for r in rows:
            point = Point(r["recorder"], _place_name(r), r["direction"])
            self.parts.append(r)
            if self._chosen(point):
                r["point"] = numbers.setdefault(point, len(numbers))
        self.points = sorted(numbers, key=lambda p: (p.recorder, str(p)))  # as the two of Clocks
        order = {numbers[p]: n for n, p in enumerate(self.points)}
        for r in self.parts:
            r["point"] = order.get(r.get("point"))
        self.zero = min((r["first_ns"] for r in self.parts), default=0)

    def _chosen(self, point: Point):
        return not self.between or {point.recorder, f"{point.recorder}:{point.name}", str(point)} & self.between

    def _point_rows(self):
        rows = [
            (r["part"], r["interface"], r["direction"], r["point"], self.ahead.get(r["recorder"], 0))
            for r in self.parts
            if r["point"] is not None
        ]
        return values(("part", "interface", "direction", "point", "ahead_ns"), rows)

    def _spans(self):
        """When each point was recorded: while files with its interface were written, with packets of it or not. Times between
        two files that are less than apart_ns from each other belong to it."""
        times, names = {}, {}
        for r in self.parts:
            first, last = times.get(r["part"], (r["first_ns"], r["last_ns"]))
            times[r["part"]] = min(first, r["first_ns"]), max(last, r["last_ns"])
        for r in rows_of(self.con, statement("hops_interfaces")):
            if r["part"] in times:
                names.setdefault((r["recorder"], _place_name(r)), set()).add(r["part"])
        for r in self.parts:  # for interfaces that are not described
            names.setdefault((r["recorder"], _place_name(r)), set()).add(r["part"])
        rows = []
        for point, p in enumerate(self.points):
            spans = [times[part] for part in names[p.recorder, p.name]]
            ahead, joined = self.ahead.get(p.recorder, 0), []
            for first, last in sorted(spans):
                if joined and first - joined[-1][1] <= self.apart_ns:
                    joined[-1][1] = max(joined[-1][1], last)
                else:
                    joined.append([first, last])
            rows += [(point, first - ahead, last - ahead) for first, last in joined]
        return values(("point", "first_ns", "last_ns"), rows)

    def _make_pairs(self):
        hosts = sorted({p.recorder for p in self.points})
        number = {frozenset(two): n for n, two in enumerate(itertools.combinations(hosts, 2))}
        known = set(hosts) if self.same_clock else set(self.ahead)
        errors = recorder_clocks.errors(self.con.parts)
        self.clocks = [
            Clocks(
                a,
                b,
                known={a, b} <= known,
                way=_in_order(self.path, a, b),
                error_ns=None if None in (errors.get(a), errors.get(b)) else errors[a] + errors[b],
            )
            for a, b in itertools.combinations(hosts, 2)
        ]
        self.pairs = [
            (n, x, y, number.get(frozenset((self.points[x].recorder, self.points[y].recorder)), -1))
            for n, (x, y) in enumerate(itertools.combinations(range(len(self.points)), 2))
        ]

    def _pair_rows(self):
        rows = []
        for n, x, y, clocks in self.pairs:
            a, b = self.points[x], self.points[y]
            c = self.clocks[clocks] if clocks >= 0 else None
            rows.append(
                (
                    n,
                    x,
                    y,
                    clocks,
                    c.coarse_ns if c else 0,
                    c.fine_ns if c else 0,
                    -1 if (a.direction, b.direction) == ("tx", "rx") else 1,
                    0 if not c or c.both or c.known else c.way if c.directed else UNDIRECTED,
                )
            )
        return values(("pair", "x", "y", "clocks", "coarse_ns", "offset_ns", "marked", "one_way"), rows)

    def _side_rows(self):
        return values(
            ("pair", "point", "side"), [(n, p, side) for n, x, y, _ in self.pairs for side, p in enumerate((x, y))]
        )

    def _slice_rows(self):
        return values(
            ("clocks", "slice", "offset_ns"),
            [(n, s, ns) for n, c in enumerate(self.clocks) for s, ns in c.slices.items()],
        )

    def _leg_rows(self):
        number = {p: n for n, p in enumerate(self.points)}
        rows = [
            (
                g.pair,
                g.way,
                number[g.start],
                number[g.end],
                g.start.recorder,
                g.end.recorder,
                g.ahead_ns,
                g.least_ns,
                g.most_ns,
            )
            for g in self.legs
        ]
        return values(
            ("pair", "way", "in_point", "out_point", "in_recorder", "out_recorder", "ahead_ns", "least_ns", "most_ns"),
            rows,
        )

    def _statement(self, name: str, **more):
        return statement(
            name, **{"filter": self.filter, "apart": self.apart_ns, "zero": self.zero, "slice": SLICE_NS, **more}
        )

    def _keep(self, name: str, **more):
        keep(self.con, name, self._statement(name, **more))

    def _rows(self, name: str, **more):
        return rows_of(self.con, self._statement(name, **more))

    # ---- clocks

    def _read_coarse(self):
        for r in self._rows("hops_coarse", pairs=self._pair_rows()):
            clocks = self.clocks[r["clocks"]]
            clocks.packets = r["packets"]
            if not clocks.known and abs(r["middle_ns"]) > self.apart_ns // 2:
                clocks.coarse_ns = r["middle_ns"]
                if not clocks.way and clocks.error_ns is not None and abs(clocks.coarse_ns) > clocks.error_ns:
                    clocks.way = 1 if clocks.coarse_ns > 0 else -1  # so much is delay

    def _read_bounds(self):
        found = {}
        for r in self._rows("hops_bounds", pairs=self._pair_rows()):
            found.setdefault(r["clocks"], {})[r["slice"]] = r
        for n, slices in found.items():
            clocks = self.clocks[n]
            clocks.least_ns = max((r["least_ns"] for r in slices.values() if r["least_ns"] is not None), default=None)
            clocks.most_ns = min((r["most_ns"] for r in slices.values() if r["most_ns"] is not None), default=None)
            clocks.forth, clocks.back = (sum(r[k] for r in slices.values()) for k in ("forth", "back"))
            middles = {
                s: (r["least_ns"] + r["most_ns"]) // 2
                for s, r in sorted(slices.items())
                if r["least_ns"] is not None and r["most_ns"] is not None
            }
            if clocks.known or not clocks.both or clocks.steady or len(middles) < 2:
                continue
            clocks.drift = statistics.linear_regression([s * SLICE_NS for s in middles], list(middles.values())).slope
            last = max(r["last_ns"] for r in self.parts)
            clocks.slices = {
                s: middles[min(middles, key=lambda m, s=s: abs(m - s))]
                for s in range((last - self.zero) // SLICE_NS + 1)
            }

    # ---- legs

    def _read_delays(self):
        known = {(r["pair"], r["way"]): r for r in self._rows("hops_delays")}
        guessed = {(r["pair"], r["way"]): r["least_ns"] for r in self._rows("hops_guess", pairs=self._pair_rows())}
        shifts = []
        for pair, way in sorted({*known, *guessed}):
            leg = self._make_leg(pair, way)
            margin = 1000
            if r := known.get((pair, way)):
                leg.least_ns, leg.most_ns = r["least_ns"], r["most_ns"]
                margin += 2 * (r["middle_ns"] - r["least_ns"]) // r["packets"]  # others may have been faster
            else:
                leg.least_ns = leg.most_ns = max(guessed[pair, way], 0) if leg.timed else guessed[pair, way]
            shifts.append((pair, way, leg.least_ns - margin))
            self.legs.append(leg)
        return values(("pair", "way", "shift_ns"), shifts)

    def _make_leg(self, pair: int, way: int):
        _, x, y, n = self.pairs[pair]
        clocks = self.clocks[n] if n >= 0 else None
        leg = Leg(pair, way, *[self.points[x], self.points[y]][::way], clocks)
        if clocks:
            leg.ahead_ns = way * (clocks.coarse_ns + clocks.fine_ns)
        return leg

    def _find_via(self):
        """Finds legs that consist of others, via the points between."""
        legs = {(g.pair, g.way): g for g in self.legs}
        for r in self._rows("hops_via"):
            if leg := legs.get((r["pair"], r["way"])):
                leg.via.append(self.points[r["point"]])

    def run(self) -> Any:
        """Fills points, clocks and legs."""
        self._read_points()
        self._make_pairs()
        if not self.pairs:
            return self
        sides = self._side_rows()
        self._keep("hops_seen", points=self._point_rows())
        self._keep("hops_flows", sides=sides)
        self._keep("hops_keys", sides=sides)
        self._read_coarse()
        self._keep("hops_senders", pairs=self._pair_rows())
        self._keep("hops_hosts", pairs=self._pair_rows())
        self._keep("hops_known", pairs=self._pair_rows())
        self._read_bounds()
        pairs, slices = self._pair_rows(), self._slice_rows()
        self._keep("hops_ways", pairs=pairs)
        self._keep("hops_paths", pairs=pairs)
        self._keep("hops_between")
        self._keep("hops_simple", pairs=pairs, slices=slices)
        shifts = self._read_delays()
        if not self.legs:
            return self
        self._keep("hops_events", sides=sides, pairs=pairs, slices=slices, shifts=shifts)
        self._keep("hops_repeated")
        self._keep("hops_packets", legs=self._leg_rows(), spans=self._spans())
        counts = {(r.pop("pair"), r.pop("way")): r for r in self._rows("hops_legs")}
        for leg in self.legs:
            leg.counts = counts.get((leg.pair, leg.way), {})
        self.legs = [g for g in self.legs if g.counts.get("arrived")]
        self._find_via()
        order = {p: n for n, p in enumerate(self.points)}
        self.legs.sort(key=lambda g: (len(g.via), order[g.start], order[g.end]))
        return self

    # ---- single packets

    def leg(self, row: dict) -> Leg:
        return next((g for g in self.legs if (g.pair, g.way) == (row["pair"], row["way"])), None)

    def lost(self, limit: int | None = None) -> list[dict]:
        return self._rows(
            "hops_lost",
            points=self._point_rows(),
            legs=self._leg_rows(),
            limit=limit if limit is not None else 2**31 - 1,
        )

    def missing(self) -> list[dict]:
        return self._rows("hops_missing", points=self._point_rows(), legs=self._leg_rows(), spans=self._spans())

    def over_time(self, zero_ns: int, bucket_ns: int) -> list[dict[str, int]]:
        return self._rows("hops_time", zero=zero_ns, bucket=bucket_ns)
