# SPDX-License-Identifier: BSD-3-Clause
"""One installation of ringtap with applications of another release of DPDK: `make matrix` runs these tests in the
root of each suite, with its own applications. Each test is a column of docs/matrix.json."""

import json
import shutil
import signal

import pytest
from harness import ovs as ovs_module
from harness.documents import only
from harness.examples import FOLDER, OPTIONS, Example, Files
from harness.netns import Net
from harness.ovs import Ovs
from harness.paths import RINGTAP, dpdk_version
from harness.proc import check, run, until
from harness.ringtap import OK, Recorder, listing, sessions
from harness.testpmd import Testpmd
from harness.tracers import Ctf, bpftrace_missing

WAYS = ("fresh", "running")  # started with the plugin; attached to
EVENT_BYTES = 8  # at least, in a trace of DPDK: time and number of the event
CELLS = [
    (application, way)
    for way in WAYS
    for application in ("testpmd", "ovs", *(f"{name}-{kind}" for name in OPTIONS for kind in ("shared", "static")))
]


def pytest_generate_tests(metafunc):
    metafunc.parametrize("cell", CELLS, ids="-".join, indirect=True, scope="module")


class Switch(Ovs):
    """Two hosts that send to each other."""

    def __init__(self, plugin):
        reason = ovs_module.missing()
        if reason:
            pytest.skip(reason)
        self.net = Net()
        self.pings = []
        try:
            hosts = [self.net.add_host(f"10.99.0.{i}") for i in (1, 2)]
            super().__init__(self.net.hub, plugin)
            self.ports = ["p0", "p1"]
            for name, (_, port) in zip(self.ports, hosts):
                self.add_port(name, port)
            self.pings = [hosts[0][0].start(["ping", "-q", "-i", "0.001", "10.99.0.2"])]
        except BaseException:
            self.net.close()
            raise

    @property
    def proc(self):
        return self.switch

    def close(self):
        for ping in self.pings:
            ping.close()
        super().close()
        self.net.close()


def start(application, plugin, folder):
    if application == "ovs":
        return Switch(plugin)
    if application == "testpmd":
        traffic = Files(folder)
        app = Testpmd(traffic.vdevs, plugin)
        app.ports = traffic.ports
        app.start()
        return app
    if not FOLDER.is_dir():
        pytest.skip("DPDK's examples are not built: make matrix")
    return Example(*application.rsplit("-", 1), folder, plugin)


def listed(app):
    return next((a for a in listing() if a["name"] == app.prefix), {})


def has_command(name):
    return run([RINGTAP, "help", name]).returncode == 0


@pytest.fixture(scope="module")
def cell(request, plugin, tmp_path_factory):
    """An application that receives and sends, with the probe in it."""
    application, way = request.param
    if way == "running" and not has_command("attach"):
        pytest.skip("this ringtap has no command attach")
    app = start(application, plugin if way == "fresh" else None, tmp_path_factory.mktemp("app"))
    try:
        until(lambda: listed(app) or not app.proc.alive(), what="the application to start")
        assert app.proc.alive(), app.proc.output[-3000:]
        if way == "running":
            check([RINGTAP, "attach", app.pid])
        app.way = way
        until(lambda: not app.proc.alive() or received(app), what="packets")
        yield app
        assert app.proc.alive() and "ringtap:" not in app.proc.output, app.proc.output[-3000:]
    finally:
        app.close()


@pytest.fixture
def app(cell):
    """It runs before and after each test."""
    assert cell.proc.alive(), cell.proc.output[-3000:]
    yield cell
    assert cell.proc.alive(), cell.proc.output[-3000:]


def document(*args, status=(OK,)):
    done = run([RINGTAP, *args])
    assert done.returncode in status, done.stderr
    return json.loads(done.stdout)


def received(app):
    """Packets of all ports while `ringtap top` ran, in which time other programs may have had the application's CPU;
    0 if it cannot attach."""
    done = run([RINGTAP, "top", "--once", "--json", "--interval", "0.2s", app.prefix])
    if done.returncode != OK:
        return 0
    return sum(
        q["packets"] for a in json.loads(done.stdout)["applications"] for q in a["queues"] if q["direction"] == "rx"
    )


