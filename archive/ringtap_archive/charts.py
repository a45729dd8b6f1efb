# SPDX-License-Identifier: BSD-3-Clause
"""Curves over time as SVG inside a page: no script, no file beside it, no library."""

import datetime
import math
import re
from html import escape

# Okabe and Ito's colours, which colour-blind readers can distinguish; with dashes also in grey.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
DASHES = ["", "7 3", "2 2.5", "9 3 2 3", "12 4", "4 2", "1 2"]
WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 12, 30
LEGEND_LINE = 17
LOG_FROM = 30  # the greatest value by the least
_STEPS_S = [s * m for m in (1e-6, 1e-3) for s in (1, 2, 5, 10, 20, 50, 100, 200, 500)] + [
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    86400,
    2 * 86400,
    7 * 86400,
]
BUCKETS = [s for s in _STEPS_S if s >= 1e-5]


def bucket_ns(first_ns, last_ns, most=160):
    """Length of intervals, so that there are at most that many."""
    span = (last_ns - first_ns) / 1e9
    return round(
        next((s for s in BUCKETS if span / s <= most), max(BUCKETS[-1], math.ceil(span / most / 86400) * 86400)) * 1e9
    )


def nice(most):
    """A step of 1, 2 or 5 times a power of ten, so that about four reach up to most."""
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)


def _clock(ns, step_s):
    moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC)
    if step_s >= 86400:
        return f"{moment:%m-%d}"
    if step_s >= 60:
        return f"{moment:%H:%M}"
    digits = max(0, math.ceil(-math.log10(step_s) - 1e-9))
    return f"{moment:%H:%M:%S}" + (f".{ns % 10**9:09d}"[: digits + 1] if digits else "")


def _short(text):
    """ "5 M" of "5.00 M"."""
    return re.sub(r"(\.\d*?)0+(?!\d)", lambda m: m[1].rstrip("."), text)


def _time_ticks(first, last):
    step = next((s for s in _STEPS_S if (last - first) / 1e9 / s <= 6), _STEPS_S[-1])
    unit = round(step * 1e9)
    at = -(-first // unit) * unit
    while at <= last:
        yield at, _clock(at, step)
        at += unit


class Chart:
    """title: text for screen readers. text: formats a value. first, last: ns. log: logarithmic where values differ much."""

    def __init__(self, title, first, last, text, height=HEIGHT, log=False):
        self.log = log
        self.title, self.first, self.last, self.text, self.height = title, first, max(last, first + 1), text, height
        self.series = []

    def add(self, name, points):
        """points: pairs of ns and a value; None: a gap in the curve."""
        self.series.append((name, points))

    def _x(self, ns):
        return LEFT + (ns - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)

    def _scale(self):
        """Sets the y axis."""
        values = [y for _, points in self.series for _, y in points if y is not None]
        most, least = max(values, default=0), min(values, default=0)
        self.log = self.log and least > 0 and most / least > LOG_FROM
        if self.log:
            self.low, top = math.floor(math.log10(least)), math.ceil(math.log10(most))
            self.top, self.ticks = top, [10**n for n in range(self.low, top + 1)]
        else:
            step = nice(most) if most > 0 else 1
            count = max(1, math.ceil(most / step * 0.9999))
            self.low, self.top, self.ticks = 0, count * step, [n * step for n in range(count + 1)]

    def _y(self, value):
        at = math.log10(value) if self.log else max(value, 0)
        return self.height - BOTTOM - (at - self.low) / (self.top - self.low) * (self.height - TOP - BOTTOM)

    def _axes(self):
        for value in self.ticks:
            y = self._y(value)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield f'<text class="num" x="{LEFT - 7}" y="{y + 4:.1f}">{escape(_short(self.text(value)))}</text>'
        for ns, label in _time_ticks(self.first, self.last):
            x = self._x(ns)
            yield f'<path class="tick" d="M{x:.1f} {self.height - BOTTOM}v4"/>'
            yield f'<text class="time" x="{x:.1f}" y="{self.height - BOTTOM + 18}">{label}</text>'

    def _curve(self, number, name, points):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        runs, run = [], []
        for ns, value in points:
            if value is None:
                runs, run = [*runs, run], []
            else:
                run.append((self._x(ns), self._y(value)))
        for part in filter(None, [*runs, run]):
            if len(part) == 1:
                yield f'<circle cx="{part[0][0]:.1f}" cy="{part[0][1]:.1f}" r="2.2" fill="{colour}"/>'
            else:
                path = "L".join(f"{x:.1f} {y:.1f}" for x, y in part)
                yield f'<path class="curve" stroke="{colour}" stroke-dasharray="{dash}" d="M{path}"/>'
        for ns, value in points:
            if value is not None:
                yield (
                    f'<circle class="spot" cx="{self._x(ns):.1f}" cy="{self._y(value):.1f}" r="6"><title>'
                    f'{escape(name)}\n{_clock(ns, 1e-3)}: {escape(self.text(value))}</title></circle>'
                )

    def _legend(self):
        """Lines of names below the axes, and their height."""
        x, y, out = LEFT, self.height + 8, []
        for number, (name, _) in enumerate(self.series):
            wide = 38 + 6.6 * len(name)
            if x + wide > WIDTH and x > LEFT:
                x, y = LEFT, y + LEGEND_LINE
            colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
            out.append(
                f'<path class="curve" stroke="{colour}" stroke-dasharray="{dash}" d="M{x} {y}h22"/>'
                f'<text x="{x + 28}" y="{y + 4}">{escape(name)}</text>'
            )
            x += wide
        return out, y + 10

    def svg(self):
        self._scale()
        legend, height = self._legend()
        curves = [
            line for number, (name, points) in enumerate(self.series) for line in self._curve(number, name, points)
        ]
        return (
            f'<svg role="img" aria-label="{escape(self.title)}" viewBox="0 0 {WIDTH} {height}" '
            f'xmlns="http://www.w3.org/2000/svg">{"".join([*self._axes(), *curves, *legend])}</svg>'
        )
