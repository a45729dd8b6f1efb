# SPDX-License-Identifier: BSD-3-Clause
"""PMD threads of Open vSwitch that begin while its packets are kept."""

import re
import signal

import pytest
from harness import pcapng
from harness.flight import Flight
from harness.ringtap import packets_of

pytestmark = pytest.mark.alone  # two threads poll
PINGS = 50


def polled_by(ovs):
    """The core that polls each port."""
    cores, found = None, {}
    for line in ovs.appctl("dpif-netdev/pmd-rxq-show").splitlines():
        if core := re.search(r"pmd thread numa_id \d+ core_id (\d+):", line):
            cores = int(core[1])
        elif port := re.search(r"port: (\S+)\s+queue-id:", line):
            found[port[1]] = cores
    return found


def test_pmd_threads_that_are_added_under_a_flight_recorder(ovs, net, closing, tmp_path):
    """The mask of their CPUs grows: the incident has all packets, those of the new thread included."""
    hosts = [net.add_host(f"10.99.0.{i}") for i in (1, 2)]
    it = ovs()
    for name, (_, port) in zip(("p0", "p1"), hosts):
        it.add_port(name, port)
    assert set(polled_by(it).values()) == {1}
    kept = closing(
        Flight(it, tmp_path / "incidents", "--buffer", "32M", "--before", "60s", "--after", "1ms", "-f", "icmp")
    )
    hosts[0][0].ping("10.99.0.2", PINGS)
    it.vsctl("set", "Open_vSwitch", ".", "other_config:pmd-cpu-mask=0x3")
    assert sorted(polled_by(it).values()) == [0, 1]
    hosts[0][0].ping("10.99.0.2", PINGS)
    kept.proc.send_signal(signal.SIGUSR1)
    (incident,) = kept.incidents(1)
    kept.finish()
    file = incident.file
    for name in "p0", "p1":
        for direction in pcapng.RX, pcapng.TX:
            assert len(packets_of(file, name, direction)) == 2 * PINGS
    assert not any(pcapng.stat(i, pcapng.LOST) for i in file.interfaces)
