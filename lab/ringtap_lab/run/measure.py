# SPDX-License-Identifier: BSD-3-Clause
"""`make bench`: one application without a capture, with each, and afterwards. All results go into a Store."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from ..tools import process, regime
from ..tools.stats import DISTURBED, Series
from .testpmd import TestPmd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .lab import Lab

WINDOW_S = 0.4
FAILURES = (RuntimeError, OSError, ValueError, KeyError)


class Store:
    """Series by what was measured: (quantity, source, size, tool, sink), None where it does not apply."""

    NAMES = ("quantity", "source", "size", "tool", "sink")

    def __init__(self):
        self.series = defaultdict(Series)
        self.regimes = defaultdict(list)  # by the same keys, of each value; None where it is unknown
        self.rounds = defaultdict(list)  # as regimes
        self.round = 0  # the present one
        self.errors = []

    def add(
        self,
        value: float,
        quantity: Any,
        source: Any = None,
        size: Any = None,
        tool: type | None = None,
        sink: Any = None,
        disturbed: float = 0.0,
    ) -> None:
        self.series[quantity, source, size, tool, sink].add(value, disturbed)
        self.regimes[quantity, source, size, tool, sink].append(None)
        self.rounds[quantity, source, size, tool, sink].append(self.round)

    @contextlib.contextmanager
    def between_probes(self, lab: Lab) -> Iterator:
        """Values added in this context belong to the present regime of the machine."""
        before = {key: len(found) for key, found in self.regimes.items()}
        with regime.around(lab) as around:
            yield
        for key, found in self.regimes.items():
            found[before.get(key, 0) :] = [around.regime] * (len(found) - before.get(key, 0))

    def of_regime(self, name: str, *key) -> Any:
        """The values of get() that were measured in a regime."""
        s = Series()
        for value, disturbed, found in zip(self.series[key], self.series[key].disturbed, self.regimes[key]):
            if found == name:
                s.add(value, disturbed)
        return s.calm()

    def get(
        self, quantity: str, source: Any = None, size: Any = None, tool: type | None = None, sink: Any = None
    ) -> Any:
        """The undisturbed values, if there are some."""
        return self.series.get((quantity, source, size, tool, sink), Series()).calm()

    def error(self, what: str, e: Any) -> None:
        self.errors.append(f"{what}: {e}")
        print(f"  {what}: {e}", file=sys.stderr, flush=True)

    def as_list(self) -> list:
        return [
            {
                **dict(zip(self.NAMES, key)),
                **series.calm().summary(),
                "values": list(series),
                "disturbed": series.disturbed,
                "regimes": self.regimes[key],
            }
            for key, series in self.series.items()
        ]


def _capture(bench: Any, app: Any, tool: type, path: str):
    """(Counts, application's rate meanwhile, greatest share of the time in which the polling thread or the capture waited
    for its CPU)."""
    with bench.tools[tool](bench.lab, app, path=path, seconds=bench.o.seconds) as t:

        def times():
            return app.polling_times(), process.cpu_times(t.process.pid)

        before = times()
        pps = app.rate(0.6 * bench.o.seconds)
        disturbed = max(process.waiting_share(*pair) for pair in zip(before, times()))
        return t.counts(), pps, disturbed


def _file_rate(path: str, seconds: float):
    """Bytes per second of a file, from the start of capturing until all of it is on the disk."""
    begin = time.monotonic()
    with open(path, "rb") as f:
        os.fsync(f.fileno())
    return os.stat(path).st_size / (seconds + time.monotonic() - begin)


def _attempt(bench: Any, app: Any, tool: type, sink: Any):
    """Values by quantity, and by how much they were disturbed."""
    path = "/dev/null" if sink == "null" else os.path.join(bench.o.disk_dir, "capture.pcapng")
    try:
        counts, pps, disturbed = _capture(bench, app, tool, path)
        found = {
            "captured": counts.captured / bench.o.seconds,
            "attached": pps,
            "disturbed": disturbed,
            "loss": counts.lost / max(counts.captured + counts.lost, 1),
        }
        if sink != "null":
            found["file"] = _file_rate(path, bench.o.seconds)
        return disturbed, found
    finally:
        if sink != "null" and os.path.exists(path):
            os.unlink(path)


def _undisturbed(bench: Any, measure: Any):
    """The least disturbed of up to three attempts, as long as there is time for more than one. measure(): (disturbed,
    anything)."""
    best = None
    for _ in range(3):
        try:
            found = measure()
        except FAILURES:
            if best is None:
                raise
            break  # earlier attempts count; the next access reports that the application has ended
        best = min(found, best or found, key=lambda x: x[0])
        if best[0] < DISTURBED or time.monotonic() > bench.o.retry_until:
            break
    return best


def _rate(bench: Any, app: Any):
    """(disturbed, the application's own rate)."""

    def once():
        before = app.polling_times()
        pps = app.rate(WINDOW_S)
        return process.waiting_share(before, app.polling_times()), pps

    return _undisturbed(bench, once)


def _captured(bench: Any, app: Any, tool: type, sink: Any):
    key = (app.source.name, app.source.size, tool, sink)
    disturbed, found = _undisturbed(bench, lambda: _attempt(bench, app, tool, sink))
    for quantity, value in found.items():
        bench.store.add(value, quantity, *key, disturbed)
    print(
        f"  {tool} to {sink}: {found['captured'] / 1e6:.1f} Mpps captured, {found['loss'] * 100:.2f} % lost, application "
        f"{found['attached'] / 1e6:.1f} Mpps, disturbed {disturbed * 100:.0f} %",
        flush=True,
    )
    disturbed, pps = _rate(bench, app)
    bench.store.add(pps, "after", *key, disturbed)


def application(bench: Any, source: Any, tool: type, plugin: Any) -> None:
    """One application, with each kind of capture once; another one if a capture ends it, which dpdk-dumpcap does at times
    when it detaches on a busy machine."""
    what = f"{source.name} {source.size} B, {tool or 'no tool'}"
    left = list(bench.sinks if tool else [])
    for _ in range(2):
        try:
            app = TestPmd(source, bench.o.cpus, bench.o.huge, plugin)
        except (RuntimeError, OSError) as e:
            bench.store.error(what, e)
            return
        try:
            disturbed, rate = _rate(bench, app)
            bench.store.add(rate, "loaded" if plugin else "untouched", source.name, source.size, disturbed=disturbed)
            print(
                f"{source.name} {source.size} B, {'plugin loaded' if plugin else 'untouched'}: {rate / 1e6:.1f} Mpps",
                flush=True,
            )
            while left:
                with bench.store.between_probes(bench.lab):
                    _captured(bench, app, tool, left[0])
                left.pop(0)
            return
        except FAILURES as e:
            bench.store.error(what, f"{e}{app.obituary()}")
        finally:
            app.stop()
