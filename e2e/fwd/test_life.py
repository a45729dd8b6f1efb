# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-fwd: start, end, what it prints, its errors; ringtap attaches to it."""
import os
import re
import shutil
import signal
import threading
import time

import pytest

from harness.dpdk import RUN_DIR, new_prefix, telemetry
from harness.fwd import FWD, refused
from harness.paths import BUILD
from harness.proc import check, freeze, run, until
from harness.ringtap import listing
from harness.sandbox import public

NULL = ("--vdev", "net_null0", "--role", "echo:0@1")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_a_report(fwd, number):
    app = fwd(*NULL).running()
    assert (RUN_DIR / app.prefix).exists()
    report = app.stop(number)
    assert report["ended_by"] == "signal"
    assert report.total("echo")["rx_packets"] == report.total("echo")["tx_packets"]
    assert not (RUN_DIR / app.prefix).exists()


@pytest.mark.parametrize("pause", [0, 0.0005, 0.002])
def test_a_second_signal_changes_nothing(fwd, pause):
    """It arrives at any time between the end of the run and that of the process."""
    for _ in range(3):
        app = fwd(*NULL).running()
        os.kill(app.proc.pid, signal.SIGINT)
        until_at = time.monotonic() + pause
        while time.monotonic() < until_at:
            pass
        app.proc.send_signal(signal.SIGTERM)
        assert app.done()["ended_by"] == "signal"
        assert not (RUN_DIR / app.prefix).exists()


def test_a_signal_ends_the_lingering(fwd):
    app = fwd(*NULL, "--count", 1000, "--linger", "1000s").running()
    app.proc.expect(r"^}")
    assert app.stop()["ended_by"] == "count"
    assert not (RUN_DIR / app.prefix).exists()


def test_folders_of_ended_runs_are_removed(fwd):
    """Only folders of ringtap-fwd, and only known files in them."""
    dead = run(["sh", "-c", "echo $$"]).stdout.strip()
    mine, padded, other = (RUN_DIR / n for n in (f"ringtap-fwd-{dead}", f"ringtap-fwd-0{dead}",
                                               f"other-{dead}"))
    for folder in (mine, padded, other):
        folder.mkdir(parents=True)
        (folder / "config").write_text("")
        (folder / "fbarray_memseg").write_text("")
    fwd(*NULL, "--count", 10).done()
    left = [f.exists() for f in (mine, padded, other)]
    for folder in (mine, padded, other):
        shutil.rmtree(folder, ignore_errors=True)
    assert left == [False, True, True]


@pytest.mark.smoke
def test_duration(fwd):
    report = fwd(*NULL, "--duration", "300ms").done()
    assert report["ended_by"] == "duration"
    assert report["duration_s"] >= 0.3
    assert report.total("echo")["rx_packets"] > 0


def test_killed_and_started_again(fwd):
    """Remains of the first run do not prevent the second one."""
    app = fwd(*NULL).running()
    app.proc.kill()
    again = fwd(*NULL, name=app.prefix).running()
    assert again.stop()["ended_by"] == "signal"


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/run/x", "a/b"])
def test_names_that_cannot_be_folders(name):
    assert "--name" in refused(*NULL, "--name", name, status=2)


def test_name_of_another_application(testpmd):
    """Its folder and its sockets stay, also if it holds no visible lock."""
    victim = testpmd()
    folder = RUN_DIR / victim.prefix
    before = sorted(os.listdir(folder))
    assert "under this name" in refused("--no-huge", *NULL, "--name", victim.prefix)
    assert sorted(os.listdir(folder)) == before
    (folder / "config").unlink()  # as with --in-memory: sockets only
    assert "under this name" in refused("--no-huge", *NULL, "--name", victim.prefix)
    assert telemetry(victim.prefix, "/info")["/info"]["pid"] == victim.pid


def test_existing_folder_is_kept(fwd):
    name = new_prefix("left")
    left = RUN_DIR / name
    left.mkdir(parents=True)
    (left / "theirs").write_text("kept")
    app = fwd(*NULL, name=name).running()
    assert app.stop()["ended_by"] == "signal"
    assert (left / "theirs").read_text() == "kept"


def test_unknown_files_in_the_folder_are_kept(fwd):
    app = fwd(*NULL).running()
    folder = RUN_DIR / app.prefix
    (folder / "theirs").write_text("kept")
    app.stop()
    assert os.listdir(folder) == ["theirs"]


