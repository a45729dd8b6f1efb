# SPDX-License-Identifier: BSD-3-Clause
"""ringtap in a container beside the application's, which share the run-time folder and nothing else."""

import json
import re
from pathlib import Path

import pytest
import yaml
from harness import pcap, pcapng, sandbox
from harness.attach import attach, bare
from harness.container import Container, namespace_of, pid_of
from harness.documents import only
from harness.paths import BUILD, REPO, RINGTAP
from harness.play import Play
from harness.proc import Proc, check, run, until
from harness.ringtap import BUFFER, FAILED

RUN = Path("/run/dpdk")
USERS = pytest.mark.parametrize("users", [False, True])


class Pair:
    """An application with the probe in one container, commands in another one."""

    def __init__(self, folder, output, closing):
        self.app = bare(closing, namespace=Container(share={folder: RUN}))
        self.pid = pid_of(self.app)
        self._sidecar = Container(share={folder: RUN, sandbox.public(BUILD): BUILD, output: output})

    def ringtap(self, *args):
        return [*self._sidecar.prefix, RINGTAP, *args]


@pytest.fixture
def pair(private_dir, closing, tmp_path):
    return Pair(private_dir, tmp_path, closing)


def test_every_command(pair, closing, tmp_path):
    """Those of docs/containers.md; what needs the process says so in one line."""
    apps = json.loads(check(pair.ringtap("list", "--json")))["applications"]
    (found,) = apps
    assert found["name"] == pair.app.prefix and "without the ringtap probe" in found["error"]
    assert_needs_the_process(pair.ringtap("attach", pair.app.prefix))
    attach(pair.pid)
    assert_needs_the_process(pair.ringtap("trace", "burst", pair.app.prefix))
    (found,) = json.loads(check(pair.ringtap("list", "--json")))["applications"]
    assert found["dir"] == f"/var{RUN}/{pair.app.prefix}" and found["ports"][0]["name"] == "net_null0"
    assert found["pid"] == 1 and found["host_pid"] is None
    assert namespace_of(pair.pid, "pid") != namespace_of("self", "pid")
    check(pair.ringtap("record", "-c", "1000", "--buffer", BUFFER, "-w", tmp_path / "a.pcapng"))
    assert check(["capinfos", "-Mc", tmp_path / "a.pcapng"]).split()[-1] == "1000"

    def receives():
        (top,) = json.loads(check(pair.ringtap("top", "--once", "--json")))["applications"]
        return top["ports"][0]["rx"]["packets_per_second"] > 0

    until(receives, what="an interval in which its thread had a CPU")
    name = pair.app.prefix
    latency = only(json.loads(check(pair.ringtap("latency", "--json", "--duration", "0.5s", name))))
    assert latency["pairs"] and latency["pairs"][0]["packets"] > 0
    memory = only(json.loads(check(pair.ringtap("memory", "--json", "--duration", "0.5s", name))))
    assert memory["pools"]
    done = run(pair.ringtap("doctor", "--json", "--duration", "1s", name))
    (found,) = json.loads(done.stdout)["applications"]
    assert found["name"] == name and not found.get("error"), done.stderr
    # The container's network is its own: a request is made in it.
    exporter = closing(Proc(pair.ringtap("export", "--listen", "127.0.0.1:0")))
    port = exporter.expect(r"^Exporting at http://\S+:(\d+)/").group(1).decode()
    inner = check(["pgrep", "-f", f"^{RINGTAP} export --listen 127.0.0.1:0$"]).split()[-1]
    check(["nsenter", "-n", "-t", inner, "ip", "link", "set", "lo", "up"])

    def received():
        text = check(["nsenter", "-n", "-t", inner, "curl", "-s", f"http://127.0.0.1:{port}/metrics"])
        counts = re.findall(rf'^ringtap_port_rx_packets_total\{{[^}}]*app="{name}"[^}}]*\}} (\S+)$', text, re.MULTILINE)
        return counts and sum(map(float, counts)) > 0

    until(received, what="packets in the metrics")
    assert pair.app.one("unloop") > 0 and pair.app.quit() == 0


def assert_needs_the_process(command):
    done = run(command)
    (line,) = done.stderr.splitlines()
    assert done.returncode == FAILED and "its process is not visible here" in line and "PID namespace" in line


# ---- the manifest -----------------------------------------------------------------------------


def manifest():
    """Arguments and security of the recorder in the shipped sidecar."""
    pod = yaml.safe_load((REPO / "packaging" / "kubernetes" / "sidecar.yaml").read_text())
    (recorder,) = (c for c in pod["spec"]["containers"] if c["name"] == "ringtap")
    assert recorder["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    return recorder["args"]


# capabilities: drop ALL; allowPrivilegeEscalation: false; readOnlyRootFilesystem (what is mounted stays writable)
RESTRICTED = [
    "sh",
    "-c",
    'mount -o remount,ro,bind / && exec "$@"',
    "sh",
    "setpriv",
    "--bounding-set=-all",
    "--inh-caps=-all",
    "--no-new-privs",
]


def test_flight_as_the_manifest_runs_it(private_dir, closing, tmp_path):
    """It waits for the application, which loads the probe itself and appears later; a request that comes by the
    folder of the captures makes an incident, and so does the end of the application."""
    folder, captures = private_dir / "dpdk", tmp_path / "captures"
    folder.mkdir()
    captures.mkdir()
    args = [word.replace("/captures", str(captures)) for word in manifest()]
    assert args[:2] == ["flight", "--wait"] and args[-1] == "app"
    share = {folder: RUN, sandbox.public(BUILD): BUILD}
    sidecar = Container(share={**share, captures: captures}, command=RESTRICTED)
    recorder = closing(Proc([*sidecar.prefix, RINGTAP, *args[:-1], "--on", "exit", "--buffer", "32M", args[-1]]))
    recorder.expect("^Waiting for app")
    app = closing(Play(BUILD / "probe" / "libringtap-probe.so", namespace=Container(share=share), prefix="app"))
    ring = app.ring("a")
    recorder.expect("^Keeping the packets of")
    assert app.rx(ring, n=100, len=200)[0] == 100
    pid = check(["pgrep", "-f", f"^{RINGTAP} flight --wait -w {captures}/incidents "]).split()[-1]
    inside = ["nsenter", "-t", pid, "-m", "-p", *RESTRICTED[4:]]  # as kubectl exec
    check([*inside, RINGTAP, "flight", "trigger", "--folder", captures / "incidents"])
    recorder.expect(r"^Incident \S+: \d+ packets")
    app.proc.kill()
    recorder.wait()
    packets = sorted((captures / "incidents").glob("*/packets.pcapng"))
    assert [p.parent.name.rpartition("-")[2] for p in packets] == ["command", "exit"]
    for path in packets:
        assert [p.data for p in pcapng.read(path).packets] == [pcap.frame(200, k) for k in range(100)]
        assert check(["capinfos", "-Mc", path]).split()[-1] == "100"
