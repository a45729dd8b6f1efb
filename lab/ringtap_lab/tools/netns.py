# SPDX-License-Identifier: BSD-3-Clause
"""Hosts: network namespaces, joined by pairs of veth. Gone with all that is in them when closed."""
import subprocess

from . import process

# A DPDK port sees frames as they are: no checksums left to do, no segments to be cut.
_OFFLOADS = ("tx", "rx", "tso", "gso", "gro")


def _check(argv):
    process.remember(argv)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Namespace:
    def __init__(self, name):
        self.name = name
        _check(["ip", "netns", "add", name])
        try:
            self.inside(["ip", "link", "set", "lo", "up"])
            # IPv6 would send neighbour discovery whenever it likes.
            for which in ("all", "default"):
                self.inside(["sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1"])
        except BaseException:
            self.close()
            raise

    @property
    def prefix(self):
        """What to put before a command so that it runs inside."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def inside(self, argv):
        """Runs a command of preparation to its end: what it prints."""
        return _check([*self.prefix, *argv])

    def up(self, device):
        self.inside(["ethtool", "-K", device, *(w for o in _OFFLOADS for w in (o, "off"))])
        self.inside(["ip", "link", "set", device, "up"])

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


def join(a, b, device="eth0", options=()):
    """A pair of veth, one end in each of the two, of the same name; up. options: of each end, such
    as the number of queues."""
    _check(["ip", "-n", a.name, "link", "add", device, *options, "type", "veth",
            "peer", "name", device, *options, "netns", b.name])
    for end in (a, b):
        end.up(device)
