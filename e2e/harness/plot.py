# SPDX-License-Identifier: BSD-3-Clause
"""Panels of an SVG by measure/plot.c: what is drawn where, in pixels."""

import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field

_SVG = "{http://www.w3.org/2000/svg}"
_FRAME, _MARK = "rgb(30%,30%,30%)", "rgb(55%,55%,55%)"
_RADIUS = 3  # of a curve's point that has no neighbours


@dataclass
class Panel:
    left: float
    top: float
    right: float
    bottom: float
    marks: list = field(default_factory=list)  # x of vertical lines
    curves: list = field(default_factory=list)  # [(x, y)] of each, of which one has points

    def level(self, y):
        """The height of a point: 0 at the bottom, 1 at the top."""
        return (self.bottom - y) / (self.bottom - self.top)


def _drawn(element):
    """Paths of the picture, without those of its font."""
    for child in element:
        if child.tag == f"{_SVG}path":
            yield dict(re.findall(r"([\w-]+):([^;]+)", child.get("style", ""))), child.get("d")
        elif child.tag != f"{_SVG}defs":
            yield from _drawn(child)


def _points(d):
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", d)]
    return list(zip(numbers[::2], numbers[1::2]))


def panels(path):
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{_SVG}svg"
    drawn = list(_drawn(root))
    out = [Panel(*_points(d)[0], *_points(d)[2]) for style, d in drawn if style.get("stroke") == _FRAME]

    def panel_at(y):
        return next(p for p in out if p.top - 1 <= y <= p.bottom + 1)

    colours = {}
    for style, d in drawn:
        points = _points(d)
        if style.get("stroke") == _MARK:
            panel_at(points[0][1]).marks.append(points[0][0])
        elif style.get("stroke-width") == "1.8":
            _add(colours, panel_at(points[0][1]), style["stroke"], points)
        elif "C" in d and "fill" in style:
            x, y = points[0]
            _add(colours, panel_at(y), style["fill"], [(x - _RADIUS, y)])
    return out


def _add(colours, panel, colour, points):
    """A curve with gaps is one: all of a colour in a panel."""
    key = (panel.top, colour)
    if key not in colours:
        colours[key] = []
        panel.curves.append(colours[key])
    colours[key] += points


def at(curve, x):
    """The y of a curve at x; cairo leaves out points that lie on a straight line."""
    for (x1, y1), (x2, y2) in itertools.pairwise(curve):
        if x1 - 0.01 <= x <= x2 + 0.01:
            return y1 + (y2 - y1) * (x - x1) / (x2 - x1) if x2 > x1 else y1
    ((x1, y1),) = (p for p in curve if abs(p[0] - x) <= 0.5)
    assert x1
    return y1
