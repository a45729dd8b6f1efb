# SPDX-License-Identifier: BSD-3-Clause
"""Third-party readers of events: bpftrace, LTTng, babeltrace2; and USDT sites of ELF files."""

import json
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
    """The sites of provider ringtap."""
    text = check(["readelf", "-nW", path])
    found = re.findall(
        r"Provider: ringtap\s+Name: (\w+)\s+Location: (\w+),.*?Semaphore: (\w+)\s+"
        r"Arguments:(.*)",
        text,
    )
    return [
        Site(event, int(at, 16), int(semaphore, 16), arguments.split()) for event, at, semaphore, arguments in found
    ]


def bpftrace_missing():
    """The reason why it cannot be used here, or None."""
    if not shutil.which("bpftrace"):
        return "bpftrace is not installed"
    done = run(["bpftrace", "-e", "BEGIN { exit(); }"])
    return None if done.returncode == 0 else f"bpftrace does not work here: {done.stderr[-200:]}"


class Bpftrace:
    """Counts events: counts() returns {(event, arguments...): calls}; of actions, {(map, keys...):
    number}. path: the file with the sites; app: None for all processes with the file; actions:
    {event: code in the language of bpftrace}."""

    def __init__(self, app, path, events=(), actions=None):
        actions = dict(actions or {})
        for event in events:
            arguments = ", ".join(f"arg{i}" for i in range(len(EVENTS[event])))
            actions[event] = f"@{event}[{arguments}] = count();"
        program = [r'BEGIN { printf("listening\n"); }']
        program += [f"usdt:{path}:ringtap:{event} {{ {action} }}" for event, action in actions.items()]
        whose = ["-p", app.pid] if app else []
        self.proc = Proc(["bpftrace", "-B", "none", "-f", "json", *whose, "-e", "\n".join(program)])
        self.proc.expect("listening")  # printed after all sites are attached

    def counts(self):
        """Ends bpftrace and returns its counts."""

        # bpftrace 0.17 ignores a SIGINT while it is busy, and a second one ends it without output.
        def ended():
            self.proc.send_signal(signal.SIGTERM)
            return self.proc.ends_within(0.2)

        until(ended, what="bpftrace to end")
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
    """A trace, read by babeltrace2. events: {(event, arguments...): calls}; discarded: number of
    events that the tracer had no space for."""

    def __init__(self, folder):
        done = run(["babeltrace2", folder])
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
    """The reason why it cannot be used here, or None."""
    for program, package in (
        ("lttng", "lttng-tools"),
        ("lttng-sessiond", "lttng-tools"),
        ("babeltrace2", "babeltrace2"),
    ):
        if not shutil.which(program):
            return f"{program} is not installed ({package})"
    return None


class Lttng:
    """A session daemon in a separate mount namespace; applications join it with namespace=."""

    RUN = Path("/run/lttng")  # always the folder of root's daemon

    def __init__(self, home):
        self._env = {"LTTNG_HOME": str(home)}
        # It stays: a folder that is removed takes the mounts on it in all other namespaces away.
        self.RUN.mkdir(exist_ok=True)
        self.daemon = Proc(
            [
                "unshare",
                "-m",
                "sh",
                "-c",
                'mount -t tmpfs none "$0" && exec "$@"',
                self.RUN,
                "lttng-sessiond",
                "--no-kernel",
            ],
            env=self._env,
        )
        try:
            # Before that, nsenter would find the namespace that unshare leaves.
            until(
                lambda: self._comm() == "lttng-sessiond" or not self.daemon.alive(), what="the daemon's own namespace"
            )
            until(lambda: self._run("list").returncode == 0 or not self.daemon.alive(), what="a session daemon")
            assert self.daemon.alive(), self.daemon.output
        except BaseException:
            self.close()
            raise

    @property
    def prefix(self):
        # LTTng's default of three seconds is too short for a loaded machine.
        return ["nsenter", "-m", "-t", str(self.daemon.pid), "env", "LTTNG_UST_REGISTER_TIMEOUT=60000"]

    def _comm(self):
        return Path(f"/proc/{self.daemon.pid}/comm").read_text().strip()

    def _run(self, *args):
        return run([*self.prefix, "lttng", "--no-sessiond", *args], env=self._env)

    def lttng(self, *args):
        done = self._run(*args)
        state = "alive" if self.daemon.alive() else "dead"
        assert done.returncode == 0, f"{args}: {done}; the daemon is {state}:\n{self.daemon.output[-3000:]}"
        return done.stdout

    def start(self, out, *channel):
        """Starts a session that records all events of ringtap to the folder out."""
        self.lttng("create", "s", "-o", out)
        self.lttng("enable-channel", "-u", "c", *channel)
        self.lttng("enable-event", "-u", "-c", "c", "ringtap:*")
        self.lttng("start")

    def stop(self):
        self.lttng("stop")
        self.lttng("destroy", "s")

    def kill(self):
        """Kills the daemon and its consumers at the same time; the namespace exists while processes
        are in it."""
        group = str(self.daemon.pid)  # it is the leader
        check(["pkill", "-KILL", "--pgroup", group])
        self.daemon.wait()

    def close(self):
        self.daemon.send_signal(signal.SIGTERM)  # it ends its consumers
        self.daemon.wait()
        self.daemon.close()
