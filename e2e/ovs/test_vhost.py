# SPDX-License-Identifier: BSD-3-Clause
"""vhost-user ports of an unmodified Open vSwitch: two guests between a NIC's receptions and its sendings."""

import signal

import pytest
from harness import pcap, pcapng
from harness.cases import nightly
from harness.guests import FEW, GUESTS, NIC, WAY, Slots, assert_frames, record_whole
from harness.known import Measuring
from harness.paths import RINGTAP
from harness.proc import run, until
from harness.ringtap import frames_of, listing


def ports_of(ovs):
    (entry,) = [a for a in listing() if a["name"] == ovs.prefix]
    return {p["name"]: p for p in entry["ports"]}


@pytest.mark.parametrize("frames", [5, nightly(1)], indirect=True)
def test_every_packet_at_every_point(site, frames, record):
    sent, _path = frames
    file = record_whole(site, record, frames)
    assert sorted(i.name for i in file.interfaces) == [NIC, *GUESTS]
    steps = {}
    for p in file.packets:
        steps.setdefault(p.data, []).append((file.interfaces[p.interface].name, p.direction))
    for data in {f for f in sent if sent.count(f) == 1}:
        assert steps[data] == WAY


def test_a_guest_by_its_name(site, frames, record):
    sent, path = frames
    assert sorted(ports_of(site.ovs)) == [NIC, *GUESTS]
    vm0 = ports_of(site.ovs)["vm0"]
    assert vm0["driver"] == "vhost-user" and str(site.paths["vm0"]).endswith(vm0["device"])
    assert vm0["link_up"] and vm0["rx_queues"] == vm0["tx_queues"] == 1
    recorder = record(site.ovs, "-c", 2 * len(sent), ports=["vm0"])
    latency = site.closing(Measuring("latency", site.ovs, "--duration", "1h", "--packets", "100", "--json"))
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
    drops = site.closing(Measuring("drops", site.ovs, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
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


def test_the_switch_is_as_before(site, frames, record):
    """After recorders that ended, that were killed, and that failed, under traffic."""
    _sent, path = frames
    slots = Slots(site.ovs.pid)
    values, maps = slots.values(), slots.maps()
    sender = site.exchange(path, 1000)
    sender.expect("ready")
    for i in range(2):
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
