# SPDX-License-Identifier: BSD-3-Clause
"""Events of the probe recorded by DPDK's tracing and by LTTng, read by babeltrace2, compared with
the statistics: equal, and discarded ones are counted."""

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import dpdk
from harness import monitor as stats
from harness.fwd import FWD
from harness.paths import BUILD, LTTNG_PROVIDER, copy_probe
from harness.proc import check, of_tasks, until
from harness.ringtap import sessions
from harness.tracers import EVENTS, NO_QUEUE, Ctf, Lttng


@pytest.fixture(autouse=True)
def babeltrace():
    if not shutil.which("babeltrace2"):
        pytest.skip("babeltrace2 is not installed")


def trace(app, what=""):
    """Sends the command to the probe, which must succeed."""
    command = "/ringtap/trace" + (f",{what}" if what else "")
    answer = dpdk.telemetry(app.prefix, command, 20)["/ringtap/trace"]
    assert answer["status"] == 0, answer
    return answer


def eal_trace(folder, size="16M", mode="discard", events="ringtap.*"):
    return [f"--trace={events}", f"--trace-dir={folder}", f"--trace-bufsz={size}", f"--trace-mode={mode}"]


def control_threads(app):
    return [tid for tid, name in of_tasks(app.pid, "comm").items() if name == "ringtap-ctl\n"]


def traffic(app):
    app.rx(n=100, burst=32)  # 32, 32, 32, 4
    app.one("idle 0 0 n=17")
    app.rx(n=512, burst=512)
    app.tx(n=70, burst=64)  # 64, 6


TRAFFIC = {
    ("rx_burst", 0, 0, 32, 32): 3,
    ("rx_burst", 0, 0, 4, 4): 1,
    ("rx_burst", 0, 0, 512, 512): 1,
    ("empty_poll", 0, 0, 32): 17,
    ("tx_burst", 0, 0, 64, 64): 1,
    ("tx_burst", 0, 0, 6, 6): 1,
}


def polls_of(m):
    """Expected events, from the statistics of the probe."""
    rx = [h for h in m.hooks if h.direction == stats.RX]
    return {
        "rx_burst": sum(sum(h.burst[1:]) for h in rx),
        "empty_poll": sum(h.burst[0] for h in rx),
        "tx_burst": sum(sum(h.burst) for h in m.hooks if h.direction == stats.TX),
    }


# ---- DPDK's tracing --------------------------------------------------------------------------


@pytest.mark.smoke
def test_from_the_start(play, monitor, record, tmp_path):
    app = play(eal=eal_trace(tmp_path))
    app.ring("a")
    app.rx(n=100)  # no hooks yet
    m = monitor(app, stats.ALL)
    traffic(app)
    trace(app, "off")
    reply = trace(app, "save")
    ctf = Ctf(reply["directory"])
    assert Path(reply["directory"]).parent == tmp_path
    assert ctf.events == TRAFFIC
    assert {e: ctf.count(e) for e in polls_of(m)} == polls_of(m)
    assert {e: reply["emitted"][e] for e in polls_of(m)} == polls_of(m)
    assert sum(reply["lost"].values()) == 0
    assert (reply["mode"], reply["buffer_bytes"]) == ("discard", 16 << 20)
    assert "lttng" not in Path(f"/proc/{app.pid}/maps").read_text()


def test_switched_on_and_off(app, monitor, tmp_path):
    """For an application that was started without tracing."""
    reply = trace(app)
    assert (reply["points_on"], reply["bursts_traced"], reply["directory"]) == (0, 0, "")
    m = monitor(app, stats.POLLS)
    traffic(app)
    assert trace(app, "on")["points_on"] == len(EVENTS)
    assert trace(app)["bursts_traced"] == 1
    traffic(app)
    reply = trace(app, "off")
    assert (reply["points_on"], reply["bursts_traced"]) == (0, 0)
    traffic(app)
    reply = trace(app, "save")
    folder = Path(reply["directory"])
    try:
        assert Ctf(folder).events == TRAFFIC
    finally:
        shutil.rmtree(folder)  # in the home folder of the user
    assert reply["emitted"]["empty_poll"] == 17
    assert m.hook(stats.RX)[0] == {0: 51, 32: 9, 4: 3, 512: 3}


