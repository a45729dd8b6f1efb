# SPDX-License-Identifier: BSD-3-Clause
"""ringtap drops with Open vSwitch: what a rule, a policer and a meter drop is shown, what a driver refuses is
counted, and what the switch copies, is said."""

import signal
import sys

import pytest
from harness import flight
from harness.known import Measuring
from harness.proc import check, run, until

PINGS = 40
SENT = 200
ASIDE = "10.99.0.12"  # host 1's as well: no rule is for it
RING = 1023  # packets in a ring of net_ring
BURST = 32
SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[1])):
    s.sendto(bytes(50), ("10.99.0.2", 9))
"""


@pytest.fixture
def switch(ovs, net):
    """Two hosts on one bridge, that do not resolve addresses while a test counts."""
    hosts = [net.add_host(f"10.99.0.{i}") for i in (1, 2)]
    it = ovs()
    for i, (_, port) in enumerate(hosts):
        # Room for all packets of a test, which may come while the polling thread has no CPU.
        it.add_port(f"p{i}", port, devargs=",framecnt=4096")
    hosts = [host for host, _ in hosts]
    hosts[1].check(["ip", "addr", "add", f"{ASIDE}/24", "dev", "eth0"])
    for address in "10.99.0.2", ASIDE:
        resolve(hosts[0], address)
    return it, hosts


def resolve(host, address):
    """A request is given up where no answer to ARP comes within 3 s."""
    until(lambda: run([*host.prefix, "ping", "-q", "-c", "1", address]).returncode == 0, what="an answer")
    host.ping(address, 1)


def rule(switch, text):
    check(["ovs-ofctl", "add-flow", f"unix:{switch.dir}/br0.mgmt", text])


def ping(host, count=PINGS):
    """Echo requests to host 1, of which some or all are dropped."""
    run([*host.prefix, "ping", "-q", "-c", count, "-i", "0.01", "-W", "0.1", "10.99.0.2"])


def settle(hosts):
    """Until all that host 0 has sent is forwarded, or dropped by a rule: this request is behind it."""
    hosts[0].ping(ASIDE, 1)


def replies(hosts, count=PINGS):
    """Number of these requests that were answered, however late."""
    before = hosts[0].echo_replies()
    ping(hosts[0], count)
    settle(hosts)
    return hosts[0].echo_replies() - before - 1


def in_effect(hosts):
    """Until the switch, which caches what it has looked up, looks up a new rule."""
    until(lambda: replies(hosts, count=1) == 0, what="the rule is in effect")


def drop_requests(switch, hosts, action):
    rule(switch, f"priority=100,icmp,icmp_type=8,nw_dst=10.99.0.2,actions={action}")
    in_effect(hosts)


def of_protocol(report, name):
    kinds = {p["protocol"]: p for p in report["not_offered_packets"]["protocols"]}
    return kinds.get(name, {"packets": 0})


def assert_requests(report, lost):
    """So many echo requests were not offered, and there is an example."""
    icmp = of_protocol(report, "IPv4 ICMP")
    assert icmp["packets"] == lost > 0, report
    assert icmp["example"]["packet"].startswith("10.99.0.1 > 10.99.0.2 ICMP, 98 bytes")
    assert icmp["example"]["port"]["name"] == "p0" and report["lost"] == 0


def test_packets_dropped_by_a_rule_or_a_meter_and_those_copied(switch, closing, tmp_path):
    it, hosts = switch
    path = tmp_path / "dropped.pcapng"
    drop_requests(it, hosts, "drop")
    drops = closing(Measuring("drops", it, "--once", "--duration", "1h", "--json", "--buffer", "16M", "-w", path))
    hosts[1].ping("10.99.0.1", PINGS)
    assert replies(hosts) == 0
    report = drops.json(signal.SIGINT)
    assert_requests(report, PINGS)
    assert report["copies_not_seen"]
    for what in [report, *report["queues"]]:
        assert what["received"] == what["offered"] + what["not_offered"] + what["open"] + what["unknown"]
    shown = check(["tshark", "-r", path, "-Y", "icmp.type == 8", "-T", "fields", "-e", "frame.comment"]).splitlines()
    assert len(shown) == PINGS and all("not offered to any port" in line for line in shown)

    # A rule of the same match and priority replaces it. No reply comes: the copies are for the host's own port.
    drop_requests(it, hosts, "LOCAL")
    drops = closing(Measuring("drops", it, "--duration", "1h", "--buffer", "16M"))
    assert replies(hosts) == 0
    text = drops.finish(signal.SIGINT)
    assert "Open vSwitch copies packets" in text
    assert any(line.split()[:3] == ["IPv4", "ICMP", str(PINGS)] for line in text.splitlines()), text

    check(
        [
            "ovs-ofctl",
            "-O",
            "OpenFlow13",
            "add-meter",
            f"unix:{it.dir}/br0.mgmt",
            "meter=1,pktps,burst,band=type=drop,rate=1,burst_size=5",
        ]
    )
    check(
        [
            "ovs-ofctl",
            "-O",
            "OpenFlow13",
            "add-flow",
            f"unix:{it.dir}/br0.mgmt",
            "priority=101,icmp,icmp_type=8,nw_dst=10.99.0.2,actions=meter:1,normal",
        ]
    )
    until(lambda: replies(hosts, count=1) == 1, what="the meter lets one request pass")
    in_effect(hosts)
    drops = closing(Measuring("drops", it, "--once", "--duration", "1h", "--json", "--buffer", "16M", "-f", "icmp"))
    came = replies(hosts)
    assert_requests(drops.json(signal.SIGINT), PINGS - came)


def test_packets_dropped_by_a_policer(switch, closing):
    """1,250 bytes at once, as many a second: of 98 each."""
    it, hosts = switch
    it.vsctl("set", "Interface", "p0", "ingress_policing_rate=10", "ingress_policing_burst=10")
    drops = closing(Measuring("drops", it, "--once", "--duration", "1h", "--json", "--buffer", "16M", "-f", "icmp"))
    before = hosts[0].echo_replies()
    ping(hosts[0])

    def came():
        return hosts[0].echo_replies() - before

    until(lambda: came() + it.statistic("p0", "ovs_rx_qos_drops") >= PINGS, what="each is answered or dropped")
    report = drops.json(signal.SIGINT)
    assert 0 < came() < PINGS
    assert_requests(report, PINGS - came())
    counted = {c["name"]: c for c in report["counted_by_application"]["counters"]}
    assert counted["p0 rx_dropped"]["packets"] == it.statistic("p0", "ovs_rx_qos_drops")
    assert counted["p0 rx_dropped"]["meaning"] == "received: by its policer, or no mbuf"


def test_packets_that_a_full_queue_refuses(switch, closing):
    """Nothing reads a ring: that the driver refuses what the switch offers is known in total only."""
    it, hosts = switch
    it.add_vdev("full", "net_ring0", 'other_config:pmd-rxq-affinity="0:0"')  # a CPU on which it does not poll
    rule(it, "priority=100,ip,nw_dst=10.99.0.2,actions=output:full")
    in_effect(hosts)
    drops = closing(Measuring("drops", it, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
    hosts[0].check([sys.executable, "-c", SEND, str(RING + 300)])
    settle(hosts)
    # Meanwhile the probe reads the drivers' counters, too: twice a second.
    until(lambda: it.statistic("full", "ovs_tx_failure_drops") >= 300, what="the switch's own counter")
    report = drops.json(signal.SIGINT)
    ports = {p["name"]: p for p in report["ports"]}
    # The switch offers the rest of a burst again, of which the driver took some; one packet may have come before.
    again = ports["full"]["offered"] - RING - 300
    refused = ports["full"]["refused"] - again
    assert 0 <= again < BURST and 300 <= refused <= 301, report
    assert of_protocol(report, "IPv4 UDP")["packets"] == 0
    assert report["offered"] >= RING + 300
    until(lambda: it.statistic("full", "ovs_tx_failure_drops") == refused, what="the switch's own counter")


def coverage(switch, name):
    return int(switch.appctl("coverage/read-counter", name))


def at_once(switch, command, text):
    """Afterwards, the switch has no cached flow of the rules before."""
    check(["ovs-ofctl", "-O", "OpenFlow13", command, f"unix:{switch.dir}/br0.mgmt", text])
    switch.appctl("revalidator/wait")


def arrived(host):
    """UDP packets for a port on which nobody listens."""
    rows = [line.split() for line in host.check(["cat", "/proc/net/snmp"]).splitlines() if line.startswith("Udp:")]
    return int(dict(zip(*rows))["NoPorts"])


def send(switch, hosts, counter):
    """Sends SENT packets, and returns how many the switch has dropped: they have not arrived. Each of its threads
    adds to the counter once a second."""
    counted, came = coverage(switch, counter), arrived(hosts[1])
    hosts[0].check([sys.executable, "-c", SEND, str(SENT)])
    settle(hosts)
    dropped = SENT - arrived(hosts[1]) + came
    until(lambda: coverage(switch, counter) == counted + dropped, what="the switch's own counter")
    return dropped


def assert_equal_counts(report, counter, dropped):
    own = report["counted_by_application"]
    assert of_protocol(report, "IPv4 UDP")["packets"] == dropped
    assert own["source"] == "Open vSwitch" and own["error"] is None
    counted = {c["name"]: c for c in own["counters"]}[counter]
    assert counted["packets"] == counted["end"] - counted["begin"] == dropped
    assert (own["of_not_offered"], own["equal_to"]) == (dropped, [counter]), report


def test_the_counters_of_the_switch_stand_beside_the_packets(switch, closing, tmp_path):
    """The packets that a rule or a meter drops, those that do not arrive, and the switch's counter are equal."""
    it, hosts = switch
    recorder = closing(flight.Flight(it, tmp_path / "incidents", "--ids", "--before", "60s", "--after", "0.1s"))
    at_once(it, "add-flow", "priority=100,udp,tp_dst=9,actions=drop")
    drops = closing(Measuring("drops", it, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
    assert send(it, hosts, "drop_action_of_pipeline") == SENT
    assert_equal_counts(drops.json(signal.SIGINT), "drop_action_of_pipeline", SENT)
    flight.assert_counted(recorder, "Open vSwitch", {"drop_action_of_pipeline": SENT})

    at_once(it, "add-meter", "meter=1,pktps,burst,band=type=drop,rate=1,burst_size=5")
    at_once(it, "add-flow", "priority=101,udp,tp_dst=9,actions=meter:1,normal")
    drops = closing(Measuring("drops", it, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
    dropped = send(it, hosts, "datapath_drop_meter")
    assert 0 < dropped < SENT
    assert_equal_counts(drops.json(signal.SIGINT), "datapath_drop_meter", dropped)

    drops = closing(Measuring("drops", it, "--duration", "1h", "--buffer", "16M"))
    dropped = send(it, hosts, "datapath_drop_meter")
    text = drops.finish(signal.SIGINT)
    assert f"\n{dropped} of {dropped} not offered = datapath_drop_meter\n" in text, text

    (it.dir / "sw.ctl").unlink()
    text = closing(Measuring("drops", it, "--once")).finish()
    assert f"Why Open vSwitch dropped packets is not known: {it.dir}/sw.ctl" in " ".join(text.split()), text
