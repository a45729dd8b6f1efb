# SPDX-License-Identifier: BSD-3-Clause
"""The cost of the control thread for its application."""

import contextlib
import os
import re
import resource
import select
import signal
import socket
import time
from pathlib import Path

import pytest
from harness import wire
from harness.dpdk import RUN_DIR
from harness.paths import RINGTAP
from harness.proc import Proc, of_tasks, run, until
from harness.ringtap import FAILED, sessions

TICKS = 20  # ticks of the control thread: 1 s


def control_thread_s(pid):
    """CPU time of the control thread, in seconds."""
    for tid, name in of_tasks(pid, "comm").items():
        if "ringtap-ctl" in name:
            return int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0]) / 1e9
    raise AssertionError("there is no control thread")


def fds_of(app):
    return [int(fd) for fd in os.listdir(f"/proc/{app.pid}/fd")]


def connected(app):
    """Opens a connection without sending anything."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(str(RUN_DIR / app.prefix / "ringtap.sock"))
    return client


def greet(client):
    """The connection stays from now on, also if it is silent."""
    client.send(wire.hello())
    assert wire.HEADER.unpack_from(client.recv(4096))[2] == wire.WELCOME
    return client


def offer(app):
    """Opens a connection and greets; returns it and whether it was refused."""
    before = len(fds_of(app))
    client = connected(app)

    def readable():
        return bool(select.select([client], [], [], 0)[0])

    until(lambda: readable() or len(fds_of(app)) > before, what="an answer")
    refused = readable()
    return client if refused else greet(client), refused


def test_running_capture_interrupts_no_core(busy, record, closing, tmp_path):
    """membarrier(2) interrupts every core that runs a thread of the application: it must not be
    called."""
    if run(["strace", "-V"]).returncode:
        pytest.skip("needs strace")
    recorder = record(busy, "-s", "64", out="/dev/null")
    log = tmp_path / "calls"
    tracer = closing(Proc(["strace", "-f", "-e", "trace=membarrier,poll", "-o", log, "-p", busy.pid]))
    until(lambda: log.exists() and log.read_text().count("poll(") >= TICKS, what="ticks of the control thread")
    calls = log.read_text()
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    assert "membarrier" not in calls
    recorder.finish()


def test_limit_of_descriptors_costs_no_cpu(play, record, tmp_path):
    """Clients are refused with the reason, and accepted again when descriptors are free."""
    app = play(linkin=True)
    app.ring("a")
    assert app.one("probe_start") == 0
    keep = resource.prlimit(app.pid, resource.RLIMIT_NOFILE)
    limit = max(fds_of(app)) + 1
    resource.prlimit(app.pid, resource.RLIMIT_NOFILE, (limit, keep[1]))
    clients = [offer(app)]
    while not clients[-1][1]:  # lower descriptors may have been free
        clients.append(offer(app))
    begun, used = time.monotonic(), control_thread_s(app.pid)
    for _ in range(3):
        done = run([RINGTAP, "record", "-i", f"{app.prefix}:", "-w", tmp_path / "none"])
        assert done.returncode == FAILED
        assert "Too many open files; raise its limit of open files" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert control_thread_s(app.pid) - used < (time.monotonic() - begun) / 4
    for client, _ in clients:
        client.close()
    resource.prlimit(app.pid, resource.RLIMIT_NOFILE, keep)
    recorder = record(app)
    app.rx(n=5)
    recorder.finish()
    assert len(recorder.file().packets) == 5


@pytest.mark.nightly
def test_limit_below_the_number_of_connections_costs_no_cpu(play, closing):
    """poll(2) then fails immediately."""
    app = play(linkin=True)
    app.ring("a")
    assert app.one("probe_start") == 0
    keep = resource.prlimit(app.pid, resource.RLIMIT_NOFILE)
    clients = [greet(closing(connected(app))) for _ in range(4)]
    resource.prlimit(app.pid, resource.RLIMIT_NOFILE, (3, keep[1]))
    calls = closing(Proc(["strace", "-f", "-r", "-e", "trace=poll", "-p", app.pid]))
    for _ in range(5):
        calls.expect(r"poll\(.*EINVAL")
    calls.send_signal(signal.SIGINT)
    calls.wait()
    since = [float(s) for s in re.findall(r"(\d+\.\d+) poll\(.*EINVAL", calls.output)]
    assert sum(since) > len(since) * 0.02 and len(clients) == 4
    resource.prlimit(app.pid, resource.RLIMIT_NOFILE, keep)
    assert len(sessions(app)) == 0


def test_connections_without_a_word_do_not_keep_it_awake(play):
    """Readers of other applications look for all there are, once a second."""
    app = play()

    def awake():
        return any("ringtap-ctl" in name for name in of_tasks(app.pid, "comm").values())

    def ended():
        with contextlib.suppress(ConnectionRefusedError, FileNotFoundError):
            connected(app).close()
        return not awake()

    run([RINGTAP, "list", app.prefix])
    assert awake()
    until(ended, what="the control thread has ended")
