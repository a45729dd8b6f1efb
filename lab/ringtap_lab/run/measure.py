# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of one application's life: untouched, captured, afterwards. All go into a Store."""
import os
import sys
import time
from collections import defaultdict

from ..tools import process
from ..tools.stats import DISTURBED, Series
from .testpmd import TestPmd

WINDOW_S = 0.4


class Store:
    """Series by what was measured: (quantity, source, size, tool, sink), None where it is moot."""

    def __init__(self):
        self.series = defaultdict(Series)
        self.errors = []

    def add(self, value, quantity, source=None, size=None, tool=None, sink=None, disturbed=0.0):
        self.series[quantity, source, size, tool, sink].add(value, disturbed)

    def get(self, quantity, source=None, size=None, tool=None, sink=None):
        """What was measured in peace, if there is such."""
        return self.series.get((quantity, source, size, tool, sink), Series()).calm()

    def error(self, what, e):
        text = f"{what}: {e}"
        self.errors.append(text)
        print(f"  {text}", file=sys.stderr, flush=True)

    def as_list(self):
        names = ("quantity", "source", "size", "tool", "sink")
        return [{**dict(zip(names, key)), **series.calm().summary(), "values": list(series),
                 "disturbed": series.disturbed}
                for key, series in self.series.items()]


def _file(sink, folder):
    return "/dev/null" if sink == "null" else os.path.join(folder, "capture.pcapng")


def _attempt(app, tool, sink, options):
    path = _file(sink, options.disk_dir)
    try:
        return tool.capture(app, options.seconds, path)
    finally:
        if sink != "null" and os.path.exists(path):
            os.unlink(path)


def _undisturbed(app, tool, sink, options):
    """The least disturbed of up to three attempts, as long as there is time for more than one."""
    best = None
    for _ in range(3):
        try:
            r = _attempt(app, tool, sink, options)
        except (RuntimeError, OSError, ValueError, KeyError):
            if best is None:
                raise
            break  # what came before counts; that the application has died will turn out soon
        best = r if best is None or r.disturbed < best.disturbed else best
        if best.disturbed < DISTURBED or time.monotonic() > options.retry_until:
            break
    return best


def _rate(app, options):
    """The application's own rate, if possible while nobody else was on its cpu; (pps, disturbed)."""
    best = None
    for _ in range(3):
        before = app.polling_times()
        pps = app.rate(WINDOW_S)
        disturbed = process.waiting_share(before, app.polling_times())
        best = (disturbed, pps) if best is None or disturbed < best[0] else best
        if best[0] < DISTURBED or time.monotonic() > options.retry_until:
            break
    return best[1], best[0]


def _captured(store, app, tool, sink, options):
    key = (app.source.name, app.source.size, tool.name, sink)
    r = _undisturbed(app, tool, sink, options)
    store.add(r.captured / r.seconds, "captured", *key, r.disturbed)
    store.add(r.lost / max(r.captured + r.lost, 1), "loss", *key, r.disturbed)
    store.add(r.app_pps, "attached", *key, r.disturbed)
    store.add(r.disturbed, "disturbed", *key, r.disturbed)
    if sink != "null":
        store.add(r.file_bytes / r.file_seconds, "file", *key, r.disturbed)
    pps, disturbed = _rate(app, options)
    store.add(pps, "after", *key, disturbed)
    print(f"  {tool.name} to {sink}: {r.captured / r.seconds / 1e6:.1f} Mpps captured, "
          f"{r.lost} lost, application {r.app_pps / 1e6:.1f} Mpps, "
          f"disturbed {r.disturbed * 100:.0f} %", flush=True)


def application(store, source, tool, sinks, options, plugin):
    """One life of the application, with each kind of capture once; a second life if a capture kills
    it, which dpdk-dumpcap does at times when it detaches on a busy machine."""
    what = f"{source.name} {source.size} B, {tool.name if tool else 'no tool'}"
    left = list(sinks if tool else [])
    for _ in range(2):
        try:
            app = TestPmd(source, options.cpus, options.huge, plugin)
        except (RuntimeError, OSError) as e:
            store.error(what, e)
            return
        try:
            _life(store, app, tool, left, options)
            return
        except (RuntimeError, OSError, ValueError, KeyError) as e:
            store.error(what, f"{e}{app.obituary()}")
        finally:
            app.stop()


def _life(store, app, tool, left, options):
    rate, disturbed = _rate(app, options)
    quantity = "loaded" if app.plugin else "untouched"
    store.add(rate, quantity, app.source.name, app.source.size, disturbed=disturbed)
    print(f"{app.source.name} {app.source.size} B, "
          f"{'plugin loaded' if app.plugin else 'untouched'}: {rate / 1e6:.1f} Mpps", flush=True)
    while left:
        _captured(store, app, tool, left[0], options)
        left.pop(0)
