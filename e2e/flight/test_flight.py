# SPDX-License-Identifier: BSD-3-Clause
"""ringtap flight against what is known of the packets: each trigger makes one incident, whose
window holds the packets of its time, each of them, and no other."""

import itertools
import re
import resource
import signal
import stat

import pytest
from harness import flight, pcap, pcapng
from harness.documents import ns_of
from harness.flight import COMMENT, assert_same_packets, comments, numbers, state
from harness.known import Known
from harness.paths import RINGTAP
from harness.play import pace
from harness.proc import check, freeze, run, until
from harness.ringtap import FAILED, USAGE

ROOM = ("--buffer", "128M")  # seconds of the stream
SMALL = ("--buffer", "32M")  # quicker to populate than the default
STALL_NS = 1_500_000_000
LONG_WAIT = "1.4s"  # longer than a thread waits for its CPU on a busy machine


def some_packets(recorder, size=6_000_000):
    """Waits for these bytes, which are more than half a second of the stream."""
    end = recorder.out.stat().st_size + size
    until(lambda: recorder.out.stat().st_size > end, what="packets")


def requests_at_once(kept):
    """A signal's and a command's, which the recorder finds together: it is stopped until both are there."""
    freeze(kept.proc.pid)
    (kept.folder / ".request-1").touch()  # as `ringtap flight trigger` puts it
    kept.proc.send_signal(signal.SIGUSR1)
    kept.proc.send_signal(signal.SIGCONT)


@pytest.mark.smoke
def test_windows_of_requests(stream_of, keep, record):
    """One around a signal, and two that overlap; each is whole."""
    stream = stream_of("1k")  # all of it is recorded and compared, however long a slow machine takes for the incidents
    kept = keep(stream, "--before", "200ms", "--after", "500ms")
    recorder = record(stream, *ROOM)
    some_packets(recorder, 300_000)
    kept.proc.send_signal(signal.SIGUSR1)
    kept.incidents(1)
    requests_at_once(kept)
    incident, second, third = kept.incidents(3)
    kept.finish()
    recorder.finish()
    whole = recorder.file()
    assert third.at("from") < second.at("to")
    for other in second, third:
        assert_same_packets(other, whole)
    file = assert_same_packets(incident, whole)
    assert len(file.packets) > 1000 and incident["missing_ns"] == 0
    assert incident.at("to") - incident.at("from") == 700_000_000
    # The first packet from the trigger on has the comment, and the section.
    (text,) = comments(file)
    marked = next(p for p in file.packets if COMMENT in p.options)
    assert text == file.section[COMMENT][0].decode() and "trigger 'command'" in text
    assert marked.ns == min(p.ns for p in file.packets if p.ns >= incident.at("event_to"))
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
    (incident,) = kept.incidents(1)
    kept.finish()
    file = incident.file
    assert len(file.packets) == 800
    assert [pcapng.stat(i, pcapng.LOST) for i in file.interfaces] == [0]


def test_ends_of_applications(play, keep, tmp_path):
    """Published packets are in the recorder's memory, for each way in which the application ends."""
    ends = {"kill -9": -signal.SIGKILL, "crash": -signal.SIGSEGV, "abort": -signal.SIGABRT, "exit 3": 3}
    for end, status in ends.items():
        app = play()
        app.ring("a")
        resource.prlimit(app.pid, resource.RLIMIT_CORE, (0, 0))
        kept = keep(app, "--on", "exit", "--before", "60s", *SMALL, folder=tmp_path / end.split()[0])
        sent = app.tx(n=5000, len=100)[0]
        if end == "kill -9":
            app.proc.kill()
        else:
            app.proc.send(end)
        assert app.proc.wait() == status, end
        assert "has ended" in kept.done(), end
        (incident,) = kept.incidents(1)
        assert incident.condition == "exit", end
        assert sent == 5000 == len(incident.file.packets), end
        assert len({p.data for p in incident.file.packets}) == 5000, end
        assert incident["missing_ns"] > 0, end  # 60 s before, it was not there
        assert "journalctl -k" in flight.advice(incident), end


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
                    pcap.frame(64, seq + i) for i in range(20 + 5 * port + k)
                ]
        return done

    app.traffic = traffic
    return app


