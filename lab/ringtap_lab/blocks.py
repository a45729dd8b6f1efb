# SPDX-License-Identifier: BSD-3-Clause
"""What an experiment's section of the page is made of."""
from dataclasses import dataclass, field

DASH = "–"


@dataclass(frozen=True)
class Value:
    """Mean and standard deviation of a metric of a cell, times scale; or the greatest of all runs.
    The page marks it with both names, so that it can be checked against the data."""

    cell: str
    metric: str
    scale: float = 1.0
    digits: int = 1
    unit: str = ""
    greatest: bool = False

    def text(self, results):
        s = results.series(self.cell, self.metric)
        if not s:
            return self._why_not(results.cell(self.cell))
        value = max(s) if self.greatest else s.mean()
        text = f"{value * self.scale:,.{self.digits}f}"
        if s.deviation() is not None and not self.greatest:
            text += f" ± {s.deviation() * self.scale:,.{self.digits}f}"
        return f"{text} {self.unit}".rstrip()

    @staticmethod
    def _why_not(outcome):
        return "not available" if outcome and outcome.unavailable else DASH


@dataclass
class Table:
    """rows: lists of str and Value. The first column names the row. shows: keys of the cells of which
    it shows more than Values."""

    title: str
    head: list
    rows: list
    note: str = ""
    published: str = ""  # what others found, if a column of its own does not tell
    shows: list = field(default_factory=list)

    def cells(self):
        """Keys of all cells that it shows, in order."""
        values = (v.cell for row in self.rows for v in row if isinstance(v, Value))
        return list(dict.fromkeys([*self.shows, *values]))


@dataclass
class Plot:
    """draw(axes_or_figure) draws it by matplotlib: see plots.svg(). shows: keys of the cells."""

    title: str
    draw: object
    shows: list = field(default_factory=list)
    note: str = ""
    published: str = ""
    height: float = 0.65  # of its width
    rows: int = 1  # subplots above each other, with a common x axis

    def cells(self):
        return self.shows


@dataclass
class Text:
    """A paragraph; warning: one that must not be overlooked."""

    text: str
    warning: bool = False
