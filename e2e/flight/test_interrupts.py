# SPDX-License-Identifier: BSD-3-Clause
"""Interrupts that take the CPU of a polling thread: packets of the kernel, steered there by RPS."""

import collections
import re
import sys

import pytest
from harness import flight
from harness.netns import Namespace
from harness.proc import Proc, until

# Sends bursts, from CPU 0: all packets of one wait for CPU 1 at once.
FLOOD = """
import os, socket, time
os.sched_setaffinity(0, {0})
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.9.0.2", 9))
print("ready", flush=True)
end = time.monotonic() + 2
while time.monotonic() < end:
    for _ in range(400):
        try:
            s.send(bytes(64))
        except ConnectionRefusedError:
            pass
    time.sleep(0.002)
print("done", flush=True)
"""


@pytest.fixture
def steered(closing, tmp_path):
    """A namespace whose packets from 10.9.0.1 to 10.9.0.2 are received on CPU 1, where polling threads are."""
    near, far = closing(Namespace()), closing(Namespace())
    near.check(["ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", far.name])
    for space, device, address in ((near, "near0", "10.9.0.1/24"), (far, "far0", "10.9.0.2/24")):
        space.check(["ip", "addr", "add", address, "dev", device])
        space.check(["ip", "link", "set", device, "up"])
    sys_folder = tmp_path / "sys"
    sys_folder.mkdir()
    steer = f"mount -t sysfs none {sys_folder}; echo 2 >{sys_folder}/class/net/far0/queues/rx-0/rps_cpus; umount {sys_folder}"
    far.check(["sh", "-ec", steer])
    return near


def causes(incident):
    """Sum of the gaps by state, ns, and texts of those by interrupts."""
    panel = flight.panel(incident, "threads")
    sums, texts = collections.Counter(), []
    for lane in panel["lanes"]:
        for _start, ns, state, *text in lane["intervals"]:
            name = panel["states"][state]["name"]
            sums[name] += ns
            if name == "gap: interrupt":
                texts.append(text[0])
    return sums, texts


@pytest.mark.nightly
@pytest.mark.alone
def test_gaps_by_interrupts_are_named(fwd, keep, closing, steered):
    app = fwd("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", "20k").running()
    kept = keep(app, "--before", "4s", "--after", "50ms", "--collectors", "gaps,busy")
    until(lambda: flight.state(app)["kept_ns"] > 3_500_000_000, what="threads are followed")
    flight.command("trigger", kept.folder)
    flood = closing(Proc([*steered.prefix, sys.executable, "-c", FLOOD]))
    kept.incidents(1)
    flood.expect("^done")
    flight.command("trigger", kept.folder)
    quiet, loud = kept.incidents(2)
    kept.finish()
    before, after = causes(quiet), causes(loud)
    network = [t for t in after[1] if "'softirq NET_RX'" in t]
    assert len(network) > 100
    assert (
        sum(
            float(n) * {"us": 1, "ms": 1000}[unit]
            for n, unit in re.findall(r"took ([0-9.]+) (us|ms)", " ".join(network))
        )
        > 10_000
    )
    assert sum("'softirq NET_RX'" in t for t in before[1]) < len(network) / 10
