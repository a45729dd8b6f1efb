# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap record --fates`: the fates in a file, against what an application has done with each packet."""

import collections
import csv
import io
import json
import os
import shutil
import signal
import subprocess

import pytest
from harness import pcapng
from harness.paths import RINGTAP
from harness.pcapng import INFERRED, NOT_OFFERED, OPEN, RX, TX
from harness.proc import check, freeze, run, until
from harness.ringtap import LOSS

PACKETS = int(os.environ.get("RINGTAP_FATES", 60_000)) // 2  # packets of each of two threads
OFFERED = 0
DEEDS = {1: OFFERED, 2: NOT_OFFERED, 3: INFERRED}  # enum deed_fate of rt_deeds.h
LONG = ("--timeout", "1000s")


def number(packet):
    """Number of a packet of rt_deeds."""
    return int.from_bytes(packet.data[16:24], "little")


class Truth:
    def __init__(self, log):
        self.fates = [DEEDS[deed] for deed in (log.parent / (log.name + "fates")).read_bytes()]

    def of(self, numbers):
        return {n: self.fates[n] for n in numbers}


def received(files):
    """id by number, of what port 0 has received."""
    ids = {}
    for file in files:
        for p in pcapng_packets(file, RX):
            assert p.id and number(p) not in ids
            ids[number(p)] = p.id
    return ids


def pcapng_packets(file, direction):
    return [p for p in file.packets if p.direction == direction]


def found(files, ids):
    """Fate by number, as the files have it, and the fates of packets that are not in them."""
    by_id = {id: n for n, id in ids.items()}
    fates, others = dict.fromkeys(ids, OFFERED), 0
    for file in files:
        for f in file.fates:
            n = by_id.get(f.id)
            if n is None:
                others += 1
                continue
            assert fates[n] == OFFERED, "two fates of one packet"
            assert (file.interfaces[f.interface].name, f.queue) == ("net_ring_a", n % 2)
            fates[n] = f.fate
    return fates, others


def deeds(app, tmp_path, packets=PACKETS, **options):
    words = " ".join(f"{k}={v}" for k, v in options.items())
    app.do(f"run {packets} {words} log={tmp_path}/log")
    return Truth(tmp_path / "log")


def explained(*files, status=0):
    done = run([RINGTAP, "explain", *LONG, "--json", *files])
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


NAMES = {OFFERED: "offered", NOT_OFFERED: "not_offered", INFERRED: "unknown", OPEN: "open"}


def sums(fates):
    counts = collections.Counter(NAMES[f] for f in fates.values())
    return {name: counts[name] for name in NAMES.values()}


def test_fates_of_all_that_applications_do(play, record, tmp_path):
    app = play(program="rt_deeds")
    recorder = record(app, "--fates", "-s", "64", "--on-full", "wait", "--json")
    truth = deeds(app, tmp_path, seed=11, infer=1)
    out = recorder.finish()
    file = recorder.file()
    ids = received([file])
    assert len(ids) == 2 * PACKETS
    fates, others = found([file], ids)
    assert fates == truth.of(ids) and others == 0
    assert {f.fate for f in file.fates} == {NOT_OFFERED, INFERRED}

    assert in_order(file)

    by_queue = {(c.interface, c.queue): c for c in file.fate_counts}
    for queue in (0, 1):
        c = by_queue.pop((0, queue))
        want = sums({n: f for n, f in truth.of(ids).items() if n % 2 == queue})
        assert (c.received, c.lost) == (PACKETS, 0)
        assert (c.offered, c.not_offered, c.unknown, c.open) == (
            want["offered"],
            want["not_offered"],
            want["unknown"],
            0,
        )
        assert c.inferred == c.unknown
    assert all(c.received == 0 for c in by_queue.values())
    summary = json.loads(out[out.index("{") : out.rindex("}") + 1])["fates"]
    assert {k: summary[k] for k in NAMES.values()} == sums(truth.of(ids)) and summary["lost"] == 0


def in_order(file):
    """A packet stands before its fate, which is not before its reception."""
    place = {p.id: (i, p.ns) for i, p in enumerate(file.packets) if p.direction == RX}
    return all(place[f.id][0] < f.packets and place[f.id][1] <= f.ns for f in file.fates)


