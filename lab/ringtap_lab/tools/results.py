# SPDX-License-Identifier: BSD-3-Clause
"""What was measured. A journal, written line by line, so that nothing is lost when a run is
interrupted; JSON and CSV are made of it."""
import csv
import datetime
import fcntl
import io
import json
import os

from .errors import Trouble
from .stats import Series

FORMAT = 1


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


class OtherSettings(Trouble):
    """The folder's results are not such as are wanted now."""


class Outcome:
    """All runs of one cell."""

    def __init__(self, cell):
        self.key = cell["cell"]
        self.params = cell["params"]
        self.runs = []  # {"repetition", "values", "data", "commands", "seconds", "at", "around"}
        self.unavailable = None
        self.errors = {}  # of repetitions whose last attempt failed

    def series(self, metric):
        s = Series()
        for run in self.runs:
            if run["values"].get(metric) is not None:
                s.add(run["values"][metric])
        return s

    def metrics(self):
        """Names, in order of first use."""
        return list(dict.fromkeys(name for run in self.runs for name in run["values"]))

    def commands(self):
        return list(dict.fromkeys(c for run in self.runs for c in run["commands"]))

    def data(self, name, default=None):
        """From the first repetition that has it."""
        return next((run["data"][name] for run in self.runs if name in run["data"]), default)

    def as_dict(self):
        statistics = {}
        for metric in self.metrics():
            s = self.series(metric)
            statistics[metric] = {**s.summary(), "mean": s.mean(), "deviation": s.deviation()}
        return {"cell": self.key, "params": self.params, "statistics": statistics,
                "runs": self.runs, "commands": self.commands(), "unavailable": self.unavailable,
                "errors": self.errors}

    @classmethod
    def of(cls, found):
        """From what as_dict() gave."""
        it = cls(found)
        it.runs, it.unavailable = found["runs"], found["unavailable"]
        it.errors = {int(repetition): error for repetition, error in found["errors"].items()}
        return it


class Results:
    """of one experiment, in memory. Cells in order of first measurement."""

    def __init__(self):
        self.settings = {}
        self.prepared = None
        self.prepared_by = []
        self.machine = {}
        self.changed = []  # how later runs' machines differ from the first one's: sentences
        self.began = None
        self.ended = None
        self.trouble = None  # why it could not be measured, or not to its end
        self.outcomes = {}

    @classmethod
    def of(cls, found):
        """From what as_dict() gave."""
        it = cls()
        for name in ("settings", "machine", "changed", "began", "ended", "trouble", "prepared", "prepared_by"):
            setattr(it, name, found[name])
        it.outcomes = {cell["cell"]: Outcome.of(cell) for cell in found["cells"]}
        return it

    def apply(self, event):
        """One line of the journal."""
        kind = event["event"]
        if kind == "begin":
            self.began = self.began or event["at"]
            found = _difference(self._lasting(self.machine), self._lasting(event["machine"]))
            if self.machine and found and found not in self.changed:
                self.changed.append(found)
            self.settings, self.machine = event["settings"], event["machine"]
            self.ended = self.trouble = None
        elif kind == "trouble":
            self.trouble = event["trouble"]
        elif kind == "prepared":
            self.prepared, self.prepared_by = event["prepared"], event["commands"]
        elif kind == "end":
            self.ended = event["at"]
        else:
            outcome = self.outcomes.setdefault(event["cell"], Outcome(event))
            outcome.unavailable = event.get("unavailable")
            outcome.errors.pop(event["repetition"], None)
            if kind == "failed":
                outcome.errors[event["repetition"]] = event["error"]
            elif kind == "run":
                outcome.runs.append({k: event[k] for k in ("repetition", "values", "data", "commands",
                                                            "seconds", "at", "around")})

    @staticmethod
    def _lasting(machine):
        """Facts that say whether it is the same one."""
        return {k: machine.get(k) for k in ("cpu", "cpus", "kernel", "dpdk", "ringtap", "commit")}

    def cell(self, key):
        """Outcome, or None where nothing of this cell is known."""
        return self.outcomes.get(key)

    def series(self, key, metric):
        outcome = self.cell(key)
        return outcome.series(metric) if outcome else Series()

    def mean(self, key, metric):
        """None where it was not measured."""
        return self.series(key, metric).mean()

    def measured(self):
        """Outcomes that have values."""
        return [o for o in self.outcomes.values() if o.runs]

    def gaps(self):
        """Lines on cells that could not be measured, and why."""
        return [f"{o.key}: not available: {o.unavailable}" for o in self.outcomes.values() if o.unavailable] + [
            f"{o.key}: failed: {e}" for o in self.outcomes.values() for e in dict.fromkeys(o.errors.values())]

    def done(self, key, repetition):
        """Whether there is nothing to be measured any more."""
        outcome = self.cell(key)
        return bool(outcome) and (outcome.unavailable is not None or
                                  any(r["repetition"] == repetition for r in outcome.runs))

    def as_dict(self, experiment):
        return {"format": FORMAT, "experiment": experiment.name, "title": experiment.title,
                "conditions": experiment.conditions, "settings": self.settings,
                "machine": self.machine, "changed": self.changed, "trouble": self.trouble,
                "began": self.began, "ended": self.ended,
                "prepared": self.prepared, "prepared_by": self.prepared_by,
                "published": [vars(p) for p in experiment.published],
                "cells": [o.as_dict() for o in self.outcomes.values()]}

    def seconds(self):
        """That measuring took, without what was measured first and what failed."""
        return sum(run["seconds"] for o in self.outcomes.values() for run in o.runs)

    def around(self, name):
        """One of around.Around's shares, of all runs."""
        return [run["around"][name] for o in self.outcomes.values() for run in o.runs]

    def as_csv(self):
        """A row for each run: cell, parameters, repetition, values, and what else the CPUs did."""
        runs = [(o, r) for o in self.measured() for r in o.runs]
        params = list(dict.fromkeys(name for o, _ in runs for name in o.params))
        metrics = list(dict.fromkeys(name for o in self.measured() for name in o.metrics()))
        around = list(dict.fromkeys(name for _, r in runs for name in r["around"]))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["cell", *params, "repetition", *metrics, *(f"cpus_{name}" for name in around)])
        for o, r in runs:
            writer.writerow([o.key, *(o.params.get(p) for p in params), r["repetition"] + 1,
                             *(r["values"].get(m) for m in metrics), *(r["around"].get(a) for a in around)])
        return text.getvalue()


