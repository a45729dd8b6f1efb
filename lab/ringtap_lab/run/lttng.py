# SPDX-License-Identifier: BSD-3-Clause
"""LTTng, by itself: a session daemon in a mount namespace of its own, so that nobody else's sessions are
touched, and none is left when it has gone."""
import contextlib
import os
import re
import shutil
import subprocess

from ..tools import process
from . import attached

FOLDER = "/run/lttng"  # where root's daemon has its sockets, and nowhere else
PROVIDER = "libringtap-lttng.so"
SESSION = "overhead"
START_S = 30
BUFFERS = ["--subbuf-size=4M", "--num-subbuf=8"]


class Daemon:
    """Applications that are started with prefix before their commands see it."""

    def __init__(self, lab):
        attached.installed(lab, "lttng-sessiond", "lttng-tools")
        attached.installed(lab, "lttng", "lttng-tools")
        self.argv = [*attached.on_cpu(lab), "unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', FOLDER,
                     "lttng-sessiond", "--no-kernel"]
        self.env = {"LTTNG_HOME": lab.folder()}

    def __enter__(self):
        self.made = not os.path.exists(FOLDER)
        os.makedirs(FOLDER, exist_ok=True)
        self.process = process.start(self.argv, self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
        try:
            process.wait_for(lambda: self._call("list")[0] == 0, START_S, "lttng-sessiond")
        except BaseException:
            self.__exit__()
            raise
        return self

    @property
    def prefix(self):
        return ["nsenter", "-m", "-t", str(self.process.pid)]

    def _call(self, *args):
        return process.run([*self.prefix, "lttng", "--no-sessiond", *args], self.env)

    def tell(self, *args):
        """What the command lttng prints."""
        status, out, err = self._call(*args)
        if status != 0:
            raise RuntimeError(f"lttng {args[0]}: {(err or out).strip()}")
        return out

    def __exit__(self, *_):
        process.stop(self.process)  # it takes its consumers along
        if self.made:
            with contextlib.suppress(OSError):  # another daemon has begun to use it
                os.rmdir(FOLDER)


class Session:
    """Records all events of ours. Bursts are counted by the application's port: babeltrace2 would take
    longer than all the rest."""

    def __init__(self, lab, daemon, app, burst):
        self.daemon, self.app, self.burst = daemon, app, burst
        self.folder = os.path.join(lab.folder(), lab.unique("ctf"))

    def __enter__(self):
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self):
        tell = self.daemon.tell
        tell("create", SESSION, "-o", self.folder)
        tell("enable-channel", "-u", "c", *BUFFERS)
        tell("enable-event", "-u", "-c", "c", "ringtap:*")
        tell("start", SESSION)
        process.wait_for(lambda: self.app.telemetry.ask("/ringtap/trace")["bursts_traced"], START_S, "events")
        _, self.before = self.app.received()

    def events(self):
        """(events, packets in them, events lost)."""
        _, after = self.app.received()
        self.daemon.tell("stop", SESSION)
        found = re.findall(r"Discarded events: (\d+)", self.daemon.tell("list", SESSION))
        if not found:
            raise RuntimeError("lttng does not say what it discarded")
        packets = after - self.before
        return packets // self.burst, packets // self.burst * self.burst, sum(int(n) for n in found)

    def __exit__(self, *_):
        with contextlib.suppress(RuntimeError):
            self.daemon.tell("destroy", SESSION)
        shutil.rmtree(self.folder, ignore_errors=True)
