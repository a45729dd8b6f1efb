# SPDX-License-Identifier: BSD-3-Clause
"""Conditions of ringtap flight against what is known to happen: each fires once, for that event."""
import json
import os
import re
import signal
import time

import pytest

from harness.doctor import Diagnosis, top
from harness.flight import COMMENT, assert_same_packets, comments, state
from harness.known import Known
from harness.paths import RINGTAP
from harness.proc import check, freeze, run, until
from harness.ringtap import FAILED, USAGE

RX = 1  # in epb_flags
LONG = ("--cooldown", "1h")


def marked(file):
    """The packet that has the comment."""
    packet, = [p for p in file.packets if COMMENT in p.options]
    return packet


def test_a_packet_with_a_mark(stream, keep, record):
    """One of 65536 numbers, received by the forwarder; the recording has all packets."""
    recorder = record(stream, "--buffer", "128M")
    kept = keep(stream, "--on", "packet: inbound and ether[50:2] = 0x1234", "--before", "100ms",
                "--after", "50ms", *LONG)
    incident, = kept.incidents(1)
    kept.finish()
    recorder.finish()
    file = assert_same_packets(incident, recorder.file())
    packet = marked(file)
    assert packet.data[42:46] == b"RTfw" and packet.data[50:52] == b"\x12\x34"
    assert packet.direction == RX
    # It was received from both rings; the first one counts.
    assert file.interfaces[packet.interface].name == "net_ring_a"
    assert incident["trigger"]["where"] == "net_ring_a"
    assert packet.ns == incident["event_from_ns"] == incident["event_to_ns"]
    assert incident["missing_ns"] == 0 and len(kept.folders()) == 1
    assert "trigger 'packet: inbound and ether[50:2] = 0x1234' at net_ring_a " in comments(file)[0]


ODD = bytes.fromhex("020000000002 020000000001 88b6") + b"odd one".ljust(50, b"x")


def send_around(app, count=1000, data=ODD, **shape):
    """A packet between others, in a burst of its own."""
    assert app.tx(n=count, len=100)[0] == count
    assert app.tx(data=data, **shape)[0] == 1
    assert app.tx(n=count, len=100)[0] == count


def test_the_packet_itself_has_the_comment(app, keep):
    """One of a burst, whose packets have the same time."""
    kept = keep(app, "--on", "packet: ether[14:4] = 1007", "--before", "60s", "--after", "1ms", *LONG)
    assert app.tx(n=2000, len=100, burst=32)[0] == 2000
    incident, = kept.incidents(1)
    kept.finish()
    file = incident.file
    packet = marked(file)
    at = file.packets.index(packet)
    assert at == 1007 and packet.data[14:18] == (1007).to_bytes(4, "big")
    assert file.packets[at - 1].ns == packet.ns == incident["event_from_ns"]
    assert incident["trigger"]["name"] == "packet"
    assert "The packet that matched has the comment" in (incident.folder / "index.html").read_text()


def test_conditions_have_names_windows_and_cooldowns_of_their_own(app, keep):
    kept = keep(app, "--on", "packet: ether proto 0x88b6", "--name", "odd", "--before", "60s",
                "--after", "0", *LONG, "--on", "packet: len == 100", "--name", "hundred",
                "--before", "0", "--after", "1s", *LONG)
    send_around(app, count=20)
    for _ in range(3):
        assert app.tx(data=ODD)[0] == 1
    hundred, odd = sorted(kept.incidents(2), key=lambda i: i["trigger"]["name"])
    kept.finish()
    assert len(kept.folders()) == 2
    assert hundred["from_ns"] == hundred["event_from_ns"] == hundred.file.packets[0].ns
    assert odd["to_ns"] == odd["event_to_ns"] and marked(odd.file).data == ODD
    assert marked(hundred.file).length == 100


def test_recording_filter_does_not_hide_packets_from_conditions(app, keep):
    kept = keep(app, "--on", "packet: ether proto 0x88b6", "-f", "len == 100", "--before", "60s",
                "--after", "4s", *LONG)
    send_around(app, count=20)
    incident, = kept.incidents(1)
    kept.finish()
    file = incident.file
    assert len(file.packets) == 40 and all(p.length == 100 for p in file.packets)
    # The next one that was recorded has the comment.
    assert file.packets.index(marked(file)) == 20
    assert marked(file).ns > incident["event_to_ns"]


