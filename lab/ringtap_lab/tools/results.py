# SPDX-License-Identifier: BSD-3-Clause
"""Results of experiments: a journal, written line by line, so that an interrupted run loses nothing; JSON and CSV are made
from it."""

from __future__ import annotations

import copy
import csv
import datetime
import fcntl
import io
import json
import os
from typing import TYPE_CHECKING

from .errors import Trouble
from .stats import Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any

    from ..run.experiment import Experiment

FORMAT = 1
_OF_RUN = ("repetition", "values", "data", "commands", "seconds", "at", "around")
# Facts that identify the machine.
_LASTING = ("cpu", "cpus", "kernel", "dpdk", "ringtap", "commit")


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _unique(items: Iterable | Iterator):
    return list(dict.fromkeys(items))


def _difference(a: dict[str, str], b: dict[str, str]):
    return ", ".join(f"{k} {a.get(k)!r} instead of {b.get(k)!r}" for k in sorted({*a, *b}) if a.get(k) != b.get(k))


class OtherSettings(Trouble):
    """The folder holds results of other settings than those that are requested."""


class Outcome:
    """All runs of one cell."""

    def __init__(self, cell: dict):
        """cell: an event of the journal, or what as_dict() gave."""
        self.key, self.params = cell["cell"], cell["params"]
        self.runs = cell.get("runs", [])  # dicts with the keys _OF_RUN
        self.unavailable = cell.get("unavailable")
        # Repetitions whose last attempt failed.
        self.errors = {int(repetition): error for repetition, error in cell.get("errors", {}).items()}

    def series(self, metric: str) -> Series:
        s = Series()
        for run in self.runs:
            if run["values"].get(metric) is not None:
                s.add(run["values"][metric])
        return s

    def metrics(self) -> list[str]:
        """Names, in order of first use."""
        return _unique(name for run in self.runs for name in run["values"])

    def commands(self) -> list[str]:
        return _unique(c for run in self.runs for c in run["commands"])

    def data(self, name: str, default: Any = None) -> dict[str, list[float]] | None:
        """From the first repetition that has it."""
        return next((run["data"][name] for run in self.runs if name in run["data"]), default)

    def as_dict(self) -> dict:
        series = {metric: self.series(metric) for metric in self.metrics()}
        return {
            "cell": self.key,
            "params": self.params,
            "statistics": {m: {**s.summary(), "mean": s.mean(), "deviation": s.deviation()} for m, s in series.items()},
            "runs": self.runs,
            "commands": self.commands(),
            "unavailable": self.unavailable,
            "errors": self.errors,
        }


class Results:
    """Results of one experiment, in memory. Cells in order of first measurement."""

    # trouble: why it could not be measured, or not to its end. changed: how machines of later runs differ: sentences.
    _STATE = {
        "settings": {},
        "machine": {},
        "changed": [],
        "trouble": None,
        "began": None,
        "ended": None,
        "prepared": None,
        "prepared_by": [],
    }

    def __init__(self, found: Any = None):
        """found: what as_dict() gave."""
        for name, default in self._STATE.items():
            setattr(self, name, copy.copy(default) if found is None else found[name])
        self.outcomes = {cell["cell"]: Outcome(cell) for cell in ([] if found is None else found["cells"])}

    def apply(self, event: Any) -> None:
        """One line of the journal."""
        kind = event["event"]
        if kind == "begin":
            self._begin(event)
        elif kind == "trouble":
            self.trouble = event["trouble"]
        elif kind == "prepared":
            self.prepared, self.prepared_by = event["prepared"], event["commands"]
        elif kind == "end":
            self.ended = event["at"]
        else:
            outcome = self.outcomes.setdefault(
                event["cell"], Outcome({"cell": event["cell"], "params": event["params"]})
            )
            outcome.unavailable = event.get("unavailable")
            outcome.errors.pop(event["repetition"], None)
            if kind == "failed":
                outcome.errors[event["repetition"]] = event["error"]
            elif kind == "run":
                outcome.runs.append({k: event[k] for k in _OF_RUN})

    def _begin(self, event: dict):
        self.began = self.began or event["at"]
        changed = _difference(*({k: machine.get(k) for k in _LASTING} for machine in (self.machine, event["machine"])))
        if self.machine and changed and changed not in self.changed:
            self.changed.append(changed)
        self.settings, self.machine = event["settings"], event["machine"]
        self.ended = self.trouble = None

    def cell(self, key: str) -> Outcome | None:
        """Outcome, or None where nothing of this cell is known."""
        return self.outcomes.get(key)

    def series(self, key: str, metric: str) -> Series:
        return self.cell(key).series(metric) if self.cell(key) else Series()

    def mean(self, key: str, metric: str) -> float | None:
        """None where it was not measured."""
        return self.series(key, metric).mean()

    def measured(self) -> list[Outcome]:
        """Outcomes that have values."""
        return [o for o in self.outcomes.values() if o.runs]

    def gaps(self) -> list[str]:
        """Lines on cells that could not be measured, and why."""
        return [f"{o.key}: not available: {o.unavailable}" for o in self.outcomes.values() if o.unavailable] + [
            f"{o.key}: failed: {e}" for o in self.outcomes.values() for e in _unique(o.errors.values())
        ]

    def done(self, key: str, repetition: int) -> bool:
        """Whether nothing is left to be measured."""
        o = self.cell(key)
        return bool(o) and (o.unavailable is not None or any(r["repetition"] == repetition for r in o.runs))

    def as_dict(self, experiment: Experiment) -> dict:
        return {
            "format": FORMAT,
            "experiment": experiment.name,
            "title": experiment.title,
            "conditions": experiment.conditions,
            **{name: getattr(self, name) for name in self._STATE},
            "published": [vars(p) for p in experiment.published],
            "cells": [o.as_dict() for o in self.outcomes.values()],
        }

    def runs(self) -> list[dict]:
        return [run for o in self.outcomes.values() for run in o.runs]

    def seconds(self) -> float:
        """The time that measuring took, without what was measured first and what failed."""
        return sum(run["seconds"] for run in self.runs())

    def around(self, name: str) -> list[float]:
        """One of around.Around's shares, of all runs."""
        return [run["around"][name] for run in self.runs()]

    def as_csv(self) -> str:
        """A row for each run: cell, parameters, repetition, values, and what else the CPUs did."""
        runs = [(o, r) for o in self.measured() for r in o.runs]
        params, metrics, around = (
            _unique(name for o, r in runs for name in names(o, r))
            for names in (lambda o, r: o.params, lambda o, r: o.metrics(), lambda o, r: r["around"])
        )
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["cell", *params, "repetition", *metrics, *(f"cpus_{name}" for name in around)])
        for o, r in runs:
            writer.writerow(
                [
                    o.key,
                    *(o.params.get(p) for p in params),
                    r["repetition"] + 1,
                    *(r["values"].get(m) for m in metrics),
                    *(r["around"].get(a) for a in around),
                ]
            )
        return text.getvalue()


