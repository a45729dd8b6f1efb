# SPDX-License-Identifier: BSD-3-Clause
"""What an experiment is to the framework.

An experiment is cut into cells: things that are measured once in each repetition, apart from each
other. The framework runs them in alternating order, writes each result down at once, goes on where
an interrupted run stopped, and makes files and the page. All that an experiment does is to say what
its cells are, measure one of them, and tell how the results are shown."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """key: its name in files, options and on the page, of letters that need no quotes in a shell.
    params: what makes it differ from the others; columns of the CSV file.
    seconds: roughly how long it takes, for the time left."""

    key: str
    params: dict = field(default_factory=dict)
    seconds: float = 1.0


@dataclass
class Measurement:
    """values: numbers, by metric; the framework makes means and standard deviations of them.
    data: anything else that JSON can hold (curves, histograms), as small as may be: it is embedded
    in the page. Only that of the first repetition is kept if the experiment does not say otherwise."""

    values: dict
    data: dict = field(default_factory=dict)


class Experiment:
    """Base class. lab is a lab.Lab: options, programs, names, network namespaces."""

    name = ""  # on the command line
    title = ""
    question = ""  # what it answers, a sentence or two
    conditions = ""  # how it is measured: what a reader must know to judge the figures
    published = ()  # of sources.Published
    order = 100  # place in the report
    repetitions = 5
    quick_repetitions = 2
    prepared_names = {}  # of what prepare() gives: name, scale, digits, unit, by key; {}: as they are
    prepare_s = 0.0  # how long prepare() takes, roughly

    def add_options(self, group):
        """group: an argparse group. Names begin with --NAME-, so that experiments do not clash."""

    def check(self, lab):
        """Raises Trouble if none of it can be measured here."""

    def prepare(self, lab):
        """What all cells need to know and has to be measured first, such as the machine's limit.
        A dict for JSON; kept for a run that is resumed, and found as lab.prepared."""
        return {}

    def cells(self, lab):
        """List of Cell."""
        raise NotImplementedError

    def run(self, lab, cell, repetition):
        """Measures a cell once: a Measurement, or raises Unavailable. Any other exception is
        recorded as a failure of this cell, and the next one is measured."""
        raise NotImplementedError

    def blocks(self, results):
        """What the page shows, in order: blocks.Table, blocks.Plot and blocks.Text.
        results is a results.Results; cells may be missing in it."""
        return []

    def summary(self, results):
        """What the top of the page says of it: a few of blocks.Claim, as a manager would ask."""
        return []
