# SPDX-License-Identifier: BSD-3-Clause
"""What looking costs: the rate of receive-only forwarding with each instrument there but off, and on."""
import contextlib

from .. import lttng, overhead_view
from ..experiment import Cell, Experiment, Measurement, Published, Trouble, Unavailable
from ..overhead_ways import BURST, SIZE, WAYS, Subject, fastest, stock
from ..testpmd import MEMORY_MB, TestPmd

SPARE_MB = 64
ATTEMPTS = 3  # dpdk-dumpcap kills an application at times
TRIES, CALM = 3, 0.04  # measured again if the application without an instrument changed by more meanwhile
FULL_S, QUICK_S = 660, 110  # as long as all of it takes no longer
SOURCE = "DPDK 19.11, NIC of 25 Gbit/s"


class Overhead(Experiment):
    name = "overhead"
    title = "Overhead: what looking costs the application"
    question = ("By how much does the rate of an application change when an instrument is there but off, and when "
                "it is on?")
    conditions = (
        f"dpdk-testpmd as it is, receive-only (rxonly), {SIZE}-byte packets from net_null in bursts of {BURST}; its one "
        "polling thread has a CPU of its own, whatever reads has the other. The driver takes a few nanoseconds for a packet, "
        "the application none: what an instrument adds shows at its worst. Each figure compares two applications that are "
        "alive at the same time and run by turns, one being paused: one without any instrument, measured just before and just "
        "after, and the one with the instrument. Rates are packets per second that the polling thread ran, so that other "
        "programs on its CPU do not count; of four parts of each measurement the fastest counts, as others only slow it down (but not "
        "where packets are captured, which comes in waves). If the one without an instrument differs by more than 4 % "
        "afterwards, all is measured again, up to twice, and the calmest attempt counts. Disabled: the tool is loaded, or was attached and has gone, and does not look. "
        "Enabled: it looks at each packet, or, where it traces, at each burst.")
    published = tuple(
        Published(f"{row.name}, {state}", overhead_view.percent(value), SOURCE) for row in overhead_view.ROWS
        for state, value in (("off", row.published_off), ("on", row.published_on)) if value is not None)
    order = 40
    quick_repetitions = 1

    def add_options(self, group):
        group.add_argument("--overhead-seconds", type=float, metavar="S",
                           help="how long each rate is measured (0.8; with --quick 0.25)")

    def check(self, lab):
        lab.need_root("DPDK's run-time folders and huge pages")
        lab.need_cpus(2)
        lab.program("ringtap")
        lab.plugin()
        lab.tool("dpdk-testpmd", "dpdk-dev")
        lab.tool("taskset", "util-linux")
        lab.need_huge_pages(2 * MEMORY_MB + SPARE_MB)

    def cells(self, lab):
        return [Cell(way.key, {"instrument": way.key.rpartition("-")[0] or way.key,
                               "on": int(way.key.endswith("-on"))}, 3 * length(lab) + 1.5 + way.seconds)
                for way in WAYS]

    def run(self, lab, cell, repetition):
        way = next(w for w in WAYS if w.key == cell.key)
        best = None
        for _ in range(TRIES):
            found = alive(lab, way, repetition % 2 == 0)
            best = min(found, best or found, key=lambda m: abs(m.values["drift"]))
            if abs(best.values["drift"]) < CALM or lab.spare_s(QUICK_S if lab.quick else FULL_S) < cell.seconds:
                break
        return best

    def blocks(self, results):
        return overhead_view.blocks(results)

    def summary(self, results):
        return overhead_view.summary(results)


def length(lab):
    return lab.o.overhead_seconds or (0.25 if lab.quick else 0.8)


@contextlib.contextmanager
def testpmd(lab, source, plugin, wrap=()):
    """Paused, but for when it is measured."""
    app = TestPmd(source, lab.cpus, True, plugin, lab.unique("app"), wrap)
    try:
        app.pause()
        yield app
    finally:
        app.stop()


@contextlib.contextmanager
def on_its_turn(app):
    app.resume()
    try:
        yield
    finally:
        app.pause()


def alive(lab, way, plain_first):
    """Measures it once, with other applications if the tool kills one. Which of them gets its memory first
    may matter."""
    for attempt in range(1, ATTEMPTS + 1):
        with contextlib.ExitStack() as stack:
            daemon = stack.enter_context(lttng.Daemon(lab)) if way.lttng else None
            begin = {"plain": lambda: testpmd(lab, *stock(lab)),
                     "app": lambda: testpmd(lab, *way.application(lab), daemon.prefix if daemon else ())}
            both = {name: stack.enter_context(begin[name]()) for name in sorted(begin, reverse=plain_first)}
            plain, app = both["plain"], both["app"]
            try:
                return compare(way, plain, Subject(lab, app, length(lab), daemon))
            except (Trouble, Unavailable):
                raise
            except Exception as e:
                if way.steady or attempt == ATTEMPTS:
                    raise RuntimeError(f"{e}{app.obituary()}") from e
    raise AssertionError("not reached")


def compare(way, plain, subject):
    """Without, with, without: what changes evenly meanwhile does not count."""
    without = []
    for it in (plain, subject.app, plain):
        with on_its_turn(it):
            if it is subject.app:
                values = way.measure(subject)
            else:
                without.append(fastest(it, subject.window_s) if way.even else it.rate_of_own_time(subject.window_s))
    untouched = sum(without) / 2
    if "hooks_pps" in values:
        values["hooks_change"] = values["hooks_pps"] / untouched - 1
    return Measurement({**values, "untouched_pps": untouched, "change": values["pps"] / untouched - 1,
                        "added_ns": 1e9 / values["pps"] - 1e9 / untouched, "drift": without[1] / without[0] - 1})


EXPERIMENT = Overhead()
