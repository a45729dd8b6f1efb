# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap trace lttng` and `ringtap trace dpdk`: the trace in the folder has all events, and
nothing else is left behind."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from harness import dpdk
from harness.documents import only
from harness.paths import RINGTAP, copy_probe
from harness.proc import Proc, check, freeze, run, until
from harness.ringtap import FAILED
from harness.tracers import EVENTS, Ctf
from harness.tracing import Tracing, tracing

SENT = {
    ("rx_burst", 0, 0, 32, 32): 3,
    ("rx_burst", 0, 0, 4, 4): 1,
    ("empty_poll", 0, 0, 32): 17,
    ("tx_burst", 0, 0, 64, 64): 1,
    ("tx_burst", 0, 0, 6, 6): 1,
}


def traffic(app):
    app.rx(n=100, burst=32)  # 32, 32, 32, 4
    app.one("idle 0 0 n=17")
    app.tx(n=70, burst=64)  # 64, 6


@pytest.fixture(autouse=True)
def babeltrace():
    if not shutil.which("babeltrace2"):
        pytest.skip("babeltrace2 is not installed")


@pytest.fixture
def trace(closing, tmp_path):
    return lambda app, *args, **kwargs: closing(Tracing(app, tmp_path, *args, **kwargs))


def state(app):
    return dpdk.telemetry(app.prefix, "/ringtap/trace", 20)["/ringtap/trace"]


def points_on(app):
    """None while other clients use its telemetry."""
    try:
        return state(app)["points_on"]
    except BlockingIOError:
        return None


# ---- DPDK's tracing --------------------------------------------------------------------------


@pytest.fixture
def roomy(play, tmp_path):
    """An application whose traces are saved below tmp_path."""
    (tmp_path / "eal").mkdir()
    app = play(eal=[f"--trace-dir={tmp_path / 'eal'}", "--trace-bufsz=16M"])
    app.ring("a")
    return app


@pytest.mark.smoke
def test_dpdk(roomy, trace, tmp_path):
    """rte_trace saves nothing before the first event. The buffers of the application keep events of the trace before."""
    doc = trace(roomy, "dpdk", "-w", tmp_path / "none", "--json").json()
    assert (doc["events"], doc["lost"], doc["saved_to"]) == ({}, {}, None)
    assert "no event" in trace(roomy, "dpdk", "-w", tmp_path / "none").finish()
    assert not list((tmp_path / "none").iterdir())
    out = tmp_path / "out"
    it = trace(roomy, "dpdk", "-w", out, "--json")
    traffic(roomy)
    doc = it.json()
    assert Ctf(out).events == SENT
    assert doc["events"] == {"rx_burst": 4, "empty_poll": 17, "tx_burst": 2}
    assert doc["lost"] == {} and doc["directory"] == str(out)
    assert Path(doc["saved_to"]).parent == tmp_path / "eal"
    assert state(roomy)["points_on"] == 0
    until(lambda: roomy.one("callbacks 0") == 0, what="removed callbacks")
    it = trace(roomy, "dpdk", "-w", tmp_path / "again", "--duration", "1h")
    traffic(roomy)
    assert [line.split() for line in it.finish().splitlines()[1:]] == [
        ["rx_burst", "4"],
        ["empty_poll", "17"],
        ["tx_burst", "2"],
    ]
    assert Ctf(tmp_path / "again").count("empty_poll") == 34
    (tmp_path / "file").touch()
    for name in ("again", "file", "not/there"):
        done = tracing("dpdk", "-w", tmp_path / name, roomy.prefix)
        assert done.returncode == FAILED and name in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert state(roomy)["points_on"] == 0
    until(lambda: roomy.one("callbacks 0") == 0, what="removed callbacks")


def test_dpdk_reports_missing_parts(play, trace, tmp_path):
    """The second trace overwrites the first one's events, which are not counted as its own: there are more of these. Trace points
    that were on before stay on."""
    app = play(eal=[f"--trace-dir={tmp_path}", "--trace-bufsz=64K", "--trace=ringtap.*"])
    app.ring("a")
    app.one("idle 0 0 n=10")
    for n, polls in enumerate((3000, 2000)):
        it = trace(app, "dpdk", "-w", tmp_path / f"out{n}", "--json")
        app.one(f"idle 0 0 n={polls}")
        doc = it.json()
        assert doc["events"] == {"empty_poll": polls}
    lost = doc["lost"]["empty_poll"]
    assert 0 < lost < 2000 and Ctf(tmp_path / "out1").count("empty_poll") == 2000 - lost
    assert state(app)["points_on"] == len(EVENTS)


