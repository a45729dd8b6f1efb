# SPDX-License-Identifier: BSD-3-Clause
"""ringtap top and doctor, and the kernel's counters of an application's threads."""

import json
import time

from .paths import RINGTAP
from .proc import of_tasks, run

FAULT = 4  # exit status of doctor
WAIT = 0.01  # LIMIT_WAIT of judge/limits.h


def top(app, *args, status=0):
    """The document of `ringtap top --once --json` for one application."""
    done = run([RINGTAP, "top", "--once", "--json", *args, app.prefix])
    assert done.returncode == status, done.stderr
    return next(a for a in json.loads(done.stdout)["applications"] if a["name"] == app.prefix)


def by_name(things, name):
    return next(t for t in things if t["name"] == name)


class Scheduler:
    """Time that the threads of a process waited for a CPU, by the counters of the kernel."""

    def __init__(self, pid):
        self.pid = pid
        self.start = self._read()
        self.began = time.monotonic()

    def _read(self):
        waits = {}
        for tid, text in of_tasks(self.pid, "schedstat").items():
            ran, waited, _ = (int(w) for w in text.split())
            waits[tid] = (ran, waited)
        return waits

    def worst_wait(self):
        """Longest time in seconds that a thread with work was runnable without a CPU, since the
        start of the measurement. A thread that sleeps half of the time counts, too."""
        worst = 0
        ns = (time.monotonic() - self.began) * 1e9
        for tid, (ran, waited) in self._read().items():
            ran0, waited0 = self.start.get(tid, (0, 0))
            if ran - ran0 + waited - waited0 > 0.05 * ns:
                worst = max(worst, (waited - waited0) * 1e-9)
        return worst


class Diagnosis:
    """The verdicts of `ringtap doctor` on one application. On a shared machine, threads are really
    preempted: that verdict is compared with the counters of the kernel, and reported separately."""

    def __init__(self, app, seconds=1):
        scheduler = Scheduler(app.pid)
        done = run([RINGTAP, "doctor", "--json", "--duration", f"{seconds}s", app.prefix])
        waited = scheduler.worst_wait()
        assert done.returncode in (0, FAULT), done.stderr
        apps = json.loads(done.stdout)["applications"]
        assert [a["name"] for a in apps] == [app.prefix]
        self.verdicts = apps[0]["verdicts"]
        self.faults = [v["verdict"] for v in self.verdicts if v["grade"] == "fault"]
        assert done.returncode == (FAULT if self.faults else 0)
        self.preempted = "preempted" in self.faults
        # For so long that no scheduler is to blame, as by a hypervisor.
        self.stalled = self.has("stalled")
        # Its share refers to the time between two readings of the kernel's counters by the probe:
        # at least half of the doctor's time.
        if self.preempted:
            assert waited > WAIT / 2 * seconds / 2, self.verdicts

    @property
    def others(self):
        """Faults other than preemption by other programs."""
        return [f for f in self.faults if f != "preempted"]

    def get(self, name):
        assert self.has(name), self.verdicts
        return next(v for v in self.verdicts if v["verdict"] == name)

    def has(self, name):
        return any(v["verdict"] == name for v in self.verdicts)

    def evidence(self, name):
        return "\n".join(self.get(name)["evidence"])

    def sound(self):
        """The verdict if no fault was found, except possibly that something outside took the time."""
        assert not self.others, self.verdicts
        return None if self.preempted or self.stalled else self.verdicts[0]["verdict"]
