# SPDX-License-Identifier: BSD-3-Clause
"""The page of `make bench`: each result beside its peer in the same rounds, and beside a stored run on such a machine."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..run import collectors, forwarders
from ..tools.regime import MIXED
from ..tools.stats import DISTURBED, Series, cell
from .blocks import DASH

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..run.measure import Store

WORSE, BETTER, SAME, UNKNOWN = "worse", "better", "within the noise", "not comparable"
CHANCE = 0.02  # rounds of two equal builds lie apart with this probability at most where it says so
NS, M = 1e9, 1e-6
NULL = "net_null"


def _of_rounds(store: Store, *key) -> dict[int, float]:
    """Median of each round, of its undisturbed values if the series has some."""
    series, by_round = store.series.get(key, Series()), {}
    calm = [disturbed < DISTURBED for disturbed in series.disturbed]
    for value, number, use in zip(series, store.rounds.get(key, ()), calm):
        if use or not any(calm):
            by_round.setdefault(number, []).append(value)
    return {number: statistics.median(values) for number, values in by_round.items()}


def _added(store: Store, size: int, tool: str):
    """Seconds that a capture to /dev/null adds to a packet of the application."""
    alone = _of_rounds(store, "untouched", NULL, size, None, None)
    attached = _of_rounds(store, "attached", NULL, size, tool, "null")
    return {n: 1 / rate - 1 / alone[n] for n, rate in attached.items() if n in alone}


def _least_merge(store: Store):
    found = [_of_rounds(store, *key) for key in store.series if key[0] == "merge"]
    return {n: min(of[n] for of in found if n in of) for n in set().union(*found)} if found else {}


@dataclass(frozen=True)
class Row:
    """ours, peers: (store) -> {round: value}. key: of the series that has our regimes."""

    name: str
    unit: str
    scale: float
    more_is_better: bool
    ours: Callable
    key: tuple
    peer: str = ""
    peers: Callable | None = None
    digits: int = 1


def _series(*key):
    return lambda store: _of_rounds(store, *key)


def _row(
    name: str, unit: str, scale: float, better: bool, key: tuple, peer: str = "", peer_key: tuple = (), digits: int = 1
):
    return Row(name, unit, scale, better, _series(*key), key, peer, _series(*peer_key) if peer else None, digits)


def _capture_rows():
    def captured(size: int, tool: str):
        return ("captured", NULL, size, tool, "null")

    rows = []
    for size in (64, 1518):
        key = captured(size, "ringtap")
        rows += [
            _row(f"captured, {size} B", "Mpps", M, True, key, "dpdk-dumpcap", captured(size, "dpdk-dumpcap")),
            Row(
                f"added to a packet, {size} B",
                "ns",
                NS,
                False,
                lambda store, size=size: _added(store, size, "ringtap"),
                key,
                "dpdk-dumpcap",
                lambda store, size=size: _added(store, size, "dpdk-dumpcap"),
            ),
        ]
    copied = ("copy", None, 64, None, None)
    return [*rows, _row("captured, 64 B", "Mpps", M, True, captured(64, "ringtap"), "the bare copy loop", copied)]


def _rows() -> list[Row]:
    def collecting(label: str):
        return ("collecting_seconds", NULL, collectors.SIZE, label, None)

    def forwarded(label: str):
        return ("forwarded", forwarders.SOURCES[0], forwarders.SIZE, label, None)

    file = ("file", NULL, 64, "ringtap", "disk")
    merges = Row("merged by one thread, slowest case", "Mpps", M, True, _least_merge, ("merge",))
    pcap = (("pcap", NULL, 64, "ringtap", None), ("pcap", "veth", 64, "system", None))
    return [
        *_capture_rows(),
        _row("to a file, 64 B", "MB/s", M, True, file, "dd, O_DIRECT", ("dd", None, None, None, None), digits=0),
        merges,
        _row("a libpcap program counts", "Mpps", M, True, pcap[0], "libpcap on a veth", pcap[1]),
        _row(
            "latency of each packet, added",
            "ns",
            NS,
            False,
            collecting(collectors.LATENCY),
            "latencystats",
            collecting(collectors.LATENCYSTATS),
        ),
        _row(
            f"forwarded, {forwarders.SOURCES[0]}",
            "Mpps",
            M,
            True,
            forwarded(forwarders.PLAIN),
            "testpmd io",
            forwarded(forwarders.TESTPMD),
        ),
    ]


def _regimes(store: Store, key: tuple, rounds: Any) -> dict[int, Any]:
    """A round has a regime if all of its values have this one."""
    found = {}
    for number, regime in zip(store.rounds.get(key, ()), store.regimes.get(key, ())):
        found.setdefault(number, set()).add(regime)
    return {n: next(iter(found[n])) if len(found.get(n, ())) == 1 else None for n in rounds}


def results(store: Store) -> list[dict]:
    """A dict for each row that was measured. rounds: [{ours, peer, ratio, regime}], None where there is none; ratio: ours to
    the peer's, of the same round."""
    found = []
    for row in _rows():
        ours, peers = row.ours(store), row.peers(store) if row.peers else {}
        regimes = _regimes(store, row.key, ours)
        rounds = [
            {
                "ours": ours[n],
                "peer": peers.get(n),
                "ratio": ours[n] / peers[n] if peers.get(n) else None,
                "regime": regimes[n],
            }
            for n in sorted(ours)
        ]
        if rounds:
            found.append({"name": row.name, "unit": row.unit, "peer": row.peer or None, "rounds": rounds})
    return found


def _described(name: str, peer: Any):
    return next(row for row in _rows() if (row.name, row.peer or None) == (name, peer))


def _values(result: dict, what: str, regime: Any = ...):
    values = Series()
    for one in result["rounds"]:
        if one[what] is not None and regime in (..., one["regime"]):
            values.add(one[what])
    return values


