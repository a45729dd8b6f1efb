# SPDX-License-Identifier: BSD-3-Clause
"""Conditions of ringtap flight against what is known to happen: each fires once, for that event."""

import re
import signal
import time

import pytest
from harness import flight, pcapng
from harness.cases import nightly
from harness.doctor import Diagnosis, top
from harness.flight import COMMENT, assert_same_packets, comments, state
from harness.paths import RINGTAP
from harness.proc import check, run, until
from harness.ringtap import FAILED

RX = 1  # in epb_flags
LONG = ("--cooldown", "1h")


def marked(file):
    """The packet that has the comment."""
    (packet,) = [p for p in file.packets if COMMENT in p.options]
    return packet


def test_a_packet_with_a_mark(stream, keep, record):
    """One of 65536 numbers, received by the forwarder; the recording has all packets."""
    recorder = record(stream, "--buffer", "128M")
    kept = keep(
        stream,
        "--on",
        "packet: inbound and ether[50:2] = 0x1234",
        "--before",
        "100ms",
        "--after",
        "50ms",
        "--cooldown",
        "1s",
    )
    # The first may come before 100 ms are kept, the second comes 3.3 s later.
    incident = max(kept.incidents(2), key=lambda i: i.at("from"))
    kept.finish()
    recorder.finish()
    file = assert_same_packets(incident, recorder.file())
    packet = marked(file)
    assert packet.data[42:46] == b"RTfw" and packet.data[50:52] == b"\x12\x34"
    assert packet.direction == RX
    # It was received from both rings; the first one counts.
    assert file.interfaces[packet.interface].name == "net_ring_a"
    assert incident["trigger"]["where"] == "net_ring_a"
    assert packet.ns == incident.at("event_from") == incident.at("event_to")
    assert incident["missing_ns"] == 0 and len(kept.folders()) == 2
    assert "trigger 'packet: inbound and ether[50:2] = 0x1234' at net_ring_a " in comments(file)[0]


ODD = bytes.fromhex("020000000002 020000000001 88b6") + b"odd one".ljust(50, b"x")


def send_around(app, count=1000, data=ODD, **shape):
    """A packet between others, in a burst of its own."""
    assert app.tx(n=count, len=100)[0] == count
    assert app.tx(data=data, **shape)[0] == 1
    assert app.tx(n=count, len=100)[0] == count


def test_the_packet_itself_has_the_comment(app, keep):
    """One of a burst, whose packets have the same time; and the last one, in memory of the recorder when the application
    is killed."""
    kept = keep(
        app,
        "--before",
        "60s",
        "--after",
        "1ms",
        *LONG,
        "--on",
        "packet: ether[14:4] = 1007",
        "--on",
        "packet: ether proto 0x88b6",
        "--name",
        "odd",
    )
    assert app.tx(n=2000, len=100, burst=32)[0] == 2000
    kept.incidents(1)
    assert app.tx(data=ODD)[0] == 1
    app.proc.kill()
    kept.done()
    odd, incident = sorted(kept.incidents(2), key=lambda i: i["trigger"]["name"])
    assert marked(odd.file).data == ODD
    file = incident.file
    packet = marked(file)
    at = file.packets.index(packet)
    assert at == 1007 and packet.data[14:18] == (1007).to_bytes(4, "big")
    assert file.packets[at - 1].ns == packet.ns == incident.at("event_from")
    assert incident["trigger"]["name"] == "packet"
    assert "The packet that matched has the comment" in flight.advice(incident)


def test_conditions_have_names_windows_and_cooldowns_of_their_own(app, keep):
    kept = keep(
        app,
        "--on",
        "packet: ether proto 0x88b6",
        "--name",
        "odd",
        "--before",
        "60s",
        "--after",
        "0s",
        *LONG,
        "--on",
        "packet: len == 100",
        "--name",
        "hundred",
        "--before",
        "0s",
        "--after",
        "1s",
        *LONG,
    )
    send_around(app, count=20)
    for _ in range(3):
        assert app.tx(data=ODD)[0] == 1
    hundred, odd = sorted(kept.incidents(2), key=lambda i: i["trigger"]["name"])
    kept.finish()
    assert len(kept.folders()) == 2
    assert hundred.at("from") == hundred.at("event_from") == hundred.file.packets[0].ns
    assert odd.at("to") == odd.at("event_to") and marked(odd.file).data == ODD
    assert marked(hundred.file).length == 100


