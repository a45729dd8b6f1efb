# SPDX-License-Identifier: BSD-3-Clause
"""Ports of VPP, built by hand, that change under traffic: see test_vpp.py. VPP makes DPDK's ports when it starts, and removes
none: its plugin calls no function of DPDK that does. A port's device can go, and its queues are made again."""

import signal
import sys

import pytest
from harness import flight, pcapng
from harness.attach import attach, detach
from harness.proc import until
from harness.ringtap import listing
from harness.vpp import BUILDS, KINDS, TAPS, Vpp, routed

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.slow,
    pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build"),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=["-".join(map(str, kind)) for kind in KINDS])

# Numbered frames, until the device is gone.
FRAMES = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
head, n = bytes.fromhex("02000000000202000000000188b5"), 0
try:
    while True:
        s.send((head + n.to_bytes(4, "big")).ljust(60))
        n += 1
except OSError as e:
    print(n, "sent:", e, flush=True)
"""


def recorded(file):
    """(received, sent) packets of each interface."""
    found = {i.name: [0, 0] for i in file.interfaces}
    for p in file.packets:
        found[file.interfaces[p.interface].name][p.direction == pcapng.TX] += 1
    return {name: tuple(pair) for name, pair in found.items()}


class Watched:
    """VPP, with a recorder and a flight recorder attached before the first packet of a test."""

    def __init__(self, vpp, record, closing, folder):
        self.vpp = vpp
        self.before = vpp.passed()
        self.recorder = record(vpp, "--json", buffer="64M")
        self.flight = closing(flight.Flight(vpp, folder, "--before", "1h", "--buffer", "64M"))

    def passed(self):
        """(received, sent) packets of each interface since then, as VPP counts them."""
        return [tuple(b - a for a, b in zip(*pair)) for pair in zip(self.before, self.vpp.passed())]

    def assert_exact(self):
        """Stops the ports. All that passed is in the recording, and in an incident."""
        for name in self.vpp.names:
            self.vpp.ctl(f"set interface state {name} down")
        self.flight.proc.send_signal(signal.SIGUSR1)
        (incident,) = self.flight.incidents(1)
        assert not any(i["removed"] for i in self.recorder.report()["interfaces"])
        file = self.recorder.file()
        assert list(recorded(file).values()) == self.passed()
        flight.assert_same_packets(incident, file)
        assert incident["packets"] == len(file.packets)
        self.flight.finish()
        assert self.vpp.proc.alive()


def reached(watched, count):
    until(lambda: watched.passed()[0][0] >= count, what=f"{count} packets")


@pytest.mark.parametrize("kind", TAPS, ids=["-".join(map(str, kind)) for kind in TAPS])
def test_devices_go_under_traffic(kind, net, record, closing, tmp_path):
    """The port stays, up as its driver has it, and receives nothing more; VPP and the recorders go on."""
    vpp = closing(
        Vpp(
            net.hub,
            {},
            *kind,
            vdevs=("net_tap0,iface=first", "net_tap1,iface=second"),
            dev=f"num-tx-queues {max(kind[1], 1)}",
        )
    )
    attach(vpp.pid)
    for device, name, other in zip(("first", "second"), vpp.names, reversed(vpp.names)):
        net.hub.check(["ip", "link", "set", device, "up"])
        vpp.ctl(f"set interface l2 xconnect {name} {other}")
        vpp.ctl(f"set interface state {name} up")
    watched = Watched(vpp, record, closing, tmp_path / "incidents")
    flood = closing(net.hub.start([sys.executable, "-c", FRAMES, "first"]))
    reached(watched, 2000)
    net.hub.check(["ip", "link", "delete", "first"])
    flood.wait()
    watched.assert_exact()
    assert [p["name"] for app in listing() if app["pid"] == vpp.pid for p in app["ports"]] == ["net_tap0", "net_tap1"]
    detach(vpp.pid)


@kinds
def test_queues_are_made_again_under_traffic(kind, net, record, closing, tmp_path):
    """As 'set dpdk interface descriptors' does: it stops, configures and starts the port."""
    vpp, (a, _) = routed(net, closing, kind)
    watched = Watched(vpp, record, closing, tmp_path / "incidents")
    flood = closing(a.start(["ping", "-q", "-f", "10.99.2.1"]))
    for n in range(20):
        reached(watched, watched.passed()[0][0] + 100)
        vpp.ctl(f"set dpdk interface descriptors {vpp.names[n % 2]} rx {512 << (n & 2)} tx {512 << (n & 2)}")
    reached(watched, watched.passed()[0][0] + 100)
    flood.close()
    watched.assert_exact()
    detach(vpp.pid)
