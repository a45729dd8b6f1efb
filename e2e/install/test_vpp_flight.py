# SPDX-License-Identifier: BSD-3-Clause
"""Conditions of the flight recorder of VPP, built by hand: see test_vpp.py."""

import pytest
from harness import flight
from harness.attach import attach
from harness.paths import RINGTAP
from harness.proc import run, until
from harness.ringtap import FAILED, USAGE
from harness.vpp import BUILDS, Vpp

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.slow,
    pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build"),
]

# Events that VPP's build does not have, and verdicts that need data which only another command reads.
REFUSED = [
    ("usdt: vpp:error", FAILED, "no file of"),
    ("usdt: dpdk:rx", FAILED, "no file of"),
    ("doctor: outside_dpdk", USAGE, "only 'ringtap doctor' reads what this verdict needs"),
    ("doctor: scattered_buffers", USAGE, "only 'ringtap doctor' reads what this verdict needs"),
]
POSSIBLE = ("missed", "no-mbuf", "refused", "errors", "latency > 1s", "p99 > 1s", "gap > 100s", "burst > 1000000")


@pytest.mark.parametrize("build", BUILDS)
def test_conditions(build, net, closing, tmp_path):
    """Those that cannot be met are refused in a line. The level of VPP's pool, which it fills by itself, is known."""
    host, device = net.add_host("10.99.1.1")
    vpp = closing(Vpp(net.hub, {device: "10.99.1.254/24"}, build))
    attach(vpp.pid)
    for condition, status, words in REFUSED:
        done = run([RINGTAP, "flight", vpp.prefix, "-w", tmp_path / "none", "--on", condition])
        (line,) = done.stderr.splitlines()
        assert done.returncode == status and condition in line and words in line
    others = [word for condition in POSSIBLE for word in ("--on", condition)]
    recorder = closing(flight.Flight(vpp, tmp_path / "incidents", "--on", "pool < 100%", *others))
    ping = [*host.prefix, "ping", "-q", "-c", "1", "-W", "1", "10.99.1.254"]
    until(lambda: run(ping).returncode == 0, what="VPP answers")
    (incident,) = recorder.incidents(1)
    assert (incident.condition, incident["trigger"]["where"]) == ("pool < 100%", "vpp pool 0")
    assert "--on" not in recorder.finish()