def test_fates_stand_behind_packets_of_a_recorder_that_was_late(play, record, tmp_path):
    """It could not run for longer than it takes to notice fates."""
    app = play(program="rt_deeds")
    recorder = record(app, "--fates", "-s", "64", buffer=None)
    freeze(recorder.proc.pid)
    deeds(app, tmp_path, packets=10_000, seed=3)
    check(["sleep", "1.5"])
    recorder.proc.send_signal(signal.SIGCONT)
    recorder.finish()
    file = recorder.file()
    assert len(file.fates) > 1000 and in_order(file)


READERS = {"tshark": ["-r"], "capinfos": [], "tcpdump": ["-nr"]}


def assert_other_programs_skip_fates(recorder, file):
    """They have the packets, and no complaint."""
    for program in filter(shutil.which, READERS):
        done = run([program, *READERS[program], recorder.out])
        assert done.returncode == 0, program
        complaints = [
            line for line in done.stderr.splitlines() if not line.startswith(("reading from file", "Running as user"))
        ]
        assert not complaints, program
        if program == "capinfos":
            assert f"Number of packets:   {len(file.packets)}" in check([program, "-M", recorder.out])
        else:
            lines = [line for line in done.stdout.splitlines() if line[0] != "\t"]  # tcpdump shows bytes below
            assert len(lines) == len(file.packets), program
    if shutil.which("editcap"):
        copy = recorder.out.with_suffix(".copy")
        check(["editcap", recorder.out, copy])
        assert str(len(file.packets)) in check(["capinfos", "-M", "-c", copy])


def assert_python_has_fates(recorder, wanted, python_env):
    code = (
        "import ringtap, sys\n"
        "for o in ringtap.explain(sys.argv[1], timeout=1000, program=sys.argv[2]):\n"
        "    if o.fate == 'not_offered' and o.noticed_ns >= o.rx_ns: print(o.id)\n"
    )
    out = check(["/usr/bin/python3", "-c", code, recorder.out, RINGTAP], env=python_env)
    assert set(map(int, out.split())) == wanted


def test_every_reader_of_a_recording_with_fates(play, record, tmp_path, python_env):
    """explain and the Python module have the fate of each packet; other programs skip it."""
    app = play(program="rt_deeds")
    recorder = record(app, "--fates", "--infer-ids", "-s", "64", "--on-full", "wait")
    truth = deeds(app, tmp_path, packets=2000, seed=12, infer=1)
    recorder.finish()
    file = recorder.file()
    assert file.fates
    ids = received([file])
    result = explained(recorder.out)["fates"]
    assert {k: result[k] for k in NAMES.values()} == sums(truth.of(ids))
    assert (result["received"], result["lost"], result["let_go"], result["of_other_packets"]) == (4000, 0, 0, 0)
    assert result["complete"] is True
    for row in result["queues"]:
        want = sums({n: f for n, f in truth.of(ids).items() if n % 2 == row["rx_queue"]})
        assert {k: row[k] for k in NAMES.values()} == want and row["rx_port"]["name"] == "net_ring_a"
    assert sum(p["packets"] for p in result["not_offered_by_protocol"]) == result["not_offered"]
    assert sum(s["packets"] for s in result["not_offered_by_size"]) == result["not_offered"]
    assert result["noticed"]["packets"] == result["not_offered"]

    rows = list(csv.DictReader(io.StringIO(check([RINGTAP, "explain", *LONG, "--csv", recorder.out]))))
    known = {int(r["id"]): r["fate"] for r in rows if r["noticed_ns"]}
    names = {NOT_OFFERED: "not_offered", INFERRED: "likely_offered"}
    assert known == {ids[n]: names[f] for n, f in truth.of(ids).items() if f}
    assert all(int(r["noticed_ns"]) >= int(r["rx_ns"]) for r in rows if r["noticed_ns"])
    sent = {int(r["id"]) for r in rows if r["fate"] == "sent"}
    assert {ids[n] for n, f in truth.of(ids).items() if f == OFFERED} <= sent
    assert not {r["fate"] for r in rows} & {"not_sent", "open", "let_go"}

    assert_other_programs_skip_fates(recorder, file)
    assert_python_has_fates(recorder, {ids[n] for n, f in truth.of(ids).items() if f == NOT_OFFERED}, python_env)


