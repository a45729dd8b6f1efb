# SPDX-License-Identifier: BSD-3-Clause
"""Options of `ringtap record`, with files and standard output."""
import json
import re
import signal
from datetime import datetime

import pytest

from harness import pcap, pcapng
from harness.paths import BUILD, RINGTAP
from harness.proc import check, freeze, run, until
from harness.ringtap import FAILED, LOSS, OK, USAGE, Recorder, sessions

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


# ---- When to stop -----------------------------------------------------------------------------


@pytest.fixture
def app(module_app):
    return module_app.unhooked()


@pytest.mark.parametrize("option", [("-c", "7"), ("-a", "packets:7")])
@pytest.mark.smoke
def test_exact_number_of_packets(app, record, option):
    recorder = record(app, *option)
    app.rx(n=100)
    recorder.done()
    assert numbered(recorder.file().packets) == list(range(7))


def test_duration(busy, record, tmp_path):
    """Never shorter; on a busy machine longer, but not every time."""
    took = []
    while not took or took[-1] > 0.9:
        assert len(took) < 10, took
        with open(tmp_path / "report.json", "wb") as f:
            recorder = record(busy, "-a", "duration:0.5", "--json", "-s", "64", out="/dev/null", stdout=f)
            recorder.done()
        summary = json.loads((tmp_path / "report.json").read_text())
        assert summary["ended_by"] == "duration"
        took.append(summary["duration_s"])
        assert took[-1] > 0.4


def test_filesize(busy, record):
    """kB of 1000 bytes, as in dumpcap; packets are not truncated for it."""
    recorder = record(busy, "-a", "filesize:500")
    recorder.done(timeout=10)
    assert 480_000 < recorder.out.stat().st_size <= 510_000
    assert recorder.file().packets


def test_number_of_files(busy, record, tmp_path):
    folder = tmp_path / "ring"
    folder.mkdir()
    record(busy, "-b", "packets:1000", "-a", "files:3", out=folder / "cap.pcapng").done(timeout=10)
    files = ring_files(folder)
    assert list(files) == [1, 2, 3]
    assert [len(pcapng.read(p).packets) for p in files.values()] == [1000] * 3


def test_files_begin_with_the_wall_clocks_interval(app, record, tmp_path):
    """All except the first begin at a full second, also without packets."""
    for attempt in range(5):
        folder = tmp_path / f"ring{attempt}"
        folder.mkdir()
        record(app, "-b", "interval:1", "-a", "files:4", out=folder / "cap.pcapng").done(timeout=20)
        files = ring_files(folder)
        assert list(files) == [1, 2, 3, 4]
        begin = [datetime.strptime(NAME.match(p.name).group(2), "%Y%m%d%H%M%S") for p in files.values()]
        seconds = [(b - a).total_seconds() for a, b in zip(begin[1:], begin[2:])]
        assert all(s >= 1 for s in seconds)
        for path in files.values():
            assert pcapng.read(path).packets == []
        if seconds == [1, 1]:
            break  # else the recorder had no CPU for a whole second
    assert seconds == [1, 1]


def test_files_are_named_after_the_second_in_which_they_begin(app, record, tmp_path, monkeypatch):
    """time() is behind for up to a tick of the kernel after each full second."""
    monkeypatch.setenv("LD_PRELOAD", str(BUILD / "e2e" / "librt_late_clock.so"))
    before = datetime.now().replace(microsecond=0)
    record(app, "-b", "packets:5", "-a", "packets:5", out=tmp_path / "cap.pcapng").finish()
    (path,) = ring_files(tmp_path).values()
    assert before <= datetime.strptime(NAME.match(path.name).group(2), "%Y%m%d%H%M%S") <= datetime.now()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_finish_the_file(app, record, number):
    recorder = record(app)
    app.rx(n=1000)
    recorder.finish(number)
    file = recorder.file()
    assert numbered(file.packets) == list(range(1000))
    assert file.interfaces[0].stats, "no statistics at the end"


# ---- Files ------------------------------------------------------------------------------------


def test_ring_of_files_by_packets(app, record, tmp_path):
    folder = tmp_path / "ring"
    folder.mkdir()
    recorder = record(app, "-b", "packets:100", "-b", "files:3", out=folder / "cap.pcapng")
    app.rx(n=950)
    recorder.finish()
    files = ring_files(folder)
    assert list(files) == [8, 9, 10]
    got = [numbered(pcapng.read(p).packets) for p in files.values()]
    assert got == [list(range(700, 800)), list(range(800, 900)), list(range(900, 950))]


def test_ring_of_files_by_size_loses_nothing(app, record, tmp_path):
    folder = tmp_path / "ring"
    folder.mkdir()
    recorder = record(app, "-b", "filesize:20", out=folder / "cap.pcapng")
    app.rx(n=1000, len=500)
    recorder.finish()
    files = ring_files(folder)
    assert len(files) > 20
    assert all(p.stat().st_size <= 20_000 for p in files.values())
    assert [n for p in files.values() for n in numbered(pcapng.read(p).packets)] == list(range(1000))
    for path in files.values():
        check(["capinfos", path])


