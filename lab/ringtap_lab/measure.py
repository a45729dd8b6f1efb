# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of one application's life: untouched, captured, afterwards. All go into a Store."""
import os
import sys
import time
from collections import defaultdict

from . import process
from .stats import Series
from .testpmd import TestPmd

WINDOW_S = 0.4
DISTURBED = 0.03  # share of the time waiting for a cpu from which a measurement is repeated


class Store:
    """Series by what was measured: (quantity, source, size, tool, sink), None where it is moot."""

    def __init__(self):
        self.series = defaultdict(Series)
        self.errors = []

    def add(self, value, quantity, source=None, size=None, tool=None, sink=None):
        self.series[quantity, source, size, tool, sink].append(value)

    def get(self, quantity, source=None, size=None, tool=None, sink=None):
        return self.series.get((quantity, source, size, tool, sink), Series())

    def error(self, what, e):
        text = f"{what}: {e}"
        self.errors.append(text)
        print(f"  {text}", file=sys.stderr, flush=True)

    def as_list(self):
        names = ("quantity", "source", "size", "tool", "sink")
        return [{**dict(zip(names, key)), **series.summary(), "values": list(series)}
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
        r = _attempt(app, tool, sink, options)
        best = r if best is None or r.disturbed < best.disturbed else best
        if best.disturbed < DISTURBED or time.monotonic() > options.retry_until:
            break
    return best


def _rate(app, options):
    """The application's own rate, in a moment when nobody else was on its cpu."""
    best = None
    for _ in range(3):
        before = app.polling_times()
        pps = app.rate(WINDOW_S)
        disturbed = process.waiting_share(before, app.polling_times())
        best = (disturbed, pps) if best is None or disturbed < best[0] else best
        if best[0] < DISTURBED or time.monotonic() > options.retry_until:
            break
    return best[1]


def _captured(store, app, tool, sink, options):
    key = (app.source.name, app.source.size, tool.name, sink)
    r = _undisturbed(app, tool, sink, options)
    store.add(r.captured / r.seconds, "captured", *key)
    store.add(r.lost / max(r.captured + r.lost, 1), "loss", *key)
    store.add(r.app_pps, "attached", *key)
    store.add(r.disturbed, "disturbed", *key)
    if sink != "null":
        store.add(r.file_bytes / r.file_seconds, "file", *key)
    store.add(_rate(app, options), "after", *key)
    print(f"  {tool.name} to {sink}: {r.captured / r.seconds / 1e6:.1f} Mpps captured, "
          f"{r.lost} lost, application {r.app_pps / 1e6:.1f} Mpps, "
          f"disturbed {r.disturbed * 100:.0f} %", flush=True)


def application(store, source, tool, sinks, options, plugin):
    """One life of the application, with each kind of capture once."""
    what = f"{source.name} {source.size} B, {tool.name if tool else 'no tool'}"
    try:
        app = TestPmd(source, options.cpus, options.huge, plugin)
    except (RuntimeError, OSError) as e:
        store.error(what, e)
        return
    try:
        rate = _rate(app, options)
        store.add(rate, "loaded" if plugin else "untouched", source.name, source.size)
        print(f"{what}: {'plugin loaded' if plugin else 'untouched'} {rate / 1e6:.1f} Mpps",
              flush=True)
        for sink in sinks if tool else []:
            _captured(store, app, tool, sink, options)
    except (RuntimeError, OSError, ValueError, KeyError) as e:
        store.error(what, f"{e}{app.obituary()}")
    finally:
        app.stop()
