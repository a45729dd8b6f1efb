# SPDX-License-Identifier: BSD-3-Clause
"""ringtap flight against what is known of the packets: each trigger makes one incident, whose
window holds the packets of its time, each of them, and no other."""
import itertools
import json
import resource
import signal
import stat
import xml.etree.ElementTree as ElementTree

import pytest

from harness import flight, pcap, pcapng
from harness.flight import COMMENT, assert_same_packets, comments, numbers, state
from harness.known import Known
from harness.paths import RINGTAP
from harness.play import pace
from harness.proc import check, freeze, run, until
from harness.ringtap import FAILED, USAGE

ROOM = ("--buffer", "128M")  # seconds of the stream
SMALL = ("--keep", "32M")  # quicker to populate than the default
STALL_NS = 1_500_000_000
LONG_WAIT = "1.4s"  # longer than a thread waits for its CPU on a busy machine


def some_packets(recorder):
    """Waits for more than half a second of the stream."""
    size = recorder.out.stat().st_size
    until(lambda: recorder.out.stat().st_size > size + 6_000_000, what="packets")


@pytest.mark.smoke
def test_window_around_a_signal(stream, keep, record):
    recorder = record(stream, *ROOM)
    kept = keep(stream, "--before", "200ms", "--after", "1s")
    some_packets(recorder)
    kept.proc.send_signal(signal.SIGUSR1)
    incident, = kept.incidents(1)
    kept.finish()
    recorder.finish()
    file = assert_same_packets(incident, recorder.file())
    assert len(file.packets) > 1000 and incident["missing_ns"] == 0
    assert incident["to_ns"] - incident["from_ns"] == 1_200_000_000
    # The first packet from the trigger on has the comment, and the section.
    text, = comments(file)
    marked = next(p for p in file.packets if COMMENT in p.options)
    assert text == file.section[COMMENT][0].decode() and "trigger 'command'" in text
    assert marked.ns == min(p.ns for p in file.packets if p.ns >= incident["event_to_ns"])
    for interface in file.interfaces:
        assert pcapng.stat(interface, pcapng.LOST) == 0
    assert sum(pcapng.stat(i, pcapng.DELIVERED) for i in file.interfaces) == len(file.packets)
    for path in incident.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    check(["capinfos", incident.folder / flight.PACKETS])


def test_threads_that_begin_later(play, keep):
    """Under a recorder that nobody restarts: their first packets are in the incident."""
    app = play()
    app.plug("net_null0", "no-rx=1", rxq=16, txq=16)
    kept = keep(app, *SMALL, "--before", "60s", "--after", "1ms")
    assert app.one("crowd 0 16") == 16
    assert app.one("crowd_send 50") == 800
    kept.proc.send_signal(signal.SIGUSR1)
    incident, = kept.incidents(1)
    kept.finish()
    file = incident.file
    assert len(file.packets) == 800
    assert [pcapng.stat(i, pcapng.LOST) for i in file.interfaces] == [0]


def test_overlapping_incidents_are_both_whole(stream, keep, record):
    recorder = record(stream, *ROOM)
    kept = keep(stream, "--before", "300ms", "--after", "400ms")
    some_packets(recorder)
    flight.command("trigger", kept.folder)
    kept.proc.expect("^Incident")
    flight.command("trigger", kept.folder)
    kept.proc.expect("^Incident")
    first, second = kept.incidents(2)
    kept.finish()
    recorder.finish()
    assert second["from_ns"] < first["to_ns"]
    for incident in first, second:
        assert_same_packets(incident, recorder.file())


