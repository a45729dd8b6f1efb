# SPDX-License-Identifier: BSD-3-Clause
"""Statistics. Entries have the fields of the structures in ringtap/monitor.h; arrays are lists."""

from __future__ import annotations

import copy
import errno
import os
import threading
import weakref
from types import SimpleNamespace
from typing import TYPE_CHECKING

from ._apps import check, resolve, text, timeout_ms
from ._ringtap import ffi, lib

if TYPE_CHECKING:
    from typing import Any

    from ._apps import App

POLLS, BYTES, BUSY, GAPS = lib.RINGTAP_POLLS, lib.RINGTAP_BYTES, lib.RINGTAP_BUSY, lib.RINGTAP_GAPS
LATENCY, ADDRESSES, POOLS = lib.RINGTAP_LATENCY, lib.RINGTAP_ADDRESSES, lib.RINGTAP_POOLS
LATENCY_SPLIT = lib.RINGTAP_LATENCY_SPLIT

# What grows, as in ringtap_snapshot_since(); the rest are states.
COUNTERS = {
    "": ("no_thread_polls", "no_block_polls", "no_pair_packets"),  # the snapshot itself
    "ports": (
        "rx_packets",
        "tx_packets",
        "rx_bytes",
        "tx_bytes",
        "missed",
        "rx_errors",
        "no_mbuf",
        "tx_errors",
        "tx_unknown",
        "epoch",
    ),
    "threads": (
        "cpu_ns",
        "wait_ns",
        "preempted",
        "busy_cycles",
        "idle_cycles",
        "busy_periods",
        "busy_period_packets",
        "gaps_busy",
        "gaps_idle",
    ),
    "queues": ("polls", "empty_polls", "packets", "bytes", "byte_packets", "big_polls", "big_packets", "burst"),
    "pairs": ("count", "sum", "unstamped", "shared", "bucket"),
    "pools": (),
}

_monitors = weakref.WeakSet()


def _value(field: Any, value: Any):
    kind = field.type.kind
    if kind == "array":
        return text(value) if field.type.item.cname == "char" else list(value)
    return bool(value) if field.type.cname == "_Bool" else value


# ethdev's names of a driver's counters, which the C library has.
NAMES = {
    "ipackets": "rx_packets",
    "opackets": "tx_packets",
    "ibytes": "rx_bytes",
    "obytes": "tx_bytes",
    "imissed": "missed",
    "ierrors": "rx_errors",
    "rx_nombuf": "no_mbuf",
    "oerrors": "tx_errors",
}


def _entry(raw: Any):
    fields = ffi.typeof(raw).item.fields
    values = {name: _value(field, getattr(raw, name)) for name, field in fields if field.type.kind != "pointer"}
    return SimpleNamespace(**{NAMES.get(name, name): value for name, value in values.items()})


def _index(i: int):
    return None if i == lib.RINGTAP_NO_INDEX else i


def _grown(later: int | list[int], earlier: int | list[int]):
    """A counter that went back was reset in between: it counts since."""
    if isinstance(later, list):
        return [_grown(a, b) for a, b in zip(later, earlier)]
    return later - earlier if later >= earlier else later