@pytest.mark.parametrize("how", [{"vlan": 7}, {"segs": 3}, {"snaplen": 20}])
def test_condition_reads_the_frame_as_on_the_wire(app, keep, how):
    """A tag that the NIC adds, bytes in other segments, and bytes behind the snapshot length."""
    text = "vlan 7 and ether[50:4] = 0x78787878" if "vlan" in how else "ether[50:4] = 0x78787878"
    args = ("-s", how.pop("snaplen")) if "snaplen" in how else ()
    kept = keep(app, "--on", f"packet: {text}", "--before", "60s", "--after", "1ms", *args, *LONG)
    send_around(app, count=10, **how)
    incident, = kept.incidents(1)
    kept.finish()
    assert incident.file.packets.index(marked(incident.file)) == 10


def test_last_packet_of_an_application(app, keep):
    """It is in memory of the recorder when the application is killed."""
    kept = keep(app, "--on", "packet: ether proto 0x88b6", "--before", "60s", "--after", "1ms", *LONG)
    assert app.tx(data=ODD)[0] == 1
    app.proc.kill()
    kept.done()
    incident, = kept.incidents(1)
    assert marked(incident.file).data == ODD


def test_all_packets_match(busy, keep):
    """The recorder reads no more of them than it must."""
    kept = keep(busy, "--on", "packet: len >= 0", "--before", "0", "--after", "1ms", "-f", "less 1", *LONG)
    incident, = kept.incidents(1)
    kept.finish()
    assert incident["packets"] == 0 and len(kept.folders()) == 1


def test_more_conditions_than_sessions(app, tmp_path):
    """Each takes one, the recording another."""
    conditions = [a for k in range(16) for a in ("--on", f"packet: len == {k}")]
    done = run([RINGTAP, "flight", app.prefix, "-w", tmp_path / "i", *conditions])
    assert done.returncode == FAILED and "too many recordings" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    until(lambda: app.one("callbacks 0") == 0, what="no callback is left")


def test_conditions_do_not_hold_up_the_end(stream, keep):
    """Each incident's window is longer than the time until the next one."""
    kept = keep(stream, "--on", "packet: len >= 0", "--before", "0", "--after", "500ms", "-s", "64",
                "--cooldown", "100ms")
    kept.incidents(2)
    output = kept.finish(signal.SIGTERM)
    made = len(kept.folders())
    assert output.strip().endswith(f"{made} incidents")
    assert len(kept.incidents(made)) == made


@pytest.mark.parametrize("args,text", [
    (("--on", "packet"), "give a filter"),
    (("--on", "packet:"), "give a filter"),
    (("--on", "packet: tcp port x"), "pcap-filter"),
    (("--on", "packet: ip protochain 6"), "no application can run it"),
    (("--on", "usdt: x"), "give an event"),
    (("--on", "usdt: a:b:c"), "give an event"),
    (("--on", "gap > 1ms over 2s"), "only counters and percentiles"),
    (("--on", "p99 > 1ms over 0.1s"), "from 1s to 100s"),
    (("--on", "missed over"), "threshold"),
])
def test_wrong_conditions_are_refused(args, text, tmp_path):
    done = run([RINGTAP, "flight", "-w", tmp_path / "i", *args])
    assert done.returncode == USAGE and text in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "i").exists()


def test_an_event_of_the_probe(stream, keep, record):
    """Another recording begins; nothing else is this event."""
    kept = keep(stream, "--on", "usdt: ringtap:session_open", "--name", "session", "--before", "100ms",
                "--after", "100ms")
    before = time.time_ns()
    recorder = record(stream)
    after = time.time_ns()
    incident, = kept.incidents(1)
    recorder.finish()
    kept.finish()
    assert len(kept.folders()) == 1 and incident.folder.name.endswith("-session")
    # A millisecond: two clocks are converted.
    assert before - 10**6 < incident["event_from_ns"] == incident["event_to_ns"] < after + 10**6
    assert incident["packets"] > 0
    assert incident["trigger"]["where"].startswith("thread ")


