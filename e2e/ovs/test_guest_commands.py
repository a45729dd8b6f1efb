# SPDX-License-Identifier: BSD-3-Clause
"""The port of a guest in the commands that test_vhost.py does not use: each shows what was exchanged with it."""

import json
import signal

import pytest
from harness import flight, pcapng, wireshark
from harness.documents import only
from harness.guests import GUESTS, NIC, Site
from harness.known import Measuring
from harness.ovs import Guest
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.prometheus import Exporter
from harness.ringtap import BUFFER, frames_of, listing, sessions

pytestmark = pytest.mark.nightly


def test_metrics_of_a_guests_port(site, frames, closing):
    """Packets and bytes by queue and direction; link and queues of the port."""
    sent, path = frames
    exporter = closing(Exporter(site.ovs, args=("--collectors", "polls,bytes")))
    site.exchange_all(path)
    for name in GUESTS:
        for direction in ("rx", "tx"):
            labels = {"port": name, "queue": "0", "direction": direction}
            exporter.becomes("ringtap_queue_packets_total", len(sent), **labels)
            exporter.becomes("ringtap_queue_bytes_total", sum(map(len, sent)), **labels)
        exporter.becomes("ringtap_port_link_up", 1, port=name)
    top = only(json.loads(check([RINGTAP, "top", "--once", "--interval", "0.2s", "--json", site.ovs.prefix])))
    assert {p["name"]: p["driver"] for p in top["ports"] if p["name"] != NIC} == dict.fromkeys(GUESTS, "vhost-user")
    site.guests["vm1"].close()
    exporter.becomes("ringtap_port_link_up", 0, port="vm1")
    assert exporter.value("ringtap_port_link_up", port="vm0") == 1


def test_flows_of_a_guests_port(site, frames, closing):
    """Received at each port once; what comes from the guest are the flows that came from the NIC."""
    sent, path = frames

    def counting(*args, ports=()):
        words = ("--once", "--duration", "120s", "--json", "--limit", "1000", "--sample", "1", *args)
        return closing(Measuring("flows", site.ovs, *words, ports=ports))

    queues = counting("--view", "queue")
    of_port = [counting(ports=[name]) for name in (NIC, "vm0")]
    site.exchange_all(path)
    counted = {f["received_by"]["port"]["name"]: f["counted"] for f in queues.json(signal.SIGINT)["flows"]}
    assert counted == dict.fromkeys((NIC, *GUESTS), len(sent))
    nic, vm0 = (it.json(signal.SIGINT) for it in of_port)
    assert vm0["counts"]["captured"] == vm0["counts"]["seen"] == len(sent)
    of_nic, of_vm0 = ({f["name"]: (f["counted"], f["bytes"]["value"]) for f in it["flows"]} for it in (nic, vm0))
    assert of_nic == of_vm0 and len(of_vm0) > 10


def test_incidents_with_a_guests_port(site, frames, record, tmp_path, closing):
    """Each packet to the guest and from it, as a recording of the same time has it."""
    sent, path = frames
    keeping = closing(
        flight.Flight(site.ovs, tmp_path / "incidents", "--before", "60s", "--after", "0.1s", ports=["vm0"])
    )
    recorder = record(site.ovs, ports=["vm0"])
    site.exchange_all(path)
    keeping.proc.send_signal(signal.SIGUSR1)
    (incident,) = keeping.incidents(1)
    keeping.finish()
    recorder.finish()
    file = flight.assert_same_packets(incident, recorder.file())
    for direction in (pcapng.TX, pcapng.RX):
        assert frames_of(file, "vm0", direction) == frames_of(recorder.file(), "vm0", direction)
        assert sorted(frames_of(file, "vm0", direction)) == sorted(sent)


