# SPDX-License-Identifier: BSD-3-Clause
"""The table of `make bench ONLY=aims`: measured values, aims, and regimes of the machine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..tools.regime import MEANING
from ..tools.stats import DISTURBED, Series, cell

if TYPE_CHECKING:
    from typing import Any

    from ..tools.results import Results

SIZES = (64, 256, 512, 1518)
PUSHES = {"push-snap": "1518, -s 64", "push-vlan": "64, stripped tag", "push-segments": "21 + 22 + 21"}
LOSSES = {
    **{f"loss-{size}": f"lost, {size} B" for size in SIZES},
    "stop20-40mpps": "the same, stopped for 20 ms a second, 40 Mpps",
    "stop20-full": "the same, stopped for 20 ms a second, at full rate",
    "stop100-20mpps": "stopped for 100 ms a second, 20 Mpps",
    "busy-20mpps": "a busy loop on the recorder's CPU, 20 Mpps",
    "demo": "lost in `make demo`",
}
PACED = {"stop20-40mpps": 40, "stop100-20mpps": 20, "busy-20mpps": 20}  # Mpps
RATE_REACHED = 0.97  # a round that received less of these has failed
OLDER = (
    "Not compared: the time added to a packet with that of an older build, which should be at least 20 % less; it takes a second "
    "folder of results (--build, -o)."
)
MIB = 1 << 20
NS = 1e9


@dataclass(frozen=True)
class Row:
    """of(run): a number of one round, or None. met(series): whether the aim is. scale: of the number that is shown, in unit."""

    name: str
    wanted: str
    cell: str
    of: object
    met: object
    scale: float = 1.0
    unit: str = ""
    digits: int = 1


def _value(metric: str):
    return lambda run: run["values"].get(metric)


def _all_zero(series: Series):
    return max(series) == 0


def _at_most(limit: float):
    return lambda series: series.median() <= limit


def _at_least(limit: float):
    return lambda series: series.median() >= limit


def _rows():
    losses = [
        Row(name, "0 in every round", key, _value("loss"), _all_zero, 100, "%", 3) for key, name in LOSSES.items()
    ]
    pushes = [
        Row(f"the copy of {packets}", f"<= {limit} ns", key, _value("push_s"), _at_most(limit / NS), NS, "ns")
        for (key, packets), limit in zip(PUSHES.items(), (8, 6, 15))
    ]
    pushes += [
        Row(f"out of the caches, {packets}", "", key, _value("uncached_s"), None, NS, "ns")
        for key, packets in PUSHES.items()
    ]
    rates = [
        Row(
            f"received in {cell_}",
            f">= {RATE_REACHED:.0%} of {mpps} Mpps",
            cell_,
            _value("seen_pps"),
            _at_least(RATE_REACHED * 1e6 * mpps),
            1e-6,
            "Mpps",
        )
        for cell_, mpps in PACED.items()
    ]
    return [
        *losses,
        *rates,
        Row("captured, 64 B", ">= 110 Mpps", "loss-64", _value("captured_pps"), _at_least(110e6), 1e-6, "Mpps"),
        Row("untouched testpmd in these rounds", "", "loss-64", _value("alone_pps"), None, 1e-6, "Mpps"),
        Row("time added to a packet, 64 B", "<= 4.5 ns", "loss-64", _value("added_s"), _at_most(4.5 / NS), NS, "ns"),
        Row("dpdk-dumpcap's", "", "dumpcap-64", _value("added_s"), None, NS, "ns"),
        Row("captured by dpdk-dumpcap, 64 B", "", "dumpcap-64", _value("captured_pps"), None, 1e-6, "Mpps"),
        *pushes,
        Row(
            "memory charged to the application",
            "< 2 MiB",
            "memory",
            _value("charged_bytes"),
            _at_most(2 * MIB),
            1 / MIB,
            "MiB",
            2,
        ),
        Row(
            "its page tables",
            "<= 16 MiB for 8 GiB",
            "memory",
            lambda run: run["values"]["tables_bytes"] / run["values"]["buffer_bytes"],
            _at_most(16 / 8192),
            8192,
            "MiB for 8 GiB",
            2,
        ),
        Row("membarriers in 2 s", "0", "membarrier", _value("membarriers"), _all_zero, 1, "", 0),
        *_flight_rows(),
    ]


def _flight_rows():
    full = "flight-full"
    found = []
    sizes = {f"flight-1mpps-{size}": f"1 Mpps of {size} B" for size in SIZES[1:]}
    for cell_, text in {full: "full rate", "flight-10mpps": "10 Mpps", "flight-1mpps": "1 Mpps", **sizes}.items():
        cpu = (None if cell_ == full else "< 5 %", None if cell_ == full else _at_most(0.05))
        found += [
            Row(f"`flight`, {text}: time added to a packet", "", cell_, _value("kept_added_s"), None, NS, "ns"),
            Row(f"`record`, {text}, in these rounds", "", cell_, _value("recorded_added_s"), None, NS, "ns"),
            Row(f"`flight`, {text}: CPU of the recorder", cpu[0] or "", cell_, _value("cpu_share"), cpu[1], 100, "%"),
            Row(f"`flight`, {text}: held by 1 GiB", "", cell_, _value("kept_s"), None, 1, "s", 2),
            Row(
                f"`flight`, {text}: first byte of an incident",
                "<= 100 ms",
                cell_,
                _value("first_byte_s"),
                _at_most(0.1),
                1e3,
                "ms",
            ),
            Row(
                f"`flight`, {text}: the finished incident, of all that is kept",
                "",
                cell_,
                _value("finished_s"),
                None,
                1,
                "s",
                2,
            ),
            Row(
                f"`flight`, {text}: written at",
                ">= 1 GB/s",
                cell_,
                _value("written_bps"),
                _at_least(1e9),
                1e-9,
                "GB/s",
                2,
            ),
            Row(f"`flight`, {text}: lost", "0 in every round", cell_, _value("lost"), _all_zero, 1, "packets", 0),
        ]
    return found


def _series(results: Results, row: Row, regime: str | None = None):
    """Values of the rounds of a regime, or of all, whether others disturbed them or not."""
    outcome, s = results.cell(row.cell), Series()
    for run in outcome.runs if outcome else ():
        value = row.of(run)
        if value is not None and regime in (None, run["data"]["regime"]):
            s.add(value, run["values"].get("disturbed", 0.0))
    return s


def _calm(results: Results, row: Row, regime: str | None = None):
    return _series(results, row, regime).calm()


def _compared():
    """Rows of the time that ringtap and dpdk-dumpcap add."""
    return [row for row in _rows() if row.name in ("time added to a packet, 64 B", "dpdk-dumpcap's")]


def _ratio_to_dumpcap(results: Results, regime: str | None = None):
    """Ratio of the times added, median by median."""
    ours, theirs = (_calm(results, row, regime).median() for row in _compared())
    return ours / theirs if ours and theirs else None


def _met(row: Row, series: Series, measured: int, wanted: int):
    """None: unknown. measured, wanted: rounds. One round with a loss misses its aim, however few there are."""
    if not series or row.met is None:
        return None
    met = row.met(series)
    return met if measured >= wanted or (row.met is _all_zero and not met) else None


def _missing(results: Results, rounds: int):
    """Lines on rows with missing rounds."""
    return [f"{row.name}: {n} of {rounds} rounds" for row in _rows() if (n := len(_series(results, row))) < rounds]


def rows(results: Results, rounds: int = 1) -> list[dict]:
    """A dict for each aim. rounds: as many are needed to tell whether it is reached."""
    found = []
    for row in _rows():
        s, measured = _calm(results, row), len(_series(results, row))
        parts = {regime: _calm(results, row, regime) for regime in MEANING}
        found.append(
            {
                "aim": row.name,
                "wanted": row.wanted,
                "unit": row.unit,
                "rounds": len(s),
                "values": [v * row.scale for v in s],
                "met": _met(row, s, measured, rounds),
                "text": cell(s, row.scale, row.digits),
                "regimes": {r: {"rounds": len(p), "text": cell(p, row.scale, row.digits)} for r, p in parts.items()},
            }
        )
    ratio = _ratio_to_dumpcap(results)
    enough = all(len(_series(results, row)) >= rounds for row in _compared())
    found.append(
        {
            "aim": "time added, against dpdk-dumpcap's",
            "wanted": "<= 0.1",
            "unit": "",
            "rounds": None,
            "values": [],
            "met": None if ratio is None or not enough else ratio <= 0.1,
            "text": "–" if ratio is None else f"{ratio:.3f}",
            "regimes": {
                r: {"rounds": None, "text": "–" if (x := _ratio_to_dumpcap(results, r)) is None else f"{x:.3f}"}
                for r in MEANING
            },
        }
    )
    return found


def _table(head: list[str], lines: list[list]):
    return "\n".join(
        [
            "| " + " | ".join(head) + " |",
            "|" + "---|" * len(head),
            *("| " + " | ".join(map(str, line)) + " |" for line in lines),
        ]
    )


def _by_regime(row: dict, name: str):
    part = row["regimes"][name]
    return part["text"] if not part["rounds"] else f"{part['text']}; {part['rounds']}"


def _why(results: Results):
    """Reports of the recorder on rounds that lost packets."""
    lines = []
    for key, name in LOSSES.items():
        for run in results.cell(key).runs if results.cell(key) else ():
            v = run["values"]
            if v["lost"] and "pause_s" in v:
                lines.append(
                    [
                        name,
                        run["repetition"] + 1,
                        run["data"]["regime"],
                        f"{v['loss'] * 100:.3f}",
                        f"{v['pause_s'] * 1e3:.1f}",
                        f"{v['cpu_wait_s'] * 1e3:.0f}",
                        f"{v['buffer_used'] * 100:.0f}",
                        f"{v['captured_pps'] * 1e-6:.1f}",
                    ]
                )
    return lines


def markdown(results: Any, rounds: int = 1) -> str:
    """rounds: see rows()."""
    words = {None: "–", True: "yes", False: "**no**"}
    shown = [r for r in rows(results, rounds) if r["text"] != "–"]
    text = [
        _table(
            ["", "wanted", "measured", "rounds", "met", *(f"{name}; rounds" for name in MEANING)],
            [
                [
                    r["aim"],
                    r["wanted"],
                    f"{r['text']} {r['unit']}".strip(),
                    r["rounds"] or "–",
                    words[r["met"]],
                    *(_by_regime(r, name) for name in MEANING),
                ]
                for r in shown
            ],
        ),
        "Medians, least and most in brackets. "
        + "; ".join(f"{name}: {what}" for name, what in MEANING.items())
        + ". Rounds in "
        f"which the application waited for its CPU for {DISTURBED:.0%} of the time or more are left out where there are others.",
        OLDER,
    ]
    if why := _why(results):
        text += [
            "Rounds with losses:",
            _table(
                [
                    "",
                    "round",
                    "regime",
                    "lost %",
                    "longest pause, ms",
                    "waited for the CPU, ms",
                    "most of the buffer in use, %",
                    "captured, Mpps",
                ],
                why,
            ),
        ]
    if results.changed:
        text += [
            "**Not all rounds were measured on the same machine:**",
            "\n".join(f"- {line}" for line in results.changed),
        ]
    if gaps := [*_missing(results, rounds), *results.gaps()]:
        text += ["Not measured:", "\n".join(f"- {line}" for line in gaps)]
    facts = {k: v for k, v in results.machine.items() if v is not None}
    return (
        "\n\n".join(
            [
                "# Aims of recording",
                ", ".join(f"{k} {v}" for k, v in facts.items()),
                *text,
                f"{results.seconds() / 60:.1f} minutes.",
            ]
        )
        + "\n"
    )


def as_json(results: Results, rounds: int = 1) -> str:
    return json.dumps(
        {"machine": results.machine, "aims": rows(results, rounds), "minutes": results.seconds() / 60}, indent=1
    )
