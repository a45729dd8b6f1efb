# SPDX-License-Identifier: BSD-3-Clause
"""Packets and statistics of running DPDK applications that carry the ringtap probe.

    import ringtap

    for p in ringtap.capture("my-app:0", "udp", duration=10):
        print(p.time_ns, p.port, p.direction, p.length, bytes(p.data[:14]))

    with ringtap.monitor("my-app") as m:
        before = m.read()
        time.sleep(1)
        for q in m.read().since(before).queues:
            print(q.port.name, q.queue, q.packets)

Functions raise Error, an OSError with the errno of the C library and its message. An object is used
by one thread at a time; break_() of a capture is the exception.
"""
from ._apps import App, Error, apps, version
from ._capture import Capture, Interface, Packet, capture
from ._monitor import (ADDRESSES, BUSY, BYTES, GAPS, LATENCY, POLLS, POOLS, Monitor, Snapshot, monitor)

__all__ = ["ADDRESSES", "App", "BUSY", "BYTES", "Capture", "Error", "GAPS", "Interface", "LATENCY", "Monitor", "POLLS",
           "POOLS", "Packet", "Snapshot", "apps", "capture", "monitor", "version"]
