# SPDX-License-Identifier: BSD-3-Clause
"""Measures commands: time, CPU time, memory; what else the machine did; files out of the page cache."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

PYTHON = sys.executable
SPIN_BYTES = 64 << 20


@dataclass
class Measured:
    seconds: float
    cpu_seconds: float
    memory: int  # peak [bytes], of the largest process
    output: bytes


@dataclass
class Series:
    """One thing, measured several times."""

    name: str
    unit: str
    values: list = field(default_factory=list)
    note: str = ""

    def text(self) -> str:
        if not self.values:
            return "-"
        if len(self.values) == 1:
            return number(self.values[0])
        return f"{number(statistics.median(self.values))} ({number(min(self.values))}–{number(max(self.values))})"

    def as_json(self) -> dict:
        return {"name": self.name, "unit": self.unit, "values": self.values, "note": self.note}


def number(value: Any) -> str:
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


class Bench:
    """Runs commands, prints them, and collects their times and memory."""

    def __init__(self, cpu: Any, out: Any = sys.stderr):
        self.cpu, self.out = cpu, out
        self.rows = []
        self._by_name = {}
        self._printed = set()

    def say(self, text: str) -> None:
        print(text, file=self.out, flush=True)

    def add(self, name: str, unit: str, value: Any, note: str = "") -> None:
        if name not in self._by_name:
            self._by_name[name] = Series(name, unit, note=note)
            self.rows.append(self._by_name[name])
        self._by_name[name].values.append(value)
        self.say(f"    {name}: {number(value)} {unit}")

    def run(self, command: Any, cpus: Any = None, keep: bool = True) -> Any:
        """The command on one CPU, or on these; keep: its output. Raises CalledProcessError."""
        text = " ".join(str(word) if len(str(word)) < 200 else "'...'" for word in command)
        if text not in self._printed:
            self._printed.add(text)
            self.say(f"  $ {text}")
        cpus = cpus or {self.cpu}
        begin = time.monotonic()
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE if keep else subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        complaints = []
        reader = threading.Thread(target=lambda: complaints.append(process.stderr.read()))
        reader.start()
        output = process.stdout.read() if keep else b""
        reader.join()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()
        seconds = time.monotonic() - begin
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, output, b"".join(complaints))
        return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, output)

    def spin(self) -> None:
        """Seconds of a fixed piece of work on the CPU of the measurements: the present speed of the machine."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.cpu})
        try:
            begin = time.monotonic()
            hashlib.sha256(bytes(SPIN_BYTES)).digest()
            self.add("the machine: SHA-256 of 64 MiB", "s", time.monotonic() - begin)
        finally:
            os.sched_setaffinity(0, before)


def warm(path: Any) -> None:
    """Reads files into the page cache."""
    with open(path, "rb") as file:
        while file.read(1 << 22):
            pass


def evict(paths: list[Path]) -> None:
    """Evicts files from the page cache; writes them back first, since dirty pages stay."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def drop_caches() -> None:
    """Empties the caches of the whole machine, of programs too. Needs root."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3")


def files_below(folder: Any) -> list:
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
