# SPDX-License-Identifier: BSD-3-Clause
"""Incidents against what is known one by one: packets of a burst of drops, buffers of a leak."""

import json

import pytest
from harness.documents import ns_of, only
from harness.flight import advice, assert_same_packets, numbers, panel

RX, TX = 1, 2  # in epb_flags
BURST = 32
LONG = ("--cooldown", "1h")
# One after the other, so that some come after the recorder is attached.
BURSTS = ",".join([*(15 * ["1k:2s", "50k:200ms"]), "1k:600s"])


def drops(file):
    """Time by sequence number, of what was offered to port b and did not arrive behind it. At the end some
    packets are on their way."""
    arrived = numbers(file, "net_ring_b", RX)
    return {n: ns for n, ns in numbers(file, "net_ring_b", TX).items() if n not in arrived and n < max(arrived)}


def test_a_burst_of_drops(fwd, keep, record):
    """For 200 ms more packets come than the ring and its reader take. The readings that the condition compares
    and the hooks' times may differ by one burst."""
    app = fwd(
        "--ring",
        "a:32768",
        "--ring",
        "b:512",
        "--pool-size",
        65535,
        "--frame",
        "udp",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@1",
        "--role",
        "sink:b@0",
        "--tx-full",
        "drop",
        "--sink-rate",
        "15k",
        "--stages",
        BURSTS,
    ).running()
    recorder = record(app, ports=["net_ring_b"])
    kept = keep(
        app,
        "--on",
        "refused",
        "--name",
        "drops",
        "--before",
        "500ms",
        "--after",
        "500ms",
        "--cooldown",
        "1s",
        ports=["net_ring_b"],
    )
    # The first one may begin before the recorder.
    before, incident = kept.incidents(2)[:2]
    kept.finish()
    recorder.finish()
    app.stop()
    whole = recorder.file()
    file = assert_same_packets(incident, whole)
    assert incident["trigger"]["where"] == "net_ring_b" and incident["missing_ns"] == 0
    lost = drops(whole)
    between = [n for n, ns in lost.items() if incident.at("event_from") <= ns <= incident.at("event_to")]
    assert between and abs(len(between) - incident["trigger"]["number"]) <= 2 * BURST
    assert set(between) <= set(numbers(file, "net_ring_b", TX))
    # None before it was noticed.
    noticed = sum(before.at("event_to") + 3e9 / 2 <= ns < incident.at("event_from") for ns in lost.values())
    assert noticed <= BURST
    assert "Look at the link and the peer of the port" in advice(incident)


def test_a_pool_that_leaks_under_traffic(stream_of, keep, record):
    """A second generator fills a ring that no role reads: a buffer with each of its packets. The packets of the
    window are compared one by one, and the trigger's level with their numbers."""
    size, elsewhere = 16383, 2 * 1024 + 3 * BURST  # buffers; those of other rings and of bursts
    app = stream_of("2k", "--pool-size", size, "--ring", "hole:32768", "--role", "generate:hole@0")
    recorder = record(app)
    kept = keep(app, "--on", "pool < 80%", "--before", "0s", "--after", "500ms", "--buffer", "32M", *LONG)
    (incident,) = kept.incidents(1)
    kept.finish()
    recorder.finish()
    app.stop()
    whole = recorder.file()
    file = assert_same_packets(incident, whole)
    for port in "net_ring_a", "net_ring_hole":
        made = numbers(file, port, TX)
        assert len(made) > 100 and sorted(made) == list(range(min(made), max(made) + 1))
    leaked = numbers(whole, "net_ring_hole", TX)
    free = incident["trigger"]["number"] / 100 * size
    assert incident["trigger"]["where"] == "packets" and free < 0.8 * size
    # The level is read before its time is taken; the first packets may be older than the recording.
    by_then = [n for n, ns in leaked.items() if ns <= incident.at("event_to")]
    assert max(by_then) + 1 >= size - free - elsewhere
    assert size - free >= max(n for n, ns in leaked.items() if ns <= incident.at("event_from")) + 1 - elsewhere
    assert "there is no verdict on threads" in advice(incident) and "ringtap held" in advice(incident)


@pytest.mark.nightly
def test_a_ring_that_fills_under_traffic(stream_of, keep, record):
    """A second generator fills a ring that no role reads: its level is the number of packets in it, which are
    compared one by one with the samples of the condition and of the page."""
    slots = 1 << 15
    app = stream_of("2k", "--pool-size", 65535, "--ring", f"hole:{slots}", "--role", "generate:hole@0")
    recorder = record(app)
    kept = keep(app, "--on", "ring hole > 25%", "--before", "2s", "--after", "500ms", "--buffer", "32M", *LONG)
    (incident,) = kept.incidents(1)
    assert "has no ring" not in kept.finish()
    recorder.finish()
    app.stop()
    whole = recorder.file()
    assert_same_packets(incident, whole)
    sent = numbers(whole, "net_ring_hole", TX)

    def level(ns):
        """Packets in the ring; those of a burst are in it before the next burst."""
        return max((n + 1 for n, at in sent.items() if at <= ns), default=0)

    share = incident["trigger"]["number"] / 100
    assert incident["trigger"]["where"] == "hole" and share > 0.25
    # A sample is between the readings, or up to 50 ms older, and a level that was not met before is one of them.
    assert share * slots <= level(incident.at("event_to")) + BURST
    metrics = only(json.loads((incident.folder / "metrics.json").read_text()))["seconds"]
    (shown,) = (s["values"] for s in panel(incident, "rings")["series"] if s["name"] == "hole")
    counted = [r["max_used"] for s in metrics for r in s["rings"] if r["name"] == "hole"]
    assert [pytest.approx(n / slots, rel=1e-6) for n in counted] == shown
    assert all(n <= level(ns_of(s["to"])) + BURST for n, s in zip(counted, metrics, strict=True))
    assert counted == sorted(counted) and counted[-1] > slots / 4
    assert "A ring fills while packets enter it faster" in advice(incident)


@pytest.mark.nightly
def test_an_xstat_that_grows(stream_of, keep, record):
    """The growth between two readings of a driver is the number of packets that the port received meanwhile; the
    readings and the hooks' times may differ by one burst."""
    app = stream_of("2k")
    recorder = record(app)
    on = ("--on", "xstat rx_good_packets > 100", "--before", "500ms", "--after", "500ms")
    kept = keep(app, *on, "--buffer", "32M", *LONG)
    (incident,) = kept.incidents(1)
    kept.finish()
    recorder.finish()
    app.stop()
    received = numbers(recorder.file(), incident["trigger"]["where"], RX)
    between = [n for n, ns in received.items() if incident.at("event_from") <= ns <= incident.at("event_to")]
    assert between and abs(len(between) - incident["trigger"]["number"]) <= 2 * BURST
    seconds = only(json.loads((incident.folder / "metrics.json").read_text()))["seconds"]
    assert {x["name"] for s in seconds for x in s["xstats"]} >= {"rx_good_packets", "tx_good_packets"}
