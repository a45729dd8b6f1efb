# SPDX-License-Identifier: BSD-3-Clause
"""The systemd units of `ringtap export`, `ringtap flight`, `ringtap flows` and `ringtap web`."""

import json
import re
import shutil
import signal
import socket
import urllib.request
from pathlib import Path

import pytest
from harness import service
from harness.documents import only
from harness.flight import Flight
from harness.fwd import Fwd
from harness.paths import BUILD, PROBE_OBJECT, RINGTAP
from harness.proc import PATIENCE, Proc, check, run, until
from harness.prometheus import Exporter, post
from harness.ringtap import FAILED
from harness.tracers import usdt_sites

EXPOSURE = {
    service.ATTACH: 3.5,
    service.EXPORT: 2.5,
    service.FLIGHT: 3.5,
    service.FLOWS: 3.6,
    service.WEB: 2.5,
}  # at most 10; 0 is none


def with_build(unit, folder):
    """The unit with the command of the build; an instance of a template."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    path = folder / unit.name.replace("@.", "@my-app.")
    installed = service.setting("ExecStart", unit).split()[0]
    path.write_text(unit.read_text().replace(installed, str(RINGTAP)))
    return path


@pytest.fixture
def unit(tmp_path):
    return with_build(service.EXPORT, tmp_path)


def test_systemd_accepts_the_units(tmp_path):
    """With the drop-in files of docs/flight.md, too. Their exposure is small."""
    for which in EXPOSURE:
        done = run(["systemd-analyze", "verify", "--man=no", with_build(which, tmp_path)])
        assert done.returncode == 0 and not done.stderr, done.stderr
        check(
            [
                "systemd-analyze",
                "security",
                "--offline=yes",
                f"--threshold={int(EXPOSURE[which] * 10)}",
                with_build(which, tmp_path),
            ]
        )
    for which in (service.EXPORT, service.FLIGHT):
        path = with_build(which, tmp_path)
        folder = tmp_path / f"{path.name}.d"
        folder.mkdir()
        file = folder / "override.conf"
        file.write_text(service.drop_in(which))
        done = run(["systemd-analyze", "verify", "--man=no", path])
        assert done.returncode == 0 and not done.stderr, done.stderr
        file.write_text(service.drop_in(which).replace("=", "s=/"))
        assert str(file) in run(["systemd-analyze", "verify", "--man=no", path]).stderr  # it is read


def test_metrics_with_the_rights_of_the_unit(app, closing):
    """An application of root; test_other_users.py has one of another user."""
    exporter = closing(Exporter(app, prefix=service.confined()))
    app.rx(n=10)
    assert exporter.value("ringtap_queue_packets_total", direction="rx", port="net_ring_a") == 10


def test_the_page_with_the_rights_of_the_unit(app, closing, tmp_path):
    """Its output, which is in the journal, has no token."""
    folder = tmp_path / "state"
    folder.mkdir()
    words = [RINGTAP, "web", "--listen", "127.0.0.1:0", "--token-file", folder / "token"]
    web = closing(Proc([*service.confined(service.WEB, folder), *words]))
    url = web.expect(r"^(http://\S+/)$").group(1).decode()
    token = (folder / "token").read_text().strip()
    assert len(token) >= 16 and token not in web.output
    request = urllib.request.Request(f"{url}events", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as events:
        until(lambda: app.prefix.encode() in events.readline())


def test_system_calls_sockets_and_memory_are_those_that_the_unit_allows(app, unit, closing, tmp_path):
    """All calls of the program, with a scrape and the end by a signal."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    log = tmp_path / "strace"
    exporter = closing(
        Exporter(app, prefix=["strace", "-D", "-f", "-o", log])
    )  # -D: the child's pid is that of the program
    assert exporter.up(app) == 1
    exporter.proc.stop()
    until(lambda: log.read_text().endswith("+++ exited with 0 +++\n"), what="all of the log")
    check_calls(log.read_text(), service.EXPORT, 30)


def check_calls(text, unit, at_least):
    """Those of a log of strace against those that a unit allows."""
    used = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)", text, re.M))
    assert len(used) > at_least
    # Refused by ProtectClock=: the state of the clock in the files is "unknown" then.
    assert used - {"adjtimex", "clock_adjtime"} <= service.allowed_calls(unit)
    assert set(re.findall(r" socket\((\w+)", text)) <= set(service.setting("RestrictAddressFamilies", unit).split())
    assert not re.findall(r"PROT_WRITE\|PROT_EXEC|mprotect\(.*PROT_EXEC", text)


# ---- drop-in files of docs/flight.md


def test_comments_of_requests_with_the_drop_in_file(app, closing, tmp_path):
    """Without it the exporter cannot write them down."""
    state = tmp_path / "state"
    state.mkdir(0o700)
    kept = closing(Flight(app, state / "my-app", "--before", "1ms", "--after", "1ms"))
    for drop, status in ("", 500), (service.drop_in(service.EXPORT), 202):
        exporter = closing(
            Exporter(app, args=("--allow-trigger", kept.folder), prefix=service.confined(folder=state, drop=drop))
        )
        assert post(exporter, "/flight/my-app/trigger?comment=alert") == status
    (incident,) = kept.incidents(1)
    kept.finish()
    assert incident["trigger"]["comment"] == "alert"


# ---- ringtap flight

USDT = ("--on", "usdt: ringtap:session_open", "--name", "session")


