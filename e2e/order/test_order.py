# SPDX-License-Identifier: BSD-3-Clause
"""One file, many polling threads: times never decrease, and a cause is before its effect."""

import pytest
from harness import pcap, pcapng

QUEUES = 2
FRAMES = 8000
PACKETS = 1_200_000  # at full rate, tens of milliseconds: several time slices
CROSSED = "(0-3)@(0,1)"  # four lcores on two CPUs: they preempt each other during bursts


@pytest.fixture
def unique_frames(tmp_path):
    """A file for each port and queue; no frame occurs twice."""
    paths = {}
    for port in (0, 1):
        for queue in range(QUEUES):
            first = (port * QUEUES + queue) * FRAMES
            paths[port, queue] = pcap.write(
                tmp_path / f"p{port}q{queue}.pcap", [pcap.frame(60 + i % 200, first + i) for i in range(FRAMES)]
            )
    return paths


@pytest.mark.smoke
def test_rx_is_before_tx_and_time_never_decreases(testpmd, record, unique_frames):
    vdevs = []
    for port in (0, 1):
        files = ",".join(f"rx_pcap={unique_frames[port, q]}" for q in range(QUEUES))
        sinks = ",".join(["tx_pcap=/dev/null"] * QUEUES)
        vdevs.append(f"net_pcap{port},{files},{sinks}")
    pmd = testpmd(*vdevs, lcores=CROSSED, args=["--no-flush-rx", "--nb-cores=3", f"--rxq={QUEUES}", f"--txq={QUEUES}"])
    recorder = record(pmd, "--on-full", "wait", "-c", str(2 * 2 * QUEUES * FRAMES))
    pmd.start()
    recorder.done()
    pmd.stop()
    file = recorder.file()
    pcapng.assert_in_order(file)
    received = {}
    for i, p in enumerate(file.packets):
        if p.direction == pcapng.RX:
            assert p.data not in received, f"packet {i} came in twice"
            received[p.data] = (i, p.interface)
        else:
            assert p.data in received, f"packet {i} went out before it came in"
            assert received[p.data][1] != p.interface, "io forwarding sends out of the other port"
    assert len(received) == 2 * QUEUES * FRAMES


@pytest.mark.slow
def test_order_at_full_rate(testpmd, record):
    """Packets that circulate in net_ring at the maximum rate, with losses."""
    pmd = testpmd("net_ring0", "net_ring1", lcores=CROSSED, args=["--nb-cores=3", f"--rxq={QUEUES}", f"--txq={QUEUES}"])
    recorder = record(pmd, "-c", str(PACKETS), "-s", "64", attach=False)
    pmd.start("start tx_first 4")
    recorder.attached().done()
    pmd.stop()
    file = recorder.file()
    assert len(file.packets) == PACKETS
    pcapng.assert_in_order(file)
    # Four streams on three lcores on two CPUs: a thread may have no CPU in such a short time.
    assert len({(p.interface, p.direction) for p in file.packets}) >= 2


def test_two_applications_in_one_file(play, record, closing, tmp_path):
    """Interfaces of both, merged by time; alternately sent bursts are in order."""
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
    recorder = record(apps[0], "-i", f"{apps[1].prefix}:", "-c", "400")
    for i in range(200):
        for app in apps:
            app.rx(n=1, seq=i)
    recorder.done()
    file = recorder.file()
    pcapng.assert_in_order(file)
    assert [p.interface for p in file.packets] == [0, 1] * 200
    assert [p.data for p in file.packets] == [pcap.frame(64, i // 2) for i in range(400)]