def test_packets_older_than_a_time_are_given_back(stream, keep):
    """The memory would hold minutes of them."""
    kept = keep(stream, "--keep", "500ms", "--before", "500ms", "--after", "1ms", "--on", "exit",
                "--before", "500ms")
    check(["sleep", "6"])
    kept.proc.send_signal(signal.SIGUSR1)
    incident, = kept.incidents(1)
    stream.proc.kill()
    kept.done()
    assert incident["missing_ns"] == 0
    # 3.5 s of these 6 s are gone: 2 s more are kept for events that are noticed late, in chunks.
    kept_ns = incident["event_to_ns"] - incident["kept_since_ns"]
    assert 2_500_000_000 <= kept_ns < 5_000_000_000


@pytest.mark.parametrize("args,text", [
    (("--keep", "1s", "--before", "2s"), "reaches back beyond --keep"),
    (("--keep", "1s", "--on", "missed over 5s", "--before", "0"), "reaches back beyond --keep"),
    (("--keep", "32M", "--buffer", "32M"), "without --keep TIME"),
    (("--keep", "1M"), "neither a size"),
    (("--keep", "0s"), "neither a size"),
    (("--keep", "5m"), "neither a size"),
])
def test_wrong_limits_are_refused(args, text, tmp_path):
    done = run([RINGTAP, "flight", "-w", tmp_path / "i", *args])
    assert done.returncode == USAGE and text in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_percentile_over_an_interval(plugin, closing, keep):
    """One slow burst of 50 is seen by the 99th percentile, not by the 50th."""
    app = closing(Known(plugin))
    kept = keep(app, "--on", "p99 > 10ms over 1s", "--on", "p50 > 10ms over 1s", "--before", "0",
                "--after", "1ms", "--cooldown", "0")
    app.send([1000], rounds=49)
    app.send([100_000_000], rounds=1)
    incident, = kept.incidents(1)
    check(["sleep", "1.5"])
    kept.finish()
    assert len(kept.folders()) == 1  # the interval goes on, and has it for another second or so
    assert incident["trigger"]["name"] == "p99" and incident["trigger"]["number"] > 10e6
    length = incident["event_to_ns"] - incident["event_from_ns"]
    assert length > 0.97e9
    assert len(incident.file.packets) == 2 * 50 * 32


def test_a_busy_period(app, keep):
    """20,000 packets without an empty poll between them, and shorter ones before and after."""
    kept = keep(app, "--on", "burst > 10000", "--before", "0", "--after", "0", *LONG)

    def counted():
        app.rx(n=32)
        app.do("idle 0 0 n=10")
        return top(app, "-n", "0.1")["threads"]

    until(counted, what="statistics of the thread")  # a control thread has to make room for them
    for packets in 500, 20_000, 500:
        assert app.rx(n=packets, burst=32, len=64)[0] == packets
        app.do("idle 0 0 n=10")
    incident, = kept.incidents(1)
    kept.finish()
    assert len(kept.folders()) == 1 and incident["trigger"]["number"] == 20_000
    # Times of the statistics and of packets are those of one hook each.
    assert abs(incident["packets"] - 20_000) <= 32


def test_rate_over_an_interval(testpmd, keep):
    """No thread reads net_ring0. As long as that lasts it is one event."""
    pmd = testpmd("net_ring0", "net_null1", args=("--forward-mode=txonly",))
    kept = keep(pmd, "--on", "unsent > 1000/s over 2s", "--before", "0", "--after", "1ms", "-s", "64",
                "--cooldown", "0", "-f", "less 1")
    pmd.start()
    incident, = kept.incidents(1)
    freeze(pmd.pid)  # the driver is not read meanwhile: nothing is known, nothing changes
    check(["sleep", "4"])
    os.kill(pmd.pid, signal.SIGCONT)
    check(["sleep", "3"])
    pmd.stop()
    kept.finish()
    assert len(kept.folders()) == 1
    assert incident["trigger"]["number"] > 1000 and incident["trigger"]["threshold"] == "1000 packets/s"
    # Between two readings of the driver, which may be late by a part of a second.
    assert 1.1e9 < incident["event_to_ns"] - incident["event_from_ns"]


