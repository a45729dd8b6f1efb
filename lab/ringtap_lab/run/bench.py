# SPDX-License-Identifier: BSD-3-Clause
"""`make bench`: ringtap against dpdk-dumpcap, the bare copy loop and dd, alternately in one run.

Prints what it runs and a report, and writes bench.md and bench.json. Judges nothing by time: the
exit status says only whether measuring worked."""
import argparse
import json
import os
import pathlib
import shutil
import sys
import time

from ..report import markdown
from ..tools import machine, process
from ..tools.hugepages import HugePages
from ..tools.niceness import Niceness
from . import capture, collectors, forwarders, libpcap, measure, testpmd, yardsticks

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
SIZES = [64, 128, 256, 320, 384, 512, 1518]
PARTS = ["net_null", "net_ring", "disk", "copy", "merge", "pcap", "instruments", "forwarders"]
MERGE = [(1, 32), (2, 32), (4, 32), (8, 32), (4, 1)]  # rings, packets in a burst
SPARE_MB = 128  # huge pages for what a secondary process allocates


def arguments(argv):
    build = os.environ.get("RINGTAP_BUILD", str(REPOSITORY / "build"))
    p = argparse.ArgumentParser(prog="ringtap_lab.run.bench", description=__doc__.split("\n")[0])
    p.add_argument("--quick", action="store_true", help="fewer sizes, one repetition: 3 minutes")
    p.add_argument("--only", help=f"comma list of {','.join(PARTS)} (all)")
    p.add_argument("--tools", default="dpdk-dumpcap,ringtap", help="comma list")
    p.add_argument("--sizes", help="comma list of frame sizes in bytes")
    p.add_argument("--repeat", type=int, help="repetitions (3)")
    p.add_argument("--seconds", type=int, help="length of one capture (2)")
    p.add_argument("--cpus", default="0,1", help="of application and capture")
    p.add_argument("--nice", type=int, default=0,
                   help="niceness of all that is measured, for machines that others use too (0)")
    p.add_argument("--record-options", default="", help="more options for ringtap record")
    p.add_argument("--build", default=build, help="build folder")
    p.add_argument("--out", help="folder for report and data (BUILD/bench)")
    p.add_argument("--disk-dir", help="folder to capture into (OUT)")
    return complete(p.parse_args(argv))


def complete(o):
    o.only = o.only.split(",") if o.only else PARTS
    unknown = set(o.only) - set(PARTS)
    if unknown:
        sys.exit(f"ringtap_lab.run.bench: no such part: {', '.join(sorted(unknown))}")
    o.tools = o.tools.split(",")
    quick_sizes = [64, 512, 1518]
    o.sizes = ([int(s) for s in o.sizes.split(",")] if o.sizes
               else quick_sizes if o.quick else SIZES)
    o.repeat = o.repeat or (1 if o.quick else 3)
    o.seconds = o.seconds or (1 if o.quick else 2)
    o.cpus = [int(c) for c in o.cpus.split(",")]
    o.build = pathlib.Path(o.build).resolve()
    o.out = pathlib.Path(o.out) if o.out else o.build / "bench"
    o.disk_dir = o.disk_dir or str(o.out)
    o.retry_until = time.monotonic() + (30 if o.quick else 240)
    return o


