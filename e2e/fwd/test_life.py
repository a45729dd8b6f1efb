# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-fwd: start, end, what it prints, its errors; ringtap attaches to it. Its command line is tested in
fwd/config_test.c, its runtime folder in fwd/eal_test.c, the end of a run in fwd/run_test.c."""

import os
import re
import signal
import threading
import time

import pytest
from harness.dpdk import RUN_DIR, new_prefix, telemetry
from harness.fwd import FWD, refused
from harness.paths import BUILD
from harness.proc import check, run
from harness.ringtap import listing
from harness.sandbox import public

NULL = ("--vdev", "net_null0", "--role", "echo:0@1")


@pytest.mark.smoke
def test_a_signal_ends_it_with_a_report(fwd):
    """Further ones, at any time between the end of the run and that of the process, change nothing."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number, pause in zip(numbers, (0, 0.0005, 0.002)):
        app = fwd(*NULL).running()
        assert (RUN_DIR / app.prefix).exists()
        os.kill(app.proc.pid, number)
        until_at = time.monotonic() + pause
        while time.monotonic() < until_at:
            pass
        app.proc.send_signal(signal.SIGTERM)
        report = app.done()
        assert report["ended_by"] == "signal"
        assert report.total("echo")["rx_packets"] == report.total("echo")["tx_packets"]
        assert not (RUN_DIR / app.prefix).exists()
    app = fwd(*NULL, "--packets", 1000, "--linger", "1000s").running()
    app.proc.expect(r"^}")
    assert app.stop()["ended_by"] == "count"
    assert not (RUN_DIR / app.prefix).exists()


def test_runtime_folder(fwd, testpmd):
    """Remains of a killed run do not prevent the next one; what is another's stays."""
    app = fwd(*NULL).running()
    app.proc.kill()
    again = fwd(*NULL, name=app.prefix).running()
    assert again.stop()["ended_by"] == "signal"
    name = new_prefix("left")
    left = RUN_DIR / name
    left.mkdir(parents=True)
    (left / "theirs").write_text("kept")
    assert fwd(*NULL, name=name).running().stop()["ended_by"] == "signal"
    assert (left / "theirs").read_text() == "kept"
    victim = testpmd()
    folder = RUN_DIR / victim.prefix
    before = sorted(os.listdir(folder))
    assert "under this name" in refused("--no-huge", *NULL, "--name", victim.prefix)
    assert sorted(os.listdir(folder)) == before
    (folder / "config").unlink()  # as with --in-memory: sockets only
    assert "under this name" in refused("--no-huge", *NULL, "--name", victim.prefix)
    assert telemetry(victim.prefix, "/info")["/info"]["pid"] == victim.pid


def test_duration_and_the_port(fwd):
    """EAL's arguments are passed on. The counters of DPDK and of the report agree."""
    app = fwd(
        "--role", "echo:net_null7@1", "--duration", "300ms", "--linger", "1000s", eal=("--vdev", "net_null7,size=128")
    ).running()
    app.proc.expect(r"^}")
    assert telemetry(app.prefix, "/ethdev/info,0")["/ethdev/info"]["name"] == "net_null7"
    report = app.stop()
    assert report["ended_by"] == "duration" and report["duration_s"] >= 0.3
    (port,) = report["ports"]
    assert port["name"] == "net_null7"
    assert port["ipackets"] == report.total("echo")["rx_packets"] > 0
    assert port["opackets"] == report.total("echo")["tx_packets"]


@pytest.mark.nightly
def test_per_second_statistics_add_up(fwd):
    report = fwd(
        "--ring",
        "a:16384",
        "--pool-size",
        32767,
        "--mbuf-size",
        256,
        "--role",
        "generate:a@0",
        "--role",
        "sink:a@1",
        "--stages",
        "20k:1300ms",
        "--interval",
        "1s",
    ).done()
    lines = report["intervals"]
    assert len(lines) >= 4  # two roles, a whole second and the rest
    for number, role in enumerate(report["roles"]):
        mine = [line for line in lines if line["role"] == number]
        for key in ("rx_packets", "tx_packets"):
            assert sum(line[key] for line in mine) == role["total"][key]
    for line in lines:
        if line["rx_busy_calls"]:
            assert line["rx_packets_per_busy_call"] == pytest.approx(line["rx_packets"] / line["rx_busy_calls"])
            assert line["rx_packets_per_call"] == pytest.approx(line["rx_packets"] / line["rx_calls"])
    # A sink with a rate is idle most of the time, which does not count.
    sink = ("--vdev", "net_null0", "--role", "sink:0@1")
    report = fwd(*sink, "--sink-rate", "100k", "--duration", "500ms", "--interval", "1s").done()
    for counters in (report.total("sink"), *report["intervals"]):
        assert 1 < counters["rx_ns_per_packet"] < 0.8e9 * report["duration_s"] / counters["rx_packets"]
    assert "rx_ns_per_packet" not in fwd(*sink, "--duration", "100ms").done().total("sink")


