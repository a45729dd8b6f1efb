# SPDX-License-Identifier: BSD-3-Clause
"""Makes the pictures of docs/vpp.md again, of a VPP that denies UDP and answers pings. Run as root, with the builds of
'make vpp': RINGTAP_VPP=build/vpp RINGTAP_BUILD=build devtools/vpp_pictures.py"""

import contextlib
import sys

import pictures
from harness import sandbox
from harness.attach import detach
from harness.known import Measuring
from harness.netns import Net
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.vpp import BUILDS, routed

SEND = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for port, size in (53, 40), (123, 48), (4789, 900):
        s.sendto(bytes(size), ("10.99.2.1", port))
    time.sleep(0.002)
"""


def attach(out):
    lines = []
    for command in ("attach vpp", "list vpp"):
        lines += [f"$ ringtap {command}", *check([RINGTAP, *command.split()]).splitlines()]
    pictures.draw(lines, out, pictures.NARROW)


def drops(vpp, host, out):
    """At its end all packets are counted: VPP's numbers are those of the packets."""
    measuring = Measuring("drops", vpp, "--once", "--duration", "4s")
    loads = [host.start(load) for load in (["ping", "-q", "-i", "0.002", "10.99.2.1"], [sys.executable, "-c", SEND])]
    try:
        until(lambda: vpp.errors().get("acl-plugin-in-ip4-fa/ACL deny packets", 0) > 2000, what="packets")
    finally:
        for load in loads:
            load.close()
    lines = measuring.finish().splitlines()
    pictures.draw(["$ ringtap drops --once --duration 4s vpp", *lines[1:]], out)


def main():
    sandbox.enter()
    with contextlib.ExitStack() as stack:

        def closing(thing):
            return stack.enter_context(contextlib.closing(thing))

        vpp, (a, _) = routed(closing(Net()), closing, (BUILDS[-1], 1))
        vpp.ctl("set acl-plugin acl deny proto 17, permit")
        vpp.ctl(f"set acl-plugin interface {vpp.names[0]} input acl 0")
        detach(vpp.pid)
        attach(pictures.IMAGES / "vpp-attach.svg")
        drops(vpp, a, pictures.IMAGES / "vpp-drops.svg")


if __name__ == "__main__":
    main()
