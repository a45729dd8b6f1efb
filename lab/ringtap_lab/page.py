# SPDX-License-Identifier: BSD-3-Clause
"""The report: one HTML file that needs nothing from outside and no script."""
import base64
import html
import pathlib

from . import clock, plots, results as results_module
from .blocks import DASH, Plot, Table, Text, Value

_STYLE = pathlib.Path(__file__).with_name("page.css")
_FACTS = {"cpu": "CPU", "cpus": "CPUs", "memory_mb": "memory, MB", "kernel": "kernel", "dpdk": "DPDK",
          "ringtap": "ringtap", "load": "load when it began", "tsc_mhz": "TSC, MHz",
          "tsc_flags": "TSC flags", "clocksource": "clock source", "governor": "frequency governor",
          "turbo": "turbo", "hypervisor": "virtual machine", "isolation": "isolated CPUs",
          "huge_pages": "huge pages"}


def esc(text):
    return html.escape(str(text))


def _value(value, results):
    """Marked with what it is, for whoever compares it with the data."""
    return (f'<span class="value" data-cell="{esc(value.cell)}" data-metric="{esc(value.metric)}" '
            f'data-scale="{value.scale!r}" data-digits="{value.digits}" '
            f'data-greatest="{int(value.greatest)}">{esc(value.text(results))}</span>')


def _entry(entry, results, first):
    if isinstance(entry, Value):
        return f"<td>{_value(entry, results)}</td>"
    kind = "" if first or len(str(entry)) < 24 else ' class="text"'
    return f"<td{kind}>{esc(entry)}</td>"


