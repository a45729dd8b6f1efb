# SPDX-License-Identifier: BSD-3-Clause
"""A false folder of incidents."""

import fcntl
import json
import os
import signal

SEQUENCES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x7f"
LINE = "\nforged: a line"
INCIDENT = {
    "name": "x",
    "applications": [{"name": "app" + SEQUENCES + LINE}],
    "error": "full" + SEQUENCES + LINE,
    "packets": 1,
    "bytes": 2,
    "lost": 0,
    "window_ns": 10**9,
    "missing_ns": 0,
    "not_written": [SEQUENCES + LINE],
    "trigger": {key: key + SEQUENCES + LINE for key in ("condition", "where", "value", "comment")},
}


def name_of(number, name="exit"):
    return f"20260102T030405.{number:06}-{name}"


def incident(folder, number, document=None, name="exit"):
    path = folder / name_of(number, name)
    path.mkdir()
    (path / "incident.json").write_text(json.dumps(INCIDENT if document is None else document))
    (path / "doctor.txt").write_text("a verdict" + SEQUENCES)
    return path


def in_place_of(path, what):
    """Puts a FIFO, a device, a file of 16 GiB or a link to another file instead of a file."""
    path.unlink(missing_ok=True)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "large":
        path.touch()
        os.truncate(path, 1 << 34)
    elif what == "device":
        path.symlink_to("/dev/tty")
    elif what == "link":
        path.symlink_to("/etc/passwd")


class Lease:
    """Holds a lease of a file, whose open() waits 45 seconds."""

    def __init__(self, path):
        # The holder is notified by SIGIO.
        self.before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        self.fd = os.open(path, os.O_RDONLY)
        fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def close(self):
        os.close(self.fd)
        signal.signal(signal.SIGIO, self.before)
