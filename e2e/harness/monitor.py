# SPDX-License-Identifier: BSD-3-Clause
"""A second implementation of the statistics segment, written from docs/format.md; and a monitor
that keeps collectors on."""

import ctypes
import mmap
import os
import struct
import time

from . import dpdk, wire
from .proc import until

POLLS, BYTES, BUSY, GAPS, LATENCY, ADDRESSES, POOLS = (1 << i for i in range(7))
ALL = 127
RX, TX = 0, 1
NO_INDEX = 0xFFFF
SUB, LAT_MAX = 6, 42
BUCKETS = (LAT_MAX - SUB + 1) << SUB
BURSTS, WINDOWS, WORST, SIZES = 512, 16, 8, 48
THREADS, PORTS, POOL_COUNT, HOOKS, PAIRS, SAMPLERS = 256, 64, 64, 4096, 128, 8
RUNS, RUN = 4, 8192

u8, u16, u32, u64, i32 = (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32)
char = ctypes.c_char


def _fields(*lines):
    """ctypes fields of ('u32', 'a b c[4]') and so on."""
    out = []
    for kind, names in lines:
        for name in names.split():
            name, _, count = name.partition("[")
            out.append((name, kind * int(count[:-1]) if count else kind))
    return out


class Header(ctypes.Structure):
    _fields_ = _fields(
        (char, "magic[8]"),
        (u32, "version header_size"),
        (
            u64,
            "segment_size clock_offset port_offset thread_offset hook_offset pair_offset"
            " pool_offset sampler_offset tsc_hz",
        ),
        (
            u32,
            "pid reserved0[3] collectors latency_every port_count pool_count hook_count"
            " pair_count sampler_count switched",
        ),
        (u64, "no_thread_polls no_block_polls no_pair_packets"),
        (u32, "ports_beyond pools_beyond thread_count"),
        (u8, "reserved1[84]"),
    )


class Clock(ctypes.Structure):
    _fields_ = _fields((u32, "seq reserved0"), (u64, "tsc_base ns_base mult"), (u8, "reserved1[32]"))


class Port(ctypes.Structure):
    _fields_ = _fields(
        (char, "name[64] driver[64]"),
        (u16, "port_id link_up"),
        (u32, "state link_mbps nb_rx_queues nb_tx_queues nb_rxd nb_txd mtu"),
        (
            u64,
            "read_ns ipackets opackets ibytes obytes imissed ierrors rx_nombuf oerrors tx_before tx_after tx_unknown",
        ),
        (u32, "epoch used"),
        (u64, "stopped_ns"),
        (u8, "reserved[48]"),
    )


class Gap(ctypes.Structure):
    _fields_ = _fields((u64, "tsc cycles"), (u32, "packets"), (u16, "port_index queue"))


class Burst(ctypes.Structure):
    _fields_ = _fields((u64, "tsc cycles packets"))


class Window(ctypes.Structure):
    _fields_ = [*_fields((u32, "number reserved")), ("gap", Gap * WORST), ("burst", Burst * WORST), ("pad", u8 * 56)]


class Thread(ctypes.Structure):
    _fields_ = [
        *_fields(
            (u32, "generation alive lcore tid"),
            (char, "name[16]"),
            (u64, "cpu_ns wait_ns preempted read_ns"),
            (u32, "cpu poll_packets"),
            (u64, "poll_tsc looked_tsc"),
            (u16, "poll_port poll_queue"),
            (u32, "poll_holds reserved0[8]"),
            (u64, "busy_cycles idle_cycles since_tsc"),
            (u32, "is_busy window_next"),
            (u64, "busy_periods busy_period_packets[40] gaps_busy[48] gaps_idle[48]"),
            (u8, "reserved1[24]"),
        ),
        ("window", Window * WINDOWS),
    ]


class Hook(ctypes.Structure):
    _fields_ = _fields(
        (u32, "thread generation"),
        (u16, "port_index queue"),
        (u8, "direction reserved0[3]"),
        (u64, "big_polls big_packets bytes byte_packets"),
        (u32, "max_burst reserved1"),
        (u64, "burst[513]"),
    )


class Pair(ctypes.Structure):
    _fields_ = _fields(
        (u32, "thread generation"),
        (u16, "rx_index tx_index"),
        (u32, "inferred"),
        (u64, f"count sum min max unstamped shared bucket[{BUCKETS}]"),
    )


