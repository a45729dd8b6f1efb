# SPDX-License-Identifier: BSD-3-Clause
"""The network cards that QEMU models, and frames for them."""

import os
import re
import subprocess

import pytest
from scapy.all import IP, UDP, Ether, Raw

from .machine import VERSIONS, mac

CARDS = {
    "e1000": "net_e1000_em",
    "e1000e": "net_e1000_em",
    "igb": "net_e1000_igb",
    "vmxnet3": "net_vmxnet3",
    "virtio-net-pci": "net_virtio",
}
OPTIONS = {"virtio-net-pci": "disable-legacy=on,iommu_platform=on,ats=on,mq=off"}
PEER = "02:00:00:00:00:99"


def chosen():
    """Those to test: all, or the one that RINGTAP_CARD names."""
    return [c for c in CARDS if os.environ.get("RINGTAP_CARD", c) == c]


def model(card):
    """As QEMU's -device has it."""
    return ",".join(filter(None, (card, OPTIONS.get(card))))


def qemu(card):
    """igb came with QEMU 8: RINGTAP_QEMU names another one."""
    program = os.environ.get("RINGTAP_QEMU", "qemu-system-x86_64")
    models = subprocess.run([*program.split(), "-device", "help"], capture_output=True, text=True).stdout
    version = re.search(
        r"version (\S+)", subprocess.run([*program.split(), "--version"], capture_output=True, text=True).stdout
    ).group(1)
    VERSIONS[card] = version
    if f'name "{card}"' not in models:
        pytest.skip(f"QEMU {version} has no {card}; QEMU 8 has igb")
    return program.split()


def udp(number, length=100, **ip):
    head = (
        Ether(dst=mac(0), src=PEER)
        / IP(src=f"10.0.0.{number % 200 + 1}", dst="10.1.0.1", id=number, **ip)
        / UDP(sport=1000 + number, dport=53)
    )
    return bytes(head / Raw(bytes((number + i) & 255 for i in range(length - len(head)))))
