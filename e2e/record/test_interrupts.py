# SPDX-License-Identifier: BSD-3-Clause
"""Applications in RX interrupt mode: a thread that sleeps until packets come has polled when a session begins, and does not
poll when it ends."""

import signal

import pytest
from harness import dpdk, pcapng
from harness.flight import Flight
from harness.netns import Namespace
from harness.paths import BUILD
from harness.proc import Proc, until
from harness.ringtap import packets_of

# Frames of a local type, numbered, from FIRST on.
SEND = """
import socket, sys
first, count = map(int, sys.argv[1:])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("tap0", 0))
for number in range(first, first + count):
    s.send(bytes.fromhex("020000000001" "020000000002" "88b5") + number.to_bytes(4, "big") + bytes(42))
"""
ROUNDS, EACH = 4, 25


class Sleeper:
    def __init__(self, plugin, namespace):
        self.prefix, self.namespace, self.sent = dpdk.new_prefix("sleep"), namespace, 0
        self.proc = Proc(
            [
                *namespace.prefix,
                BUILD / "e2e" / "rt_sleep",
                *dpdk.eal_args(self.prefix, plugin, ["net_tap0,iface=tap0"]),
            ]
        )
        self.proc.expect("^ready$")

    @property
    def pid(self):
        return self.proc.pid

    def counts(self):
        """Numbers of times that it has slept, and of packets."""
        self.proc.send("counts")
        return [int(number) for number in self.proc.expect(r"^(\d+) (\d+)$").groups()]

    def wake(self):
        """Frames that it gets while it sleeps; until it sleeps again."""
        slept, _ = self.counts()
        self.namespace.check(["/usr/bin/python3", "-c", SEND, self.sent, EACH])
        self.sent += EACH
        until(lambda: self.counts()[1] == self.sent and self.counts()[0] > slept, what="packets, and sleep")

    def close(self):
        self.proc.close()
        dpdk.remove_run_dir(self.prefix)


@pytest.fixture
def sleeper(closing, plugin):
    return closing(Sleeper(plugin, closing(Namespace())))


def test_thread_that_sleeps_until_packets_come(sleeper, record, closing, tmp_path):
    """record and flight have each packet in both directions, the first one of each wakening included; a second session begins
    and ends while the thread sleeps."""
    kept = closing(Flight(sleeper, tmp_path / "incidents", "--buffer", "32M", "--before", "60s", "--after", "1ms"))
    recorder = record(sleeper, "-f", "ether proto 0x88b5")
    for _ in range(ROUNDS):
        sleeper.wake()
    recorder.finish()
    sleeper.wake()
    kept.proc.send_signal(signal.SIGUSR1)
    (incident,) = kept.incidents(1)
    kept.finish()
    assert sleeper.counts()[0] > ROUNDS
    for file, count in ((recorder.file(), ROUNDS * EACH), (incident.file, (ROUNDS + 1) * EACH)):
        for direction in pcapng.RX, pcapng.TX:
            numbers = [
                int.from_bytes(p.data[14:18], "big")
                for p in packets_of(file, "net_tap0", direction)
                if p.data[12:14] == b"\x88\xb5"
            ]
            assert numbers == list(range(count))
        assert [pcapng.stat(i, pcapng.LOST) for i in file.interfaces] == [0]
    again = record(sleeper)
    again.finish()
    sleeper.wake()
