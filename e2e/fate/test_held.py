# SPDX-License-Identifier: BSD-3-Clause
"""ringtap held with an application that keeps packets: how many, how old, how they grow, and what is
freed is not held."""

import json
import re
import signal

import pytest
from harness.documents import only
from harness.known import Measuring
from harness.proc import until

UDP = bytes.fromhex("02000000000102000000000208004500002e00010000401100000a0000010a00000204000035001a0000") + bytes(18)


@pytest.fixture
def app(play):
    it = play()
    assert it.ring("a", rxq=2) == 0
    return it


def start(closing, app, *args):
    return closing(Measuring("held", app, "--json", *args))


def last(output):
    return only(json.loads([line for line in output.splitlines() if line.startswith("{")][-1]))


def newest(it):
    """The last whole line so far."""
    lines = [line for line in it.proc.output.splitlines() if line.startswith("{") and line.endswith("}")]
    return only(json.loads(lines[-1])) if lines else {}


def newest_is(it, **counts):
    return all(newest(it).get(key) == value for key, value in counts.items())


def test_held_packets_by_place_and_kind(app, closing):
    it = start(closing, app, "--older", "0.2s", "--interval", "0.1s")
    text = closing(Measuring("held", app, "--older", "1us", "--interval", "0.1s", "--duration", "1h"))
    app.do("hold 1")
    app.rx(0, 1, data=UDP, n=300)
    app.do("hold 0")
    app.rx(0, 0, n=500)  # freed
    until(lambda: newest_is(it, older=300, open=300), what="they are old")
    report = last(it.finish(signal.SIGINT))
    assert report["open"] == report["older"] == 300
    queues = {q["queue"]: q for q in report["queues"]}
    assert (queues[0]["open"], queues[0]["received"], queues[1]["open"], queues[1]["older"]) == (0, 500, 300, 300)
    pools = [p for p in report["pools"] if p["open"]]
    assert len(pools) == 1 and pools[0]["open"] == 300 and pools[0]["read"] and pools[0]["size"] == 4095
    assert pools[0]["free_packets"] > 0
    kinds = report["older_packets"]["protocols"]
    assert [(k["protocol"], k["packets"]) for k in kinds] == [("IPv4 UDP", 300)]
    assert kinds[0]["example"]["packet"].startswith("10.0.0.1:1024 > 10.0.0.2:53 UDP")
    assert kinds[0]["example"]["queue"] == 1 and report["oldest_ns"] >= 200e6
    assert sum(a["packets"] for a in report["ages"]) == 300
    tables = text.finish(signal.SIGINT)
    assert "\n300 received packets are open" in tables and "net_ring_a, 1" in tables
    assert re.search(r"300 of them are of \S+ and were received at net_ring_a queue 1", tables), tables
    assert "By mempool" in tables and "of 4,095 mbufs" in tables and "pool, port, queue" not in tables


def test_pools_growth_and_what_is_freed(app, closing):
    """Small and large packets are of two pools. The number grows; what is freed is found in its pool."""
    it = start(closing, app, "--older", "0.1s", "--interval", "0.1s")
    text = closing(Measuring("held", app, "--older", "0.1s", "--interval", "0.1s", "--duration", "1h"))
    app.do("hold 1")
    app.rx(0, 0, n=30)
    app.rx(0, 1, n=7)
    app.rx(0, 1, n=5, len=4000)

    def places():
        return {(p["pool"], p["port"]["name"], p["queue"]): p["older"] for p in newest(it).get("places", ())}

    all_of_them = {("small", "net_ring_a", 0): 30, ("small", "net_ring_a", 1): 7, ("large", "net_ring_a", 1): 5}
    until(lambda: places() == all_of_them, what="they are old")
    report = newest(it)
    assert sum(p["open"] for p in report["places"]) == report["open"] == 42
    assert report["unplaced"] == report["pools_beyond"] == 0
    tables = text.finish(signal.SIGINT)
    table = tables[tables.rindex("By mempool, receiving port and queue") :].splitlines()[2:5]
    assert [line.split()[:5] for line in table] == [
        ["small,", "net_ring_a,", "0", "30", "30"],
        ["small,", "net_ring_a,", "1", "7", "7"],
        ["large,", "net_ring_a,", "1", "5", "5"],
    ]

    def growing():
        """The values of the next line; there are more packets before the one after it."""
        report = only(json.loads(it.proc.expect(r"^\{.*\}$").group()))
        app.rx(0, 0, n=10)
        return (report["older_per_second"] or 0) > 0 and report

    until(growing, what="the number grows")
    until(lambda: (report := growing()) and report["grows"], what="it grew in several readings")
    held = app.one("hold 1")
    assert app.one(f"release {held - 50}") == held - 50
    until(lambda: newest_is(it, open=50), what="what was freed is found in its pool")
    report = last(it.finish(signal.SIGINT))
    assert report["open"] == 50 and report["older_per_second"] is not None


def test_pool_that_the_application_has_filled(app, closing):
    """As VPP's: operations of its own, whose count ends the application if anything calls it, no flag, and what is freed leaves
    no trace in the mbuf, so it is open until the mbuf is received again."""
    app.rx(0, 0, external="own")  # the pool is made
    watch = closing(Measuring("memory", app, "--json", "--duration", "1s"))
    it = start(closing, app, "--older", "0.1s", "--interval", "0.1s")
    app.do("hold 1")
    app.rx(0, 0, n=3000, external="own")
    until(lambda: newest_is(it, older=3000, open=3000), what="all are held")
    app.do("take_back 1000")
    app.rx(0, 1, n=400, external="own")  # the last of them again
    until(lambda: [q["older"] for q in newest(it)["queues"]] == [2600, 400], what="those are old")
    report = last(it.finish(signal.SIGINT))
    assert [(q["received"], q["open"]) for q in report["queues"]] == [(3000, 2600), (400, 400)]
    (pool,) = [p for p in report["pools"] if p["open"]]
    assert (pool["name"], pool["size"], pool["open"], pool["read"]) == ("own", 8191, 3000, False)
    pools = {p["name"]: p for p in watch.json()["pools"]}
    assert "own, another list" not in pools and pools["own"]["ops"] == "own" and pools["own"]["size"] == 8191
    assert [pools["own"][key] for key in ("available", "in_use", "in_use_share", "min_available")] == [None] * 4
    assert pools["own"]["buffer_bytes"] == 2176 and pools["small"]["available"] is not None
    assert app.one("now") > 0
