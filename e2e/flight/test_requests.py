# SPDX-License-Identifier: BSD-3-Clause
"""Incidents on request: ringtap flight trigger, and POST to ringtap export."""

import fcntl
import json
import os
import signal
import sys
import time
import urllib.error

import pytest
from harness import flight
from harness.flight import comments
from harness.paths import RINGTAP
from harness.proc import Proc, check, until
from harness.prometheus import Exporter, get, post
from harness.ringtap import FAILED

AGAIN_S = 0.5  # base/signals.h, STOP_AGAIN_NS


def test_requests(app, keep):
    """With and without a comment; of one without capabilities, as the unit of the exporter has it: the recorder's files
    in /proc cannot be read; with a pipe among them; and SIGUSR1 of any program."""
    kept = keep(app, "--before", "1ms", "--after", "1s")
    flight.command("trigger", kept.folder, "--comment", "link\x1b flapped")
    kept.proc.expect("^Incident")
    app.tx(n=10, len=100)
    (first,) = kept.incidents(1)
    check(
        [
            "setpriv",
            "--bounding-set=-all,+dac_override",
            "--inh-caps=-all",
            RINGTAP,
            "flight",
            "trigger",
            "--folder",
            kept.folder,
        ]
    )
    second = kept.incidents(2)[1]
    os.mkfifo(kept.folder / ".request-1")
    flight.command("trigger", kept.folder, "--comment", "text")
    third, fourth = kept.incidents(4)[2:]
    assert sorted(str(i["trigger"]["comment"]) for i in (third, fourth)) == ["None", "text"]
    kept.proc.send_signal(signal.SIGUSR1)
    fifth = kept.incidents(5)[4]
    kept.finish()
    assert first["trigger"]["comment"] == "link? flapped"
    assert second["trigger"]["comment"] is fifth["trigger"]["comment"] is None
    assert comments(first.file)[0].endswith("Z: link? flapped")
    assert "comment: link? flapped" in flight.command("show", kept.folder, first.folder.name)
    assert json.loads(flight.command("show", kept.folder, first.folder.name, "--json")) == first.data
    assert [p.name for p in kept.folder.iterdir() if p.is_file()] == [".recorder"]


def test_duration(app, keep):
    """The recorder ends by itself, and finishes an incident whose window ends later."""
    kept = keep(app, "--duration", "2s", "--after", "3s")
    kept.proc.send_signal(signal.SIGUSR1)
    output = kept.done()
    (incident,) = kept.incidents(1)
    assert "Incidents: 1" in output
    assert incident.at("to") - incident.at("from") >= 3e9


@pytest.fixture
def victim(closing):
    """A process that says when it gets SIGUSR1, and nothing else."""
    return closing(
        Proc(
            [
                sys.executable,
                "-c",
                "import signal; "
                "signal.signal(signal.SIGUSR1, lambda *a: print('signalled', flush=True)); "
                "print('ready', flush=True)\nwhile True: signal.pause()",
            ]
        )
    )


def test_requests_reach_no_other_process(victim, tmp_path):
    """The folder's owner writes which process the recorder is, and keeps the file locked."""
    victim.expect("ready")
    for owner in 0, 65534:
        folder = tmp_path / str(owner)
        folder.mkdir()
        lock = folder / ".recorder"
        lock.write_text(f"{victim.pid}\n")
        os.chown(lock, owner, owner)
        os.chown(folder, owner, owner)
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for args in (), ("--comment", "text"):
                assert "not permitted" in flight.command("trigger", folder, *args, status=FAILED)
        assert [p.name for p in folder.iterdir()] == [".recorder"]
    victim.send_signal(signal.SIGTERM)
    victim.wait()
    assert "signalled" not in victim.output


@pytest.mark.nightly  # it takes ten seconds, which recorder/request_test.c has as well
def test_a_recorder_that_waits_takes_no_request(tmp_path, closing):
    waiting = closing(Proc([RINGTAP, "flight", "no-such-app", "--wait", "-w", tmp_path / "waiting"]))
    waiting.expect("Waiting")
    request = closing(Proc([RINGTAP, "flight", "trigger", "--folder", tmp_path / "waiting"]))
    assert request.wait() == FAILED and "may wait for its application" in request.output
    assert [p.name for p in (tmp_path / "waiting").iterdir()] == [".recorder"]


def test_refused_requests_fail(app, keep):
    """A request of which the recorder makes no incident ends with a failure and the reason."""
    kept = keep(app, "--before", "1ms", "--after", "600s")
    for _ in range(16):
        flight.command("trigger", kept.folder)
    refused = flight.command("trigger", kept.folder, "--comment", "text", status=FAILED)
    assert "the recorder reports: flight: command: 16 incidents are being written already" in refused
    kept.proc.send_signal(signal.SIGINT)
    first = time.monotonic()
    flight.command("trigger", kept.folder, status=FAILED)
    until(lambda: time.monotonic() > first + AGAIN_S, what="a signal to be another wish to end")
    kept.finish(status=FAILED)
    assert len(kept.folders()) == 16
    assert [p.name for p in kept.folder.iterdir() if p.is_file()] == [".recorder"]


def test_http_requests(app, keep, closing, net):
    """To this host, and from another network namespace, only with --trigger-from any."""
    host, device = net.add_host("192.0.2.1")
    address = "192.0.2.254"
    check(["ip", "-n", net.hub.name, "addr", "add", f"{address}/24", "dev", device])
    kept = keep(app, "--before", "1ms", "--after", "1ms")
    url = f"http://{address}:{{}}/flight/{kept.folder.name}/trigger"
    for allowed, status in ("loopback", "403"), ("any", "202"):
        exporter = closing(
            Proc(
                [
                    *net.hub.prefix,
                    RINGTAP,
                    "export",
                    "--listen",
                    f"{address}:0",
                    "--allow-trigger",
                    kept.folder,
                    "--trigger-from",
                    allowed,
                ]
            )
        )
        port = exporter.expect(r"^Exporting at http://\S+:(\d+)/").group(1).decode()
        got = check(
            [*host.prefix, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", url.format(port)]
        )
        assert got == status
    kept.incidents(1)
    exporter = closing(Exporter(app, args=("--allow-trigger", kept.folder)))
    path = f"/flight/{kept.folder.name}/trigger"
    assert post(exporter, path + "?comment=alert%201", b"{}" * 100) == 202
    incident = kept.incidents(2)[1]
    assert incident["trigger"]["comment"] == "alert 1" and incident.condition == "command"
    assert get(exporter.url)[0] == 200
    with pytest.raises((OSError, urllib.error.URLError)):
        post(exporter, path, b"x" * 1_000_000)
    kept.finish()
    until(lambda: post(exporter, path) == 503, what="the end of the second after a request")
    assert len(kept.folders()) == 2