def test_per_second_statistics_add_up(fwd):
    report = fwd("--ring", "a:16384", "--pool-size", 32767, "--buffer-size", 256, "--role",
                 "generate:a@0", "--role", "sink:a@1", "--stages", "20k:2500ms", "--stats",
                 1).done()
    lines = report["intervals"]
    assert len(lines) >= 4  # two roles, two whole seconds at least
    for number, role in enumerate(report["roles"]):
        mine = [line for line in lines if line["role"] == number]
        for key in ("rx_packets", "tx_packets"):
            assert sum(line[key] for line in mine) == role["total"][key]
    for line in lines:
        if line["rx_busy_calls"]:
            assert line["rx_packets_per_busy_call"] == pytest.approx(
                line["rx_packets"] / line["rx_busy_calls"])
            assert line["rx_packets_per_call"] == pytest.approx(line["rx_packets"] / line["rx_calls"])


def test_time_of_packets_of_a_sink_with_a_rate(fwd):
    """It is idle most of the time, which does not count."""
    sink = ("--vdev", "net_null0", "--role", "sink:0@1")
    report = fwd(*sink, "--sink-rate", "100k", "--duration", "500ms", "--stats", 1).done()
    for counters in (report.total("sink"), *report["intervals"]):
        assert 1 < counters["rx_ns_per_packet"] < 0.8e9 * report["duration_s"] / counters["rx_packets"]
    assert "rx_ns_per_packet" not in fwd(*sink, "--duration", "100ms").done().total("sink")


@pytest.mark.slow
def test_per_second_statistics_after_a_stall(fwd):
    """The time for which the process was stopped is in one interval. The others have the usual
    length, except for the last one, which is the rest."""
    app = fwd(*NULL, "--stats", 1).running()
    app.proc.expect(r" 1\.\d s ")
    freeze(app.proc.pid)
    stopped = time.monotonic()
    until(lambda: time.monotonic() - stopped > 3.2)
    app.proc.send_signal(signal.SIGCONT)
    app.proc.expect(r" [4-9]\.\d s ")
    app.proc.expect(r" [5-9]\.\d s ")
    report = app.stop()
    lines = report["intervals"]
    assert sum(line["interval_s"] for line in lines) == pytest.approx(report["duration_s"])
    assert sum(line["interval_s"] > 2.5 for line in lines) == 1
    # Intervals end at whole seconds: one may be short after a stall, but not almost zero.
    assert sum(line["interval_s"] < 0.05 for line in lines[:-1]) == 0
    assert sum(line["rx_packets"] for line in lines) == report.total("echo")["rx_packets"]


def test_text_report(fwd):
    text = fwd("--ring", "a:4096", "--role", "generate:a@0", "--role", "sink:a@1", "--rate",
               "5k", "--count", 6000, "--stats", 1, json_out=False).done()
    assert re.search(r"\d\.\d s  generate net_ring_a: rx 0pps", text)
    assert "sequence: 6000 received, 0 lost, 0 duplicated, 0 reordered" in text
    assert "5,000 pps requested" in text
    assert "end of the run: count" in text


def test_ringtap_records_it(fwd, record):
    app = fwd("--ring", "a:16384", "--pool-size", 32767, "--buffer-size", 256, "--role",
              "generate:a@0", "--role", "sink:a@1", "--rate", "5k").running()
    assert app.prefix in [a["name"] for a in listing()]
    recorder = record(app, "-c", "1000", "--direction", "rx")
    recorder.done()
    numbers = [int.from_bytes(p.data[47:52], "big") for p in recorder.file().packets]
    assert len(numbers) == 1000
    assert numbers == list(range(numbers[0], numbers[0] + 1000))
    report = app.stop()
    assert report["probe"] is True
    assert report.role("sink")["sequence"]["lost"] == 0


def mine(app):
    found, = [a for a in listing() if a["name"] == app.prefix]
    return found


def test_queries_while_it_ends(fwd):
    """A query during cleanup is not answered, and does no harm."""
    for _ in range(5):
        app = fwd(*NULL).running()
        asking = threading.Thread(target=lambda: [listing() for _ in range(8)])
        asking.start()
        assert app.stop()["ended_by"] == "signal"
        asking.join()


def test_without_the_probe(fwd):
    app = fwd(*NULL, "--no-probe").running()
    assert mine(app)["error"]  # the query does not start it
    assert not (RUN_DIR / app.prefix / "ringtap.sock").exists()
    assert app.stop()["probe"] is False


def test_eal_arguments_are_passed_on(fwd):
    app = fwd("--role", "echo:net_null7@1", eal=("--vdev", "net_null7,size=128")).running()
    port, = app.stop()["ports"]
    assert port["name"] == "net_null7"