class Journal:
    """Results of one experiment in a folder; each line is on the disk when write() returns."""

    def __init__(self, folder: Path, experiment: Experiment):
        self.folder, self.experiment = folder, experiment
        self.path = folder / f"{experiment.name}.jsonl"
        self.results = Results()
        self.file = None
        self.good = 0  # bytes that are whole lines
        if self.path.exists():
            self._load()

    def _load(self):
        """Skips a last line that was cut off, because the machine went down, or that is being written."""
        with open(self.path, "rb") as f:
            for line in f:
                try:
                    self.results.apply(json.loads(line))
                except (ValueError, KeyError, TypeError) as e:
                    if line.endswith(b"\n"):
                        raise Trouble(
                            f"{self.path}: not a journal of ringtap-lab: {e!r}; use another folder, or --fresh"
                        ) from e
                    break
                self.good += len(line)

    def expect(self, settings: dict) -> None:
        """settings: what must be equal for results to belong together."""
        if self.results.began and self.results.settings != settings:
            raise OtherSettings(
                f"{self.path} holds results of other settings: {_difference(self.results.settings, settings)}; use "
                "another folder (-o), or --fresh to measure again"
            )

    def begin(self, settings: Any, machine: Any) -> None:
        self.expect(settings)
        self._open()
        self.write({"event": "begin", "at": now(), "settings": settings, "machine": machine})

    def write(self, event: dict[str, str]) -> None:
        line = json.dumps(event) + "\n"
        self.file.write(line)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.results.apply(json.loads(line))  # memory holds what would be read back

    def trouble(self, text: str) -> None:
        """Why it cannot be measured here, or goes no further."""
        if not self.file:
            self._open()
        self.write({"event": "trouble", "at": now(), "trouble": text})

    def _open(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = open(self.path, "a", encoding="utf-8")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise Trouble(f"{self.path}: another run writes into it; use another folder (-o)") from None
        os.truncate(self.path, self.good)

    def export(self) -> None:
        """NAME.json and NAME.csv."""
        text = json.dumps(self.results.as_dict(self.experiment))
        (self.folder / f"{self.experiment.name}.json").write_text(text + "\n", encoding="utf-8")
        (self.folder / f"{self.experiment.name}.csv").write_text(self.results.as_csv(), encoding="utf-8")

    def close(self) -> None:
        if self.file:
            self.file.close()


def found(folder: Path, experiment: Experiment) -> Results | None:
    """Results in a folder, for the page: of the journal, or of the exported JSON if there is no journal. None if there are
    none. Both exported files are written again."""
    journal = Journal(folder, experiment)
    exported = folder / f"{experiment.name}.json"
    if not journal.path.exists() and exported.exists():
        try:
            journal.results = Results(json.loads(exported.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as e:
            raise Trouble(f"{exported}: not results of ringtap-lab: {e!r}") from e
    if not journal.results.outcomes and not journal.results.trouble:
        return None
    journal.export()
    return journal.results