class Journal:
    """Results of one experiment in a folder, and on the disk whatever happens."""

    def __init__(self, folder, experiment):
        self.folder = folder
        self.experiment = experiment
        self.path = folder / f"{experiment.name}.jsonl"
        self.results = Results()
        self.file = None
        self.good = 0  # bytes that are whole lines
        self._load()

    def _load(self):
        """A last line that was cut off, because the machine went down, or is being written, is not read."""
        if not self.path.exists():
            return
        good = 0
        with open(self.path, "rb") as f:
            for line in f:
                try:
                    self.results.apply(json.loads(line))
                except (ValueError, KeyError, TypeError) as e:
                    if line.endswith(b"\n"):
                        raise Trouble(f"{self.path}: not a journal of ringtap-lab: {e!r}; use another "
                                      "folder, or --fresh") from e
                    break
                good += len(line)
        self.good = good

    def expect(self, settings):
        """settings: what must be equal for results to belong together."""
        if self.results.began and self.results.settings != settings:
            raise OtherSettings(f"{self.path} holds results of other settings: "
                                f"{_difference(self.results.settings, settings)}; use another folder (-o), or "
                                "--fresh to measure anew")

    def begin(self, settings, machine):
        self.expect(settings)
        self._open()
        self.write({"event": "begin", "at": now(), "settings": settings, "machine": machine})

    def write(self, event):
        line = json.dumps(event) + "\n"
        self.file.write(line)
        self.file.flush()
        os.fsync(self.file.fileno())
        self.results.apply(json.loads(line))  # what is in memory is what would be read back

    def trouble(self, text):
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

    def export(self):
        """NAME.json and NAME.csv."""
        with open(self.folder / f"{self.experiment.name}.json", "w", encoding="utf-8") as f:
            json.dump(self.results.as_dict(self.experiment), f)
            f.write("\n")
        (self.folder / f"{self.experiment.name}.csv").write_text(self.results.as_csv(), encoding="utf-8")

    def close(self):
        if self.file:
            self.file.close()


def found(folder, experiment):
    """Results in a folder, for the page: of the journal, or where that is gone of what was exported. None
    if there are none. Both files are written anew."""
    journal = Journal(folder, experiment)
    exported = folder / f"{experiment.name}.json"
    if not journal.path.exists() and exported.exists():
        try:
            journal.results = Results.of(json.loads(exported.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as e:
            raise Trouble(f"{exported}: not results of ringtap-lab: {e!r}") from e
    if not journal.results.outcomes and not journal.results.trouble:
        return None
    journal.export()
    return journal.results


def _difference(a, b):
    return ", ".join(f"{k} {a.get(k)!r} instead of {b.get(k)!r}"
                     for k in sorted({*a, *b}) if a.get(k) != b.get(k))
