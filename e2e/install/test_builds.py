# SPDX-License-Identifier: BSD-3-Clause
"""DPDK of releases and with options that no release of Debian has, built by hand: `make builds` runs these tests.
RINGTAP_DPDK_BUILDS names the folder of the installations, which devtools/dpdk-builds.sh makes."""

import json
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import dpdk
from harness.attach import attach
from harness.documents import only
from harness.known import Measuring
from harness.paths import RINGTAP
from harness.proc import check, run, until
from harness.ringtap import FAILED, OK, Recorder, listing, sessions
from harness.testpmd import Testpmd

FOLDER = Path(os.environ.get("RINGTAP_DPDK_BUILDS", "/nonexistent"))
# Refused, and the words of the reason.
REFUSED = {"iova-va": "enable_iova_as_pa", "21.11-static": "a static DPDK 21.11.9 would not announce its end"}
SERVED = [
    path.name
    for path in sorted(FOLDER.glob("*/"))
    if (path / "bin" / "dpdk-testpmd").exists() and path.name not in REFUSED
]
SHARED = {"21.11.9", "23.11.4"}
MBUFS = 8192
OBSERVED = 32  # RTE_MAX_ETHPORTS of the DPDK that the probe's objects are compiled for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FOLDER.is_dir(), reason="RINGTAP_DPDK_BUILDS names no builds")]


@pytest.fixture
def idle(closing, plugin):
    def make(name, vdevs, probe=plugin, **options):
        """A testpmd of this build that does not forward yet."""
        at = FOLDER / name
        inside = SimpleNamespace(prefix=["env", f"PATH={at}/bin:{os.environ['PATH']}", f"LD_LIBRARY_PATH={at}/lib"])
        return closing(Testpmd(vdevs, probe, namespace=inside, mbufs=MBUFS, memory_mb=512, **options))

    return make


@pytest.fixture
def pmd(idle):
    def start(name, ports=2, **options):
        """One that forwards."""
        app = idle(name, [f"net_null{i}" for i in range(ports)], **options)
        app.start()
        return app

    return start


def document(*args):
    return json.loads(check([RINGTAP, *args]))


def ends(app, how):
    if how == "quit":
        app.stop()
        return app.quit()
    app.proc.send_signal(how)
    return app.proc.wait()


@pytest.mark.parametrize("name", SERVED)
def test_linking(name):
    """Builds of both kinds are what their names promise."""
    assert ("librte_eal" in check(["readelf", "-d", FOLDER / name / "bin" / "dpdk-testpmd"])) == (name in SHARED)


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("how", ["quit", signal.SIGTERM, signal.SIGINT], ids=str)
def test_end_after_a_reader(name, how, pmd, tmp_path):
    """Applications of 26.07, whose struct rte_bus differs from that of the other releases of its ABI."""
    app = pmd(name)
    done = run(
        [RINGTAP, "record", "-i", f"{app.prefix}:", "-f", "greater 10", "-c", "1000", "-w", tmp_path / "a.pcapng"]
    )
    assert done.returncode == OK, done.stderr
    assert "ringtap:" not in app.proc.output
    assert ends(app, how) == 0


@pytest.mark.parametrize("name", SERVED)
def test_end_under_a_recorder(name, pmd, closing, tmp_path):
    app = pmd(name)
    recorder = closing(Recorder(["-i", f"{app.prefix}:"], tmp_path / "a.pcapng")).attached()
    until(lambda: sessions(app), what="a session")
    assert ends(app, "quit") == 0
    assert "ended" in recorder.done(status=OK)


@pytest.mark.parametrize("name", SERVED)
def test_attached(name, pmd, closing, tmp_path):
    """The same ends, of a process that had no probe when it started."""
    app = pmd(name, probe=None)
    attach(app.pid)
    recorder = closing(Recorder(["-i", f"{app.prefix}:"], tmp_path / "a.pcapng")).attached()
    until(lambda: sessions(app), what="a session")
    assert ends(app, "quit") == 0
    assert "ended" in recorder.done(status=OK)


@pytest.mark.parametrize("name", SERVED)
def test_pools_and_latencies(name, pmd):
    """Pools with any number and size of caches are shown."""
    app = pmd(name)
    (pool,) = (
        p
        for p in only(document("memory", "--json", "--duration", "1s", app.prefix))["pools"]
        if p["name"].startswith("mb_pool")
    )
    assert pool["size"] == MBUFS and pool["cache_size"] > 0 and pool["buffer_bytes"] >= 2048
    assert 0 < pool["available"] <= pool["size"] and pool["in_caches"] <= pool["available"]
    assert sum(pair["packets"] for pair in only(document("latency", "--json", "--duration", "1s", app.prefix))["pairs"])
    assert ends(app, "quit") == 0


@pytest.mark.skipif("many" not in SERVED, reason="not built: many")
def test_more_ports_than_the_probe_has_places_for(pmd, tmp_path):
    app = pmd("many", ports=OBSERVED + 2)
    found = next(a for a in listing() if a["name"] == app.prefix)
    assert len(found["ports"]) == OBSERVED
    assert document("top", "--once", "--json", app.prefix)["applications"][0]["uncounted_ports"] == 2
    check([RINGTAP, "record", "-i", f"{app.prefix}:net_null{OBSERVED - 1}", "-c", "1000", "-w", tmp_path / "a.pcapng"])
    assert ends(app, "quit") == 0


