# SPDX-License-Identifier: BSD-3-Clause
"""A program that passes packets to a guest by the asynchronous functions of the vhost library."""

import struct

import pytest
from harness import pcapng
from harness.ovs import Guest
from harness.paths import BUILD, private_folder
from harness.play import Play
from harness.proc import until
from harness.ringtap import frames_of

PACKETS = 3000
CONNECTED, SUBMITTED, REFUSED, COMPLETED, RECEIVED = range(5)  # answer of e2e/apps/rt_dma.c

pytestmark = pytest.mark.nightly


def packet(number):
    size = 60 + number * 97 % 1400
    return (struct.pack(">I", number) * (size // 4 + 1))[:size]


@pytest.mark.parametrize("devargs", ["", ",packed_vq=1"], ids=["split rings", "packed rings"])
def test_packets_that_a_dma_device_copies(plugin, closing, record, devargs):
    """Each once, though the guest refuses some, and as it was when it was submitted. Completions are not packets."""
    if not (BUILD / "e2e" / "rt_dma").exists():
        pytest.skip("DPDK before 22.07")
    path = private_folder() / "guest.sock"
    host = closing(Play(plugin, program="rt_dma", eal=["--vdev", "dma_skeleton0", "--", path]))
    guest = closing(Guest(path, devargs, args=("--no-flush-rx",), start=False))  # else it drops what waits for it
    until(lambda: host.one("count"), what="the guest is connected")
    recorder = record(host)
    host.do(f"send {PACKETS}")
    until(lambda: host.do("count")[REFUSED] > 0, what="the guest has no room")
    guest.cmd("set fwd io retry")
    guest.cmd("set burst tx delay 10 retry 1000000")  # until the host has room
    guest.start()
    until(lambda: host.do("count")[RECEIVED] == PACKETS, what="all have come back")
    count = host.do("count")
    assert count[SUBMITTED] == count[COMPLETED] == PACKETS
    recorder.finish()
    file = recorder.file()
    pcapng.assert_in_order(file)
    (interface,) = file.interfaces
    assert str(path).endswith(interface.name)
    sent = [packet(i) for i in range(PACKETS)]
    for direction in (pcapng.TX, pcapng.RX):
        assert frames_of(file, interface.name, direction) == sent
    assert not pcapng.stat(interface, pcapng.LOST)
