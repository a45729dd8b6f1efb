# SPDX-License-Identifier: BSD-3-Clause
"""Options of `ringtap record`, with files and standard output: several recorders of one application at a time. What depends on
the time is in cli/record/times_test.c, refusals in options_test.c, the rest of reports and files in record_test.c."""

import json
import re
import signal

import pytest
from harness import pcap, pcapng
from harness.documents import only
from harness.paths import RINGTAP
from harness.proc import check, freeze, until
from harness.ringtap import FAILED, LOSS, Recorder, sessions

NAME = re.compile(r"^cap_(\d{5})_(\d{14})\.pcapng$")


def numbered(packets):
    """The sequence numbers of rt_play's frames."""
    return [int.from_bytes(p.data[14:18], "big") for p in packets]


def ring_files(folder):
    """Files of -b, by number; the names have the form of dumpcap."""
    found = {}
    for path in folder.iterdir():
        match = NAME.match(path.name)
        assert match, path.name
        found[int(match.group(1))] = path
    return dict(sorted(found.items()))


@pytest.fixture
def folder(tmp_path):
    """folder(name) makes a folder; returns the name of a file in it."""

    def make(name):
        (tmp_path / name).mkdir()
        return tmp_path / name / "cap.pcapng"

    return make


# ---- When to stop -----------------------------------------------------------------------------


def test_ends_under_full_traffic(busy, record, folder, tmp_path):
    """After a time, a size, and a number of files."""
    for option in (("-a", "duration:0.5"), ("--duration", "500ms")):
        with open(tmp_path / "report.json", "wb") as f:
            record(busy, *option, "--json", "-s", "64", out="/dev/null", stdout=f).done()
        summary = json.loads((tmp_path / "report.json").read_text())
        assert summary["ended_by"] == "duration" and summary["duration_ns"] >= 0.5e9

    recorder = record(busy, "-a", "filesize:500")
    recorder.done()
    assert 480_000 < recorder.out.stat().st_size <= 510_000  # kB of 1000 bytes, as in dumpcap
    assert recorder.file().packets

    out = folder("packets")
    record(busy, "-b", "packets:1000", "-a", "files:3", out=out).done()
    files = ring_files(out.parent)
    assert list(files) == [1, 2, 3]
    assert [len(pcapng.read(p).packets) for p in files.values()] == [1000] * 3

    out = folder("time")
    record(busy, "-s", "64", "-b", "duration:0.2", "-a", "files:3", out=out).done()
    assert list(ring_files(out.parent)) == [1, 2, 3]


@pytest.mark.smoke
def test_ends_after_packets_and_signals(app, record):
    exact = [record(app, *option) for option in (("-c", "7"), ("-a", "packets:7"))]
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    recorders = [record(app) for _ in numbers]
    app.rx(n=1000)
    for recorder in exact:
        recorder.done()
        assert numbered(recorder.file().packets) == list(range(7))
    for recorder, number in zip(recorders, numbers):
        recorder.finish(number)
        file = recorder.file()
        assert numbered(file.packets) == list(range(1000)), number
        assert file.interfaces[0].stats, "no statistics at the end"


# ---- Files ------------------------------------------------------------------------------------


def test_rings_of_files(app, record, folder):
    some = record(app, "-b", "packets:100", "-b", "files:3", out=folder("some"))
    every = record(app, "-b", "filesize:20", out=folder("every"))
    app.rx(n=950, len=500)
    some.finish()
    files = ring_files(some.out.parent)
    assert list(files) == [8, 9, 10]
    got = [numbered(pcapng.read(p).packets) for p in files.values()]
    assert got == [list(range(700, 800)), list(range(800, 900)), list(range(900, 950))]
    every.finish()
    files = ring_files(every.out.parent)
    assert len(files) > 20
    assert all(p.stat().st_size <= 20_000 for p in files.values())
    assert [n for p in files.values() for n in numbered(pcapng.read(p).packets)] == list(range(950))
    check(["capinfos", *files.values()])


