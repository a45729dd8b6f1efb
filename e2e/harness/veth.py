# SPDX-License-Identifier: BSD-3-Clause
"""A pair of kernel interfaces in a namespace, and frames on it: the reference for libpcap."""

import sys

from . import pcap
from .netns import Namespace

# Reads frames as hexadecimal lines; prints "ok" for each.
_SENDER = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
    s.bind((sys.argv[1], 0))
    print("ready", flush=True)
    for line in sys.stdin:
        for frame in line.split():
            s.send(bytes.fromhex(frame))
        print("ok", flush=True)
"""


class Veth:
    """`cap0` is the interface to capture on; frames for it are sent on `far0`."""

    name = "cap0"

    def __init__(self):
        self.space = Namespace()
        self.senders = {}
        try:
            self.space.check(["ip", "link", "add", self.name, "type", "veth", "peer", "name", "far0"])
            for device in (self.name, "far0"):
                self.space.device_up(device, 1500)
            for direction, device in (("rx", "far0"), ("tx", self.name)):
                self.senders[direction] = self.space.start([sys.executable, "-c", _SENDER, device])
                self.senders[direction].expect("^ready$")
        except BaseException:
            self.close()
            raise

    def send(self, direction, frames):
        sender = self.senders[direction]
        sender.send(" ".join(frame.hex() for frame in frames))
        sender.expect("^ok$")

    def burst(self, direction, n, length, seq=0):
        """As the commands of rt_play."""
        self.send(direction, [pcap.frame(length, seq + i) for i in range(n)])

    def close(self):
        for sender in self.senders.values():
            sender.close()
        self.space.close()
