# SPDX-License-Identifier: BSD-3-Clause
"""Other people's readers of events: bpftrace, LTTng, babeltrace2; and what ELF says of USDT sites."""
import json
import re
import shutil
import signal
from collections import Counter

from .proc import Proc, check, run

# As in docs/tracing.md.
EVENTS = {
    "rx_burst": ("port", "queue", "asked", "got"),
    "empty_poll": ("port", "queue", "asked"),
    "tx_burst": ("port", "queue", "asked", "got"),
    "tx_refused": ("port", "queue", "packets"),
    "drop": ("port", "queue", "packets", "reason"),
    "session_open": ("session", "reader"),
    "session_close": ("session", "reader"),
    "ring_full": ("session", "port", "queue", "packets"),
    "latency": ("port", "queue", "packets", "sum", "greatest"),
}
IMISSED, IERRORS, RX_NOMBUF = 16, 17, 18  # reasons of drop
NO_QUEUE = 0xFFFF


class Site:
    """One USDT site, as readelf tells."""

    def __init__(self, event, at, semaphore, arguments):
        self.event, self.at, self.semaphore, self.arguments = event, at, semaphore, arguments


def usdt_sites(path):
    """Those of provider ringtap."""
    text = check(["readelf", "-nW", path])
    found = re.findall(r"Provider: ringtap\s+Name: (\w+)\s+Location: (\w+),.*?Semaphore: (\w+)\s+"
                       r"Arguments:(.*)", text)
    return [Site(event, int(at, 16), int(semaphore, 16), arguments.split())
            for event, at, semaphore, arguments in found]


def bpftrace_missing():
    """Why it cannot be used here, or None."""
    if not shutil.which("bpftrace"):
        return "bpftrace is not installed"
    done = run(["bpftrace", "-e", "BEGIN { exit(); }"])
    return None if done.returncode == 0 else f"bpftrace does not work here: {done.stderr[-200:]}"


class Bpftrace:
    """Counts events: counts() returns {(event, arguments...): calls}, of actions {(map, keys...):
    number}. path: the file whose sites they are; actions: of other events, in bpftrace's language."""

    def __init__(self, app, path, events=(), actions=None):
        actions = dict(actions or {})
        for event in events:
            arguments = ", ".join(f"arg{i}" for i in range(len(EVENTS[event])))
            actions[event] = f"@{event}[{arguments}] = count();"
        program = [r'BEGIN { printf("listening\n"); }']
        program += [f"usdt:{path}:ringtap:{event} {{ {action} }}" for event, action in actions.items()]
        self.proc = Proc(["bpftrace", "-B", "none", "-f", "json", "-p", app.pid,
                          "-e", "\n".join(program)])
        self.proc.expect("listening", 60)  # it is printed when all sites are attached

    def counts(self):
        """Ends it."""
        self.proc.send_signal(signal.SIGINT)
        assert self.proc.wait() == 0, self.proc.output
        out = Counter()
        for line in self.proc.output.splitlines():
            told = json.loads(line) if line.startswith("{") else {}
            if told.get("type") != "map":
                assert "lost" not in told.get("type", ""), line
                continue
            for name, table in told["data"].items():
                for arguments, calls in table.items():
                    out[(name[1:], *map(int, arguments.split(",")))] = calls
        return out

    def close(self):
        self.proc.close()
