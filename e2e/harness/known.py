# SPDX-License-Identifier: BSD-3-Clause
"""rt_known, whose packet times and buffers are known, and the output of `ringtap latency` and
`ringtap memory` for it."""

import json
from pathlib import Path

from .documents import only
from .paths import RINGTAP
from .play import Play
from .proc import Proc

RECEIVED, MADE, CLONED, HELD, SENT_TWICE = range(5)  # enum manner in e2e/apps/rt_known.c


class Known(Play):
    def __init__(self, plugin, **kwargs):
        super().__init__(plugin, program="rt_known", **kwargs)

    def clocks(self):
        """(TSC, CLOCK_MONOTONIC in ns) read at the same time."""
        return self.do("tsc")

    def send(self, delays, rounds=1, burst=32, how=RECEIVED, log=None, ports=(0, 1)):
        """Forwards bursts with each delay in turn. With log: a file; then returns for each packet
        the minimum and maximum of its time in ticks."""
        line = f"pass {ports[0]} {ports[1]} delays={','.join(map(str, delays))} rounds={rounds} burst={burst} how={how}"
        self.do(line + (f" log={log}" if log else ""))
        if not log:
            return None
        bursts = [tuple(map(int, row.split())) for row in log.read_text().splitlines()]
        return [(low, high) for n, low, high in bursts for _ in range(n)]

    def circle(self, pool, file, how, stride=1, port=0):
        """Receives the pool's buffers cyclically until the next command. Returns their addresses
        and IOVAs in order."""
        self.do(f"circle {port} {pool} {file} how={how} stride={stride}")
        return [tuple(map(int, row.split())) for row in Path(file).read_text().splitlines()]


class Measuring:
    """A running `ringtap latency` or `ringtap memory`; it measures from when this returns."""

    def __init__(self, command, app, *args, ports=(), **kwargs):
        words = [f"{app.prefix}:{port}" for port in ports] or [app.prefix]
        self.proc = Proc([RINGTAP, command, *words, *args], **kwargs)
        try:
            self.proc.expect("^Measuring ")
        except BaseException:
            self.close()
            raise

    def finish(self, number=None, status=0):
        """Waits for its end, after a signal if given; returns its output."""
        if number:
            self.proc.send_signal(number)
        got = self.proc.wait()
        assert got == status, f"status {got}, not {status}:\n{self.proc.output[-3000:]}"
        return self.proc.output

    def json(self, number=None):
        """The application's object of the only document."""
        text = self.finish(number)
        return only(json.loads(text[text.index("{") :]))

    def close(self):
        self.proc.close()
