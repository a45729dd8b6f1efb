# SPDX-License-Identifier: BSD-3-Clause
"""VPP, built by hand: `make vpp` runs these tests. RINGTAP_VPP names the folder that devtools/vpp-build.sh makes."""

import json
import signal
import sys
from pathlib import Path

import pytest
from harness.attach import attach
from harness.documents import only
from harness.known import Measuring
from harness.paths import RINGTAP, probe_object
from harness.proc import check, run, until
from harness.ringtap import listing
from harness.vpp import BUILDS, Vpp

SENT = 200
SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[1])):
    s.sendto(bytes(50), ("10.99.2.1", 9))
"""
DENIED = "acl-plugin-in-ip4-fa/ACL deny packets"
ROUTE = "dpdk-input/no error"  # what VPP calls it

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build")]


@pytest.fixture(params=BUILDS)
def router(request, net, closing):
    """VPP, with the probe, and a host in each of its two networks."""
    hosts = [net.add_host(f"10.99.{i}.1") for i in (1, 2)]
    vpp = closing(Vpp(net.hub, {port: f"10.99.{i}.254/24" for i, (_, port) in enumerate(hosts, 1)}, request.param))
    for i, (host, _) in enumerate(hosts, 1):
        host.check(["ip", "route", "add", "default", "via", f"10.99.{i}.254"])
    hosts = [host for host, _ in hosts]
    # VPP drops what waits for an address.
    once = ["ping", "-q", "-c", "1", "-W", "1", "10.99.2.1"]
    until(lambda: run([*hosts[0].prefix, *once]).returncode == 0, what="addresses are resolved")
    attach(vpp.pid)
    return vpp, hosts


@pytest.mark.parametrize("build", BUILDS)
def test_preloaded(build, net, plugin, closing):
    """The probe waits for EAL, which VPP's plugin starts."""
    _, device = net.add_host("10.99.1.1")
    vpp = closing(Vpp(net.hub, {device: "10.99.1.254/24"}, build, env={"LD_PRELOAD": str(plugin)}))
    assert str(probe_object(plugin)) in Path(f"/proc/{vpp.pid}/maps").read_text() and "ringtap" not in vpp.proc.output
    attach(vpp.pid)  # without telemetry it has to be started
    assert [port["driver"] for port in only_listed(vpp)["ports"]] == ["net_af_packet"]


def only_listed(vpp):
    (entry,) = [app for app in listing() if app["pid"] == vpp.pid]
    return entry


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


def test_interfaces_that_are_not_dpdks_are_named(router, net, closing):
    """A recording lacks their packets: list and doctor name them, with the rates that VPP counts."""
    vpp, _ = router
    host, device = net.add_host("10.99.7.1")
    vpp.ctl(f"create host-interface name {device}")
    vpp.ctl(f"set interface ip address host-{device} 10.99.7.254/24")
    vpp.ctl(f"set interface state host-{device} up")
    vpp.ctl("create interface memif id 0 master")
    vpp.ctl("create interface memif id 1 master")
    vpp.ctl("delete interface memif memif0/1")  # its name stays in the segment
    vpp.ctl("create loopback interface")
    closing(host.start(["ping", "-q", "-i", "0.01", "10.99.7.254"]))
    until(lambda: host.echo_replies() > 10, what="VPP answers")

    own = only_listed(vpp)["own_interfaces"]
    assert own["source"] == "VPP" and own["error"] is None
    ports = {i["name"]: (i["driver"], i["port"]) for i in own["interfaces"]}
    assert ports == {
        vpp.names[0]: ("DPDK", 0),
        vpp.names[1]: ("DPDK", 1),
        f"host-{device}": ("af_packet", None),
        "memif0/0": ("memif", None),
    }
    rates = {i["name"]: (i["rx_pps"], i["tx_pps"]) for i in own["interfaces"]}
    assert min(rates[f"host-{device}"]) > 10 and rates["memif0/0"] == (0, 0)
    assert "a recording lacks the packets of 2 interfaces without a port" in check([RINGTAP, "list", vpp.prefix])

    done = run([RINGTAP, "doctor", "--duration", "1s", "--no-packets", "--json", vpp.prefix])
    (note,) = [v for v in only(json.loads(done.stdout))["verdicts"] if v["verdict"] == "outside_dpdk"]
    assert note["grade"] == "note" and len(note["evidence"]) == 3
    assert note["evidence"][1].startswith(f"host-{device} (af_packet): received "), note