@pytest.mark.parametrize("args,what,advice", [
    (("--role", "echo:5", "--vdev", "net_null0"), "port 5", "net_null0"),
    (("--role", "echo:eth99", "--vdev", "net_null0"), "port eth99", "net_null0"),
    (("--role", "echo:0"), "port 0", "--vdev"),
    (("--role", "echo:0", "--vdev", "net_nonsense0"), "net_nonsense0", "--verbose"),
    (("--role", "echo:0", "--vdev", "net_af_packet0,iface=nope0"), "No such device", "--verbose"),
    (("--role", "echo:0@900", "--vdev", "net_null0"), "CPU 900", "taskset"),
    (("--role", "echo:0@0", "--role", "sink:0@1", "--vdev", "net_null0"), "net_null0", "two roles"),
    (("--role", "generate:0@0", "--role", "generate:0@1", "--vdev", "net_null0"), "net_null0",
     "same @CPU"),
    (("--role", "generate:0", "--vdev", "net_null0", "--pcap", "/nonexistent"), "/nonexistent", "No such"),
    (("--role", "generate:0", "--vdev", "net_null0", "--pcap", "/etc/passwd"), "--pcap", "format"),
    (("--role", "echo:0", "--", "--nonsense"), "DPDK does not start", "--verbose"),
    (("--role", "echo:0", "--", "--lcores", "999@999"), "--lcores", "--verbose"),
    (("--role", "echo:0", "--vdev", "net_null0," + 1024 * "x"), "EAL argument net_null0,xxx", "too long"),
    (("--role", "echo:0", "--", *200 * ["-v"]), "EAL argument", "too many"),
    (("--role", "sink:a", "--ring", "a:x"), "--ring a:x", "SLOTS"),
    (("--role", "echo:0", "--vdev", "net_null0", "--pool-size", 100, "--pool-cache", 100),
     "--pool-cache 100", "too large"),
])
def test_errors_are_one_line(args, what, advice):
    output = refused("--no-huge", *args)
    assert what in output and advice in output


@pytest.mark.parametrize("args,what", [
    ((), "--role"), (("--nonsense",), "--nonsense"), (("--role", "echo:0", "--rate", "0"), "--rate 0"),
    (("--role", "generate:0", "--rate", "5000G"), "--rate 5000G"),
    (("--role", "generate:0", "--rate", "fast"), "--rate fast"),
    (("--role", "generate:0", "--stages", "1M"), "--stages 1M"),
    (("--role", "fly:0"), "--role fly:0"), (("--role", "echo:0", "--burst", "0"), "--burst 0")])
def test_wrong_command_lines(args, what):
    assert what in refused(*args, status=2)


def test_missing_interface_and_rights():
    output = refused("--plane", "packet", "--role", "sink:nope0")
    assert "nope0: no such interface" in output
    nobody = ["setpriv", "--reuid", 65534, "--clear-groups"]
    output = refused("--plane", "packet", "--role", "sink:lo", prefix=nobody, program=public(FWD))
    assert "CAP_NET_RAW" in output


def test_help_manual_and_completion():
    text = check([FWD, "--help"])
    page, script = BUILD / "fwd" / "ringtap-fwd.1", BUILD / "fwd" / "completion" / "ringtap-fwd"
    manual = page.read_text().replace("\\-", "-")
    completion = script.read_text()
    options = set(re.findall(r"^  (?:-\w,|   ) (--[a-z-]+)", text, re.MULTILINE))
    options.discard("--help")  # not in man pages
    assert len(options) > 40
    for option in options:
        assert option in completion
        assert option in manual
    assert check([FWD, "--version"]).startswith("ringtap-fwd ")
    lint = run(["man", "--warnings", "-l", "-Tutf8", page]) \
        if run(["sh", "-c", "command -v man"]).returncode == 0 else None
    assert lint is None or not lint.stderr
    words = check(["bash", "-c", f". {script}; COMP_WORDS=(ringtap-fwd --plane pack); "
                   "COMP_CWORD=2; _ringtap_fwd; echo ${COMPREPLY[@]}"])
    assert words.split() == ["packet", "packet-mmap"]


def test_output_that_cannot_be_written(fwd, tmp_path):
    output = fwd(*NULL, "--count", 10, "--samples", "/nonexistent/x").done(status=1)
    assert "--samples /nonexistent/x" in output
    done = run(["sh", "-c", f"{FWD} --no-huge --vdev net_null0 --role echo:0 --count 10 >/dev/full"])
    assert done.returncode == 1
    assert "standard output" in done.stderr


def test_telemetry_of_the_port(fwd):
    """The counters of DPDK and of the report agree."""
    app = fwd(*NULL).running()
    until(lambda: (RUN_DIR / app.prefix / "dpdk_telemetry.v2").exists())
    names = telemetry(app.prefix, "/ethdev/info,0")["/ethdev/info"]
    before = until(lambda: telemetry(app.prefix, "/ethdev/stats,0")["/ethdev/stats"]["ipackets"])
    assert names["name"] == "net_null0"
    report = app.stop()
    port, = report["ports"]
    assert port["ipackets"] == report.total("echo")["rx_packets"]
    assert port["opackets"] == report.total("echo")["tx_packets"]
    assert 0 < before <= port["ipackets"]
    assert port["name"] == names["name"]