class Pool(ctypes.Structure):
    _fields_ = _fields(
        (char, "name[64] ops[32]"),
        (u64, "address"),
        (u32, "state size object_bytes buffer_bytes memory pinned_external"),
        (u64, "page_bytes base span"),
        (u32, "chunks"),
        (i32, "socket"),
        (u32, "cache_size available in_caches lowest"),
        (u16, "cache[128]"),
        (u8, "reserved[80]"),
    )


class Sample(ctypes.Structure):
    _fields_ = _fields((u64, "buf_addr iova"), (u32, "tsc"), (u16, "port_index queue"))


class SampleRun(ctypes.Structure):
    _fields_ = [*_fields((u64, "number tsc count")), ("sample", Sample * RUN)]


class Sampler(ctypes.Structure):
    _fields_ = [
        *_fields((u32, "thread generation"), (u64, "done"), (u8, "reserved[48]")),
        ("run", SampleRun * RUNS),
        ("pad", u8 * 32),
    ]


SIZES_OF = {Header: 256, Clock: 64, Port: 320, Window: 448, Pool: 512, Sample: 24}


def bucket_of(cycles):
    """The formula of the histogram, from docs/format.md rather than from the header."""
    if cycles < 1 << SUB:
        return cycles
    octave = cycles.bit_length() - 1
    return min(((octave - SUB + 1) << SUB) + ((cycles >> (octave - SUB)) - (1 << SUB)), BUCKETS - 1)


class Monitor:
    """A connection that keeps collectors on. Wakes the probe by telemetry."""

    def __init__(self, app, collectors=POLLS, every=1):
        assert dpdk.telemetry(app.prefix, "/ringtap/attach")["/ringtap/attach"]["status"] == 0
        self.wire = wire.Reader(dpdk.RUN_DIR / app.prefix)
        self._map = None
        self.switch(collectors, every)
        assert len(self.wire.fds) == 1
        self._map = mmap.mmap(self.wire.fds[0], os.fstat(self.wire.fds[0]).st_size, prot=mmap.PROT_READ)
        assert self.header.magic == b"RTFIGUR"
        assert self.header.segment_size == len(self._map)
        for kind, size in SIZES_OF.items():
            assert ctypes.sizeof(kind) == size

    def switch(self, collectors, every=1):
        self.wire.send(wire.message(wire.MONITOR, struct.pack("<II", collectors, every)))
        kind, body = self.wire.receive()
        assert kind == wire.MONITORING, body

    def _table(self, kind, offset, count):
        return (kind * count).from_buffer_copy(self._map, offset)

    @property
    def header(self):
        return Header.from_buffer_copy(self._map)

    @property
    def ports(self):
        h = self.header
        return list(self._table(Port, h.port_offset, min(h.port_count, PORTS)))

    @property
    def pools(self):
        h = self.header
        return list(self._table(Pool, h.pool_offset, min(h.pool_count, POOL_COUNT)))

    @property
    def threads(self):
        """{slot: thread}"""
        h = self.header
        table = self._table(Thread, h.thread_offset, min(h.thread_count, THREADS))
        return {slot: t for slot, t in enumerate(table) if t.generation}

    @property
    def hooks(self):
        h = self.header
        return [b for b in self._table(Hook, h.hook_offset, min(h.hook_count, HOOKS)) if b.generation]

    @property
    def pairs(self):
        h = self.header
        return [p for p in self._table(Pair, h.pair_offset, min(h.pair_count, PAIRS)) if p.generation]

    @property
    def samplers(self):
        h = self.header
        return list(self._table(Sampler, h.sampler_offset, min(h.sampler_count, SAMPLERS)))

    def hook(self, direction, port=0, queue=0):
        """Burst sizes {packets: calls} and the block of a queue that one thread uses."""
        found = [
            b
            for b in self.hooks
            if (self.ports[b.port_index].port_id, b.queue, b.direction) == (port, queue, direction)
        ]
        assert len(found) == 1, found
        return {n: c for n, c in enumerate(found[0].burst) if c}, found[0]

    def fresh(self):
        """Waits until the control thread has read all counters again. It reads threads and pools
        after the ports, so it has finished when it reads the ports once more."""
        begin = time.time_ns()
        for _ in range(2):
            until(lambda: any(p.read_ns > begin for p in self.ports), what="another reading of the ports")
            begin = max(p.read_ns for p in self.ports)
        return self

    def close(self):
        if self._map:
            self._map.close()
            self._map = None
            self.wire.close()
