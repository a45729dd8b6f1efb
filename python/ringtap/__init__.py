# SPDX-License-Identifier: BSD-3-Clause
"""Packets and statistics of running DPDK applications that carry the ringtap probe.

    import ringtap

    for p in ringtap.capture("my-app:0", "udp", duration=10):
        print(p.time_ns, p.port, p.direction, p.length, bytes(p.data[:14]))

    for b in ringtap.capture("my-app", duration=10).batches():  # numpy: millions of packets a second
        print(len(b), b.packets["length"].sum())

    with ringtap.drops("my-app") as d:  # packets that it receives and does not send
        time.sleep(5)
        print(d.counts(), d.held(older=1))

    for h in ringtap.held("my-app", older=2):  # packets that it has received in 5 seconds and still holds
        print(h.interface.name, h.queue, h.pool, h.age_ns)

    for d in ringtap.doctor("my-app"):  # the verdicts of `ringtap doctor`
        print(d.app, [v.title for v in d.faults])

    for f in ringtap.flows("my-app", "udp", ids=True):  # the largest of `ringtap flows`
        print(f.name, f.packets.value, f.latency and f.latency.p99_ns.value)

    with ringtap.monitor("my-app") as m:
        before = m.read()
        time.sleep(1)
        for q in m.read().since(before).queues:
            print(q.port.name, q.queue, q.packets)

    for o in ringtap.explain("trace.pcapng"):  # made by `ringtap record --ids`
        if o.fate == "sent" and o.latency_ns > 100_000:
            print(o.rx_frame, o.latency_ns, o.flow)

Functions raise Error, an OSError with the errno of the C library and its message, and ValueError for
arguments that cannot be right. Threads may share captures and monitors; one at a time iterates over a capture.
"""

from ._apps import App, Error, apps, version
from ._batches import Batch
from ._capture import Capture, Packet, capture
from ._doctor import Diagnosis, Verdict, doctor
from ._explain import Outcome, explain, explain_summary
from ._fates import Drops, Held, QueueFates, drops, held
from ._flows import Estimate, Flow, FlowLatency, flows
from ._monitor import (
    ADDRESSES,
    BUSY,
    BYTES,
    GAPS,
    LATENCY,
    LATENCY_SPLIT,
    POLLS,
    POOLS,
    Monitor,
    Snapshot,
    monitor,
)
from ._session import Interface

__all__ = [
    "ADDRESSES",
    "BUSY",
    "BYTES",
    "GAPS",
    "LATENCY",
    "LATENCY_SPLIT",
    "POLLS",
    "POOLS",
    "App",
    "Batch",
    "Capture",
    "Diagnosis",
    "Drops",
    "Error",
    "Estimate",
    "Flow",
    "FlowLatency",
    "Held",
    "Interface",
    "Monitor",
    "Outcome",
    "Packet",
    "QueueFates",
    "Snapshot",
    "Verdict",
    "apps",
    "capture",
    "doctor",
    "drops",
    "explain",
    "explain_summary",
    "flows",
    "held",
    "monitor",
    "version",
]
