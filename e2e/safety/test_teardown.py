# SPDX-License-Identifier: BSD-3-Clause
"""Applications that end DPDK, by rte_eal_cleanup() or exit(), with all kinds of readers
attached."""
import json
import socket
import threading

import pytest

from harness import dpdk
from harness.known import Measuring
from harness.paths import BUILD, RINGTAP
from harness.play import Play
from harness.proc import Proc, of_tasks, run, until
from harness.ringtap import FAILED, listing

MANY = {"plugin": 10, "linked in": 10, "static": 3}
SOME = {"plugin": 3, "linked in": 3, "static": 2}
COMMANDS = ("ports", "threads", "polling", "latency", "mempools", "addresses", "trace", "trace,on")
KINDS = pytest.mark.parametrize("kind", ["plugin", "linked in", "static"])


@pytest.fixture
def start(plugin, closing):
    """start(kind) returns an application with the probe and a port that delivers packets."""
    def start(kind):
        program = {"plugin": "rt_play", "linked in": "rt_play_linkin", "static": "rt_play_static"}[kind]
        if not (BUILD / "e2e" / program).exists():
            pytest.skip("built without DPDK's static libraries")
        app = closing(Play(None if kind == "linked in" else plugin, program=program))
        if kind == "linked in":
            app.do("probe_start")
        app.plug("net_null0", args="size=100")
        app.do("loop 0 0")
        return app
    return start


def threads(app):
    return [name.strip() for name in of_tasks(app.pid, "comm").values()]


def answers(app, command):
    return dpdk.telemetry(app.prefix, f"/ringtap/{command}")[f"/ringtap/{command.split(',')[0]}"]


def still_alive(app):
    """The application continues, without a thread of the probe, and readers cannot attach any
    more."""
    assert app.one("now") > 0
    assert "ringtap-ctl" not in threads(app)
    assert not (dpdk.RUN_DIR / app.prefix / "ringtap.sock").exists()
    for command in COMMANDS:
        assert answers(app, command) is None
    assert answers(app, "attach")["status"] == -108  # ESHUTDOWN
    assert app.one("now") > 0


@KINDS
def test_cleanup_under_monitors(start, closing, kind):
    for _ in range(MANY[kind]):
        app = start(kind)
        top = closing(Proc([RINGTAP, "top", "--json", "--interval", "0.1", app.prefix]))
        top.expect('"collectors"')
        memory = closing(Measuring("memory", app, "--json", "--duration", "60"))
        assert answers(app, "mempools")["mempools"]
        app.do("unloop")
        assert app.one("cleanup") == 0
        assert memory.json()["application_ended"]
        still_alive(app)
        top.send_signal(2)
        assert top.wait() == 0
        assert app.quit() == 0


@KINDS
def test_cleanup_after_a_query(start, kind):
    """The lease of the query lasts ten seconds."""
    for _ in range(SOME[kind]):
        app = start(kind)
        assert answers(app, "mempools")["mempools"]
        app.do("unloop")
        assert app.one("cleanup") == 0
        still_alive(app)
        assert app.quit() == 0


@KINDS
def test_cleanup_of_a_capture_at_full_rate(start, record, kind, tmp_path):
    for i in range(SOME[kind]):
        app = start(kind)
        recorder = record(app, out=tmp_path / f"{i}.pcapng")
        before = app.one("count")
        until(lambda: app.one("count") > before + 100_000, what="packets")
        app.do("unloop")
        assert app.one("cleanup") == 0
        assert "has ended" in recorder.done(timeout=120)
        still_alive(app)
        assert recorder.file().packets
        recorder.out.unlink()
        assert app.quit() == 0


class Asking(threading.Thread):
    """Sends queries in sequence, on one connection, until the end."""

    def __init__(self, app):
        super().__init__()
        self.answers = []
        self._stop_asking = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(str(dpdk.RUN_DIR / app.prefix / "dpdk_telemetry.v2"))
        self._limit = json.loads(self._socket.recv(1024))["max_output_len"]
        self.start()

    def run(self):
        number = 0
        while not self._stop_asking.is_set():
            command = COMMANDS[number % len(COMMANDS)]
            self._socket.send(f"/ringtap/{command}".encode())
            self.answers.append(json.loads(self._socket.recv(self._limit)))
            number += 1

    def close(self):
        self._stop_asking.set()
        self.join()
        self._socket.close()


@KINDS
def test_cleanup_with_queries_in_flight(start, closing, kind):
    for _ in range(SOME[kind]):
        app = start(kind)
        asking = [closing(Asking(app)) for _ in range(3)]
        assert answers(app, "mempools")["mempools"]
        app.do("unloop")
        assert app.one("cleanup") == 0
        for it in asking:
            it.close()
            assert it.answers
        still_alive(app)
        assert app.quit() == 0


@KINDS
@pytest.mark.parametrize("polling", [False, True], ids=["idle", "polling"])
def test_exit(start, record, closing, kind, polling):
    for _ in range(SOME[kind]):
        app = start(kind)
        memory = closing(Measuring("memory", app, "--json", "--duration", "60"))
        recorder = record(app, out="/dev/null")
        if not polling:
            app.do("unloop")
        app.proc.send("exit 7")
        assert app.proc.wait() == 7
        assert memory.json()["application_ended"]
        recorder.done(timeout=120)
        assert not (dpdk.RUN_DIR / app.prefix / "ringtap.sock").exists()


@pytest.mark.smoke
def test_messages(start):
    app = start("plugin")
    app.do("unloop")
    app.do("cleanup")
    entry = next(a for a in listing() if a["name"] == app.prefix)
    done = run([RINGTAP, "top", "--once", app.prefix])
    assert done.returncode == FAILED
    assert "has ended DPDK" in entry["error"] and "has ended DPDK" in done.stderr
    assert app.quit() == 0
