# SPDX-License-Identifier: BSD-3-Clause
"""Guests of Open vSwitch with other rings, queues and memory than those of test_vhost.py."""

import itertools
import signal
import struct

import pytest
from harness import pcap, pcapng
from harness.cases import nightly
from harness.dpdk import HugePages
from harness.guests import E2E, FEW, GUESTS, NIC, SEND, Site, record_whole
from harness.known import Measuring
from harness.proc import until
from harness.ringtap import frames_of, listing

QUEUES = 4
FOUR = {"devargs": f",queues={QUEUES}", "args": (f"--rxq={QUEUES}", f"--txq={QUEUES}")}
KINDS = {
    "packed rings": ({}, {"devargs": ",packed_vq=1"}),
    "buffers that are not merged": ({}, {"devargs": ",mrg_rxbuf=0"}),
    "packed, not merged, not in order": ({}, {"devargs": ",packed_vq=1,mrg_rxbuf=0,in_order=0"}),
    "4 pairs of queues": ({}, FOUR),
    "4 pairs of packed rings": ({}, FOUR | {"devargs": FOUR["devargs"] + ",packed_vq=1"}),
    "--in-memory": ({"huge": True}, {}),
}


@pytest.mark.parametrize(("switch", "guest"), [nightly(*kind) for kind in KINDS.values()], ids=KINDS)
def test_every_packet_of_every_kind_of_guest(ovs, net, closing, frames, record, switch, guest):
    if switch.get("huge") and HugePages.free_mb() < 512:
        pytest.skip("needs 512 MiB of free huge pages of 2 MiB")
    record_whole(Site(ovs, net, closing, switch, guest), record, frames)


@pytest.mark.nightly
def test_packets_are_of_the_queue_that_the_switch_used(ovs, net, closing, frames, record):
    """By the hash of the flow; the guest returns each packet on the queue that it came from."""
    site = Site(ovs, net, closing, guest=FOUR)
    for name in GUESTS:
        site.ovs.vsctl("set", "Interface", name, "other_config:tx-steering=hash")
    sent, path = frames
    (entry,) = [a for a in listing() if a["name"] == site.ovs.prefix]
    queues = {p["name"]: (p["rx_queues"], p["tx_queues"]) for p in entry["ports"]}
    assert queues["vm0"] == queues["vm1"] == (QUEUES, QUEUES)
    recorder = record(site.ovs)
    site.exchange_all(path)
    recorder.finish()
    file = recorder.file()
    for name in GUESTS:
        received, sent_to = (by_queue(file, name, d) for d in (pcapng.RX, pcapng.TX))
        assert received == sent_to
        assert set(received) == set(range(QUEUES))
        assert sorted(itertools.chain(*received.values())) == sorted(sent)


def by_queue(file, name, direction):
    """The packets of each queue, in their order."""
    queues = {}
    for p in file.packets:
        if file.interfaces[p.interface].name == name and p.direction == direction:
            queues.setdefault(p.queue, []).append(p.data)
    return queues


SEGMENT = 60_000  # bytes of payload in one TCP packet


def big_packet(sequence):
    payload = bytes(itertools.islice(itertools.cycle(struct.pack(">I", sequence) + b"ringtap"), SEGMENT))
    tcp = struct.pack(">HHIIHHHH", 5000, 80, sequence, 0, 5 << 12 | 0x10, 0xFFFF, 0, 0)
    ip = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        0,
        40 + SEGMENT,
        sequence & 0xFFFF,
        0,
        64,
        6,
        0,
        bytes([10, 99, 0, 1]),
        bytes([10, 99, 0, 2]),
    )
    return bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + tcp + payload


@pytest.mark.nightly
def test_packets_that_a_guest_leaves_to_be_segmented(ovs, net, closing, record, tmp_path):
    """One of 60,040 bytes arrives in an external buffer, and goes to the other guest as it is."""
    site = Site(
        ovs,
        net,
        closing,
        {"settings": ["other_config:userspace-tso-enable=true"]},
        {"args": ("--enable-lro",)},
    )
    sent = [big_packet(i * SEGMENT) for i in range(FEW)]
    path = pcap.write(tmp_path / "big.pcap", sent)
    recorder = record(site.ovs)
    site.guests["vm0"].close()
    site.start_guest(
        "vm0",
        vdevs=[f"net_pcap0,rx_pcap={path},tx_pcap={tmp_path / 'out.pcap'}"],
        args=("--no-flush-rx",),  # else it drops what the file has
        start=False,
    )
    sender = site.guests["vm0"]
    offloads = [f"port config 0 tx_offload {what} on" for what in ("tcp_cksum", "tcp_tso", "multi_segs")]
    for line in ("port stop 0", *offloads, "csum set tcp hw 0", "tso set 1448 0", "port start 0", "set fwd csum retry"):
        sender.cmd(line)
    until(lambda: site.ovs.is_connected("vm0"), what="vm0 connected again")
    sender.start()
    until(lambda: site.ovs.statistic("vm1", "rx pkts") == len(sent), what="vm1 has sent them back")
    recorder.finish()
    file = recorder.file()
    payloads = [f[54:] for f in sent]
    for name, direction in (("vm0", pcapng.RX), ("vm1", pcapng.TX), ("vm1", pcapng.RX)):
        assert [f[54:] for f in frames_of(file, name, direction)] == payloads, (name, direction)
    assert not frames_of(file, NIC, pcapng.TX)


def assert_dropped(site, closing, path, count, name, counter, shown):
    """The port drops some packets of a file, as the switch says; they are those that were not offered."""
    drops = closing(Measuring("drops", site.ovs, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
    passed, dropped = site.ovs.statistic("vm1", "tx pkts"), site.ovs.statistic(name, counter)

    def ended():
        lost = site.ovs.statistic(name, counter) - dropped
        return lost and site.ovs.statistic("vm1", "tx pkts") - passed + lost == count

    sender = site.host.start(["/usr/bin/python3", "-c", SEND, E2E, path])
    until(ended, what="each packet has come to the last guest, or is dropped")
    sender.close()
    report = drops.json(signal.SIGINT)
    own, lost = report["counted_by_application"], site.ovs.statistic(name, counter) - dropped
    assert own["error"] is None and own["equal_to"] == [shown], (own, report["not_offered"], lost)
    assert own["of_not_offered"] == lost <= report["not_offered"]


@pytest.mark.nightly
def test_drops_of_a_port_are_counted_beside_the_packets(site, frames, closing):
    """By a policer; and those for which a guest that does not read has no room."""
    sent, path = frames
    site.ovs.vsctl("set", "Interface", "vm0", "ingress_policing_rate=1", "ingress_policing_burst=1")
    assert_dropped(site, closing, path, len(sent), "vm0", "ovs_rx_qos_drops", "vm0 rx_dropped")
    site.ovs.vsctl("set", "Interface", "vm0", "ingress_policing_rate=0", "ingress_policing_burst=0")
    site.guests["vm1"].stop()
    assert_dropped(site, closing, path, len(sent), "vm1", "ovs_tx_failure_drops", "vm1 tx_dropped")
