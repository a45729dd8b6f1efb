# SPDX-License-Identifier: BSD-3-Clause
"""ringtap drops with Open vSwitch: what a rule drops is shown, and what the switch copies, is said."""
import signal

import pytest

from harness.known import Measuring
from harness.proc import check, run, until

PINGS = 40


@pytest.fixture
def switch(ovs, net):
    """Two hosts on one bridge, that do not resolve addresses while a test counts."""
    hosts = [net.add_host(f"10.99.0.{i}") for i in (1, 2)]
    it = ovs()
    for i, (_, port) in enumerate(hosts):
        it.add_port(f"p{i}", port)
    assert hosts[0][0].check(["ping", "-q", "-c", "1", "10.99.0.2"])
    return it, [host for host, _ in hosts]


def rule(switch, text):
    check(["ovs-ofctl", "add-flow", f"unix:{switch.dir}/br0.mgmt", text])


def ping(host, to="10.99.0.2", count=PINGS):
    return run([*host.prefix, "ping", "-q", "-c", count, "-i", "0.01", "-W", "1", to]).stdout


def drop_requests(switch, hosts, action):
    """Until the switch, which caches what it has looked up, does so with each echo request to host 1."""
    rule(switch, f"priority=100,icmp,icmp_type=8,nw_dst=10.99.0.2,actions={action}")
    until(lambda: "100% packet loss" in ping(hosts[0], count=1), what="the rule is in effect")


def of_protocol(report, name):
    kinds = {p["protocol"]: p for p in report["not_offered_packets"]["protocols"]}
    return kinds.get(name, {"packets": 0})


def test_packets_dropped_by_a_rule(switch, closing, tmp_path):
    it, hosts = switch
    path = tmp_path / "dropped.pcapng"
    drop_requests(it, hosts, "drop")
    drops = closing(Measuring("drops", it, "--once", "--duration", "120", "--json", "--buffer", "16M", "-w", path))
    assert " 0% packet loss" in ping(hosts[1], "10.99.0.1")
    assert "100% packet loss" in ping(hosts[0])
    report = drops.json(signal.SIGINT)
    icmp = of_protocol(report, "IPv4 ICMP")
    assert icmp["packets"] == PINGS, report
    assert icmp["example"]["packet"].startswith("10.99.0.1 > 10.99.0.2 ICMP, 98 bytes")
    assert icmp["example"]["port"] == "p0" and report["copies_not_seen"] and report["lost"] == 0
    for what in [report, *report["queues"]]:
        assert what["received"] == what["offered"] + what["not_offered"] + what["open"] + what["unknown"]
    shown = check(["tshark", "-r", path, "-Y", "icmp.type == 8", "-T", "fields", "-e", "frame.comment"]).splitlines()
    assert len(shown) == PINGS and all("not offered to any port" in line for line in shown)


def test_copies_for_an_internal_port_are_said(switch, closing):
    it, hosts = switch
    drop_requests(it, hosts, "LOCAL")
    drops = closing(Measuring("drops", it, "--duration", "120", "--buffer", "16M"))
    ping(hosts[0])
    text = drops.finish(signal.SIGINT)
    assert "Open vSwitch copies packets" in text
    assert any(line.split()[:3] == ["IPv4", "ICMP", str(PINGS)] for line in text.splitlines()), text
