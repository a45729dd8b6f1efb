# SPDX-License-Identifier: BSD-3-Clause
"""Adds files as they are closed: those of a folder, or those of `ringtap record` that it starts."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

from . import ingest, show, units
from .errors import Refused

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from .ingest import Ingester

SUFFIXES = (".pcapng", ".pcap", ".ntar", ".zst", ".lz4", ".gz")
IN_CLOSE_WRITE, IN_MOVED_TO, IN_Q_OVERFLOW, IN_IGNORED = 0x8, 0x80, 0x4000, 0x8000  # <sys/inotify.h>
EVENT = struct.Struct("iIII")
SPOOL = ".spool"


class Closed:
    """Names of files in a folder that were closed by their writer, or moved there."""

    def __init__(self, folder: Path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_CLOSE_WRITE | IN_MOVED_TO) < 0:
            code = ctypes.get_errno()
            advice = "; raise fs.inotify.max_user_watches" if code == errno.ENOSPC else ""
            raise Refused(f"cannot watch '{folder}': {os.strerror(code)}{advice}")
        self.folder = folder

    def read(self) -> list[Path] | None:
        """Files closed since the last call, in this order; None: events were lost; list the folder."""
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return []
        names, at = [], 0
        while at < len(data):
            _, mask, _, size = EVENT.unpack_from(data, at)
            names.append(os.fsdecode(data[at + EVENT.size : at + EVENT.size + size].rstrip(b"\0")))
            at += EVENT.size + size
            if mask & IN_Q_OVERFLOW:
                return None
            if mask & IN_IGNORED:
                raise Refused(f"'{self.folder}' was removed; nothing more will come")
        return [self.folder / name for name in names]

    def close(self) -> None:
        os.close(self.fd)


class Stop:
    """Signals that end the work, as a readable descriptor: a file that is being added is completed."""

    def __init__(self, *numbers):
        self.fd, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.wanted = False
        self.old = {number: signal.signal(number, self._note) for number in numbers}
        self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def _note(self, number: int, _: Any):
        self.wanted = self.wanted or number != signal.SIGCHLD

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 4096)

    def close(self) -> None:
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self.old.items():
            signal.signal(number, handler)
        os.close(self.fd)
        os.close(self._write)


def is_recording(path: Path) -> bool:
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".")


def complete(folder: Path, closed: bool = False) -> tuple:
    """Recordings of the folder that no process writes, the oldest first; and whether there are others whose state is not
    known yet. closed: no process writes any of those."""
    found, later = [], False
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            if not is_recording(path) or not path.is_file():
                continue
            status, writer = path.stat(), ingest.open_for_writing(path)
            if writer is None and not closed and not ingest.settled(status):
                later = True
            elif not writer:
                found.append((status.st_mtime_ns, path.name, path))
    return [path for _, _, path in sorted(found)], later


class Watch:
    """Adds each file of a folder once it is closed; one that failed is tried again when it is closed
    again, and at the next start."""

    def __init__(self, ingester: Ingester, folder: Path, remove: bool = False):
        self.ingester, self.folder, self.remove = ingester, folder, remove
        self.closed = Closed(folder)
        self.done = set()
        self.later = False  # there are files of which it cannot be told yet whether they are written

    def add(self, paths: Any, stop: Stop | None = None, closed: bool = False) -> None:
        for path in paths:
            if stop and stop.wanted:
                return
            self.add_one(path, closed)

    def add_one(self, path: Path, closed: bool, following: Path | None = None) -> None:
        if not is_recording(path) or not path.is_file():
            return
        try:
            now = path.stat()
        except FileNotFoundError:
            return
        state = (path, *ingest.identity(now))
        if (
            state not in self.done
            and not ingest.open_for_writing(path)
            and self.ingester.add(path, self.remove, closed, following)
        ):
            self.done.add(state)

    def new(self, stop: Stop | None = None) -> None:
        paths = self.closed.read()
        if paths is None:
            self.all(stop)
        else:
            self.add(paths, stop, closed=True)

    def all(self, stop: Stop | None = None, closed: bool = False) -> None:
        """All files in the folder."""
        paths, self.later = complete(self.folder, closed)
        self.add(paths, stop, closed)

    def run(self, stop: Stop, more: Callable) -> Any:
        """Until more() is false or a signal comes."""
        self.all(stop)
        while not stop.wanted and more():
            ready, _, _ = select.select([self.closed.fd, stop.fd], [], [], ingest.SETTLED_S if self.later else None)
            if not ready:
                self.all(stop)
            if stop.fd in ready:
                stop.drain()
            if self.closed.fd in ready:
                self.new(stop)


class Following(Watch):
    """Files of one recording after the other: each waits for the next one, which has fates of its packets."""

    def __init__(self, ingester: Ingester, folder: Path, fates: bool):
        super().__init__(ingester, folder, remove=True)
        self.fates, self.held = fates, None

    def add(self, paths: Any, stop: Stop | None = None, closed: bool = False) -> None:
        if not self.fates:
            super().add(paths, stop, closed)
        for path in filter(is_recording, paths if self.fates else ()):
            if stop and stop.wanted:
                return
            if self.held and path != self.held:
                self.add_one(self.held, closed, path)
            self.held = path

    def last(self) -> None:
        """All files in the folder, since no file follows."""
        self.all(closed=True)
        if self.held:
            self.add_one(self.held, True)


def _stop(duration: int | None, *numbers: signal.Signals) -> Stop:
    """duration: ns until it is wanted without a signal from outside."""
    stop = Stop(signal.SIGINT, signal.SIGTERM, signal.SIGALRM, *numbers)
    if duration is not None:
        signal.setitimer(signal.ITIMER_REAL, max(duration / units.NS, 1e-6))
    return stop


def watch(ingester: Ingester, args: Namespace) -> int:
    folder = args.watch
    if not folder.is_dir():
        raise Refused(f"cannot watch '{folder}': it is not a folder")
    stop = _stop(args.duration)
    it = Watch(ingester, folder)
    it.run(stop, lambda: True)
    return 1 if ingester.failed else 0


# ---- --follow


def _spool(ingester: Ingester):
    """A folder in the archive for the recorder's files, which is locked as long as it is in use."""
    name = f"{SPOOL}/recorder={ingester.recorder}"
    folder = ingester.archive.path / name
    with ingester.archive.locked(), ingester.archive.tree.folder(name, 0o700):
        lock = ingester.archive.tree.open(f"{name}/.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise Refused(
            f"another 'ingest --follow' records as '{ingester.recorder}'; name this one with --recorder"
        ) from None
    return folder