class Bench:
    def __init__(self, options):
        self.o = options
        self.store = measure.Store()
        self.skipped = []
        self.ringtap = options.build / "cli" / "ringtap"
        self.plugin = options.build / "probe" / "libringtap-probe.so"
        self.sinks = ["null", "disk"] if "disk" in options.only else ["null"]

    def skip(self, what):
        self.skipped.append(what)
        print(f"skipped: {what}", file=sys.stderr, flush=True)

    def make_tools(self):
        """(tool, plugin) of each life of the application; without tools it runs untouched."""
        lives = [(None, None)]
        if "dpdk-dumpcap" in self.o.tools:
            if not self.o.huge:
                self.skip("dpdk-dumpcap: a secondary process needs huge pages")
            elif not shutil.which(capture.DUMPCAP):
                self.skip("dpdk-dumpcap: not installed")
            else:
                lives[0] = (capture.Dumpcap(self.o.cpus[1]), None)
        if "ringtap" in self.o.tools:
            if self.has_ringtap():
                extra = self.o.record_options.split()
                tool = capture.Ringtap(self.o.cpus[1], str(self.ringtap), extra)
                lives.append((tool, str(self.plugin)))
        return lives

    def has_ringtap(self):
        if self.ringtap.exists() and self.plugin.exists():
            return True
        why = f"ringtap: {self.ringtap} or {self.plugin} is not built"
        if why not in self.skipped:
            self.skip(why)
        return False

    def sources(self):
        sizes = {"net_null": self.o.sizes, "net_ring": self.o.sizes[:1]}
        return [testpmd.Source(name, size) for name, of in sizes.items() if name in self.o.only
                for size in of]

    def applications(self, lives, sources, repetition):
        for source in sources:
            # Whoever goes second finds other caches and clocks: take turns.
            for tool, plugin in lives if repetition % 2 == 0 else reversed(lives):
                measure.application(self.store, source, tool, self.sinks, self.o, plugin)

    def try_to(self, what, function, *key):
        try:
            self.store.add(function(), *key)
        except (RuntimeError, OSError, ValueError, KeyError) as e:
            self.store.error(what, e)

    def own(self, name):
        """Path of one of our benchmark programs, or None."""
        path = self.o.build / "bench" / name
        if path.exists():
            return str(path)
        if f"{name} is not built" not in self.skipped:
            self.skip(f"{name} is not built")
        return None

    def yardsticks(self):
        loop = self.own("copy_loop") if "copy" in self.o.only else None
        for size in self.o.sizes if loop else []:
            self.try_to("copy loop", lambda s=size: yardsticks.copy_loop(loop, s, self.o.cpus),
                        "copy", None, size)
        merger = self.own("merge_bench") if "merge" in self.o.only else None
        for rings, burst in MERGE if merger else []:
            self.try_to("merge", lambda r=rings, b=burst: yardsticks.merge(
                merger, self.o.cpus[1], r, b), "merge", f"bursts of {burst}", rings)
        if "disk" in self.o.only:
            self.try_to("dd", lambda: yardsticks.dd_direct(self.o.disk_dir, 2048), "dd")

    def measure(self):
        sources = self.sources()
        lives = self.make_tools() if sources else []
        for repetition in range(self.o.repeat):
            print(f"# repetition {repetition + 1} of {self.o.repeat}", flush=True)
            self.yardsticks()
            self.applications(lives, sources, repetition)
            if "pcap" in self.o.only:
                libpcap.measure(self)
            if "instruments" in self.o.only:
                collectors.measure(self, repetition)
            if "forwarders" in self.o.only:
                forwarders.measure(self, repetition)

    def write(self):
        about = machine.describe(str(self.ringtap), self.o.cpus)
        text = markdown.markdown(self.store, about, process.commands, self.skipped)
        data = {"machine": about, "aims": markdown.aims(self.store), "results": self.store.as_list(),
                "commands": process.commands, "skipped": self.skipped,
                "errors": self.store.errors}
        (self.o.out / "bench.md").write_text(text, encoding="utf-8")
        with open(self.o.out / "bench.json", "w", encoding="utf-8") as f:
            json.dump(data, f, indent=1)
        print("\n" + text + f"\nwritten to {self.o.out / 'bench.md'} and bench.json")


def main(argv=None):
    options = arguments(argv)
    if not set(options.cpus) <= os.sched_getaffinity(0) or len(set(options.cpus)) != 2:
        sys.exit("ringtap_lab.run.bench: needs two cpus, one for the application and one for capture")
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
        pages.release()
        niceness.release()
    bench.write()
    return 0 if bench.store.series else 1


if __name__ == "__main__":
    sys.exit(main())
