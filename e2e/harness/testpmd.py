# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified dpdk-testpmd, controlled by its prompt."""

import re

from . import dpdk
from .proc import Proc

PROMPT = r"^testpmd> "


class Testpmd:
    __test__ = False  # the name looks like a pytest class

    def __init__(
        self,
        vdevs,
        plugin=None,
        lcores="0,1",
        memory_mb=256,
        mbufs=8192,
        args=(),
        eal=(),
        namespace=None,
        huge=None,
        prefix=None,
    ):
        self.prefix = prefix or dpdk.new_prefix("pmd")
        inside = [*(namespace.prefix if namespace else []), *(huge.prefix if huge else [])]
        argv = [
            *inside,
            "dpdk-testpmd",
            *dpdk.eal_args(self.prefix, plugin, vdevs, lcores, memory_mb, eal, huge.folder if huge else None),
            "--",
            "-i",
            "--no-mlockall",
            f"--total-num-mbufs={mbufs}",
            *args,
        ]
        # With an unlimited width, as its line editor would wrap and redraw input.
        self.proc = Proc(argv, tty=True, env={"COLUMNS": "0"})
        try:
            self.proc.expect(PROMPT)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        return self.proc.pid

    def cmd(self, line):
        """Sends a command; returns the output up to the next prompt."""
        self.proc.mark()
        before = len(self.proc.output)
        self.proc.send(line)
        self.proc.expect(re.escape(line) + r"[\r\n]+")  # its echo
        self.proc.expect(PROMPT)
        return self.proc.output[before:]

    def start(self, how="start"):
        return self.cmd(how)

    def stop(self):
        """Stops forwarding; returns per port (rx_packets, tx_packets, rx_dropped, tx_dropped)."""
        text = self.cmd("stop")
        ports = {}
        pattern = (
            r"statistics for port (\d+)\s.*?RX-packets:\s*(\d+)\s+RX-dropped:\s*(\d+).*?"
            r"TX-packets:\s*(\d+)\s+TX-dropped:\s*(\d+)"
        )
        for port, rx, rx_drop, tx, tx_drop in re.findall(pattern, text, re.DOTALL):
            ports[int(port)] = (int(rx), int(tx), int(rx_drop), int(tx_drop))
        return ports

    def stats(self, port):
        """The port's own counters, as a dict such as {'RX-packets': 5}."""
        text = self.cmd(f"show port stats {port}")
        return {k: int(v) for k, v in re.findall(r"([RT]X-[a-z]+):\s*(\d+)", text)}

    def quit(self):
        self.proc.send("quit")
        return self.proc.wait()

    def close(self):
        self.proc.close()
        dpdk.remove_run_dir(self.prefix)
