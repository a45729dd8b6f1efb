# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces, which are removed with their contents after the test."""

import itertools
import os

from .proc import Proc, check, run, until

_number = itertools.count()
# A DPDK port receives raw frames: without offloaded checksums and segmentation.
_OFFLOADS = ("tx", "rx", "tso", "gso", "gro")


class Namespace:
    def __init__(self):
        self.name = f"rt{os.getpid()}n{next(_number)}"
        check(["ip", "netns", "add", self.name])
        try:
            self.check(["ip", "link", "set", "lo", "up"])
            # IPv6 would send neighbour discovery at any time.
            for which in ("all", "default"):
                path = f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6"
                self.check(["sh", "-c", f"echo 1 >{path}"])
        except BaseException:
            self.close()
            raise

    @property
    def prefix(self):
        """A command prefix that runs the command in the namespace."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def check(self, argv, **kwargs):
        return check([*self.prefix, *argv], **kwargs)

    def start(self, argv, **kwargs):
        return Proc([*self.prefix, *argv], **kwargs)

    def echo_replies(self):
        """Number of echo replies that its kernel has received."""
        lines = self.check(["cat", "/proc/net/snmp"]).splitlines()
        names, values = (line.split() for line in lines if line.startswith("Icmp:"))
        return int(values[names.index("InEchoReps")])

    def ping(self, address, count):
        """Until each request has its reply: at its end, ping does not wait for late ones."""
        before = self.echo_replies()
        self.check(["ping", "-q", "-c", count, "-i", "0.01", address])
        until(lambda: self.echo_replies() - before >= count, what=f"{count} echo replies")

    def device_up(self, device, mtu):
        self.check(["ip", "link", "set", device, "mtu", mtu, "up"])
        flags = [word for offload in _OFFLOADS for word in (offload, "off")]
        self.check(["ethtool", "-K", device, *flags])

    def close(self):
        run(["ip", "netns", "del", self.name])


class Net:
    """A hub namespace for the switch under test, and hosts around it, each in its own namespace."""

    def __init__(self):
        self.hub = Namespace()
        self.hosts = []

    def add_host(self, address, mtu=1500):
        """Adds a host with the address on `eth0`; returns it and the interface at the hub's end."""
        host = Namespace()
        self.hosts.append(host)
        port = f"to{len(self.hosts)}"
        self.hub.check(["ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.name])
        host.check(["ip", "addr", "add", f"{address}/24", "dev", "eth0"])
        host.device_up("eth0", mtu)
        self.hub.device_up(port, mtu)
        return host, port

    def close(self):
        for space in (*self.hosts, self.hub):
            space.close()
