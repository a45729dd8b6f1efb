# SPDX-License-Identifier: BSD-3-Clause
"""Foreign readers of events: bpftrace, LTTng, babeltrace2; and the USDT sites in ELF files."""
import json
import os
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

from .proc import Proc, check, run, until

# As in docs/tracing.md.
EVENTS = {
    "rx_burst": ("port", "queue", "nb_pkts", "nb_rx"),
    "empty_poll": ("port", "queue", "nb_pkts"),
    "tx_burst": ("port", "queue", "nb_pkts", "nb_tx"),
    "tx_refused": ("port", "queue", "packets"),
    "drop": ("port", "queue", "packets", "reason"),
    "session_open": ("session", "reader"),
    "session_close": ("session", "reader"),
    "ring_full": ("session", "port", "queue", "packets"),
    "latency": ("port", "queue", "packets", "sum_cycles", "max_cycles"),
}
IMISSED, IERRORS, RX_NOMBUF = 16, 17, 18  # reasons of drop
NO_QUEUE = 0xFFFF


class Site:
    """One USDT site, as readelf prints it."""

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
    number}. path: the file whose sites they are; app: None for all processes that have the file;
    actions: of other events, in bpftrace's language."""

    def __init__(self, app, path, events=(), actions=None):
        actions = dict(actions or {})
        for event in events:
            arguments = ", ".join(f"arg{i}" for i in range(len(EVENTS[event])))
            actions[event] = f"@{event}[{arguments}] = count();"
        program = [r'BEGIN { printf("listening\n"); }']
        program += [f"usdt:{path}:ringtap:{event} {{ {action} }}" for event, action in actions.items()]
        whose = ["-p", app.pid] if app else []
        self.proc = Proc(["bpftrace", "-B", "none", "-f", "json", *whose, "-e", "\n".join(program)])
        self.proc.expect("listening", 60)  # it is printed when all sites are attached

    def counts(self):
        """Ends it."""
        # bpftrace 0.17 forgets a SIGINT that finds it at work, and a second one ends it without its counts.
        def ended():
            self.proc.send_signal(signal.SIGTERM)
            return self.proc.ends_within(0.2)
        until(ended, 60, "bpftrace to end")
        assert self.proc.wait() == 0, self.proc.output
        out = Counter()
        for line in self.proc.output.splitlines():
            reply = json.loads(line) if line.startswith("{") else {}
            if reply.get("type") != "map":
                assert "lost" not in reply.get("type", ""), line
                continue
            for name, table in reply["data"].items():
                for arguments, calls in table.items():
                    out[(name[1:], *map(int, arguments.split(",")))] = calls
        return out

    def close(self):
        self.proc.close()


class Ctf:
    """A trace, as babeltrace2 reads it. events: {(event, arguments...): calls}; discarded: how many
    the tracer had no room for."""

    def __init__(self, folder):
        done = run(["babeltrace2", folder], timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        self.events = Counter()
        for line in done.stdout.splitlines():
            event, fields = re.search(r" ringtap[:.](\w+): .*\{ ([^{}]*) \}$", line).groups()
            named = dict(re.findall(r"(\w+) = (\w+)", fields))
            self.events[(event, *(int(named[name], 0) for name in EVENTS[event]))] += 1
        self.discarded = sum(map(int, re.findall(r"discarded (\d+) event", done.stderr)))

    def count(self, event):
        return sum(calls for key, calls in self.events.items() if key[0] == event)


def lttng_missing():
    """Why it cannot be used here, or None."""
    for program, package in (("lttng", "lttng-tools"), ("lttng-sessiond", "lttng-tools"),
                             ("babeltrace2", "babeltrace2")):
        if not shutil.which(program):
            return f"{program} is not installed ({package})"
    return None


class Lttng:
    """A session daemon in a mount namespace of its own, where nobody else's is seen; applications
    run in it with namespace=."""

    RUN = Path("/run/lttng")  # root's daemon is nowhere else

    def __init__(self, home):
        self._env = {"LTTNG_HOME": str(home)}
        self._made = not self.RUN.exists()
        self.RUN.mkdir(exist_ok=True)
        self.daemon = Proc(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"',
                            self.RUN, "lttng-sessiond", "--no-kernel"], env=self._env)
        try:
            until(lambda: self._run("list").returncode == 0 or not self.daemon.alive(), 30,
                  "a session daemon")
            assert self.daemon.alive(), self.daemon.output
        except BaseException:
            self.close()
            raise

    @property
    def prefix(self):
        # LTTng's own three seconds are short for a loaded machine.
        return ["nsenter", "-m", "-t", str(self.daemon.pid), "env", "LTTNG_UST_REGISTER_TIMEOUT=60000"]

    def _run(self, *args):
        return run([*self.prefix, "lttng", "--no-sessiond", *args], env=self._env)

    def lttng(self, *args):
        return check([*self.prefix, "lttng", "--no-sessiond", *args], env=self._env)

    def start(self, out, *channel):
        """A session that records all events of ours to the folder out."""
        self.lttng("create", "s", "-o", out)
        self.lttng("enable-channel", "-u", "c", *channel)
        self.lttng("enable-event", "-u", "-c", "c", "ringtap:*")
        self.lttng("start")

    def stop(self):
        self.lttng("stop")
        self.lttng("destroy", "s")

    def kill(self):
        """The daemon and its consumers, all at once; the namespace stays as long as those in it."""
        session = str(self.daemon.pid)  # it began one
        check(["pkill", "-KILL", "--session", session])
        self.daemon.wait()

    def close(self):
        self.daemon.send_signal(signal.SIGTERM)  # it takes its consumers along
        self.daemon.wait()
        self.daemon.close()
        if self._made and not os.listdir(self.RUN):
            self.RUN.rmdir()
