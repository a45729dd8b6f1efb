# SPDX-License-Identifier: BSD-3-Clause
"""Capture, loss and cost of recording with more polling threads and more recorders, and the cost of many threads and queues for the
monitors."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING

from ...report import cores_view
from ...report.cores_view import MERGES, QUEUES, RECORDERS, THREADS, TOUR_THREADS
from ...tools import process, topology
from .. import attached
from ..experiment import Cell, Experiment, Measurement
from ..lab import PLUGIN
from ..testpmd import MEMORY_MB, PROGRAM, Source, TestPmd

if TYPE_CHECKING:
    from typing import Any

    from ..lab import Lab

SIZE = 64  # bytes
MBUFS = 65536
WINDOW_S, QUICK_WINDOW_S = 0.4, 0.3  # for the application's rate before and after
WARM_S = 0.4  # until caches and clocks are those of a running application
SPARE_MB = 128
BUFFER_MB = 32  # a recorder's, for each thread
TOUR_PORTS = 4
ATTACHES = 5
MERGE_PROGRAM = "bench/merge_bench"
READ_S = 20  # until a monitor must have shown all queues


class Ports(Source):
    """Ports of net_null, each with some queues, and threads that receive from all of these by turns."""

    def __init__(self, ports: Any, queues: Any, threads: int, mode: str = "rxonly"):
        super().__init__("net_null", SIZE)
        self.ports = [f"net_null{i}" for i in range(ports)]
        self.eal = [a for name in self.ports for a in ("--vdev", f"{name},size={SIZE}")]
        self.app = [
            f"--forward-mode={mode}",
            f"--nb-cores={threads}",
            f"--rxq={queues}",
            f"--txq={queues}",
            f"--total-num-mbufs={MBUFS}",
        ]


class Cores(Experiment):
    name = "cores"
    title = "Many cores: threads, recorders, queues"
    question = (
        "How many packets of an application with several polling threads do one and two recorders capture, what does it cost the "
        "application, and where does it stop to grow? Do monitors keep up with many threads and queues?"
    )
    conditions = (
        f"testpmd receives {SIZE}-byte packets from net_null as fast as it can, one port for each polling thread, nothing is sent. "
        "ringtap record has its default options and writes to /dev/null; two recorders have one half of the ports each. Each polling "
        "thread and each recorder has a CPU of its own, on cores of their own as far as there are some. The cost is the time between "
        "two packets of a thread while it is recorded, less the time without a recorder just before and just after. Merging alone: "
        "one thread reads filled rings, 64-byte packets in bursts of 32, and does nothing with them. The tour: "
        f"{TOUR_PORTS} ports with {QUEUES // TOUR_PORTS} queues each, forwarded (io) by up to {TOUR_THREADS} threads, without a tool and "
        f"with `ringtap top` and `ringtap latency`; then {ATTACHES} recorders attach and detach."
    )
    view = cores_view
    root_for = "DPDK's run-time folders and huge pages"
    programs = ("ringtap",)
    built = (PLUGIN, MERGE_PROGRAM)
    tools = {PROGRAM: "dpdk-dev", "taskset": "util-linux"}
    order = 60
    repetitions = 3
    quick_repetitions = 1
    length_s = 2.0, 1.0

    @property
    def huge_mb(self) -> Any:
        return MEMORY_MB + SPARE_MB + 2 * BUFFER_MB * 16

    def cells(self, lab: Lab) -> Any:
        cpus, seconds = len(_cpus(lab)), self.length(lab) + 3
        cells = [
            Cell(f"record-{threads}x{recorders}", {"threads": threads, "recorders": recorders}, seconds)
            for recorders in RECORDERS
            for threads in THREADS
            if threads >= recorders and threads + recorders <= cpus
        ]
        cells += [Cell(f"merge-{rings}", {"threads": rings, "recorders": 1}, 2) for rings in MERGES]
        return [*cells, Cell("tour", {"threads": _tour_threads(lab), "recorders": 1}, 12)]

    def run(self, lab: Lab, cell: Any, repetition: int) -> Any:
        threads, recorders = cell.params["threads"], cell.params["recorders"]
        if cell.key.startswith("merge"):
            return Measurement(_merge(lab, threads))
        if cell.key == "tour":
            return _tour(lab, threads)
        return _recorded(lab, threads, recorders, self.length(lab))


def _cpus(lab: Lab):
    """Those of the command line if these are more than two, which are enough for other experiments."""
    return topology.spread(lab.cpus if len(lab.cpus) > 2 else None)


def _tour_threads(lab: Lab):
    return max(min(TOUR_THREADS, len(_cpus(lab)) - 1), 1)


def _window_s(lab: Lab):
    return QUICK_WINDOW_S if lab.quick else WINDOW_S


@contextlib.contextmanager
def _testpmd(lab: Lab, source: Any, polling: Any, main: Any):
    app = TestPmd(source, [*polling, main], True, lab.plugin(), lab.unique("app"))
    try:
        yield app
    except Exception as e:
        raise RuntimeError(f"{e}{app.obituary()}") from e
    finally:
        app.stop()


def _worst(recorders: Any):
    return {
        "pause_s": max(t.summary["longest_pause_ns"] for t in recorders) * 1e-9,
        "buffer_used": max(t.summary["buffer_most_used_bytes"] / t.summary["buffer_bytes"] for t in recorders),
    }


def _halves(ports: Any, recorders: Any):
    return [range(i * ports // recorders, (i + 1) * ports // recorders) for i in range(recorders)]


def _recorded(lab: Lab, threads: int, recorders: Any, seconds: float):
    cpus, window_s = _cpus(lab), _window_s(lab)
    polling, of_recorders = cpus[:threads], cpus[threads : threads + recorders]
    with _testpmd(lab, Ports(threads, 1, threads), polling, cpus[-1]) as app:
        app.rate(WARM_S)
        before = app.rate(window_s)
        with contextlib.ExitStack() as stack:
            tools = [
                stack.enter_context(attached.Record(lab, app, ports=ports, cpu=cpu))
                for ports, cpu in zip(_halves(threads, recorders), of_recorders)
            ]
            pps = app.rate(seconds)
            counts = [tool.counts() for tool in tools]
        after = app.rate(window_s)
    alone = (before + after) / 2
    seen = sum(c.seen for c in counts)
    return Measurement(
        {
            "alone_pps": alone,
            "before_pps": before,
            "after_pps": after,
            "attached_pps": pps,
            "captured_pps": sum(c.captured / c.seconds for c in counts),
            "seen_pps": sum(c.seen / c.seconds for c in counts),
            "loss": sum(c.lost for c in counts) / seen,
            "lost": sum(c.lost for c in counts),
            "kept": pps / alone,
            "added_s": threads / pps - threads / alone,
            "cores": topology.cores(polling + of_recorders),
            **_worst(tools),
        },
        {"cpus": {"polling": polling, "recorders": of_recorders}},
    )


def _merge(lab: Lab, rings: Any):
    status, out, err = process.run(["taskset", "-c", str(_cpus(lab)[0]), lab.built(MERGE_PROGRAM), "-r", str(rings)])
    if status != 0:
        raise RuntimeError(f"{MERGE_PROGRAM} ended with status {status}: {err.strip()}")
    found = json.loads(out)
    return {"merged_pps": found["mpps_median"] * 1e6, "merged_least_pps": found["mpps_min"] * 1e6}


def _documents(tool: Any, app: Any):
    """Output of `ringtap top --json` on the application, without the last line, which may be incomplete."""
    lines = [line for line in tool.printed()[0].splitlines()[:-1] if line.startswith("{")]
    return [a for line in lines for a in json.loads(line)["applications"] if a["name"] == app.prefix]


def _busy(document: Any):
    """Numbers of receiving queues and of threads that had packets in an interval."""
    queues = [q for q in document["queues"] if q["direction"] == "rx" and q["packets"]]
    return {"top_queues": len(queues), "top_threads": len([t for t in document["threads"] if t["packets_per_second"]])}


def _tour(lab: Lab, threads: int):
    cpus, window_s = _cpus(lab), _window_s(lab)
    polling, tool_cpu = cpus[:threads], cpus[min(threads, len(cpus) - 1)]
    values = {}
    with _testpmd(lab, Ports(TOUR_PORTS, QUEUES // TOUR_PORTS, threads, "io"), polling, cpus[-1]) as app:
        app.rate(WARM_S)
        values["alone_pps"] = app.rate(window_s)
        with _Top(lab, app, tool_cpu) as top:
            values["top_pps"] = app.rate(window_s)
            found = process.wait_for(lambda: _documents(top, app)[1:], READ_S, "two intervals of ringtap top")
            values |= _busy(found[-1])
            top.finish()
        values["between_pps"] = app.rate(window_s)
        with _Latency(lab, app, tool_cpu) as latency:
            values["latency_pps"] = app.rate(window_s)
            pairs = json.loads(latency.finish()[0])["applications"][0]["pairs"]
        values |= {
            "latency_pairs": len(pairs),
            "latency_packets": sum(p["packets"] for p in pairs),
            "latency_p50_s": max(p["p50_ns"] for p in pairs) * 1e-9,
            "latency_p99_s": max(p["p99_ns"] for p in pairs) * 1e-9,
        }
        times = [_attach(lab, app, tool_cpu) for _ in range(ATTACHES)]
        values["after_pps"] = app.rate(window_s)
    for name, column in zip(("attach_s", "detach_s"), zip(*times)):
        values[name], values[f"{name[:-2]}_most_s"] = sorted(column)[len(column) // 2], max(column)
    return Measurement(values, {"cpus": {"polling": polling, "tools": tool_cpu}})


class _Top(attached.Program):
    def __init__(self, lab: Lab, app: Any, cpu: int):
        super().__init__(
            [*attached.on_cpu(lab, cpu), lab.program("ringtap"), "top", "--json", "--interval", "0.2s", app.prefix],
            '"collectors":["',
        )


class _Latency(attached.Program):
    def __init__(self, lab: Lab, app: Any, cpu: int):
        super().__init__(
            [*attached.on_cpu(lab, cpu), lab.program("ringtap"), "latency", "--json", "--duration", "600s", app.prefix],
            "Measuring",
        )


def _attach(lab: Lab, app: Any, cpu: int):
    """(seconds until it captures, seconds until it has ended and the application runs without it) of a recorder of all ports."""
    begin = time.monotonic()
    with attached.Record(lab, app, ports=range(TOUR_PORTS), cpu=cpu, more=["-s", "64"]) as tool:
        captures = time.monotonic()
        tool.finish()
    return captures - begin, time.monotonic() - captures


EXPERIMENT = Cores()
