# SPDX-License-Identifier: BSD-3-Clause
"""`make bench ONLY=aims`: what a recorder loses and costs, against what it should.

Rounds of short measurements by turns, each between two probes of the machine's regime. Each result is on the disk at once (aims.jsonl
in the folder of results): a run that is interrupted, or limited by --within, goes on where it stopped,
with the same build of a commit; a build with other changes than commits begins again."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
import uuid
from typing import TYPE_CHECKING

from ..report import aims_table
from ..tools import machine, regime, units
from ..tools.errors import Trouble
from ..tools.niceness import Niceness
from ..tools.results import Journal, found
from . import aims_cells, flight_cells, runner
from .experiment import Cell, Experiment, Measurement
from .lab import PLUGIN, Lab
from .testpmd import MEMORY_MB

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
ROUNDS, QUICK_ROUNDS = 10, 1
SECONDS, QUICK_SECONDS = 5.0, 1.5
SPARE_MB = 128
FILL_S = 5  # fills a flight recorder's memory, and an incident
START_S = 3.5  # start of an application and both probes
ATTEMPTS = 3  # dpdk-dumpcap ends some applications


def _measurements():
    """(name, function, its arguments) of each cell; functions get the lab and the seconds first."""
    c = aims_cells
    found_cells = [(f"loss-{size}", c.recorded, (size,)) for size in aims_table.SIZES]
    return [
        *found_cells,
        ("dumpcap-64", c.dumpcap, (64,)),
        ("stop20-40mpps", c.paced, (64, 40, 0.02)),
        ("stop20-full", c.recorded, (64, 0.02)),
        ("stop100-20mpps", c.paced, (64, 20, 0.1)),
        ("busy-20mpps", c.paced, (64, 20, "busy")),
        *((name, c.push, (packets,)) for name, packets in aims_table.PUSHES.items()),
        ("memory", c.memory, ()),
        ("membarrier", c.membarrier, ()),
        ("demo", c.demo, ()),
        ("flight-full", flight_cells.full, (64,)),
        *((f"flight-{mpps}mpps", flight_cells.paced, (64, mpps)) for mpps in (1, 10)),
        *((f"flight-1mpps-{size}", flight_cells.paced, (size, 1)) for size in aims_table.SIZES[1:]),
    ]


class Aims(Experiment):
    name = "aims"
    title = "Aims of recording"
    conditions = (
        "64-byte packets unless a size is named, from net_null to /dev/null; the application's polling thread has one CPU, the "
        "recorder with its default options the other."
    )
    root_for = "DPDK's run-time folders and huge pages"
    programs = ("ringtap", "ringtap-fwd")
    built = (PLUGIN, regime.PROGRAM)
    tools = {"dpdk-testpmd": "dpdk-dev", "taskset": "util-linux"}
    huge_mb = MEMORY_MB + SPARE_MB
    repetitions, quick_repetitions = ROUNDS, QUICK_ROUNDS

    def cells(self, lab: Lab) -> Any:
        seconds = {
            aims_cells.demo: 10,
            aims_cells.push: 0,
            flight_cells.full: 2 * lab.o.aims_seconds + FILL_S,
            flight_cells.paced: 3 * (lab.o.aims_seconds + flight_cells.MARGIN_S) + FILL_S,
        }
        return [
            Cell(name, {}, START_S + seconds.get(function, lab.o.aims_seconds)) for name, function, _ in _measurements()
        ]

    def run(self, lab: Lab, cell: Cell, repetition: int) -> Any:
        function, arguments = next((f, a) for name, f, a in _measurements() if name == cell.key)
        with regime.around(lab) as around:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    values = function(lab, lab.o.aims_seconds, *arguments)
                    break
                except RuntimeError:
                    if function is not aims_cells.dumpcap or attempt == ATTEMPTS:
                        raise
        values["line_s"] = max(p["line_ns"] for p in around.probes) * 1e-9
        return Measurement(values, {"regime": around.regime, "probes": around.probes})


EXPERIMENT = Aims()


def parser() -> ArgumentParser:
    p = argparse.ArgumentParser(prog="ringtap_lab.run.aims", description=__doc__.split("\n")[0])
    build = os.environ.get("RINGTAP_BUILD", str(REPOSITORY / "build"))
    p.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help="comma list of (parts of) names of measurements"
    )
    p.add_argument("--list", action="store_true", help="print their names, measure nothing")
    p.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} round of {QUICK_SECONDS} s each: 2 minutes")
    p.add_argument(
        "--repetitions", type=int, metavar="N", help=f"of each, with those that are in the folder ({ROUNDS})"
    )
    p.add_argument(
        "--duration", type=units.seconds, dest="aims_seconds", metavar="TIME", help=f"of each round ({SECONDS:g}s)"
    )
    p.add_argument(
        "--within", type=units.seconds, metavar="TIME", help="begin nothing that would end later than TIME from now"
    )
    p.add_argument("--fresh", action="store_true", help="delete the folder's results first")
    p.add_argument("--report", action="store_true", help="only print the table of what is in the folder")
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")
    p.add_argument(
        "--cpus",
        type=lambda text: [int(n) for n in text.split(",")],
        default=[0, 1],
        help="of application and recorder",
    )
    p.add_argument("--nice", type=int, default=0, help="niceness of all that is measured (0)")
    p.add_argument("--build", type=pathlib.Path, default=build, help="build folder")
    p.add_argument(
        "-w", "--write", dest="out", type=pathlib.Path, metavar="DIR", help="folder of the results (BUILD/bench)"
    )
    return p


def _settings(options: Namespace, commit: str):
    """Settings that rounds of one run must share. Two builds with uncommitted changes never count as the same."""
    return {
        "quick": options.quick,
        "seconds": options.aims_seconds,
        "build": str(options.build),
        "cpus": options.cpus,
        "nice": options.nice,
        "commit": f"{commit} {uuid.uuid4()}" if commit and commit.endswith("-dirty") else commit,
    }


def _measure(options: Namespace):
    """Number of measurements that failed."""
    lab = Lab(options)
    journal = Journal(options.out, EXPERIMENT)
    try:
        EXPERIMENT.check(lab)
        facts = machine.describe(lab.program("ringtap"), options.cpus)
        journal.begin(_settings(options, facts["commit"]), facts)
        _, todo = runner.plan(EXPERIMENT, lab, journal.results, options.only)
        part = runner.Part(EXPERIMENT.name, todo, 0)
        if options.within:
            lab.until = time.monotonic() + options.within
        run = runner.Run(EXPERIMENT, lab, journal, runner.Progress([part]), part)
        run.execute()
        return run.failed
    finally:
        lab.close()
        journal.close()


def run(options: Namespace) -> Any:
    """Exit status."""
    options.build = options.build.resolve()
    options.out = options.out or options.build / "bench"
    options.aims_seconds = options.aims_seconds or (QUICK_SECONDS if options.quick else SECONDS)
    if options.list:
        print("\n".join(name for name, _, _ in _measurements()))
        return 0
    failed = 0
    if not options.report:
        for suffix in ("jsonl", "json", "csv") if options.fresh else ():
            (options.out / f"aims.{suffix}").unlink(missing_ok=True)
        niceness = Niceness(options.nice)
        try:
            failed = _measure(options)
        finally:
            niceness.release()
    results = found(options.out, EXPERIMENT)
    if not results:
        raise Trouble(f"{options.out} has no results of aims")
    print(
        (aims_table.as_json if options.json else aims_table.markdown)(results, runner.repetitions(EXPERIMENT, options))
    )
    return 1 if failed else 0


def main(argv: list[str] | None = None) -> int:
    try:
        return run(parser().parse_args(argv))
    except (Trouble, OSError) as e:
        print(f"ringtap_lab.run.aims: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ringtap_lab.run.aims: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
