# SPDX-License-Identifier: BSD-3-Clause
"""DPDK of releases and with options that no release of Debian has, built by hand: `make builds` runs these tests.
RINGTAP_DPDK_BUILDS names the folder of the installations, which devtools/dpdk-builds.sh makes."""

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness.attach import attach
from harness.documents import only
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
def pmd(closing, plugin):
    def start(name, ports=2, probe=plugin):
        """A testpmd of this build that forwards."""
        at = FOLDER / name
        inside = SimpleNamespace(prefix=["env", f"PATH={at}/bin:{os.environ['PATH']}", f"LD_LIBRARY_PATH={at}/lib"])
        app = closing(
            Testpmd([f"net_null{i}" for i in range(ports)], probe, namespace=inside, mbufs=MBUFS, memory_mb=512)
        )
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