@pytest.mark.parametrize("end", ["kill -9", "crash", "abort", "exit 3"])
def test_end_of_the_application(end, app, keep):
    """What it had published is in the recorder's memory, however it comes to its end."""
    resource.prlimit(app.pid, resource.RLIMIT_CORE, (0, 0))
    kept = keep(app, "--on", "exit", "--before", "60s", *SMALL)
    sent = app.tx(n=5000, len=100)[0]
    if end == "kill -9":
        app.proc.kill()
    else:
        app.proc.send(end)
    status = {"kill -9": -signal.SIGKILL, "crash": -signal.SIGSEGV, "abort": -signal.SIGABRT, "exit 3": 3}
    assert app.proc.wait() == status[end]
    output = kept.done()
    assert "has ended" in output
    incident, = kept.incidents(1)
    assert incident.condition == "exit"
    assert sent == 5000 == len(incident.file.packets)
    numbers = [p.data for p in incident.file.packets]
    assert len(set(numbers)) == 5000
    assert incident["missing_ns"] > 0  # 60 s before, it was not there
    assert "journalctl -k" in flight.advice(incident)


@pytest.fixture
def two_ports(play):
    """Ports a and b with two queues each; and a function that sends and receives on all of them. It returns
    what it did as {(port, direction, queue): frames}."""
    app = play()
    for name in "a", "b":
        app.ring(name, rxq=2, txq=2)

    def traffic():
        done = {}
        for port, name in enumerate(("net_ring_a", "net_ring_b")):
            for k, (direction, queue) in enumerate(itertools.product(("rx", "tx"), (0, 1))):
                seq = 1000 * (4 * port + k)
                assert app.burst(direction, port, queue, n=20 + 5 * port + k, seq=seq)[0] == 20 + 5 * port + k
                done[name, getattr(pcapng, direction.upper()), queue] = [
                    pcap.frame(64, seq + i) for i in range(20 + 5 * port + k)]
        return done

    app.traffic = traffic
    return app


@pytest.mark.parametrize("args,chosen", [
    (("-i", "net_ring_b"), lambda port, direction, queue: port == "net_ring_b"),
    (("--queue", "1"), lambda port, direction, queue: queue == 1),
    (("-i", "1", "--queue", "0", "--direction", "tx"), lambda port, direction, queue: (port, direction, queue) == (
        "net_ring_b", pcapng.TX, 0)),
], ids=lambda a: " ".join(a) if isinstance(a, tuple) else "")
def test_selected_ports_and_queues(args, chosen, two_ports, keep):
    """By their packets; also those that a condition sees."""
    kept = keep(two_ports, *args, "--on", "packet: len == 64", "--before", "60s", "--after", "1ms", "--cooldown", "1h",
                *SMALL)
    sent = two_ports.traffic()
    kept.incidents(1)
    kept.proc.send_signal(signal.SIGUSR1)
    kept.incidents(2)
    kept.finish()
    by_packet, = (i for i in kept.incidents(2) if i.condition != "command")
    incident, = (i for i in kept.incidents(2) if i.condition == "command")
    file, found = incident.file, {}
    for p in file.packets:
        found.setdefault((file.interfaces[p.interface].name, p.direction, p.queue), []).append(p.data)
    assert found == {key: frames for key, frames in sent.items() if chosen(*key)}
    event, = (p for p in by_packet.file.packets if p.ns == by_packet["event_to_ns"] and COMMENT in p.options)
    assert event.data == found[next(key for key in sent if chosen(*key))][0]


def test_queue_that_no_port_has(two_ports, tmp_path):
    done = run([RINGTAP, "flight", two_ports.prefix, "-w", tmp_path / "i", "-i", "0", "--queue", "2"])
    assert done.returncode == FAILED and len(done.stderr.splitlines()) == 1
    assert "net_ring_a has no queue 2 (RX 0-1, TX 0-1)" in done.stderr


def stall(app, kept):
    """A process that is stopped does not poll: the gap is at least that long."""
    freeze(app.proc.pid)
    check(["sleep", STALL_NS / 1e9])
    app.proc.send_signal(signal.SIGCONT)
    incident, = kept.incidents(1)
    kept.finish()
    assert len(kept.folders()) == 1
    assert incident["trigger"]["number"] >= STALL_NS
    assert incident["event_to_ns"] - incident["event_from_ns"] >= STALL_NS
    assert incident["trigger"]["where"]
    assert "ringtap trace gaps --off-cpu" in flight.advice(incident)
    return incident


