# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap trace`, which must leave nothing behind."""

import json
import re
import signal
from pathlib import Path

from .documents import only
from .paths import RINGTAP
from .proc import Proc, name_of, run, until
from .tracers import usdt_sites

NOP = b"\x90"


class Tracing:
    """A running `ringtap trace WHAT`; events count from when this returns. prefix: a command
    prefix, such as for namespaces."""

    def __init__(self, app, folder, *args, prefix=(), **kwargs):
        self.app = app
        self._out = folder / f"trace-{len(list(folder.iterdir()))}.out"
        with open(self._out, "wb") as f:
            self.proc = Proc([*prefix, RINGTAP, "trace", *args, app.prefix], stdout=f, **kwargs)
        try:
            self.proc.expect("^Tracing ")
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        """Process id of ringtap."""
        return self.proc.pid

    def children(self):
        """Child processes, as (pid, name)."""
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [(int(p), name) for p in text.split() if (name := name_of(p))]

    def finish(self, number=signal.SIGINT, status=0):
        """Ends it by a signal (None: waits for its end); returns its standard output."""
        if number:
            self.proc.send_signal(number)
        got = self.proc.wait()
        assert got == status, f"status {got}, not {status}:\n{self.proc.output[-3000:]}"
        return self._out.read_text()

    def json(self, number=signal.SIGINT):
        """The application's object, and what ended the trace."""
        document = json.loads(self.finish(number))
        return only(document) | {"ended_by": document["ended_by"]}

    def close(self):
        self.proc.close()


def _read(app, file, places, size):
    """Bytes at each offset of the file, from the memory of the application."""
    maps = Path(f"/proc/{app.pid}/maps").read_text()
    base = int(re.search(rf"^(\w+)-\w+ \S+ 00000000 .* {re.escape(str(file))}$", maps, re.MULTILINE).group(1), 16)
    with open(f"/proc/{app.pid}/mem", "rb") as memory:
        out = []
        for at in places:
            memory.seek(base + at)
            out.append(memory.read(size))
    return out


def bytes_at_sites(app, file, name=None, sites=None):
    """The byte at each USDT site of the file, in the memory of the application. name: of the file there. sites: by
    usdt_sites(), which takes a while."""
    return _read(app, name or file, [s.at for s in sites or usdt_sites(file)], 1)


def semaphores(app, file, name=None):
    """Number of tracers of the events with a semaphore: the values in the application."""
    places = {s.semaphore for s in usdt_sites(file) if s.semaphore}
    return {int.from_bytes(n, "little") for n in _read(app, name or file, sorted(places), 2)}


def exists(pid):
    return Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text()


def nothing_left(app, file, children=()):
    """Waits until the application has no breakpoint and no hook, and the children have ended."""

    def gone():
        return (
            set(bytes_at_sites(app, file)) == {NOP}
            and semaphores(app, file) == {0}
            and app.one("callbacks 0") == 0
            and not any(exists(pid) for pid, _ in children)
        )

    until(gone, what="breakpoints, hooks and processes are gone")


def tracing(*args, **kwargs):
    """Runs `ringtap trace` to its end."""
    return run([RINGTAP, "trace", *args], **kwargs)
