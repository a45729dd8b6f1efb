# SPDX-License-Identifier: BSD-3-Clause
"""What one experiment's section of the page consists of: tables, plots, commands, data."""
import base64
import html

from . import plots
from .blocks import FIGURES, Plot, Table, Text


def esc(text):
    return html.escape(str(text))


def figure(value, results, experiment):
    """Marked with where it comes from, for whoever compares it with the data."""
    marks = {"experiment": experiment.name, **value.marks()}
    attributes = " ".join(f'data-{k}="{esc(v)}"' for k, v in marks.items())
    return f'<span class="value" {attributes}>{esc(value.text(results))}</span>'


def entry(item, results, experiment, kind=""):
    """A <td>."""
    if isinstance(item, FIGURES):
        text = figure(item, results, experiment)
    else:
        text = esc(item)
        if not kind and len(str(item)) >= 24:
            kind = "text"
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>"


def scrolling(label, inside):
    """Scrolls by itself where the page is too narrow; with the keyboard, too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{esc(label)}">{inside}</div>'


def grid(head, rows, label, results=None, experiment=None):
    kinds = ["name"] + ["published" if h.startswith("published") else "" for h in head[1:]]
    heads = "".join(f'<th scope="col">{esc(h)}</th>' for h in head)
    lines = [f"<table><thead><tr>{heads}</tr></thead><tbody>"]
    for row in rows:
        lines.append("<tr>" + "".join(entry(item, results, experiment, kind)
                                      for item, kind in zip(row, kinds)) + "</tr>")
    return scrolling(label, "\n".join([*lines, "</tbody></table>"]))


def published_table(experiment):
    """What others found, and who says so."""
    rows = "".join(f'<tr><td class="name">{esc(p.what)}</td><td class="published text">{esc(p.value)}</td>'
                   f'<td class="published text">{esc(p.source)}</td></tr>' for p in experiment.published)
    return scrolling("Published", '<table><thead><tr><th scope="col">what</th><th scope="col" class="text">published</th>'
                     f'<th scope="col" class="text">by</th></tr></thead><tbody>{rows}</tbody></table>')


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
    made = f"Made by <code>{esc(again)}</code>"
    if not ran:
        return f'<p class="note">{made}</p>'
    return (f'<details class="commands"><summary>{made}</summary><p>What that ran:</p>'
            f'<pre class="commands">{esc(chr(10).join(ran))}</pre></details>')


def _published(text):
    return f'<aside class="published"><b>Published</b> <span>{esc(text)}</span></aside>' if text else ""


def _table(block, results, experiment):
    body = grid(block.head, block.rows, block.title, results, experiment)
    return "\n".join(filter(None, [
        f'<section class="block"><h3>{esc(block.title)}</h3>',
        f'<div class="beside"><div>{body}</div>{_published(block.published)}</div>',
        f'<p class="note">{esc(block.note)}</p>' if block.note else "",
        _made_by(block.cells(), results, experiment), "</section>"]))


def _plot(block, results, experiment, number):
    return "\n".join(filter(None, [
        f"<figure><h3>{esc(block.title)}</h3>", plots.svg(block, f"{experiment.name}{number}"),
        "<figcaption>", _published(block.published),
        f'<p class="note">{esc(block.note)}</p>' if block.note else "",
        _made_by(block.cells(), results, experiment), "</figcaption></figure>"]))


def blocks(found, results, experiment):
    """found: the experiment's blocks. Plots that follow each other stand side by side where there is room."""
    parts, side_by_side = [], False
    for number, block in enumerate(found):
        if isinstance(block, Plot) != side_by_side:
            side_by_side = not side_by_side
            parts.append('<div class="plots">' if side_by_side else "</div>")
        if isinstance(block, Text):
            parts.append(f'<p{" class=warning" if block.warning else ""}>{esc(block.text)}</p>')
        elif isinstance(block, Table):
            parts.append(_table(block, results, experiment))
        else:
            parts.append(_plot(block, results, experiment, number))
    return "\n".join([*parts, "</div>" if side_by_side else ""])


def not_measured(results):
    lines = [f"{o.key}: not available: {o.unavailable}" for o in results.outcomes.values() if o.unavailable]
    lines += [f"{o.key}: failed: {e}" for o in results.outcomes.values()
              for e in dict.fromkeys(o.errors.values())]
    if not lines:
        return ""
    return "<h3>Not measured</h3><ul>" + "".join(f"<li>{esc(line)}</li>" for line in lines) + "</ul>"


def commands(results):
    """All of them, by cell: unfolded in print, where nothing can be clicked."""
    cells = "".join(f"<h4>{esc(o.key)}</h4><pre class=\"commands\">{esc(chr(10).join(o.commands()))}</pre>"
                    for o in results.measured())
    return f'<details class="printed"><summary>All commands, by cell</summary>{cells}</details>'


def raw(results, experiment):
    """The data, to be looked at and to be saved."""
    text = results.as_csv()
    encoded = base64.b64encode(text.encode()).decode()
    return (f'<p><a class="download" download="{experiment.name}.csv" href="data:text/csv;base64,{encoded}">'
            f"{experiment.name}.csv</a> <span class=\"soft\">{len(text.splitlines()) - 1} runs, every value of "
            "each</span></p>"
            f'<details class="raw"><summary>Look at it</summary><pre>{esc(text)}</pre></details>')


def prepared(results):
    """What was measured first, and by which commands."""
    numbers = {k: v for k, v in (results.prepared or {}).items() if isinstance(v, (int, float, str))}
    if not numbers:
        return ""
    text = ", ".join(f"{k.replace('_', ' ')} {_plain(v)}" for k, v in numbers.items())
    ran = "\n".join(results.prepared_by)
    return (f'<p class="soft">Measured first: {esc(text)}.</p>'
            f'<details class="commands"><summary>How</summary><pre class="commands">{esc(ran)}</pre></details>')


def _plain(value):
    return f"{value:,.0f}" if isinstance(value, float) and value >= 100 else f"{value}"
