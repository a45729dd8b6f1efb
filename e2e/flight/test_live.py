# SPDX-License-Identifier: BSD-3-Clause
"""Answers of a running recorder: ringtap flight top, and its metrics in ringtap export."""

import json
import os
import re
import signal
import socket
import stat

import pytest
from harness import flight, tmux
from harness.documents import only
from harness.dpdk import RUN_DIR
from harness.flight import state
from harness.paths import RINGTAP
from harness.proc import Proc, check, child, run, until
from harness.prometheus import Exporter
from harness.ringtap import FAILED
from harness.tmux import Terminal


def sockets(app):
    return sorted(RUN_DIR.joinpath(app.prefix).glob("*ringtap-flight-*"))


def test_what_is_kept_is_what_was_captured(app, keep, closing):
    """A known number of packets, and nothing rolls over. A packet is not a number; an interval has a value once it has
    passed."""
    kept = keep(
        app,
        "--on",
        "packet: len == 64",
        "--cooldown",
        "1h",
        "--before",
        "1ms",
        "--after",
        "1ms",
        "--on",
        "missed > 10/s over 1s",
        "--on",
        "pool < 1%",
    )
    sent = app.tx(n=3000, len=100)[0]
    got = app.rx(n=700, len=60)
    assert app.tx(n=5, len=64)[0] == 5
    until(lambda: state(app)["kept_packets"] >= sent + 705, what="all packets")
    now = state(app)
    assert now["kept_packets"] == sent + 705, got
    assert sum(p["packets"] for p in now["ports"]) == sent + 705
    assert sum(p["bytes"] for p in now["ports"]) == 100 * sent + 60 * 700 + 64 * 5
    assert 0 < now["kept_bytes"] <= now["buffer_bytes"] == 256 << 20
    assert now["folder"] == str(kept.folder)
    assert now["lost"] == now["failed"] == 0

    def met():
        packet, missed = state(app)["conditions"][:2]
        return packet["suppressed"] == 4 and missed["value"] and (packet, missed)

    packet, missed = until(met, what="all five packets and an interval")
    assert packet["incidents"] == 1
    assert packet["value"] is packet["threshold"] is packet["threshold_share"] is None
    assert missed["value"] == "0 packets/s" and missed["threshold"] == "10 packets/s"
    assert missed["threshold_share"] == missed["incidents"] == 0
    check_texts(app, closing)
    (path,) = sockets(app)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept.finish()
    assert not sockets(app)
    done = run([RINGTAP, "flight", "top", "--once", app.prefix])
    assert done.returncode == FAILED and "no recorder of" in done.stderr


def check_texts(app, closing):
    text = check([RINGTAP, "flight", "top", "--once", app.prefix])
    assert f"{app.prefix}: the last " in text and "net_ring_a" in text
    assert re.search(r"^packet: len == 64 +- .* 1 +4$", text, re.MULTILINE), text
    assert re.search(r"^missed > 10/s over 1s +0 packets/s +10 packets/s +0 ", text, re.MULTILINE), text
    assert check([RINGTAP, "flight", "top", "--once"]).count("CONDITION") >= 1
    lines = closing(Proc([RINGTAP, "flight", "top", "--json", "--interval", "0.2s", app.prefix]))
    for _ in range(3):
        assert json.loads(lines.expect(r"^\{.*\}$").group())
    lines.stop(signal.SIGINT)


def test_conditions_have_values_and_distances(testpmd, keep):
    pmd = testpmd("net_null0", "net_null1", mbufs=4000)
    kept = keep(
        pmd, "--on", "pool < 1%", "--on", "gap > 100s", "--on", "missed", "--on", "exit", "--on", "idle-gap > 61us"
    )
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
    assert c["command"]["incidents"] == 0 and c["command"]["before_ns"] == 2e9
    flight.command("trigger", kept.folder)
    until(lambda: any(i["name"].endswith("-command") for i in state(pmd)["recent"]), what="the incident in the answer")
    now = state(pmd)
    assert {c["condition"]: c["incidents"] for c in now["conditions"]}["command"] == 1
    assert {i["name"] for i in now["recent"]} <= {p.name for p in kept.folders()}
    assert now["incomplete"] >= 1 and now["missing_ns"] > 0  # it began less than 2 s before


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


def test_sockets_of_others(app, keep, tmp_path):
    """That of a killed recorder is removed, and nothing of it is left in the application. What a third user answers is
    not shown."""
    kept = keep(app)
    (old,) = sockets(app)
    kept.proc.kill()
    until(lambda: app.one("callbacks 0") == 0, what="no callback is left")
    assert run([RINGTAP, "flight", "top", "--once", app.prefix]).returncode == FAILED
    for user, status in (0, 0), (65534, FAILED):
        pid = answering(
            app, json.dumps({"application": {"name": app.prefix}, "folder": "/x", "conditions": []}).encode(), user
        )
        try:
            assert run([RINGTAP, "flight", "top", "--once", app.prefix]).returncode == status
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            (RUN_DIR / app.prefix / "ringtap-flight-1").unlink()
    again = keep(app, folder=tmp_path / "others")
    assert old not in sockets(app) and len(sockets(app)) == 1
    # Two at a time.
    third = keep(app, folder=tmp_path / "third")
    found = only(json.loads(check([RINGTAP, "flight", "top", "--once", "--json", app.prefix])))["recorders"]
    assert {r["folder"] for r in found} == {str(again.folder), str(third.folder)}


def answering(app, text, user=0):
    """The process id of one that listens as a user, and answers once."""
    path = RUN_DIR / app.prefix / "ringtap-flight-1"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        ready, listens = os.pipe()

        def answer():
            os.setuid(user)
            server.listen()
            os.write(listens, b"x")
            server.accept()[0].sendall(text)

        pid = child(answer)
        os.read(ready, 1)
        os.close(ready)
        os.close(listens)
    return pid


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
    (seconds,) = until(lambda: exporter.values("ringtap_flight_kept_seconds"), what="the seconds")
    assert seconds > 0.1
    exporter.becomes("ringtap_flight_buffer_bytes", 256 << 20)
    for name in (
        "incidents_failed_total",
        "incidents_incomplete_total",
        "missing_seconds_total",
        "lost_packets_total",
        "incidents_in_progress",
    ):
        exporter.becomes(f"ringtap_flight_{name}", 0, **labels)
    kept.finish()
    until(lambda: not [s for s in exporter.series() if s.startswith("ringtap_flight_")], what="none of its series")
