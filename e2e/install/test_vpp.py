# SPDX-License-Identifier: BSD-3-Clause
"""VPP, built by hand: `make vpp` runs these tests. RINGTAP_VPP names the folder that devtools/vpp-build.sh makes."""

import signal
import sys

import pytest
from harness.attach import attach
from harness.known import Measuring
from harness.proc import run, until
from harness.vpp import FOLDER, Vpp

SENT = 200
SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[1])):
    s.sendto(bytes(50), ("10.99.2.1", 9))
"""
DENIED = "acl-plugin-in-ip4-fa/ACL deny packets"
ROUTE = "dpdk-input/no error"  # what VPP calls it

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FOLDER.is_dir(), reason="RINGTAP_VPP names no build")]


@pytest.fixture
def router(net, closing):
    """VPP, with the probe, and a host in each of its two networks."""
    hosts = [net.add_host(f"10.99.{i}.1") for i in (1, 2)]
    vpp = closing(Vpp(net.hub, {port: f"10.99.{i}.254/24" for i, (_, port) in enumerate(hosts, 1)}))
    for i, (host, _) in enumerate(hosts, 1):
        host.check(["ip", "route", "add", "default", "via", f"10.99.{i}.254"])
    hosts = [host for host, _ in hosts]
    # VPP drops what waits for an address.
    once = ["ping", "-q", "-c", "1", "-W", "1", "10.99.2.1"]
    until(lambda: run([*hosts[0].prefix, *once]).returncode == 0, what="addresses are resolved")
    attach(vpp.pid)
    return vpp, hosts


def dropped(vpp, host, closing, reason):
    """Sends packets that VPP drops for a reason; what drops says when VPP has counted them."""
    drops = closing(Measuring("drops", vpp, "--once", "--duration", "120s", "--json", "--buffer", "16M"))
    host.check([sys.executable, "-c", SEND, str(SENT)])
    until(lambda: vpp.errors().get(reason) == SENT, what="VPP's own counter")
    report = drops.json(signal.SIGINT)
    own = report["counted_by_application"]
    assert own["source"] == "VPP" and own["error"] is None
    assert {c["name"]: c["packets"] for c in own["counters"]}[reason] == SENT
    # It frees without DPDK: until their mbufs are received again, they are open.
    assert report["offered"] == 0 and report["not_offered"] + report["open"] == SENT
    return own


def test_the_reason_stands_beside_the_packets(router, closing):
    """Packets that a route or an ACL drops are those that are not sent, and those of VPP's own counter."""
    vpp, (a, _b) = router
    vpp.ctl("ip route add 10.99.2.1/32 via drop")
    own = dropped(vpp, a, closing, ROUTE)
    assert (own["of_not_offered"], own["equal_to"]) == (SENT, [ROUTE]), own
    vpp.ctl("ip route del 10.99.2.1/32 via drop")

    vpp.ctl("set acl-plugin acl deny proto 17, permit")
    vpp.ctl(f"set acl-plugin interface {vpp.names[0]} input acl 0")
    own = dropped(vpp, a, closing, DENIED)
    assert own["equal_to"] == []  # a second counter, 'checked packets', has the same number


def test_without_its_statistics_it_says_so(router, closing):
    vpp, _ = router
    (vpp.dir / "stats.sock").unlink()
    text = closing(Measuring("drops", vpp, "--once")).finish()
    assert "Why VPP dropped packets is not known: " in " ".join(text.split()), text
