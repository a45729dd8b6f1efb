# SPDX-License-Identifier: BSD-3-Clause
"""ringtap flight, and its incidents."""
import json
import signal

from . import pcapng
from .paths import RINGTAP
from .proc import Proc, run, until

PACKETS, INCIDENT = "packets.pcapng", "incident.json"


class Incident:
    """A complete one."""

    def __init__(self, folder):
        self.folder = folder
        self.data = json.loads((folder / INCIDENT).read_text())

    def __getitem__(self, key):
        return self.data[key]

    @property
    def file(self):
        return pcapng.read(self.folder / PACKETS)

    @property
    def condition(self):
        return self["trigger"]["condition"]


class Flight:
    """A running `ringtap flight`; packets are kept from when this returns."""

    def __init__(self, app, folder, *args, prefix=(), **kwargs):
        self.folder = folder
        self.proc = Proc([*prefix, RINGTAP, "flight", app.prefix, "-w", folder, *args], **kwargs)
        try:
            self.proc.expect("^Keeping the packets of")
        except BaseException:
            self.close()
            raise

    def folders(self):
        return sorted(p for p in self.folder.iterdir() if p.is_dir())

    def incidents(self, count):
        """Waits until this number of incidents are complete; returns those that are."""
        def complete():
            done = [p for p in self.folders() if (p / INCIDENT).exists()]
            return done if len(done) >= count else None

        return [Incident(p) for p in until(complete, what=f"{count} incidents")]

    def finish(self, number=signal.SIGINT, status=0):
        self.proc.send_signal(number)
        return self.done(status)

    def done(self, status=0):
        got = self.proc.wait(60)
        assert got == status, f"status {got}, not {status}:\n{self.proc.output[-3000:]}"
        return self.proc.output

    def close(self):
        self.proc.close()


def command(name, folder, *args, status=0):
    """ringtap flight list, show, prune or trigger; returns what it printed."""
    done = run([RINGTAP, "flight", name, "-w", folder, *args])
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def within(packets, incident):
    """Those of the window."""
    return [p for p in packets if incident["from_ns"] <= p.ns <= incident["to_ns"]]
