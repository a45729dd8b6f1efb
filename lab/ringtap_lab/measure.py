# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of one application's life: untouched, captured, afterwards. All go into a Store."""
import os
import sys
from collections import defaultdict

from .stats import Series
from .testpmd import TestPmd

WINDOW_S = 0.4


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


def _captured(store, app, tool, sink, seconds, folder):
    path = "/dev/null" if sink == "null" else os.path.join(folder, "capture.pcapng")
    key = (app.source.name, app.source.size, tool.name, sink)
    try:
        r = tool.capture(app, seconds, path)
    finally:
        if sink != "null" and os.path.exists(path):
            os.unlink(path)
    store.add(r.captured / r.seconds, "captured", *key)
    store.add(r.lost / max(r.captured + r.lost, 1), "loss", *key)
    store.add(r.app_pps, "attached", *key)
    if sink != "null":
        store.add(r.file_bytes / r.file_seconds, "file", *key)
    store.add(app.rate(WINDOW_S), "after", *key)
    print(f"  {tool.name} to {sink}: {r.captured / r.seconds / 1e6:.1f} Mpps captured, "
          f"{r.lost} lost, application {r.app_pps / 1e6:.1f} Mpps", flush=True)


def application(store, source, tool, sinks, options, plugin):
    """One life of the application, with each kind of capture once."""
    what = f"{source.name} {source.size} B, {tool.name if tool else 'no tool'}"
    try:
        app = TestPmd(source, options.cpus, options.huge, plugin)
    except (RuntimeError, OSError) as e:
        store.error(what, e)
        return
    try:
        rate = app.rate(WINDOW_S)
        store.add(rate, "loaded" if plugin else "untouched", source.name, source.size)
        print(f"{what}: {'plugin loaded' if plugin else 'untouched'} {rate / 1e6:.1f} Mpps",
              flush=True)
        for sink in sinks if tool else []:
            _captured(store, app, tool, sink, options.seconds, options.disk_dir)
    except (RuntimeError, OSError, ValueError, KeyError) as e:
        store.error(what, e)
    finally:
        app.stop()