def test_only_packets_of_the_file_have_fates(play, record, tmp_path):
    """A filter, one queue of another: what is not in the file has none. With received ones only, what has no fate in the
    file was offered."""
    app = play(program="rt_deeds")
    some = record(app, "-f", "ether[16] & 2 = 0", "--fates", "-s", "64", "--on-full", "wait")
    one = record(app, "--queue", "1", "--fates", "-s", "64", "--on-full", "wait")
    no_tx = record(app, "--direction", "rx", "--fates", "-s", "64", "--on-full", "wait")
    truth = deeds(app, tmp_path, packets=5000, seed=13)
    for recorder, wanted in ((some, lambda n: not n & 2), (one, lambda n: n % 2 == 1)):
        recorder.finish()
        file = recorder.file()
        ids = received([file])
        assert set(ids) == {n for n in range(10_000) if wanted(n)}
        fates, others = found([file], ids)
        assert fates == truth.of(ids) and others == 0
    # Counts are of all packets of a queue.
    assert [c.received for c in some.file().fate_counts if c.received] == [5000, 5000]
    assert [c.queue for c in one.file().fate_counts if c.received] == [1]
    no_tx.finish()
    file = no_tx.file()
    assert not pcapng_packets(file, TX)
    ids = received([file])
    assert len(ids) == 10_000 and found([file], ids)[0] == truth.of(ids)
    result = explained(no_tx.out)["fates"]
    assert {k: result[k] for k in NAMES.values()} == sums(truth.of(ids))


def test_a_ring_of_files_a_limit_and_compression(play, record, tmp_path):
    """A packet's fate may stand in a later file. What has not been offered yet when a recording ends is open."""
    app = play(program="rt_deeds")
    recorder = record(
        app, "--fates", "-s", "64", "--on-full", "wait", "-b", "packets:3000", out=tmp_path / "ring.pcapng"
    )
    limited = record(app, "--fates", "-s", "64", "--on-full", "wait", "-c", "5000")
    small = record(app, "--fates", "-s", "64", "--on-full", "wait", "--compress", "zstd", out=tmp_path / "a.pcapng.zst")
    truth = deeds(app, tmp_path, packets=10_000, seed=15)
    limited.done()
    recorder.finish()
    small.finish()
    paths = sorted(tmp_path.glob("ring_*"))
    files = [pcapng.read(p) for p in paths]
    assert len(files) > 5 and all(f.fates_begin for f in files)
    assert [f.fate_counts is None for f in files] == [True] * (len(files) - 1) + [False]
    ids = received(files)
    fates, others = found(files, ids)
    assert fates == truth.of(ids) and others == 0
    for result in explained(*paths)["fates"], explained(small.out)["fates"]:
        assert {k: result[k] for k in NAMES.values()} == sums(truth.of(ids))
    # The first one alone: nothing is claimed that it does not show.
    alone = explained(paths[0])["fates"]
    assert alone["complete"] is False
    assert alone["received"] == alone["offered"] + alone["not_offered"] + alone["open"] + alone["unknown"]

    file = limited.file()
    assert len(file.packets) == 5000
    fates, _ = found([file], received([file]))
    assert all(f in (truth.fates[n], OPEN) for n, f in fates.items())
    result = explained(limited.out)["fates"]
    assert {k: result[k] for k in NAMES.values()} == sums(fates)


def test_what_the_application_holds_is_open_and_what_it_has_freed_is_not(app, record):
    recorder = record(app, "--fates")
    app.do("hold 1")
    app.rx(n=7)
    app.do("hold 0")
    app.rx(n=5)
    recorder.finish()
    file = recorder.file()
    ids = [p.id for p in pcapng_packets(file, RX)]
    assert len(ids) == 12
    fates = {f.id: f.fate for f in file.fates}
    assert [fates[i] for i in ids] == [OPEN] * 7 + [NOT_OFFERED] * 5
    counts = [(c.received, c.open, c.not_offered) for c in file.fate_counts if c.received]
    assert counts == [(12, 7, 5)]
    result = explained(recorder.out)["fates"]
    assert (result["open"], result["not_offered"], result["offered"]) == (7, 5, 0)
    # Without the option there are none.
    recorder = record(app, "--ids", "-c", "5")
    app.rx(n=5)
    recorder.done()
    file = recorder.file()
    assert not file.fates_begin and file.fate_counts is None
    assert explained(recorder.out)["fates"] is None


def test_ports_that_appear_while_it_records(play, record):
    app = play()
    app.ring("early")
    recorder = record(app, "--fates")
    app.rx(n=3)
    port = app.ring("late")
    app.hooked(port)
    app.rx(port, n=20)
    app.rx(n=4)
    recorder.finish()
    file = recorder.file()
    ids = {p.id: p.interface for p in pcapng_packets(file, RX)}
    assert {f.id: f.interface for f in file.fates if f.id in ids} == ids
    # The first ones may have been sent at the late port before it had hooks.
    assert all((f.fate, f.why) in ((1, 0), (2, 1)) for f in file.fates)
    by_name = {file.interfaces[c.interface].name: c.received for c in file.fate_counts}
    assert by_name["net_ring_early"] == 7 and by_name["net_ring_late"] > 0