def test_text_report(fwd):
    text = fwd(
        "--ring",
        "a:4096",
        "--role",
        "generate:a@0",
        "--role",
        "sink:a@1",
        "--rate",
        "5k",
        "--packets",
        6000,
        "--interval",
        "1s",
        json_out=False,
    ).done()
    assert re.search(r"\d\.\d s  generate net_ring_a: rx 0pps", text)
    assert "sequence: 6000 received, 0 lost, 0 duplicated, 0 reordered" in text
    assert "5,000 pps requested" in text
    assert "end of the run: count" in text


@pytest.mark.smoke
def test_ringtap_records_it(fwd, record):
    """A query during its end is not answered, and does no harm. Without the probe a query does not start it."""
    app = fwd(
        "--ring",
        "a:16384",
        "--pool-size",
        32767,
        "--mbuf-size",
        256,
        "--role",
        "generate:a@0",
        "--role",
        "sink:a@1",
        "--rate",
        "5k",
    ).running()
    assert app.prefix in [a["name"] for a in listing()]
    recorder = record(app, "-c", "1000", "--direction", "rx")
    recorder.done()
    numbers = [int.from_bytes(p.data[47:52], "big") for p in recorder.file().packets]
    assert len(numbers) == 1000
    assert numbers == list(range(numbers[0], numbers[0] + 1000))
    report = app.stop()
    assert report["probe"] is True
    assert report.role("sink")["sequence"]["lost"] == 0
    for _ in range(3):
        app = fwd(*NULL).running()
        asking = threading.Thread(target=lambda: [listing() for _ in range(8)])
        asking.start()
        assert app.stop()["ended_by"] == "signal"
        asking.join()
    app = fwd(*NULL, "--no-probe").running()
    (found,) = [a for a in listing() if a["name"] == app.prefix]
    assert found["error"]
    assert not (RUN_DIR / app.prefix / "ringtap.sock").exists()
    assert app.stop()["probe"] is False


# Refused by DPDK, by what the machine has, or by what the ports are.
REFUSED = [
    (("--role", "echo:5", "--vdev", "net_null0"), "port 5", "net_null0"),
    (("--role", "echo:eth99", "--vdev", "net_null0"), "port eth99", "net_null0"),
    (("--role", "echo:0"), "port 0", "--vdev"),
    (("--role", "echo:0", "--vdev", "net_nonsense0"), "net_nonsense0", "--verbose"),
    (("--role", "echo:0", "--vdev", "net_af_packet0,iface=nope0"), "No such device", "--verbose"),
    (("--role", "echo:0@900", "--vdev", "net_null0"), "CPU 900", "taskset"),
    (("--role", "echo:0@0", "--role", "sink:0@1", "--vdev", "net_null0"), "net_null0", "two roles"),
    (("--role", "generate:0@0", "--role", "generate:0@1", "--vdev", "net_null0"), "net_null0", "same @CPU"),
    (("--role", "generate:0", "--vdev", "net_null0", "--replay", "/nonexistent"), "/nonexistent", "No such"),
    (("--role", "generate:0", "--vdev", "net_null0", "--replay", "/etc/passwd"), "--replay", "format"),
    (("--role", "echo:0", "--", "--nonsense"), "DPDK does not start", "--verbose"),
    (("--role", "echo:0", "--", "--lcores", "999@999"), "--lcores", "--verbose"),
    (("--role", "sink:a", "--ring", "a:x"), "--ring a:x", "SLOTS"),
    (
        ("--role", "echo:0", "--vdev", "net_null0", "--pool-size", 100, "--pool-cache", 100),
        "--pool-cache 100",
        "too large",
    ),
]


@pytest.mark.nightly
def test_errors_are_one_line(fwd, tmp_path):
    for args, what, advice in REFUSED:
        output = refused("--no-huge", *args)
        assert what in output and advice in output, args
    assert "--nonsense" in refused("--nonsense", status=2)
    output = refused("--plane", "packet", "--role", "sink:nope0")
    assert "nope0: no such interface" in output
    nobody = ["setpriv", "--reuid", 65534, "--clear-groups"]
    output = refused("--plane", "packet", "--role", "sink:lo", prefix=nobody, program=public(FWD))
    assert "CAP_NET_RAW" in output
    output = fwd(
        "--vdev",
        f"net_memif0,role=server,socket-abstract=no,socket={tmp_path}/m",
        "--role",
        "generate:0",
        "--link-wait",
        "100ms",
    ).done(status=1)
    assert "net_memif0: the link is down" in output
    output = fwd(*NULL, "--packets", 10, "--samples", "/nonexistent/x").done(status=1)
    assert "--samples /nonexistent/x" in output
    done = run(["sh", "-c", f"{FWD} --no-huge --vdev net_null0 --role echo:0 --packets 10 >/dev/full"])
    assert done.returncode == 1
    assert "standard output" in done.stderr


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
    lint = (
        run(["man", "--warnings", "-l", "-Tutf8", page])
        if run(["sh", "-c", "command -v man"]).returncode == 0
        else None
    )
    assert lint is None or not lint.stderr
    words = check(
        [
            "bash",
            "-c",
            f". {script}; COMP_LINE='ringtap-fwd --plane pack' COMP_POINT=24; _ringtap_fwd; echo ${{COMPREPLY[@]}}",
        ]
    )
    assert words.split() == ["packet", "packet-mmap"]
