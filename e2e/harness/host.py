# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap host` in a namespace."""
import itertools
import os
import signal

from . import dpdk
from .paths import BUILD, RINGTAP
from .proc import Proc, until

PROGRAM = BUILD / "host" / "ringtap-host"
_number = itertools.count()


class Host:
    """Captures on the interfaces; receives records of captures as test applications do."""

    def __init__(self, namespace, *ifaces, args=()):
        self.prefix = f"rt-host-{os.getpid()}-{next(_number)}"
        self.proc = namespace.start([RINGTAP, "host", "--name", self.prefix, *args, *ifaces])
        try:
            self.proc.expect(r"Ctrl-C ends it$", 60)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        return self.proc.pid

    @property
    def run_dir(self):
        return dpdk.RUN_DIR / self.prefix

    def finish(self, number=signal.SIGINT):
        self.proc.send_signal(number)
        assert self.proc.wait(30) == 0, self.proc.output
        return self.proc.output

    def looked_after(self):
        """Waits until the threads have received what the kernel has, and the main thread has read its counters."""
        self._wakes(self.pid)  # for longer than threads hold packets back
        tasks = f"/proc/{self.pid}/task"
        for tid in os.listdir(tasks):
            with open(f"{tasks}/{tid}/comm", encoding="ascii") as f:
                if f.read().startswith("rte-worker"):
                    self._wakes(tid, 2)
        self._wakes(self.pid)

    def _wakes(self, tid, times=3):
        """Waits until a thread has slept that many times; where it never sleeps, until it had the CPU."""
        def slept():
            with open(f"/proc/{self.pid}/task/{tid}/status", encoding="ascii") as f:
                return int(f.read().split("\nvoluntary_ctxt_switches:")[1].split()[0])

        def ran_ns():
            with open(f"/proc/{self.pid}/task/{tid}/schedstat", encoding="ascii") as f:
                return int(f.read().split()[0])
        before, had = slept(), ran_ns()
        until(lambda: slept() >= before + times or ran_ns() >= had + 20e6, 30, "its thread wakes up")

    def close(self):
        self.proc.close()
        dpdk.remove_run_dir(self.prefix)


def start_refused(namespace, *args, prefix=(), program=RINGTAP):
    """A `ringtap host` that fails to start: (exit status, output)."""
    proc = Proc([*namespace.prefix, *prefix, program, "host", *args])
    try:
        return proc.wait(30), proc.output
    finally:
        proc.close()