CHOSEN = {  # ports and options
    (("net_ring_b",),): lambda port, direction, queue: port == "net_ring_b",
    ((), "--queue", "1"): lambda port, direction, queue: queue == 1,
    (("1",), "--queue", "0", "--direction", "tx"): lambda port, direction, queue: (port, direction, queue)
    == ("net_ring_b", pcapng.TX, 0),
}


def test_selected_ports_and_queues(two_ports, keep, tmp_path):
    """By their packets; also those that a condition sees. A recorder of each selection, at the same time."""
    done = run([RINGTAP, "flight", f"{two_ports.prefix}:0", "-w", tmp_path / "i", "--queue", "2"])
    assert done.returncode == FAILED and len(done.stderr.splitlines()) == 1
    assert "port net_ring_a has no queue 2 (it has RX 0-1, TX 0-1)" in done.stderr
    recorders = {
        args: keep(
            two_ports,
            *args[1:],
            "--on",
            "packet: len == 64",
            "--before",
            "60s",
            "--after",
            "1ms",
            "--cooldown",
            "1h",
            "--buffer",
            "16M",
            folder=tmp_path / str(n),
            ports=args[0],
        )
        for n, args in enumerate(CHOSEN)
    }
    sent = two_ports.traffic()
    for args, kept in recorders.items():
        chosen = CHOSEN[args]
        kept.incidents(1)
        kept.proc.send_signal(signal.SIGUSR1)
        kept.incidents(2)
        kept.finish()
        (by_packet,) = (i for i in kept.incidents(2) if i.condition != "command")
        (incident,) = (i for i in kept.incidents(2) if i.condition == "command")
        file, found = incident.file, {}
        for p in file.packets:
            found.setdefault((file.interfaces[p.interface].name, p.direction, p.queue), []).append(p.data)
        assert found == {key: frames for key, frames in sent.items() if chosen(*key)}, args
        (event,) = (p for p in by_packet.file.packets if p.ns == by_packet.at("event_to") and COMMENT in p.options)
        assert event.data == found[next(key for key in sent if chosen(*key))][0], args


def stall(app, kept):
    """A process that is stopped does not poll: the gap is at least that long."""
    freeze(app.proc.pid)
    check(["sleep", STALL_NS / 1e9])
    app.proc.send_signal(signal.SIGCONT)
    (incident,) = kept.incidents(1)
    kept.finish()
    assert len(kept.folders()) == 1
    assert incident["trigger"]["number"] >= STALL_NS
    assert incident.at("event_to") - incident.at("event_from") >= STALL_NS
    assert incident["trigger"]["where"]
    assert "ringtap trace gaps --off-cpu" in flight.advice(incident)
    # It went on while snapshots were taken.
    intervals = [v for lane in flight.panel(incident, "threads")["lanes"] for v in lane["intervals"]]
    assert max(v[1] for v in intervals) >= STALL_NS - 10_000_000
    return incident


def test_a_stall_makes_one_incident(stream_of, keep, record):
    """A slow stream: nearly all polls are empty. The window has its packets one by one: those that ringtap record
    has, and of the generator all numbers."""
    app = stream_of("2k")
    recorder = record(app)
    kept = keep(
        app, "--on", f"idle-gap > {LONG_WAIT}", "--name", "stall", "--before", "100ms", "--after", "500ms", *SMALL
    )
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
    longest = max(b - a for a, b in itertools.pairwise(times))
    assert longest >= 0.99 * STALL_NS
    assert times[0] < incident.at("event_from") and times[-1] > incident.at("event_to")
    report = app.stop()
    lost = [n for n in range(min(sunk), max(sunk)) if n not in sunk]
    assert len(lost) <= report.total("oneway")["tx_dropped"]