class Snapshot:
    """All counters at a moment.

    taken_ns, taken_mono_ns, tsc_hz, interval_ns (of a difference, else 0), and the lists ports, threads,
    queues, pairs and pools. Of queues and pairs, thread and port (rx_port, tx_port) are the entries
    themselves, and so is port of gaps; of pairs, quantile(share) is a latency in nanoseconds. None: there is
    no such port or lcore, or it is unknown. ended: the application has ended, this is its last snapshot.
    """

    def __init__(self, raw: Any, ended: bool = False):
        self.__dict__.update(_entry(raw).__dict__)
        self.ended = ended
        self.ports = [_entry(lib.ringtap_snapshot_port(raw, i)) for i in range(raw.port_count)]
        self.threads = [self._thread(lib.ringtap_snapshot_thread(raw, i)) for i in range(raw.thread_count)]
        self.queues = [_entry(lib.ringtap_snapshot_queue(raw, i)) for i in range(raw.queue_count)]
        self.pairs = [self._pair(lib.ringtap_snapshot_pair(raw, i)) for i in range(raw.pair_count)]
        self.pools = [_entry(lib.ringtap_snapshot_pool(raw, i)) for i in range(raw.pool_count)]
        for q in self.queues:
            q.direction = "tx" if q.direction == lib.RINGTAP_TX else "rx"
        self._link()

    @staticmethod
    def _thread(raw: Any):
        thread = _entry(raw)
        thread.lcore = _index(thread.lcore)
        thread.gaps = [_entry(lib.ringtap_thread_gap(raw, i)) for i in range(raw.gap_count)]
        thread.microbursts = [_entry(lib.ringtap_thread_microburst(raw, i)) for i in range(raw.microburst_count)]
        return thread

    @staticmethod
    def _pair(raw: Any):
        pair = _entry(raw)
        pair.tx_queue = _index(pair.tx_queue)
        pair.bucket = list(ffi.unpack(raw.bucket, lib.ringtap_latency_buckets()))
        return pair

    def _port(self, i: int):
        return None if _index(i) is None else self.ports[i]

    def _link(self):
        for gap in (gap for thread in self.threads for gap in thread.gaps):
            gap.port = self._port(gap.port)
        for entry in self.queues:
            entry.thread, entry.port = self.threads[entry.thread], self.ports[entry.port]
        for entry in self.pairs:
            entry.thread, entry.tx_port = self.threads[entry.thread], self.ports[entry.tx_port]
            entry.rx_port = self._port(entry.rx_port)
            entry.quantile = _Quantile(entry, self.tsc_hz)

    def since(self, earlier: Snapshot) -> Snapshot:
        """The difference to an earlier snapshot of the same monitor: counters are differences, states stay.
        Gaps and microbursts are those that began since, and gaps that last."""
        out = copy.deepcopy(self)
        out.interval_ns = self.taken_mono_ns - earlier.taken_mono_ns
        for later, before in zip(out.ports, earlier.ports):
            later.tx_before, later.tx_after = (
                max(later.tx_before - before.tx_after, 0),
                _grown(later.tx_after, before.tx_before),
            )
        for table, counters in COUNTERS.items():
            pairs = zip(getattr(out, table), getattr(earlier, table)) if table else [(out, earlier)]
            for later, before in pairs:
                for name in counters:
                    setattr(later, name, _grown(getattr(later, name), getattr(before, name)))
        for thread in out.threads:
            thread.gaps = [g for g in thread.gaps if g.open or g.start_ns >= earlier.taken_ns]
            thread.microbursts = [m for m in thread.microbursts if m.start_ns >= earlier.taken_ns]
            thread.gap_count, thread.microburst_count = len(thread.gaps), len(thread.microbursts)
        return out


class _Quantile:
    def __init__(self, pair: SimpleNamespace, tsc_hz: int):
        self.pair, self.tsc_hz = pair, tsc_hz

    def __call__(self, share: float):
        cycles = lib.ringtap_latency_quantile(ffi.new("uint64_t[]", self.pair.bucket), share)
        return cycles * 1e9 / self.tsc_hz


class Monitor:
    """Keeps collectors switched on in an application until it is closed; from monitor(). After os.fork() it is
    the parent's."""

    _forked = False

    def __init__(self, app: App, collectors: int, latency_every: int, timeout: float):
        self._lock = threading.Lock()  # cffi releases the interpreter's lock in each call
        self._ended = False
        out, err = ffi.new("struct ringtap_monitor **"), ffi.new("char[256]")
        options = ffi.new(
            "struct ringtap_monitor_options *",
            {"collectors": collectors, "latency_every": latency_every, "timeout_ms": timeout},
        )
        options.size = ffi.sizeof("struct ringtap_monitor_options")
        code = lib.ringtap_monitor_open(out, app.dir.encode(), options, err, 256)
        check(code, text(err))
        self._mon = ffi.gc(out[0], lib.ringtap_monitor_close)
        _monitors.add(self)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def read(self) -> Snapshot:
        """A Snapshot. Once the application has ended, the last one, with `ended` set; then Error with EPIPE."""
        with self._lock:
            if self._forked:
                raise ValueError("the monitor belongs to the parent process")
            if self._mon is None:
                raise ValueError("the monitor is closed")
            out = ffi.new("struct ringtap_snapshot **")
            code = lib.ringtap_monitor_read(self._mon, out)
            raw = ffi.gc(out[0], lib.ringtap_snapshot_free)
            last = code == -errno.EPIPE and raw and not self._ended
            self._ended = self._ended or code == -errno.EPIPE
        if not last:
            check(code, "the application has ended" if raw else "")
        return Snapshot(raw, bool(last))

    def close(self) -> None:
        """Switches the collectors off, unless another monitor needs them."""
        with self._lock:
            if self._mon is not None:
                ffi.release(self._mon)
                self._mon = None


def monitor(
    app: str, collectors: int = POLLS | BYTES | BUSY | GAPS, latency_every: int = 1, timeout: float = 0
) -> Monitor | None:
    """Attaches to an application and switches collectors on: POLLS, BYTES, BUSY, GAPS, LATENCY, ADDRESSES, POOLS;
    LATENCY_SPLIT with LATENCY: a pair for each sending queue and class of lengths.
    One packet in latency_every is timed. timeout: seconds for each answer of the application; 0: the default.
    Returns a Monitor."""
    found, port = resolve(app)
    if port is not None:
        raise ValueError(f"a monitor is of a whole application: {found.name!r}, without a port")
    return Monitor(found, collectors, latency_every, timeout_ms(timeout))


def _after_fork_in_child():
    """The child closes its copy of the connection: the collectors are switched off when the parent ends."""
    for it in list(_monitors):
        it._forked, it._lock = True, threading.Lock()  # another thread of the parent may have held it
        it.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
