# SPDX-License-Identifier: BSD-3-Clause
"""The plugin in applications with DPDK other than as shared libraries in the global scope, and in
those where it cannot work: it never prevents their start."""

import json
import re
import shutil
import signal
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import dpdk, flight, sandbox
from harness.documents import only
from harness.paths import BUILD, PROBE_OBJECT, RINGTAP, copy_probe, probe_object
from harness.play import Play
from harness.proc import Proc, check, run, until
from harness.ringtap import listing, sessions
from harness.testpmd import Testpmd

STATIC = BUILD / "e2e" / "rt_play_static"


@pytest.fixture(scope="module")
def static():
    if not STATIC.exists():
        pytest.skip("built without DPDK's static libraries")


def log(app):
    """Messages of the plugin in the application."""
    return [line for line in app.proc.output.splitlines() if line.startswith("ringtap:")]


def told(*args):
    return json.loads(check([RINGTAP, *args]))


def record(app, path, *args):
    done = run([RINGTAP, "record", "-i", f"{app.prefix}:", "-w", path, "-c", "1000", *args])
    return done, check(["tcpdump", "-nr", path]).splitlines() if done.returncode == 0 else None


def mine(app):
    return next(a for a in listing() if a["name"] == app.prefix)


# ---- statically linked -----------------------------------------------------------------------


def test_statically_linked_application(static, plugin, closing, tmp_path):
    app = closing(Play(plugin, program=STATIC.name))
    maps = Path(f"/proc/{app.pid}/maps").read_text()
    assert str(probe_object(plugin)) in maps and "librte_" not in maps
    app.plug("net_null0", args="size=100")
    app.do("loop 0 0")
    assert [p["name"] for p in mine(app)["ports"]] == ["net_null0"]
    done, packets = record(app, tmp_path / "all.pcap", "-f", "greater 100")
    assert done.returncode == 0 and len(packets) == 1000, done.stderr
    done, _ = record(app, tmp_path / "none.pcap", "-f", "less 99", "-a", "duration:1")
    assert done.returncode == 0 and " 0 packets" in f" {done.stderr}", done.stderr
    top = told("top", "--once", "--json", app.prefix)
    assert app.prefix in json.dumps(top) and "net_null0" in json.dumps(top)
    (pair,) = until(lambda: only(told("latency", "--json", "--duration", "1s", app.prefix))["pairs"], what="latencies")
    assert pair["packets"] > 0
    memory = only(told("memory", "--json", "--duration", "1s", app.prefix))
    assert "rx" in {p["name"] for p in memory["pools"]}
    assert dpdk.telemetry(app.prefix, "/ringtap/mempools")["/ringtap/mempools"]["mempools"]
    app.do("unloop")
    assert not log(app) and app.quit() == 0


def test_filters_where_the_application_has_no_bpf(static, plugin, closing, tmp_path):
    app = closing(Play(plugin, program="rt_play_static_no_bpf"))
    app.plug("net_null0")
    app.do("loop 0 0")
    for expression, selects in (("greater 1", True), ("less 1", False), ("not ip6", True), ("vlan 5 and tcp", False)):
        limit = [] if selects else ["-a", "duration:1"]
        done, packets = record(app, tmp_path / "f.pcap", "-f", expression, *limit)
        assert done.returncode == 0 and len(packets) == (1000 if selects else 0), (expression, done.stderr)
    assert app.one("unloop") > 0 and app.quit() == 0


# ---- where it cannot work --------------------------------------------------------------------


def refused(app, *words):
    """The application runs without the probe; its log has one line with the reason."""
    (line,) = log(app)
    assert all(word in line for word in words), line
    assert line.endswith("the application runs without it")
    port = app.plug("net_null0")
    assert app.one(f"poll {port} 0 n=100") == 100
    assert mine(app)["load_probe"]
    assert app.quit() == 0


OBJECTS = sorted(PROBE_OBJECT.parent.glob("probe-abi*.so"))


