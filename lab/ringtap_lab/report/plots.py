# SPDX-License-Identifier: BSD-3-Clause
"""Plots as SVG that stands in a page: without a screen, without anything from outside."""
import io
import re

WIDTH_IN = 5.2  # at 400 pixels of width, letters are still 8 pixels high
# Distinguishable for the colour-blind (Okabe and Ito), and with markers also in grey.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

_STYLE = {
    "axes.grid": True, "axes.spines.right": False, "axes.spines.top": False, "font.size": 10,
    "grid.alpha": 0.3, "legend.frameon": False, "lines.linewidth": 1.5, "lines.markersize": 4,
    "svg.fonttype": "none", "svg.hashsalt": "ringtap", "font.family": "sans-serif",
    "figure.constrained_layout.use": True,
}


def _matplotlib():
    """Late: only the page needs it, and it takes a second."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    return matplotlib, pyplot


def plain(axis):
    """A logarithmic axis that names numbers as people do: 50, 200k, 1M."""
    from matplotlib import ticker
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.EngFormatter(sep=""))
    axis.set_minor_formatter(ticker.NullFormatter())


def svg(plot, name):
    """The text of an <svg> element. name: of the plot in the page, so that no two have a common id."""
    matplotlib, pyplot = _matplotlib()
    cycle = matplotlib.cycler(color=COLOURS)
    with matplotlib.rc_context({**_STYLE, "axes.prop_cycle": cycle}):
        figure, axes = pyplot.subplots(plot.rows, 1, sharex=True,
                                       figsize=(WIDTH_IN, WIDTH_IN * plot.height))
        plot.draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg")
        pyplot.close(figure)
    return _embedded(out.getvalue(), name, plot.title)


def _embedded(text, name, title):
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    # Its size is the page's affair.
    text = re.sub(r'^<svg ([^>]*?)\bheight="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r'^<svg ([^>]*?)\bwidth="[^"]*"', r"<svg \1", text, count=1)
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
