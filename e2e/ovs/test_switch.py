# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified Open vSwitch: hosts in namespaces communicate, and their packets are recorded."""

from pathlib import Path

import pytest
from harness import pcapng
from harness.cases import nightly
from harness.proc import check
from harness.ringtap import packets_of

HUGE_PAGES_NEEDED = 256  # pages of 2 MiB
BYTES = 3_000_000

# Sends BYTES over TCP and waits until the peer has closed; the peer counts the bytes.
SEND = f"""
import socket, sys
s = socket.create_connection((sys.argv[1], 5001))
s.sendall(b'ringtap!' * ({BYTES} // 8))
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""
RECEIVE = """
import socket
s = socket.create_server(('', 5001))
print('listening', flush=True)
c, _ = s.accept()
n = 0
while data := c.recv(65536):
    n += len(data)
print('got', n, flush=True)
"""
PYTHON = "/usr/bin/python3"


def free_huge_pages():
    path = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    return int(path.read_text()) if path.exists() else 0


HUGE = pytest.mark.parametrize("huge", [nightly(False), True], ids=["no huge pages", "huge pages"])


@pytest.fixture
def switch(ovs, net):
    """switch(huge) has two hosts on one bridge. Returns (ovs, hosts, names of ports)."""

    def start(huge=False):
        if huge and free_huge_pages() < HUGE_PAGES_NEEDED:
            pytest.skip(f"needs {HUGE_PAGES_NEEDED} free huge pages of 2 MiB")
        hosts = [net.add_host(f"10.99.0.{i}") for i in (1, 2)]
        it = ovs(huge=huge)
        names = ["p0", "p1"]
        for name, (_, port) in zip(names, hosts):
            it.add_port(name, port)
        return it, [host for host, _ in hosts], names

    return start


def tshark(path, expression, *fields):
    args = [a for f in fields for a in ("-e", f)]
    return [
        line.split("\t") for line in check(["tshark", "-r", path, "-Y", expression, "-T", "fields", *args]).splitlines()
    ]


def check_accounts(file):
    for i, iface in enumerate(file.interfaces):
        assert pcapng.stat(iface, 7) == 0, "packets were lost at a leisurely pace"
        assert pcapng.stat(iface, 8) == sum(p.interface == i for p in file.packets)


def assert_pings(record, ovs, a, names):
    """Each request and each reply is received at one port, then sent at the other."""
    recorder = record(ovs)
    a.ping("10.99.0.2", 20)
    recorder.finish()
    file = recorder.file()
    assert [i.name for i in file.interfaces][:2] == names
    pcapng.assert_in_order(file)
    check_accounts(file)
    rows = tshark(recorder.out, "icmp", "frame.interface_name", "frame.packet_flags_direction", "icmp.type", "icmp.seq")
    per_seq = {}
    for name, direction, kind, seq in rows:
        per_seq.setdefault(seq, []).append((names.index(name), int(direction, 16), int(kind)))
    assert len(per_seq) == 20
    for steps in per_seq.values():
        assert steps == [(0, 1, 8), (1, 2, 8), (1, 1, 0), (0, 2, 0)]


def assert_ids(record, ovs, a, names):
    """A request, and a reply, is received at one port and sent at the other with the same id."""
    recorder = record(ovs, "--ids", "-f", "icmp", "-c", "80")
    a.ping("10.99.0.2", 20)
    recorder.done()
    file = recorder.file()
    for i, name in enumerate(names):
        came = {p.data: p.id for p in packets_of(file, name, pcapng.RX)}
        went = {p.data: p.id for p in packets_of(file, names[1 - i], pcapng.TX)}
        assert len(set(came.values())) == 20 and None not in came.values()
        assert went == came


def assert_stream(record, ovs, a, b, names):
    recorder = record(ovs, "-f", "tcp port 5001")
    server = b.start([PYTHON, "-c", RECEIVE])
    server.expect("listening")
    a.check([PYTHON, "-c", SEND, "10.99.0.2"])
    assert int(server.expect(r"got (\d+)").group(1)) == BYTES
    assert server.wait() == 0
    recorder.finish()
    file = recorder.file()
    pcapng.assert_in_order(file)
    check_accounts(file)
    # Each received frame was sent unchanged, and later.
    came = [p.data for p in packets_of(file, names[0], pcapng.RX)]
    went = [p.data for p in packets_of(file, names[1], pcapng.TX)]
    assert came == went
    # The stream that tshark reassembles is the sent one.
    single = recorder.out.with_suffix(".in.pcapng")
    check(
        [
            "tshark",
            "-r",
            recorder.out,
            "-w",
            single,
            "-Y",
            f'frame.interface_name == "{names[0]}" && frame.packet_flags_direction == 1',
        ]
    )
    followed = check(["tshark", "-r", single, "-q", "-z", "follow,tcp,raw,0"])
    stream = "".join(
        line.strip() for line in followed.splitlines() if line and all(c in "0123456789abcdef" for c in line.strip())
    )
    assert bytes.fromhex(stream) == b"ringtap!" * (BYTES // 8)


@HUGE
def test_hosts_communicate(switch, record, huge):
    """Until the switch is killed: its recording is whole."""
    ovs, (a, b), names = switch(huge)
    assert_pings(record, ovs, a, names)
    assert_ids(record, ovs, a, names)
    assert_stream(record, ovs, a, b, names)
    recorder = record(ovs)
    a.ping("10.99.0.2", 5)
    ovs.switch.kill()
    recorder.proc.wait()
    assert len(tshark(recorder.out, "icmp", "icmp.seq")) == 20


def test_ports_that_the_switch_adds_and_removes(switch, record, net):
    ovs, (a, _b), names = switch()
    recorder = record(ovs)
    _c, port = net.add_host("10.99.0.3")
    ovs.add_port("late", port)
    a.check(["ping", "-q", "-c", "40", "-i", "0.05", "-w", "10", "10.99.0.3"])
    ovs.del_port("late")
    a.ping("10.99.0.2", 5)
    recorder.finish()
    file = recorder.file()
    assert [i.name for i in file.interfaces][:3] == [*names, "late"]
    check_accounts(file)
    assert packets_of(file, "late", pcapng.RX), "nothing of the new port's was captured"
