# SPDX-License-Identifier: BSD-3-Clause
"""What a running recorder answers: ringtap flight top, and its metrics in ringtap export."""
import json
import os
import re
import resource
import signal
import socket
import stat
from pathlib import Path

import pytest

from harness import flight, tmux
from harness.dpdk import RUN_DIR
from harness.flight import state
from harness.paths import RINGTAP
from harness.proc import Proc, check, run, until
from harness.prometheus import Exporter
from harness.ringtap import FAILED, USAGE
from harness.tmux import Terminal


def sockets(app):
    return sorted(RUN_DIR.joinpath(app.prefix).glob("*ringtap-flight-*"))


def test_what_is_kept_is_what_was_captured(app, keep):
    """A known number of packets, and nothing rolls over."""
    kept = keep(app, "--on", "pool < 1%")
    sent = app.tx(n=3000, len=100)[0]
    got = app.rx(n=700, len=60)
    until(lambda: state(app)["kept_packets"] >= sent + 700, what="all packets")
    now = state(app)
    assert now["kept_packets"] == sent + 700, got
    assert sum(p["packets"] for p in now["ports"]) == sent + 700
    assert sum(p["bytes"] for p in now["ports"]) == 100 * sent + 60 * 700
    assert 0 < now["kept_bytes"] <= now["buffer_bytes"] == 256 << 20
    assert now["application"] == app.prefix and now["folder"] == str(kept.folder)
    assert now["lost"] == now["failed"] == now["incomplete"] == 0
    path, = sockets(app)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept.finish()
    assert not sockets(app)


def test_packets_that_rolled_over_are_not_counted(busy, keep):
    """Memory for a part of what was captured."""
    keep(busy, "--keep", "16M", "--direction", "rx")

    def rolled():
        now = state(busy)
        return now["kept_ns"] < 5e9 and now["time_ns"] and now

    first = until(rolled, what="an answer")
    check(["sleep", "1.5"])
    now = state(busy)
    # A record takes its packet and some 50 bytes more; the rate between two readings is not even.
    assert 0 < now["kept_packets"] < now["buffer_bytes"] / 40
    assert now["kept_ns"] < now["time_ns"] - first["time_ns"]


def test_conditions_have_values_and_distances(testpmd, keep):
    pmd = testpmd("net_null0", "net_null1", mbufs=4000)
    kept = keep(pmd, "--on", "pool < 1%", "--on", "gap > 100s", "--on", "missed", "--on", "exit",
                "--on", "idle-gap > 61us")
    pmd.start()

    def known():
        c = {c["condition"]: c for c in state(pmd)["conditions"]}
        return all(c[n]["value"] for n in ("pool < 1%", "gap > 100s", "missed")) and c

    c = until(known, what="values")
    assert c["pool < 1%"]["where"] and c["pool < 1%"]["threshold"] == "1 %"
    assert 0 < c["pool < 1%"]["threshold_share"] < 0.2
    assert c["gap > 100s"]["threshold"] == "100 s" and 0 <= c["gap > 100s"]["threshold_share"] < 0.5
    assert c["missed"]["value"] == "0 packets" and c["missed"]["threshold_share"] is None
    assert c["idle-gap > 61us"]["threshold"] == "61 us"
    assert c["exit"]["value"] is c["exit"]["threshold"] is None and "command" in c
    assert c["command"]["incidents"] == 0 and c["command"]["before_s"] == 2
    flight.command("trigger", kept.folder)
    until(lambda: any(i["name"].endswith("-command") for i in state(pmd)["recent"]), what="the incident in the answer")
    now = state(pmd)
    assert {c["condition"]: c["incidents"] for c in now["conditions"]}["command"] == 1
    assert {i["name"] for i in now["recent"]} <= {p.name for p in kept.folders()}
    assert now["incomplete"] >= 1 and now["missing_ns"] > 0  # it began less than 2 s before


def test_conditions_on_packets_and_intervals(app, keep):
    """A packet is not a number; an interval has a value once it has passed."""
    keep(app, "--on", "packet: len == 60", "--cooldown", "1h", "--on", "missed > 10/s over 1s")
    assert app.tx(n=5, len=60)[0] == 5

    def met():
        packet, missed = state(app)["conditions"][:2]
        return packet["suppressed"] == 4 and missed["value"] and (packet, missed)

    packet, missed = until(met, what="all five packets and an interval")
    assert packet["incidents"] == 1
    assert packet["value"] is packet["threshold"] is packet["threshold_share"] is None
    assert missed["value"] == "0 packets/s" and missed["threshold"] == "10 packets/s"
    assert missed["threshold_share"] == missed["incidents"] == 0
    text = check([RINGTAP, "flight", "top", app.prefix])
    assert re.search(r"^packet: len == 60 +- .* 1 +4$", text, re.MULTILINE), text
    assert re.search(r"^missed > 10/s over 1s +0 packets/s +10 packets +0 ", text, re.MULTILINE), text


def test_top_as_text(app, keep, closing):
    keep(app, "--on", "gap > 50us")
    app.tx(n=100)
    text = check([RINGTAP, "flight", "top", app.prefix])
    assert f"{app.prefix}: the last " in text and "gap > 50us" in text and "net_ring_a" in text
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith((app.prefix, "/")))
    assert check([RINGTAP, "flight", "top", "--once"]).count("CONDITION") >= 1
    lines = closing(Proc([RINGTAP, "flight", "top", "--json", "-n", "0.2", app.prefix]))
    for _ in range(3):
        assert json.loads(lines.expect(r"^\{.*\}$").group())
    lines.stop(signal.SIGINT)


