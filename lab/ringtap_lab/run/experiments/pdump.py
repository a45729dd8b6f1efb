# SPDX-License-Identifier: BSD-3-Clause
"""How much of two ports' traffic is captured, by the way in which packets get into the file, and the rate that the application
keeps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...report import pdump_view
from ...report.pdump_view import BATCH, DUMPCAP, GAP, LINE_BPS, OURS, PORTS, SIZES, SMALLEST, UNTOUCHED, WAYS, line_pps
from ...tools import process
from ...tools.errors import Trouble, Unavailable
from .. import attached, forwarder
from ..experiment import Cell, Experiment, Measurement
from ..lab import PLUGIN
from ..testpmd import MEMORY_MB, IoForwarding, TestPmd

if TYPE_CHECKING:
    from typing import Any

    from ..lab import Lab

QUICK_SIZES = (64, 256, 512)
SPARE_MB = 64
ATTEMPTS = 3  # dpdk-dumpcap ends some applications


class Pdump(Experiment):
    name = "pdump"
    title = "Writing packets: one by one, buffered, in batches"
    question = (
        "How much of what two ports receive is captured, by the way in which it is written, and how fast does the "
        "application forward meanwhile?"
    )
    conditions = (
        "dpdk-testpmd forwards from port to port (io) between two net_null ports, as fast as its one CPU can, which with small "
        "packets is several times the line rate of two ports of 10 Gbit/s: so the ways of writing meet their own limits, and not "
        "the wire's. Captured is what both ports receive (dpdk-dumpcap: and send) to /dev/null, by one process on the other CPU. "
        "The ways differ only in what is done with the packets: one write() for each (bench/write_modes), copied into a buffer of "
        "1 MiB that is written when it is full (the same), batches written straight out of the ring, where packets lie in the "
        "file's format (ringtap record as it is), or 16 bytes of each read and nothing written (bench/write_modes): the reader's "
        "limit. Rates are packets per second that the polling thread ran. The published values are of one write for each packet in "
        "dpdk-dumpcap as it was, then buffered writes, then batches."
    )
    published = pdump_view.PUBLISHED
    view = pdump_view
    order = 50
    length_s = 0.8, 0.3
    root_for = "DPDK's run-time folders and huge pages"
    programs = "ringtap", forwarder.PROGRAM
    built = "bench/write_modes", PLUGIN
    tools = {"dpdk-testpmd": "dpdk-dev", "taskset": "util-linux"}
    huge_mb = MEMORY_MB + SPARE_MB
    repetitions = 3
    quick_repetitions = 1

    def cells(self, lab: Lab) -> Any:
        seconds = 1.5 * EXPERIMENT.length(lab) + 1.5
        found = [
            Cell(f"{way}-{size}", {"way": way, "size": size, "paced": 0}, seconds)
            for size in (QUICK_SIZES if lab.quick else SIZES)
            for way in WAYS
        ]
        return found + [Cell(f"paced-{way}", {"way": way, "size": SMALLEST, "paced": 1}, seconds) for way in OURS]

    def run(self, lab: Lab, cell: Any, repetition: int) -> Any:
        way, size = cell.params["way"], cell.params["size"]
        if cell.params["paced"]:
            return at_line_rate(lab, way, size)
        for attempt in range(1, ATTEMPTS + 1):
            app = TestPmd(
                IoForwarding(PORTS, size),
                lab.cpus,
                True,
                None if way in (UNTOUCHED, DUMPCAP) else lab.plugin(),
                lab.unique("app"),
            )
            try:
                return at_the_limit(lab, app, way, size)
            except (Trouble, Unavailable):
                raise
            except Exception as e:
                if way != DUMPCAP or attempt == ATTEMPTS:
                    raise RuntimeError(f"{e}{app.obituary()}") from e
            finally:
                app.stop()
        raise AssertionError("not reached")


def tool(lab: Lab, way: str, app: Any) -> Any:
    if way == DUMPCAP:
        return attached.Dumpcap(lab, app)
    if way == BATCH:
        return attached.Record(lab, app, direction="rx")
    return attached.WriteMode(lab, app, way)


def forwarded(pps: Any, size: Any) -> dict:
    bps = pps * (size + GAP) * 8
    return {"forwarded_pps": pps, "forwarded_bps": bps, "forwarded_line": bps / LINE_BPS}


def captured(counts: Any, pps: Any, size: Any) -> dict:
    """pps: of the packets that it was given."""
    pps *= counts.captured / counts.seen
    bps = pps * (size + GAP) * 8
    return {
        "captured_pps": pps,
        "captured_bps": bps,
        "captured_line": bps / LINE_BPS,
        "loss": counts.lost / counts.seen,
        "seen": counts.seen,
        "captured": counts.captured,
        "lost": counts.lost,
    }


def at_the_limit(lab: Lab, app: Any, way: str, size: Any) -> Any:
    untouched = app.rate_of_own_time(EXPERIMENT.length(lab) / 2)
    if way == UNTOUCHED:
        return Measurement(forwarded(untouched, size))
    with tool(lab, way, app) as t:
        before = app.polling_times()
        pps = app.rate_of_own_time(EXPERIMENT.length(lab))
        disturbed = process.waiting_share(before, app.polling_times())
        counts = t.counts()
    seen_pps = pps * (2 if way == DUMPCAP else 1)  # it captures each packet twice, received and sent
    return Measurement(
        {
            **captured(counts, seen_pps, size),
            **forwarded(pps, size),
            "of_untouched": pps / untouched,
            "untouched_pps": untouched,
            "disturbed": disturbed,
        }
    )


def at_line_rate(lab: Lab, way: str, size: Any) -> Any:
    """Two sinks that take packets off their ports at line rate, in one thread."""
    devices = [a for i in range(PORTS) for a in ("--vdev", f"net_null{i},size={size}")]
    rate = str(round(line_pps(size) / PORTS))
    end = forwarder.End([], [*devices, "--no-huge"], "net_null0", lab.cpus[0])
    sinks = forwarder.Forwarder(lab, end, "sink", ["--role", f"sink:net_null1@{lab.cpus[0]}", "--sink-rate", rate])
    with sinks:
        with tool(lab, way, sinks) as t:
            time.sleep(2 * EXPERIMENT.length(lab))
            counts = t.counts()
        report = sinks.report()
    pps = counts.seen / counts.seconds  # while it was attached: by themselves the sinks are faster
    return Measurement({**captured(counts, pps, size), **forwarded(pps, size), "disturbed": report.disturbed()})


EXPERIMENT = Pdump()
