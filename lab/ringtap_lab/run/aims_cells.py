# SPDX-License-Identifier: BSD-3-Clause
"""Cells of `make bench ONLY=aims`. Packets are of net_null, the recorder has the default options and a CPU of its
own unless a cell says otherwise."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from ..report.aims_table import RATE_REACHED
from ..tools import process
from ..tools.cgroup import BASE, MemoryGroup
from ..tools.errors import Unavailable
from . import attached, forwarder
from .testpmd import Source, TestPmd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .lab import Lab

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
MIB = 1 << 20
WINDOW_S = 0.5  # for the application's rate before and after
STEADY_S = 2  # without a membarrier()
GROUP_LIMIT = 1024 * MIB
CACHED = ("-r", "256", "-m", "288")  # options of push_bench: KiB of the ring, mbufs
DEMO_S = 60  # for all of it; its capture takes 3 s


def _stopped(pid: int, stop_s: Any, until: Any):
    """Stops a process for stop_s once a second until the event is set. The longest stop that came of it, in seconds."""
    longest = 0.0
    while not until.wait(1.0 - stop_s):
        os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        time.sleep(stop_s)
        os.kill(pid, signal.SIGCONT)
        longest = max(longest, time.monotonic() - begin)
    return longest


@contextlib.contextmanager
def _disturbed(lab: Lab, pid: int, disturbance: Any):
    """disturbance: None, "busy", or for how many seconds the process is stopped once a second. Yields a dict for values."""
    values = {}
    if disturbance is None:
        yield values
    elif disturbance == "busy":
        with lab.running([*attached.on_cpu(lab), "sh", "-c", "while :; do :; done"]):
            yield values
    else:
        over = threading.Event()
        thread = threading.Thread(target=lambda: values.update(stop_s=_stopped(pid, disturbance, over)))
        thread.start()
        try:
            yield values
        finally:
            over.set()
            thread.join()


def need_rate(seen_pps: Any, wanted_pps: Any) -> None:
    if seen_pps < RATE_REACHED * wanted_pps:
        raise RuntimeError(f"the application received {seen_pps / 1e6:.1f} Mpps instead of {wanted_pps / 1e6:g}")


def need_stop(pause_s: Any, disturbance: Any) -> None:
    """disturbance: see _disturbed()."""
    if isinstance(disturbance, float) and pause_s < disturbance:
        raise RuntimeError(
            f"the recorder's longest pause was {pause_s * 1e3:.1f} ms: it was not stopped for {disturbance * 1e3:g}"
        )


def need_polls(polls: Any) -> None:
    if polls <= 0:
        raise RuntimeError("strace saw no poll() of the probe's thread: it may have missed membarrier(), too")


def _record(lab: Lab, app: Any, seconds: float, disturbance: Any, rate: Any):
    """rate(seconds): the application's rate over so long, packets per second. Raises if a stop had no effect."""
    with attached.Record(lab, app) as t:
        with _disturbed(lab, t.process.pid, disturbance) as values:
            values["attached_pps"] = rate(seconds)
        counts = t.counts()
    s = t.summary
    need_stop(s["longest_pause_ns"] * 1e-9, disturbance)
    return {
        **values,
        "captured_pps": counts.captured / counts.seconds,
        "seen_pps": counts.seen / counts.seconds,
        "lost": counts.lost,
        "loss": counts.lost / counts.seen,
        "pause_s": s["longest_pause_ns"] * 1e-9,
        "cpu_wait_s": s["cpu_wait_ns"] * 1e-9,
        "buffer_used": s["buffer_most_used_bytes"] / s["buffer_bytes"],
    }


def _added(values: Any, before: Any, after: Any):
    alone = (before + after) / 2
    return {**values, "alone_pps": alone, "added_s": 1 / values["attached_pps"] - 1 / alone}


@contextlib.contextmanager
def testpmd(lab: Lab, size: Any, plugin: Any, wrap: Any = ()) -> Iterator:
    app = TestPmd(Source("net_null", size), lab.cpus, True, plugin, lab.unique("app"), wrap)
    try:
        yield app
    except Exception as e:
        raise RuntimeError(f"{e}{app.obituary()}") from e
    finally:
        app.stop()


def recorded(lab: Lab, seconds: float, size: Any, disturbance: Any = None) -> dict:
    """testpmd at full rate."""
    with testpmd(lab, size, lab.plugin()) as app:
        before = app.rate_of_own_time(WINDOW_S)
        values = _record(lab, app, seconds, disturbance, app.rate_of_own_time)
        return _added(values, before, app.rate_of_own_time(WINDOW_S))


def paced(lab: Lab, seconds: float, size: Any, mpps: Any, disturbance: Any = None) -> Any:
    """ringtap-fwd, which receives at a steady rate. Raises if it did not."""
    end = forwarder.End([], ["--vdev", f"net_null0,size={size}"], "net_null0", lab.cpus[0])
    with forwarder.Forwarder(lab, end, "sink", ["--sink-rate", f"{mpps}M"]) as app:

        def rate(_: Any):
            time.sleep(seconds)

        values = _record(lab, Named(app), seconds, disturbance, rate)
        del values["attached_pps"]
        need_rate(values["seen_pps"], mpps * 1e6)
        values["disturbed"] = app.report().disturbed()
        return values


