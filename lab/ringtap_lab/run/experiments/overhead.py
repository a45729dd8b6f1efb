# SPDX-License-Identifier: BSD-3-Clause
"""What looking costs: the rate of receive-only forwarding with each instrument there but off, and on."""
import contextlib

from ...report import overhead_view
from ...tools.errors import Trouble, Unavailable
from .. import lttng
from ..experiment import Cell, Experiment, Measurement
from ..overhead_ways import BURST, SIZE, WAYS, Subject
from ..testpmd import MEMORY_MB, TestPmd

SPARE_MB = 64
ATTEMPTS = 3  # dpdk-dumpcap kills an application at times
TRIES, CALM = 3, 0.04  # measured again if the application by itself changed by more meanwhile
LIVES = 3
BUDGET_S = 800  # of all of it; a quick run has a part of it


class Overhead(Experiment):
    name = "overhead"
    title = "Overhead: what looking costs the application"
    question = ("By how much does the rate of an application change when an instrument is there but off, and when "
                "it is on?")
    conditions = (
        f"dpdk-testpmd as it is, receive-only (rxonly), {SIZE}-byte packets from net_null in bursts of {BURST}; its one "
        "polling thread has a CPU of its own, whatever reads has the other. The driver takes a few nanoseconds for a packet, "
        "the application none: what an instrument adds shows at its worst. Each instrument that is on is compared with the same "
        "application just before and just after (dpdk-dumpcap and dpdk-pdump: before), and measured again, up to twice, if that "
        f"changed by more than 4 % and time allows. What is off is compared between applications with and without, {LIVES} lives of each by turns, "
        "of which the fastest counts: where memory lies differs from life to life. Rates are packets per second that the polling "
        "thread ran, so that other programs on its CPU do not count; of four parts of each measurement the fastest counts, as "
        "others only slow it down (but not where packets are captured, which comes in waves). Disabled: the tool is loaded, or was attached and has gone, and does not look. "
        "Enabled: it looks at each packet, or, where it traces, at each burst.")
    published = overhead_view.PUBLISHED
    order = 40
    quick_repetitions = 1

    def add_options(self, group):
        group.add_argument("--overhead-seconds", type=float, metavar="S",
                           help="how long each rate is measured (0.8; with --quick 0.4)")

    def check(self, lab):
        lab.need_root("DPDK's run-time folders and huge pages")
        lab.need_cpus(2)
        lab.program("ringtap")
        lab.plugin()
        lab.tool("dpdk-testpmd", "dpdk-dev")
        lab.tool("taskset", "util-linux")
        lab.need_huge_pages(MEMORY_MB + SPARE_MB)

    def cells(self, lab):
        return [Cell(way.key, {"instrument": way.key.rpartition("-")[0] or way.key,
                               "on": int(way.key.endswith("-on"))}, (LIVES * 2 * (length(lab) + 0.7) if way.lives else 3 * length(lab) + 1.5) + way.seconds)
                for way in WAYS]

    def run(self, lab, cell, repetition):
        way = next(w for w in WAYS if w.key == cell.key)
        if way.lives:
            return between(lab, way, repetition)
        best = None
        for _ in range(TRIES):
            found = within(lab, way)
            best = min(found, best or found, key=drift)
            if drift(best) < CALM or lab.spare_s(BUDGET_S) < cell.seconds:
                break
        return best

    def blocks(self, results):
        return overhead_view.blocks(results)

    def summary(self, results):
        return overhead_view.summary(results)


def length(lab):
    return lab.o.overhead_seconds or (0.4 if lab.quick else 0.8)


def start(lab, source, plugin, wrap):
    return TestPmd(source, lab.cpus, True, plugin, lab.unique("app"), wrap)


@contextlib.contextmanager
def testpmd(lab, way):
    """The application under a way's conditions: a Subject."""
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(lttng.Daemon(lab)) if way.lttng else None
        app = start(lab, *way.application(lab), daemon.prefix if daemon else ())
        stack.callback(app.stop)
        yield Subject(lab, app, length(lab), daemon)


def alive(lab, way, measure):
    """measure(subject), with another application if the tool kills one."""
    for attempt in range(1, ATTEMPTS + 1):
        with testpmd(lab, way) as subject:
            try:
                return measure(subject)
            except (Trouble, Unavailable):
                raise
            except Exception as e:
                if way.steady or attempt == ATTEMPTS:
                    raise RuntimeError(f"{e}{subject.app.obituary()}") from e
    raise AssertionError("not reached")


def compared(values, untouched, **more):
    pps = values["pps"]
    if "hooks_pps" in values:
        values["hooks_change"] = values["hooks_pps"] / untouched - 1
    return Measurement({**values, "untouched_pps": untouched, "change": pps / untouched - 1,
                        "added_ns": 1e9 / pps - 1e9 / untouched, **more})


def within(lab, way):
    """On, against the same application just before and just after. A stock DPDK tool may leave an
    application that is not what it was: there only before."""
    def measure(subject):
        rate = subject.fastest if way.even else subject.rate
        before = rate()
        values = way.measure(subject)
        if not way.steady:
            return compared(values, before)
        after = rate()
        return compared(values, (before + after) / 2, drift=after / before - 1)

    return alive(lab, way, measure)


def drift(m):
    return abs(m.values.get("drift", 0))


def between(lab, way, repetition):
    """Of some lives of the application, with and without by turns, the fastest of each: where its memory
    lies matters, too, and is another one in each life."""
    ways = {"pps": way, "untouched_pps": WAYS[0]}
    rates = {what: [] for what in ways}
    for _ in range(LIVES):
        for what in sorted(ways, reverse=repetition % 2 == 0):
            rates[what].append(alive(lab, ways[what], lambda s, w=ways[what]: w.measure(s)["pps"]))
    return compared({"pps": max(rates["pps"])}, max(rates["untouched_pps"]),
                    spread=max(rates["untouched_pps"]) / min(rates["untouched_pps"]) - 1)


EXPERIMENT = Overhead()
