# SPDX-License-Identifier: BSD-3-Clause
"""Secondary processes that start, are attached to, and end."""

import itertools
import os
import signal

import pytest
from harness import pcapng
from harness.attach import attach, detach
from harness.flight import Flight
from harness.pair import Part, listed, of_process, sockets
from harness.paths import RINGTAP
from harness.pcapng import RX, TX
from harness.proc import check, run

COUNT = 500


def number(packet):
    return int.from_bytes(packet.data[6:10], "little")


def forward(apps, count=COUNT, pause_us=100):
    for app in apps:
        app.send(f"forward {count} {pause_us}")
    for app in apps:
        app.done()


@pytest.mark.smoke
def test_recording_an_application_records_all_its_processes(primary, secondary, plugin, record):
    """Packet by packet, and in the order of time, though the processes take turns."""
    apps = [primary, secondary(plugin), secondary(plugin, queue=2)]
    recorder = record(primary, "-s", "64")
    forward(apps)
    recorder.finish()
    assert "Strict time order:   True" in check(["capinfos", "-o", recorder.out])
    file = recorder.file()
    assert [seen for seen, _, _ in pcapng.check_sums(file)] == [2 * COUNT] * 3
    for app in apps:
        packets = of_process(file, app)
        assert {(p.direction, p.queue) for p in packets} == {(RX, app.queue), (TX, app.queue)}
        sent = [p for p in packets if p.direction == TX]
        assert [number(p) - number(sent[0]) for p in sent] == list(range(COUNT))
        assert {p.data[0] for p in sent} == {2 * app.queue}
        shown = check(
            [
                "tshark",
                "-r",
                recorder.out,
                "-Y",
                f'frame.interface_name == "{app.name}:net_null0"',
                "-T",
                "fields",
                "-e",
                "frame.number",
            ]
        )
        assert len(shown.split()) == len(packets) == 2 * COUNT
    turns = [p.interface for p in file.packets]
    assert sum(a != b for a, b in itertools.pairwise(turns)) > 10


def test_secondaries_without_the_probe_and_later_ones_are_reported(primary, secondary, plugin, record):
    other = secondary()
    recorder = record(primary)
    assert f"'{other.name}' runs without the probe: its packets are not captured" in recorder.proc.output
    forward([primary, other])
    late = secondary(plugin, queue=2)
    recorder.proc.expect(rf"a secondary process of '{primary.name}' has started \(pid {late.pid}\): its packets are")
    recorder.finish()
    assert len(recorder.file().packets) == 2 * COUNT


def test_attach_enters_a_running_secondary(primary, secondary, record):
    other = secondary()
    assert "without the probe" in check([RINGTAP, "list", other.name])
    for _ in range(2):
        assert other.name in attach(other.name)
        assert listed(other)["pid"] == other.pid
        assert "already" in attach(other.pid)
        recorder = record(primary)
        forward([primary, other])
        recorder.finish()
        assert len(of_process(recorder.file(), other)) == 2 * COUNT
        assert "sleeps" in detach(other.name)
        assert listed(other)["error"] and sockets(other) == {"ringtap.sock"}
    assert other.quit() == 0


def test_killed_secondary_harms_neither_capture_nor_primary(primary, secondary, plugin, record):
    other = secondary(plugin)
    recorder = record(primary)
    other.send("forward 1000000 50")
    forward([primary])
    os.kill(other.pid, signal.SIGKILL)
    recorder.proc.expect("an application has ended; the capture goes on with 1 of 2")
    assert not listed(other)
    forward([primary])
    recorder.finish()
    file = recorder.file()
    assert len(of_process(file, primary)) == 4 * COUNT
    assert of_process(file, other)
    # What it has left in the folder goes when the next one starts.
    assert sockets(primary) == {"ringtap.sock", f"ringtap.sock@{other.pid}"}
    other = secondary(plugin)
    assert sockets(primary) == {"ringtap.sock", f"ringtap.sock@{other.pid}"}
    recorder = record(primary)
    forward([primary, other])
    recorder.finish()
    assert len(of_process(recorder.file(), other)) == 2 * COUNT
    assert other.quit() == 0 and sockets(primary) == {"ringtap.sock"}