def test_a_stall_makes_one_incident(stream_of, keep, record):
    """A slow stream: nearly all polls are empty. The window has its packets one by one: those that ringtap record
    has, and of the generator all numbers."""
    app = stream_of("2k")
    recorder = record(app)
    kept = keep(app, "--on", f"idle-gap > {LONG_WAIT}", "--name", "stall", "--before", "100ms", "--after", "500ms",
                *SMALL)
    # The gap begins when its thread last had its CPU, which may be long before the stall, but not before the
    # recording: the window is whole.
    until(lambda: state(app)["kept_ns"] > 1.2 * STALL_NS and state(app)["kept_packets"] > 2000, what="packets")
    incident = stall(app, kept)
    assert incident.folder.name.endswith("-stall") and incident["missing_ns"] == 0
    recorder.finish()
    file = assert_same_packets(incident, recorder.file())
    generated, sunk = numbers(file, "net_ring_a", pcapng.TX), numbers(file, "net_ring_b", pcapng.RX)
    assert sorted(generated) == list(range(min(generated), max(generated) + 1))
    # No packet in the gap, and packets on both sides.
    times = [p.ns for p in file.packets]
    longest = max(b - a for a, b in zip(times, times[1:]))
    assert longest >= 0.99 * STALL_NS
    assert times[0] < incident["event_from_ns"] and times[-1] > incident["event_to_ns"]
    report = app.stop()
    lost = [n for n in range(min(sunk), max(sunk)) if n not in sunk]
    assert len(lost) <= report.total("oneway")["tx_dropped"]


def test_a_stall_of_a_thread_with_work(fwd, keep):
    """Packets that circulate: all polls bring some."""
    app = fwd("--ring", "a:4096", "--role", "echo:a@1", "--tx-first", 32).running()
    kept = keep(app, "--on", f"gap > {LONG_WAIT}", "--after", "1ms", "-f", "less 1", *SMALL)
    # The thread has statistics only once a control thread has made room for them.
    until(lambda: state(app)["conditions"][0]["threshold_share"], what="gaps of the thread")
    stall(app, kept)


def test_packets_that_a_port_refuses(testpmd, keep):
    """No thread reads net_ring0. The condition goes on to be true; one incident comes of it."""
    pmd = testpmd("net_ring0", "net_null1", args=("--forward-mode=txonly",))
    kept = keep(pmd, "--on", "unsent > 100", "--before", "100ms", "--after", "1ms", "-s", "64",
                "--cooldown", "1h", "-i", "net_ring0")
    pmd.start()
    incident, = kept.incidents(1)
    pmd.stop()
    kept.finish()
    assert incident.condition == "unsent > 100"
    assert incident["trigger"]["where"] == "net_ring0" and incident["trigger"]["number"] > 100
    # Two readings of the driver, half a second apart on a quiet machine.
    assert 0 < incident["event_to_ns"] - incident["event_from_ns"] < 5e9


def test_missed_packets(testpmd, wire, keep):
    pmd = testpmd(f"net_pcap0,iface={wire.device}", "net_null1", namespace=wire.hub,
                  args=("--forward-mode=noisy", "--noisy-lkup-memory=8", "--noisy-lkup-num-writes=2000"))
    kept = keep(pmd, "--on", "missed", "--before", "10ms", "--after", "10ms", "--cooldown", "1h")
    pmd.start()
    wire.send()
    incident, = kept.incidents(1)
    kept.finish()
    assert incident["trigger"]["where"] == "net_pcap0" and incident["trigger"]["number"] >= 1


def test_a_pool_that_runs_empty(testpmd, keep):
    """A software queue takes all buffers, and keeps them: a level makes one incident."""
    pmd = testpmd("net_null0", "net_null1", mbufs=1100,
                  args=("--forward-mode=noisy", "--noisy-tx-sw-buffer-size=2048"))
    kept = keep(pmd, "--on", "pool < 10%", "--before", "100ms", "--after", "1ms", "--cooldown", "0")
    pmd.start()
    incident, = kept.incidents(1)
    check(["sleep", "1"])
    kept.finish()
    assert len(kept.folders()) == 1
    assert incident["trigger"]["where"] == "mb_pool_0" and incident["trigger"]["number"] < 10
    assert incident["trigger"]["threshold"] == "10 %"
    assert "Read doctor.txt: it names the thread or mempool to change" in flight.advice(incident)


