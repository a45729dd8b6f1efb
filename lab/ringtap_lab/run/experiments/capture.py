# SPDX-License-Identifier: BSD-3-Clause
"""The cost and loss of capturing: one libpcap program, through the kernel and through ringtap."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from ...report import capture_view
from ...report.capture_view import LIBPCAP, NONE, PORT, WAYS, XDP
from .. import attached, forwarder
from ..experiment import Cell, Experiment, Measurement

if TYPE_CHECKING:
    from typing import Any

    from ..lab import Lab

RATES = (50_000, 100_000, 300_000, 450_000, 600_000, 1_000_000)
FASTER = (2_000_000, 5_000_000, 10_000_000)  # what only a DPDK port can be sent
QUICK = (100_000, 450_000, 1_000_000)
QUICK_FASTER = (5_000_000,)
ODD = 1.00071  # else the kernel's tick would meet an even rate at the same phase each time
SETTLE_S = 0.2  # between the first packet and the first reading of the CPUs' times
ATTACH_S = 2
DRAIN_S = 0.5  # libpcap hands out a block that is not full after 0.1 s


class Capture(Experiment):
    name = "capture"
    title = "Capture: libpcap as it is, and on ringtap"
    question = (
        "How many packets does a libpcap program lose, and how much of the CPUs' time passes in system "
        "mode, as the packet rate rises?"
    )
    conditions = (
        f"{attached.COUNTER} (bench/), which counts packets by pcap_loop(), is linked with the system's libpcap and runs "
        "unchanged: on a veth as it is, and under ringtap run. UDP packets of 60 bytes, 64 with the check "
        "sequence, at an even rate. On the veth, ringtap-fwd sends by a packet socket with a ring from one "
        "network namespace, the other one captures; they are addressed to a host that is not there, so that the "
        "network stack drops them at once. The DPDK port is net_null in ringtap-fwd, which sends at the "
        "same rates, in user mode: it is captured by the probe as any other application is. The sender has "
        "one CPU, all that captures has the other (with ringtap host, its thread and the program share it). "
        "System mode is what /proc/stat counts as system, irq and softirq, as a share of the time of both CPUs, "
        "so that it holds the sender's own work and the kernel's work on its CPU as well: "
        "the rest of it without a capture is a curve of its own. The kernel counts in ticks, so rates are "
        "0.07 % higher than named: else each tick met the sender at the same point of its round. "
        "Loss is what the sender sent and the program did not count."
    )
    published = capture_view.PUBLISHED
    view = capture_view
    order = 30
    length_s = 1.2, 0.6
    programs = forwarder.PROGRAM, "ringtap"
    built = (f"bench/{attached.COUNTER}",)
    tools = {"ip": "iproute2", "ethtool": "ethtool", "taskset": "util-linux"}

    def cells(self, lab: Lab) -> Any:
        rates, faster = (QUICK, QUICK_FASTER) if lab.quick else (RATES, FASTER)
        seconds = self.length(lab) + 3
        return [
            Cell(f"{way}-{rate // 1000}k", {"way": way, "rate": rate}, seconds)
            for way in WAYS
            for rate in rates + (faster if way == PORT else ())
        ]

    def run(self, lab: Lab, cell: Any, repetition: int) -> Any:
        way, rate = cell.params["way"], cell.params["rate"]
        if way == PORT:
            return attached_in_time(lab, rate)
        with contextlib.ExitStack() as stack:
            hosts = stack.enter_context(lab.hosts())
            sender = forwarder.End(hosts[0].prefix, ["--plane", "packet-mmap"], "eth0", lab.cpus[0])
            if way == NONE:
                return send(lab, sender, rate, None)
            if way == LIBPCAP:
                counter = attached.Counter(lab, "eth0", hosts[1].prefix)
            else:
                driver = "af_xdp" if way == XDP else "af_packet"
                port = stack.enter_context(attached.KernelPort(lab, hosts[1], driver))
                counter = attached.on_port(lab, port.app, "eth0")
            return send(lab, sender, rate, stack.enter_context(counter))


def system_times(cpus: list[int]) -> tuple:
    """Ticks of these CPUs: (in system mode, in all)."""
    busy = total = 0
    with open("/proc/stat", encoding="ascii") as f:
        for line in f:
            name, *fields = line.split()
            if name in [f"cpu{c}" for c in cpus]:
                ticks = [int(x) for x in fields[:8]]
                busy += ticks[2] + ticks[5] + ticks[6]  # system, irq, softirq
                total += sum(ticks)
    return busy, total


def share(before: Any, after: Any) -> Any:
    return (after[0] - before[0]) / max(after[1] - before[1], 1)


def watch(lab: Lab) -> dict:
    """Shares of system mode while it sends, of both CPUs and of each."""
    time.sleep(SETTLE_S)
    sets = {"system": lab.cpus[:2], "system_sender": lab.cpus[:1], "system_capture": lab.cpus[1:2]}
    before = {k: system_times(v) for k, v in sets.items()}
    time.sleep(EXPERIMENT.length(lab))
    return {k: share(before[k], system_times(v)) for k, v in sets.items()}


def result(report: Any, seconds: float, shares: Any, counts: Any) -> Any:
    sent = report.role("generate")["total"]["tx_packets"]
    values = {"pps": sent / seconds, **shares, "sent": sent}
    if counts:
        values |= {
            "loss": (sent - counts["packets"]) / sent,
            "counted": counts["packets"],
            "dropped": counts["dropped"],
            "ifdropped": counts["ifdropped"],
            "user_s": counts["user"],
            "system_s": counts["system"],
        }
    return Measurement(values)


TRAFFIC = ["--frame", "udp", "--sizes", "60"]


def send(lab: Lab, sender: Any, rate: Any, counter: Any) -> Any:
    with forwarder.Forwarder(lab, sender, "generate", [*TRAFFIC, "--rate", str(round(rate * ODD))]) as it:
        shares = watch(lab)
        report = it.report()
    time.sleep(DRAIN_S)
    return result(report, report.data["duration_s"], shares, counter.counts() if counter else None)


class Late(RuntimeError):
    """The program was not ready when the sender began."""


def attached_in_time(lab: Lab, rate: Any) -> Any:
    """Other programs may delay the start for longer than it usually takes."""
    try:
        return through_port(lab, rate, ATTACH_S)
    except Late:
        return through_port(lab, rate, 4 * ATTACH_S)


def through_port(lab: Lab, rate: Any, attach_s: Any) -> Any:
    """The sender is the application that is captured: it pauses until its probe has a reader, and again
    until that is done."""
    sending_s = EXPERIMENT.length(lab) + 2 * SETTLE_S
    end = forwarder.End([], ["--vdev", "net_null0", "--no-huge"], "net_null0", lab.cpus[0])
    it = forwarder.Forwarder(
        lab,
        end,
        "generate",
        [*TRAFFIC, "--stages", f"0:{attach_s}s,{round(rate * ODD)}:{round(sending_s * 1000)}ms,0:60s"],
    )
    with it:
        begin = time.monotonic()
        with attached.on_port(lab, it.prefix, "net_null0") as counter:
            left_s = begin + attach_s - time.monotonic()
            if left_s < 0:
                raise Late(f"{counter.name} was not ready within {attach_s} s")
            time.sleep(left_s)
            shares = watch(lab)
            time.sleep(SETTLE_S + DRAIN_S)
            counts = counter.counts()
        return result(it.report(), sending_s, shares, counts)


EXPERIMENT = Capture()
