# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap host` in a namespace."""

import itertools
import os
import signal

from . import dpdk
from .paths import BUILD, RINGTAP
from .proc import Proc, of_tasks, until

PROGRAM = BUILD / "host" / "ringtap-host"
_number = itertools.count()


class Host:
    """Captures on the interfaces; receives records of captures as test applications do."""

    def __init__(self, namespace, *ifaces, args=()):
        self.prefix = f"rt-host-{os.getpid()}-{next(_number)}"
        self.proc = namespace.start([RINGTAP, "host", "--name", self.prefix, *args, *ifaces])
        try:
            self.proc.expect(r"Ctrl-C ends it$")
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
        assert self.proc.wait() == 0, self.proc.output
        return self.proc.output

    def slept(self):
        """{thread id: how many times it has slept}."""
        return {
            tid: int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])
            for tid, text in of_tasks(self.pid, "status").items()
        }

    def _ran_ns(self, tid):
        return int(of_tasks(self.pid, "schedstat")[tid].split()[0])

    def _wakes(self, tid, times):
        """Waits until a thread has slept that many times; where it never sleeps, until it had the CPU."""
        slept, ran_ns = self.slept()[tid], self._ran_ns(tid)
        until(
            lambda: self.slept()[tid] >= slept + times or self._ran_ns(tid) >= ran_ns + 20e6, what="its thread wakes up"
        )

    def looked_after(self):
        """Waits until the threads have received what the kernel has, and the main thread has read its counters."""
        self._wakes(str(self.pid), 3)  # for longer than threads hold packets back
        for tid, name in of_tasks(self.pid, "comm").items():
            if name.startswith("rte-worker"):
                self._wakes(tid, 2)
        self._wakes(str(self.pid), 3)

    def close(self):
        self.proc.close()
        dpdk.remove_run_dir(self.prefix)


def start_refused(namespace, *args, prefix=(), program=RINGTAP):
    """A `ringtap host` that fails to start: (exit status, output)."""
    proc = Proc([*namespace.prefix, *prefix, program, "host", *args])
    try:
        return proc.wait(), proc.output
    finally:
        proc.close()
