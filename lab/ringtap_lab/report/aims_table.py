# SPDX-License-Identifier: BSD-3-Clause
"""The table of `make bench ONLY=aims`: what was measured, what it should be, and in which regime of the machine."""
import json
from dataclasses import dataclass

from ..tools.regime import MEANING
from ..tools.stats import Series, cell

SIZES = (64, 256, 512, 1518)
PUSHES = {"push-snap": "1518, -s 64", "push-vlan": "64, stripped tag", "push-segments": "21 + 22 + 21"}
LOSSES = {**{f"loss-{size}": f"lost, {size} B" for size in SIZES}, "stop20-40mpps": "the same, stopped for 20 ms a second, 40 Mpps",
          "stop20-full": "the same, stopped for 20 ms a second, at full rate", "stop100-20mpps": "stopped for 100 ms a second, 20 Mpps",
          "busy-20mpps": "a busy loop on the recorder's CPU, 20 Mpps", "demo": "lost in `make demo`"}
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


def _value(metric):
    return lambda run: run["values"].get(metric)


def _all_zero(series):
    return max(series) == 0


def _at_most(limit):
    return lambda series: series.median() <= limit


def _at_least(limit):
    return lambda series: series.median() >= limit


def _rows():
    losses = [Row(name, "0 in every round", key, _value("loss"), _all_zero, 100, "%", 3) for key, name in LOSSES.items()]
    pushes = [Row(f"the copy of {packets}", f"<= {limit} ns", key, _value("push_s"), _at_most(limit / NS), NS, "ns")
              for (key, packets), limit in zip(PUSHES.items(), (8, 6, 15))]
    return [
        *losses,
        Row("captured, 64 B", ">= 110 Mpps", "loss-64", _value("captured_pps"), _at_least(110e6), 1e-6, "Mpps"),
        Row("untouched testpmd in these rounds", "", "loss-64", _value("alone_pps"), None, 1e-6, "Mpps"),
        Row("time added to a packet, 64 B", "<= 4.5 ns", "loss-64", _value("added_s"), _at_most(4.5 / NS), NS, "ns"),
        Row("dpdk-dumpcap's", "", "dumpcap-64", _value("added_s"), None, NS, "ns"),
        Row("captured by dpdk-dumpcap, 64 B", "", "dumpcap-64", _value("captured_pps"), None, 1e-6, "Mpps"),
        *pushes,
        Row("memory charged to the application", "< 2 MiB", "memory", _value("charged_bytes"), _at_most(2 * MIB), 1 / MIB, "MiB", 2),
        Row("its page tables", "<= 16 MiB for 8 GiB", "memory", lambda run: run["values"]["tables_bytes"] /
            run["values"]["buffer_bytes"], _at_most(16 / 8192), 8192, "MiB for 8 GiB", 2),
        Row("membarriers in 2 s", "0", "membarrier", _value("membarriers"), _all_zero, 1, "", 0)]


def _series(results, row, regime=None):
    """Of the rounds of a regime, or of all."""
    outcome, s = results.cell(row.cell), Series()
    for run in outcome.runs if outcome else ():
        value = row.of(run)
        if value is not None and regime in (None, run["data"]["regime"]):
            s.add(value)
    return s


def _ratio_to_dumpcap(results, regime=None):
    """Of the time added, median by median."""
    ours, theirs = (_series(results, row, regime).median() for row in _rows()
                    if row.name in ("time added to a packet, 64 B", "dpdk-dumpcap's"))
    return ours / theirs if ours and theirs else None


def rows(results):
    """A dict for each aim."""
    found = []
    for row in _rows():
        s = _series(results, row)
        parts = {regime: _series(results, row, regime) for regime in MEANING}
        found.append({
            "aim": row.name, "wanted": row.wanted, "unit": row.unit, "rounds": len(s), "values": [v * row.scale for v in s],
            "met": None if not s or row.met is None else row.met(s), "text": cell(s, row.scale, row.digits),
            "regimes": {r: {"rounds": len(p), "text": cell(p, row.scale, row.digits)} for r, p in parts.items()}})
    ratio = _ratio_to_dumpcap(results)
    found.append({"aim": "time added, against dpdk-dumpcap's", "wanted": "<= 0.1", "unit": "", "rounds": None, "values": [],
                  "met": None if ratio is None else ratio <= 0.1, "text": "–" if ratio is None else f"{ratio:.3f}",
                  "regimes": {r: {"rounds": None, "text": "–" if (x := _ratio_to_dumpcap(results, r)) is None else f"{x:.3f}"}
                              for r in MEANING}})
    return found


def _table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
                      *("| " + " | ".join(map(str, line)) + " |" for line in lines)])


def _by_regime(row, name):
    part = row["regimes"][name]
    return part["text"] if not part["rounds"] else f"{part['text']}; {part['rounds']}"


def _why(results):
    """Of rounds that lost something: what the recorder reports."""
    lines = []
    for key, name in LOSSES.items():
        for run in results.cell(key).runs if results.cell(key) else ():
            v = run["values"]
            if v["lost"] and "pause_s" in v:
                lines.append([name, run["repetition"] + 1, run["data"]["regime"], f"{v['loss'] * 100:.3f}", f"{v['pause_s'] * 1e3:.1f}",
                              f"{v['cpu_wait_s'] * 1e3:.0f}", f"{v['buffer_used'] * 100:.0f}", f"{v['captured_pps'] * 1e-6:.1f}"])
    return lines


def markdown(results):
    words = {None: "–", True: "yes", False: "**no**"}
    shown = [r for r in rows(results) if r["text"] != "–"]
    text = [_table(["", "wanted", "measured", "rounds", "met", *(f"{name}; rounds" for name in MEANING)], [
        [r["aim"], r["wanted"], f"{r['text']} {r['unit']}".strip(), r["rounds"] or "–", words[r["met"]],
         *(_by_regime(r, name) for name in MEANING)] for r in shown]),
        "Medians, least and most in brackets. " + "; ".join(f"{name}: {what}" for name, what in MEANING.items()) + "."]
    if why := _why(results):
        text += ["Rounds with losses:", _table(["", "round", "regime", "lost %", "longest pause, ms", "waited for the CPU, ms",
                                                "most of the buffer in use, %", "captured, Mpps"], why)]
    if results.changed:
        text += ["**Not all rounds were measured on the same machine:**", "\n".join(f"- {line}" for line in results.changed)]
    if gaps := results.gaps():
        text += ["Not measured:", "\n".join(f"- {line}" for line in gaps)]
    facts = {k: v for k, v in results.machine.items() if v is not None}
    return "\n\n".join(["# Aims of recording", ", ".join(f"{k} {v}" for k, v in facts.items()), *text,
                        f"{results.seconds() / 60:.1f} minutes."]) + "\n"


def as_json(results):
    return json.dumps({"machine": results.machine, "aims": rows(results), "minutes": results.seconds() / 60}, indent=1)
