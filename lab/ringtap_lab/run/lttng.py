# SPDX-License-Identifier: BSD-3-Clause
"""LTTng: a session daemon in a mount namespace of its own, which reaches no other sessions, and leaves none behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from ..tools import process
from . import attached

if TYPE_CHECKING:
    from typing import Any

    from .lab import Lab

FOLDER = "/run/lttng"  # where root's daemon has its sockets, and nowhere else
PROVIDER = "libringtap-lttng.so"
SESSION = "overhead"
START_S = 30
BUFFERS = ["--subbuf-size=4M", "--num-subbuf=8"]


class Daemon:
    """Applications whose commands have the prefix reach it."""

    def __init__(self, lab: Lab):
        for program in ("lttng-sessiond", "lttng"):
            attached.installed(lab, program, "lttng-tools")
        self.argv = [
            *attached.on_cpu(lab),
            "unshare",
            "-m",
            "sh",
            "-c",
            'mount -t tmpfs none "$0" && exec "$@"',
            FOLDER,
            "lttng-sessiond",
            "--no-kernel",
        ]
        self.env = {"LTTNG_HOME": lab.folder()}

    def __enter__(self) -> Any:
        # It stays: a folder that is removed takes the mounts on it in all other namespaces away.
        os.makedirs(FOLDER, exist_ok=True)
        null = subprocess.DEVNULL
        self.process = process.start(self.argv, self.env, stdin=null, stdout=null, stderr=null)
        self.prefix = ["nsenter", "-m", "-t", str(self.process.pid)]
        try:
            process.wait_for(lambda: self._call("list")[0] == 0, START_S, "lttng-sessiond")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _call(self, *args):
        return process.run([*self.prefix, "lttng", "--no-sessiond", *args], self.env)

    def command(self, *args) -> Any:
        """The output of the command lttng."""
        status, out, err = self._call(*args)
        if status != 0:
            raise RuntimeError(f"lttng {args[0]}: {(err or out).strip()}")
        return out

    def __exit__(self, *_) -> None:
        process.stop(self.process)  # which ends its consumers


class Session:
    """Records all events of ours. Bursts are counted by the application's port: babeltrace2 would take longer than all the
    rest."""

    def __init__(self, lab: Lab, daemon: Any, app: Any, burst: Any):
        self.command, self.app, self.burst = daemon.command, app, burst
        self.folder = os.path.join(lab.folder(), lab.unique("ctf"))

    def __enter__(self) -> Any:
        try:
            self.command("create", SESSION, "-o", self.folder)
            self.command("enable-channel", "-u", "c", *BUFFERS)
            self.command("enable-event", "-u", "-c", "c", "ringtap:*")
            self.command("start", SESSION)
            process.wait_for(lambda: self.app.telemetry.ask("/ringtap/trace")["bursts_traced"], START_S, "events")
            _, self.before = self.app.received()
        except BaseException:
            self.__exit__()
            raise
        return self

    def events(self) -> tuple:
        """(events, packets in them, events lost)."""
        _, after = self.app.received()
        self.command("stop", SESSION)
        found = re.findall(r"Discarded events: (\d+)", self.command("list", SESSION))
        if not found:
            raise RuntimeError("lttng does not print what it discarded")
        events = (after - self.before) // self.burst
        return events, events * self.burst, sum(int(n) for n in found)

    def __exit__(self, *_) -> None:
        with contextlib.suppress(RuntimeError):
            self.command("destroy", SESSION)
        shutil.rmtree(self.folder, ignore_errors=True)
