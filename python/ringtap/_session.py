# SPDX-License-Identifier: BSD-3-Clause
"""The session behind a Capture: the C handle, its lock and its end."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from ._apps import Error, check, text
from ._ringtap import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RUNS = 16
OVERWRITTEN = "the application has overwritten packets that were not read yet"
SLICE_MS = 100  # for Ctrl-C, which Python handles between calls
END_S = 1  # how long close() waits for applications; one that is paused stops copying when it continues

# Mappings outlive their sessions while there are views.
_sessions, _mappings = weakref.WeakSet(), weakref.WeakSet()


class Interface:
    """A captured port: app, name, device, driver, port_id, mac (bytes), link_mbps (0: unknown)."""

    __slots__ = ("app", "device", "driver", "link_mbps", "mac", "name", "port_id")

    def __init__(self, raw: Any):
        self.app, self.name = text(raw.app_name), text(raw.name)
        self.device, self.driver = text(raw.device), text(raw.driver)
        self.port_id, self.mac, self.link_mbps = raw.port_id, bytes(raw.mac), raw.link_mbps

    def __repr__(self):
        return f"<ringtap.Interface {self.app}:{self.name}>"


class Mapping:
    """Owns the C handle. Views of packets refer to it: the rings stay mapped as long as one lives."""

    def __init__(self):
        out = ffi.new("struct ringtap_capture **")
        check(lib.ringtap_capture_create(out, ffi.NULL))
        self.cap = ffi.gc(out[0], lib.ringtap_capture_close)
        _mappings.add(self)

    def keep(self, _: Any) -> None:
        """The destructor of a view's pointer: its reference is what counts."""


class Session:
    """State that a Capture and its iterator share. It ends with close(), or with the last reference.

    cffi releases the interpreter's lock in each call, so a lock of its own guards the C handle. The iterator
    holds it while it waits for packets; other threads interrupt that wait. Python's locks are not fair:
    _queue makes the iterator wait for its turn."""

    mapping = None
    closed = forked = False
    packets = None  # a weak reference to the iterator

    def __init__(self, duration: float | None):
        self._queue, self._lock = threading.Lock(), threading.Lock()
        self._end = None if duration is None else time.monotonic() + duration
        self._stopping = self._stopped = False
        self.interfaces = []
        self.mapping = Mapping()
        _sessions.add(self)

    def __del__(self):
        self.close()

    def check_usable(self) -> None:
        if self.forked:
            raise ValueError("the capture belongs to the parent process")
        if self.closed:
            raise ValueError("the capture is closed")

    @contextlib.contextmanager
    def _turn(self, interrupt: bool):
        with self._queue:
            mapping = self.mapping
            if interrupt and mapping:
                lib.ringtap_capture_break(mapping.cap)
            self._lock.acquire()
        try:
            yield
            if self._stopping:
                self._send_stop()
        finally:
            self._lock.release()

    def call(self, function: Callable, *args) -> int:
        """function(handle, *args), while no other thread is in a call. Raises Error for a negative code."""
        self.check_usable()
        with self._turn(True):
            self.check_usable()
            code = function(self.mapping.cap, *args)
            return code if code >= 0 else self._fail(code)

    def _fail(self, code: int):
        raise Error(-code, text(lib.ringtap_capture_error(self.mapping.cap)))

    def stop(self) -> None:
        """From any thread, and from a signal handler: it does not wait. The thread that holds the lock sends
        the request when its call has ended."""
        self.check_usable()
        mapping = self.mapping
        self._stopping = True
        if mapping:
            lib.ringtap_capture_break(mapping.cap)
        if self._lock.acquire(blocking=False):
            try:
                self._send_stop()
            finally:
                self._lock.release()

    def _send_stop(self):
        if not self._stopped and not self.closed:
            self._stopped = True
            code = lib.ringtap_capture_stop(self.mapping.cap)
            if code < 0:
                self._fail(code)

    def _wait_ms(self):
        if self._end is None or self._stopping:
            return SLICE_MS
        left = self._end - time.monotonic()
        if left <= 0:
            self._stopping = True
        return max(0, min(SLICE_MS, int(left * 1000) + 1))

    def next(self, runs: Any) -> int | None:
        """Releases the runs handed out before, and waits for the next. Returns their number, None at the end."""
        with self._turn(False):
            if self.closed:
                return None
            lib.ringtap_capture_release(self.mapping.cap)
            wait_ms = self._wait_ms()
            if self._stopping:
                self._send_stop()
            count = lib.ringtap_capture_next(self.mapping.cap, runs, RUNS, wait_ms)
            if count == -errno.EPIPE:
                return None
            return count if count >= 0 else self._fail(count)

    def close(self) -> None:
        """Ends the session, although views may keep the rings mapped."""
        if self.closed or self.forked or not self.mapping:
            return
        with self._turn(True):
            if not self.closed:
                self.closed = True
                self._drain(self.mapping.cap)
                lib.ringtap_capture_detach(self.mapping.cap)
                self.mapping = None

    @staticmethod
    def _drain(cap: Any):
        """An application that waits for room in a ring answers once it has found some."""
        lib.ringtap_capture_stop(cap)
        runs, until, count = ffi.new("struct ringtap_run[]", RUNS), time.monotonic() + END_S, 0
        while count >= 0 and time.monotonic() < until:
            lib.ringtap_capture_release(cap)
            count = lib.ringtap_capture_next(cap, runs, RUNS, 10)

    def learn(self) -> list[Interface]:
        """Interfaces that have appeared."""
        with self._turn(True):
            self.check_usable()
            cap = self.mapping.cap
            while len(self.interfaces) < lib.ringtap_capture_interface_count(cap):
                raw = ffi.new("struct ringtap_interface *")
                raw.size = ffi.sizeof("struct ringtap_interface")
                check(lib.ringtap_capture_interface(cap, len(self.interfaces), raw))
                self.interfaces.append(Interface(raw))
        return self.interfaces


def _after_fork_in_child():
    """The session is the parent's, and ends with it: the child closes its copy of the connection. Views stay
    readable."""
    for mapping in list(_mappings):
        lib.ringtap_capture_detach(mapping.cap)
    for session in list(_sessions):
        session.forked, session.mapping = True, None
        packets = session.packets and session.packets()
        if packets:
            with contextlib.suppress(ValueError):  # another thread of the parent was in it
                packets.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