def test_some_events_only(play, record, tmp_path):
    """A capture installs the hooks, too."""
    app = play(eal=[*eal_trace(tmp_path, events="ringtap.session*"), "--trace=ringtap.tx"])
    app.ring("a")
    assert trace(app)["points_on"] == 4  # session_open, session_close, tx_burst, tx_refused
    recorder = record(app)
    (session,) = sessions(app)
    assert trace(app)["bursts_traced"]
    traffic(app)
    recorder.finish()
    reply = trace(app, "save")
    who = (session["id"], recorder.proc.pid)
    assert Ctf(reply["directory"]).events == {
        **{k: n for k, n in TRAFFIC.items() if k[0] == "tx_burst"},
        ("session_open", *who): 1,
        ("session_close", *who): 1,
    }


def test_testpmd(testpmd, monitor, tmp_path):
    """At the maximum rate: discarded events are counted, and the sum matches the statistics."""
    pmd = testpmd("net_ring0", "net_ring1", args=["--burst=13"], eal=eal_trace(tmp_path, "2M"))
    m = monitor(pmd, stats.POLLS | stats.LATENCY)
    pmd.start("start tx_first 3")
    until(lambda: sum(sum(h.burst) for h in m.hooks) > 300_000, what="traffic")
    pmd.stop()
    trace(pmd, "off")
    reply = trace(pmd, "save")
    ctf = Ctf(reply["directory"])
    for event, calls in polls_of(m).items():
        assert reply["emitted"][event] == calls
        assert ctf.count(event) == calls - reply["lost"][event]
    assert sum(reply["lost"].values()) > 0
    assert ctf.count("latency") == reply["emitted"]["latency"] - reply["lost"]["latency"] > 0


def test_attached_to_running_traffic(testpmd, monitor, tmp_path):
    """Counted packets are traced, and vice versa, from the first poll on."""
    pmd = testpmd(
        "net_null0", "net_null1", args=["--rxq=4", "--txq=4", "--forward-mode=rxonly"], eal=eal_trace(tmp_path, "64K")
    )

    def received():
        return pmd.stats(0)["RX-packets"]

    def without_hooks():
        """Hooks of the monitor before emit events until they are removed, and the next monitor does not count them."""
        emitted, packets = trace(pmd)["emitted"], received()
        until(lambda: received() > packets, what="traffic")
        return trace(pmd)["emitted"] == emitted and emitted

    for _ in range(2):
        pmd.start()
        before = until(without_hooks, what="polls without events")
        m = monitor(pmd, stats.POLLS)
        until(lambda: sum(sum(h.burst) for h in m.hooks) > 1000, what="traffic")
        pmd.stop()
        m.fresh()
        now, counted = trace(pmd)["emitted"], polls_of(m)
        assert {e: now[e] - before[e] for e in counted} == counted
        m.close()


def test_threads_that_come_and_go_leave_no_buffers(play, monitor, tmp_path):
    """DPDK would keep the buffer of each thread: events of threads without an lcore id are lost,
    and counted. The control thread, which has an lcore id, keeps its buffer."""
    app = play(eal=eal_trace(tmp_path))
    app.plug("net_null0")
    app.ring("a")
    m = monitor(app, stats.POLLS)
    app.one("idle 1 0 n=1")
    streams = set(os.listdir(trace(app, "save")["directory"]))
    assert app.one("threads 0 0 count=30 n=50") == 1500
    reply = trace(app, "save")
    assert reply["emitted"]["tx_burst"] == reply["lost"]["tx_burst"] == 1500
    (first,) = control_threads(app)
    m.close()
    since = time.monotonic()
    until(lambda: time.monotonic() - since > 3, what="the time that the thread lingers otherwise")
    assert control_threads(app) == [first]
    monitor(app, stats.POLLS)
    assert set(os.listdir(trace(app, "save")["directory"])) == streams