def test_a_guests_port_is_an_interface_of_wireshark(site, frames, closing, tmp_path):
    if wireshark.missing():
        pytest.skip(wireshark.missing())
    sent, path = frames
    name = wireshark.interface(site.ovs, "vm0")
    assert f" {name} (" in wireshark.tshark("-D").stdout
    out = tmp_path / "out.pcapng"
    shark = closing(wireshark.Tshark([*wireshark.preference(name, "buffer", BUFFER), "-i", name, "-w", out]))
    until(lambda: [s for s in sessions(site.ovs) if s["start"]], what="capture runs")
    site.exchange_all(path)

    def packets():
        return pcapng.read(out, False).packets if out.exists() else []

    until(lambda: len(packets()) >= 2 * len(sent), what="all packets in the file")
    shark.send_signal(signal.SIGINT)
    assert shark.wait() == 0
    recorded = pcapng.read(out).packets
    for direction in (pcapng.TX, pcapng.RX):
        assert sorted(p.data for p in recorded if p.direction == direction) == sorted(sent)


def held(it, age):
    """Packets by port, older ones or all that are open, in the newest whole line so far."""
    lines = [line for line in it.proc.output.splitlines() if line.startswith("{") and line.endswith("}")]
    return {q["port"]["name"]: q[age] for q in only(json.loads(lines[-1]))["queues"]} if lines else {}


def test_packets_of_a_guest_that_the_switch_holds(site, frames, closing):
    """It sends to a port once a second, if it is configured so: what the first guest returns to the other one has just
    missed that."""
    _sent, path = frames
    site.ovs.vsctl("set", "Open_vSwitch", ".", "other_config:tx-flush-interval=1000000")
    site.ovs.copy(NIC, *GUESTS)
    it = closing(Measuring("held", site.ovs, "--json", "--older", "50ms", "--interval", "100ms"))
    sender = site.exchange(path, 1000)
    until(lambda: held(it, "older").get("vm0"), what="packets of vm0 are held")
    sender.close()
    until(lambda: not any(held(it, "open").values()), what="all were sent")
    it.finish(signal.SIGINT)


def test_what_the_threads_of_the_switch_counted(site, frames, closing):
    """A thread has received each packet three times, and sent it three times."""
    sent, path = frames
    drops = closing(Measuring("drops", site.ovs, "--once", "--duration", "120s", "--json", "--buffer", "16M"))
    text = closing(Measuring("drops", site.ovs, "--once", "--duration", "120s", "--buffer", "16M"))
    site.exchange_all(path)
    report = drops.json(signal.SIGINT)
    threads = report["counted_by_application"]["threads"]
    assert sum(t["received"] for t in threads) == sum(t["sent"] for t in threads) == 3 * len(sent) == report["received"]
    assert sum(t["lost_upcalls"] for t in threads) == 0 < sum(t["upcalls"] for t in threads)
    (pmd,) = [t for t in threads if t["received"]]
    assert pmd["name"].startswith("pmd thread numa_id ")
    shown = text.finish(signal.SIGINT)
    assert "Its threads in the same time" in shown and f" {3 * len(sent):,} " in shown
    mine = check(["ovs-appctl", f"--target={site.ovs.dir}/sw.ctl", "dpif-netdev/pmd-stats-show"])
    assert "miss with failed upcall: 0" in mine


def test_a_guest_behind_a_driver_is_recorded_once(ovs, net, closing, frames, record):
    """net_vhost calls the vhost library, too: only ethdev shows its packets, beside those of another guest."""
    sent, path = frames
    site = Site(ovs, net, closing, guests=("vm0",))
    socket = site.ovs.dir / "driver.sock"
    site.ovs.add_vdev("nv", f"net_vhost0,iface={socket},client=1")
    closing(Guest(socket))

    def ports():
        (entry,) = [a for a in listing() if a["name"] == site.ovs.prefix]
        return {p["name"]: p for p in entry["ports"]}

    until(lambda: ports()["nv"]["link_up"], what="the driver's guest is connected")
    assert {name: p["driver"] for name, p in ports().items() if name != NIC} == {"vm0": "vhost-user", "nv": "net_vhost"}
    site.ovs.pass_on(NIC, "vm0", "nv")
    recorder = record(site.ovs)
    site.exchange_all(path)
    recorder.finish()
    file = recorder.file()
    pcapng.assert_in_order(file)
    assert sorted(i.name for i in file.interfaces) == sorted([NIC, "vm0", "nv"])
    for name in ("vm0", "nv"):
        for direction in (pcapng.TX, pcapng.RX):
            assert sorted(frames_of(file, name, direction)) == sorted(sent), (name, direction)
