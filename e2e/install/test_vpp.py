# SPDX-License-Identifier: BSD-3-Clause
"""VPP, built by hand: `make vpp` runs these tests. RINGTAP_VPP names the folder that devtools/vpp-build.sh makes."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest
from harness import flight, pcapng
from harness.attach import attach, detach
from harness.cases import nightly
from harness.documents import only
from harness.known import Measuring
from harness.paths import RINGTAP, probe_object
from harness.proc import Proc, check, run, until
from harness.ringtap import listing
from harness.vpp import BUILDS, KINDS, Kernel, Vpp, routed

SENT = 200
SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, int(sys.argv[3]))
for n in range(int(sys.argv[1])):
    s.sendto(n.to_bytes(50, "big"), (sys.argv[2], 9))
"""
# The next packets, of one number for each line.
SEND_ON = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
n = 0
for line in sys.stdin:
    for n in range(n, n + int(line)):
        s.sendto(n.to_bytes(50, "big"), (sys.argv[1], 9))
    n += 1
"""
ROUTE = "dpdk-input/no error"  # what VPP calls it
POLICER = (
    "policer add name slow type 1r2c cir 8 cb 1000 rate kbps round closest conform-action transmit exceed-action drop"
)
EXPIRED = "ip4-input/time_expired"
SHOWN = {EXPIRED: "ip4-input/ip4 ttl <= 1"}  # by 'show errors', where it is not the name
# A closed port would answer, through VPP.
SINK = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 9))\nwhile True: s.recv(2048)"
# By what VPP counts: commands, what host and TTL the packets have, whether only this counter has the number.
REASONS = {
    ROUTE: (("ip route add 10.99.2.1/32 via drop",), "10.99.2.1", 64, True),
    "acl-plugin-in-ip4-fa/ACL deny packets": (
        ("set acl-plugin acl deny proto 17, permit", "set acl-plugin interface {} input acl 0"),
        "10.99.2.1",
        64,
        True,
    ),
    EXPIRED: ((), "10.99.2.1", 1, False),  # the sum of two others, of its answers
    "policer-input/Packets Dropped": ((POLICER, "policer input name slow {}"), "10.99.2.1", 64, True),
}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build")]


@pytest.fixture(params=KINDS, ids=["-".join(map(str, kind)) for kind in KINDS])
def router(request, net, closing):
    """VPP, with the probe, and a host in each of its two networks."""
    vpp, hosts = routed(net, closing, request.param)
    closing(hosts[1].start([sys.executable, "-c", SINK]))
    return vpp, hosts


@pytest.mark.parametrize("build", BUILDS)
def test_preloaded(build, net, plugin, closing):
    """The probe waits for EAL, which VPP's plugin starts."""
    _, device = net.add_host("10.99.1.1")
    vpp = closing(Vpp(net.hub, {device: "10.99.1.254/24"}, build, env={"LD_PRELOAD": str(plugin)}))
    objects = str(probe_object(plugin).parent / "probe-abi")  # VPP's DPDK may be of another ABI than the installed one
    assert objects in Path(f"/proc/{vpp.pid}/maps").read_text() and "ringtap" not in vpp.proc.output
    attach(vpp.pid)  # without telemetry it has to be started
    assert [port["driver"] for port in only_listed(vpp)["ports"]] == ["net_af_packet"]


@pytest.mark.parametrize("build", BUILDS)
def test_attached_as_soon_as_it_runs(build, net, closing):
    """'attach --wait', as ringtap-attach@vpp.service runs it, waits for VPP and its EAL, also after a restart."""
    _, device = net.add_host("10.99.1.1")
    attacher = closing(Proc([RINGTAP, "attach", "--wait", "vpp"], tty=True))
    attacher.expect("Waiting")
    for _ in range(2):
        vpp = closing(Vpp(net.hub, {device: "10.99.1.254/24"}, build))
        attacher.expect(rf"pid {vpp.pid}\)")
        until(lambda: only_listed(vpp).get("ports"), what="its ports")
        vpp.close()


def only_listed(vpp):
    (entry,) = [app for app in listing() if app["pid"] == vpp.pid]
    return entry


def send(host, address="10.99.2.1", ttl=64, count=SENT):
    host.check([sys.executable, "-c", SEND, str(count), address, str(ttl)])


def udp(host):
    """Packets of UDP that its kernel has received."""
    lines = [line.split() for line in host.check(["cat", "/proc/net/snmp"]).splitlines() if line.startswith("Udp:")]
    return sum(int(dict(zip(*lines))[name]) for name in ("InDatagrams", "NoPorts"))


