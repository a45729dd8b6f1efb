# SPDX-License-Identifier: BSD-3-Clause
"""Runs the cells of experiments in alternating order, prints progress, and resumes where a run stopped."""

from __future__ import annotations

import fnmatch
import sys
import time
from typing import TYPE_CHECKING

from ..tools import process
from ..tools.around import Around
from ..tools.errors import Trouble, Unavailable
from ..tools.results import now

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from ..tools.results import Journal, Results
    from .experiment import Cell, Experiment
    from .lab import Lab


def alternating(cells: list[Cell], repetitions: int) -> Iterator:
    """(repetition, cell): the second cell finds other caches and clocks than the first, so they take turns."""
    for repetition in range(repetitions):
        for cell in cells if repetition % 2 == 0 else list(reversed(cells)):
            yield repetition, cell


def any_chosen(cells: list[Cell], only: list[str]) -> list[Cell]:
    """Those of which any pattern of the list, with * and ?, is the name or a part of it."""
    return [c for c in cells if any(fnmatch.fnmatch(c.key, f"*{p}*") for p in only)]


def chosen(cells: list[Cell], only: list[str]) -> list[Cell]:
    """All without a list; with one, there must be some."""
    found = any_chosen(cells, only) if only else cells
    if not found:
        raise Trouble(f"--only {','.join(only)}: no such cell; there are: {' '.join(c.key for c in cells)}")
    return found


def duration(seconds: float) -> str:
    seconds = max(round(seconds), 0)
    return f"{seconds} s" if seconds < 90 else f"{round(seconds / 60)} min"


class Part:
    """The remaining measurements of one experiment, as far as they are known."""

    def __init__(self, name: str, todo: list[tuple], prepare_s: float, complete: bool = False):
        self.name, self.number, self.complete = name, len(todo), complete
        self.left_s = (prepare_s if todo else 0.0) + sum(cell.seconds for _, cell in todo)
        self.estimated_s = self.took_s = 0.0

    def expected_s(self) -> float:
        """Estimates of cells are corrected by how long others took."""
        return self.left_s * (self.took_s / self.estimated_s if self.estimated_s else 1.0)

    def took(self, estimated_s: float, seconds: float) -> None:
        self.left_s = max(self.left_s - estimated_s, 0.0)
        self.estimated_s += estimated_s
        self.took_s += seconds

    def forget(self) -> None:
        """Nothing of it will be measured any more."""
        self.number, self.left_s = 0, 0.0


class Progress:
    """Lines on stderr: the next measurement, and the time left, of all experiments of a run."""

    def __init__(self, parts: list[Part]):
        self.parts, self.done = parts, 0

    def expected_s(self) -> Any:
        return sum(p.expected_s() for p in self.parts)

    def next(self, part: Part, repetition: int, cell: Cell) -> None:
        self.done += 1
        later = self.parts[self.parts.index(part) + 1 :]
        total = self.done - 1 + part.number + sum(p.number for p in later)
        left = f"about {duration(part.expected_s())} left"
        if later:
            left += f", of all experiments {duration(self.expected_s())}"
        print(
            f"[{self.done}/{total}] {part.name}: {cell.key}, repetition {repetition + 1}; {left}",
            file=sys.stderr,
            flush=True,
        )
        part.number -= 1


def repetitions(experiment: Experiment, options: Namespace) -> int:
    return options.repetitions or (experiment.quick_repetitions if options.quick else experiment.repetitions)


def plan(experiment: Experiment, lab: Lab, results: Results, only: list[str]) -> tuple:
    """(all measurements, those still to be made), pairs of repetition and cell."""
    everything = list(alternating(chosen(experiment.cells(lab), only), repetitions(experiment, lab.o)))
    return everything, [(r, c) for r, c in everything if not results.done(c.key, r)]


class Run:
    """One experiment within one program's run."""

    def __init__(self, experiment: Experiment, lab: Lab, journal: Journal, progress: Progress, part: Part):
        self.experiment, self.lab, self.journal, self.progress, self.part = experiment, lab, journal, progress, part
        lab.repetitions = repetitions(experiment, lab.o)
        self.failed = 0

    def _prepare(self):
        """Measured once, and the same for all cells, those of a resumed run too."""
        if self.journal.results.prepared is None:
            with process.recorded() as commands:
                try:
                    prepared = self.experiment.prepare(self.lab)
                except (RuntimeError, OSError, ValueError, KeyError) as e:
                    raise Trouble(f"{self.experiment.name}: what has to be measured first failed: {e}") from e
            self.journal.write({"event": "prepared", "at": now(), "prepared": prepared, "commands": commands})
        self.lab.prepared = self.journal.results.prepared

    def execute(self) -> None:
        self._prepare()
        everything, todo = plan(self.experiment, self.lab, self.journal.results, self.lab.o.only)
        if len(todo) < len(everything):
            self.lab.log(
                f"{self.experiment.name}: {len(everything) - len(todo)} of {len(everything)} measurements are in "
                f"{self.journal.path} already; --fresh measures again"
            )
        part = self.part
        part.number, part.left_s = len(todo), sum(cell.seconds for _, cell in todo)
        for repetition, cell in todo:
            if self.journal.results.done(cell.key, repetition):  # found to be unavailable in the meantime
                part.number -= 1
                part.left_s -= cell.seconds
                continue
            if self.lab.until and time.monotonic() + cell.seconds > self.lab.until:
                self.lab.log(f"{part.number} measurements are left for another run")
                return
            self.progress.next(part, repetition, cell)
            self.lab.left_s = part.left_s - cell.seconds
            begin = time.monotonic()
            self.lab.log(f"    {self._measure(repetition, cell)}")
            part.took(cell.seconds, time.monotonic() - begin)
        if not any(o.errors for o in self.journal.results.outcomes.values()):
            self.journal.write({"event": "end", "at": now()})

    def _measure(self, repetition: int, cell: Cell):
        """Returns a line for the user."""
        event = {"cell": cell.key, "params": cell.params, "repetition": repetition, "at": now()}
        begin, around = time.monotonic(), Around()
        self.lab.begin_cell()
        try:
            with process.recorded() as commands:
                m = self.experiment.run(self.lab, cell, repetition)
        except Unavailable as e:
            self.journal.write({"event": "unavailable", **event, "unavailable": str(e)})
            return f"not available: {e}"
        except Trouble:
            raise
        except Exception as e:  # any: hours of other measurements must not end here
            self.failed += 1
            text = f"{e}" if isinstance(e, (RuntimeError, OSError)) else f"{type(e).__name__}: {e}"
            self.journal.write({"event": "failed", **event, "commands": commands, "error": text})
            return f"failed: {text}"
        self.journal.write(
            {
                "event": "run",
                **event,
                "values": m.values,
                "data": m.data,
                "commands": commands,
                "seconds": time.monotonic() - begin,
                "around": around.shares(),
            }
        )
        return ", ".join(f"{k} {v:.5g}" for k, v in m.values.items() if v is not None)