def test_packets_that_a_port_refuses(testpmd, keep):
    """No thread reads net_ring0. The condition goes on to be true; one incident comes of it."""
    pmd = testpmd("net_ring0", "net_null1", args=("--forward-mode=txonly",))
    kept = keep(
        pmd,
        "--on",
        "refused > 100",
        "--before",
        "100ms",
        "--after",
        "1ms",
        "-s",
        "64",
        "--cooldown",
        "1h",
        ports=["net_ring0"],
    )
    pmd.start()
    (incident,) = kept.incidents(1)
    pmd.stop()
    kept.finish()
    assert incident.condition == "refused > 100"
    assert incident["trigger"]["where"] == "net_ring0" and incident["trigger"]["number"] > 100
    # Two readings of the driver, half a second apart on a quiet machine.
    assert 0 < incident.at("event_to") - incident.at("event_from") < 5e9


def test_missed_packets(testpmd, wire, keep):
    pmd = testpmd(
        f"net_pcap0,iface={wire.device}",
        "net_null1",
        namespace=wire.hub,
        args=("--forward-mode=noisy", "--noisy-lkup-memory=8", "--noisy-lkup-num-writes=2000"),
    )
    kept = keep(pmd, "--on", "missed", "--before", "10ms", "--after", "10ms", "--cooldown", "1h")
    pmd.start()
    wire.send()
    (incident,) = kept.incidents(1)
    kept.finish()
    assert incident["trigger"]["where"] == "net_pcap0" and incident["trigger"]["number"] >= 1


def test_a_pool_that_runs_empty(testpmd, keep):
    """A software queue takes all buffers, and keeps them. The doctor finds it, too."""
    pmd = testpmd("net_null0", "net_null1", mbufs=1100, args=("--forward-mode=noisy", "--noisy-tx-sw-buffer-size=2048"))
    kept = keep(
        pmd,
        "--before",
        "100ms",
        "--after",
        "1ms",
        "--cooldown",
        "0s",
        "--on",
        "pool < 10%",
        "--on",
        "doctor: pool_exhausted",
    )
    pmd.start()
    verdict, level = sorted(kept.incidents(2), key=lambda i: i.condition)
    kept.finish()
    assert len(kept.folders()) == 2
    assert level["trigger"]["where"] == "mb_pool_0" and level["trigger"]["number"] < 10
    assert level["trigger"]["threshold"] == "10 %"
    assert "See how the mempool fell" in flight.advice(level)
    assert "The verdicts, also in doctor.txt, name the thread, port or mempool" in flight.advice(verdict)
    assert verdict["trigger"]["where"] == "pool_exhausted: mb_pool_0"
    assert "the mempool is exhausted" in (verdict.folder / "doctor.txt").read_text()


def check_the_slow_packets(incident):
    """The page names those of the burst, by their frames, and the gap that their thread had meanwhile."""
    packets = incident.file.packets
    took = {}
    for p in packets:
        first = took.setdefault(p.id, [p.ns, None])
        if p.direction == pcapng.TX and first[1] is None:
            first[1] = p.ns - first[0]
    rows = flight.panel(incident, "slow")["rows"]
    assert len(rows) == sum(ns is not None and ns > 200e6 for _received, ns in took.values()) >= 32
    for received, sent, latency, at, *_port, _thread, _decoded, meanwhile in rows:
        a, b = packets[received - 1], packets[sent - 1]
        assert a.id == b.id and a.direction == pcapng.RX and b.direction == pcapng.TX
        assert latency == b.ns - a.ns > 200e6 and at == a.ns - incident.at("from")
        assert meanwhile.startswith("gap"), meanwhile
    heat = flight.panel(incident, "passages")
    assert sum(n for column in heat["counts"] for n in column if n > 0) == sum(
        ns is not None for _r, ns in took.values()
    )
    assert len(heat["points"]) == len(rows) and heat["limit"]["value"] == 200e6
    received = sum(p.direction == pcapng.RX for p in packets)
    assert re.search(rf"received +{received:,} +with an id", check([RINGTAP, "explain", incident.folder]))


