# SPDX-License-Identifier: BSD-3-Clause
"""The ringtap command."""

import json
import signal

from . import pcapng
from .documents import only
from .paths import RINGTAP
from .proc import Proc, run

OK, FAILED, USAGE, LOSS = 0, 1, 2, 3  # exit status
# Populating ringtap's default of 256 MiB takes half a second of a virtual machine's CPU.
BUFFER = "16M"
TCPDUMP_BUFFER = ("-B", "16384")  # KiB


def listing():
    """Applications by `ringtap list`."""
    done = run([RINGTAP, "list", "--json"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["applications"]


def sessions(app):
    """Sessions of the application by `ringtap list`."""
    return [s for a in listing() if a["name"] == app.prefix for s in a["sessions"] or ()]


class Recorder:
    """A running `ringtap record`. Tests use the fixture record(), which also cleans up. buffer: its
    size if args have no --buffer; None: ringtap's default."""

    def __init__(self, args, out=None, stdout=None, prefix=(), buffer=BUFFER, **kwargs):
        self.out = out
        argv = [*prefix, RINGTAP, "record", *args]
        if buffer and "--buffer" not in args:
            argv += ["--buffer", buffer]
        if out:
            argv += ["-w", out]
        self.proc = Proc(argv, stdout=stdout, **kwargs)

    def attached(self):
        self.proc.expect(r"^Capturing on")
        return self

    def finish(self, number=signal.SIGINT, status=OK):
        """Ends the capture as Ctrl-C does; returns the output."""
        self.proc.send_signal(number)
        return self.done(status)

    def done(self, status=OK):
        """Waits until it has ended by itself; returns the output."""
        got = self.proc.wait()
        assert got == status, f"status {got}, not {status}:\n{self.proc.output[-3000:]}"
        return self.proc.output

    def report(self):
        """Ends the capture; returns the only application's object of --json."""
        output = self.finish()
        return only(json.loads(output[output.index("\n{") : output.rindex("}") + 1]))

    def file(self, path=None):
        """The recorded file, read with all checks."""
        return pcapng.read(path or self.out)

    def close(self):
        self.proc.close()


def frames_of(file, interface=None, direction=None):
    """The packets' bytes of one interface (by name) and direction."""
    return [p.data for p in packets_of(file, interface, direction)]


def packets_of(file, interface=None, direction=None):
    return [
        p
        for p in file.packets
        if (interface is None or file.interfaces[p.interface].name == interface)
        and (direction is None or p.direction == direction)
    ]
