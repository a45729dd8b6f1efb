# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's l3fwd: packets that an access list denies are shown by ringtap drops, the others are sent with their ids."""

import functools
import signal
import sys

import pytest
from harness import examples
from harness.known import Measuring
from harness.pcapng import RX, TX
from harness.proc import until
from harness.ringtap import packets_of

ROUTE, DENIED = 1, 77  # N of 198.18.N.0/24
PACKETS = 64
TO = 14 + 18  # byte of a frame: N of 198.18.N.1
ANY = "0 : 65535 0 : 65535 0x00/0x00"  # ports and protocol
SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for frame in sys.argv[2:]:
    s.send(bytes.fromhex(frame))
"""


@pytest.fixture
def l3fwd(plugin, closing, tmp_path, monkeypatch):
    """With an access list: by its other tables it sends packets without a route back. Nothing is sent yet."""
    (tmp_path / "ipv4").write_text(f"@0.0.0.0/0 198.18.{DENIED}.0/24 {ANY}\nR0.0.0.0/0 198.18.{ROUTE}.0/24 {ANY} 1\n")
    (tmp_path / "ipv6").write_text(f"R2001:db8:0:0:0:0:0:0/32 2001:db8:0:0:0:0:0:0/32 {ANY} 1\n")
    rules = [f"--rule_{version}={tmp_path / version}" for version in ("ipv4", "ipv6")]
    monkeypatch.setitem(examples.OPTIONS, "l3fwd", [*examples.OPTIONS["l3fwd"], "--lookup=acl", *rules])
    monkeypatch.setattr(examples.dpdk, "eal_args", functools.partial(examples.dpdk.eal_args, memory_mb=1024))
    monkeypatch.setattr(examples, "SEND", "import signal; signal.pause()")
    return closing(examples.Example("l3fwd", "shared", tmp_path, plugin))


def send_all(l3fwd):
    """Those that it routes come last: until they are sent."""
    frames = [*examples.frames(DENIED), *examples.frames(ROUTE)]
    space = l3fwd.traffic.namespace
    space.check([sys.executable, "-c", SEND, "tap0", *(f.hex() for f in frames)])

    def received():
        text = space.check(["ip", "-s", "link", "show", "tap1"])
        return int(text.split("RX:")[1].splitlines()[1].split()[1]) >= PACKETS

    until(received, what="the others are sent")


def test_packets_that_a_rule_denies(l3fwd, closing):
    l3fwd.proc.expect("(?i)entering.* main loop|Link up")
    drops = closing(Measuring("drops", l3fwd, "--once", "--duration", "1h", "--json", "--buffer", "16M", "-f", "udp"))
    send_all(l3fwd)
    report = drops.json(signal.SIGINT)
    shown = report["not_offered_packets"]
    # The driver has an mbuf at hand for what each port receives next: that of a dropped packet is not found.
    assert report["open"] <= 2 and PACKETS - report["open"] <= shown["packets"] <= PACKETS, report
    assert shown["protocols"][0]["protocol"] == "IPv4 UDP"
    assert f"> 198.18.{DENIED}.1:" in shown["protocols"][0]["example"]["packet"]
    assert report["offered"] >= PACKETS


def test_ids_of_routed_packets(l3fwd, record):
    """Packets have new addresses and a smaller TTL, and the ids that they were received with."""
    l3fwd.proc.expect("(?i)entering.* main loop|Link up")
    recorder = record(l3fwd, "--ids", "-f", "udp")
    send_all(l3fwd)
    recorder.finish()
    file = recorder.file()
    came = packets_of(file, "net_tap0", RX)
    went = [p.id for p in packets_of(file, "net_tap1", TX)]
    routed = [p.id for p in came if p.data[TO] == ROUTE]
    assert len({p.id for p in came}) == 2 * PACKETS and None not in went
    assert went == routed and len(went) == PACKETS
