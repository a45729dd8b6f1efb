# SPDX-License-Identifier: BSD-3-Clause
"""Applications that end DPDK, by rte_eal_cleanup() or exit(), with all kinds of readers
attached. probe/dpdk/teardown_test.c has the order of the ends."""

import json
import socket
import threading

import pytest
from harness import dpdk
from harness.cases import nightly
from harness.known import Measuring
from harness.paths import BUILD, RINGTAP
from harness.play import Play
from harness.proc import Proc, of_tasks, run, until
from harness.ringtap import FAILED, listing

TIMES = 3
COMMANDS = ("ports", "threads", "polling", "latency", "mempools", "addresses", "trace", "trace,on")
KINDS = pytest.mark.parametrize("kind", ["plugin", nightly("linked in"), nightly("static")])


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
def test_cleanup_under_all_readers(start, closing, record, kind, tmp_path):
    """Monitors, a recorder at full rate, and a query whose lease of ten seconds has not ended."""
    for i in range(TIMES):
        app = start(kind)
        top = closing(Proc([RINGTAP, "top", "--json", "--interval", "0.1s", app.prefix]))
        top.expect('"collectors"')
        memory = closing(Measuring("memory", app, "--json", "--duration", "1h"))
        recorder = record(app, out=tmp_path / f"{i}.pcapng")
        before = app.one("count")
        until(lambda: app.one("count") > before + 100_000, what="packets")
        assert answers(app, "mempools")["mempools"]
        app.do("unloop")
        assert app.one("cleanup") == 0
        assert memory.json()["ended"]
        assert "has ended" in recorder.done()
        still_alive(app)
        assert recorder.file().packets
        recorder.out.unlink()
        top.send_signal(2)
        assert top.wait() == 0
        assert app.quit() == 0


def test_cleanup_after_a_query(start):
    app = start("plugin")
    assert answers(app, "mempools")["mempools"]
    app.do("unloop")
    assert app.one("cleanup") == 0
    still_alive(app)
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


def test_cleanup_with_queries_in_flight(start, closing):
    for _ in range(TIMES):
        app = start("plugin")
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
def test_exit(start, record, closing, kind):
    for polling in (False, True):
        app = start(kind)
        memory = closing(Measuring("memory", app, "--json", "--duration", "1h"))
        recorder = record(app, out="/dev/null")
        if not polling:
            app.do("unloop")
        app.proc.send("exit 7")
        assert app.proc.wait() == 7
        assert memory.json()["ended"]
        recorder.done()
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
