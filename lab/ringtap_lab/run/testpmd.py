# SPDX-License-Identifier: BSD-3-Clause
"""The application that is measured: Debian's dpdk-testpmd, on virtual devices."""

from __future__ import annotations

import glob
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING

from ..tools import process
from ..tools.hugepages import MOUNT
from ..tools.telemetry import Telemetry, runtime_dir

if TYPE_CHECKING:
    from typing import Any

PROGRAM = "dpdk-testpmd"
MEMORY_MB = 512
TICK_S = 0.05  # a tick of the kernel comes sooner, if the thread runs
PROMPT_S = 0.001
PATIENCE = 10
STARVED_S = 20  # until its polling thread must have had its share
ANSWER_S = 20  # wait for a thread that may have to wait for a CPU
SMALL_PAGES_MB = 1024  # the same mbufs need more when a page holds one

# Lcores of a secondary process are named after their CPUs, and mempool caches belong to lcore ids: two processes with a common id
# corrupt each other's. So the main lcore, on the capture's CPU, has an id that no CPU has.
MAIN_LCORE = 127


class Source:
    """Where packets come from: devices, and testpmd's mode."""

    def __init__(self, name: str, size: Any):
        self.name, self.size = name, size
        if name == "net_null":
            self.ports = ["net_null0"]
            self.eal = ["--vdev", f"net_null0,size={size}"]
            self.app = ["--forward-mode=rxonly"]
        elif name == "net_ring":
            # Each port's TX ring is its own RX ring: what --tx-first sends circulates for ever.
            self.ports = ["net_ring0", "net_ring1"]
            self.eal = ["--vdev", "net_ring0", "--vdev", "net_ring1"]
            self.app = ["--forward-mode=io", "--tx-first", f"--txpkts={size}"]
        else:
            raise ValueError(f"no such source: {name}")


class IoForwarding(Source):
    """net_null's packets, from port to port (or back to the only one), untouched."""

    def __init__(self, ports: Any, size: Any, more: Any = ()):
        self.name, self.size = "net_null", size
        self.ports = [f"net_null{i}" for i in range(ports)]
        self.eal = [a for name in self.ports for a in ("--vdev", f"{name},size={size}")]
        self.app = ["--forward-mode=io", *more]


class TestPmd:
    """A running testpmd; rates in packets per second over all its ports."""

    def __init__(
        self, source: Any, cpus: list[int], huge: Any, plugin: Any = None, prefix: str | None = None, wrap: Any = ()
    ):
        """cpus: those of polling threads, and at last the one of the main thread, which sleeps. wrap: a prefix of the command."""
        self.source, self.plugin = source, plugin
        self.prefix = prefix or f"bench{os.getpid()}"
        self.log = tempfile.TemporaryFile(mode="w+")
        *polling, main_cpu = cpus
        lcores = ",".join([*(f"{cpu}@{cpu}" for cpu in polling), f"{MAIN_LCORE}@{main_cpu}"])
        memory = ["-m", str(MEMORY_MB)] if huge else ["-m", str(SMALL_PAGES_MB), "--no-huge"]
        argv = [
            *wrap,
            PROGRAM,
            *memory,
            "--no-pci",
            f"--file-prefix={self.prefix}",
            "--lcores",
            lcores,
            "--main-lcore",
            str(MAIN_LCORE),
            *(["-d", plugin] if plugin else []),
            *source.eal,
            "--",
            *source.app,
            "--auto-start",
        ]
        self.process = process.start(argv, stdin=subprocess.PIPE, stdout=self.log, stderr=subprocess.STDOUT)
        self.telemetry = self.polling_task = None
        try:
            self.telemetry = process.wait_for(self._connect, 20, "testpmd's telemetry")
            process.wait_for(self._polls, 20, "testpmd to receive packets")
            time.sleep(0.1)
            self.polling_task = self._polling_task()
        except Exception as e:
            self.stop()
            raise RuntimeError(f"testpmd did not start: {e}\n{self._tail()}") from e

    def _tail(self, lines: int = 15):
        self.log.seek(0)
        return "".join(self.log.readlines()[-lines:]).strip()

    def _connect(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended with status {self.process.returncode}")
        try:
            return Telemetry(self.prefix, ANSWER_S)
        except OSError:
            return None

    def _polls(self):
        try:
            return self.received()[1] > 0
        except (KeyError, TypeError):  # the port does not exist yet
            return False

    def received(self) -> Any:
        return self.telemetry.received(range(len(self.source.ports)))

    def rate(self, window_s: Any) -> Any:
        """Received packets per second over the next window_s seconds."""
        t0, n0 = self.received()
        time.sleep(window_s)
        t1, n1 = self.received()
        return (n1 - n0) / (t1 - t0)

    def rate_of_own_time(self, window_s: Any) -> Any:
        """Received packets per second that the polling thread has run: time in which others have its CPU does not count."""
        ran_0, n_0 = self._progress()
        end = time.monotonic() + max(3 * PATIENCE * window_s, STARVED_S)
        while time.monotonic() < end:
            time.sleep(window_s)
            ran_1, n_1 = self._progress()
            if ran_1 - ran_0 >= window_s / 2:
                return (n_1 - n_0) / (ran_1 - ran_0)
        raise RuntimeError("testpmd's polling thread gets too little of its CPU to be measured")

    def _progress(self):
        """(seconds that the polling thread has run, packets received), of one moment: the thread goes on while others delay the
        second reading."""
        best = None
        for _ in range(PATIENCE):
            since, ran = self._tick()
            _, packets = self.received()
            late = time.monotonic() - since
            if best is None or late < best[0]:
                best = late, ran, packets
            if late < PROMPT_S:
                break
        return best[1:]

    def _tick(self):
        """(a moment just before, seconds that the polling thread has run): the kernel adds to them at its ticks, up to 10 ms
        apart."""
        before, end = self._ran(), time.monotonic() + TICK_S
        while True:
            since = time.monotonic()
            ran = self._ran()
            if ran != before or since > end:
                return since, ran

    def _ran(self):
        times = self.polling_times()
        if not times:
            raise RuntimeError("testpmd's polling thread has ended")
        return times[1]

    def polling_times(self) -> Any:
        """cpu_times() of the thread that polls."""
        return process.cpu_times(self.polling_task) if self.polling_task else None

    def _polling_task(self):
        """The busiest of the lcores' threads: the main one is busy before it sleeps."""
        tasks = [
            path.removeprefix("/proc/").removesuffix("/comm")
            for path in glob.glob(f"/proc/{self.process.pid}/task/*/comm")
            if "worker" in pathlib.Path(path).read_text(encoding="ascii")
        ]
        return max(tasks, key=lambda t: (process.cpu_times(t) or (0, 0, 0))[1])

    def obituary(self) -> str:
        """The end of an error message if the application has ended."""
        status = self.process.poll()
        return "" if status is None else f" (testpmd has ended with status {status}: {self._tail(3)})"

    def stop(self) -> None:
        if self.telemetry:
            self.telemetry.close()
            self.telemetry = None
        # "Press enter to exit": killed, it would leave its huge pages behind.
        try:
            self.process.communicate(b"\n", timeout=10)
        except (subprocess.TimeoutExpired, OSError):
            process.stop(self.process, signal.SIGTERM)
        for path in glob.glob(f"{MOUNT}/{self.prefix}map_*"):
            pathlib.Path(path).unlink(missing_ok=True)  # it may be just about to do it itself
        shutil.rmtree(runtime_dir(self.prefix), ignore_errors=True)
