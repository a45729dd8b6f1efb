# SPDX-License-Identifier: BSD-3-Clause
"""Parts of an experiment's section of the page.

Measured values in tables are objects, not text: the page marks each with its cell and metric, so that tests compute it
again from the data."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from ..tools.results import Results

DASH, MINUS = "–", "\N{MINUS SIGN}"
# How the values of all repetitions become one number.
HOW = {"mean": statistics.fmean, "least": min, "greatest": max, "sum": sum, "runs": sum}


class Measured:
    """Base class of values computed from results; cell: the key of its cell."""

    def _missing(self, results: Results):
        outcome = results.cell(self.cell)
        return "not available" if outcome and outcome.unavailable else DASH

    def _format(self, number: float, sign: str = ""):
        return f"{number:{sign},.{self.digits}f}".replace("-", MINUS)


@dataclass(frozen=True)
class Value(Measured):
    """A metric of a cell, times scale. how: "mean" (with standard deviation), "least", "greatest" or "sum" over the
    repetitions, or "runs": the number of repetitions in which it is 1 and not 0."""

    cell: str
    metric: str
    scale: float = 1.0
    digits: int = 1
    unit: str = ""
    how: str = "mean"

    def number(self, results: Results) -> Any:
        """Value without the scale; None if it was not measured."""
        s = results.series(self.cell, self.metric)
        return HOW[self.how](s) if s else None

    def text(self, results: Results) -> str:
        s = results.series(self.cell, self.metric)
        if not s:
            return self._missing(results)
        text = self._format(self.number(results) * self.scale)
        if self.how == "runs":
            text += f" of {len(s)} runs"
        if self.how == "mean" and s.deviation() is not None:
            text += f" ± {self._format(s.deviation() * self.scale)}"
        return f"{text} {self.unit}".rstrip()

    def marks(self) -> dict:
        return {
            "cell": self.cell,
            "metric": self.metric,
            "scale": repr(self.scale),
            "digits": self.digits,
            "how": self.how,
        }


@dataclass(frozen=True)
class Ratio(Measured):
    """One value against another: "12.3 ×", or as a change, "+12.3 %". Scales do not matter."""

    value: Value
    base: Value
    digits: int = 1
    change: bool = False

    @property
    def cell(self) -> str:
        return self.value.cell

    def number(self, results: Results) -> Any:
        """The quotient; None if one of the two is missing."""
        a, b = self.value.number(results), self.base.number(results)
        return a / b if a is not None and b else None

    def text(self, results: Results) -> str:
        ratio = self.number(results)
        if ratio is None:
            return DASH
        return f"{self._format((ratio - 1) * 100, '+')} %" if self.change else f"{self._format(ratio)} ×"

    def marks(self) -> dict:
        base = {f"base-{k}": v for k, v in self.base.marks().items() if k in ("cell", "metric", "how")}
        return {**self.value.marks(), **base, "digits": self.digits, "change": int(self.change)}


@dataclass(frozen=True)
class Datum(Measured):
    """A number out of a cell's data (not its values), of the first repetition that has it. path: keys."""

    cell: str
    path: tuple
    digits: int = 1

    def number(self, results: Results) -> Any:
        outcome = results.cell(self.cell)
        found = outcome.data(self.path[0]) if outcome else None
        for key in self.path[1:]:
            found = found[key] if found is not None else None
        return found

    def text(self, results: Results) -> str:
        number = self.number(results)
        return self._missing(results) if number is None else self._format(number)

    def marks(self) -> dict:
        return {"cell": self.cell, "path": "/".join(map(str, self.path)), "digits": self.digits}


@dataclass
class Table:
    """rows: lists of str and Measured. The first column names the row; the others hold measured values, never as text.
    Published values stand in columns whose head begins with "published". shows: keys of cells of which it shows more than
    these values."""

    title: str
    head: list
    rows: list
    note: str = ""
    published: str = ""  # shown in a box beside it
    shows: list = field(default_factory=list)

    def cells(self) -> Any:
        """Keys of all cells that it shows, in order."""
        return list(
            dict.fromkeys([*self.shows, *(v.cell for row in self.rows for v in row if isinstance(v, Measured))])
        )


@dataclass
class Plot:
    """draw(axes) draws it by matplotlib: see plots.svg(). shows: keys of the cells."""

    title: str
    draw: object
    shows: list = field(default_factory=list)
    note: str = ""
    published: str = ""
    height: float = 0.65  # relative to its width
    rows: int = 1  # subplots above each other, with a common x axis

    def cells(self) -> Any:
        return self.shows


@dataclass
class Text:
    """A paragraph; warning: one that must not be overlooked."""

    text: str
    warning: bool = False


# Answers to the question whether a published claim holds here.
CONFIRMED, BETTER, PARTLY, DIFFERENT, OPEN = WORDS = "yes", "yes, and better", "partly", "no", "not measured"


@dataclass(frozen=True)
class Verdict:
    """word: one of WORDS. text: a sentence that gives the reason without numbers."""

    word: str
    text: str = ""


@dataclass
class Claim:
    """A row of the summary. what: the published claim in plain words. published: its numbers. ours: pairs of a name and a
    measured value."""

    what: str
    published: str
    ours: list
    verdict: Verdict


def percent(cell: str, metric: str, digits: int = 0, unit: str = "") -> Value:
    return Value(cell, metric, 100, digits, unit)


def count(cell: str, metric: str, digits: int = 0, how: str = "mean") -> Value:
    return Value(cell, metric, 1, digits, how=how)


def mpps(cell: Any, metric: str = "pps", digits: int = 1) -> Value:
    """Value of a metric in packets per second."""
    return Value(cell, metric, 1e-6, digits)
