# SPDX-License-Identifier: BSD-3-Clause
"""A guest's port and the internal port of its bridge, by one command in one file."""

import signal

import pytest
from harness import pcapng
from harness.guests import NIC, Site
from harness.paths import RINGTAP
from harness.proc import until
from harness.ringtap import frames_of

pytestmark = pytest.mark.nightly


def test_a_guest_and_the_internal_port_in_one_file(ovs, net, closing, frames, tmp_path):
    """Each packet to the guest, from it, and at the bridge, in this order. It goes back to its sender, too."""
    sent, path = frames
    site = Site(ovs, net, closing, guests=("vm0",))
    site.ovs.pass_on(NIC, "vm0")
    site.ovs.copy("vm0", "br0", NIC)
    net.hub.check(["ip", "link", "set", "br0", "up"])
    out, app = tmp_path / "both.pcapng", site.ovs.prefix
    recorder = closing(net.hub.start([RINGTAP, "record", "-i", f"{app}:vm0", "-i", f"{app}:br0", "-w", out]))
    recorder.expect("^Capturing on")
    at_bridge = site.ovs.statistic("br0", "tx pkts")
    site.exchange_all(path)
    until(lambda: site.ovs.statistic("br0", "tx pkts") - at_bridge >= len(sent), what="all packets at the bridge")
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait() == 0, recorder.output
    file = pcapng.read(out)
    pcapng.assert_in_order(file)
    names = {i.name.rpartition(":")[2]: i.name for i in file.interfaces}
    assert set(names) == {"vm0", "br0"}
    way = [("vm0", pcapng.TX), ("vm0", pcapng.RX), ("br0", pcapng.RX)]
    for name, direction in way:
        assert sorted(frames_of(file, names[name], direction)) == sorted(sent), (name, direction)
    steps = {}
    for p in file.packets:
        steps.setdefault(p.data, []).append((file.interfaces[p.interface].name.rpartition(":")[2], p.direction))
    for data in {f for f in sent if sent.count(f) == 1}:
        assert [s for s in steps[data] if s in way] == way