@pytest.mark.parametrize("tags", ["any", nightly("as-is")])
def test_tags_of_filters(app, keep, tmp_path, tags):
    """A tagged packet before the same one without a tag: for a condition, the recording and extract."""
    kept = keep(
        app, "--on", "packet: ether proto 0x88b6", "-f", "ether proto 0x88b6", "--tags", tags, "--before", "60s", *LONG
    )
    tagged = ODD[:12] + bytes.fromhex("81000005") + ODD[12:]
    assert app.tx(data=tagged)[0] == 1
    assert app.tx(data=ODD)[0] == 1
    (incident,) = kept.incidents(1)
    kept.finish()
    both = [tagged, ODD] if tags == "any" else [ODD]
    assert [p.data for p in incident.file.packets] == both and marked(incident.file).data == both[0]
    out = tmp_path / "extracted.pcapng"
    flight.command(
        "extract", kept.folder, incident.folder.name, "-f", "ether proto 0x88b6", "--tags", "as-is", "-w", out
    )
    assert [p.data for p in pcapng.read(out).packets] == [ODD]


def test_recording_filter_does_not_hide_packets_from_conditions(app, keep):
    kept = keep(
        app, "--on", "packet: ether proto 0x88b6", "-f", "len == 100", "--before", "60s", "--after", "1s", *LONG
    )
    send_around(app, count=20)
    (incident,) = kept.incidents(1)
    kept.finish()
    file = incident.file
    assert len(file.packets) == 40 and all(p.length == 100 for p in file.packets)
    # The next one that was recorded has the comment.
    assert file.packets.index(marked(file)) == 20
    assert marked(file).ns > incident.at("event_to")


def test_condition_reads_the_frame_as_on_the_wire(app, keep, tmp_path):
    """A tag that the NIC adds, bytes in other segments, and bytes behind the snapshot length."""
    for n, how in enumerate(({"vlan": 7}, {"segs": 3}, {"snaplen": 20})):
        text = "vlan 7 and ether[50:4] = 0x78787878" if "vlan" in how else "ether[50:4] = 0x78787878"
        args = ("-s", how.pop("snaplen")) if "snaplen" in how else ()
        kept = keep(
            app,
            "--on",
            f"packet: {text}",
            "--before",
            "60s",
            "--after",
            "1ms",
            "--buffer",
            "16M",
            *args,
            *LONG,
            folder=tmp_path / str(n),
        )
        send_around(app, count=10, **how)
        (incident,) = kept.incidents(1)
        kept.finish()
        assert incident.file.packets.index(marked(incident.file)) == 10, text


def test_more_conditions_than_sessions(app, tmp_path):
    """Each takes one, the recording another."""
    conditions = [a for k in range(16) for a in ("--on", f"packet: len == {k}")]
    done = run([RINGTAP, "flight", app.prefix, "-w", tmp_path / "i", *conditions])
    assert done.returncode == FAILED and "too many recordings" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    until(lambda: app.one("callbacks 0") == 0, what="no callback is left")


def test_conditions_do_not_hold_up_the_end(busy, keep):
    """All packets match; the recorder reads no more of them than it must. Each incident's window is longer than the time
    until the next one."""
    kept = keep(
        busy, "--on", "packet: len >= 0", "--before", "0s", "--after", "500ms", "-f", "less 1", "--cooldown", "100ms"
    )
    kept.incidents(2)
    output = kept.finish(signal.SIGTERM)
    made = len(kept.folders())
    assert re.search(rf"^Incidents: {made}, [\d,]+ more within --cooldown$", output, re.M)
    assert all(i["packets"] == 0 for i in kept.incidents(made))


def test_an_event_of_the_probe(stream, keep, record):
    """Another recording begins; nothing else is this event."""
    kept = keep(
        stream, "--on", "usdt: ringtap:session_open", "--name", "session", "--before", "100ms", "--after", "100ms"
    )
    before = time.time_ns()
    recorder = record(stream)
    after = time.time_ns()
    (incident,) = kept.incidents(1)
    recorder.finish()
    kept.finish()
    assert len(kept.folders()) == 1 and incident.folder.name.endswith("-session")
    # A millisecond: two clocks are converted.
    assert before - 10**6 < incident.at("event_from") == incident.at("event_to") < after + 10**6
    assert incident["packets"] > 0
    assert incident["trigger"]["where"].startswith("thread ")


