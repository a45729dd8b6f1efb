# SPDX-License-Identifier: BSD-3-Clause
"""A program that passes packets to a guest by the asynchronous functions of the vhost library."""

import json
import struct

import pytest
from harness import pcapng
from harness.documents import only
from harness.ovs import Guest
from harness.paths import BUILD, RINGTAP, private_folder
from harness.play import Play
from harness.proc import check, run, until
from harness.ringtap import FAILED, frames_of, listing

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


HIDDEN = "its vhost ports are not visible, as the program contains DPDK's vhost library"


def hidden(app):
    (entry,) = [a for a in listing() if a["name"] == app.prefix]
    return entry["hidden"]


def test_a_program_that_contains_the_vhost_library_has_hidden_ports(plugin, closing):
    """Which list, doctor and refusals say; not of a program that loads it, nor of one without devices of it."""
    if not (BUILD / "e2e" / "rt_dma_static").exists():
        pytest.skip("no static DPDK with vhost 22.07")
    eal = ["--vdev", "dma_skeleton0", "--", private_folder() / "guest.sock"]
    static, shared = (closing(Play(plugin, program=name, eal=eal)) for name in ("rt_dma_static", "rt_dma"))
    without = closing(Play(plugin, program="rt_play_static"))
    assert hidden(static).startswith(HIDDEN)
    assert hidden(shared) is None and hidden(without) is None
    texts = {app: " ".join(check([RINGTAP, "list", app.prefix]).split()) for app in (static, shared, without)}
    assert [HIDDEN in texts[app] for app in (static, shared, without)] == [True, False, False]
    done = run([RINGTAP, "record", "-i", f"{static.prefix}:vm0", "-w", "/dev/null"])
    assert done.returncode == FAILED
    assert f"has no port 'vm0'; there is none; {HIDDEN}" in done.stderr
    for app in (static, shared):
        report = only(json.loads(run([RINGTAP, "doctor", "--duration", "1s", "--json", app.prefix]).stdout))
        notes = [v for v in report["verdicts"] if v["verdict"] == "outside_dpdk"]
        assert len(notes) == (app is static)
    assert notes == []