def test_a_verdict_of_the_doctor(testpmd, keep):
    pmd = testpmd("net_null0", "net_null1", mbufs=1100,
                  args=("--forward-mode=noisy", "--noisy-tx-sw-buffer-size=2048"))
    kept = keep(pmd, "--on", "doctor: pool_exhausted", "--before", "100ms", "--after", "1ms")
    pmd.start()
    incident, = kept.incidents(1)
    kept.finish()
    assert incident["trigger"]["where"] == "pool_exhausted: mb_pool_0"
    assert "the mempool is exhausted" in (incident.folder / "doctor.txt").read_text()


def test_a_slow_packet(plugin, closing, keep):
    """One burst that takes 5 ms, between others that take microseconds."""
    app = closing(Known(plugin))
    kept = keep(app, "--on", "latency > 2ms", "--before", "10s", "--after", "1ms", "--cooldown", "1h")
    hz = app.clocks()[0]
    check(["sleep", "0.1"])
    app.send([1000], rounds=50)
    app.send([40_000_000], rounds=1)
    incident, = kept.incidents(1)
    kept.finish()
    assert hz and incident["trigger"]["number"] > 2e6
    assert len(incident.file.packets) == 2 * 51 * 32
    assert "Compare gaps and latency in the plot" in flight.advice(incident)


def test_rollover_is_reported(busy, keep):
    """Memory for a part of the window: what is left is without a hole, and the file says from
    when on."""
    kept = keep(busy, "--keep", "16M", "--before", "600s", "--after", "1ms", "--direction", "rx")
    check(["sleep", "0.5"])
    kept.proc.send_signal(signal.SIGUSR1)
    incident, = kept.incidents(1)
    kept.finish()
    file = incident.file
    assert incident["missing_ns"] > 0
    since = incident["from_ns"] + incident["missing_ns"]
    assert file.packets and file.packets[0].ns <= since + 1_000_000
    assert sum(p.dropped for p in file.packets) == incident["lost"]


def test_kill_of_the_recorder(stream, keep, tmp_path):
    """The application goes on; the file is readable; another recorder may follow."""
    kept = keep(stream, "--before", "1s", "--after", "600s")
    flight.command("trigger", kept.folder)
    kept.proc.expect("^Incident")
    folder, = kept.folders()
    until(lambda: (folder / flight.PACKETS).exists() and
          (folder / flight.PACKETS).stat().st_size > 100_000, what="packets in the file")
    kept.proc.kill()
    assert pcapng.read(folder / flight.PACKETS, whole=False).packets
    assert "incomplete" in flight.command("list", kept.folder)
    assert "no recorder writes" in flight.command("trigger", kept.folder, status=FAILED)
    again = keep(stream, "--before", "100ms", "--after", "2s")
    flight.command("trigger", again.folder)
    assert again.incidents(1)[0]["packets"] > 0
    again.finish()
    flight.command("prune", again.folder, "--max-incidents", 1)
    assert again.folders() == [again.incidents(1)[0].folder]
    # On a busy machine the application loses packets by itself, between its own threads.
    report = stream.stop()
    assert report.role("sink")["sequence"]["lost"] == report.total("oneway")["tx_dropped"]


@pytest.mark.nightly
@pytest.mark.alone
def test_kill_of_the_recorder_ends_its_cost(busy, keep):
    """The application is as fast as before, and has nothing of the recorder any more."""
    before = pace(busy)
    kept = keep(busy, "--on", "gap > 100s", *SMALL)
    during = pace(busy, 1)
    kept.proc.kill()
    until(lambda: busy.one("callbacks 0") == 0, what="no callback is left")
    assert pace(busy) > max(0.75 * before, (before + during) / 2)