@pytest.mark.tools
def test_top_on_a_terminal(app, keep, closing):
    if tmux.missing():
        pytest.skip(tmux.missing())
    kept = keep(app, "--on", "gap > 50us")
    terminal = closing(Terminal([RINGTAP, "flight", "top", app.prefix], 100, 30))
    terminal.shows(r"^ringtap flight top")
    terminal.shows(r"^gap > 50us")
    app.tx(n=100)
    terminal.shows(r"^net_ring_a +100 ")
    flight.command("trigger", kept.folder)
    terminal.shows(r"^20\d+T\d+\.\d+-command +100 ")
    kept.finish()
    terminal.shows("no recorder answers; waiting")
    terminal.keys("q")
    assert terminal.ended() == 0


def test_top_without_a_recorder(app):
    done = run([RINGTAP, "flight", "top", app.prefix])
    assert done.returncode == FAILED and "no recorder of" in done.stderr
    done = run([RINGTAP, "flight", "top", "-n", "0"])
    assert done.returncode == USAGE and "out of range" in done.stderr


def test_socket_of_a_killed_recorder_is_removed(app, keep, tmp_path):
    kept = keep(app)
    old, = sockets(app)
    kept.proc.kill()
    assert run([RINGTAP, "flight", "top", app.prefix]).returncode == FAILED
    again = keep(app, folder=tmp_path / "others")
    assert old not in sockets(app) and len(sockets(app)) == 1
    # Two at a time.
    third = keep(app, folder=tmp_path / "third")
    found = json.loads(check([RINGTAP, "flight", "top", "--json", app.prefix]))["recorders"]
    assert {r["folder"] for r in found} == {str(again.folder), str(third.folder)}


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"application": 5}', b"x" * 100_000, b"{" * 100_000])
def test_a_socket_that_is_no_recorder(app, answer):
    """Its application is not trusted by root."""
    path = RUN_DIR / app.prefix / "ringtap-flight-1"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        child = os.fork()
        if not child:
            client = server.accept()[0]
            client.sendall(answer)
            os._exit(0)
        try:
            done = run([RINGTAP, "flight", "top", app.prefix])
            assert done.returncode == FAILED and "no recorder" in done.stderr
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            path.unlink()


def cpu_seconds(pid):
    """CPU seconds of its main thread."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def answering(app, text, user=0):
    """The process id of one that listens as a user, and answers once."""
    path = RUN_DIR / app.prefix / "ringtap-flight-1"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        ready, listens = os.pipe()
        child = os.fork()
        if not child:
            os.setuid(user)
            server.listen()
            os.write(listens, b"x")
            server.accept()[0].sendall(text)
            os._exit(0)
        os.read(ready, 1)
        os.close(ready)
        os.close(listens)
    return child


@pytest.mark.parametrize("user,conditions,status", [(0, 33, 0), (0, 34, FAILED), (65534, 1, FAILED)])
def test_answers_of_others(app, user, conditions, status):
    """More than a recorder has, and what a third user answers."""
    text = {"application": app.prefix, "folder": "/x", "conditions": [{"condition": "gap"}] * conditions}
    child = answering(app, json.dumps(text).encode(), user)
    try:
        assert run([RINGTAP, "flight", "top", app.prefix]).returncode == status
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        (RUN_DIR / app.prefix / "ringtap-flight-1").unlink()


def test_no_descriptor_for_a_client(app, keep):
    """It waits; the recorder does not spin meanwhile, and answers when there is one again."""
    kept = keep(app)
    soft, hard = resource.prlimit(kept.proc.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(kept.proc.pid, resource.RLIMIT_NOFILE, (8, hard))  # poll() needs some
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(sockets(app)[0]))
        before = cpu_seconds(kept.proc.pid)
        check(["sleep", "2"])
        assert cpu_seconds(kept.proc.pid) - before < 0.3
        resource.prlimit(kept.proc.pid, resource.RLIMIT_NOFILE, (soft, hard))
        client.settimeout(20)
        assert client.recv(1)
    kept.finish()


def test_a_socket_that_does_not_answer(app, closing):
    path = RUN_DIR / app.prefix / "ringtap-flight-1"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        try:
            assert run([RINGTAP, "flight", "top", app.prefix]).returncode == FAILED
            exporter = closing(Exporter(app))
            until(lambda: not [s for s in exporter.series() if s.startswith("ringtap_flight_")], what="none of its series")
        finally:
            path.unlink()


def test_metrics_in_export(app, keep, closing):
    kept = keep(app, "--before", "50ms", "--after", "1ms", "--on", "gap > 100s")
    exporter = closing(Exporter(app))
    sent = app.tx(n=1000, len=100)[0]
    labels = {"app": app.prefix, "folder": str(kept.folder)}
    # Recorders are asked once a second, whenever Prometheus comes.
    exporter.becomes("ringtap_flight_kept_packets", sent, **labels)
    check(["sleep", "0.1"])
    flight.command("trigger", kept.folder)
    kept.incidents(1)
    exporter.becomes("ringtap_flight_incidents_total", 1, condition="command")
    exporter.becomes("ringtap_flight_incidents_total", 0, condition="gap > 100s")
    seconds, = until(lambda: exporter.values("ringtap_flight_kept_seconds"), what="the seconds")
    assert seconds > 0.1
    exporter.becomes("ringtap_flight_buffer_bytes", 256 << 20)
    for name in ("incidents_failed_total", "incidents_incomplete_total", "missing_seconds_total",
                 "lost_packets_total", "incidents_in_progress"):
        exporter.becomes(f"ringtap_flight_{name}", 0, **labels)
    kept.finish()
    until(lambda: not [s for s in exporter.series() if s.startswith("ringtap_flight_")], what="none of its series")
