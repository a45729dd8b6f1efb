# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-lab with one experiment that needs only the kernel, for tests of the framework."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from ringtap_lab.report.blocks import CONFIRMED, Claim, Datum, Plot, Ratio, Table, Text, Value, Verdict
from ringtap_lab.report.sources import Published
from ringtap_lab.run import cli, experiments
from ringtap_lab.run.experiment import Cell, Experiment, Measurement
from ringtap_lab.tools import process
from ringtap_lab.tools.errors import Trouble, Unavailable
from ringtap_lab.tools.process import run

sys.path.append(str(Path(__file__).resolve().parents[1]))
from harness.dpdk import HugePages


class Sample(Experiment):
    name = "sample"
    title = "Counting <bytes> & lines"
    question = "How many bytes does seq write?"
    conditions = "On a pipe."
    published = (Published("bytes", "20", "seq's manual"),)
    repetitions = 3

    def add_options(self, group):
        group.add_argument("--sample-last", type=int, default=10)
        group.add_argument("--sample-fail", default="")
        group.add_argument("--sample-stop", default="")
        group.add_argument("--sample-deaf", default="")  # processes that ignore SIGTERM
        group.add_argument("--sample-huge-mb", type=int, default=0)  # added by the run

    def check(self, lab):
        if lab.o.sample_last < 1:
            raise Trouble("--sample-last: must be at least 1")
        if lab.o.sample_huge_mb:
            lab.need_huge_pages(HugePages.free_mb() + lab.o.sample_huge_mb)

    def prepare(self, lab):
        return {"process": os.getpid()}

    def cells(self, lab):
        return [Cell(key, {"first": first}) for key, first in (("one", 1), ("two", 2), ("gone", 3))]

    def run(self, lab, cell, repetition):
        if cell.key == "gone":
            raise Unavailable("it is gone")
        if lab.o.sample_fail == f"{cell.key}{repetition}" and not os.path.exists("healed"):
            raise ValueError("was told to fail")
        if lab.o.sample_stop == f"{cell.key}{repetition}" and not os.path.exists("healed"):
            self._stop(lab)
        _, out, _ = run(["seq", str(cell.params["first"]), str(lab.o.sample_last)])
        return Measurement(
            {"bytes": len(out) + repetition, "lines": out.count("\n"), "late": int(repetition > 0)},
            {"text": out, "curve": {"y": [1.25, len(out) / 8]}},
        )

    def _stop(self, lab):
        """Creates everything that a run can leave in the system, and waits until it is ended."""
        open(os.path.join(lab.folder(), "socket"), "w").close()
        trap = ""
        if lab.o.sample_deaf:
            trap, process.PATIENCE_S = "trap '' TERM;", 0.5  # such a process is waited for
        with (
            lab.hosts() as (a, b),
            lab.running([*a.prefix, "sleep", "1000"]),
            lab.running(
                [*b.prefix, "sh", "-c", f"{trap} echo here; while :; do sleep 1; done"], stdout=subprocess.PIPE
            ) as other,
        ):
            other.stdout.readline()
            print("everything is there", file=sys.stderr, flush=True)
            signal.pause()

    def blocks(self, results):
        rows = [
            [
                o.key,
                "20",
                Value(o.key, "bytes", 1, 2),
                Value(o.key, "lines", 0.5, 1),
                Value(o.key, "bytes", how="least"),
                Value(o.key, "bytes", 1, 0, "B", how="greatest"),
                Value(o.key, "bytes", how="sum"),
                Value(o.key, "late", 1, 0, how="runs"),
                Ratio(Value(o.key, "bytes"), Value("one", "lines")),
                Ratio(Value(o.key, "bytes", how="least"), Value("one", "bytes"), 2, change=True),
                Datum(o.key, ("curve", "y", 1), 2),
            ]
            for o in results.outcomes.values()
        ]
        head = [
            "cell",
            "published bytes",
            "bytes",
            "half the lines",
            "least",
            "most",
            "in all",
            "late",
            "for a line",
            "more",
            "of a curve",
        ]
        return [
            Text("Of seq."),
            Table("Bytes", head, rows, published="20 bytes"),
            Plot(
                "Lines", lambda axes: axes.plot([1, 2], [3, 4], "o-", label="a"), ["one", "two"], published="20 bytes"
            ),
            Plot("Other lines", lambda axes: axes.plot([1, 2], [4, 3], "o-", label="b"), ["one"]),
        ]

    def summary(self, results):
        return [
            Claim("It writes 20 bytes.", "20 bytes", [("one", Value("one", "bytes"))], Verdict(CONFIRMED, "It does."))
        ]


class Other(Sample):
    """A second experiment."""

    name = "other"
    title = "Counting more"
    order = 200

    def add_options(self, group):
        pass

    def check(self, lab):
        pass

    def prepare(self, lab):
        return {}

    def cells(self, lab):
        return [Cell("three", {"first": 3}, 2.0)]


class Impossible(Other):
    name = "impossible"
    title = "Counting what is not there"
    order = 50

    def check(self, lab):
        raise Trouble("there is nothing to be counted")


class Confused(Other):
    """Is measured, but its report fails."""

    name = "confused"
    order = 300

    def blocks(self, results):
        return [Text(results.cell("four").key)]


def _load():
    """The experiments that the environment names."""
    known = {e.name: e for e in (Impossible(), Sample(), Other(), Confused())}
    return {name: e for name, e in known.items() if name in os.environ.get("LAB_SAMPLES", "sample").split(",")}


if __name__ == "__main__":
    experiments.load = _load
    sys.exit(cli.main())
