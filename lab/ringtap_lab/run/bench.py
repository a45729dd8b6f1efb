# SPDX-License-Identifier: BSD-3-Clause
"""`make bench`: ringtap against dpdk-dumpcap, the bare copy loop and dd, alternately in one run.

Prints the commands and a report, and writes bench.md and bench.json. No time makes it fail: the exit status shows only
whether measuring worked."""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import pathlib
import re
import shutil
import sys
import time
from typing import TYPE_CHECKING

from ..report import markdown, summary
from ..tools import machine, process, units
from ..tools.hugepages import HugePages
from ..tools.niceness import Niceness
from . import attached, collectors, flows, forwarders, libpcap, measure, testpmd
from .lab import Lab

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
STORED = REPOSITORY / "lab" / "stored"  # a run for each kind of machine
SIZES, QUICK_SIZES = [64, 128, 256, 320, 384, 512, 1518], [64, 512, 1518]
PARTS = ["net_null", "net_ring", "disk", "copy", "push", "merge", "pcap", "collectors", "forwarders", "flows"]
MERGE = [(1, 32), (2, 32), (4, 32), (8, 32), (4, 1)]  # rings, packets in a burst
STORED_REPETITIONS = 8  # three of a later run can then lie apart beyond the noise
SPARE_MB = 128  # huge pages that a secondary process allocates
DD_MB, DD_BLOCK_MB = 2048, 4


def _numbers(text: str):
    return [int(n) for n in text.split(",")]


def parser() -> Any:
    build = os.environ.get("RINGTAP_BUILD", str(REPOSITORY / "build"))
    p = argparse.ArgumentParser(prog="ringtap_lab.run.bench", description=__doc__.split("\n")[0])
    p.add_argument("--quick", action="store_true", help="fewer sizes, one repetition: 3 minutes")
    p.add_argument(
        "--only", type=lambda text: text.split(","), default=PARTS, help=f"comma list of {','.join(PARTS)} (all)"
    )
    p.add_argument("--tools", type=lambda text: text.split(","), default=["dpdk-dumpcap", "ringtap"], help="comma list")
    p.add_argument("--sizes", type=_numbers, help="comma list of frame sizes in bytes")
    p.add_argument(
        "--repetitions", type=int, metavar="N", help=f"measurements of each (3; {STORED_REPETITIONS} with --store)"
    )
    p.add_argument("--duration", dest="seconds", type=units.seconds, metavar="TIME", help="length of one capture (2s)")
    p.add_argument("--cpus", type=_numbers, default=[0, 1], help="of application and capture")
    p.add_argument(
        "--nice", type=int, default=0, help="niceness of all that is measured, for machines that others use too (0)"
    )
    p.add_argument("--record-options", type=str.split, default=[], help="more options for ringtap record")
    p.add_argument("--build", type=pathlib.Path, default=build, help="build folder")
    p.add_argument(
        "-w", "--write", dest="out", type=pathlib.Path, metavar="DIR", help="folder for report and data (BUILD/bench)"
    )
    p.add_argument(
        "--store",
        action="store_true",
        help="keep this run, of a quiet machine, in lab/stored, for later ones to be compared with",
    )
    p.add_argument("--disk-dir", help="folder to capture into (that of -w)")
    return p


def arguments(argv: list[str] | None) -> Any:
    p = parser()
    o = p.parse_args(argv)
    if unknown := set(o.only) - set(PARTS):
        p.error(f"no such part: {', '.join(sorted(unknown))}")
    o.sizes = o.sizes or (QUICK_SIZES if o.quick else SIZES)
    if o.store and (o.quick or set(o.only) != set(PARTS)):
        p.error("--store replaces the stored run: not with --quick, nor with a part only")
    o.repetitions = o.repetitions or (1 if o.quick else STORED_REPETITIONS if o.store else 3)
    o.seconds = o.seconds or (1 if o.quick else 2)
    o.build = o.build.resolve()
    o.out = o.out or o.build / "bench"
    o.disk_dir = o.disk_dir or str(o.out)
    o.retry_until = time.monotonic() + (30 if o.quick else 240)
    return o


