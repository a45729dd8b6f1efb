# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-lab with one experiment that needs nothing but the kernel: for tests of the framework."""
import os
import signal
import subprocess
import sys
from pathlib import Path

from ringtap_lab import cli, experiments
from ringtap_lab.blocks import Plot, Table, Text, Value
from ringtap_lab.experiment import Cell, Experiment, Measurement, Published, Trouble, Unavailable
from ringtap_lab.process import run

sys.path.append(str(Path(__file__).resolve().parents[1]))
from harness.dpdk import HugePages  # noqa: E402


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
        group.add_argument("--sample-deaf", default="")  # to SIGTERM
        group.add_argument("--sample-huge-mb", type=int, default=0)  # more than there are

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
        return Measurement({"bytes": len(out) + repetition, "lines": out.count("\n")}, {"text": out})

    def _stop(self, lab):
        """Everything that a run can have in the system, and then waits to be ended."""
        open(os.path.join(lab.folder(), "socket"), "w").close()
        trap = "trap '' TERM;" if lab.o.sample_deaf else ""
        with lab.hosts() as (a, b):
            with lab.running([*a.prefix, "sleep", "1000"]), \
                 lab.running([*b.prefix, "sh", "-c", f"{trap} echo here; while :; do sleep 1; done"],
                             stdout=subprocess.PIPE) as other:
                other.stdout.readline()
                print("everything is there", file=sys.stderr, flush=True)
                signal.pause()

    def blocks(self, results):
        rows = [[o.key, Value(o.key, "bytes", 1, 2), Value(o.key, "lines", 0.5, 1)]
                for o in results.outcomes.values()]
        return [Text("Of seq."), Table("Bytes", ["cell", "bytes", "half the lines"], rows, published="20"),
                Plot("Lines", lambda axes: axes.plot([1, 2], [3, 4], "o-", label="a"), ["one", "two"])]

    def summary(self, results):
        return [("bytes", "20", Value("one", "bytes"))]


if __name__ == "__main__":
    experiments.load = lambda: {"sample": Sample()}
    sys.exit(cli.main())
