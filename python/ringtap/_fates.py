# SPDX-License-Identifier: BSD-3-Clause
"""Packets that an application receives and does not send: those that it dropped, and those that it holds."""

from __future__ import annotations

import contextlib
import time
import typing
from typing import TYPE_CHECKING

from ._apps import text, timeout_ms
from ._capture import Capture, by_app
from ._ringtap import ffi, lib
from ._session import Interface

if TYPE_CHECKING:
    from typing import Any


class QueueFates(typing.NamedTuple):
    """Packets of a receiving queue since the capture began: received == offered + not_offered + open + unknown,
    exactly once no packet moves. offered: to the TX function of a port, which may have refused some."""

    interface: Interface
    queue: int
    received: int
    offered: int
    not_offered: int
    open: int
    unknown: int


class Held(typing.NamedTuple):
    """A received packet of which nothing is known since: the application holds it, or has freed it, and its mbuf was
    not found in its mempool. data: a copy of its first bytes; pool: the mempool's name, None if it is not known."""

    interface: Interface
    queue: int
    received_ns: int
    age_ns: int
    length: int
    data: bytes
    pool: str | None


class Drops(Capture):
    """An iterator over the packets that were not offered to any port, from drops(): time_ns is when that was noticed,
    id the time of the reception in ns since the epoch."""

    @contextlib.contextmanager
    def _fates(self, app: int):
        out = ffi.new("struct ringtap_fates **")
        self._session.call(lib.ringtap_fates_read, app, out)
        try:
            yield out[0]
        finally:
            lib.ringtap_fates_free(out[0])

    def counts(self) -> list[QueueFates]:
        """A list of QueueFates."""
        found, interfaces = [], self.interfaces
        for app in range(self._apps):
            with self._fates(app) as fates:
                for i in range(fates.queue_count):
                    q = lib.ringtap_fates_queue(fates, i)
                    not_offered = q.not_offered + q.free
                    found.append(
                        QueueFates(
                            interfaces[q.interface], q.queue, q.received, q.offered, not_offered, q.open, q.unknown
                        )
                    )
        return found

    def held(self, older: float = 1.0) -> list[Held]:
        """A list of Held: packets that were received more than this number of seconds ago, the oldest first."""
        found = []
        for app in range(self._apps):
            with self._fates(app) as fates:
                found += self._held_of(app, fates, older * 1e9)
        return sorted(found, key=lambda h: h.received_ns)

    def _held_of(self, app: int, fates: Any, older_ns: float):
        interfaces, found = self.interfaces, []

        def read(cap: Any):
            out = ffi.new("struct ringtap_open_packets **")
            code = lib.ringtap_open_packets_create(out, cap, app)
            if code < 0:
                return code
            it = ffi.gc(out[0], lib.ringtap_open_packets_free)
            while p := lib.ringtap_open_packets_next(it):
                if not p.free and fates.taken_ns - p.ns >= older_ns and p.interface < len(interfaces):
                    found.append(_held(interfaces, fates, p))
            ffi.release(it)
            return 0

        self._session.call(read)
        return found


def _held(interfaces: list[Interface], fates: Any, p: Any):
    known = p.pool < fates.pool_count
    return Held(
        interfaces[p.interface],
        p.queue,
        p.ns,
        fates.taken_ns - p.ns,
        p.length,
        bytes(ffi.buffer(p.data, p.caplen)),
        text(lib.ringtap_fates_pool(fates, p.pool).name) if known else None,
    )


def drops(
    source: str | list[str],
    filter: str | None = None,
    *,
    snaplen: int = 128,
    buffer_size: int = 0,
    duration: float | None = None,
    timeout: float = 0,
    tags: str = "any",
) -> Drops:
    """Follows what APP, or a list of them, receives on all its ports, from now on: returns Drops. It costs the application some
    20 ns a packet, and registers a dynamic field and a flag of its mbufs. Arguments are those of capture()."""
    targets = by_app([source] if isinstance(source, str) else list(source))
    if not targets or any(port is not None for ports in targets.values() for port in ports):
        raise ValueError("what becomes of packets is followed for all ports of an application: name APP only")
    options = {"buffer_size": buffer_size, "timeout_ms": timeout_ms(timeout), "fates": True}
    return Drops(targets, filter, "both", None, snaplen, duration, options, tags)


def held(
    app: str, older: float = 1.0, *, duration: float = 5.0, filter: str | None = None, timeout: float = 0
) -> list[Held]:
    """Follows what APP receives for duration (seconds), and returns a list of Held: the packets that it received then,
    more than older (seconds) ago, and of which nothing is known since, the oldest first. See drops()."""
    if not 0 <= older <= duration:
        raise ValueError("older is a number of seconds from 0 to duration: packets from before are not followed")
    with drops(app, filter, timeout=timeout) as it:
        time.sleep(duration)
        return it.held(older)
