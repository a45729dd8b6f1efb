# SPDX-License-Identifier: BSD-3-Clause
"""A program linked with the system's libpcap makes the same calls on a veth and, under `ringtap
run`, on a port. The results on the veth are the reference."""

import re
import stat

import pytest
from harness import dpdk
from harness.paths import BUILD, RINGTAP
from harness.proc import Proc, run, until
from harness.ringtap import listing
from harness.veth import Veth

TABLE = BUILD / "e2e" / "pcap_table"
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]

# Name of the call: (on the veth, on the port). Each entry needs a reason.
INTENDED = {
    # libpcap lists DOCSIS for every Ethernet interface; ports do not support it.
    "pcap_list_datalinks": ("2, first 1", "1, first 1"),
}


@pytest.fixture(scope="module")
def veth():
    it = Veth()
    yield it
    it.close()


def lines_of(proc, send=None):
    """Runs the program and sends the requested frames; returns its lines."""
    lines, seq = [], 0
    while not lines or not lines[-1].startswith("end:"):
        line = proc.expect(r"^(.*)\r?\n").group(1).decode()
        found = re.fullmatch(r"send (rx|tx) (\d+) (\d+)", line)
        if found:
            send(found[1], int(found[2]), int(found[3]), seq)
            seq += int(found[2])
            proc.send("")
        elif not line.startswith("Warning: "):  # libpcap's, on standard error
            lines.append(line)
    assert proc.wait() == 0
    return lines


def differences(theirs, ours):
    """The results that differ, by the name of the call."""
    theirs = [line.split(": ", 1) for line in theirs]
    ours = [line.split(": ", 1) for line in ours]
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    return {name: (t, o) for (name, t), (_, o) in zip(theirs, ours) if t != o}


def test_results_of_calls_are_the_same(veth, app, closing):
    theirs = lines_of(closing(veth.space.start([TABLE, veth.name])), veth.burst)
    ours = lines_of(
        closing(Proc([RINGTAP, "run", TABLE, f"ringtap:{app.prefix}:0"])),
        lambda direction, n, length, seq: app.burst(direction, n=n, len=length, seq=seq),
    )
    assert len(ours) > 100
    assert differences(theirs, ours) == INTENDED


def refusals(lines, device):
    """Removes the interface name and the reasons in brackets, which differ."""
    return [re.sub(r" \(.*\)$", " (why)", line.replace(device, "DEVICE")) for line in lines]


def test_refused_interfaces(veth, app, closing):
    """Missing ones, and those without permission."""
    theirs = lines_of(closing(veth.space.start([TABLE, "nosuch0", "refusals"])))
    for device in (
        "ringtap:nosuchapp:0",
        "ringtap:",
        "ringtap:{}:nosuchport",
        "ringtap:{}:0+nosuchport",
        "ringtap:{}:0+nosuchapp:0",
    ):
        device = device.format(app.prefix)
        ours = lines_of(closing(Proc([RINGTAP, "run", TABLE, device, "refusals"])))
        assert not differences(refusals(theirs, "nosuch0"), refusals(ours, device)), device
    assert app.one("callbacks 0") == 0
    listing()  # wakes the probe, which makes its socket
    for sock in (dpdk.RUN_DIR / app.prefix).glob("*"):
        if stat.S_ISSOCK(sock.stat().st_mode):
            sock.chmod(0)
    device = f"ringtap:{app.prefix}:0"
    theirs = lines_of(closing(veth.space.start([*POWERLESS, TABLE, veth.name, "refusals"])))
    ours = lines_of(closing(Proc([*POWERLESS, RINGTAP, "run", TABLE, device, "refusals"])))
    assert not differences(refusals(theirs, veth.name), refusals(ours, device))


def test_other_interfaces_are_those_of_the_system(veth, closing):
    """Kernel interfaces behave as without the library."""
    plain = lines_of(closing(veth.space.start([TABLE, veth.name])), veth.burst)
    loaded = lines_of(closing(veth.space.start([RINGTAP, "run", TABLE, veth.name])), veth.burst)
    assert plain == loaded


@pytest.mark.smoke
def test_devices_are_listed(veth, app):
    """Ports are listed after the system's interfaces, which do not change."""
    other = run([*veth.space.prefix, "tcpdump", "-D"]).stdout

    def listed():
        """Other applications start and end, and the test's may have no CPU to answer in time."""
        both = run([*veth.space.prefix, RINGTAP, "run", "tcpdump", "-D"]).stdout
        assert both.startswith(other)
        names = [line.split(".", 1)[1].split()[0] for line in both.splitlines()]
        return names if f"ringtap:{app.prefix}:net_ring_a" in names else None

    names = until(listed, what="the application's port")
    assert f"ringtap:{app.prefix}" not in names, "all of one port is the port"
