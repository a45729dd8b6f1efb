# SPDX-License-Identifier: BSD-3-Clause
"""The Python module: packets as tables of numpy, and packets that the application does not send."""

import json

import pytest
from harness import pcap
from harness.proc import Proc

TABLES = """
import json, sys
import ringtap
with ringtap.capture(sys.argv[1], ids=True, buffer_size=1 << 24) as capture:
    print("attached", flush=True)
    total, out = 0, []
    for b in capture.batches(size=5, data=True):
        total += len(b)
        out.append({"packets": [dict(zip(b.packets.dtype.names, map(int, p.item()[:-1]))) for p in b.packets],
                    "bytes": [b.bytes(i).hex() for i in range(len(b))], "ports": [i.name for i in b.interfaces]})
        if total == 19:
            capture.stop()
print(json.dumps(out))
"""


def finish(program):
    assert program.wait() == 0, program.output
    return json.loads(program.output.splitlines()[-1])


def send(app):
    app.rx(n=12, len=100)
    app.tx(n=7, len=200, seq=100)
    return [pcap.frame(100, i).hex() for i in range(12)] + [pcap.frame(200, 100 + i).hex() for i in range(7)]


def test_packets_come_in_tables(app, python_env, closing):
    """At most five packets each, with their bytes; no packet is missing at the end of a table."""
    program = closing(Proc(["/usr/bin/python3", "-c", TABLES, app.prefix], env=python_env))
    program.expect("^attached$")
    frames = send(app)
    batches = finish(program)
    packets = [p for b in batches for p in b["packets"]]
    assert [f for b in batches for f in b["bytes"]] == frames
    assert max(len(b["packets"]) for b in batches) == 5
    assert [(p["length"], p["caplen"], p["direction"], p["queue"]) for p in packets] == [(100, 100, 1, 0)] * 12 + [
        (200, 200, 2, 0)
    ] * 7
    times = [p["time_ns"] for p in packets]
    assert times == sorted(times) and times[0] > 1_600_000_000 * 10**9
    ids = [p["id"] for p in packets]
    assert len(set(ids[:12])) == 12 and all(ids[:12]) and ids[12:] == [0] * 7


DROPS = """
import json, sys
import ringtap
with ringtap.drops(sys.argv[1]) as drops:
    print("attached", flush=True)
    sys.stdin.readline()
    counts = [q._asdict() | {"interface": q.interface.name} for q in drops.counts()]
    held = [h._asdict() | {"interface": h.interface.name, "data": h.data.hex()} for h in drops.held(older=0)]
    print("counted", flush=True)
    sys.stdin.readline()
    drops.stop()
    lost = [[p.port, p.direction, p.length] for p in drops]
print(json.dumps({"counts": counts, "held": held, "lost": lost}))
"""


@pytest.fixture
def holding(play):
    it = play()
    assert it.ring("a", rxq=2) == 0
    return it


def test_drops_and_what_is_held(holding, python_env, closing):
    """Held packets have their queue, mempool and bytes; freed ones become packets when their mbufs are used again."""
    program = closing(Proc(["/usr/bin/python3", "-c", DROPS, holding.prefix], env=python_env))
    program.expect("^attached$")
    holding.do("hold 1")
    holding.rx(0, 1, n=30, len=100)
    holding.do("hold 0")
    holding.rx(0, 0, n=50, len=80)
    program.send("go")
    program.expect("^counted$")
    holding.rx(0, 0, n=4000, len=90)
    program.send("go")
    out = finish(program)
    queues = {q["queue"]: q for q in out["counts"]}
    assert queues[0]["received"] == 50 and queues[1]["received"] == queues[1]["open"] == 30
    assert queues[0]["open"] + queues[0]["not_offered"] == 50 and not queues[0]["offered"]
    of_one = [h for h in out["held"] if h["queue"] == 1]
    assert {h["data"] for h in of_one} == {pcap.frame(100, i).hex() for i in range(30)} and len(of_one) == 30
    assert {(h["interface"], h["pool"], h["length"]) for h in of_one} == {("net_ring_a", "small", 100)}
    assert ["net_ring_a", "rx", 80] in out["lost"]