def test_concurrent_telemetry_clients(play, monitor, tmp_path):
    """Up to ten clients of DPDK's telemetry run in parallel threads: one folder, whose name all of
    them get."""
    app = play(eal=eal_trace(tmp_path))
    app.ring("a")
    monitor(app, stats.POLLS)
    traffic(app)
    trace(app, "off")
    with ThreadPoolExecutor(8) as pool:
        saved = list(pool.map(lambda i: trace(app, "save" if i % 2 else ""), range(8)))
    (folder,) = tmp_path.iterdir()
    assert {reply["directory"] for reply in saved} <= {f"{tmp_path}/", str(folder)}
    assert {reply["directory"] for reply in saved[1::2]} == {str(folder)}
    assert Ctf(folder).events == TRAFFIC
    # A path that is longer than a string of telemetry is printed in full.
    name = "f" * 200
    reply = trace(play(eal=eal_trace(tmp_path / name)), "save")["directory"]
    (folder,) = (tmp_path / name).iterdir()
    assert "".join(reply) == str(folder)


def test_refusals(play, monitor, tmp_path):
    (tmp_path / "file").touch()
    app = play(eal=eal_trace(tmp_path / "file" / "below", events="none"))
    app.ring("a")
    for what in ("bogus", "on,off", "ON"):
        answer = dpdk.telemetry(app.prefix, f"/ringtap/trace,{what}")["/ringtap/trace"]
        assert answer["status"] < 0 and "on, off, save, lttng" in answer["error"], what
        assert answer["points_on"] == 0
    monitor(app, stats.POLLS)
    trace(app, "on")
    traffic(app)
    answer = dpdk.telemetry(app.prefix, "/ringtap/trace,save")["/ringtap/trace"]
    assert answer["status"] < 0 and answer["error"]
    assert answer["emitted"]["empty_poll"] == 17
    traffic(app)


IDLE = ("--ring", "a", "--role", "sink:a@0")  # ringtap-fwd, whose probe is linked in


@pytest.mark.nightly
def test_forwarder(fwd, plugin, monitor, tmp_path):
    """Its own events are for USDT only: these are those of the hooks. DPDK saves at its end. With another probe that is loaded,
    EAL refuses duplicate trace points, and rte_telemetry would call the last one, which has none."""
    app = fwd(
        "--ring",
        "a:256",
        "--ring",
        "b:64",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@1",
        "--role",
        "sink:b@0",
        "--stages",
        "50k:60s",
        "--sink-rate",
        "10k",
        "--tx-full",
        "drop",
        eal=eal_trace(tmp_path / "one", events="ringtap.tx_refused"),
    ).running()
    monitor(app, stats.POLLS)
    until(lambda: trace(app)["emitted"]["tx_refused"] > 1, what="refused packets")
    way = app.stop().total("oneway")
    (folder,) = (tmp_path / "one").iterdir()
    events = Ctf(folder).events
    refused = sum(key[3] * n for key, n in events.items() if key[:3] == ("tx_refused", 1, NO_QUEUE))
    assert 0 < refused <= way["tx_dropped"]
    app = fwd(*IDLE, eal=["-d", plugin, *eal_trace(tmp_path / "two")]).running()
    monitor(app, stats.POLLS)
    until(lambda: trace(app)["emitted"]["empty_poll"] > 0, what="events")
    assert app.stop().total("sink")["rx_packets"] == 0


# ---- LTTng -----------------------------------------------------------------------------------


@pytest.mark.nightly
def test_lttng(play, plugin, monitor, lttng, tmp_path):
    """EAL loads the provider for a probe that is linked in."""
    app = play(linkin=True, namespace=lttng, eal=["-d", plugin.parent / LTTNG_PROVIDER.name])
    app.ring("a")
    lttng.start(tmp_path / "out")
    m = monitor(app, stats.ALL)
    assert trace(app)["bursts_traced"] == trace(app)["lttng"] == 1
    traffic(app)
    lttng.stop()
    until(lambda: not trace(app)["bursts_traced"], what="the end of tracing")
    traffic(app)
    ctf = Ctf(tmp_path / "out")
    assert ctf.events == TRAFFIC
    assert ctf.discarded == 0
    assert {e: ctf.count(e) * 2 for e in polls_of(m)} == polls_of(m)


