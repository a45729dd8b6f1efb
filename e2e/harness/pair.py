# SPDX-License-Identifier: BSD-3-Clause
"""A primary and secondary processes on one port with several queues: testpmd, and rt_pair."""

import os

from . import dpdk
from .paths import BUILD
from .proc import Proc
from .ringtap import listing
from .testpmd import Testpmd

HUGE = "/dev/hugepages"
PORT = "net_null0"


class Pmd(Testpmd):
    """A dpdk-testpmd, which polls the queue of its number. name: in `ringtap list`."""

    def __init__(self, plugin, primary=None):
        number = int(primary is not None)
        self.primary = primary
        # Each has lcores of its own, for the caches of mempools.
        super().__init__(
            [PORT],
            plugin,
            lcores=("1@0,0@0", "3@1,2@1")[number],
            memory_mb=128 if not primary else 64,
            mbufs=4096,
            prefix=primary and primary.prefix,
            huge=dpdk.HugePages(HUGE).here(),
            eal=["--proc-type", "secondary" if primary else "primary"],
            args=["--num-procs=2", "--rxq=2", "--txq=2", f"--proc-id={number}"],
        )
        self.name = f"{self.prefix}/{self.pid}" if primary else self.prefix

    def close(self):
        if self.primary:
            self.proc.close()  # the folder is the primary's
        else:
            super().close()


class Part:
    """An rt_pair, which polls the queue of its number."""

    def __init__(self, plugin, queue, primary=None):
        self.primary, self.queue = primary, queue
        self.prefix = primary.prefix if primary else dpdk.new_prefix("pair")
        self.proc = Proc(
            [
                BUILD / "e2e" / "rt_pair",
                *dpdk.eal_args(
                    self.prefix,
                    plugin,
                    [PORT],
                    f"{queue}@0",
                    64,
                    huge_dir=HUGE,
                    extra=["--proc-type", "secondary" if primary else "primary"],
                ),
                "--",
                queue,
            ]
        )
        try:
            self.proc.expect("^ready$")
        except BaseException:
            self.close()
            raise
        self.name = f"{self.prefix}/{self.pid}" if primary else self.prefix

    @property
    def pid(self):
        return self.proc.pid

    def send(self, command):
        self.proc.send(command)

    def done(self):
        self.proc.expect("^done$")

    def quit(self):
        self.proc.send("quit")
        return self.proc.wait()

    def close(self):
        self.proc.close()
        if not self.primary:
            dpdk.remove_run_dir(self.prefix)


def listed(app):
    return next((a for a in listing() if a["name"] == app.name), None)


def sockets(app):
    """Sockets of probes, in the folder of a primary and its secondaries."""
    return {name for name in os.listdir(dpdk.RUN_DIR / app.prefix) if name.startswith("ringtap.sock")}


def of_process(file, app):
    """The packets of one process in a file with those of several."""
    (which,) = (i for i, interface in enumerate(file.interfaces) if interface.name == f"{app.name}:{PORT}")
    return [p for p in file.packets if p.interface == which]