def test_a_level_that_comes_back_within_the_cooldown(testpmd, keep):
    """It stays: its incident comes when the cooldown is over."""
    pmd = testpmd("net_ring0", "net_null1", args=("--forward-mode=txonly",))
    kept = keep(pmd, "--on", "unsent > 1000/s over 1s", "--before", "0", "--after", "1ms", "-s", "64",
                "--cooldown", "8s", "-f", "less 1")

    def value():
        answer = json.loads(check([RINGTAP, "flight", "top", "--json", pmd.prefix]))
        return answer["recorders"][0]["conditions"][0]["threshold_share"]

    pmd.start()
    kept.incidents(1)
    pmd.stop()
    until(lambda: value() is not None and value() < 1, what="the end of the first event")
    check(["sleep", "1.5"])  # Conditions of an interval are looked at once a second.
    pmd.start()
    first, second = kept.incidents(2)
    kept.finish()
    assert second["event_to_ns"] - first["event_to_ns"] > 7e9


def test_packets_without_a_buffer(testpmd, wire, keep):
    pmd = testpmd(f"net_pcap0,iface={wire.device}", "net_null1", namespace=wire.hub, mbufs=1100,
                  args=("--forward-mode=noisy", "--noisy-tx-sw-buffer-size=2048"))
    kept = keep(pmd, "--on", "nombuf", "--before", "10ms", "--after", "1ms", *LONG)
    pmd.start()
    wire.send()
    incident, = kept.incidents(1)
    lost = pmd.stats(0)["RX-nombuf"]
    kept.finish()
    assert incident["trigger"]["where"] == "net_pcap0"
    assert 0 < incident["trigger"]["number"] <= lost and len(kept.folders()) == 1


def test_packets_that_a_driver_refuses_as_errors(testpmd, wire, keep):
    """The interface goes down."""
    pmd = testpmd(f"net_af_packet0,iface={wire.device}", namespace=wire.hub,
                  args=("--forward-mode=txonly",))
    kept = keep(pmd, "--on", "errors > 10", "--before", "10ms", "--after", "1ms", "-s", "64", *LONG)
    pmd.start()
    wire.hub.check(["ip", "link", "set", wire.device, "down"])
    incident, = kept.incidents(1)
    errors = pmd.stats(0)["TX-errors"]
    kept.finish()
    assert incident["trigger"]["where"] == "net_af_packet0"
    assert 10 < incident["trigger"]["number"] <= errors and len(kept.folders()) == 1


def test_a_hang_that_never_ends(busy, keep):
    """A worker waits for a lock for good, with packets in hand, and the application is killed."""
    window = ("--before", "1ms", "--after", "1ms", *LONG)
    kept = keep(busy, "-s", "64", "--on", "gap > 1s", *window, "--on", "latency > 1s", *window,
                "--on", "exit", *window)
    # A thread is known to forward once a latency of it has been measured.
    until(lambda: any(c["name"] == "latency" and c["value"] for c in state(busy)["conditions"]), what="a latency")
    busy.do("hang")
    gap, latency = sorted(kept.incidents(2), key=lambda i: i.condition)
    for incident in gap, latency:
        assert incident["trigger"]["where"] == "lcore 1" and incident["trigger"]["number"] > 1e9
        assert incident["packets"] > 0
    assert Diagnosis(busy).evidence("hung").count("futex()") == 1
    busy.proc.kill()
    kept.done()
    *_, last = sorted(kept.incidents(3), key=lambda i: i["event_to_ns"])
    assert last.condition == "exit" and last["packets"] > 0
    assert last["event_from_ns"] == last["last_packet_ns"]
    assert re.fullmatch(r"the last packets are \d+\.\d s older", last["trigger"]["comment"])
    assert "its last poll was at" in (last.folder / "doctor.txt").read_text()
