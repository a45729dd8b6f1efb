# SPDX-License-Identifier: BSD-3-Clause
"""Hosts: network namespaces, joined by pairs of veth; removed with all that is in them when closed."""

from __future__ import annotations

import subprocess

from . import process

# A DPDK port reads frames as they are: checksums must be complete, segments not merged.
_OFFLOADS = ("tx", "rx", "tso", "gso", "gro")


def _check(argv: list[str]):
    process.remember(argv)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")


class Namespace:
    def __init__(self, name: str):
        self.name = name
        self.prefix = ["nsenter", f"--net=/run/netns/{name}"]  # before commands that run inside
        _check(["ip", "netns", "add", name])
        try:
            self.inside(["ip", "link", "set", "lo", "up"])
            # IPv6 would send neighbour discovery at any time.
            for which in ("all", "default"):
                self.inside(["sysctl", "-qw", f"net.ipv6.conf.{which}.disable_ipv6=1"])
        except BaseException:
            self.close()
            raise

    def inside(self, argv: list[str]) -> None:
        """Runs a command of preparation to its end."""
        _check([*self.prefix, *argv])

    def up(self, device: str) -> None:
        self.inside(["ethtool", "-K", device, *(w for o in _OFFLOADS for w in (o, "off"))])
        self.inside(["ip", "link", "set", device, "up"])

    def close(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


def join(a: Namespace, b: Namespace, device: str = "eth0") -> None:
    """A pair of veth, one end in each of the two, of the same name; up."""
    _check(["ip", "-n", a.name, "link", "add", device, "type", "veth", "peer", "name", device, "netns", b.name])
    for namespace in (a, b):
        namespace.up(device)