def chance(count: int, stored: int) -> float:
    """Probability that two runs of equal builds lie wholly apart: of all orders of the values, which are equally probable,
    two."""
    return 2 / math.comb(count + stored, count)


def enough(stored: int) -> int:
    """Rounds that can lie apart from that number of stored ones beyond the noise."""
    return next(n for n in itertools.count(1) if chance(n, stored) <= CHANCE)


def _comparable(result: dict, stored: dict, what: str):
    """(values, stored values) of the regime of which most are known. In mixed rounds, the share of each regime is unknown."""
    both = [
        (_values(result, what, regime), _values(stored, what, regime))
        for regime in {one["regime"] for one in result["rounds"]} - {MIXED}
    ]
    return min((pair for pair in both if all(pair)), key=lambda pair: chance(*map(len, pair)), default=None)


def judged(result: dict, stored: dict | None) -> tuple[str, str]:
    """Whether our value, or where there is a peer the ratio to it, is worse than in the stored run beyond the noise: (a kind, the
    text). Rounds are compared with those of the same regime."""
    if not stored:
        return UNKNOWN, DASH
    row = _described(result["name"], result["peer"])
    pair = _comparable(result, stored, "ratio" if row.peer else "ours")
    if not pair:
        return UNKNOWN, "no round in the same regime"
    now, then = pair
    change = f"{now.median() / then.median() - 1:+.0%}, " if then.median() > 0 else ""
    if chance(len(now), len(then)) > CHANCE:
        return UNKNOWN, f"{change}too few rounds to tell: {len(now)}, it takes {enough(len(then))}"
    if max(now) >= min(then) and max(then) >= min(now):
        return SAME, f"{change}within the noise"
    kind = BETTER if (now.median() > then.median()) == row.more_is_better else WORSE
    return kind, f"**{change}{kind.upper() if kind == WORSE else kind} beyond the noise**"


def verdict(result: dict, stored: dict | None) -> str:
    return judged(result, stored)[1]


def kind_of(machine: dict) -> str:
    """The name of a kind of machine, for the file of its stored run."""
    words = f"{machine['cpu']} {machine['cpus'].partition(';')[0]} cpus hypervisor {machine.get('hypervisor') or 'no'}"
    return "-".join(re.findall(r"[a-z0-9]+", words.lower()))


def _line(result: dict, stored: dict | None, compares: bool):
    row = _described(result["name"], result["peer"])
    regimes = Counter(one["regime"] or DASH for one in result["rounds"])
    ratio = _values(result, "ratio")
    return [
        row.name,
        f"{cell(_values(result, 'ours'), row.scale, row.digits)} {row.unit}",
        f"{row.peer}: {cell(_values(result, 'peer'), row.scale, row.digits)}" if row.peer else DASH,
        f"{cell(ratio, 1, 2)} ×" if ratio else DASH,
        ", ".join(f"{n} {name}" if name != DASH else str(n) for name, n in sorted(regimes.items())),
        *([verdict(result, stored)] if compares else []),
    ]


def _pairs(found: list[dict], stored: dict | None):
    """(result, stored result or None)."""
    before = {(one["name"], one["peer"]): one for one in stored["results"]} if stored else {}
    return [(one, before.get((one["name"], one["peer"]))) for one in found]


def table(found: list[dict], stored: dict | None) -> tuple[list, list]:
    """Head and lines. stored: what store_of() has made of an earlier run."""
    head = ["what", "ringtap", "peer, in the same rounds", "ratio", "rounds, regime"]
    return (
        [*head, *(["against the stored run"] if stored else [])],
        [_line(one, then, bool(stored)) for one, then in _pairs(found, stored)],
    )


def conclusion(found: list[dict], stored: dict | None) -> str:
    """A line that the table explains; nothing where nothing is stored."""
    if not stored:
        return ""
    kinds = {kind: [] for kind in (WORSE, BETTER, SAME, UNKNOWN)}
    for one, then in _pairs(found, stored):
        kinds[judged(one, then)[0]].append(_described(one["name"], one["peer"]).name)
    counts = [f"{len(names)} {kind}" for kind, names in kinds.items()]
    worse = f" ({'; '.join(kinds[WORSE])})" if kinds[WORSE] else ""
    return f"**Against the stored run: {counts[0]}{worse}, {', '.join(counts[1:])}.**"


def store_of(found: list[dict], machine: dict, date: str) -> dict:
    """A run as it is kept, for later ones."""
    return {
        "kind": kind_of(machine),
        "date": date,
        "commit": machine["commit"],
        "load": machine["load"],
        "results": found,
    }


def checked(stored: dict) -> dict:
    """The same. KeyError, TypeError or ValueError: store_of() has not made it."""
    for one in stored["results"]:
        for what in ("ours", "ratio"):
            _values(
                {"rounds": [{"regime": r["regime"], what: r[what] and float(r[what])} for r in one["rounds"]]}, what
            )
    return {**{key: stored[key] for key in ("date", "commit", "results")}, "load": stored.get("load")}


def explained(stored: dict | None, kind: str) -> str:
    """The text above the table."""
    text = "Medians, least and most in brackets. Ratios are those of single rounds, in which ringtap and its peer took turns."
    if not stored:
        return f"{text} No run is stored of this kind of machine ({kind}): `make bench BENCH_ARGS=--store` stores one."
    load = f", load {stored['load']} before it" if stored["load"] is not None else ""
    return (
        f"{text} Stored: {stored['date']}, commit {stored['commit']}{load}. *Beyond the noise*: all rounds lie apart from all "
        f"stored rounds of the same regime, which has a probability of at most {CHANCE:.0%} a line for equal builds."
    )