class Bench:
    def __init__(self, options: Namespace):
        self.o = options
        self.lab = Lab(options)
        self.store = measure.Store()
        self.skipped = []
        self.load = round(os.getloadavg()[0], 2)  # before anything runs
        self.ringtap = options.build / "cli" / "ringtap"
        self.plugin = options.build / "probe" / "libringtap-probe.so"
        self.sinks = ["null", "disk"] if "disk" in options.only else ["null"]
        self.tools = {
            "dpdk-dumpcap": attached.Dumpcap,
            "ringtap": functools.partial(attached.Record, more=options.record_options),
        }

    def skip(self, what: str) -> None:
        if what not in self.skipped:
            self.skipped.append(what)
            print(f"skipped: {what}", file=sys.stderr, flush=True)

    def applications(self) -> Any:
        """(tool, plugin) of each application; without tools it runs untouched."""
        found = [(None, None)]
        if "dpdk-dumpcap" in self.o.tools:
            if not self.o.huge:
                self.skip("dpdk-dumpcap: a secondary process needs huge pages")
            elif not shutil.which("dpdk-dumpcap"):
                self.skip("dpdk-dumpcap: not installed")
            else:
                found[0] = ("dpdk-dumpcap", None)
        if "ringtap" in self.o.tools and self.has_ringtap():
            found.append(("ringtap", str(self.plugin)))
        return found

    def has_ringtap(self) -> bool:
        if self.ringtap.exists() and self.plugin.exists():
            return True
        self.skip(f"ringtap: {self.ringtap} or {self.plugin} is not built")
        return False

    def sources(self) -> list:
        sizes = {"net_null": self.o.sizes, "net_ring": self.o.sizes[:1]}
        return [testpmd.Source(name, size) for name, of in sizes.items() if name in self.o.only for size in of]

    def try_to(self, what: str, function: Any) -> None:
        try:
            function()
        except Exception as e:  # any: the rest is worth measuring
            self.store.error(what, e)

    def own(self, part: Any, name: str, argv: list[str] | None, add: Any, prefix: Any = ()) -> None:
        """One of our benchmark programs: add(line) gets each line that it prints."""
        path = self.o.build / "bench" / name
        if part in self.o.only and not path.exists():
            self.skip(f"{name} is not built")
        elif part in self.o.only:

            def once():
                status, out, err = process.run([*prefix, str(path), *map(str, argv)])
                if status != 0:
                    raise RuntimeError(f"{name} ended with status {status}: {err.strip()}")
                for line in out.splitlines():
                    add(json.loads(line))

            self.try_to(name, once)

    def rate(self, part: Any, *key) -> Callable:
        """For own(): the median."""
        return lambda line: self.store.add(line["mpps_median"] * 1e6, part, *key)

    def dd(self) -> None:
        """Bytes per second that dd writes with O_DIRECT into a new file."""
        path = os.path.join(self.o.disk_dir, "dd.bin")
        try:
            status, _, err = process.run(
                [
                    "dd",
                    "if=/dev/zero",
                    f"of={path}",
                    f"bs={DD_BLOCK_MB}M",
                    f"count={DD_MB // DD_BLOCK_MB}",
                    "oflag=direct",
                ],
                {"LC_ALL": "C"},
            )
            found = re.search(r"(\d+) bytes .* copied, ([0-9.e+-]+) s", err)
            if status != 0 or not found:
                raise RuntimeError(err.strip())
            self.store.add(int(found.group(1)) / float(found.group(2)), "dd")
        finally:
            if os.path.exists(path):
                os.unlink(path)

    def yardsticks(self) -> None:
        """Upper bounds of the machine."""
        for size in self.o.sizes if "copy" in self.o.only else ():
            with self.store.between_probes(self.lab):
                self.own(
                    "copy",
                    "copy_loop",
                    ["-l", size, "-c", ",".join(map(str, self.o.cpus)), "-n", 3, "-t", 100],
                    self.rate("copy", None, size),
                )
        self.own(
            "push",
            "push_bench",
            [],
            lambda line: self.store.add(line["ns_quartile"] * 1e-9, "push", line["packets"]),
            attached.on_cpu(self.lab),
        )
        for rings, burst in MERGE:
            self.own(
                "merge",
                "merge_bench",
                ["-r", rings, "-b", burst],
                self.rate("merge", f"bursts of {burst}", rings),
                attached.on_cpu(self.lab),
            )
        if "disk" in self.o.only:
            self.try_to("dd", self.dd)

    def measure(self) -> None:
        sources = self.sources()
        applications = self.applications() if sources else []
        for repetition in range(self.o.repetitions):
            print(f"# repetition {repetition + 1} of {self.o.repetitions}", flush=True)
            self.store.round = repetition
            self.yardsticks()
            for source in sources:
                # The second one finds other caches and clocks: they take turns.
                for tool, plugin in applications[:: 1 if repetition % 2 == 0 else -1]:
                    measure.application(self, source, tool, plugin)
            for part, module in (
                ("pcap", libpcap),
                ("collectors", collectors),
                ("forwarders", forwarders),
                ("flows", flows),
            ):
                if part in self.o.only:
                    module.measure(self, repetition)

    def stored(self, file: pathlib.Path) -> dict | None:
        """An earlier run on such a machine."""
        if not file.exists():
            return None
        try:
            return summary.checked(json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as e:
            self.skip(f"the comparison with {file}, which `make bench` has not made: {e!r}")
            return None

    def write(self) -> None:
        about = {**machine.describe(str(self.ringtap), self.o.cpus), "load": self.load}
        found = summary.results(self.store)
        file = STORED / f"{summary.kind_of(about)}.json"
        stored = self.stored(file)
        page = markdown.page(found, stored, about)
        text = f"{page}\n{markdown.details(self.store, process.commands, self.skipped)}"
        data = {
            "machine": about,
            "summary": found,
            "aims": markdown.aims(self.store),
            "results": self.store.as_list(),
            "commands": process.commands,
            "skipped": self.skipped,
            "errors": self.store.errors,
        }
        (self.o.out / "bench.md").write_text(text, encoding="utf-8")
        (self.o.out / "bench.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
        print(f"\n{page}\nAll tables are in {self.o.out / 'bench.md'}, all values in bench.json.")
        if self.o.store:
            STORED.mkdir(exist_ok=True)
            kept = summary.store_of(found, about, datetime.date.today().isoformat())
            file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            print(f"Stored in {file}.")


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    if not set(options.cpus) <= os.sched_getaffinity(0) or len(set(options.cpus)) != 2:
        sys.exit("ringtap_lab.run.bench: needs two CPUs, one for the application and one for the capture")
    options.out.mkdir(parents=True, exist_ok=True)
    niceness = Niceness(options.nice)
    pages = HugePages(testpmd.MEMORY_MB + SPARE_MB)
    options.huge = pages.reason is None
    bench = Bench(options)
    if pages.reason:
        bench.skip(pages.reason + "; the application runs with --no-huge")
    try:
        bench.measure()
    except KeyboardInterrupt:
        bench.skip("the rest: interrupted")
    finally:
        bench.lab.close()
        pages.release()
        niceness.release()
    bench.write()
    return 0 if bench.store.series else 1


if __name__ == "__main__":
    sys.exit(main())
