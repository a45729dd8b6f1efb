# SPDX-License-Identifier: BSD-3-Clause
"""Plots in one style, as SVG inside a page: no screen, no file beside it."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from matplotlib.axes import Axes
    from matplotlib.axes._subplots import AxesSubplot
    from matplotlib.axis import XAxis, YAxis

    from .blocks import Plot

WIDTH_IN = 5.2  # at 400 pixels of width, letters are still 8 pixels high
TICKS = 3  # at least, on an axis with numbers
# Okabe and Ito's colours, which colour-blind readers can distinguish; with markers also in grey.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
_STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.ymargin": 0.08,
    "axes.xmargin": 0.06,
    "font.size": 10,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "errorbar.capsize": 2,
    "svg.fonttype": "none",
    "svg.hashsalt": "ringtap",
    "font.family": "sans-serif",
    "figure.constrained_layout.use": True,
}


def curve(axes: Axes, number: int, label: str, points: Any, scale: float = 1.0) -> None:
    """Means and standard deviations. number: of its colour and marker. points: pairs of x and Series."""
    if points:
        axes.errorbar(
            [x for x, _ in points],
            [s.mean() * scale for _, s in points],
            yerr=[(s.deviation() or 0) * scale for _, s in points],
            color=COLOURS[number],
            marker=MARKERS[number],
            label=label,
        )


def stars(axes: Any, xs: Any, ys: Any, label: Any = "published") -> None:
    axes.plot(xs, ys, "*", color="black", markersize=9, label=label)


def legend(axes: Axes, place: str = "below") -> None:
    """Beside the data: above or below the axes."""
    where, y = ("upper center", -0.2) if place == "below" else ("lower center", 1.0)
    axes.legend(loc=where, bbox_to_anchor=(0.5, y), ncols=2)


def log(axes: AxesSubplot, which: str) -> None:
    """A logarithmic axis ("x" or "y") with plain numbers: 50, 200k, 1M."""
    from matplotlib import ticker

    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(ticker.EngFormatter(sep=""))
    axis.set_minor_formatter(ticker.NullFormatter())


def ticks(axis: XAxis | YAxis) -> list:
    """Positions of an axis's numbers."""
    low, high = sorted(axis.get_view_interval())
    return [t for t in axis.get_majorticklocs() if low <= t <= high]


def _enough_ticks(axis: XAxis | YAxis):
    """At least TICKS; of a logarithmic axis decades, and what is between them where these are few."""
    from matplotlib import ticker

    if axis.get_scale() == "log" and len(ticks(axis)) <= TICKS:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    if len(ticks(axis)) < TICKS and not isinstance(axis.get_major_locator(), ticker.FixedLocator):
        axis.set_major_locator(ticker.MaxNLocator(5, min_n_ticks=TICKS))


@contextlib.contextmanager
def figure(plot: Plot) -> Iterator:
    """The figure that a Plot draws, while the context lasts."""
    import matplotlib  # late: only the page needs it, and it takes a second

    matplotlib.use("svg")
    from matplotlib import pyplot

    with matplotlib.rc_context({**_STYLE, "axes.prop_cycle": matplotlib.cycler(color=COLOURS)}):
        found, axes = pyplot.subplots(plot.rows, 1, sharex=True, figsize=(WIDTH_IN, WIDTH_IN * plot.height))
        plot.draw(axes)
        for ax in found.axes:
            _enough_ticks(ax.xaxis)
            _enough_ticks(ax.yaxis)
        try:
            yield found
        finally:
            pyplot.close(found)


def svg(plot: Plot, name: str) -> Any:
    """An <svg> element. name: of the plot in the page, so that no two have a common id."""
    out = io.StringIO()
    with figure(plot) as found:
        found.savefig(out, format="svg")
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    first, rest = text.split(">", 1)
    first = re.sub(r'\b(height|width)="[^"]*"', "", first)  # the style sheet sets its size
    return Markup(first.replace("<svg ", f'<svg role="img" aria-label="{escape(plot.title)}" ', 1) + ">" + rest)
