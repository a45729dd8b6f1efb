# SPDX-License-Identifier: BSD-3-Clause
"""The interface between an experiment and the framework.

An experiment consists of cells: things that are measured once in each repetition, independently of each other. The framework
runs them in alternating order, writes each result to the disk at once, resumes interrupted runs, and makes files and the page.
An experiment names its cells, measures one of them, and names the view (in report/) that shows the results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..tools import units

if TYPE_CHECKING:
    from typing import Any

    from ..report.blocks import Claim
    from ..tools.results import Results
    from .lab import Lab


@dataclass(frozen=True)
class Cell:
    """key: its name in files, options and on the page, of letters that need no quotes in a shell. params: what makes it differ
    from the others; columns of the CSV file. seconds: roughly how long it takes, for the time left."""

    key: str
    params: dict = field(default_factory=dict)
    seconds: float = 1.0


@dataclass
class Measurement:
    """values: numbers, by metric; the framework makes means and standard deviations of them. data: anything else that JSON can
    hold (curves, histograms), as small as possible: it is embedded in the page."""

    values: dict
    data: dict = field(default_factory=dict)


class Experiment:
    """Base class. lab is a lab.Lab: options, programs, names, network namespaces."""

    name = ""  # on the command line
    title = ""
    question = ""  # which it answers, a sentence or two
    conditions = ""  # how it is measured: what a reader must know to judge the values
    published = ()  # tuples of sources.Published
    view = None  # module with blocks() and summary()
    order = 100  # place in the report
    repetitions = 5
    quick_repetitions = 2
    prepared_names = {}  # name, scale, digits and unit of what prepare() gives, by key; {}: as they are
    prepare_s = 0.0  # how long prepare() takes, roughly
    length_s = None  # how long each rate is measured: (full, quick); an option if there is one
    # Without these nothing can be measured.
    root_for = "network namespaces and DPDK's run-time folders"
    programs = ()  # our programs
    built = ()  # files of the build folder
    tools = {}  # packages, by program of the system
    huge_mb = 0

    def add_options(self, group: Any) -> None:
        """group: an argparse group. Names begin with --NAME-, so that experiments do not clash."""
        if self.length_s:
            group.add_argument(
                f"--{self.name}-duration",
                dest=f"{self.name}_seconds",
                type=units.seconds,
                metavar="TIME",
                help="how long each rate is measured ({:g}s; with --quick {:g}s)".format(*self.length_s),
            )

    def length(self, lab: Lab) -> Any:
        return getattr(lab.o, f"{self.name}_seconds") or self.length_s[lab.quick]

    def check(self, lab: Lab) -> None:
        """Raises Trouble if none of it can be measured here."""
        lab.need_root(self.root_for)
        lab.need_cpus(2)
        for name in self.programs:
            lab.program(name)
        for path in self.built:
            lab.built(path)
        for name, package in self.tools.items():
            lab.tool(name, package)
        if self.huge_mb:
            lab.need_huge_pages(self.huge_mb)

    def prepare(self, lab: Lab) -> dict:
        """Measures values that all cells need, such as the machine's limit: a dict for JSON; kept for a run that is
        resumed, and found as lab.prepared."""
        return {}

    def cells(self, lab: Lab) -> Any:
        """List of Cell."""
        raise NotImplementedError

    def run(self, lab: Lab, cell: Any, repetition: int) -> Any:
        """Measures a cell once: a Measurement, or raises Unavailable. Any other exception is recorded as a failure of this cell,
        and the next one is measured."""
        raise NotImplementedError

    def blocks(self, results: Results) -> list:
        """Parts of the page, in order: blocks.Table, blocks.Plot and blocks.Text. results is a results.Results; cells may be
        missing in it."""
        return self.view.blocks(results)

    def summary(self, results: Results) -> list[Claim]:
        """A few of blocks.Claim, for the top of the page."""
        return self.view.summary(results)