def _ringtap():
    program = os.environ.get("RINGTAP_PROGRAM") or shutil.which("ringtap")
    if not program:
        raise Refused("ringtap was not found; put it into PATH, or name it with RINGTAP_PROGRAM")
    return program


def _record(app: str, folder: Path, args: Namespace):
    # If this process is killed, the recorder ends as with Ctrl-C: its last file is whole. Ctrl-C of a
    # terminal is for this process, which passes it on.
    argv = [
        "setpriv",
        "--pdeathsig",
        "TERM",
        _ringtap(),
        "record",
        app,
        *args.files,
        "-b",
        f"duration:{args.rotate // 1_000_000}ms",
        "-w",
        folder / f"{os.getpid()}.pcapng",
    ]
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, process_group=0)
    except OSError as e:
        raise Refused(f"cannot start '{argv[0]}': {e.strerror}") from e


def follow(ingester: Ingester, args: Namespace) -> int:
    if args.shared:  # others could put another folder in the place of the recorder's
        raise Refused(
            "--follow records into an archive of one user; record elsewhere, and add the files by --watch DIR --shared"
        )
    folder = _spool(ingester)
    stop = _stop(args.duration, signal.SIGCHLD)
    it = Following(ingester, folder, "--fates" in args.files)
    recorder = _record(args.follow, folder, args)
    it.run(stop, lambda: recorder.poll() is None)
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGTERM)
    status = recorder.wait()
    it.last()
    left = [path for path in folder.iterdir() if is_recording(path)]
    if left:
        show.warn(f"{len(left)} files are left in {folder}; the next --follow of this recorder adds them")
    if status:
        raise Refused(f"ringtap record ended with status {status}; what it wrote was added")
    return 1 if ingester.failed else 0
