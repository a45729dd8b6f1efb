# SPDX-License-Identifier: BSD-3-Clause
"""The Python module: packets as tables of numpy, and packets that the application does not send."""

import json

import pytest
from harness import pcap
from harness.paths import RINGTAP
from harness.proc import Proc, check, until
from harness.ringtap import sessions

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


HELD = """
import json, sys
import ringtap
found = ringtap.held(sys.argv[1], older=0, duration=float(sys.argv[2]))
print(json.dumps([[h.interface.name, h.queue, h.pool, h.length] for h in found]))
"""


def test_held(holding, python_env, closing):
    """Packets that the application keeps while it is followed, and none that it has freed and received again."""
    program = closing(Proc(["/usr/bin/python3", "-c", HELD, holding.prefix, "5"], env=python_env))
    until(lambda: any(s["start"] for s in sessions(holding)), what="it is followed")
    holding.do("hold 1")
    holding.rx(0, 1, n=30, len=100)
    assert finish(program) == [["net_ring_a", 1, "small", 100]] * 30


DOCTOR = """
import json, sys
import ringtap
program, *apps = sys.argv[1:]
try:
    found = ringtap.doctor(*apps, duration=1, program=program)
    print(json.dumps([[d.app, d.pid, d.duration_ns, [list(v) for v in d.verdicts], len(d.faults)] for d in found]))
except ringtap.Error as e:
    print(json.dumps([e.errno, e.strerror]))
"""


def diagnosed(python_env, *args):
    return json.loads(check(["/usr/bin/python3", "-c", DOCTOR, *map(str, args)], env=python_env).splitlines()[-1])


def test_doctor(holding, python_env):
    ((app, pid, duration_ns, verdicts, faults),) = diagnosed(python_env, RINGTAP, holding.prefix)
    assert (app, pid) == (holding.prefix, holding.pid) and duration_ns >= 10**9
    for verdict, grade, title, where, evidence, advice in verdicts:
        assert verdict and grade in ("ok", "note", "fault") and title and isinstance(evidence, list)
        assert isinstance(where, str | None) and isinstance(advice, str)
    assert verdicts and faults == sum(v[1] == "fault" for v in verdicts)
    number, message = diagnosed(python_env, RINGTAP, "no-such-app")
    assert number == 22 and "no application is called 'no-such-app'" in message
    number, message = diagnosed(python_env, "no-such-program")
    assert number == 2 and "install ringtap" in message


IP = bytes.fromhex("02000000000102000000000208004500002e00000000401100000a0000010a000002")
FLOWS = """
import json, sys
import ringtap
program, *args = sys.argv[1:]
try:
    found = ringtap.flows(*args, sample=1, duration=5, program=program)
    print(json.dumps([f._asdict() | {"of": type(f.packets).__name__} for f in found]))
except ringtap.Error as e:
    print(json.dumps([e.errno, e.strerror]))
"""


def test_flows(holding, python_env, closing):
    """Each flow has its addresses and exact counts; the filter leaves one out."""
    program = closing(Proc(["/usr/bin/python3", "-c", FLOWS, RINGTAP, holding.prefix, "udp port 53"], env=python_env))
    until(lambda: any(s["start"] for s in sessions(holding)), what="it is followed")
    for port in 53, 4789:
        holding.rx(0, 0, n=20, data=IP + b"\x04\x00" + port.to_bytes(2, "big") + b"\x00\x1a\x00\x00" + bytes(18))
    (flow,) = finish(program)
    assert (flow["destination_port"], flow["protocol"], flow["of"]) == (53, "UDP", "Estimate")
    assert flow["packets"] == [20, 0] and flow["share"] == [1, 0] and flow["counted"] == 20 and flow["latency"] is None
    done = check(["/usr/bin/python3", "-c", FLOWS, RINGTAP, "no-such-app"], env=python_env)
    number, message = json.loads(done.splitlines()[-1])
    assert number == 22 and "no application is called 'no-such-app'" in message


TAGGED = """
import json
from ringtap._capture import compile_filter
def lengths(expression):
    return [compile_filter(expression, *tags)[1] for tags in ((), ("any",), ("as-is",))]
print(json.dumps([lengths("udp port 53"), lengths("vlan and udp port 53")]))
"""


def test_filters_and_tags(python_env):
    """A program for packets with tags as well is longer by that for one tag, and that for two; what says vlan has none.
    What the programs match is tested in C."""
    plain, vlan = json.loads(check(["/usr/bin/python3", "-c", TAGGED], env=python_env).splitlines()[0])
    assert plain[0] == plain[1] > 3 * plain[2] and len(set(vlan)) == 1
