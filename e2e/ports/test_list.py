# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap list`: applications, ports, sessions; for people and as JSON."""

import json
import os
import signal
from pathlib import Path

import pytest
from harness import sandbox
from harness.paths import BUILD, RINGTAP
from harness.proc import check, freeze, run, until
from harness.ringtap import FAILED, listing
from ringtap_lab.tools.telemetry import Telemetry


def mine(app):
    found = [a for a in listing() if a["name"] == app.prefix]
    assert len(found) == 1
    return found[0]


COMPLETE = """
source "$1"; shift
COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_ringtap
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words):
    """Completions of bash for the last word."""
    script = BUILD / "cli" / "completion" / "ringtap"
    path = f"{RINGTAP.parent}:{os.environ['PATH']}"
    return check(["bash", "-c", COMPLETE, "bash", script, *words], env={"PATH": path}).split()


def assert_completed(app):
    port = f"{app.prefix}:net_ring_a"
    names = check([RINGTAP, "list", "--names"]).split()
    assert app.prefix in names and port in names
    for words in (["record", "-i"], ["record"], ["latency", "--json"]):
        assert completed("ringtap", *words, app.prefix[:-1]) == [n for n in names if n.startswith(app.prefix[:-1])]
    assert port in completed("ringtap", "record", "-i", "")
    assert app.prefix in completed("ringtap", "list", "")
    assert {app.prefix, port} <= set(completed("ringtap", "top", ""))
    assert "lo" in completed("ringtap", "host", "l")
    assert "record" in completed("ringtap", "help", "re")
    assert "zstd" in completed("ringtap", "record", "--compress", "")


@pytest.mark.smoke
def test_ports_sessions_and_names(play, record):
    """As text, as JSON, and as names, which bash completes. Listing hooks nothing."""
    app = play()
    port = app.ring("a", rxq=3, txq=2)
    app.plug("net_null7")
    entry = mine(app)
    assert entry["pid"] == app.pid and app.one(f"callbacks {port}") == 0
    ports = {p["name"]: p for p in entry["ports"]}
    assert list(ports) == ["net_ring_a", "net_null7"]
    ring = ports["net_ring_a"]
    assert (ring["driver"], ring["rx_queues"], ring["tx_queues"]) == ("net_ring", 3, 2)
    assert len(ring["mac"].split(":")) == 6
    output = check([RINGTAP, "list"])
    assert app.prefix in output and "net_ring_a" in output
    assert_completed(app)
    assert entry["sessions"] == []
    recorder = record(app)
    (session,) = mine(app)["sessions"]
    assert recorder.proc.pid in session.values()
    recorder.finish()
    assert mine(app)["sessions"] == []


def test_telemetry_with_ten_clients(play):
    """DPDK serves no more, and closes the next connection."""
    app = play()
    clients = [Telemetry(app.prefix) for _ in range(10)]
    assert "serves ten clients already" in check([RINGTAP, "list", app.prefix])
    clients[0].close()
    assert check([RINGTAP, "list", "--names", app.prefix]).split() == [app.prefix]
    for client in clients[1:]:
        assert client.ask("/ethdev/list") == []
        client.close()


def test_only_named_applications(play, testpmd):
    """And those that run: one that was killed is not listed. Without the probe there is a name."""
    apps = [play(), play(), play()]
    names = [app.prefix for app in apps]
    found = json.loads(check([RINGTAP, "list", "--json", names[2], names[0]]))["applications"]
    assert sorted(a["name"] for a in found) == sorted([names[0], names[2]])
    assert check([RINGTAP, "list", "--names", names[1]]).split() == [names[1]]
    done = run([RINGTAP, "list", names[1], "no-such-application"])
    assert done.returncode == FAILED and names[1] in done.stdout and names[0] not in done.stdout
    assert "no application is called 'no-such-application'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    # Aliases count all applications.
    assert [a["alias"] for a in found] == [a["alias"] for a in listing() if a["name"] in (names[0], names[2])]
    apps[0].proc.kill()
    bare = testpmd("net_null0", plugin=None)
    output = check([RINGTAP, "list"])
    assert names[0] not in output and names[1] in output and bare.prefix in output


COMMANDS = [
    ["record", "-w", "/dev/null", "-i", "APP:"],
    ["trace", "list", "APP"],
    ["latency", "APP"],
    ["memory", "APP"],
    ["top", "--once", "APP"],
    ["doctor", "APP"],
    ["trace", "dpdk", "-w", "out", "APP"],
]


def test_every_command_reports_that_the_application_is_stopped(app, tmp_path):
    freeze(app.pid)
    try:
        entry = mine(app)
        assert entry["stopped"] is True and f"kill -CONT {app.pid}" in entry["error"]
        output = check([RINGTAP, "list"])
        assert "it is stopped (SIGSTOP)" in output and f"kill -CONT {app.pid}" in output
        for command in COMMANDS:
            done = run([RINGTAP, *(word.replace("APP", app.prefix) for word in command)], cwd=tmp_path)
            assert done.returncode == FAILED, done
            assert "it is stopped (SIGSTOP)" in done.stderr, done.stderr
            assert f"kill -CONT {app.pid}" in done.stderr and app.prefix in done.stderr, command
    finally:
        app.proc.send_signal(signal.SIGCONT)
    assert mine(app)["stopped"] is False


def test_frozen_application_is_reported(play):
    with_freezer = Path("/sys/fs/cgroup/freezer")
    version = 1 if with_freezer.is_dir() else 2
    base = with_freezer if version == 1 else Path("/sys/fs/cgroup")
    group = base / f"ringtap-{os.getpid()}"
    app = play()
    try:
        group.mkdir()
    except OSError as e:
        pytest.skip(f"no control group can be made here: {e}")
    name, on, off = ("freezer.state", "FROZEN", "THAWED") if version == 1 else ("cgroup.freeze", "1", "0")
    try:
        (group / "cgroup.procs").write_text(str(app.pid))
        (group / name).write_text(on)
        try:
            entry = mine(app)
        finally:
            (group / name).write_text(off)
        assert entry["stopped"] is True and f"process {app.pid} is frozen" in entry["error"]
    finally:
        (base / "cgroup.procs").write_text(str(app.pid))
        until(lambda: not (group / "cgroup.procs").read_text(), what="the group is empty")
        group.rmdir()


def test_as_another_user(app):
    """Another user's process is named with its user: this one cannot load the probe into it."""
    done = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sandbox.public(RINGTAP), "list"])
    assert done.returncode == 0
    assert f"(pid {app.pid})\n  runs as root; run ringtap as that user or as root\n" in done.stdout
    assert "attach" not in done.stdout