def test_two_applications(play, record):
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
    recorder = record(apps[0], "-i", f"{apps[1].prefix}:", "--fates")
    for app in apps:
        app.rx(n=10)
    recorder.finish()
    file = recorder.file()
    ids = {p.id for p in file.packets if p.direction == RX}
    assert len(ids) == 20 and {f.id for f in file.fates} == ids
    assert sorted(c.received for c in file.fate_counts) == [10, 10]


def test_fates_that_are_lost_are_counted(play, record, tmp_path):
    """The recorder stands still: both buffers are full. What is in the file is true, and what is missing is counted."""
    app = play(program="rt_deeds")
    recorder = record(app, "--fates", "--fail-on-loss", "-s", "64", "--buffer", "512K")
    deeds(app, tmp_path, packets=100, seed=23)
    freeze(recorder.proc.pid)
    app.do(f"run 60000 seed=24 log={tmp_path}/log")
    truth = Truth(tmp_path / "log")
    recorder.proc.send_signal(signal.SIGCONT)
    out = recorder.finish(status=LOSS)
    file = recorder.file()
    lost = sum(c.lost for c in file.fate_counts)
    assert lost > 0 and f"the fates of {lost:,} packets were lost" in out
    assert sum(c.received for c in file.fate_counts) == 200 + 120_000
    assert len(file.fates) + lost == sum(c.not_offered + c.unknown for c in file.fate_counts)
    last = {number(p): p.id for p in pcapng_packets(file, RX)[200:]}
    by_id = {f.id: f.fate for f in file.fates}
    assert all(by_id.get(id, OFFERED) in (OFFERED, truth.fates[n]) for n, id in last.items())
    result = explained(recorder.out)
    assert result["fates"]["lost"] == lost
    assert any(f"lost the fates of {lost:,} packets" in note for note in result["notes"])


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_a_pipe(play, record, tmp_path):
    """As `ringtap record -w - | wireshark -k -i -`: dumpcap reads the pipe."""
    app = play(program="rt_deeds")
    reader = subprocess.Popen(
        ["tshark", "-i", "-", "-T", "fields", "-e", "frame.packet_id"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        recorder = record(app, "--fates", "-s", "64", "--on-full", "wait", out="-", stdout=reader.stdin)
        reader.stdin.close()
        reader.stdin = None  # otherwise communicate() would flush it
        deeds(app, tmp_path, packets=500, seed=26)
        recorder.finish()
        shown, errors = reader.communicate(timeout=60)
    finally:
        reader.kill()
        reader.wait()
    ids = [line for line in shown.splitlines() if line]
    assert len(set(ids)) == 1000 and reader.returncode == 0, errors


def test_a_killed_recorder_and_then_a_killed_application_leave_readable_files(play, record, tmp_path):
    app = play(program="rt_deeds")
    recorder = record(app, "--fates", "-s", "64", "--on-full", "wait", "--no-direct")
    truth = deeds(app, tmp_path, packets=5000, seed=17)
    until(lambda: len(pcapng_packets(pcapng.read(recorder.out, whole=False), RX)) == 10_000, what="all is written")
    recorder.proc.send_signal(signal.SIGKILL)
    recorder.proc.wait()
    file = pcapng.read(recorder.out, whole=False)
    assert file.fate_counts is None
    ids = received([file])
    for n, fate in found([file], ids)[0].items():
        assert fate in (OFFERED, truth.fates[n])
    done = run([RINGTAP, "explain", *LONG, "--json", recorder.out])
    result = json.loads(done.stdout)["fates"]
    assert result["complete"] is False and result["received"] == 10_000
    assert result["offered"] + result["not_offered"] + result["open"] + result["unknown"] == 10_000
    # The application goes on without it.
    recorder = record(app, "--fates", "-s", "64", "--on-full", "wait")
    truth = deeds(app, tmp_path, packets=2000, seed=18)
    app.close()
    recorder.done()
    file = recorder.file()
    fates, _ = found([file], received([file]))
    # What no hook and no walk has noticed until then is open.
    assert all(f in (truth.fates[n], OPEN) for n, f in fates.items())
    assert sum(c.received for c in file.fate_counts) == 4000