@pytest.mark.nightly
def test_packets_older_than_a_time_are_given_back(stream, keep):
    """The memory would hold minutes of them."""
    kept = keep(stream, "--keep", "500ms", "--before", "500ms", "--after", "1ms", "--on", "exit", "--before", "500ms")
    check(["sleep", "6"])
    kept.proc.send_signal(signal.SIGUSR1)
    (incident,) = kept.incidents(1)
    stream.proc.kill()
    kept.done()
    assert incident["missing_ns"] == 0
    # 3.5 s of these 6 s are gone: 2 s more are kept for events that are noticed late, in chunks.
    kept_ns = incident.at("event_to") - incident.at("kept_since")
    assert 2_500_000_000 <= kept_ns < 5_000_000_000


def test_a_busy_period(app, keep):
    """20,000 packets without an empty poll between them, and shorter ones before and after."""
    kept = keep(app, "--on", "burst > 10000", "--before", "0s", "--after", "0s", *LONG)

    def counted():
        app.rx(n=32)
        app.do("idle 0 0 n=10")
        return top(app, "--interval", "0.1s")["threads"]

    until(counted, what="statistics of the thread")  # a control thread has to make room for them
    for packets in 500, 20_000, 500:
        assert app.rx(n=packets, burst=32, len=64)[0] == packets
        app.do("idle 0 0 n=10")
    (incident,) = kept.incidents(1)
    kept.finish()
    assert len(kept.folders()) == 1 and incident["trigger"]["number"] == 20_000
    # Times of the statistics and of packets are those of one hook each.
    assert abs(incident["packets"] - 20_000) <= 32


def test_packets_without_a_buffer(testpmd, wire, keep):
    pmd = testpmd(
        f"net_pcap0,iface={wire.device}",
        "net_null1",
        namespace=wire.hub,
        mbufs=1100,
        args=("--forward-mode=noisy", "--noisy-tx-sw-buffer-size=2048"),
    )
    kept = keep(pmd, "--on", "no-mbuf", "--before", "10ms", "--after", "1ms", *LONG)
    pmd.start()
    wire.send()
    (incident,) = kept.incidents(1)
    lost = pmd.stats(0)["RX-nombuf"]
    kept.finish()
    assert incident["trigger"]["where"] == "net_pcap0"
    assert 0 < incident["trigger"]["number"] <= lost and len(kept.folders()) == 1


def test_packets_that_a_driver_refuses_as_errors(testpmd, wire, keep):
    """The interface goes down."""
    pmd = testpmd(f"net_af_packet0,iface={wire.device}", namespace=wire.hub, args=("--forward-mode=txonly",))
    kept = keep(pmd, "--on", "errors > 10", "--before", "10ms", "--after", "1ms", "-s", "64", *LONG)
    pmd.start()
    wire.hub.check(["ip", "link", "set", wire.device, "down"])
    (incident,) = kept.incidents(1)
    errors = pmd.stats(0)["TX-errors"]
    kept.finish()
    assert incident["trigger"]["where"] == "net_af_packet0"
    assert 10 < incident["trigger"]["number"] <= errors and len(kept.folders()) == 1


def test_a_hang_that_never_ends(busy, keep):
    """A worker waits for a lock for good, with packets in hand, and the application is killed."""
    window = ("--before", "1ms", "--after", "1ms", *LONG)
    kept = keep(busy, "-s", "64", "--on", "gap > 1s", *window, "--on", "latency > 1s", *window, "--on", "exit", *window)
    # A thread is known to forward once a latency of it has been measured.
    until(lambda: any(c["name"] == "latency" and c["value"] for c in state(busy)["conditions"]), what="a latency")
    busy.do("hang")
    gap, latency = sorted(kept.incidents(2), key=lambda i: i.condition)
    for incident in gap, latency:
        assert incident["trigger"]["where"].startswith("lcore 1 (") and incident["trigger"]["number"] > 1e9
        assert incident["packets"] > 0
    assert Diagnosis(busy).evidence("hung").count("futex()") == 1
    busy.proc.kill()
    kept.done()
    *_, last = sorted(kept.incidents(3), key=lambda i: i.at("event_to"))
    assert last.condition == "exit" and last["packets"] > 0
    assert last.at("event_from") == last.at("last_packet"), (last["lost"], last["kept_since"])
    assert re.fullmatch(r"the last packets are \d+\.\d s older", last["trigger"]["comment"])
    assert "its last poll was at" in (last.folder / "doctor.txt").read_text()
