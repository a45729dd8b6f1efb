# SPDX-License-Identifier: BSD-3-Clause
"""How long a packet takes through a forwarder, and there and back: DPDK against packet sockets."""

from __future__ import annotations

import argparse
import contextlib
import socket
import time
from typing import TYPE_CHECKING

from ...report import latency_view
from ...report.latency_view import ROUND_TRIP, TESTS, WITHIN, planes
from ...tools import clock, process
from ...tools.errors import Unavailable
from .. import forwarder
from ..experiment import Cell, Experiment, Measurement

if TYPE_CHECKING:
    from typing import Any

    from ..forwarder import End
    from ..lab import Lab

WIRE_BITS = (64 + 20) * 8  # bits of the shortest frame, with preamble and gap
WINDOW = 64  # packets on their way in test 1: bursts can form, and no buffer overflows
ATTEMPTS = 3
RUN_S = 4.0  # each, on average of a cell: five minutes are not to be exceeded
BUDGET_S = 240  # time of the whole experiment, beyond which nothing is tried again
HUGE_MB = 2 * 84 + 24  # memory of two DPDK processes with the pool of ringtap-fwd's default, and some to spare
DRIVERS = ("af_packet", "af_xdp", "memif")  # not in every build of DPDK
NO_DRIVER = "failed to parse device"  # EAL's message
PACKET, XDP = ("AF_PACKET", 17), ("AF_XDP", 44)  # numbers of <bits/socket.h>
SOCKETS = {"packet": PACKET, "mmap": PACKET, "af_packet": PACKET, "af_xdp": XDP}  # that a plane uses
NO_VETH = ("Unknown device type", "Operation not supported")  # messages of ip


class Lost(RuntimeError):
    """Too few packets arrived, as when other programs delay one end for longer than the other one waits."""