def test_ring_of_files_by_time(busy, record, tmp_path):
    folder = tmp_path / "ring"
    folder.mkdir()
    record(busy, "-s", "64", "-b", "duration:0.2", "-a", "files:3",
           out=folder / "cap.pcapng").done(timeout=10)
    assert list(ring_files(folder)) == [1, 2, 3]


def test_pcap_with_nanoseconds(app, record, tmp_path):
    recorder = record(app, "-P", "-s", "60", out=tmp_path / "out.pcap")
    _, before, after = app.rx(n=1, len=100)
    app.tx(n=1, len=50, vlan=5)
    recorder.finish()
    assert recorder.out.read_bytes()[:4] == b"\x4d\x3c\xb2\xa1"
    first, second = pcap.read(recorder.out)
    assert first[1:] == (pcap.frame(100)[:60], 100)
    assert before - 10**6 <= first[0] <= after + 10**6
    assert second[2] == 54
    assert len(check(["tcpdump", "-r", recorder.out, "-nn"]).splitlines()) >= 2


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("tool,suffix", [("zstd", "zst"), ("lz4", "lz4")])
def test_compression(app, record, tmp_path, tool, suffix, threads):
    recorder = record(app, "--compress", tool, "--threads", str(threads), out=tmp_path / f"out.pcapng.{suffix}")
    app.rx(n=5000, len=300)
    recorder.finish()
    plain = tmp_path / "plain.pcapng"
    check([tool, "-d", "-q", "-f", recorder.out, "-o", plain] if tool == "zstd"
          else [tool, "-d", "-q", "-f", recorder.out, plain])
    assert numbered(pcapng.read(plain).packets) == list(range(5000))
    assert recorder.out.stat().st_size < plain.stat().st_size / 2


@pytest.mark.parametrize("direct", [(), ("--no-direct",)])
@pytest.mark.parametrize("count", [0, 1, 5000])
def test_every_way_to_write_a_file(app, record, private_dir, direct, count):
    """On disk, where O_DIRECT needs whole pages, and files end within one."""
    recorder = record(app, *direct, out=private_dir / "out.pcapng")
    if count:
        app.rx(n=count, len=333)
    recorder.finish()
    assert numbered(recorder.file().packets) == list(range(count))


def test_file_that_exists_is_replaced(app, record, tmp_path):
    out = tmp_path / "old.pcapng"
    out.write_bytes(b"x" * 1_000_000)
    recorder = record(app, out=out)
    app.rx(n=5)
    recorder.finish()
    assert len(recorder.file().packets) == 5


@pytest.mark.parametrize("option,mode", [((), 0o600), (("-g",), 0o640)])
def test_permissions_of_the_file(app, record, option, mode):
    recorder = record(app, *option)
    recorder.finish()
    assert recorder.out.stat().st_mode & 0o777 == mode


# ---- What is in it ----------------------------------------------------------------------------


def test_names_and_comments(app, record):
    recorder = record(app, "--ifname", "uplink", "--ifdescr", "to the world", "-f", "ether[0] = 2",
                      "--capture-comment", "taken by a test")
    app.rx(n=1)
    recorder.finish()
    file = recorder.file()
    iface = file.interfaces[0]
    assert (iface.name, iface.text(3)) == ("uplink", "to the world")
    assert iface.options[11] == [b"\0ether[0] = 2"]
    assert iface.text(15) == "net_ring"
    assert len(iface.options[6][0]) == 6
    assert file.section[1] == [b"taken by a test"]
    assert b"ringtap" in file.section[4][0]
    assert file.section[2] and file.section[3]
    nic, end, clock = iface.stats[-1][1]
    assert nic.startswith(b"NIC: imissed=0 ") and end == b"capture ended by: signal" and clock.startswith(b"clock: synchronized=")
    output = check(["capinfos", recorder.out])
    assert "taken by a test" in output and "uplink" in output


def test_options_of_one_interface(play, record):
    app = play()
    app.ring("a")
    app.ring("b")
    recorder = record(app, "-s", "50", "-i", f"{app.prefix}:net_ring_b", "-s", "70",
                      "--direction", "tx", ports=["net_ring_a"])
    for port in (0, 1):
        app.rx(port, n=1, len=100)
        app.tx(port, n=1, len=100)
    recorder.finish()
    file = recorder.file()
    got = sorted((file.interfaces[p.interface].name, p.direction, len(p.data)) for p in file.packets)
    assert got == [("net_ring_a", 1, 50), ("net_ring_a", 2, 50), ("net_ring_b", 2, 70)]


def test_port_by_number(play, record):
    app = play()
    app.ring("a")
    app.ring("b")
    recorder = record(app, ports=[1])
    app.rx(0, n=3)
    app.rx(1, n=2)
    recorder.finish()
    assert [i.name for i in recorder.file().interfaces] == ["net_ring_b"]
    assert len(recorder.file().packets) == 2