def test_a_slow_packet(plugin, closing, keep):
    """One burst of 50 takes 300 ms, the others microseconds, or as long as the thread has no CPU: the 99th percentile of
    a second has it, the 50th has not."""
    app = closing(Known(plugin))
    kept = keep(
        app,
        "--before",
        "10s",
        "--after",
        "500ms",
        "--cooldown",
        "1h",
        "--on",
        "latency > 200ms",
        "--on",
        "p99 > 200ms over 1s",
        "--on",
        "p50 > 200ms over 1s",
    )
    begin, begin_ns = app.clocks()
    app.send([1000], rounds=1)  # a control thread makes room for the statistics of the thread

    def counted():
        app.send([1000], rounds=1)
        return state(app)["conditions"][0]["value"]

    until(counted, what="a latency")
    app.send([1000], rounds=48)
    now, now_ns = app.clocks()
    app.send([(now - begin) * 300_000_000 // (now_ns - begin_ns)], rounds=1)
    slow, percentile = sorted(kept.incidents(2), key=lambda i: i.condition)
    kept.finish()
    assert len(kept.folders()) == 2
    assert slow.condition == "latency > 200ms" and slow["trigger"]["number"] > 200e6
    assert percentile["trigger"]["name"] == "p99" and percentile["trigger"]["number"] > 200e6
    assert percentile.at("event_to") - percentile.at("event_from") > 0.97e9
    for incident in slow, percentile:
        assert len(incident.file.packets) >= 2 * 50 * 32
        check_the_slow_packets(incident)
    assert "Compare gaps and latency: a gap delays all packets" in flight.advice(slow)


def test_rollover_is_reported(busy, keep):
    """Memory for a part of the window: what is left is without a hole, and the file says from when on. Packets that
    rolled over are not counted as kept."""
    kept = keep(busy, "--buffer", "16M", "--before", "600s", "--after", "1ms", "--direction", "rx")

    def rolled(after_ns=0):
        now = state(busy)
        return ns_of(now["time"]) - now["kept_ns"] > after_ns and now["kept_ns"] < 5e9 and now

    first = until(rolled, what="an answer")
    now = until(lambda: rolled(ns_of(first["time"])), what="memory that has none of the packets of before")
    # A record takes its packet and some 50 bytes more.
    assert 0 < now["kept_packets"] < now["buffer_bytes"] / 40
    kept.proc.send_signal(signal.SIGUSR1)
    (incident,) = kept.incidents(1)
    kept.finish()
    file = incident.file
    assert incident["missing_ns"] > 0
    since = incident.at("from") + incident["missing_ns"]
    assert file.packets and file.packets[0].ns <= since + 1_000_000
    assert sum(p.dropped for p in file.packets) == incident["lost"]


def test_kill_of_the_recorder(stream, keep, tmp_path):
    """The application goes on; the file is readable; another recorder may follow."""
    kept = keep(stream, "--before", "1s", "--after", "600s")
    flight.command("trigger", kept.folder)
    kept.proc.expect("^Incident")
    (folder,) = kept.folders()
    until(
        lambda: (folder / flight.PACKETS).exists() and (folder / flight.PACKETS).stat().st_size > 100_000,
        what="packets in the file",
    )
    kept.proc.kill()
    assert pcapng.read(folder / flight.PACKETS, whole=False).packets
    assert "incomplete" in flight.command("list", kept.folder)
    assert "no recorder writes" in flight.command("trigger", kept.folder, status=FAILED)
    again = keep(stream, "--before", "100ms", "--after", "200ms")
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


def test_full_disk(stream_of, keep, disk):
    """The incident says what there is of it, and that is the time of the event; there is no half of a file. What comes
    before the event has no room."""
    stream = stream_of("50k")
    kept = keep(stream, *ROOM, folder=disk("2M") / "incidents")
    until(lambda: state(stream)["kept_packets"] > 40_000, what="packets")
    flight.command("trigger", kept.folder)
    kept.proc.expect("No space left on device; what was written before is whole")
    (incident,) = kept.incidents(1)
    packets = incident.file.packets
    assert packets and incident["packets"] == len(packets)
    assert incident.at("event_to") <= incident.at("last_packet") == packets[-1].ns < incident.at("to")
    assert incident.at("from") < packets[0].ns and incident["missing_ns"] > 0
    assert len(flight.comments(incident.file)) == 1
    assert incident["error"] == "No space left on device"
    others = {p.name for p in incident.folder.iterdir()} - {flight.PACKETS, flight.INCIDENT}
    assert not others & set(incident["not_written"]) and "metrics.json" in incident["not_written"]
    assert "(not all of it)" in flight.command("list", kept.folder)
    text = flight.command("show", kept.folder, incident.folder.name)
    assert "not complete: No space left on device\nnot written: metrics.json, " in text
    kept.finish(status=FAILED)


def test_no_space_for_reports(app, keep, disk):
    """All of the packets have some. What is full before has nothing of an incident; the next one is whole."""
    path = disk("44K")
    kept = keep(app, "--before", "60s", "--after", "1ms", folder=path / "incidents")
    assert app.tx(n=10, len=100)[0] == 10
    kept.proc.send_signal(signal.SIGUSR1)
    (incident,) = kept.incidents(1)
    assert len(incident.file.packets) == 10 and incident["error"] is None
    assert {"metrics.json", "index.html"} <= set(incident["not_written"])
    assert "(not all of it)" in flight.command("list", kept.folder)
    flight.command("prune", kept.folder, "--max-incidents", 1)
    assert "No space left" in run(["dd", "if=/dev/zero", f"of={path / 'other'}", "bs=4K"]).stderr
    kept.proc.send_signal(signal.SIGUSR1)
    kept.proc.expect("incident 'command': No space left on device; not recorded")
    until(lambda: kept.folders() == [incident.folder], what="no other folder")
    check(["mount", "-o", "remount,size=2M", path])
    (path / "other").unlink()
    kept.proc.send_signal(signal.SIGUSR1)
    whole = kept.incidents(2)[1]
    assert whole["error"] is None and not whole["not_written"]
    assert (whole.folder / flight.INCIDENT).stat().st_size < 10_000
    kept.finish(status=FAILED)


def test_oldest_incidents_are_removed(app, keep):
    """They have 0.5, 1, 1.5 and 2 MB: packets of known number, each incident has those of all before."""
    kept = keep(app, "--before", "60s", "--after", "1ms", "--max-incidents", 3, "--max-disk", "5M")
    names = []
    for _ in range(4):
        assert app.tx(n=350, len=1400)[0] == 350
        kept.proc.send_signal(signal.SIGUSR1)
        name = kept.proc.expect(r"^Incident (\S+): [\d,]+ packets").group(1).decode()
        names.append(name)
    kept.finish()
    assert [p.name for p in kept.folders()] == names[-2:]


def test_more_memory_than_there_is(memory_limit, app, tmp_path):
    """On the host or in a cgroup: refused at the start; nothing of the application is touched."""
    group = memory_limit(128 << 20)
    for prefix, size in ((), "64G"), (group.prefix, "64M"):  # the recorder itself has some of the other half
        done = run([*prefix, RINGTAP, "flight", app.prefix, "-w", tmp_path / "i", "--buffer", size])
        assert done.returncode == FAILED
        assert "not enough memory" in done.stderr and len(done.stderr.splitlines()) == 1
        until(lambda: app.one("callbacks 0") == 0, what="no callback is left")
    # There is no use in waiting.
    done = run([*group.prefix, RINGTAP, "flight", app.prefix, "-w", tmp_path / "i", "--buffer", "65M", "--wait"])
    assert done.returncode == USAGE and len(done.stderr.splitlines()) == 1 and "MemoryMax=386M" in done.stderr
    assert group.oom_kills == 0
