# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-fwd: rates, stages, sequence accounting, forwarding, what happens when a port is full: between threads. What one
role does with a burst is tested in fwd/role_test.c and fwd/generate_test.c."""

import random
import signal
import time

import pytest
from harness import pcap
from harness.fwd import udp
from harness.proc import check, freeze
from harness.traced import RX, START, Writer

# Rings that hold all packets while a thread waits for a CPU.
CHAIN = (
    "--ring",
    "a:65536",
    "--ring",
    "b:65536",
    "--pool-size",
    "140000",
    "--mbuf-size",
    "256",
    "--role",
    "generate:a@0",
    "--role",
    "oneway:a,b@1",
    "--role",
    "sink:b@0",
)


def due(stage):
    return stage["tx_packets"] + stage["tx_refused"] + stage["tx_nombuf"] + stage["tx_expired"]


def assert_all_accounted(report):
    """Packets that were sent arrived, or are counted as dropped for a reason."""
    sent, way, sink = report.total("generate"), report.total("oneway"), report.role("sink")
    assert way["rx_packets"] == sent["tx_packets"]
    assert way["tx_packets"] + way["tx_dropped"] + way["tx_unsent"] == way["rx_packets"]
    assert sink["total"]["rx_packets"] == sink["sequence"]["unique"] == way["tx_packets"]
    assert sink["sequence"]["duplicated"] == sink["sequence"]["reordered"] == 0
    assert sink["sequence"]["stale"] == sink["unstamped"] == 0


def assert_rate(role, index, asked, seconds):
    """Within 0.1 %; slower only by the delay of the last burst: its backlog, and what it was sent
    after the end of the stage, when nothing is due any more. By the program's clock:
    test_rate_by_the_kernels_clock() checks that."""
    stage = role["stages"][index]
    intervals = stage["tx_packets"] - 1
    taken = intervals / stage["achieved_rate_pps"]
    after = max(0, taken - seconds)
    assert after <= 0.02
    assert 0.999 <= taken * asked / intervals <= 1.001 + (role["max_backlog"] + after * asked) / intervals


@pytest.mark.nightly
@pytest.mark.alone
@pytest.mark.parametrize("rate,seconds", [(1000, 1), (100_000, 1), (1_000_000, 1), (5_000_000, 0.4)])
def test_rate_is_exact(fwd, rate, seconds):
    generator = fwd(*CHAIN, "--stages", f"{rate}:{seconds}s").done().role("generate")
    if generator["total"]["tx_refused"] or generator["total"]["tx_expired"]:
        pytest.skip("this machine is too slow for the rate")
    assert_rate(generator, 0, rate, seconds)


@pytest.mark.parametrize("rate,seconds", [(1_000_000, 1)])
def test_all_packets_of_a_rate_are_accounted_for(fwd, rate, seconds):
    report = fwd(*CHAIN, "--stages", f"{rate}:{seconds}s").done()
    generator = report.role("generate")
    assert due(generator["stages"][0]) == rate * seconds
    assert_all_accounted(report)
    assert report.role("sink")["sequence"]["lost"] == report.total("oneway")["tx_dropped"]


def test_stages_have_their_own_counts(fwd):
    report = fwd(*CHAIN, "--stages", "1M:300ms,0:100ms,5M:100ms,10k:300ms").done()
    wanted = [300_000, 0, 500_000, 3000]
    assert [due(s) for s in report.role("generate")["stages"]] == wanted
    assert [s["duration_s"] for s in report["stages"]] == [0.3, 0.1, 0.1, 0.3]
    assert report["ended_by"] == "stages"
    assert_all_accounted(report)
    for role in report["roles"]:
        for key in ("rx_packets", "tx_packets", "rx_calls", "rx_busy_calls"):
            assert sum(s[key] for s in role["stages"]) == role["total"][key]


@pytest.mark.nightly
def test_one_packet_a_second_and_random_times(fwd):
    report = fwd(*CHAIN, "--rate", 1, "--packets", 2).done()
    assert report.total("sink")["rx_packets"] == 2
    assert report["duration_s"] >= 1
    assert report["ended_by"] == "count"
    report = fwd(*CHAIN, "--stages", "20k:500ms", "--poisson", "--seed", 7).done()
    # The standard deviation of a count is its square root.
    assert due(report.role("generate")["stages"][0]) == pytest.approx(10_000, abs=600)
    assert_all_accounted(report)


def faulty():
    """Sequence numbers with injected faults, and the number of each fault."""
    dice = random.Random(5)
    out, lost, duplicated, late, held = [], 0, 0, 0, []
    for n in range(20_000):
        if held and held[0][0] <= n:
            out.append(held.pop(0)[1])
            late += 1
        what = dice.random()
        if what < 0.01:
            lost += 1
        elif what < 0.02:
            out += [n, n]
            duplicated += 1
        elif what < 0.03 and not held and n < 19_000:
            held.append((n + 60, n))
        else:
            out.append(n)
    lost_at_end = 0
    while out[-1] != 19_999:  # losses behind the last number are unknown
        out.append(19_999)
        lost_at_end = 1
    return out, lost - lost_at_end, duplicated, late


def test_injected_faults_are_found_exactly(fwd, tmp_path):
    numbers, lost, duplicated, late = faulty()
    frames = [udp(n, stream=3) for n in numbers]
    frames.insert(100, pcap.frame(64))
    frames.insert(200, udp(5, stream=3)[:59])
    path = pcap.write(tmp_path / "faults.pcap", frames)
    report = fwd(
        "--ring",
        "a:32768",
        "--pool-size",
        65535,
        "--mbuf-size",
        256,
        "--role",
        "generate:a@0",
        "--role",
        "sink:a@1",
        "--replay",
        path,
        "--rate",
        "max",
        "--packets",
        len(frames),
    ).done()
    sink = report.role("sink")
    (stream,) = sink["streams"]
    assert stream["stream"] == 3
    assert stream["received"] == len(numbers)
    assert (stream["lost"], stream["duplicated"], stream["reordered"]) == (lost, duplicated, late)
    assert min(lost, duplicated, late) > 100
    assert stream["stale"] == 0
    assert sink["unstamped"] == 2


def through_files(fwd, tmp_path, role, frames, *args, status=0):
    """The output of a role for the frames of a file."""
    source, target = pcap.write(tmp_path / "in.pcap", frames), tmp_path / "out.pcap"
    fwd("--vdev", f"net_pcap0,rx_pcap={source},tx_pcap={target}", "--role", role, "--packets", len(frames), *args).done(
        status
    )
    return pcap.frames(target)


@pytest.mark.nightly
@pytest.mark.smoke
def test_frames_of_files(fwd, tmp_path):
    """An echo does not change them, but for their addresses with --mac-swap; a generator repeats them."""
    frames = [pcap.frame(n, n) for n in (60, 61, 64, 590, 1500, 1514)]
    assert through_files(fwd, tmp_path, "echo:0@1", frames) == frames
    frames = [pcap.frame(60 + n, n) for n in range(70)]
    swapped = [f[6:12] + f[:6] + f[12:] for f in frames]
    assert through_files(fwd, tmp_path, "echo:0@1", frames, "--mac-swap") == swapped
    source, target = pcap.write(tmp_path / "in.pcap", frames[:7]), tmp_path / "out.pcap"
    fwd(
        "--vdev",
        f"net_pcap0,tx_pcap={target}",
        "--role",
        "generate:0@1",
        "--replay",
        source,
        "--rate",
        "5k",
        "--packets",
        16,
    ).done()
    assert pcap.frames(target) == [*frames[:7], *frames[:7], *frames[:2]]


@pytest.mark.nightly
def test_a_recording_is_sent_at_its_own_times(fwd, record, tmp_path):
    """As ringtap records it: all packets have the distances that they have in the file, but for how late they were."""
    frames, times = [pcap.frame(60 + n, n) for n in range(300)], [0]
    chance = random.Random(1)
    while len(times) < len(frames):
        times.append(times[-1] + chance.choice((0, 1_000, 50_000, 3_000_000, 20_000_000)))
    w = Writer()
    w.interface("p0")
    for at, frame in zip(times, frames):
        w.packet(0, START + at, frame, RX, 0)
    source = w.write(tmp_path / "in.pcapng")
    role = ("--role", "generate:0@1", "--replay", source, "--timing", "--packets", 10**9)
    app = fwd("--vdev", "net_null0", *role).running()
    recorder = record(app, "-c", 2 * len(frames))
    recorder.done()
    late = app.stop().role("generate")["late"]
    sent = recorder.file().packets
    first = frames.index(sent[0].data)
    assert late["packets"] >= len(sent) and [p.data for p in sent] == (3 * frames)[first : first + len(sent)]
    again = times[-1] + times[-1] // (len(times) - 1)
    due = [k * again + at for k in range(3) for at in times][first:]
    errors = [p.ns - at for p, at in zip(sent, due)]
    # A thread that loses its CPU between the two readings of the clock adds to that.
    assert max(errors) - min(errors) < late["ns"]["max"] + 20_000_000, (late, max(errors), min(errors))


def built_frames(fwd, tmp_path, args, expected):
    target = tmp_path / "out.pcap"
    fwd(
        "--vdev", f"net_pcap0,tx_pcap={target}", "--role", "generate:0@1", "--rate", "5k", "--packets", 24, *args
    ).done()
    text = check(
        [
            "tshark",
            "-r",
            target,
            "-o",
            "ip.check_checksum:TRUE",
            "-T",
            "fields",
            "-e",
            "frame.len",
            "-e",
            "eth.dst",
            "-e",
            "arp.dst.proto_ipv4",
            "-e",
            "ip.dst",
            "-e",
            "ip.checksum.status",
            "-e",
            "_ws.malformed",
            "-e",
            "udp.length",
        ]
    )
    lines = text.splitlines()
    assert len(lines) == 24
    assert all(expected in line for line in lines)
    frames = pcap.frames(target)
    for n, frame in enumerate(frames):
        assert frame[42:52] == b"RTfw\0" + n.to_bytes(5, "big")
    if args:
        lengths = [len(f) for f in frames]
        assert [lengths.count(n) for n in (60, 590, 1514)] == [14, 8, 2]
        for line in lines:
            length, _dst, _arp, _ip, checksum, malformed, udp_length = line.split("\t")
            assert (checksum, malformed) == ("1", "")
            assert int(udp_length) == int(length) - 34


def test_built_frames_in_tshark(fwd, tmp_path):
    built_frames(fwd, tmp_path, (), "60\tff:ff:ff:ff:ff:ff\t198.18.0.2\t")
    built_frames(
        fwd,
        tmp_path,
        ("--frame", "udp", "--sizes", "imix", "--dst-mac", "02:00:00:00:00:77"),
        "02:00:00:00:00:77\t\t198.18.0.2",
    )


OVERLOAD = (
    "--ring",
    "a:256",
    "--ring",
    "b:64",
    "--role",
    "generate:a@0",
    "--role",
    "oneway:a,b@1",
    "--role",
    "sink:b@0",
    "--stages",
    "50k:300ms",
    "--sink-rate",
    "10k",
)


@pytest.mark.nightly
def test_full_port(fwd):
    """Each policy, the end of a run, and a pool whose buffers are all in a ring."""
    report = fwd(*OVERLOAD, "--tx-full", "drop").done()
    way = report.total("oneway")
    assert way["tx_dropped"] > 0
    assert way["tx_retried"] == way["tx_unsent"] == 0
    assert_all_accounted(report)
    # The sink does not count packets dropped behind the last one.
    assert 0 < report.role("sink")["sequence"]["lost"] <= way["tx_dropped"]
    report = fwd(*OVERLOAD, "--tx-full", "retry").done()
    way = report.total("oneway")
    assert way["tx_dropped"] == 0
    assert way["tx_retried"] > 0
    assert report.total("generate")["tx_refused"] > 0  # the generator is refused instead
    assert report.role("sink")["sequence"]["lost"] == 0
    assert_all_accounted(report)
    report = fwd(*OVERLOAD, "--tx-full", "retry:3").done()
    way = report.total("oneway")
    assert way["tx_dropped"] > 0
    assert way["tx_retried"] >= 3
    assert_all_accounted(report)
    # Stopped while the ring is full: nothing is dropped or leaked.
    app = fwd(
        "--ring",
        "a:256",
        "--ring",
        "b:64",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@1",
        "--rate",
        "max",
        "--tx-full",
        "retry",
        "--duration",
        "200ms",
    )
    report = app.done()
    way = report.total("oneway")
    assert way["tx_packets"] == 64
    assert way["tx_dropped"] == 0
    assert way["rx_packets"] == way["tx_packets"] + way["tx_unsent"]
    rings = 64 + report.total("generate")["tx_packets"] - way["rx_packets"]
    assert report["memory"]["available"] == report["memory"]["buffers"] - rings
    # All buffers are in the ring.
    report = fwd(
        "--ring", "a:1024", "--pool-size", 127, "--pool-cache", 0, "--role", "generate:a@0", "--stages", "10k:200ms"
    ).done()
    total = report.total("generate")
    assert total["tx_nombuf"] > 0
    assert due(total) == 2000
    assert total["tx_packets"] <= 127


@pytest.mark.nightly
def test_pause_of_one_thread_overflows_no_queue(fwd):
    """Generator and wire catch up alternately on what was due meanwhile: both queues are short."""
    app = fwd(
        "--ring",
        "a:128",
        "--ring",
        "b:128",
        "--role",
        "generate:a@1",
        "--role",
        "oneway:a,b@1",
        "--role",
        "sink:b@1",
        "--stages",
        "40k:2s",
        "--sink-rate",
        "50k",
    ).running()
    freeze(app.proc.pid)
    time.sleep(0.4)  # the pause: 16,000 packets
    app.proc.send_signal(signal.SIGCONT)
    report = app.done()
    assert report.total("oneway")["tx_dropped"] == report.total("generate")["tx_refused"] == 0
    assert report.total("sink")["rx_packets"] == 80_000
    assert report.role("generate")["max_backlog"] > 10_000


def test_pair_forwards_in_both_directions(fwd):
    """Two rings that exchange packets: each direction forwards to the other."""
    report = fwd(
        "--ring", "a", "--ring", "b", "--role", "forward:a,b@1", "--tx-first", 64, "--duration", "500ms"
    ).done()
    there, back = report["roles"]
    assert (there["from"], there["to"]) == (back["to"], back["from"])
    for way in (there, back):
        assert way["total"]["rx_packets"] > 2_000
        assert way["total"]["tx_dropped"] == 0
    sent = sum(w["total"]["tx_packets"] for w in (there, back))
    received = sum(w["total"]["rx_packets"] for w in (there, back))
    assert sent == received + 128


@pytest.mark.nightly
def test_streams_of_several_processes(fwd, net):
    """Distinguished by --stream; without it they count as duplicates. A generator that starts again
    needs a new one."""
    host, device = net.add_host("192.0.2.1")
    sink = fwd("--plane", "packet", "--role", f"sink:{device}@0", namespace=net.hub).running()
    for stream in (0, 7, 240, 7):
        fwd(
            "--plane",
            "packet",
            "--role",
            "generate:eth0@1",
            "--role",
            "generate:eth0@1",
            "--rate",
            "2k",
            "--packets",
            100,
            "--stream",
            stream,
            namespace=host,
        ).done()
    report = sink.stop()
    streams = {s["stream"]: s for s in report.role("sink")["streams"]}
    assert {n: s["received"] for n, s in streams.items()} == {0: 100, 1: 100, 7: 200, 8: 200, 240: 100, 241: 100}
    assert {n: s["duplicated"] for n, s in streams.items() if s["duplicated"]} == {7: 100, 8: 100}
    assert not any(s["lost"] or s["reordered"] for s in streams.values())
