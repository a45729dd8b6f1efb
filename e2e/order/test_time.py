# SPDX-License-Identifier: BSD-3-Clause
"""Times in the file are those of CLOCK_REALTIME. Simulated days and clock steps: unit tests of
clock.c."""

import time

from harness import pcap, pcapng

MS = 1_000_000  # ns


def test_within_a_millisecond_of_the_wall_clock(play, record):
    """The application calls clock_gettime() before and after each burst."""
    app = play()
    app.ring("a")
    recorder = record(app)
    brackets = []
    end = time.monotonic() + 3  # long enough for the clock to be corrected several times
    while time.monotonic() < end:
        for direction in ("rx", "tx"):
            _, before, after = app.burst(direction, n=1)
            brackets.append((before, after))
    recorder.finish()
    packets = recorder.file().packets
    assert len(packets) == len(brackets)
    # A thread may be preempted between the clock and the burst: the interval is then longer, but
    # correct.
    off = [max(before - p.ns, p.ns - after, 0) for p, (before, after) in zip(packets, brackets)]
    assert max(off) < MS, f"{max(off)} ns outside of what the wall clock said"


def test_kernel_and_capture_agree(testpmd, record, net, closing, tmp_path):
    """The same frames with times of the kernel on arrival at one port and after the other, and with
    times of the probe in between."""
    hosts = [net.add_host(f"10.98.0.{i}") for i in (1, 2)]
    pmd = testpmd(*(f"net_af_packet{i},iface={port}" for i, (_, port) in enumerate(hosts)), namespace=net.hub)
    pmd.start()
    kernels = []
    for place, device, name in ((net.hub, hosts[0][1], "before"), (hosts[1][0], "eth0", "behind")):
        kernels.append(
            closing(
                place.start(
                    [
                        "tcpdump",
                        "-i",
                        device,
                        "-Q",
                        "in",
                        "-w",
                        tmp_path / f"{name}.pcap",
                        "--time-stamp-precision=nano",
                        "-U",
                        "-c",
                        "20",
                        "icmp",
                    ]
                )
            )
        )
        kernels[-1].expect("listening on")
    recorder = record(pmd, "--direction", "rx", "-f", "icmp", ports=["net_af_packet0"])
    hosts[0][0].check(["ping", "-q", "-c", "20", "-i", "0.01", "10.98.0.2"])
    assert [kernel.wait() for kernel in kernels] == [0, 0]
    recorder.finish()
    before, behind = (
        {data: ns for ns, data, _ in pcap.read(tmp_path / f"{name}.pcap")} for name in ("before", "behind")
    )
    ours = {p.data: p.ns for p in recorder.file().packets}
    assert len(ours) == 20 and ours.keys() == before.keys() == behind.keys()
    for data, ns in ours.items():
        assert before[data] - MS < ns < behind[data] + MS, (before[data], ns, behind[data])


def test_time_stamps_of_the_nic(testpmd, record, tmp_path):
    """net_pcap sets the times of its file on received packets; sent packets have none, so the
    probe's time is used."""
    path = pcap.write(tmp_path / "p.pcap", [pcap.frame(64, i) for i in range(500)])
    stamps = [ns for ns, _data, _length in pcap.read(path)]
    pmd = testpmd(f"net_pcap0,rx_pcap={path},tx_pcap=/dev/null", args=["--no-flush-rx"])
    recorder = record(pmd, "--timestamp", "nic", "--on-full", "wait", "-c", 1000)
    started = time.time_ns()
    pmd.start()
    recorder.done()
    pmd.stop()
    packets = recorder.file().packets
    assert [p.ns for p in packets if p.direction == pcapng.RX] == stamps
    sent = [p.ns for p in packets if p.direction == pcapng.TX]
    assert len(sent) == 500 and started - MS <= min(sent) and max(sent) <= time.time_ns() + MS