class Latency(Experiment):
    name = "latency"
    title = "Latency: DPDK against the kernel"
    question = (
        "How many cycles does a packet take from being received to being sent within a forwarder (test "
        "1), and how many until it is back at the sender (test 2)?"
    )
    conditions = (
        "Two hosts: network namespaces joined by a veth pair; net_memif joins two DPDK processes without the "
        "kernel; net_ring is one process that only passes pointers, as a bound for test 1. ARP requests "
        "of 60 bytes (64 with the check sequence); one host sends them, the other one "
        f"sends them back. In test 1 {WINDOW} packets are on their way, and cycles are those of receiving "
        "and sending a burst, divided by its packets; in test 2 they go one at a time. 10^6 packets in each "
        "cell, 5 runs of 200,000; fewer in the later runs of a cell that takes more than 4 s for that (see the table); "
        "of TPACKET_V3 a hundredth in test 2, where it waits a "
        "millisecond for a block to fill. One CPU for each host. Cycles are ticks of the TSC."
    )
    published = latency_view.PUBLISHED
    view = latency_view
    order = 10
    programs = (forwarder.PROGRAM,)
    tools = {"ip": "iproute2", "ethtool": "ethtool"}
    huge_mb = HUGE_MB
    _took = {}  # runs, seconds, packets by cell, of this program's run
    quick_repetitions = 2

    def add_options(self, group: Any) -> None:
        group.add_argument(
            "--latency-packets", type=packets, metavar="N", help="packets in each run (200000; with --quick 20000)"
        )

    def prepare(self, lab: Lab) -> dict:
        """Nothing is measured; but the user learns at once what cycles are worth."""
        for warning in clock.warnings(clock.describe()):
            lab.log(f"warning: {warning}")
        return {}

    def cells(self, lab: Lab) -> Any:
        seconds = 1.5 if lab.quick else RUN_S
        return [
            Cell(f"{test}-{plane}", {"test": test, "plane": plane}, seconds) for test in TESTS for plane in planes(test)
        ]

    def run(self, lab: Lab, cell: Cell, repetition: int) -> Any:
        count = lab.o.latency_packets or (20000 if lab.quick else 200000)
        if cell.key == f"{ROUND_TRIP}-mmap":
            count = max(count // 100, 1)  # each takes a millisecond or more
        begin = time.monotonic()
        count = max(1, round(count * self._share(cell, count, lab.repetitions)))
        try:
            return self._attempts(lab, cell, count)
        finally:
            runs, seconds, packets = self._took.get(cell.key, (0, 0.0, 0))
            self._took[cell.key] = runs + 1, seconds + time.monotonic() - begin, packets + count

    def _share(self, cell: Cell, count: int, repetitions: int):
        """The share of the packets for which the rest of the cell's time suffices, as far as is known."""
        runs, seconds, sent = self._took.get(cell.key, (0, 0.0, 0))
        if not runs or seconds <= runs * RUN_S:
            return 1.0
        left = max(RUN_S * repetitions - seconds, RUN_S / 2) / max(repetitions - runs, 1)
        return min(1.0, left / (seconds / sent * count))

    def _attempts(self, lab: Lab, cell: Cell, count: int):
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return _run(lab, cell.params["test"], cell.params["plane"], count)
            except (Lost, process.Hung):
                if attempt == ATTEMPTS or lab.spare_s(BUDGET_S) < RUN_S:
                    raise
            except RuntimeError as e:
                if cell.params["plane"] in DRIVERS and NO_DRIVER in str(e):
                    raise Unavailable(str(e)) from e
                raise


def _need_socket(plane: str):
    """Raises Unavailable if the kernel was built without what the plane needs."""
    if plane not in SOCKETS:
        return
    name, family = SOCKETS[plane]
    try:
        socket.socket(family, socket.SOCK_RAW).close()
    except OSError as e:
        raise Unavailable(f"the kernel has no {name} sockets: {e.strerror}") from e


@contextlib.contextmanager
def _hosts(lab: Lab):
    with contextlib.ExitStack() as stack:
        try:
            hosts = stack.enter_context(lab.hosts())
        except RuntimeError as e:
            if any(text in str(e) for text in NO_VETH):
                raise Unavailable(f"the kernel has no pairs of veth: {e}") from e
            raise
        yield hosts


def _run(lab: Lab, test: str, plane: str, count: int):
    if plane == "ring":
        return _one_process(lab, count)
    if plane == "memif":
        return measure(lab, forwarder.memif_pair(lab), test, count, linger=True)
    _need_socket(plane)
    with _hosts(lab) as hosts:
        return measure(lab, forwarder.veth_ends(lab, hosts, plane), test, count)


def packets(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 10**9:
        raise argparse.ArgumentTypeError("from 1 to 10^9")
    return value


def measure(lab: Lab, ends: list[End], test: Any, count: int, linger: bool = False) -> Measurement:
    """ends: of the echo and of the generator. linger: the echo stops before its peer ends, and stays for a second: net_memif
    crashes where a link that is taken down is polled."""
    echo, generator = ends
    window = WINDOW if test == WITHIN else 1
    more = ["--packets", str(count), "--linger", "1s"] if linger else []
    with forwarder.Forwarder(lab, echo, "echo", ["--latency-sample", "1", *more]) as there:
        here = forwarder.run(
            lab,
            generator,
            "generate",
            ["--frame", "arp", "--rate", "max", "--packets", str(count), "--rtt", "--outstanding", str(window)],
        )
        other = there.report(end=not linger)
    sender = here.role("generate")
    back = sender["round_trip"]
    lost = _lost(count, back["packets"])
    values = _values(back) if test == ROUND_TRIP else _values(other.role("echo")["time_per_packet"])
    return Measurement(
        values
        | {
            "lost": lost,
            "disturbed": max(here.disturbed(), other.disturbed()),
            "per_burst": other.role("echo")["total"]["rx_packets_per_busy_call"],
        }
    )


def _one_process(lab: Lab, count: int):
    a, b = lab.cpus[:2]
    report = forwarder.run_argv(
        [
            lab.program(forwarder.PROGRAM),
            "--json",
            "--name",
            lab.unique("fwd"),
            "--ring",
            "in",
            "--ring",
            "out",
            "--role",
            f"generate:in@{a}",
            "--role",
            f"oneway:in,out@{b}",
            "--role",
            f"sink:out@{a}",
            "--frame",
            "arp",
            "--rate",
            "max",
            "--packets",
            str(count),
            "--tx-full",
            "retry",
            "--latency-sample",
            "1",
        ],
        120,
    )
    forward = report.role("oneway")
    lost = _lost(count, report.role("sink")["total"]["rx_packets"])
    return Measurement(
        _values(forward["time_per_packet"])
        | {"lost": lost, "disturbed": report.disturbed(), "per_burst": forward["total"]["rx_packets_per_busy_call"]}
    )


def _lost(sent: int, came: Any):
    if came < sent * 0.99:
        raise Lost(f"{sent - came} of {sent} packets did not arrive: the run was too disturbed")
    return sent - came


def _values(found: Any):
    """found: a histogram of the report."""
    values = {f"{unit}_{k}": found[unit][k] for unit in ("cycles", "ns") for k in ("mean", "p50", "p99", "max")}
    pps = 1e9 / values["ns_p50"] if values["ns_p50"] else 0.0
    return values | {
        "projected_mean_pps": 1e9 / values["ns_mean"],
        "projected_pps": pps,
        "projected_gbps": pps * WIRE_BITS / 1e9,
        "packets": found["packets"],
    }


EXPERIMENT = Latency()