def test_second_recorder_of_a_folder_is_refused(app, keep):
    kept = keep(app)
    done = run([RINGTAP, "flight", app.prefix, "-w", kept.folder])
    assert done.returncode == FAILED and "another recorder writes there" in done.stderr


@pytest.fixture
def disk(tmp_path, closing):
    """disk(size): a file system of this size."""
    def mount(size):
        path = tmp_path / "disk"
        path.mkdir()
        check(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path])
        closing(type("Mount", (), {"close": lambda _: check(["umount", "-l", path])})())
        return path

    return mount


def test_full_disk(busy, keep, disk):
    """The incident says what there is of it, and that is the time of the event; there is no half of a file."""
    kept = keep(busy, folder=disk("2M") / "incidents")
    check(["sleep", "0.2"])
    flight.command("trigger", kept.folder)
    kept.proc.expect("No space left on device; what was written before is whole")
    incident, = kept.incidents(1)
    packets = incident.file.packets
    assert packets and incident["packets"] == len(packets)
    assert incident["event_to_ns"] <= incident["last_packet_ns"] == packets[-1].ns < incident["to_ns"]
    assert incident["from_ns"] < packets[0].ns and incident["missing_ns"] > 0
    assert len(flight.comments(incident.file)) == 1
    assert incident["error"] == "No space left on device"
    others = {p.name for p in incident.folder.iterdir()} - {flight.PACKETS, flight.INCIDENT}
    assert not others & set(incident["not_written"]) and "metrics.json" in incident["not_written"]
    assert "(not all of it)" in flight.command("list", kept.folder)
    text = flight.command("show", kept.folder, incident.folder.name)
    assert "not complete: No space left on device\nnot written: metrics.json, " in text
    kept.finish(status=FAILED)


def test_no_space_for_reports(app, keep, disk):
    """All of the packets have some."""
    kept = keep(app, "--before", "60s", "--after", "1ms", folder=disk("44K") / "incidents")
    assert app.tx(n=10, len=100)[0] == 10
    kept.proc.send_signal(signal.SIGUSR1)
    incident, = kept.incidents(1)
    assert len(incident.file.packets) == 10 and incident["error"] is None
    assert {"metrics.json", "index.html"} <= set(incident["not_written"])
    assert "(not all of it)" in flight.command("list", kept.folder)
    kept.finish(status=FAILED)


def test_disk_that_is_full_before(app, keep, disk):
    """Nothing of an incident stays there; the next one is whole."""
    path = disk("2M")
    kept = keep(app, "--before", "60s", "--after", "1ms", folder=path / "incidents")
    assert "No space left" in run(["dd", "if=/dev/zero", f"of={path / 'other'}", "bs=4K"]).stderr
    kept.proc.send_signal(signal.SIGUSR1)
    kept.proc.expect("incident 'command': No space left on device; not recorded")
    until(lambda: not kept.folders(), what="no folder")
    (path / "other").unlink()
    kept.proc.send_signal(signal.SIGUSR1)
    incident, = kept.incidents(1)
    assert incident["error"] is None and not incident["not_written"]
    assert (incident.folder / flight.INCIDENT).stat().st_size < 10_000
    kept.finish(status=FAILED)


@pytest.mark.parametrize("options", [("--max-incidents", 2), ("--max-disk", "4M")])
def test_oldest_incidents_are_removed(app, keep, options):
    """They have 0.5, 1, 1.5 and 2 MB: packets of known number, each incident has those of all before."""
    kept = keep(app, "--before", "60s", "--after", "1ms", *options)
    names = []
    for _ in range(4):
        assert app.tx(n=350, len=1400)[0] == 350
        kept.proc.send_signal(signal.SIGUSR1)
        name = kept.proc.expect(r"^Incident (\S+): [\d,]+ packets").group(1).decode()
        names.append(name)
    kept.finish()
    assert [p.name for p in kept.folders()] == names[-2:]


def disk_use(folder):
    """As du(1) counts it."""
    return sum(512 * p.lstat().st_blocks for p in (folder, *folder.rglob("*")))