def test_every_object_is_independent_of_this_dpdk():
    """Objects of the same source have the same symbols, and need no library of the DPDK that is installed here."""

    def exported(file):
        return set(re.findall(r" GLOBAL DEFAULT +\d+ (\w+)", check(["readelf", "-W", "--dyn-syms", file])))

    for path in OBJECTS:
        assert exported(path) == exported(PROBE_OBJECT)
        assert "librte" not in check(["readelf", "-d", path])


@pytest.mark.smoke
def test_objects_that_cannot_be_loaded(static, plugin, closing, play, private_dir):
    """A missing one, one of another ABI that is called as this DPDK's, a damaged one. All symbols are resolved when an object is
    loaded, none in a polling thread. A static application that exports nothing."""
    refused(closing(Play(plugin, program="rt_play_static_hidden")), "-Wl,--export-dynamic")
    alone = Path(shutil.copy(plugin, private_dir))
    refused(play(plugin=alone), str(private_dir / "ringtap" / PROBE_OBJECT.name), "DPDK ", "is missing", "make probes")
    alone.unlink()
    alone = copy_probe(plugin, private_dir)
    good = probe_object(alone).read_bytes()
    others = [path for path in OBJECTS if path.name > PROBE_OBJECT.name]
    if others:  # by make probes, for later DPDK
        shutil.copy(others[-1], probe_object(alone))
        refused(play(plugin=alone), "undefined symbol")
    probe_object(alone).write_bytes(b"something else" * 100)
    refused(play(plugin=alone), "invalid ELF header")
    probe_object(alone).write_bytes(good)
    code = probe_object(alone).read_bytes()
    probe_object(alone).write_bytes(code.replace(b"\0rte_eth_add_tx_callback\0", b"\0rte_eth_add_xx_callback\0"))
    refused(closing(Play(alone)), "undefined symbol: rte_eth_add_xx_callback")


def test_object_of_another_version(play, plugin, private_dir, closing):
    """Its table of functions is not used; readers can still attach. An application that is linked with the
    loader, without the object."""
    alone = copy_probe(plugin, private_dir)
    code = probe_object(alone).read_bytes()
    head = struct.pack("II", 4, 80)  # version and size in struct rt_probe_api
    assert code.count(head) == 1
    probe_object(alone).write_bytes(code.replace(head, struct.pack("II", 5, 80)))
    app = play(plugin=alone)
    (line,) = log(app)
    assert str(probe_object(alone)) in line and "have different versions" in line
    assert mine(app)["load_probe"] is None and app.quit() == 0
    (private_dir / "linked").mkdir()
    alone = shutil.copy(BUILD / "probe" / "libringtap-probe.so", private_dir / "linked")
    prefix = dpdk.new_prefix("play")
    proc = closing(Proc([BUILD / "e2e" / "rt_play_linkin", *dpdk.eal_args(prefix)], env={"LD_PRELOAD": str(alone)}))
    proc.expect("^ready$")
    proc.send("probe_start")
    proc.expect("^error Function not implemented$")
    proc.send("probe_stop")
    proc.send("quit")
    assert proc.wait() == 0 and proc.output.count("ringtap:") == 1
    dpdk.remove_run_dir(prefix)


# ---- DPDK in a shared library that a program has loaded for itself alone ---------------------

LOCAL = """
import ctypes, sys
eal = ctypes.CDLL(sys.argv[1])
args = [a.encode() for a in ["program", *sys.argv[2:]]]
rc = eal.rte_eal_init(len(args), (ctypes.c_char_p * len(args))(*args))
print("started", rc >= 0, flush=True)
input()
"""


def test_dpdk_outside_of_the_global_scope(plugin, closing):
    lines = check(["ldd", BUILD / "e2e" / "rt_play"]).splitlines()
    eal = next(line.split()[2] for line in lines if "librte_eal.so" in line)
    prefix = dpdk.new_prefix("local")
    proc = closing(Proc([sys.executable, "-c", LOCAL, eal, *dpdk.eal_args(prefix, plugin)]))
    proc.expect("^started True$")
    assert "ringtap:" not in proc.output
    assert dpdk.telemetry(prefix, "/ringtap/attach")["/ringtap/attach"]["status"] == 0
    proc.send("")
    proc.wait()
    dpdk.remove_run_dir(prefix)


