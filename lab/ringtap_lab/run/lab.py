# SPDX-License-Identifier: BSD-3-Clause
"""Resources of an experiment: options, programs, and things that are removed at its end."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..tools import netns, process, scope
from ..tools.errors import Trouble
from ..tools.hugepages import HugePages

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

# Where a build keeps what an installation has in PATH.
_BUILT = {"ringtap": "cli", "ringtap-fwd": "fwd", "ringtap-extcap": "extcap"}
PLUGIN = "probe/libringtap-probe.so"
QUICK_BUDGET = 0.35  # share of the time that an experiment may take
BUILD_IT = "build it by `make all`, or name the build folder by --build"


class Lab:
    """o: the options of the command line. prepared: what the experiment's prepare() gave. cpus: two are enough for all
    experiments."""

    def __init__(self, options: Namespace):
        self.o, self.quick, self.cpus = options, options.quick, options.cpus
        self.name = scope.own_name()
        self.prepared = {}
        self.repetitions = 1  # runs of each cell
        self.until = None  # time.monotonic() at which all measurements must have ended
        self.left_s = 0.0  # estimate for the measurements after the present one
        self._began = time.monotonic()
        self._number = itertools.count()
        self._stack = contextlib.ExitStack()
        self._folder = None
        os.environ[scope.VARIABLE] = self.name  # inherited by all processes that are started
        # Commands in reports are the same in every run, so that they can be compared.
        process.abbreviations.update({f"{options.build}/": "build/", self.name: "lab"})

    def begin_cell(self) -> None:
        """Names begin again: a cell's commands are the same in each repetition."""
        self._number = itertools.count()

    def spare_s(self, budget_s: Any) -> Any:
        """The time left for an experiment as a whole, less its further measurements. A quick
        run has a part of it."""
        return budget_s * (QUICK_BUDGET if self.quick else 1) - (time.monotonic() - self._began) - self.left_s

    def log(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    # Programs

    def program(self, name: str) -> str:
        """Path of one of our programs: of the build folder, else of PATH."""
        built = self.o.build / _BUILT.get(name, "") / name
        found = str(built) if built.exists() else shutil.which(name)
        if not found:
            raise Trouble(f"{name} is neither in {built.parent} nor in PATH: {BUILD_IT}")
        return found

    def built(self, path: str) -> str:
        """Path of a file of the build folder."""
        found = self.o.build / path
        if not found.exists():
            raise Trouble(f"{found} is not there: {BUILD_IT}")
        return str(found)

    def plugin(self) -> Any:
        """Path of the probe, for EAL's -d."""
        return self.built(PLUGIN)

    def probe_objects(self) -> list:
        """Paths of the code that the probe loads, which has its USDT sites: one per ABI of DPDK."""
        found = sorted((Path(self.plugin()).parent / "ringtap").glob("probe-abi*.so"))
        if not found:
            raise Trouble(f"the probe is not built: {BUILD_IT}")
        return [str(path) for path in found]

    def tool(self, name: str, package: str) -> str:
        """Path of a program of the system."""
        found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin")
        if not found:
            raise Trouble(f"{name} is not installed: apt install {package}")
        return found

    # Requirements

    def need_root(self, why: str) -> None:
        if os.geteuid() != 0:
            raise Trouble(f"needs root, for {why}: use sudo")

    def need_cpus(self, count: int) -> None:
        if not set(self.cpus) <= os.sched_getaffinity(0) or len(set(self.cpus)) < count:
            raise Trouble(f"needs {count} CPUs that may be used: name them by --cpus")

    def need_huge_pages(self, megabytes: int) -> None:
        """Adds what is missing; given back at the end of the run, or by the next one."""
        pages = HugePages(megabytes, os.path.join(scope.FOLDERS, self.unique(scope.HUGE_PAGES)))
        if pages.reason:
            raise Trouble(f"{pages.reason}: {megabytes} MiB are needed; free memory, or set vm.nr_hugepages")
        self._stack.callback(pages.release)

    # Things with names that only this run has

    def unique(self, kind: str) -> str:
        """A name, such as for --file-prefix. The next run removes things of this name if this one cannot."""
        return f"{self.name}-{kind}{next(self._number)}"

    def folder(self) -> str:
        """A folder for sockets and the like, below no world-writable one."""
        if not self._folder:
            self._folder = os.path.join(scope.FOLDERS, self.name)
            os.mkdir(self._folder, 0o700)
        return self._folder

    @contextlib.contextmanager
    def hosts(self) -> Iterator:
        """Two network namespaces, joined by a pair of veth whose ends are both called eth0."""
        with contextlib.ExitStack() as stack:
            a, b = (stack.enter_context(contextlib.closing(netns.Namespace(self.unique("n")))) for _ in range(2))
            netns.join(a, b)
            yield a, b

    @contextlib.contextmanager
    def running(self, argv: list[str], **kwargs) -> Iterator:
        """A process, for as long as the context lasts. Its command is recorded."""
        p = process.start([str(a) for a in argv], **kwargs)
        try:
            yield p
        finally:
            process.stop(p)

    def close(self) -> None:
        """After this nothing of the run is left in the system, however it ended."""
        try:
            self._stack.close()
        finally:
            scope.remove(lambda name: name == self.name)
            self._folder = None