def test_prune_to_a_size(app, keep):
    """Incidents of 0.5, 1 and 1.5 MB; each limit is a little more than the newest of them take. The newest one
    always stays."""
    kept = keep(app, "--before", "60s", "--after", "1ms", *SMALL)
    for _ in range(3):
        assert app.tx(n=350, len=1400)[0] == 350
        kept.proc.send_signal(signal.SIGUSR1)
        kept.proc.expect(r"^Incident (\S+): [\d,]+ packets")
    kept.finish()
    folders = kept.folders()
    for newest, removed in (3, 0), (2, 1), (1, 1), (0, 0):
        limit = sum(map(disk_use, folders[3 - newest:])) + 100_000
        assert f"{removed} incidents removed" in flight.command("prune", kept.folder, "--max-disk", limit)
        assert kept.folders() == folders[3 - max(newest, 1):]


def test_more_memory_than_there_is(app, tmp_path):
    """Refused at the start; nothing of the application is touched."""
    done = run([RINGTAP, "flight", app.prefix, "-w", tmp_path / "i", "--keep", "64G"])
    assert done.returncode == FAILED
    assert "not enough memory" in done.stderr and len(done.stderr.splitlines()) == 1
    until(lambda: app.one("callbacks 0") == 0, what="no callback is left")


def test_memory_limit_of_a_cgroup(memory_limit, app, tmp_path):
    group = memory_limit(128 << 20)
    words = [*group.prefix, RINGTAP, "flight", app.prefix, "-w", tmp_path / "i", "--keep"]
    done = run([*words, "64M"])  # the recorder itself has some of the other half
    assert done.returncode == FAILED and "not enough memory" in done.stderr
    done = run([*words, "65M", "--wait"])  # there is no use in waiting
    assert done.returncode == USAGE and len(done.stderr.splitlines()) == 1 and "MemoryMax=386M" in done.stderr
    assert group.oom_kills == 0


def test_metrics_doctor_list_and_show(stream, keep):
    kept = keep(stream, "--collectors", "all", "--before", "3s", "--after", "1ms", "--on", "exit")
    check(["sleep", "2.5"])
    kept.proc.send_signal(signal.SIGUSR1)
    incident, = kept.incidents(1)
    metrics = json.loads((incident.folder / "metrics.json").read_text())
    assert len(metrics["seconds"]) >= 2
    assert {p["name"] for p in metrics["all"]["ports"]} == {
        i.name for i in incident.file.interfaces}
    assert "watched for" in (incident.folder / "doctor.txt").read_text()
    page = (incident.folder / "index.html").read_text()
    assert "<td>command</td>" in page and "plot.svg" in page
    plot = ElementTree.parse(incident.folder / "plot.svg")
    assert plot.getroot().tag.endswith("svg")
    listed = json.loads(flight.command("list", kept.folder, "--json"))
    assert [i["name"] for i in listed["incidents"]] == [incident.folder.name]
    assert incident.folder.name in flight.command("list", kept.folder)
    assert "trigger: command" in flight.command("show", kept.folder, incident.folder.name)
    flight.command("show", kept.folder, "nothing", status=FAILED)
    kept.finish()
    # The exit of the application is none of the recorder.
    assert len(kept.folders()) == 1


@pytest.mark.parametrize("args,text", [
    (("--on", "mised"), "unknown condition"),
    (("--on", "gap"), "give a threshold"),
    (("--on", "gap > fast"), "not a time"),
    (("--on", "pool > 5"), "give a level"),
    (("--on", "missed > x"), "not a number"),
    (("--on", "doctor: bored"), "no such verdict"),
    (("--on", "exit > 1"), "no threshold"),
    (("--name", "x"), "behind an --on"),
    (("--on", "missed", "--name", "../x"), "letters"),
    (("--before", "2h"), "up to one hour"),
])
def test_wrong_conditions_are_refused(args, text, tmp_path):
    done = run([RINGTAP, "flight", "-w", tmp_path / "i", *args])
    assert done.returncode == USAGE and text in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "i").exists()