@pytest.mark.nightly
def test_lttng_reports_what_it_discarded(play, monitor, lttng, closing, tmp_path):
    """When the daemon is killed, the application continues, without further connections to a daemon. Another daemon has mounted
    a folder of its own on the one path that LTTng knows."""
    other = closing(Lttng(tmp_path / "other"))
    app = play(namespace=lttng)
    app.ring("a")
    trace(app, "lttng")
    lttng.start(tmp_path / "out", "--subbuf-size=4k", "--num-subbuf=2")
    m = monitor(app, stats.POLLS)
    assert trace(app)["bursts_traced"]
    app.one("idle 0 0 n=100000")
    app.rx(n=100, burst=1)
    lttng.stop()
    ctf = Ctf(tmp_path / "out")
    assert ctf.discarded > 0
    assert sum(ctf.events.values()) + ctf.discarded == sum(polls_of(m).values()) == 100_100
    lttng.start(tmp_path / "killed", "--subbuf-size=4k", "--num-subbuf=2")
    until(lambda: trace(app)["bursts_traced"], what="tracing")
    before = m.hook(stats.RX)[0]
    app.one("idle 0 0 n=1000")
    lttng.kill()
    until(lambda: not trace(app)["bursts_traced"], what="the end of tracing")
    app.one("idle 0 0 n=10000")
    traffic(app)
    after = m.hook(stats.RX)[0]
    assert {n: after[n] - before.get(n, 0) for n in (0, 4, 32, 512)} == {0: 11017, 4: 1, 32: 3, 512: 1}
    other.lttng("list")


def test_provider_is_loaded_only_from_its_folder(play, fwd, plugin, private_dir):
    """A probe without a provider in its folder, in any working directory of the application; one that is linked in looks where
    libraries are installed, also if the program is called by name only."""
    if not LTTNG_PROVIDER.exists():
        pytest.skip("built without LTTng")
    options = json.loads(check(["meson", "introspect", BUILD, "--buildoptions"]))
    where = {o["name"]: o["value"] for o in options}
    path = Path(where["prefix"]) / where["libdir"] / LTTNG_PROVIDER.name
    folder = private_dir / "working"
    folder.mkdir()
    shutil.copy(LTTNG_PROVIDER, folder)
    (folder / FWD.name).touch()
    bare = ["bash", "-c", 'cd "$0" && exec -a ringtap-fwd "$@"', folder]
    app = fwd(*IDLE, around=bare).running()
    answer = dpdk.telemetry(app.prefix, "/ringtap/trace,lttng", 20)["/ringtap/trace"]
    assert str(folder) not in Path(f"/proc/{app.proc.pid}/maps").read_text()
    assert answer["lttng"] == 1 if path.exists() else answer["error"].startswith(f"{path}: ")
    app.stop()
    alone = copy_probe(plugin, private_dir)
    app = play(plugin=alone)
    answer = dpdk.telemetry(app.prefix, "/ringtap/trace,lttng")["/ringtap/trace"]
    assert answer["status"] < 0 and str(private_dir / LTTNG_PROVIDER.name) in answer["error"]
    (private_dir / LTTNG_PROVIDER.name).write_text("something else" * 100)
    answer = dpdk.telemetry(app.prefix, "/ringtap/trace,lttng")["/ringtap/trace"]
    assert answer["status"] < 0 and "invalid ELF header" in answer["error"]
    shutil.copy(LTTNG_PROVIDER, private_dir)
    private_dir.chmod(0o777)
    answer = dpdk.telemetry(app.prefix, "/ringtap/trace,lttng")["/ringtap/trace"]
    assert answer["status"] < 0 and "other users may write" in answer["error"]
    private_dir.chmod(0o770)
    os.chown(private_dir, -1, 65534)
    answer = dpdk.telemetry(app.prefix, "/ringtap/trace,lttng")["/ringtap/trace"]
    assert answer["status"] < 0 and "other users may write" in answer["error"]
    os.chown(private_dir, -1, 0)
    assert trace(app, "lttng")["lttng"] == 1