# ---- What it prints ---------------------------------------------------------------------------


def attached(app):
    """For recorders without messages."""
    until(lambda: any(s["start_ns"] for s in sessions(app)), 10, "attached")


@pytest.mark.smoke
def test_json_summary(app, record, tmp_path):
    report = tmp_path / "report.json"
    with open(report, "wb") as f:
        recorder = record(app, "--json", "-q", attach=False, stdout=f)
        attached(app)
        app.rx(n=11, len=100)
        app.tx(n=7, len=100)
        recorder.finish()
    summary = json.loads(report.read_text())
    assert summary["applications"] == [app.prefix]
    assert (summary["written"], summary["seen"], summary["lost_total"]) == (18, 18, 0)
    iface, = summary["interfaces"]
    assert (iface["name"], iface["driver"], iface["captured"]) == ("net_ring_a", "net_ring", 18)
    taps = {t["direction"]: t for t in iface["taps"]}
    assert (taps["rx"]["captured"], taps["tx"]["captured"]) == (11, 7)
    file, = summary["files"]
    assert (file["name"], file["bytes"]) == (str(recorder.out), recorder.out.stat().st_size)


def test_quiet_prints_nothing(app, record):
    recorder = record(app, "-q", attach=False)
    attached(app)
    assert recorder.finish() == ""


def test_text_summary(app, record):
    recorder = record(app)
    app.rx(n=1234)
    output = recorder.finish()
    assert "1,234" in output or "1234" in output
    assert recorder.out.name in output


def test_live_counts(busy, record):
    recorder = record(busy, "-s", "64", out="/dev/null")
    recorder.proc.expect(r"packets.*", 10)
    recorder.finish()


@pytest.mark.parametrize("option,status", [((), OK), (("--fail-on-loss",), LOSS)])
def test_exit_status_reports_losses_only_on_request(app, record, option, status):
    recorder = record(app, "--buffer", "64K", *option)
    freeze(recorder.proc.pid)
    app.rx(n=3000, len=500)
    recorder.proc.send_signal(signal.SIGCONT)
    recorder.finish(status=status)


def test_list_of_interfaces(app):
    output = check([RINGTAP, "record", "-D"])
    assert app.prefix in output and "net_ring_a" in output


def test_statistics(busy, closing):
    stats = closing(Recorder(["-S", "-i", f"{busy.prefix}:"]))
    stats.proc.expect(r"net_null0\s+\d+", 10)
    stats.proc.expect(r"net_null0\s+\d+", 10)
    stats.proc.send_signal(signal.SIGINT)
    stats.proc.wait()


def test_a_queue_that_does_not_exist(play, record, tmp_path):
    app = play()
    app.ring("a", rxq=3, txq=2)
    app.ring("b")
    wrong = record(app, "--queue", "99", attach=False)
    assert "--queue: net_ring_a has no queue 99 (RX 0-2, TX 0-1), net_ring_b has no queue 99 (RX 0, TX 0);" \
           " there is nothing to capture" in wrong.done(status=FAILED)
    assert not list(tmp_path.iterdir())
    recorder = record(app, "--queue", "2", "-c", "5")
    for queue in range(3):
        app.rx(0, queue, n=5)
    said = recorder.done()
    assert "--queue: net_ring_b has no queue 2 (RX 0, TX 0); nothing of it is captured" in said
    assert {p.queue for p in recorder.file().packets} == {2}


def test_the_name_of_an_application_means_all_its_ports(play, closing, tmp_path):
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
        app.ring("b")
    recorder = closing(Recorder(["-i", apps[0].prefix, "-c", "20"], tmp_path / "out.pcapng")).attached()
    for app in apps:
        app.rx(0, 0, n=10)
        app.rx(1, 0, n=10)
    recorder.done()
    file = recorder.file()
    assert {i.name for i in file.interfaces} == {"net_ring_a", "net_ring_b"}
    assert {p.interface for p in file.packets} == {0, 1}


def test_summary_fits_a_terminal(busy, record):
    """Also after millions of packets, most of them lost."""
    recorder = record(busy, "-c", "2000000", "--buffer", "64K")
    recorder.done()
    table = recorder.proc.output.split("\ninterface")[1].split("\nended by")[0].splitlines()
    assert any("lost, ring_full: " in line for line in table)
    assert max(map(len, table)) <= 80, table


def test_help_as_a_command():
    assert check([RINGTAP, "help"]) == check([RINGTAP, "--help"])
    assert check([RINGTAP, "help", "record"]) == check([RINGTAP, "record", "--help"])
    done = run([RINGTAP, "help", "nonsense"])
    assert done.returncode == USAGE and "unknown command" in done.stderr


def test_help_and_manual():
    for args in (["--help"], ["record", "--help"], ["list", "--help"], ["--version"]):
        done = run([RINGTAP, *args])
        assert done.returncode == OK and done.stdout and not done.stderr
