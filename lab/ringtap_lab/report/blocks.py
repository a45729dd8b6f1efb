# SPDX-License-Identifier: BSD-3-Clause
"""What an experiment's section of the page is made of.

Figures in tables are objects, not text: the page marks each with where it comes from, so that it can
be checked against the data."""
import statistics
from dataclasses import dataclass, field

DASH, MINUS = "–", "\N{MINUS SIGN}"
# What is made of a metric's values in all repetitions.
HOW = {"mean": statistics.fmean, "least": min, "greatest": max, "sum": sum, "runs": sum}


@dataclass(frozen=True)
class Value:
    """A metric of a cell, times scale. how: "mean" (with standard deviation), "least", "greatest", "sum"
    over the repetitions, or "runs": in how many of them it is 1 and not 0."""

    cell: str
    metric: str
    scale: float = 1.0
    digits: int = 1
    unit: str = ""
    how: str = "mean"

    def number(self, results):
        """Without the scale; None where nothing was measured."""
        s = results.series(self.cell, self.metric)
        return HOW[self.how](s) if s else None

    def text(self, results):
        s = results.series(self.cell, self.metric)
        if not s:
            return _why_not(results.cell(self.cell))
        text = f"{self.number(results) * self.scale:,.{self.digits}f}"
        if self.how == "runs":
            text += f" of {len(s)} runs"
        if self.how == "mean" and s.deviation() is not None:
            text += f" ± {s.deviation() * self.scale:,.{self.digits}f}"
        return f"{text} {self.unit}".rstrip().replace("-", MINUS)

    def marks(self):
        return {"cell": self.cell, "metric": self.metric, "scale": repr(self.scale),
                "digits": self.digits, "how": self.how}


@dataclass(frozen=True)
class Ratio:
    """One value against another: "12.3 ×", or as a change, "+12.3 %". Scales do not matter."""

    value: Value
    base: Value
    digits: int = 1
    change: bool = False

    @property
    def cell(self):
        return self.value.cell

    def number(self, results):
        """The quotient; None where there is none."""
        a, b = self.value.number(results), self.base.number(results)
        return a / b if a is not None and b else None

    def text(self, results):
        ratio = self.number(results)
        if ratio is None:
            return DASH
        if self.change:
            return f"{(ratio - 1) * 100:+,.{self.digits}f} %".replace("-", MINUS)
        return f"{ratio:,.{self.digits}f} ×"

    def marks(self):
        of = {f"base-{k}": v for k, v in self.base.marks().items() if k in ("cell", "metric", "how")}
        return {**self.value.marks(), **of, "digits": self.digits, "change": int(self.change)}


@dataclass(frozen=True)
class Datum:
    """A number out of a cell's data (not its values), of the first repetition that has it. path: keys."""

    cell: str
    path: tuple
    digits: int = 1

    def number(self, results):
        outcome = results.cell(self.cell)
        found = outcome.data(self.path[0]) if outcome else None
        for key in self.path[1:]:
            found = found[key] if found is not None else None
        return found

    def text(self, results):
        number = self.number(results)
        return _why_not(results.cell(self.cell)) if number is None else f"{number:,.{self.digits}f}".replace("-", MINUS)

    def marks(self):
        return {"cell": self.cell, "path": "/".join(str(k) for k in self.path), "digits": self.digits}


FIGURES = (Value, Ratio, Datum)


def _why_not(outcome):
    return "not available" if outcome and outcome.unavailable else DASH


@dataclass
class Table:
    """rows: lists of str and FIGURES. The first column names the row; others hold what was measured as
    figures, never as text. What others published stands in columns whose head begins with "published".
    shows: keys of the cells of which it shows more than figures."""

    title: str
    head: list
    rows: list
    note: str = ""
    published: str = ""  # what others found, in a box beside it
    shows: list = field(default_factory=list)

    def cells(self):
        """Keys of all cells that it shows, in order."""
        figures = (v.cell for row in self.rows for v in row if isinstance(v, FIGURES))
        return list(dict.fromkeys([*self.shows, *figures]))


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


@dataclass(frozen=True)
class Verdict:
    """On what others published, by what was measured here. word: one of WORDS. text: a sentence that
    says it without figures."""

    word: str
    text: str = ""


CONFIRMED, BETTER, PARTLY, DIFFERENT, OPEN = "as published", "better", "partly", "different", "not measured"
WORDS = (CONFIRMED, BETTER, PARTLY, DIFFERENT, OPEN)


@dataclass
class Claim:
    """A row of the summary, for whoever has a minute. what: what others found, in plain words.
    published: their figure. ours: pairs of what it is and a figure."""

    what: str
    published: str
    ours: list
    verdict: Verdict