@pytest.mark.parametrize("name", [name for name in REFUSED if (FOLDER / name).is_dir()])
def test_refused(name, pmd, tmp_path):
    """The application forwards; the reason names the option."""
    app = pmd(name)
    done = run([RINGTAP, "record", "-i", f"{app.prefix}:", "-c", "1", "-w", tmp_path / "a.pcapng"])
    assert done.returncode == FAILED and REFUSED[name] in done.stderr and done.stderr.count("\n") == 1
    assert REFUSED[name] in next(a for a in listing() if a["name"] == app.prefix)["error"]
    assert ends(app, "quit") == 0


noted = pytest.mark.skipif("history" not in SERVED, reason="not built: history")


def names_of(word):
    """Names of operations by the header of this DPDK, the oldest first, as ringtap writes them."""
    header = (FOLDER / "history" / "include" / "rte_mbuf_history.h").read_text()
    names = {int(n): name for name, n in re.findall(r"RTE_MBUF_HISTORY_OP_(\w+)\s*=\s*(\d+)", header)}
    ops = [int(digit, 16) for digit in word.lstrip("0")]
    return [names[op].replace("_", " ").lower() for op in ops]


def newest(held):
    """The last whole document of a command."""
    lines = [line for line in held.proc.output.splitlines() if line.startswith("{") and line.endswith("}")]
    return only(json.loads(lines[-1])) if lines else {"open": 0, "older": 0}


NOISY = ["--forward-mode=noisy", "--noisy-tx-sw-buffer-size=512"]
OLD = ["--older", "0.5s", "--interval", "0.2s"]


def example_of(app, held):
    """A packet that a mode of testpmd keeps in a ring, and forgets when it stops, once all are known to be held."""

    def example():
        report = newest(held)
        kinds = report["older_packets"]["protocols"] if 0 < report["older"] == report["open"] else []
        return kinds and kinds[0]["example"]

    app.start()
    until(lambda: newest(held)["open"], what="packets are received")
    app.stop()
    return until(example, what="the packets are old")


@noted
def test_held_packets_have_the_history_of_their_mbufs(idle, closing):
    """DPDK itself prints their histories."""
    app = idle("history", ["net_null0", "net_null1"], args=NOISY)
    held = closing(Measuring("held", app, "--json", *OLD))
    text = closing(Measuring("held", app, *OLD, "--duration", "1h"))
    found = example_of(app, held)
    if not found["history"]:  # these are read a little later
        found = until(
            lambda: (e := newest(held)["older_packets"]["protocols"][0]["example"])["history"] and e, what="histories"
        )
    tables = text.finish(signal.SIGINT)
    held.finish(signal.SIGINT)
    shown = app.cmd(f"dump mbuf history {found['mbuf']}")
    (word,) = re.findall(rf"mbuf {found['mbuf']}: ([0-9a-f]{{16}})", shown)
    assert [name.lower() for name in found["history"]] == names_of(word)
    assert found["history"][-2:] == ["lib alloc", "Rx"]
    assert re.search(r"0x[0-9a-f]+ .*lib alloc, Rx", tables.replace("\n", " ")), tables
    pool = app.cmd("dump mbuf pool history mb_pool_0")
    words = re.findall(r"mbuf 0x[0-9a-f]+: ([0-9a-f]{16})", pool)
    assert sum(names_of(w)[-1] == "rx" for w in words) == newest(held)["open"]


@pytest.mark.skipif(not set(SERVED) - {"history"}, reason="not built: another one")
def test_an_application_without_histories_has_none(idle, closing):
    app = idle(next(name for name in SERVED if name != "history"), ["net_null0", "net_null1"], args=NOISY)
    held = closing(Measuring("held", app, "--json", *OLD))
    assert example_of(app, held)["history"] is None
    held.finish(signal.SIGINT)


@pytest.mark.parametrize("name", [name for name in SERVED if not name.startswith(("21.", "22.", "many", "few"))])
def test_usage_of_lcores(name, idle):
    """Cycles that DPDK's telemetry has before and after cover all that are counted in between."""
    app = idle(
        name,
        ["net_null0", "net_ring0"],
        lcores="0@0,1@0,2@1",
        args=["--record-core-cycles", "--nb-cores=2", "--port-topology=loop"],
    )
    app.start()

    def usage():
        it = next(iter(dpdk.telemetry(app.prefix, "/eal/lcore/usage").values()))
        cycles = zip(it["total_cycles"], it["busy_cycles"], strict=True)
        return dict(zip(it["lcore_ids"], cycles, strict=True))

    def measured():
        """Cycles of one interval by ringtap and by DPDK, once the probe has read them twice in it."""
        before = usage()
        report = only(document("top", "--json", "--once", "--interval", "1s", "--collectors", "busy", app.prefix))
        grown = {lcore: [b - a for a, b in zip(before[lcore], now, strict=True)] for lcore, now in usage().items()}
        return all(row["busy_share"] is not None for row in report["lcores"]) and (report, grown)

    report, grown = until(measured, what="cycles of lcores are read")
    lcores = {row["lcore"]: row for row in report["lcores"]}
    assert set(lcores) == set(grown) == {1, 2}
    for lcore, (total, busy) in grown.items():
        row = lcores[lcore]
        assert 0 < row["total_cycles"] <= total and row["busy_cycles"] <= busy, (row, grown)
        assert abs(row["busy_share"] - busy / total) < 0.1, (row, grown)
    assert lcores[2]["busy_share"] == 0 < lcores[1]["busy_share"] <= 1
    threads = {row["lcore"]: row["lcore_busy_share"] for row in report["threads"] if row["lcore"] in lcores}
    assert threads == {lcore: row["busy_share"] for lcore, row in lcores.items()}
    table = check([RINGTAP, "top", "--once", "--view", "threads", "--collectors", "busy", app.prefix])
    assert "USAGE" in table, table