def _grid(head, rows, results, label):
    """Scrolls by itself where the page is too narrow; with the keyboard, too."""
    lines = [f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(label)}"><table>',
             "<thead><tr>" + "".join(f"<th>{esc(h)}</th>" for h in head) + "</tr></thead><tbody>"]
    for row in rows:
        lines.append("<tr>" + "".join(_entry(e, results, i == 0) for i, e in enumerate(row)) + "</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _made_by(cells, results, experiment):
    """The command that measures this again, and the commands that it ran."""
    settings = "".join(f" --{k.replace('_', '-')} {v}" for k, v in results.settings.items()
                       if k != "quick" and v not in (None, ""))
    quick = " --quick" if results.settings.get("quick") else ""
    some = ""
    if cells and len(cells) <= 3:
        some = f" --only {','.join(cells)}"
    again = f"ringtap-lab {experiment.name}{quick}{settings}{some}"
    ran = list(dict.fromkeys(line for key in cells if results.cell(key)
                             for line in results.cell(key).commands()))
    parts = [f'<p class="note">Made by <code>{esc(again)}</code></p>']
    if ran:
        parts.append(f'<details class="commands"><summary>What that ran: {len(ran)}</summary>'
                     f'<pre class="commands">{esc(chr(10).join(ran))}</pre></details>')
    return "\n".join(parts)


def _around(block, body, results, experiment):
    parts = [f"<h3>{esc(block.title)}</h3>", body]
    if block.published:
        parts.append(f'<p class="published">Published: {esc(block.published)}</p>')
    if block.note:
        parts.append(f'<p class="note">{esc(block.note)}</p>')
    return "\n".join([*parts, _made_by(block.cells(), results, experiment)])


def _block(block, results, experiment, number):
    if isinstance(block, Text):
        return f"<p{' class=warning' if block.warning else ''}>{esc(block.text)}</p>"
    if isinstance(block, Table):
        body = _grid(block.head, block.rows, results, block.title)
        return _around(block, body, results, experiment)
    assert isinstance(block, Plot)
    drawing = plots.svg(block, f"{experiment.name}{number}")
    return f"<figure>{_around(block, drawing, results, experiment)}</figure>"


def _not_measured(results):
    lines = [f"{o.key}: not available: {o.unavailable}" for o in results.outcomes.values() if o.unavailable]
    lines += [f"{o.key}: failed: {e}" for o in results.outcomes.values()
              for e in dict.fromkeys(o.errors.values())]
    if not lines:
        return ""
    return "<h3>Not measured</h3><ul>" + "".join(f"<li>{esc(line)}</li>" for line in lines) + "</ul>"


def _commands(results):
    """All of them, by cell: unfolded in print, where nothing can be clicked."""
    cells = "".join(f"<h4>{esc(o.key)}</h4><pre class=\"commands\">{esc(chr(10).join(o.commands()))}</pre>"
                    for o in results.measured())
    return f'<details class="printed"><summary>All commands, by cell</summary>{cells}</details>'


def _raw(results, experiment):
    """The data, to be looked at and to be saved."""
    text = results.as_csv()
    encoded = base64.b64encode(text.encode()).decode()
    return (f'<p><a download="{experiment.name}.csv" href="data:text/csv;base64,{encoded}">'
            f"{experiment.name}.csv</a> <span class=\"soft\">{len(text.splitlines()) - 1} runs</span></p>"
            f'<details class="raw"><summary>Look at it</summary><pre>{esc(text)}</pre></details>')


def _plain(value):
    return f"{value:,.0f}" if isinstance(value, float) and value >= 100 else f"{value}"


def _prepared(results):
    """What was measured first, and by which commands."""
    numbers = {k: v for k, v in (results.prepared or {}).items() if isinstance(v, (int, float, str))}
    if not numbers:
        return ""
    text = ", ".join(f"{k.replace('_', ' ')} {_plain(v)}" for k, v in numbers.items())
    ran = "\n".join(results.prepared_by)
    return (f"<p>Measured first: {esc(text)}.</p>"
            f'<details class="commands"><summary>How</summary><pre class="commands">{esc(ran)}</pre></details>')


def _section(experiment, results):
    parts = [f'<h2 id="{experiment.name}">{esc(experiment.title)}</h2>', f"<p>{esc(experiment.question)}</p>"]
    repetitions = max((len(o.runs) for o in results.measured()), default=0)
    quick = " A quick run: fewer packets, fewer repetitions." if results.settings.get("quick") else ""
    parts.append(f'<p class="soft">{esc(experiment.conditions)} Repetitions: {repetitions}, in alternating order; '
                 f"mean ± standard deviation.{quick}</p>")
    parts.append(_prepared(results))
    if experiment.published:
        parts.append(_grid(["published", "value", "by"], [[p.what, p.value, p.source or DASH]
                                                          for p in experiment.published], results, "Published"))
    for number, block in enumerate(experiment.blocks(results)):
        parts.append(_block(block, results, experiment, number))
    return "\n".join([*parts, _not_measured(results), _where(results), "<h3>Commands and data</h3>",
                      _commands(results), _raw(results, experiment)])


def _where(results):
    """Each experiment's own machine; a folder can be filled on more than one."""
    rows = "".join(f"<tr><th>{esc(_FACTS.get(k, k))}</th><td>{esc(DASH if v is None else v)}</td></tr>"
                   for k, v in results.machine.items())
    changed = "".join(f'<p class="warning">Measured on more than one machine or build: {esc(c)}</p>'
                      for c in results.changed)
    return f'{changed}<details><summary>Where it was measured</summary><table class="facts">{rows}</table></details>'


def _summary(found):
    rows = []
    results_of_row = []
    for experiment, results in found:
        for what, published, ours in experiment.summary(results):
            rows.append([what, published, ours])
            results_of_row.append(results)
    if not rows:
        return ""
    body = "".join("<tr>" + "".join(_entry(e, r, i == 0) for i, e in enumerate(row)) + "</tr>"
                   for row, r in zip(rows, results_of_row))
    return ('<h2 id="summary">In short</h2><div class="scroll" tabindex="0" role="region" aria-label="Summary">'
            "<table><thead><tr><th>what</th><th>published</th><th>here</th></tr></thead>"
            f"<tbody>{body}</tbody></table></div>")


def _machine(about):
    rows = "".join(f"<tr><th>{esc(_FACTS.get(k, k))}</th><td>{esc(DASH if v is None else v)}</td></tr>"
                   for k, v in about.items())
    warnings = "".join(f'<p class="warning">{esc(w)}</p>' for w in clock.warnings(about))
    return f'<h2 id="machine">The machine</h2>{warnings}<table class="facts">{rows}</table>'


def render(found, about):
    """found: pairs of Experiment and Results. about: machine.describe()'s. Returns the page's text."""
    names = "".join(f'<a href="#{e.name}">{esc(e.title)}</a>' for e, _ in found)
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',  # or a browser asks for one
        f"<title>ringtap-lab: {esc(', '.join(e.name for e, _ in found))}</title>",
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style></head><body>",
        "<h1>ringtap: measured</h1>",
        f'<p class="soft">{esc(about.get("cpu"))}, Linux {esc(about.get("kernel"))}, DPDK '
        f'{esc(about.get("dpdk"))}; made {results_module.now()}</p>',
        f'<nav><a href="#summary">In short</a>{names}<a href="#machine">The machine</a></nav>',
        _summary(found), *(_section(e, r) for e, r in found), _machine(about), "</body></html>\n"]
    return "\n".join(parts)
