# SPDX-License-Identifier: BSD-3-Clause
"""The two tools under comparison: each captures for some seconds and says what it got."""
import json
import os
import re
import threading
import time
from dataclasses import dataclass

from ..tools import process
from .testpmd import PROGRAM as TESTPMD

DUMPCAP = "dpdk-dumpcap"


@dataclass
class Result:
    """What one capture got. Rates are over the time that it captured."""

    captured: int
    lost: int
    seconds: float  # of capturing
    file_bytes: int  # 0 if not to a file
    file_seconds: float  # from the start of capturing until all was on the disk
    app_pps: float  # of the application, while captured
    disturbed: float  # greatest share of the time that a thread of ours waited for its cpu


def dumpcap_preload():
    """Libraries for LD_PRELOAD that make dpdk-dumpcap see mempools as testpmd does.

    A mempool names its operations by their index in a table that is filled in order of loading.
    testpmd is linked with some drivers, dumpcap with none; the plugins come after those."""
    driver = re.compile(r"librte_(bus|common|crypto|mempool|net)_")
    return [lib for lib in process.needed_libraries(_which(TESTPMD)) if driver.match(lib)]


def _which(program):
    for folder in os.environ.get("PATH", "").split(":") + ["/usr/bin", "/usr/local/bin"]:
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(program)


class _Watch(threading.Thread):
    """Watches application and capture while the latter starts, runs and ends. Seldom, and not on the
    capture's cpu: a ring fills within a millisecond."""

    INTERVAL_S = 0.15

    def __init__(self, app, seconds):
        super().__init__(daemon=True)
        self.app, self.window_s = app, seconds * 0.6
        self.samples = []
        self.polling = [app.polling_times()]
        self.capture = [None]
        self.done = threading.Event()

    def begin(self, pid):
        self.pid = pid
        self.capture = [process.cpu_times(pid)]
        self.start()

    def run(self):
        os.sched_setaffinity(0, {self.app.cpu})  # of this thread
        try:
            while not self.done.wait(self.INTERVAL_S):
                self._look()
        except (OSError, ValueError, KeyError):
            pass  # the application has died: whoever talks to it next will say so

    def _look(self):
        self.samples.append(self.app.received())
        times = process.cpu_times(self.pid)
        if times:
            self.capture.append(times)

    def end(self):
        self.done.set()
        self.join()
        self.polling.append(self.app.polling_times())

    def app_pps(self):
        """When capturing begins and ends cannot be seen from outside, but it slows the
        application: the slowest window of 0.6 of its length lies within it."""
        return slowest(self.samples, self.window_s)

    def disturbed(self):
        return max(process.waiting_share(t[0], t[-1]) for t in (self.polling, self.capture))


def slowest(samples, window_s):
    """Least rate over at least window_s seconds among samples of (seconds, count)."""
    rates = []
    first = 0
    for t1, n1 in samples:
        while first + 1 < len(samples) and t1 - samples[first + 1][0] >= window_s:
            first += 1
        t0, n0 = samples[first]
        if t1 - t0 >= window_s:
            rates.append((n1 - n0) / (t1 - t0))
    return min(rates, default=0.0)


def _sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _capture(app, argv, env, seconds, path):
    """Runs a capture: (stdout, stderr, fields of the Result that both tools share)."""
    watch = _Watch(app, seconds)
    status, out, err = process.run(argv, env, seconds + 30, watch.begin)
    watch.end()
    if status != 0:
        raise RuntimeError(f"{argv[0]} ended with status {status}: {err.strip()[-500:]}")
    common = {"seconds": seconds, "app_pps": watch.app_pps(), "disturbed": watch.disturbed(),
              "file_bytes": 0, "file_seconds": 0.0}
    if path != "/dev/null":
        begin = time.monotonic()
        _sync(path)
        common["file_bytes"] = os.stat(path).st_size
        common["file_seconds"] = seconds + time.monotonic() - begin
    return out, err, common


class Dumpcap:
    name = "dpdk-dumpcap"

    def __init__(self, cpu):
        self.cpu = cpu
        self.env = {"LD_PRELOAD": " ".join(dumpcap_preload())}

    def capture(self, app, seconds, path):
        argv = ["taskset", "-c", str(self.cpu), DUMPCAP, f"--file-prefix={app.prefix}", "-q"]
        for i in range(len(app.source.ports)):
            argv += ["-i", str(i)]
        argv += ["-a", f"duration:{seconds}", "-w", path]
        out, err, common = _capture(app, argv, self.env, seconds, path)
        counts = re.findall(r"received/dropped on interface.*: (\d+)/(\d+)", out + err)
        if not counts:
            raise RuntimeError(f"{DUMPCAP} did not say what it got: {err.strip()[-500:]}")
        # Its "received" are those copied, of which "dropped" did not fit into the ring. Checked
        # against files: they hold the difference, less what it leaves in the ring at the end.
        copied, dropped = (sum(int(n) for n in column) for column in zip(*counts))
        return Result(captured=max(copied - dropped, 0), lost=dropped, **common)


class Ringtap:
    name = "ringtap"

    def __init__(self, cpu, program, extra=()):
        self.cpu, self.program, self.extra = cpu, program, list(extra)
        self.env = {}

    def capture(self, app, seconds, path):
        argv = ["taskset", "-c", str(self.cpu), self.program, "record", "--json", "-q"]
        for port in app.source.ports:
            argv += ["-i", f"{app.prefix}:{port}"]
        argv += self.extra + ["-a", f"duration:{seconds}", "-w", path]
        out, _, common = _capture(app, argv, self.env, seconds, path)
        summary = json.loads(out)
        # "written" leaves out what came after the end of the time that was asked for.
        return Result(captured=summary["written"], lost=summary["lost_total"], **common)
