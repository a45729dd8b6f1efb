# SPDX-License-Identifier: BSD-3-Clause
"""vhost-user ports of an unmodified Open vSwitch: two guests between a NIC's receptions and its sendings."""

import re
import signal
from pathlib import Path

import pytest
from harness import pcap, pcapng
from harness.known import Measuring
from harness.ovs import VSWITCHD, Guest
from harness.paths import RINGTAP
from harness.proc import check, run, until
from harness.ringtap import frames_of, listing

# Sends the frames of a file, a few at a time, and waits until as many have come back.
FEW = 8
EXCHANGE = f"""
FEW = {FEW}
import socket, sys
sys.path.insert(0, sys.argv[1])
from harness import pcap
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 0))
print("ready", flush=True)
frames = pcap.frames(sys.argv[2])
rounds = int(sys.argv[3])
for i in range(rounds):
    for k in range(0, len(frames), FEW):
        some = frames[k : k + FEW]
        for f in some:
            s.send(f)
        back = 0
        while back < len(some):
            back += s.recvfrom(65536)[1][2] != socket.PACKET_OUTGOING
print("all came back", flush=True)
"""
E2E = Path(__file__).parents[1]
NIC, GUESTS = "p0", ("vm0", "vm1")
# Where a packet passes, in this order.
WAY = [
    ("p0", pcapng.RX),
    ("vm0", pcapng.TX),
    ("vm0", pcapng.RX),
    ("vm1", pcapng.TX),
    ("vm1", pcapng.RX),
    ("p0", pcapng.TX),
]


class Site:
    """NIC to vm0 to vm1 to NIC."""

    def __init__(self, ovs, net, closing):
        self.closing = closing
        self.host, device = net.add_host("10.99.0.1")
        self.ovs = ovs()
        self.device = self.ovs.add_port(NIC, device)
        self.paths = {name: self.ovs.add_vhost(name) for name in GUESTS}
        self.ovs.pass_on(NIC, *GUESTS)
        self.guests = {}
        for name in GUESTS:
            self.start_guest(name)

    def start_guest(self, name):
        self.paths[name].unlink(missing_ok=True)  # a killed guest leaves it
        self.guests[name] = self.closing(Guest(self.paths[name]))
        until(lambda: self.ovs.is_connected(name), what=f"{name} connected")

    def exchange(self, file, rounds=1):
        return self.host.start(["/usr/bin/python3", "-c", EXCHANGE, E2E, file, rounds])

    def exchange_all(self, file, rounds=1):
        sender = self.exchange(file, rounds)
        sender.expect("all came back")
        assert sender.wait() == 0


@pytest.fixture
def site(ovs, net, closing):
    return Site(ovs, net, closing)