def test_list(app):
    found = listed(app)
    assert found["dpdk"].split()[-1].startswith(dpdk_version())
    assert {p["name"] for p in found["ports"]} == set(app.ports)


def test_record(app, tmp_path):
    """With a filter, which is checked by tcpdump."""
    path = tmp_path / "out.pcap"
    expression = "icmp" if isinstance(app, Switch) else "udp dst port 53"
    done = run([RINGTAP, "record", "-i", f"{app.prefix}:", "-f", expression, "-c", "1000", "-w", path])
    assert done.returncode == OK, done.stderr
    assert len(check(["tcpdump", "-nr", path, expression]).splitlines()) == 1000
    done = run([RINGTAP, "record", "-i", f"{app.prefix}:", "-f", "not ip and not arp", "-a", "duration:1", "-w", path])
    assert done.returncode == OK and " 0 packets" in f" {done.stderr}", done.stderr


def test_top(app):
    until(lambda: received(app), what="packets")


def test_latency(app):
    pairs = only(document("latency", "--json", "--duration", "1s", app.prefix))["pairs"]
    assert sum(pair["packets"] for pair in pairs) > 0


def test_memory(app):
    pools = only(document("memory", "--json", "--duration", "1s", app.prefix))["pools"]
    assert any(pool["size"] for pool in pools)


def test_doctor(app):
    text = json.dumps(document("doctor", "--json", "--duration", "1s", app.prefix, status=(OK, 4)))
    assert app.prefix in text


def test_trace_dpdk(app, tmp_path):
    """Read by Babeltrace 2.0: 2.1 aborts on every trace that has been tried, docs/dpdk.md. EAL describes the events
    when it starts: those of a probe that comes later cannot be among them."""
    folder = tmp_path / "trace"
    if app.way == "running":
        done = run([RINGTAP, "trace", "dpdk", "--duration", "1s", "-w", folder, app.prefix])
        assert done.returncode == 1 and "start the application with -d" in done.stderr
        pytest.skip("DPDK's tracing has no events of a probe that was attached")
    doc = only(document("trace", "dpdk", "--json", "--duration", "1s", "-w", folder, app.prefix))
    assert "ringtap.rx_burst" in (folder / "metadata").read_text()
    assert doc["events"]["rx_burst"]
    # Polls that find no packets fill the buffer in about a millisecond, and DPDK starts again at its beginning: no
    # burst need be left. What is lost is counted.
    kept = {event: n - doc["lost"].get(event, 0) for event, n in doc["events"].items()}
    assert sum(kept.values()), doc
    if " 2.0." in check(["babeltrace2", "--version"]):
        trace = Ctf(folder)
        assert {event: trace.count(event) for event in kept} == kept
    else:
        size = sum(path.stat().st_size for path in folder.glob("channel*"))
        assert size >= EVENT_BYTES * sum(kept.values())


def test_trace_bpftrace(app):
    reason = bpftrace_missing()
    if reason:
        pytest.skip(reason)
    done = run([RINGTAP, "trace", "burst", "--json", "--duration", "1s", app.prefix])
    assert done.returncode == OK and "deprecated" not in done.stderr, done.stderr
    assert {q["direction"] for q in only(json.loads(done.stdout))["queues"]} == {"rx", "tx"}
    done = run([RINGTAP, "trace", "-e", "ringtap:rx_burst { @ = count(); exit(); }", app.prefix])
    assert done.returncode == OK and "deprecated" not in done.stderr, done.stderr
    assert int(done.stdout.split("@: ")[1]) > 0


def test_killed_recorder(app, tmp_path):
    """The application forwards as before, and can be recorded again."""
    recorder = Recorder(["-i", f"{app.prefix}:"], tmp_path / "killed.pcapng").attached()
    try:
        until(lambda: sessions(app), what="a session")
        recorder.proc.send_signal(signal.SIGKILL)
        until(lambda: not sessions(app), what="the end of the session")
    finally:
        recorder.close()
    until(lambda: received(app), what="packets")
    check([RINGTAP, "record", "-i", f"{app.prefix}:", "-c", "100", "-w", tmp_path / "next.pcapng"])
    shutil.rmtree(tmp_path, ignore_errors=True)
