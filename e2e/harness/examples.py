# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's examples, built from the sources of the DPDK that is installed, on two virtual devices."""

import os
import struct
import sys
from pathlib import Path

from . import dpdk, pcap
from .netns import Namespace
from .proc import Proc, until

# Where devtools/matrix.sh has built them: FOLDER/NAME/build/NAME-shared and NAME-static.
FOLDER = Path(os.environ.get("RINGTAP_EXAMPLES", "/nonexistent"))
# The options of each after the EAL's. One thread polls both ports and forwards between them.
OPTIONS = {
    "l2fwd": ["-p", "0x3", "-q", "2", "-T", "0", "-P"],
    "l3fwd": ["-p", "0x3", "-P", "--config=(0,0,0),(1,0,0)", "--parse-ptype", "--no-numa"],
    "basicfwd": [],
    "rxtx_callbacks": [],
}
FOLDERS = {"basicfwd": "skeleton"}  # folder of the sources, where it is not the name
FRAMES = 64


def _udp(to, port, length=100):
    """An Ethernet frame with a UDP packet to 198.18.TO.1, which l3fwd routes to port TO."""
    udp = struct.pack(">HHHH", 1024, port, length - 34, 0) + bytes(length - 42)
    ip = struct.pack(">BBHHHBBH4B4B", 0x45, 0, length - 14, 1, 0, 64, 17, 0, 192, 0, 2, 1, 198, 18, to, 1)
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", 0xFFFF - (total & 0xFFFF) - (total >> 16)) + ip[12:]
    return bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + udp


def frames(to):
    """One of each four frames goes to UDP port 53."""
    return [_udp(to, 80 if n % 4 else 53) for n in range(FRAMES)]


class Files:
    """Two ports that receive the same packets for ever, as fast as they are polled."""

    ports = ["net_pcap0", "net_pcap1"]
    prefix = ()

    def __init__(self, folder):
        files = [pcap.write(folder / f"{name}.pcap", frames(1 - i)) for i, name in enumerate(self.ports)]
        self.vdevs = [f"{name},rx_pcap={file},infinite_rx=1" for name, file in zip(self.ports, files)]

    def start(self):
        pass

    def close(self):
        pass


SEND = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
while True:
    for frame in sys.argv[2:]:
        s.send(bytes.fromhex(frame))
    time.sleep(0.001) # its rate
"""


class Taps:
    """Two ports to the kernel, with offloads that l3fwd of DPDK 22.11 requires. The first receives 64 packets each
    millisecond."""

    ports = ["net_tap0", "net_tap1"]
    vdevs = ["net_tap0,iface=tap0", "net_tap1,iface=tap1"]

    def __init__(self, _folder):
        self.namespace = Namespace()
        self.prefix = self.namespace.prefix
        self.sender = None

    def start(self):
        for name in ("tap0", "tap1"):
            until(lambda: name in self.namespace.check(["ip", "-br", "link"]), what="the device")
            self.namespace.check(["ip", "link", "set", name, "up"])
        self.sender = self.namespace.start([sys.executable, "-c", SEND, "tap0", *(f.hex() for f in frames(1))])

    def close(self):
        if self.sender:
            self.sender.close()
        self.namespace.close()


class Example:
    """Runs until it is closed. kind: shared or static."""

    def __init__(self, name, kind, folder, plugin=None):
        self.prefix = dpdk.new_prefix(name.replace("_", ""))
        program = FOLDER / FOLDERS.get(name, name) / "build" / f"{name}-{kind}"
        self.traffic = (Taps if name == "l3fwd" else Files)(folder)
        self.ports = self.traffic.ports
        self.proc = Proc(
            [
                *self.traffic.prefix,
                program,
                *dpdk.eal_args(self.prefix, plugin, self.traffic.vdevs, lcores="0"),
                "--",
                *OPTIONS[name],
            ],
            tty=True,
        )
        try:
            self.traffic.start()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        return self.proc.pid

    def close(self):
        self.proc.close()
        self.traffic.close()
        dpdk.remove_run_dir(self.prefix)