@pytest.fixture
def frames(corpus_files, tmp_path):
    """A file with frames of every kind that an Ethernet interface takes as they are."""
    some = [f for path in corpus_files for f in pcap.frames(path)][::5]
    some = [f for f in some if 14 <= len(f) <= 1514 and not is_changed(f)]
    some = some[: len(some) // FEW * FEW]
    assert len(some) >= 200
    return some, pcap.write(tmp_path / "sent.pcap", some)


def is_changed(f):
    """By net_af_packet: it waits for the other fragments, and OVS ignores where it puts tags."""
    return f[12:14] in (b"\x81\x00", b"\x88\xa8") or (
        f[12:14] == b"\x08\x00" and int.from_bytes(f[20:22], "big") & 0x3FFF
    )


def assert_frames(file, sent):
    """At every point. The switch sends the packets of a burst by flows: their order changes, but not from a port to its
    guest and back."""
    for name, direction in WAY:
        got = frames_of(file, name, direction)
        assert len(got) == len(sent), (name, direction)
        for k in range(0, len(sent), FEW):
            assert sorted(got[k : k + FEW]) == sorted(sent[k : k + FEW]), (name, direction, k)
    assert frames_of(file, NIC, pcapng.RX) == sent
    for name in GUESTS:
        assert frames_of(file, name, pcapng.TX) == frames_of(file, name, pcapng.RX)


def ports_of(ovs):
    (entry,) = [a for a in listing() if a["name"] == ovs.prefix]
    return {p["name"]: p for p in entry["ports"]}


def test_every_packet_at_every_point(site, frames, record):
    sent, path = frames
    recorder = record(site.ovs)
    site.exchange_all(path)
    recorder.finish()
    file = recorder.file()
    pcapng.assert_in_order(file)
    assert sorted(i.name for i in file.interfaces) == [NIC, *GUESTS]
    assert_frames(file, sent)
    steps = {}
    for p in file.packets:
        steps.setdefault(p.data, []).append((file.interfaces[p.interface].name, p.direction))
    for data in {f for f in sent if sent.count(f) == 1}:
        assert steps[data] == WAY
    for name in GUESTS:
        assert site.ovs.statistic(name, "rx pkts") == site.ovs.statistic(name, "tx pkts") == len(sent)
    assert not any(pcapng.stat(i, pcapng.LOST) for i in file.interfaces)


def test_a_guest_by_its_name(site, frames, record):
    sent, path = frames
    assert sorted(ports_of(site.ovs)) == [NIC, *GUESTS]
    vm0 = ports_of(site.ovs)["vm0"]
    assert vm0["driver"] == "vhost-user" and str(site.paths["vm0"]).endswith(vm0["device"])
    assert vm0["link_up"] and vm0["rx_queues"] == vm0["tx_queues"] == 1
    recorder = record(site.ovs, "-c", 2 * len(sent), ports=["vm0"])
    latency = site.closing(Measuring("latency", site.ovs, "--duration", "60s", "--packets", "100", "--json"))
    site.exchange_all(path)
    recorder.done()
    file = recorder.file()
    assert [i.name for i in file.interfaces] == ["vm0"]
    assert frames_of(file, "vm0", pcapng.TX) == frames_of(file, "vm0", pcapng.RX)
    assert sorted(frames_of(file, "vm0", pcapng.TX)) == sorted(sent)
    pairs = {(p["rx_port"]["name"], p["tx_port"]["name"]) for p in latency.json()["pairs"]}
    assert (NIC, "vm0") in pairs and ("vm1", NIC) in pairs


def test_what_a_guest_has_got_was_offered(site, frames):
    """And what the switch drops was not."""
    sent, path = frames
    drops = site.closing(Measuring("drops", site.ovs, "--once", "--duration", "120s", "--json", "--buffer", "16M"))
    site.exchange_all(path)
    site.ovs.drop_from("vm1")
    before = site.ovs.statistic("vm1", "rx pkts")
    lost = site.exchange(pcap.write(path.with_name("lost.pcap"), sent[:FEW]))
    until(lambda: site.ovs.statistic("vm1", "rx pkts") == before + FEW, what="vm1 has sent them back")
    lost.close()
    report = drops.json(signal.SIGINT)
    assert report["received"] == 3 * (len(sent) + FEW)
    assert report["offered"] == report["received"] - FEW
    assert report["not_offered"] == FEW
    (vm1,) = [q for q in report["queues"] if q["port"]["name"] == "vm1"]
    assert vm1["not_offered"] == FEW


class Slots:
    """The dynamic loader's slots of the switch's calls, and the protections of its memory."""

    def __init__(self, pid):
        self.pid = pid
        lines = check(["readelf", "-rW", VSWITCHD]).splitlines()
        found = [re.match(r"([0-9a-f]{16}) .* rte_vhost_(\w+)@", line) for line in lines]
        self._slots = {m[2]: int(m[1], 16) for m in found if m}
        assert {"dequeue_burst", "enqueue_burst", "get_ifname", "driver_unregister"} <= self._slots.keys()

    def maps(self):
        """Mappings of the switch's own objects: others come and go."""
        return [
            line
            for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines()
            if "vswitchd" in line or "vhost" in line
        ]

    def values(self):
        base = int(self.maps()[0].split("-")[0], 16)
        with open(f"/proc/{self.pid}/mem", "rb") as mem:
            return {name: (mem.seek(base + at), mem.read(8))[1] for name, at in self._slots.items()}


def test_the_switch_is_as_before(site, frames, record):
    """After recorders that ended, that were killed, and that failed, under traffic."""
    _sent, path = frames
    slots = Slots(site.ovs.pid)
    values, maps = slots.values(), slots.maps()
    sender = site.exchange(path, 1000)
    sender.expect("ready")
    for i in range(4):
        recorder = record(site.ovs, ports=["vm0"])
        assert slots.values() != values and slots.maps() == maps
        if i % 2:
            recorder.proc.kill()
            recorder.proc.wait()
        else:
            recorder.finish()
        assert run([RINGTAP, "record", "-i", f"{site.ovs.prefix}:none", "-w", "/dev/null"]).returncode
        until(lambda: slots.values() == values, what="slots restored")
        assert slots.maps() == maps
    assert sender.alive() and site.ovs.switch.alive()


def test_guests_and_ports_that_come_and_go(site, frames, record):
    sent, path = frames
    recorder = record(site.ovs)
    for i in range(2):
        site.exchange_all(path)
        if i:
            site.ovs.del_port("vm1")
            site.guests["vm1"].close()
            assert sorted(ports_of(site.ovs)) == [NIC, "vm0"]
            site.paths["vm1"] = site.ovs.add_vhost("vm1")
            site.ovs.pass_on(NIC, *GUESTS)
        else:
            site.guests["vm1"].proc.kill()
            site.guests["vm1"].close()
        site.start_guest("vm1")
    until(lambda: "vm1" in ports_of(site.ovs), what="vm1 is listed")
    site.exchange_all(path)
    recorder.finish()
    file = recorder.file()
    pcapng.assert_in_order(file)
    assert sorted(i.name for i in file.interfaces) == [NIC, *GUESTS]
    assert_frames(file, 3 * sent)