def test_forms_of_files(app, record, tmp_path):
    """pcap, compressed by one thread and by several, instead of an old file, and readable by the group."""
    old = tmp_path / "old.pcapng"
    old.write_bytes(b"x" * 10_000_000)
    plain = record(app, out=old)
    classic = record(app, "-P", "-s", "60", out=tmp_path / "out.pcap")
    group = record(app, "-g")
    compressed = {
        (tool, n): record(app, "--compress", tool, "--threads", n, out=tmp_path / f"out.pcapng.{tool}{n}")
        for tool in ("zstd", "lz4")
        for n in ("1", "3")
    }
    _, before, after = app.rx(n=1, len=100)
    app.rx(n=5000, len=300, seq=1)
    app.tx(n=1, len=50, vlan=5)
    plain.finish()
    assert len(plain.file().packets) == 5002
    assert plain.out.stat().st_mode & 0o777 == 0o600
    group.finish()
    assert group.out.stat().st_mode & 0o777 == 0o640
    for (tool, _n), recorder in compressed.items():
        recorder.finish()
        packed = recorder.out.rename(recorder.out.with_suffix(f".{tool}"))
        again = tmp_path / "again.pcapng"
        check([tool, "-d", "-q", "-f", packed, *(["-o"] if tool == "zstd" else []), again])
        assert numbered(pcapng.read(again).packets)[:-1] == list(range(5001))
        assert packed.stat().st_size < again.stat().st_size / 2
    classic.finish()
    assert classic.out.read_bytes()[:4] == b"\x4d\x3c\xb2\xa1"  # nanoseconds
    first, *_, last = pcap.read(classic.out)
    assert first[1:] == (pcap.frame(100)[:60], 100)
    assert before - 10**6 <= first[0] <= after + 10**6
    assert last[2] == 54
    assert len(check(["tcpdump", "-r", classic.out, "-nn"]).splitlines()) >= 5002


def test_every_way_to_write_a_file(app, record, private_dir):
    """On disk, where O_DIRECT needs whole pages, and files end within one."""
    for count in (0, 1, 5000):
        recorders = [
            record(app, *option, out=private_dir / f"{count}{i}.pcapng")
            for i, option in enumerate(((), ("--no-direct",)))
        ]
        if count:
            app.rx(n=count, len=333)
        for recorder in recorders:
            recorder.finish()
            assert numbered(recorder.file().packets) == list(range(count))


# ---- What is in it ----------------------------------------------------------------------------


def test_names_and_comments(app, record):
    recorder = record(
        app,
        "--ifname",
        "uplink",
        "--ifdescr",
        "to the world",
        "-f",
        "ether[0] = 2",
        "--capture-comment",
        "taken by a test",
        "--capture-comment",
        "ticket 4711",
    )
    app.rx(n=1)
    recorder.finish()
    file = recorder.file()
    iface = file.interfaces[0]
    assert (iface.name, iface.text(3)) == ("uplink", "to the world")
    assert iface.options[11] == [b"\0ether[0] = 2"]
    assert iface.text(15) == "net_ring"
    assert len(iface.options[6][0]) == 6
    assert file.section[1] == [b"taken by a test", b"ticket 4711"]
    assert b"ringtap" in file.section[4][0]
    assert file.section[2] and file.section[3]
    nic, end, clock = iface.stats[-1][1]
    assert (
        nic.startswith(b"NIC: missed=0 ")
        and end == b"capture ended by: signal"
        and clock.startswith(b"clock: synchronized=")
    )
    output = check(["capinfos", recorder.out])
    assert "taken by a test" in output and "ticket 4711" in output and "uplink" in output