def assert_ids_need_the_primary_first(first, other, record):
    args = [RINGTAP, "record", "-i", other.name, "--ids", "-a", "duration:0.1", "--buffer", "16M", "-w", os.devnull]
    done = run(args)
    assert done.returncode == 1 and "only the primary process can take" in done.stderr
    record(first, "--ids").finish()
    assert run(args).returncode == 0


def test_killed_primary_leaves_a_secondary_that_is_recorded(plugin, secondary, closing, record):
    first = closing(Part(plugin, 0))
    other = secondary(plugin, of=first)
    assert_ids_need_the_primary_first(first, other, record)
    recorder = record(first)
    forward([first, other])
    os.kill(first.pid, signal.SIGKILL)
    recorder.proc.expect("an application has ended; the capture goes on with 1 of 2")
    forward([other])
    recorder.finish()
    file = recorder.file()
    assert len(of_process(file, first)) == 2 * COUNT and len(of_process(file, other)) == 4 * COUNT
    # Alone it is found as well; nothing else is meant by a name without a process.
    assert listed(other)["primary"] == ""
    again = check(
        [RINGTAP, "record", "-i", other.name, "-a", "duration:0.1", "--buffer", "16M", "--json", "-w", os.devnull]
    )
    assert other.name in again
    assert other.quit() == 0


def test_flight_ends_with_the_primary(plugin, secondary, closing, tmp_path):
    """Its conditions are those of the primary, and the next primary has other memory."""
    first = closing(Part(plugin, 0))
    other = secondary(plugin, of=first)
    kept = closing(Flight(first, tmp_path / "incidents", "--on", "exit", "--before", "60s", "--after", "100ms"))
    forward([first, other])
    os.kill(first.pid, signal.SIGKILL)
    assert f"application '{first.name}' has ended" in kept.done()
    (incident,) = kept.incidents(1)
    assert incident.condition == "exit"
    for app in first, other:
        assert len(of_process(incident.file, app)) == 2 * COUNT
    assert other.quit() == 0


# ---- ids -------------------------------------------------------------------------------------


def ids(packets, direction):
    return [p.id for p in packets if p.direction == direction]


def test_ids_of_packets_that_one_process_receives_and_another_sends(primary, secondary, plugin, record):
    others = [secondary(plugin), secondary(plugin, queue=2)]
    recorder = record(primary, "--ids")
    # Both ways, and while all number packets of their own.
    forward([primary, *others], 100)
    for giver, taker in ((primary, others[0]), (others[0], others[1]), (others[1], primary)):
        taker.send("take 200")
        giver.send("give 200")
        giver.done()
        taker.done()
    recorder.finish()
    file = recorder.file()
    received = {app: ids(of_process(file, app), RX) for app in (primary, *others)}
    every = [i for of_app in received.values() for i in of_app]
    assert len(every) == len(set(every)) == 3 * 300 and None not in every
    for giver, taker in ((primary, others[0]), (others[0], others[1]), (others[1], primary)):
        sent = ids(of_process(file, taker), TX)
        assert set(received[giver][100:]) <= set(sent) and len(sent) == 300
    shown = check(["tshark", "-r", recorder.out, "-Y", "frame.packet_id", "-T", "fields", "-e", "frame.packet_id"])
    assert len(shown.split()) == 6 * 300


@pytest.mark.nightly
def test_ids_of_a_secondary_that_follows_a_killed_one(primary, secondary, plugin, record):
    """It has the place of that one in ids, which the primary may still send."""
    recorder = record(primary, "--ids")
    for _ in range(2):
        other = secondary(plugin)
        again = record(primary, "--ids")
        primary.send("take 200")
        other.send("give 200")
        other.done()
        primary.done()
        again.finish()
        os.kill(other.pid, signal.SIGKILL)
        other.proc.wait()
    recorder.finish()
    sent = ids(recorder.file().packets, TX)
    assert len(sent) == len(set(sent)) == 400 and None not in sent
