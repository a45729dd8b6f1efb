# SPDX-License-Identifier: BSD-3-Clause
"""The report: page.html (templates) filled with experiments and their results."""

from __future__ import annotations

import base64
import datetime
import itertools
import pathlib
import sys
import traceback
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from ..tools import clock
from . import plots
from .blocks import WORDS, Measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..run.experiment import Experiment
    from ..tools.results import Results

_FOLDER = pathlib.Path(__file__).parent
_FACTS = {
    "cpu": "CPU",
    "cpus": "CPUs",
    "caches": "caches of a CPU",
    "huge_pages": "huge pages",
    "gpu": "GPU",
    "dpdk": "DPDK",
    "commit": "its commit",
    "tsc_mhz": "TSC, MHz",
    "tsc_flags": "TSC flags",
    "clocksource": "clock source",
    "governor": "frequency governor",
    "hypervisor": "virtual machine",
    "isolation": "CPUs kept from other work",
}
# Facts that differ between experiments on the same machine.
_PASSING = {"load": "load before it", "memory_free": "memory free", "huge_pages_free": "huge pages free"}
_AROUND = {
    "others": "CPU time of other programs, %: mean (most)",
    "steal": "CPU time that the hypervisor gave to others, %: mean (most)",
}


def _time(text: str, pattern: str = "%-d %B %Y, %H:%M UTC"):
    return datetime.datetime.fromisoformat(text).strftime(pattern)


def _again(experiment: Experiment, results: Results, cells: list[str]):
    """The command that measures this again."""
    settings = [
        f" --{k.replace('_', '-')} {v}" for k, v in results.settings.items() if k != "quick" and v not in (None, "")
    ]
    quick = " --quick" if results.settings.get("quick") else ""
    only = f" --only {','.join(cells)}" if 0 < len(cells) <= 3 else ""
    return f"ringtap-lab {experiment.name}{quick}{''.join(settings)}{only}"


def _ran(results: Results, cells: list[str]):
    """Commands that measured these cells."""
    return list(dict.fromkeys(line for key in cells if results.cell(key) for line in results.cell(key).commands()))


def _prepared(experiment: Experiment, results: Results):
    """Preparatory measurements in words, with the experiment's names and scales."""
    return ", ".join(
        f"{name} {results.prepared[key] * scale:,.{digits}f} {unit}"
        for key, (name, scale, digits, unit) in experiment.prepared_names.items()
        if key in results.prepared
    ) or ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in results.prepared.items())


def _environment():
    env = jinja2.Environment(loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True)
    env.filters |= {
        "svg": plots.svg,
        "time": _time,
        "again": _again,
        "ran": _ran,
        "prepared": _prepared,
        "warnings": clock.warnings,
        "base64": lambda text: base64.b64encode(text.encode()).decode(),
    }
    env.tests["measured"] = lambda x: isinstance(x, Measured)
    env.globals |= {"words": WORDS, "names": _FACTS, "passing": _PASSING, "around": _AROUND}
    return env.get_template("page.html").module


def _machines(found: list[tuple]):
    """[(facts, titles)]: one pair if all experiments ran on the same machine."""
    groups = []
    for experiment, results in found:
        facts = {k: v for k, v in results.machine.items() if k not in _PASSING}
        titles = next((titles for other, titles in groups if other == facts), None)
        if titles is None and facts:
            groups.append((facts, titles := []))
        if facts:
            titles.append(experiment.title)
    return groups


def _about(found: list[tuple]):
    """Texts on the machines, each once."""
    texts = {}
    for _, r in found:
        m = r.machine
        commit = f" ({m['commit']})" if m.get("commit") else ""
        for x in (
            m.get("cpu"),
            m.get("gpu"),
            m.get("system"),
            m and f"Linux {m.get('kernel')}",
            m and f"DPDK {m.get('dpdk')}",
            m and f"ringtap {m.get('ringtap')}{commit}",
        ):
            texts[str(x)] = bool(x)
    return [text for text, known in texts.items() if known]


def render(found: list[tuple]) -> str:
    """found: pairs of Experiment and Results. Returns the page's text. An experiment whose results cannot be shown
    leaves a warning in its place."""
    template, tally = _environment(), []

    def guarded(experiment: Experiment, make: Callable):
        try:
            return make()
        except Exception as e:
            traceback.print_exc(file=sys.stderr)
            return template.broken(experiment, e)

    def claims(experiment: Experiment, results: Results):
        rows = experiment.summary(results)
        tally.extend(c.verdict.word for c in rows)
        return template.claims(rows, results, experiment)

    def blocks(experiment: Experiment, results: Results):
        groups = itertools.groupby(enumerate(experiment.blocks(results)), lambda pair: type(pair[1]).__name__)
        return template.blocks([(kind, list(group)) for kind, group in groups], results, experiment)

    rows, sections = [], []
    for e, r in found:
        row = guarded(e, lambda: claims(e, r)) if r.measured() else ""
        if "broken" in str(row)[:30]:
            row = Markup('<tr class="claim"><td colspan="4">{}</td></tr>').format(row)
        rows.append(((e, r), row))
        sections.append(template.section(r, e, guarded(e, lambda: blocks(e, r)) if r.measured() else ""))
    times = [run["at"] for _, r in found for run in r.runs()]
    text = template.page(
        (_FOLDER / "page.css").read_text(encoding="utf-8"),
        found,
        _about(found),
        times,
        sum(r.seconds() for _, r in found) / 60,
        _machines(found),
        rows,
        tally,
        sections,
    )
    return "\n".join(line.rstrip() for line in str(text).split("\n"))
