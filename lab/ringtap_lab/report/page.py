# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file that needs nothing from outside and no script."""
import datetime
import pathlib
import sys
import traceback

from ..tools import clock
from ..tools.stats import Series
from . import page_parts
from .blocks import DASH, FIGURES, WORDS
from .page_parts import esc

_STYLE = pathlib.Path(__file__).with_name("page.css")
_FACTS = {"cpu": "CPU", "cpus": "CPUs", "caches": "caches of a CPU", "memory": "memory", "huge_pages": "huge pages",
          "system": "system", "kernel": "kernel", "dpdk": "DPDK", "ringtap": "ringtap", "commit": "its commit",
          "tsc_mhz": "TSC, MHz", "tsc_flags": "TSC flags", "clocksource": "clock source",
          "governor": "frequency governor", "turbo": "turbo", "hypervisor": "virtual machine",
          "isolation": "CPUs kept from other work"}
# Facts that differ between experiments on the same machine.
_PASSING = {"load": "load before it", "memory_free": "memory free", "huge_pages_free": "huge pages free"}
_AROUND = {"others": "CPUs' time of other programs", "steal": "CPUs' time that the hypervisor gave to others"}


def _time(text, pattern="%-d %B %Y, %H:%M UTC"):
    return datetime.datetime.fromisoformat(text).strftime(pattern) if text else DASH


def _span(results):
    """When the first and the last run ended."""
    times = sorted(run["at"] for o in results.measured() for run in o.runs)
    return (times[0], times[-1]) if times else (None, None)


def _guarded(make, experiment):
    """What make() gives; a sentence instead where an experiment cannot show what there is of it: the
    others' results are shown all the same."""
    try:
        return make()
    except Exception as e:
        traceback.print_exc(file=sys.stderr)
        return (f'<p class="warning broken">{esc(experiment.name)}: this part could not be made of what was '
                f"measured: {esc(type(e).__name__)}: {esc(e)}</p>")


def _section(experiment, results):
    parts = [f'<section class="experiment"><h2 id="{experiment.name}">{esc(experiment.title)}</h2>',
             f'<p class="question">{esc(experiment.question)}</p>']
    if results.trouble:
        parts.append(f'<p class="warning">{_stopped(results)}: {esc(results.trouble)}</p>')
    parts += [f'<p class="warning">Measured on more than one machine or build: {esc(c)}</p>'
              for c in results.changed]
    if experiment.published:
        parts.append("<h3>What others published</h3>" + page_parts.published_table(experiment))
    if results.measured():
        parts.append(_conditions(experiment, results))
        parts.append(_guarded(lambda: page_parts.blocks(experiment.blocks(results), results, experiment),
                              experiment))
        parts += [page_parts.not_measured(results), "<h3>Commands and data</h3>",
                  page_parts.commands(results), page_parts.raw(results, experiment)]
    else:
        parts.append(page_parts.not_measured(results))
    return "\n".join(filter(None, [*parts, "</section>"]))


def _stopped(results):
    return "It could not be measured to its end" if results.measured() else "It could not be measured here"


def _conditions(experiment, results):
    runs = max((len(o.runs) for o in results.measured()), default=0)
    quick = (' <b class="quick">A quick run: shorter, fewer repetitions.</b>' if results.settings.get("quick")
             else "")
    often = (f"Each cell was measured {runs} times, in alternating order; figures are mean ± standard deviation."
             if runs > 1 else "Each cell was measured once.")
    return (f"<h3>How it was measured</h3><p class=\"soft\">{esc(experiment.conditions)} {often}{quick}</p>"
            f"{page_parts.prepared(results)}")


def _claim(claim, results, experiment):
    ours = "".join(f'<li><span class="name">{esc(text)}</span> '
                   f"{page_parts.figure(v, results, experiment) if isinstance(v, FIGURES) else esc(v)}</li>"
                   for text, v in claim.ours)
    kind = WORDS.index(claim.verdict.word)
    return (f'<tr class="claim"><td data-head="claim">{esc(claim.what)}</td>'
            f'<td data-head="published" class="published">{esc(claim.published)}</td>'
            f'<td data-head="here"><ul>{ours}</ul></td>'
            f'<td data-head="verdict" class="verdict"><b class="chip kind{kind}">{esc(claim.verdict.word)}</b> '
            f"{esc(claim.verdict.text)}</td></tr>")


def _summary(found):
    rows, words = [], []
    for experiment, results in found:
        def make(experiment=experiment, results=results):
            claims = experiment.summary(results) if results.measured() else []
            words.extend(c.verdict.word for c in claims)
            return "".join(_claim(c, results, experiment) for c in claims)
        body = _guarded(make, experiment)
        if not results.measured():
            body = f'<tr class="claim"><td colspan="4">{_stopped(results)}: {esc(results.trouble or "")}</td></tr>'
        if body.startswith("<p"):
            body = f'<tr class="claim"><td colspan="4">{body}</td></tr>'
        rows.append(f'<tbody><tr class="group"><th colspan="4" scope="rowgroup"><a href="#{experiment.name}">'
                    f"{esc(experiment.title)}</a></th></tr>{body}</tbody>")
    chips = " ".join(f'<span class="tally"><b class="chip kind{i}">{esc(word)}</b> <span data-tally="{esc(word)}">'
                     f"{words.count(word)}</span></span>" for i, word in enumerate(WORDS) if word in words)
    heads = "".join(f'<th scope="col">{h}</th>' for h in ("claim", "published", "here", "verdict"))
    return (f'<section><h2 id="summary">In short</h2><p class="tallies">{chips}</p><table class="summary"><thead><tr>{heads}'
            f"</tr></thead>{''.join(rows)}</table></section>")