def test_dpdk_in_a_plugin_of_local_scope(static, plugin, closing, tmp_path):
    """As in VPP: a static DPDK that the plugin exports."""
    app = closing(Play(plugin, program="rt_play_plugin"))
    app.plug("net_null0", args="size=100")
    app.do("loop 0 0")
    done, packets = record(app, tmp_path / "all.pcap", "-f", "greater 100")
    assert done.returncode == 0 and len(packets) == 1000, done.stderr
    done, _ = record(app, tmp_path / "none.pcap", "-f", "less 99", "-a", "duration:1")
    assert done.returncode == 0 and " 0 packets" in f" {done.stderr}", done.stderr
    assert app.one("unloop") > 0 and not log(app) and app.quit() == 0


@pytest.mark.nightly
def test_ports_come_and_go_in_a_plugin_of_local_scope(static, plugin, record, closing, tmp_path):
    """With a recorder and a flight recorder, while another port receives at its maximum rate: counts are exact, and the report
    has the end of the port."""
    app = closing(Play(plugin, program="rt_play_plugin"))
    app.plug("net_null0")
    recorder = record(app, "-s", "64", "--json", out="/dev/null")
    kept = closing(flight.Flight(app, tmp_path / "incidents", "-s", "64", "--before", "1h", "-f", "greater 65"))
    app.do("loop 0 0")
    for n in range(30):
        port = app.plug("net_null7", args="size=100")
        until(lambda: [s["taps"] for s in sessions(app)] == [4, 4], what="both recorders capture two ports")
        app.one(f"poll {port} 0 n={n + 1}")
        app.do("unplug net_null7")
        until(lambda: [s["taps"] for s in sessions(app)] == [2, 2], what="both recorders capture one port")
    looped = app.one("unloop")
    kept.proc.send_signal(signal.SIGUSR1)
    (incident,) = kept.incidents(1)
    kept.finish()
    first, second = recorder.report()["interfaces"]
    assert [(i["name"], i["removed"]) for i in (first, second)] == [("net_null0", False), ("net_null7", True)]
    assert first["seen"] == 2 * looped and second["seen"] == sum(range(31))
    assert all(i["seen"] == i["captured"] + i["lost_total"] for i in (first, second))
    assert incident["packets"] == sum(range(31)) and incident["lost"] == 0
    assert not log(app) and app.quit() == 0


def test_preloaded_before_a_plugin_of_local_scope(static, plugin, closing, tmp_path):
    """The plugin's call of rte_eal_init() loads the probe's object first, so that no packet is missed. Programs without DPDK
    get nothing, and no message."""
    preload = SimpleNamespace(prefix=["env", f"LD_PRELOAD={plugin}"])
    assert not run([*preload.prefix, "sh", "-c", "ls /"]).stderr
    app = closing(Play(None, program="rt_play_plugin", namespace=preload))
    assert str(probe_object(plugin)) in Path(f"/proc/{app.pid}/maps").read_text()
    app.plug("net_null0", args="size=100")
    app.do("loop 0 0")
    done, packets = record(app, tmp_path / "all.pcap", "-f", "greater 100")
    assert done.returncode == 0 and len(packets) == 1000, done.stderr
    assert app.one("unloop") > 0 and not log(app) and app.quit() == 0


# ---- DPDK as it is installed -----------------------------------------------------------------


def test_with_every_driver_that_is_installed(plugin, closing, tmp_path):
    """Other tests run with a few drivers: e2e/harness/sandbox.py hides the others."""
    folder = sandbox.driver_folder()
    if not folder:
        pytest.skip("DPDK's drivers are not where Debian has them")
    uncover = SimpleNamespace(prefix=["unshare", "-m", "sh", "-c", f'umount {folder} && exec "$@"', "sh"])
    app = closing(Testpmd(["net_null0"], plugin, namespace=uncover, eal=["--log-level=lib.eal:debug"]))
    assert app.proc.output.count("open shared lib") > 2 * len(sandbox.DRIVERS)
    app.start()
    done, packets = record(app, tmp_path / "out.pcap")
    assert done.returncode == 0 and len(packets) == 1000, done.stderr
