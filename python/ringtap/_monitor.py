# SPDX-License-Identifier: BSD-3-Clause
"""Statistics. Entries have the fields of the structures in ringtap/monitor.h; arrays are lists."""
import copy
from types import SimpleNamespace

from ._apps import check, resolve, text
from ._ringtap import ffi, lib

POLLS, BYTES, BUSY, GAPS = lib.RINGTAP_POLLS, lib.RINGTAP_BYTES, lib.RINGTAP_BUSY, lib.RINGTAP_GAPS
LATENCY, ADDRESSES, POOLS = lib.RINGTAP_LATENCY, lib.RINGTAP_ADDRESSES, lib.RINGTAP_POOLS

# What grows, as in ringtap_snapshot_since(); the rest are states.
COUNTERS = {
    "ports": ("ipackets", "opackets", "ibytes", "obytes", "imissed", "ierrors", "rx_nombuf", "oerrors"),
    "threads": ("cpu_ns", "wait_ns", "preempted", "busy_cycles", "idle_cycles", "busy_periods", "busy_period_packets",
                "gaps_busy", "gaps_idle"),
    "queues": ("polls", "empty_polls", "packets", "bytes", "byte_packets", "big_polls", "big_packets", "burst"),
    "pairs": ("count", "sum", "unstamped", "shared", "bucket"),
    "pools": (),
}


def _value(field, value):
    kind = field.type.kind
    if kind == "array":
        return text(value) if field.type.item.cname == "char" else list(value)
    return bool(value) if field.type.cname == "_Bool" else value


def _entry(raw):
    fields = ffi.typeof(raw).item.fields
    return SimpleNamespace(**{name: _value(field, getattr(raw, name)) for name, field in fields
                              if field.type.kind != "pointer"})


def _grown(later, earlier):
    """A counter that went back was reset in between: it counts since."""
    if isinstance(later, list):
        return [_grown(a, b) for a, b in zip(later, earlier)]
    return later - earlier if later >= earlier else later


class Snapshot:
    """All counters at a moment.

    taken_ns, taken_mono_ns, tsc_hz, interval_ns (of a difference, else 0), and the lists ports, threads,
    queues, pairs and pools. Of queues and pairs, thread and port (rx_port, tx_port) are the entries
    themselves; of pairs, quantile(share) is a latency in nanoseconds.
    """

    def __init__(self, raw):
        self.__dict__.update(_entry(raw).__dict__)
        self.interval_ns = 0
        self.ports = [_entry(lib.ringtap_snapshot_port(raw, i)) for i in range(raw.port_count)]
        self.threads = [self._thread(lib.ringtap_snapshot_thread(raw, i)) for i in range(raw.thread_count)]
        self.queues = [_entry(lib.ringtap_snapshot_queue(raw, i)) for i in range(raw.queue_count)]
        self.pairs = [self._pair(lib.ringtap_snapshot_pair(raw, i)) for i in range(raw.pair_count)]
        self.pools = [_entry(lib.ringtap_snapshot_pool(raw, i)) for i in range(raw.pool_count)]
        for q in self.queues:
            q.direction = "tx" if q.direction == lib.RINGTAP_TX else "rx"
        self._link()

    @staticmethod
    def _thread(raw):
        thread = _entry(raw)
        thread.gaps = [_entry(lib.ringtap_thread_gap(raw, i)) for i in range(raw.gap_count)]
        thread.microbursts = [_entry(lib.ringtap_thread_microburst(raw, i)) for i in range(raw.microburst_count)]
        return thread

    @staticmethod
    def _pair(raw):
        pair = _entry(raw)
        pair.bucket = list(ffi.unpack(raw.bucket, lib.ringtap_latency_buckets()))
        return pair

    def _at(self, entries, i):
        return entries[i] if isinstance(i, int) and i != lib.RINGTAP_NO_INDEX else None

    def _link(self):
        for entry in self.queues:
            entry.thread, entry.port = self.threads[entry.thread], self.ports[entry.port]
        for entry in self.pairs:
            entry.thread, entry.tx_port = self.threads[entry.thread], self.ports[entry.tx_port]
            entry.rx_port = self._at(self.ports, entry.rx_port)
            entry.quantile = _Quantile(entry, self.tsc_hz)

    def since(self, earlier):
        """The difference to an earlier snapshot of the same monitor: counters are differences, states stay.
        Gaps and microbursts are those that began since."""
        out = copy.deepcopy(self)
        out.interval_ns = self.taken_mono_ns - earlier.taken_mono_ns
        for table, counters in COUNTERS.items():
            for later, before in zip(getattr(out, table), getattr(earlier, table)):
                for name in counters:
                    setattr(later, name, _grown(getattr(later, name), getattr(before, name)))
        for thread in out.threads:
            thread.gaps = [g for g in thread.gaps if g.start_ns >= earlier.taken_ns]
            thread.microbursts = [m for m in thread.microbursts if m.start_ns >= earlier.taken_ns]
        return out


class _Quantile:
    def __init__(self, pair, tsc_hz):
        self.pair, self.tsc_hz = pair, tsc_hz

    def __call__(self, share):
        cycles = lib.ringtap_latency_quantile(ffi.new("uint64_t[]", self.pair.bucket), share)
        return cycles * 1e9 / self.tsc_hz


class Monitor:
    """Keeps collectors switched on in an application until it is closed; from monitor()."""

    def __init__(self, app, collectors, latency_every):
        out, err = ffi.new("struct ringtap_monitor **"), ffi.new("char[256]")
        options = ffi.new("struct ringtap_monitor_options *",
                          {"collectors": collectors, "latency_every": latency_every})
        options.size = ffi.sizeof("struct ringtap_monitor_options")
        code = lib.ringtap_monitor_open(out, app.dir.encode(), options, err, 256)
        check(code, text(err))
        self._mon = ffi.gc(out[0], lib.ringtap_monitor_close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self):
        """A Snapshot. Error with EPIPE: the application has ended."""
        if self._mon is None:
            raise ValueError("the monitor is closed")
        out = ffi.new("struct ringtap_snapshot **")
        code = lib.ringtap_monitor_read(self._mon, out)
        raw = ffi.gc(out[0], lib.ringtap_snapshot_free)
        check(code, "the application has ended" if raw else "")
        return Snapshot(raw)

    def close(self):
        """Switches the collectors off, unless another monitor needs them."""
        if self._mon is not None:
            ffi.release(self._mon)
            self._mon = None


def monitor(app, collectors=POLLS | BYTES | BUSY | GAPS, latency_every=1):
    """Attaches to an application and switches collectors on: POLLS, BYTES, BUSY, GAPS, LATENCY, ADDRESSES, POOLS.
    One packet in latency_every is timed. Returns a Monitor."""
    return Monitor(resolve(app)[0], collectors, latency_every)
