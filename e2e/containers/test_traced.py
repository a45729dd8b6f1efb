# SPDX-License-Identifier: BSD-3-Clause
"""ringtap trace on the host, of applications in containers that it has attached to: their process ids are others
there, and the files of the probe were removed when they were loaded."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
from harness.attach import attach, bare, detach, mapped
from harness.container import FIRST_ID, Container, inside, namespace_of, pid_of
from harness.doctor import top
from harness.documents import only
from harness.paths import PROBE_OBJECT, RINGTAP
from harness.proc import check, freeze, run, until
from harness.tracers import bpftrace_missing, usdt_sites
from harness.tracing import NOP, Tracing, bytes_at_sites, semaphores


@pytest.fixture(scope="module")
def bpftrace():
    reason = bpftrace_missing()
    if not reason and not usdt_sites(PROBE_OBJECT):
        reason = "built without sys/sdt.h"
    if reason:
        pytest.skip(reason)


class Attached:
    """An application that receives, whose probe has no file any more: what Tracing and others take as one."""

    def __init__(self, closing, users):
        self.app = bare(closing, namespace=Container(users=users))
        self.pid = pid_of(self.app)
        self.prefix = self.app.prefix + (f"@{FIRST_ID}" if users else "")
        for kind in ["mnt", "pid", "net", *(["user"] if users else [])]:
            assert namespace_of(self.pid, kind) != namespace_of("self", kind)
        attach(self.prefix)
        (self.probe,) = (path for path in mapped(self) if PROBE_OBJECT.name in path)
        assert self.probe.endswith(" (deleted)")

    def breakpoints(self):
        return {byte for byte in bytes_at_sites(self, PROBE_OBJECT, self.probe) if byte != NOP}

    def semaphores(self):
        return semaphores(self, PROBE_OBJECT, self.probe)


def test_bursts(bpftrace, closing, tmp_path):
    it = Attached(closing, False)
    app = it.app
    app.one("unloop")
    listed = only(json.loads(check([RINGTAP, "trace", "list", "--json", it.prefix])))
    assert listed["pid"] == it.pid and {e["name"] for e in listed["events"]} == {
        s.event for s in usdt_sites(PROBE_OBJECT)
    }
    ring = app.ring("a")
    trace = closing(Tracing(it, tmp_path, "burst", "--json", "--duration", "1h"))
    assert app.rx(ring, n=100, burst=32)[0] == 100 and app.tx(ring, n=70, burst=64)[0] == 70
    doc = trace.json()
    assert doc["pid"] == it.pid and inside(it.pid) != it.pid
    found = {
        q["direction"]: (q["port"]["name"], q["packets"], {int(k): n for k, n in q["bursts"].items()})
        for q in doc["queues"]
        if q["port"]["index"] == ring
    }
    assert found == {"rx": ("net_ring_a", 100, {32: 3, 4: 1}), "tx": ("net_ring_a", 70, {64: 1, 6: 1})}
    detach(it.prefix)
    assert app.quit() == 0


def test_an_event_with_a_semaphore_and_gaps_in_a_user_namespace(bpftrace, closing, tmp_path):
    """The semaphore is raised while the event is traced, by a report and by a program of one's own."""
    it = Attached(closing, True)
    assert it.semaphores() == {0}
    trace = closing(Tracing(it, tmp_path, "latency", "--json", "--duration", "1h"))
    assert 1 in it.semaphores() and it.breakpoints()
    until(lambda: top(it)["ports"][0]["rx"]["packets_per_second"], what="traffic that is traced")
    (row,) = trace.json()["queues"]
    assert row["port"]["name"] == "net_null0" and row["packets"] > 0 and row["cycles"]["max"] > 0
    until(lambda: it.semaphores() == {0} and not it.breakpoints(), what="nothing of the trace is left")
    program = 'ringtap:latency { printf("packets %d\\n", arg2); exit(); }'
    done = run([RINGTAP, "trace", "--latency", "-e", program, it.prefix])
    assert done.returncode == 0 and int(re.search(r"packets (\d+)", done.stdout)[1]) > 0, done.stdout + done.stderr
    until(lambda: it.semaphores() == {0} and not it.breakpoints(), what="nothing of the trace is left")
    assert_gaps(it, closing, tmp_path)
    assert_gaps(it, closing, tmp_path, "--off-cpu")
    assert it.app.one("unloop") > 0 and it.app.quit() == 0


def assert_gaps(it, closing, tmp_path, *option):
    """Threads have their numbers of the host. One gap is certain: the application is stopped."""
    trace = closing(Tracing(it, tmp_path, "gaps", *option, "--json", "--duration", "1h"))
    freeze(it.pid)
    os.kill(it.pid, signal.SIGCONT)
    until(lambda: top(it)["ports"][0]["rx"]["packets_per_second"], what="traffic that is traced")
    tids = {t["thread"]["tid"] for t in trace.json()["threads"]}
    assert tids and tids <= {int(path.name) for path in Path(f"/proc/{it.pid}/task").iterdir()}