def test_dpdk_keeps_disabled_trace_points(play, trace, tmp_path):
    """Telemetry cannot switch single trace points: those that are on are traced."""
    app = play(eal=[f"--trace-dir={tmp_path}", "--trace=ringtap.rx_burst"])
    app.ring("a")
    it = trace(app, "dpdk", "-w", tmp_path / "out", "--json")
    traffic(app)
    doc = it.json()
    assert "1 of 9 trace points" in it.proc.output and doc["events"] == {"rx_burst": 4}
    assert {key[0] for key in Ctf(tmp_path / "out").events} == {"rx_burst"}
    assert state(app)["points_on"] == 1


def test_dpdk_is_off_again(roomy, trace, tmp_path):
    """However it ends; of a stopped application when it continues. Who ends first switches off for all."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        it = trace(roomy, "dpdk", "-w", tmp_path / f"out{int(number)}")
        assert state(roomy)["points_on"] == len(EVENTS)
        it.finish(number, -9 if number == signal.SIGKILL else 0)
        until(lambda: not state(roomy)["points_on"] and roomy.one("callbacks 0") == 0, what="off")
    first = trace(roomy, "dpdk", "-w", tmp_path / "first")
    second = trace(roomy, "dpdk", "-w", tmp_path / "second", "--json")
    traffic(roomy)
    first.finish()
    roomy.rx(n=5)
    doc = only(json.loads(second.finish(status=FAILED)))
    assert "incomplete" in second.proc.output and doc["events"]["rx_burst"] == 4
    assert Ctf(tmp_path / "first").events == Ctf(tmp_path / "second").events
    it = trace(roomy, "dpdk", "-w", tmp_path / "stopped")
    freeze(roomy.proc.pid)
    it.finish(signal.SIGKILL, -9)
    roomy.proc.send_signal(signal.SIGCONT)
    until(lambda: points_on(roomy) == 0 and roomy.one("callbacks 0") == 0, what="off")
    it = trace(roomy, "dpdk", "-w", tmp_path / "killed")
    roomy.proc.kill()
    it.finish(None, FAILED)
    assert "the trace in its memory is lost" in it.proc.output


@pytest.mark.nightly
@pytest.mark.slow
def test_dpdk_of_a_stopped_application(roomy, trace, tmp_path):
    """The message names what continues it."""
    it = trace(roomy, "dpdk", "-w", tmp_path / "out")
    freeze(roomy.proc.pid)
    it.finish(signal.SIGTERM, FAILED)
    assert f"it is stopped (SIGSTOP); continue it with: kill -CONT {roomy.pid}" in it.proc.output
    roomy.proc.send_signal(signal.SIGCONT)
    until(lambda: points_on(roomy) == 0 and roomy.one("callbacks 0") == 0, what="off")


@pytest.mark.nightly
def test_dpdk_saves_elsewhere(play, closing, trace, tmp_path, monkeypatch):
    """Below its working directory; in a path that is longer than a string of telemetry; in its own mount namespace, where a
    link is resolved."""
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    app = play(eal=["--trace-dir=eal"])
    monkeypatch.chdir(tmp_path)
    app.ring("a")
    it = trace(app, "dpdk", "-w", tmp_path / "out")
    traffic(app)
    it.finish()
    assert Ctf(tmp_path / "out").events == SENT
    there = tmp_path / ("a" * 90) / ("b" * 90)
    there.mkdir(parents=True)
    app = play(eal=[f"--trace-dir={there}"])
    app.ring("a")
    it = trace(app, "dpdk", "-w", tmp_path / "long")
    traffic(app)
    it.finish()
    assert Ctf(tmp_path / "long").events == SENT and list(there.iterdir())
    # A file that is nothing but a hole, which a copy would fill the disk with.
    there = tmp_path / "huge"
    there.mkdir()
    app = play(eal=[f"--trace-dir={there}"])
    app.ring("a")
    first = trace(app, "dpdk", "-w", tmp_path / "first")
    traffic(app)
    first.finish()
    (saved,) = there.iterdir()
    (saved / "channel0_4711").touch()
    os.truncate(saved / "channel0_4711", 1 << 40)
    second = trace(app, "dpdk", "-w", tmp_path / "second")
    traffic(app)
    second.finish(status=FAILED)
    assert "File too large" in second.proc.output
    assert not (tmp_path / "second" / "channel0_4711").exists()
    there = tmp_path / "elsewhere"
    there.mkdir()
    keeper = closing(Proc(["unshare", "-m", "cat"]))
    until(lambda: Path(f"/proc/{keeper.pid}/comm").read_text() == "cat\n", what="it is in there")
    inside = Keeper(keeper, None)
    check([*inside.prefix, "mount", "-t", "tmpfs", "none", there])
    check([*inside.prefix, "mkdir", there / "real"])
    check([*inside.prefix, "ln", "-s", there / "real", there / "link"])
    app = play(eal=[f"--trace-dir={there / 'link'}"], namespace=inside)
    app.ring("a")
    it = trace(app, "dpdk", "-w", tmp_path / "linked")
    traffic(app)
    it.finish()
    assert Ctf(tmp_path / "linked").events == SENT and not list(there.iterdir())
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "linked").iterdir()} == {0o600}


# ---- LTTng -----------------------------------------------------------------------------------


@pytest.fixture
def no_daemon(lttng):
    """The same namespace, without the daemon."""
    keeper = Proc([*lttng.prefix, "cat"])  # keeps the namespace
    until(lambda: Path(f"/proc/{keeper.pid}/comm").read_text() == "cat\n", what="it is in there")
    lttng.daemon.send_signal(signal.SIGTERM)
    lttng.daemon.wait()
    lttng.keeper = keeper
    yield Keeper(keeper, lttng._env)
    keeper.close()


class Keeper:
    def __init__(self, proc, env):
        self.prefix = ["nsenter", "-m", "-t", str(proc.pid)]
        self.env = env

    def daemons(self):
        """LTTng processes in this mount namespace."""
        ours = os.readlink(f"/proc/{self.prefix[-1]}/ns/mnt")
        return [p.name for p in Path("/proc").iterdir() if p.name.isdigit() and self._is(p, ours)]

    @staticmethod
    def _is(process, ours):
        try:
            return (process / "comm").read_text().startswith("lttng") and os.readlink(process / "ns" / "mnt") == ours
        except OSError:
            return False


def within(place, trace, app, *args):
    env = getattr(place, "env", None) or place._env
    return trace(app, "lttng", *args, prefix=place.prefix, env=env)


def sessions_of(lttng):
    return lttng.lttng("list")


@pytest.mark.smoke
def test_lttng(play, lttng, trace, tmp_path):
    app, other = (play(namespace=lttng) for _ in range(2))
    for it in (app, other):
        it.ring("a")
    doc = within(lttng, trace, app, "-w", tmp_path / "none", "--json").json()
    assert (doc["events"], doc["discarded"]) == (0, 0)
    out = tmp_path / "out"
    it = within(lttng, trace, app, "-w", out, "--json")
    nested = within(lttng, trace, other, "-w", tmp_path / "other")
    traffic(app)
    other.rx(n=1)
    doc = it.json()
    nested.finish()
    ctf = Ctf(out)
    assert ctf.events == SENT  # and none of the other application
    assert (doc["events"], doc["discarded"], doc["lost_packets"]) == (23, 0, 0)
    assert Ctf(tmp_path / "other").events == {("rx_burst", 0, 0, 1, 1): 1}
    assert "ringtap-" not in sessions_of(lttng) and lttng.daemon.alive()
    until(lambda: app.one("callbacks 0") == 0, what="the hooks to be removed behind the end of the monitor")


def test_lttng_reports_what_it_discarded(play, lttng, trace, tmp_path):
    app = play(namespace=lttng)
    app.ring("a")
    it = within(lttng, trace, app, "-w", tmp_path / "out", "--json", "--buffer", "64K")
    app.one("idle 0 0 n=200000")
    app.rx(n=100, burst=1)
    doc = it.json()
    assert doc["discarded"] > 0 and doc["events"] + doc["discarded"] == 200100
    assert sum(Ctf(tmp_path / "out").events.values()) == doc["events"]


@pytest.mark.nightly
def test_lttng_without_a_daemon(play, no_daemon, trace, tmp_path):
    """A daemon is started, and ended, also if the trace or the daemon itself is killed."""
    assert not no_daemon.daemons()
    app = play(namespace=no_daemon)
    app.ring("a")
    it = within(no_daemon, trace, app, "-w", tmp_path / "out")
    assert no_daemon.daemons()
    traffic(app)
    text = it.finish()
    assert not no_daemon.daemons()
    assert Ctf(tmp_path / "out").events == SENT
    assert [line.split()[:2] for line in text.splitlines()[1:]] == [["recorded", "23"], ["discarded", "0"]]
    it = within(no_daemon, trace, app, "-w", tmp_path / "killed")
    it.finish(signal.SIGKILL, -9)
    until(lambda: not no_daemon.daemons() and app.one("callbacks 0") == 0, what="nothing is left")
    it = within(no_daemon, trace, app, "-w", tmp_path / "daemon")
    os.kill(next(pid for pid, name in it.children() if name.startswith("lttng-sessiond")), signal.SIGKILL)
    assert not it.finish(None, FAILED)
    lines = it.proc.output.splitlines()
    assert len(lines) == 2 and "lttng-sessiond ended" in lines[1]
    until(lambda: not no_daemon.daemons() and app.one("callbacks 0") == 0, what="nothing is left")


def test_lttng_is_killed(play, lttng, trace, tmp_path):
    """The session is removed, and later lttng commands of the user apply to the session of the user. Events that were received
    from an application that is killed are saved."""
    app = play(namespace=lttng)
    app.ring("a")
    lttng.lttng("create", "mine", "-o", tmp_path / "mine")
    for number in (signal.SIGINT, signal.SIGKILL):
        it = within(lttng, trace, app, "-w", tmp_path / f"out{int(number)}")
        assert "ringtap-" in sessions_of(lttng)
        assert (tmp_path / ".lttngrc").read_text() == "session=mine\n"
        it.finish(number, -9 if number == signal.SIGKILL else 0)
        until(lambda: "ringtap-" not in sessions_of(lttng), what="the session is gone")
        assert (tmp_path / ".lttngrc").read_text() == "session=mine\n"
    until(lambda: app.one("callbacks 0") == 0, what="removed callbacks")
    assert lttng.daemon.alive()
    it = within(lttng, trace, app, "-w", tmp_path / "out", "--json")
    traffic(app)
    app.proc.kill()
    doc = it.json(None)
    assert doc["ended_by"] == "application" and doc["events"] == 23
    assert Ctf(tmp_path / "out").events == SENT
    assert "ringtap-" not in sessions_of(lttng)


def test_lttng_without_the_provider(play, lttng, tmp_path, private_dir, plugin):
    """A probe installed without the provider."""
    alone = copy_probe(plugin, private_dir)
    app = play(namespace=lttng, program="rt_play", plugin=alone)
    done = run([*lttng.prefix, RINGTAP, "trace", "lttng", "-w", tmp_path / "out", app.prefix], env=lttng._env)
    assert done.returncode == FAILED and "libringtap-lttng.so" in done.stderr
    assert "ringtap-" not in sessions_of(lttng)


@pytest.mark.nightly
def test_lttng_on_a_full_disk(play, no_daemon, trace, tmp_path):
    """The incomplete trace is reported as such."""
    small = tmp_path / "small"
    small.mkdir()
    check([*no_daemon.prefix, "mount", "-t", "tmpfs", "-o", "size=2M", "none", small])
    app = play(namespace=no_daemon)
    app.ring("a")
    it = within(no_daemon, trace, app, "-w", small / "out")
    app.one("idle 0 0 n=300000")
    out = it.finish(status=FAILED)
    lines = it.proc.output.splitlines()
    assert len(lines) == 2 and "is incomplete" in lines[1] and not out
    assert not no_daemon.daemons()


@pytest.mark.nightly
def test_lttng_and_counting_takes_long(play, lttng, trace, tmp_path):
    """A second Ctrl-C ends the counting: the trace is saved, its number of events is unknown."""
    slow = tmp_path / "bin" / "babeltrace2"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    app = play(namespace=lttng)
    app.ring("a")
    env = {**lttng._env, "PATH": f"{slow.parent}:{os.environ['PATH']}"}
    it = trace(app, "lttng", "-w", tmp_path / "out", "--json", prefix=lttng.prefix, env=env)
    traffic(app)
    it.proc.send_signal(signal.SIGINT)
    until(lambda: "sleep" in [name for _, name in it.children()], what="it counts")
    doc = it.json()
    assert doc["events"] is None and doc["discarded"] == 0 and len(it.proc.output.splitlines()) == 1
    assert Ctf(tmp_path / "out").events == SENT