def service_args(app, folder, options=()):
    """Those of the unit and of its file of options, with a folder instead of the state directory's. %I would
    make a / of each - in the name."""
    words = service.setting("ExecStart", service.FLIGHT).split()[1:]
    defaults = service.setting("Environment", service.FLIGHT).strip('"').partition("=")[2].split()
    args = []
    for word in words:
        args += (
            [*defaults, *options]
            if word == "$RINGTAP_FLIGHT_OPTIONS"
            else [word.replace("%S/ringtap-flight/%i", str(folder)).replace("%i", app.prefix)]
        )
    assert app.prefix in args and "%" not in "".join(map(str, args))
    return args


@pytest.fixture
def bare(closing):
    """A forwarder without the probe."""
    program = BUILD / "e2e" / "fwd_bare"
    if not program.exists():
        pytest.skip("built without ringtap-fwd")
    return lambda **kwargs: closing(
        Fwd(
            [
                "--ring",
                "a",
                "--ring",
                "b",
                "--role",
                "generate:a@0",
                "--role",
                "oneway:a,b@1",
                "--role",
                "sink:b@0",
                "--rate",
                "1k",
            ],
            program=program,
            **kwargs,
        ).running()
    )


def test_recorder_with_the_rights_of_the_unit(bare, closing, tmp_path):
    """Loads the probe, records, answers, and ends with the application, whose end is an incident."""
    app = bare()
    folder = tmp_path / "state"
    folder.mkdir(0o700)
    # Only this shows what the seccomp filter of a container that the tests run in would do to the application.
    also = [] if "Seccomp:\t0" in Path("/proc/self/status").read_text() else ["CAP_SYS_ADMIN"]
    recorder = closing(Proc([*service.confined(service.FLIGHT, folder, also), RINGTAP, *service_args(app, folder)]))
    recorder.expect("^Keeping the packets of")
    until(
        lambda: only(json.loads(check([RINGTAP, "flight", "top", "--once", "--json", app.prefix])))["recorders"][0][
            "kept_packets"
        ],
        what="packets",
    )
    app.proc.kill()
    assert recorder.wait() == 0
    (incident,) = (p for p in folder.iterdir() if p.is_dir())
    assert incident.name.endswith("-exit") and (incident / "incident.json").exists()


def test_flows_with_the_rights_of_the_unit(bare, closing):
    """Loads the probe, sends to a collector, and prints nothing."""
    app = bare()
    also = [] if "Seccomp:\t0" in Path("/proc/self/status").read_text() else ["CAP_SYS_ADMIN"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as collector:
        collector.bind(("127.0.0.1", 0))
        collector.settimeout(PATIENCE)
        to = f"127.0.0.1:{collector.getsockname()[1]}"
        words = [RINGTAP, "flows", "--attach", "-q", "--ipfix", to, "--active-timeout", "1s", "--", app.prefix]
        flows = closing(Proc([*service.confined(service.FLOWS, also=also), *words]))
        while collector.recv(2000)[16] == 0:  # a set of templates
            pass
        flows.send_signal(signal.SIGTERM)
        assert flows.wait() == 0 and not flows.output, flows.output


def test_recorder_waits_for_its_application(bare, closing, tmp_path):
    """And for the next one of that name, when it is started again as by systemd."""
    recorder = closing(Proc([RINGTAP, "flight", "--wait", "--attach", "-w", tmp_path / "i", "rt-none"]))
    recorder.expect("^Waiting for rt-none")
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait() == 0
    app = bare()
    recorder = closing(Proc([RINGTAP, *service_args(app, tmp_path / "i")]))
    recorder.expect("^Keeping the packets of")
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait() == 0


def test_usdt_conditions_with_the_drop_in_file(bare, closing, tmp_path):
    """Without it they are refused. The capability is in the bounding set, so the recorder, of root, has it."""
    if not usdt_sites(PROBE_OBJECT):
        pytest.skip("built without sys/sdt.h")
    app = bare()
    folder = tmp_path / "state"
    folder.mkdir(0o700)
    check([RINGTAP, "attach", app.prefix])
    args = [word for word in service_args(app, folder, USDT) if word != "--wait"]
    done = run([*service.confined(service.FLIGHT, folder), RINGTAP, *args])
    assert done.returncode == FAILED and "with CAP_SYS_ADMIN" in done.stderr
    drop = service.drop_in(service.FLIGHT)
    recorder = closing(
        Proc([*service.confined(service.FLIGHT, folder, drop=drop), RINGTAP, *service_args(app, folder, USDT)])
    )
    recorder.expect("^Keeping the packets of")
    check([RINGTAP, "record", "-i", app.prefix, "-c", "1", "-w", "/dev/null"])
    recorder.expect("^Incident .*-session: ")
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait() == 0


def test_system_calls_of_the_recorder_are_those_that_its_unit_allows(bare, closing, tmp_path):
    """With an attach, an incident, a client, and the end by a signal."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    app, log = bare(), tmp_path / "strace"
    recorder = closing(Proc(["strace", "-D", "-f", "-o", log, RINGTAP, *service_args(app, tmp_path / "i", USDT)]))
    recorder.expect("^Keeping the packets of")
    check([RINGTAP, "flight", "top", "--once", app.prefix])
    check([RINGTAP, "flight", "trigger", "--folder", tmp_path / "i"])
    recorder.expect("^Incident .* packets")
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait() == 0
    until(lambda: log.read_text().endswith("+++ exited with 0 +++\n"), what="all of the log")
    check_calls(log.read_text(), service.FLIGHT, 40)