def _facts(about, names):
    rows = "".join(f'<tr><th scope="row">{esc(_FACTS.get(k, k))}</th><td>{esc(DASH if about[k] is None else about[k])}</td></tr>'
                   for k in names if k in about)
    return f'<table class="facts">{rows}</table>'


def _lasting(about):
    return [k for k in about if k not in _PASSING]


def _machines(found):
    """One table if it is the same machine for all experiments, which a folder does not promise."""
    groups = []  # pairs of facts and titles
    for experiment, results in found:
        about = {k: results.machine[k] for k in _lasting(results.machine)}
        if not about:
            continue
        for other, titles in groups:
            if other == about:
                titles.append(experiment.title)
                break
        else:
            groups.append((about, [experiment.title]))
    parts = []
    for about, titles in groups:
        if len(groups) > 1:
            parts.append(f"<h3>{esc('; '.join(titles))}</h3>")
        parts += [f'<p class="warning">{esc(w)}</p>' for w in clock.warnings(about)]
        parts.append(_facts(about, list(about)))
    return "\n".join(parts)


def _share(results, experiment, name):
    """Mean and greatest of the runs, marked as figures are."""
    shares = Series()
    for share in results.around(name):
        shares.add(share)
    return f'<td><span class="around" data-experiment="{experiment.name}" data-around="{name}">' + (
        f"{shares.mean() * 100:.1f} ({max(shares) * 100:.1f})" if shares else DASH) + "</span></td>"


def _when(found):
    """Of each experiment: when, how long, and what else the machine did."""
    heads = ["experiment", "first run, last run", "measuring, min", "runs", *_PASSING.values(),
             *(f"{text}, %: mean (most)" for text in _AROUND.values())]
    rows = []
    for experiment, results in found:
        if not results.measured():
            continue
        first, last = _span(results)
        mine = f'data-experiment="{experiment.name}"'
        rows.append(
            f'<tr><td class="name">{esc(experiment.title)}</td><td class="text">{_time(first)} – {_time(last, "%H:%M")}</td>'
            f'<td><span class="spent" {mine}>{results.seconds() / 60:.1f}</span></td>'
            f'<td><span class="runs" {mine}>{sum(len(o.runs) for o in results.measured())}</span></td>'
            + "".join(f'<td class="fact">{esc(results.machine.get(k, DASH))}</td>' for k in _PASSING)
            + "".join(_share(results, experiment, name) for name in _AROUND) + "</tr>")
    table = "<table><thead><tr>" + "".join(f'<th scope="col">{esc(h)}</th>' for h in heads) + "</tr></thead><tbody>" \
            + "".join(rows) + "</tbody></table>"
    return "<h3>When, and what else it did meanwhile</h3>" + page_parts.scrolling("When", table)


def _head(found):
    about = next((r.machine for _, r in reversed(found) if r.machine), {})
    times = [t for _, r in found for t in _span(r) if t]
    minutes = sum(r.seconds() for _, r in found) / 60
    words = [about.get("cpu"), about.get("system"), f"Linux {about.get('kernel')}", f"DPDK {about.get('dpdk')}",
             f"ringtap {about.get('ringtap')}" + (f" ({about['commit']})" if about.get("commit") else "")]
    day = f"{_time(min(times))}; {minutes:.0f} minutes of measuring" if times else "nothing measured"
    warning = ""
    if any(r.settings.get("quick") for _, r in found):
        warning = ('<p class="warning quick">This is a quick run: measurements are shorter and fewer than those of a '
                   "full one, and less exact.</p>")
    return ("<header><h1>ringtap, measured</h1><p>What others published about DPDK, capture and tracing, and the same "
            f'measured here.</p><p class="soft">{esc(" · ".join(str(w) for w in words if w))}<br>{esc(day)}</p></header>{warning}')


def render(found):
    """found: pairs of Experiment and Results. Returns the page's text."""
    names = "".join(f'<a href="#{e.name}">{esc(e.name)}</a>' for e, _ in found)
    text = "\n".join([
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',  # or a browser asks for one
        f"<title>ringtap, measured: {esc(', '.join(e.name for e, _ in found))}</title>",
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style></head><body>",
        _head(found),
        f'<nav aria-label="Sections"><a href="#summary">in short</a>{names}<a href="#machine">the machine</a></nav>',
        _summary(found), *(_section(e, r) for e, r in found),
        f'<section><h2 id="machine">The machine</h2>{_machines(found)}{_when(found)}</section>', "</body></html>\n"])
    return "\n".join(line.rstrip() for line in text.split("\n"))