class Named:
    """A forwarder as an application."""

    def __init__(self, forwarder_: Any):
        self.prefix = forwarder_.prefix


def dumpcap(lab: Lab, seconds: float, size: Any) -> dict:
    with testpmd(lab, size, None) as app:
        before = app.rate_of_own_time(WINDOW_S)
        with attached.Dumpcap(lab, app, seconds=None) as t:
            # It counts packets from just before its first line until SIGINT, and takes its time to end.
            begin = time.monotonic()
            pps = app.rate_of_own_time(seconds)
            took = time.monotonic() - begin
            counts = t.counts()
        values = {
            "attached_pps": pps,
            "captured_pps": counts.captured / took,
            "loss": counts.lost / max(counts.seen, 1),
        }
        return _added(values, before, app.rate_of_own_time(WINDOW_S))


def push(lab: Lab, _: float, packets: str) -> dict[str, float]:
    """Nanoseconds of the copy alone: with mbufs and a ring in the CPU's caches, as those of net_null are, and out of them."""
    cached, uncached = (_push_bench(lab, packets, *arguments) for arguments in (CACHED, ()))
    return {"push_s": cached["ns_quartile"] * 1e-9, "uncached_s": uncached["ns_quartile"] * 1e-9}


def _push_bench(lab: Lab, packets: str, *arguments):
    status, out, err = process.run([*attached.on_cpu(lab), lab.built("bench/push_bench"), "-p", packets, *arguments])
    if status != 0:
        raise RuntimeError(f"push_bench ended with status {status}: {err.strip()}")
    return json.loads(out)


def _page_tables(pid: int):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmPTE:\s*(\d+)", f.read()).group(1)) * 1024


def memory(lab: Lab, _: Any) -> dict:
    """Memory of a session that is charged to the application's cgroup, without huge pages of hugetlbfs."""
    if not BASE:
        raise Unavailable("no memory cgroup")
    with contextlib.closing(MemoryGroup(GROUP_LIMIT)) as group, testpmd(lab, 64, lab.plugin(), group.prefix) as app:
        # The probe's thread starts with its first reader, and stays.
        process.run([lab.program("ringtap"), "list"])
        pid = app.process.pid
        before, tables = group.usage, _page_tables(pid)
        with attached.Record(lab, app) as t:
            app.rate(WINDOW_S)
            grown, of_tables = group.usage - before, _page_tables(pid) - tables
            t.counts()
    return {
        "charged_bytes": max(grown - of_tables, 0),
        "tables_bytes": of_tables,
        "buffer_bytes": t.summary["buffer_bytes"],
    }


def membarrier(lab: Lab, _: Any) -> Any:
    """System calls of all threads of an application while it is recorded."""
    strace = attached.installed(lab, "strace", "strace")
    log = os.path.join(lab.folder(), lab.unique("strace"))
    with testpmd(lab, 64, lab.plugin()) as app, attached.Record(lab, app) as t:
        app.rate(WINDOW_S)
        with lab.running(
            [strace, "-f", "-q", "-e", "trace=membarrier,poll", "-o", log, "-p", str(app.process.pid)],
            stderr=subprocess.DEVNULL,
        ):
            process.wait_for(lambda: _traced(app.process.pid), 20, "strace to see all threads")
            time.sleep(STEADY_S)
        t.counts()
    # strace writes some kilobytes at a time: the log is whole once it has ended.
    found = {"membarriers": _calls(log, "membarrier"), "polls": _calls(log, "poll")}
    need_polls(found["polls"])
    return found


def _traced(pid: int):
    """Whether all threads of a process have a tracer."""
    return all(
        not re.search(r"^TracerPid:\s*0$", task.read_text(), re.M)
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/status")
    )


def _calls(log: Any, name: str):
    with open(log, encoding="utf-8", errors="replace") as f:
        return sum(f" {name}(" in line for line in f)


def demo(lab: Lab, _: Any) -> dict:
    """devtools/demo.sh, as `make demo` runs it: its first capture."""
    script = os.path.join(REPOSITORY, "devtools", "demo.sh")
    env = {"RINGTAP_DEMO_FILE": os.path.join(lab.folder(), "demo.pcapng")}
    status, out, err = process.run([script, str(lab.o.build)], env, DEMO_S)
    total = re.search(r"^total\s+([\d,]+)\s+([\d,]+)\s+([\d,]+)\s+([\d,]+)", err, re.M)
    if status != 0 or not total:
        raise RuntimeError(f"demo.sh ended with status {status}: {' '.join((err or out).split())[-200:]}")
    seen, captured, _, lost = (int(n.replace(",", "")) for n in total.groups())
    return {"captured_pps": captured / 3.0, "lost": lost, "loss": lost / seen}