@pytest.mark.parametrize("reason", REASONS)
def test_the_reason_stands_beside_the_packets(reason, router, closing):
    """Packets that VPP drops are those that are not sent, and those of VPP's own counter."""
    vpp, (a, b) = router
    commands, address, ttl, only_one = REASONS[reason]
    for command in commands:
        vpp.ctl(command.format(vpp.names[0]))
    before = udp(b)
    drops = closing(Measuring("drops", vpp, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
    send(a, address, ttl)

    def passed():
        return udp(b) - before

    until(lambda: vpp.errors().get(SHOWN.get(reason, reason), 0) + passed() == SENT, what="VPP has counted all packets")
    count = SENT - passed()
    report = drops.json(signal.SIGINT)
    own = report["counted_by_application"]
    assert own["source"] == "VPP" and own["error"] is None
    counters = {c["name"]: c["packets"] for c in own["counters"]}
    assert counters.get(reason) == count > SENT / 2, counters
    # It frees without DPDK: until their mbufs are received again, they are open.
    assert report["not_offered"] + report["open"] + report["unknown"] == count
    # VPP makes its answers in buffers of packets that it has dropped: to a hook, they may be the same packets.
    assert report["unknown"] == 0 or reason == EXPIRED
    assert report["offered"] == SENT - count
    assert (own["of_not_offered"], own["equal_to"]) == ((count, [reason]) if only_one else (0, [])), own


PUNTED = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 99)\nfor n in range(200): s.sendto(b'x', ('10.99.1.254', 0))"


def test_what_its_interfaces_lose_stands_there_too(router, closing, tmp_path):
    """As 'show interface' counts it, live and in an incident; the packets are those of one reason."""
    vpp, (a, _) = router
    recorder = closing(flight.Flight(vpp, tmp_path / "incidents", "--ids", "--before", "60s", "--after", "0.1s"))
    drops = closing(Measuring("drops", vpp, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
    before = vpp.losses()
    vpp.ctl("ip route add 10.99.2.1/32 via drop")
    send(a)
    a.check([sys.executable, "-c", PUNTED])
    until(lambda: vpp.losses().get(f"{vpp.names[0]} punt") == SENT, what="VPP has got them")
    until(lambda: vpp.errors().get(ROUTE, 0) >= SENT, what="VPP has dropped them")
    own = drops.json(signal.SIGINT)["counted_by_application"]
    assert own["of_not_offered"] == 2 * SENT and set(own["equal_to"]) == {ROUTE, "ip4-local/unknown_protocol"}
    ends = {c["name"]: c["end"] for c in own["counters"]}
    after = vpp.losses()
    assert set(after) - set(before) == {f"{vpp.names[0]} punt"}
    assert all(before.get(name, 0) <= ends[name] <= after[name] for name in after), (before, ends, after)
    assert ends[f"{vpp.names[0]} drops"] - before[f"{vpp.names[0]} drops"] == SENT
    flight.assert_counted(recorder, "VPP", {f"{vpp.names[0]} punt": SENT, ROUTE: SENT})


def test_without_its_statistics_it_says_so(router, closing):
    vpp, _ = router
    (vpp.dir / "stats.sock").unlink()
    text = closing(Measuring("drops", vpp, "--once")).finish()
    assert "Why VPP dropped packets is not known: " in " ".join(text.split()), text


def test_interfaces_that_are_not_dpdks_are_named(router, net, closing):
    """A recording lacks their packets: list and doctor name them, with the rates that VPP counts."""
    vpp, _ = router
    host, device = net.add_host("10.99.7.1")
    # With GSO, the kernel sends none of the packets of VPP 26.06.
    vpp.ctl(f"create host-interface name {device} cksum-gso-disable")
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


@pytest.mark.parametrize("count", [2000, nightly(60_000)])
def test_recorded_packets_are_those_of_the_kernel(count, router, record, closing, tmp_path):
    """All that it receives and sends, byte for byte and in order, and as many as VPP counts."""
    vpp, (a, b) = router
    received = closing(Kernel(vpp.namespace, "to1", count, tmp_path / "received.pcap"))
    sent = closing(Kernel(b, "eth0", count, tmp_path / "sent.pcap"))
    before, counted = udp(b), vpp.passed()
    recorder = record(vpp, "-f", "udp", "--json")
    sender = closing(a.start([sys.executable, "-c", SEND_ON, "10.99.2.1"]))
    for n in range(100, count + 1, 100):  # no more than the queues hold
        sender.send("100")
        until(lambda: udp(b) - before >= n, what="all packets have arrived")
    for interface, first, last in zip(recorder.report()["interfaces"], counted, vpp.passed()):
        seen = {way: sum(t["seen"] for t in interface["taps"] if t["direction"] == way) for way in ("rx", "tx")}
        assert (seen["rx"], seen["tx"]) == (last[0] - first[0], last[1] - first[1])
    # Each socket's packets are of one worker.
    received.assert_recorded(recorder.file(), "net_af_packet0", pcapng.RX)
    sent.assert_recorded(recorder.file(), "net_af_packet1", pcapng.TX)


def used(vpp):
    """Buffers that VPP has taken, when no packet is under way."""
    return int(re.search(r"^default-numa-0 .* (\d+) *$", vpp.ctl("show buffers"), re.M).group(1))


def open_files(vpp):
    """Number of descriptors by what they are of."""
    names = [re.sub(r"[0-9]+", "N", str(path.readlink())) for path in Path(f"/proc/{vpp.pid}/fd").iterdir()]
    return {name: names.count(name) for name in names}


def test_fifty_recordings_and_attaches_under_traffic(router, closing, tmp_path):
    """Ports go down and up meanwhile; afterwards VPP has all of its buffers, and nothing in its log."""
    vpp, (a, _) = router
    before, told, files = used(vpp), vpp.proc.output, open_files(vpp)
    flood = closing(a.start(["ping", "-q", "-f", "10.99.2.1"]))
    for n in range(50):
        out = tmp_path / "out.pcapng"
        done = run([RINGTAP, "record", "-i", f"{vpp.prefix}:", "-c", "100", "--buffer", "16M", "-w", out])
        assert done.returncode == 0 and len(pcapng.read(out).packets) == 100, done.stderr
        detach(vpp.pid)
        attach(vpp.pid)
        if n % 10 == 9:
            for state in ("down", "up"):
                vpp.ctl(f"set interface state {vpp.names[0]} {state}")
            vpp.ctl("create interface memif id 9 master")
            vpp.ctl("delete interface memif memif0/9")
    flood.close()
    # A port that was down has to find addresses again.
    until(lambda: run([*a.prefix, "ping", "-q", "-c", "1", "-W", "1", "10.99.2.1"]).returncode == 0, what="an answer")
    a.ping("10.99.2.1", 10)
    assert vpp.proc.alive() and vpp.proc.output == told
    until(lambda: used(vpp) <= before, what="VPP has its buffers again")
    assert open_files(vpp) == files
