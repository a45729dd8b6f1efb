# SPDX-License-Identifier: BSD-3-Clause
"""`make bench ONLY=flows`: what counting flows costs an application and takes of a CPU, by the sample and the number of flows,
beside other programs on `ringtap run`; the table alone (bench/ledger_bench); and a reader that counts (bench/merge_bench)."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ..tools import process
from . import attached
from .libpcap import FromFile
from .testpmd import TestPmd

if TYPE_CHECKING:
    from typing import Any

SIZE = 64
FLOWS = [10, 10_000]  # net_pcap keeps each frame in an mbuf: more would need more memory than testpmd has
READER_FLOWS = [10, 10_000, 100_000, 1_000_000]
NOTHING = "nothing attached"
SAMPLES = {"ringtap flows, all packets": 1, "ringtap flows, 1 of 16": 16, "ringtap flows, 1 of 1024": 1024}
SETTLE_S = 0.5


def write_frames(path: str, flows: int) -> None:
    """A packet of each flow, in turn."""
    head = bytes(
        Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02") / IP(dst="198.18.0.1") / UDP(sport=9, dport=53)
    )
    frames = [head[:26] + bytes([10, n >> 16, n >> 8 & 255, n & 255]) + head[30:] for n in range(flows)]
    wrpcap(str(path), [Ether(frame.ljust(SIZE, b"\0")) for frame in frames])


def readers(bench: Any, app: Any, folder: str) -> dict:
    """{label: (command, what it prints once it reads)}"""
    ringtap, port = bench.lab.program("ringtap"), app.source.ports[0]
    name = f"ringtap:{app.prefix}:{port}"
    run = [ringtap, "run", "--"]
    found = {
        label: ([ringtap, "flows", app.prefix, "--sample", str(sample)], "Measuring")
        for label, sample in SAMPLES.items()
    }
    found["iftop"] = ([*run, "iftop", "-t", "-n", "-N", "-i", name], "=====")
    found["pmacctd"] = (
        [*run, "pmacctd", "-i", name, "-P", "print", "-r", "1", "-c", "src_host,dst_host,src_port,dst_port,proto"],
        "SRC_IP",
    )
    found["softflowd"] = (
        [*run, "softflowd", "-d", "-i", f"1:{name}", "-c", f"{folder}/softflowd.ctl", "-n", "127.0.0.1:9"],
        "softflowd",
    )
    return found


def _with_reader(bench: Any, app: Any, argv: list[str], ready: str):
    """(rate of the application's own time, part of a CPU that the reader takes)."""
    with process.Program([*attached.on_cpu(bench.lab), *argv], ready) as reader:
        time.sleep(SETTLE_S)
        before = process.cpu_times(reader.process.pid)
        rate = app.rate_of_own_time(bench.o.seconds)
        after = process.cpu_times(reader.process.pid)
    if not before or not after:
        raise RuntimeError("it has ended")
    return rate, (after[1] - before[1]) / (after[0] - before[0])


def _application(bench: Any, flows: int):
    folder = bench.lab.folder()
    path = os.path.join(folder, "flows.pcap")
    write_frames(path, flows)
    app = TestPmd(FromFile(path), bench.o.cpus, bench.o.huge, str(bench.plugin))
    try:
        for label, (argv, ready) in readers(bench, app, folder).items():
            without = app.rate_of_own_time(bench.o.seconds / 2)
            bench.store.add(without, "flows", flows, SIZE, NOTHING)
            try:
                rate, cpu = _with_reader(bench, app, argv, ready)
            except (RuntimeError, OSError) as e:
                bench.store.error(f"{label}, {flows} flows", e)
                continue
            bench.store.add(rate, "flows", flows, SIZE, label)
            bench.store.add(1 / rate - 1 / without, "flows_seconds", flows, SIZE, label)
            bench.store.add(cpu, "flows_cpu", flows, SIZE, label)
            print(f"{label}, {flows} flows: {rate / 1e6:.1f} of {without / 1e6:.1f} Mpps, {cpu:.2f} CPUs", flush=True)
    finally:
        app.stop()


def _add_table(bench: Any, line: Any):
    ids = "with ids" if line["ids"] else "without ids"
    bench.store.add(line["ns_least"] * 1e-9, "ledger", line["flows"], SIZE, ids)
    for what in ("top", "text", "json"):
        bench.store.add(line[f"{what}_ms"] * 1e-3, f"ledger_{what}", line["flows"], SIZE, ids)


def _add_reader(bench: Any, line: Any):
    bench.store.add(line["mpps_median"] * 1e6, "flow_reader", line["flows"])


def measure(bench: Any, _repetition: int) -> None:
    bench.own("flows", "ledger_bench", [], lambda line: _add_table(bench, line), attached.on_cpu(bench.lab))
    for flows in READER_FLOWS:
        argv = ["-r", 1, "-l", 60, "-f", flows]
        bench.own("flows", "merge_bench", argv, lambda line: _add_reader(bench, line), attached.on_cpu(bench.lab))
    for flows in FLOWS:
        bench.try_to(f"{flows} flows", lambda n=flows: _application(bench, n))
