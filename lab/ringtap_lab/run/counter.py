# SPDX-License-Identifier: BSD-3-Clause
"""bench/pcap_count, a libpcap program that counts: on an interface of the kernel, or on a port of a
DPDK application."""
import json
import os
import select
import signal
import subprocess
import time

from ..tools import process
from ..tools.errors import Trouble

PROGRAM = "pcap_count"
FOREVER_S = "600"
START_S = 30


def path(build):
    found = build / "bench" / PROGRAM
    if not found.exists():
        raise Trouble(f"{found} is not there: build it by `make all`, or name the build folder by --build")
    return str(found)


def said(p, words, what):
    """Waits until these words come on a process's stderr."""
    text, end = b"", time.monotonic() + START_S
    while words not in text:
        ready, _, _ = select.select([p.stderr], [], [], max(end - time.monotonic(), 0))
        more = os.read(p.stderr.fileno(), 4096) if ready else b""
        text += more
        if not more:
            process.stop(p)
            raise RuntimeError(f"{what} did not start: {text.decode(errors='replace').strip()}")


class Counter:
    """Counts from the beginning of the context until finish(). launcher: what stands before the
    command: `ringtap run`, or what leads into a network namespace."""

    def __init__(self, build, cpu, name, launcher, expression=""):
        self.argv = [*launcher, "taskset", "-c", str(cpu), path(build), name, FOREVER_S, expression]

    def __enter__(self):
        self.process = process.start([str(a) for a in self.argv], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            said(self.process, b"ready", PROGRAM)
        except BaseException:
            self.__exit__()
            raise
        return self

    def finish(self):
        """What it prints: see bench/pcap_count.c."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=START_S)
        if self.process.returncode != 0:
            raise RuntimeError(f"{PROGRAM}: {err.decode(errors='replace').strip()}")
        return json.loads(out)

    def __exit__(self, *_):
        process.stop(self.process)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
