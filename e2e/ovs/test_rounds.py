# SPDX-License-Identifier: BSD-3-Clause
"""An Open vSwitch under traffic after hundreds of recorders, attaches, guests and ports is what it was."""

import re

import pytest
from harness.attach import attach, detach
from harness.dpdk import Resources
from harness.guests import E2E, GUESTS, NIC, SEND, Site, Slots
from harness.proc import until

WARM_UP = 10  # the allocator and the switch's own pools have grown by then
ROUNDS = 500
ATTACHES = 1000

pytestmark = pytest.mark.nightly


class Before:
    """The switch: rounds must not change it."""

    def __init__(self, ovs):
        self.ovs, self.slots = ovs, Slots(ovs.pid)
        self.values, self.maps = self.slots.values(), self.slots.maps()
        self.pools = pools_of(ovs)
        assert self.pools
        self.resources = Resources(ovs.pid)

    def assert_same(self):
        until(lambda: self.slots.values() == self.values, what="slots restored")
        assert self.slots.maps() == self.maps
        until(lambda: Resources(self.ovs.pid).fds <= self.resources.fds, what="descriptors closed")
        until(lambda: Resources(self.ovs.pid).maps <= self.resources.maps + 4, what="memory unmapped")
        after = Resources(self.ovs.pid)
        print(f"{self.resources} before, {after} after")
        assert after.threads == self.resources.threads
        assert after.rss_kb < self.resources.rss_kb + 4096
        assert pools_of(self.ovs) == self.pools
        assert self.ovs.switch.alive()


def pools_of(ovs):
    """Sizes of the switch's mempools, by name."""
    return dict(
        re.findall(
            r"^mempool <(\S+)>.*?^  populated_size=(\d+)", ovs.appctl("netdev-dpdk/get-mempool-info"), re.M | re.S
        )
    )


@pytest.fixture
def sends(frames):
    """sends(site): its host does until the test ends."""

    def start(site):
        return site.closing(site.host.start(["/usr/bin/python3", "-c", SEND, E2E, frames[1], "for ever"]))

    return start


def rounds(site, number, once):
    """Calls once(i) a few times, and then number times, between which the switch must not change."""
    for i in range(WARM_UP):
        once(i)
    before = Before(site.ovs)
    for i in range(number):
        once(i)
    before.assert_same()


def test_recorders_that_are_killed(ovs, net, closing, record, sends):
    site = Site(ovs, net, closing)
    sender = sends(site)

    def once(i):
        recorder = record(site.ovs, ports=[(NIC, *GUESTS, None)[i % 4]])
        recorder.proc.kill()
        recorder.proc.wait()
        recorder.out.unlink()

    rounds(site, ROUNDS, once)
    assert sender.alive()


def test_attaches_and_detaches(ovs, net, closing, sends):
    site = Site(ovs, net, closing, {"attached": True})
    sender = sends(site)

    def once(_i):
        attach(site.ovs.prefix)
        detach(site.ovs.prefix)

    rounds(site, ATTACHES, once)
    assert sender.alive()


def test_guests_that_are_killed_and_ports_that_are_deleted(ovs, net, closing, record, sends):
    site = Site(ovs, net, closing)
    sender, recorder = sends(site), record(site.ovs, "-b", "files:2", "-b", "filesize:10000")

    def once(i):
        guest = site.guests["vm1"]
        guest.proc.kill()
        guest.close()
        if i % 2:
            site.ovs.del_port("vm1")
            site.paths["vm1"] = site.ovs.add_vhost("vm1")
            site.ovs.pass_on(NIC, *GUESTS)
        site.start_guest("vm1")

    rounds(site, ROUNDS, once)
    assert sender.alive() and recorder.proc.alive()
