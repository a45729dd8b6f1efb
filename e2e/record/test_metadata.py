# SPDX-License-Identifier: BSD-3-Clause
"""Metadata of mbufs, from a driver that finds packet types and checks checksums, and from testpmd that leaves
checksums to it; as Wireshark shows it with the plugin."""

import pytest
from harness.netns import Namespace
from harness.paths import REPO
from harness.proc import check, until
from scapy.all import IP, TCP, UDP, Ether, raw

pytestmark = [pytest.mark.nightly, pytest.mark.tools]

SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for frame in sys.argv[2:]:
    s.send(bytes.fromhex(frame))
"""
FIELDS = ("packet_type", "checksum.ip", "checksum.l4", "checksum.valid", "checksum.not_ready", "checksum.not_bad")
BAD, GOOD = "1", "2"


@pytest.fixture
def namespace(closing):
    return closing(Namespace())


def show(file):
    """The plugin's fields of each frame, with its direction."""
    names = ["frame.packet_flags_direction", *(f"ringtap.{name}" for name in FIELDS)]
    words = [word for name in names for word in ("-e", name)]
    plugin = f"lua_script:{REPO / 'extcap' / 'ringtap.lua'}"
    args = ["-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields", *words]
    return [tuple(line.split("\t")) for line in check(["tshark", "-X", plugin, "-r", file, *args]).splitlines()]


def test_types_and_checksums(testpmd, record, namespace):
    base = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02") / IP(src="192.0.2.1", dst="192.0.2.2")
    data = b"x" * 30
    frames = [
        raw(base / TCP(dport=80) / data),
        raw(base / UDP(dport=53) / data),
        raw(base / TCP(dport=80, chksum=0x1234) / data),
    ]
    pmd = testpmd("net_tap0,iface=rttap0", namespace=namespace, args=["--enable-rx-cksum"])
    for line in ("port stop all", "csum set ip hw 0", "csum set tcp hw 0", "csum set udp hw 0", "port start all"):
        pmd.cmd(line)
    pmd.cmd("set fwd csum")
    pmd.start()
    namespace.check(["ip", "link", "set", "rttap0", "up"])
    recorder = record(pmd, "--metadata", "-f", "ip host 192.0.2.1")
    namespace.check(["/usr/bin/python3", "-c", SEND, "rttap0", *(f.hex() for f in frames)])
    until(lambda: pmd.stats(0)["TX-packets"] >= len(frames), what="packets sent")
    recorder.finish()
    shown = show(recorder.out)
    received = [row[1:] for row in shown if row[0] == "0x00000001"]
    sent = [row[1:] for row in shown if row[0] == "0x00000002"]
    assert received == [
        ("ETHER IPV4 TCP", GOOD, GOOD, "1", "", ""),
        ("ETHER IPV4 UDP", GOOD, GOOD, "1", "", ""),
        ("ETHER IPV4 TCP", GOOD, BAD, "", "", ""),
    ]
    # The driver computes them, and the records have those of before: Wireshark takes the third for a bad one.
    assert sent == [("", "", "", "", "1", "")] * 2 + [("", "", "", "", "1", "1")]
