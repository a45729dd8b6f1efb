# SPDX-License-Identifier: BSD-3-Clause
"""What ringtap's instruments cost an application in `make bench`, each by itself and all of them,
beside DPDK's latencystats and testpmd's burst statistics."""
import json
import os
import statistics
import subprocess
import tempfile
import time

from ..tools import process
from .testpmd import IoForwarding, TestPmd

SIZE = 64
WINDOW_S = 0.2
SETTLE_S = 0.05  # the application learns that a reader has gone
INTERVAL_S = 0.2  # between two readings; people read once a second
TURNS = 2  # of one life of each application
ROUNDS = 2  # of all instruments in one life
SAID_MAX = 1 << 24  # bytes, of which ringtap top prints a few thousand a reading

POLLS, POLLING, LATENCY, ALL = "polls", "polls,busy,gaps", "latency", "all"
LATENCY_16 = "latency of one packet in 16"
ALL_NAMES = "polls,bytes,busy,gaps,latency,addresses,pools"
INSTRUMENTS = {  # what is on, and a view of ringtap top that switches nothing else on
    POLLS: (POLLS, "ports"),
    "polls,busy": ("polls,busy", "ports"),
    POLLING: (POLLING, "ports"),
    "polls,busy,bytes": ("polls,busy,bytes", "ports"),
    "pools": ("pools", "pools"),
    "addresses,pools": ("addresses,pools", "pools"),
    LATENCY: (LATENCY, "latency"),
    LATENCY_16: (LATENCY, "latency", "--latency-every", "16"),
    ALL: (ALL_NAMES, "ports"),
}
UNTOUCHED, LOADED = "untouched", "probe loaded, none"
LATENCYSTATS, BURST_STATS = "--latencystats=1", "--record-burst-stats"  # testpmd's own
ROWS = [UNTOUCHED, LOADED, *INSTRUMENTS, BURST_STATS, LATENCYSTATS]


class Reader:
    """ringtap top, reading for as long as the context lasts; entered when the figures have come."""

    def __init__(self, bench, app, instruments, view, *options):
        self.name, self.on = app.prefix, set(instruments.split(","))
        self.argv = ["taskset", "-c", str(bench.o.cpus[1]), str(bench.ringtap), "top", "--json",
                     "--interval", str(INTERVAL_S), "--view", view, "--instruments", instruments,
                     *options, app.prefix]

    def __enter__(self):
        self.out = tempfile.TemporaryFile(mode="w+b")
        self.process = process.start(self.argv, stdin=subprocess.DEVNULL, stdout=self.out,
                                     stderr=subprocess.STDOUT)
        try:
            process.wait_for(self._reads, 20, "ringtap top's figures")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _reads(self):
        # A read at an offset: ours would be where it writes next.
        said = os.pread(self.out.fileno(), SAID_MAX, 0).decode(errors="replace")
        lines = said.splitlines(keepends=True)
        if self.process.poll() is not None:
            raise RuntimeError(f"ringtap top: {lines[-1].strip() if lines else 'it ended'}")
        whole = [json.loads(line) for line in lines
                 if line.startswith("{") and line.endswith("\n")]
        on = [set(a["instruments"]) for figures in whole for a in figures["applications"]
              if a["name"] == self.name and "instruments" in a]
        if on and on[-1] != self.on:
            raise RuntimeError(f"not what was asked for is on: {', '.join(sorted(on[-1]))}")
        return bool(on)

    def __exit__(self, *_):
        process.stop(self.process)
        self.out.close()


def _add(bench, label, rate, without):
    """without: the rate in the same conditions, with nothing on."""
    key = ("net_null", SIZE, label)
    bench.store.add(rate, "instrumented", *key)
    bench.store.add(rate / without, "instrumented_share", *key)
    bench.store.add(1 / rate - 1 / without, "instrumented_seconds", *key)
    print(f"{label}: {rate / 1e6:.1f} Mpps, {rate / without * 100:.1f} % of {without / 1e6:.1f}",
          flush=True)


def _application(bench, plugin=None, more=()):
    return TestPmd(IoForwarding(1, SIZE, more), bench.o.cpus, bench.o.huge, plugin)


def _life(bench, more=()):
    """Median rate of a testpmd without the probe."""
    app = _application(bench, more=more)
    try:
        return statistics.median(app.rate_of_own_time(WINDOW_S) for _ in range(3))
    finally:
        app.stop()


def _switch(bench, app, order):
    """Each of them by turns with nothing, as clocks change; gives the rates with nothing."""
    off = [app.rate_of_own_time(WINDOW_S)]
    for label in order:
        with Reader(bench, app, *INSTRUMENTS[label]):
            on = app.rate_of_own_time(WINDOW_S)
        time.sleep(SETTLE_S)
        off.append(app.rate_of_own_time(WINDOW_S))
        _add(bench, label, on, (off[-2] + off[-1]) / 2)
    return off


def _with_probe(bench):
    """Median rate of a testpmd with the probe while no instrument is on."""
    app = _application(bench, str(bench.plugin))
    try:
        off = []
        for i in range(1 if bench.o.quick else ROUNDS):
            off += _switch(bench, app, list(INSTRUMENTS)[::1 if i % 2 == 0 else -1])
        return statistics.median(off)
    finally:
        app.stop()


def _turn(bench, backwards):
    """latencystats: it measures with any lcore's number. With that of the polling lcore it would
    publish figures in each round, too, and be slower."""
    lives = {UNTOUCHED: lambda: _life(bench), BURST_STATS: lambda: _life(bench, [BURST_STATS]),
             LATENCYSTATS: lambda: _life(bench, [LATENCYSTATS])}
    if bench.has_ringtap():
        lives[LOADED] = lambda: _with_probe(bench)
    rates = {}
    for label in list(lives)[::-1 if backwards else 1]:
        try:
            rates[label] = lives[label]()
        except Exception as e:  # any: the rest is worth measuring
            bench.store.error(f"instruments, {label}", e)
    for label, rate in rates.items():
        if UNTOUCHED in rates:
            _add(bench, label, rate, rates[UNTOUCHED])


def measure(bench, repetition):
    for turn in range(1 if bench.o.quick else TURNS):
        _turn(bench, (repetition + turn) % 2 == 1)