def test_ports_and_queues(play, record, closing, tmp_path):
    """By name and number, all of an application, each with its own options; and a queue that only one has."""
    apps = [play(), play()]
    for app in apps:
        app.ring("a", rxq=3, txq=2)
        app.ring("b")
    app = apps[0]
    wrong = record(app, "--queue", "99", attach=False, out=tmp_path / "wrong")
    assert (
        "--queue: port net_ring_a has no queue 99 (it has RX 0-2, TX 0-1), port net_ring_b has no queue 99 (it has RX 0, TX 0);"
        " there is nothing to capture" in wrong.done(status=FAILED)
    )
    assert not list(tmp_path.iterdir())
    each = record(
        app, "-s", "50", "-i", f"{app.prefix}:net_ring_b", "-s", "70", "--direction", "tx", ports=["net_ring_a"]
    )
    second = record(app, ports=[1])
    whole = closing(Recorder(["-i", app.prefix], tmp_path / "whole.pcapng")).attached()
    queue = record(app, "--queue", "2")
    for which in apps:
        for port in (0, 1):
            which.rx(port, n=1, len=100)
            which.tx(port, n=1, len=100)
    app.rx(0, 2, n=5)

    def packets(recorder):
        recorder.finish()
        file = recorder.file()
        return sorted((file.interfaces[p.interface].name, p.queue, p.direction, len(p.data)) for p in file.packets)

    rx, tx = pcapng.RX, pcapng.TX
    assert packets(each) == [
        ("net_ring_a", 0, rx, 50),
        ("net_ring_a", 0, tx, 50),
        *5 * [("net_ring_a", 2, rx, 50)],
        ("net_ring_b", 0, tx, 70),
    ]
    # libpcap reads no packet of a file whose interfaces differ in their snapshot length.
    assert "8 packets" in check(["tcpdump", "-nr", each.out, "--count"])
    assert packets(second) == [("net_ring_b", 0, rx, 100), ("net_ring_b", 0, tx, 100)]
    assert packets(whole) == [
        ("net_ring_a", 0, rx, 100),
        ("net_ring_a", 0, tx, 100),
        *5 * [("net_ring_a", 2, rx, 64)],
        ("net_ring_b", 0, rx, 100),
        ("net_ring_b", 0, tx, 100),
    ]
    assert packets(queue) == 5 * [("net_ring_a", 2, rx, 64)]
    assert (
        "--queue: port net_ring_b has no queue 2 (it has RX 0, TX 0); nothing of it is captured: give"
        in queue.proc.output
    )


# ---- What it prints ---------------------------------------------------------------------------


@pytest.mark.smoke
def test_reports(app, record, tmp_path):
    """As text, as JSON, and nothing."""
    report = tmp_path / "report.json"
    text = record(app)
    with open(report, "wb") as f:
        quiet = record(app, "-q", attach=False)
        recorder = record(app, "--json", "-q", attach=False, stdout=f)
    until(lambda: len([s for s in sessions(app) if s["start"]]) == 3, what="attached")
    app.rx(n=1100, len=100)
    app.tx(n=7, len=100)
    assert quiet.finish() == ""
    recorder.finish()
    summary = json.loads(report.read_text())
    assert only(summary)["name"] == app.prefix
    assert (summary["written"], summary["seen"], summary["lost_total"]) == (1107, 1107, 0)
    (iface,) = only(summary)["interfaces"]
    assert (iface["name"], iface["driver"], iface["captured"]) == ("net_ring_a", "net_ring", 1107)
    taps = {t["direction"]: t for t in iface["taps"]}
    assert (taps["rx"]["captured"], taps["tx"]["captured"]) == (1100, 7)
    (file,) = summary["files"]
    assert (file["name"], file["bytes"]) == (str(recorder.out), recorder.out.stat().st_size)
    output = text.finish()
    assert "1,107" in output and text.out.name in output


def test_losses_in_reports(app, record):
    """The exit status is another one on request only."""
    recorders = [record(app, "--buffer", "64K", *option) for option in ((), ("--fail-on-loss",))]
    for recorder in recorders:
        freeze(recorder.proc.pid)
    app.rx(n=3000, len=500)
    for recorder in recorders:
        recorder.proc.send_signal(signal.SIGCONT)
    recorders[0].finish()
    recorders[1].finish(status=LOSS)


def test_statistics_and_lists(busy, record, closing):
    """Live, and a summary of millions of packets, most of them lost, that fits a terminal."""
    output = check([RINGTAP, "record", "-D"])
    assert busy.prefix in output and "net_null0" in output
    stats = closing(Recorder(["-S", "-i", f"{busy.prefix}:"]))
    stats.proc.expect(r"net_null0\s+\d+")
    stats.proc.expect(r"net_null0\s+\d+")
    stats.proc.send_signal(signal.SIGINT)
    stats.proc.wait()
    live = record(busy, "-s", "64", out="/dev/null")
    live.proc.expect(r"packets.*")
    live.finish()
    recorder = record(busy, "-c", "2000000", "--buffer", "64K")
    recorder.done()
    table = recorder.proc.output.split("\n  interface")[1].split("\nended by")[0].splitlines()
    assert any("lost, ring_full: " in line for line in table)
    assert max(map(len, table)) <= 80, table
