# SPDX-License-Identifier: BSD-3-Clause
"""Runs the cells of experiments in alternating order, with progress, and goes on where it stopped."""
import fnmatch
import sys
import time

from . import process
from .experiment import Trouble, Unavailable
from .results import now


def alternating(cells, repetitions):
    """(repetition, cell): whoever goes second finds other caches and clocks, so they take turns."""
    for repetition in range(repetitions):
        for cell in cells if repetition % 2 == 0 else list(reversed(cells)):
            yield repetition, cell


def chosen(cells, only):
    """Those of which any pattern of the list, with * and ?, is the name or a part of it."""
    if not only:
        return cells
    found = [c for c in cells if any(fnmatch.fnmatch(c.key, f"*{p}*") for p in only)]
    if not found:
        raise Trouble(f"--only {','.join(only)}: no such cell; there are: "
                      f"{' '.join(c.key for c in cells)}")
    return found


def duration(seconds):
    seconds = max(round(seconds), 0)
    if seconds < 90:
        return f"{seconds} s"
    return f"{round(seconds / 60)} min"


class Progress:
    """Lines on stderr: what comes next, and how much is left. Estimates of cells are corrected by how
    long others took."""

    def __init__(self, name, todo):
        self.name, self.total = name, len(todo)
        self.left_s = sum(cell.seconds for _, cell in todo)
        self.estimated_s = self.took_s = 0.0
        self.number = 0

    def next(self, repetition, cell):
        self.number += 1
        slowness = self.took_s / self.estimated_s if self.estimated_s else 1.0
        print(f"[{self.number}/{self.total}] {self.name}: {cell.key}, repetition {repetition + 1}; about "
              f"{duration(self.left_s * slowness)} left", file=sys.stderr, flush=True)

    def behind(self, cell):
        """Estimate for all after this cell."""
        return self.left_s - cell.seconds

    def took(self, cell, seconds):
        self.left_s -= cell.seconds
        self.estimated_s += cell.seconds
        self.took_s += seconds

    @staticmethod
    def result(text):
        print(f"    {text}", file=sys.stderr, flush=True)


class Run:
    """One experiment's, within one program's run."""

    def __init__(self, experiment, lab, journal, repetitions, only):
        self.experiment, self.lab, self.journal = experiment, lab, journal
        self.repetitions = repetitions or (experiment.quick_repetitions if lab.quick
                                           else experiment.repetitions)
        lab.repetitions = self.repetitions
        self.only = only
        self.failed = 0

    def _prepare(self):
        """Measured once, and the same for all cells, those of a resumed run too."""
        if self.journal.results.prepared is None:
            with process.recorded() as commands:
                prepared = self.experiment.prepare(self.lab)
            self.journal.write({"event": "prepared", "at": now(), "prepared": prepared,
                                "commands": commands})
        self.lab.prepared = self.journal.results.prepared

    def execute(self):
        self._prepare()
        cells = chosen(self.experiment.cells(self.lab), self.only)
        plan = list(alternating(cells, self.repetitions))
        todo = [(r, c) for r, c in plan if not self.journal.results.done(c.key, r)]
        if len(todo) < len(plan):
            self.lab.say(f"{self.experiment.name}: {len(plan) - len(todo)} of {len(plan)} measurements "
                         f"are in {self.journal.path} already; --fresh measures anew")
        progress = Progress(self.experiment.name, todo)
        for repetition, cell in todo:
            if self.journal.results.done(cell.key, repetition):
                continue  # found to be unavailable in the meantime
            progress.next(repetition, cell)
            self.lab.left_s = progress.behind(cell)
            begin = time.monotonic()
            progress.result(self._measure(repetition, cell))
            progress.took(cell, time.monotonic() - begin)
        if not any(o.errors for o in self.journal.results.outcomes.values()):
            self.journal.write({"event": "end", "at": now()})

    def _measure(self, repetition, cell):
        """Returns a line for people."""
        event = {"cell": cell.key, "params": cell.params, "repetition": repetition, "at": now()}
        begin = time.monotonic()
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
        self.journal.write({"event": "run", **event, "values": m.values, "data": m.data,
                            "commands": commands, "seconds": time.monotonic() - begin})
        return ", ".join(f"{k} {v:.5g}" for k, v in m.values.items() if v is not None)
