# SPDX-License-Identifier: BSD-3-Clause
"""Programs that are attached to a running application from its first packet, and the packets that they counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..tools import process
from ..tools.errors import Trouble, Unavailable
from ..tools.process import Program
from .testpmd import PROGRAM as TESTPMD

if TYPE_CHECKING:
    from typing import Any

    from .lab import Lab

DUMPCAP, COUNTER = "dpdk-dumpcap", "pcap_count"
COLLECTORS = "collectors"  # the option of ringtap top, and the key in its JSON
ENHANCED_PACKET = 6  # type of a pcapng block


@dataclass
class Counts:
    """Packets while it was attached. What a tool does not count is None; seen is captured + filtered + lost."""

    captured: int
    filtered: int
    lost: int
    seconds: float | None = None  # that it was attached

    @property
    def seen(self) -> Any:
        return self.captured + self.filtered + self.lost


def packets_in(pcapng: Any) -> Any:
    """Number of Enhanced Packet Blocks in a file's bytes."""
    count = at = 0
    while at + 8 <= len(pcapng):
        kind, length = struct.unpack_from("<II", pcapng, at)
        if length < 12:
            raise RuntimeError("not a pcapng file")
        count += kind == ENHANCED_PACKET
        at += length
    return count


def on_cpu(lab: Lab, cpu: Any = None) -> list[str]:
    """Prefix of a command: it runs on this CPU (the second one)."""
    return ["taskset", "-c", str(lab.cpus[1] if cpu is None else cpu)]


def installed(lab: Lab, name: str, package: Any) -> Any:
    """Path of a program without which only some cells cannot be measured."""
    try:
        return lab.tool(name, package)
    except Trouble as e:
        raise Unavailable(str(e)) from e


class Capture(Program):
    """seconds: it captures for so long, and ends by itself; else until counts()."""

    def __init__(
        self, argv: list[str] | None, ready: Any, env: dict[str, str] | None = None, seconds: float | None = None
    ):
        super().__init__([*argv, *(["-a", f"duration:{seconds:g}"] if seconds else [])], ready, env)
        self.seconds = seconds

    def end(self) -> Any:
        """Ends it and returns its output."""
        return self.finish(end=not self.seconds)


class Record(Capture):
    """ringtap record, of all ports, or of those with these numbers. cpu: where it runs (the second CPU)."""

    def __init__(
        self,
        lab: Lab,
        app: Any,
        expression: str = "",
        direction: str = "both",
        path: str = "/dev/null",
        seconds: float | None = None,
        more: Any = (),
        ports: Any = ("",),
        cpu: int | None = None,
    ):
        filters = ["-f", expression] if expression else []
        interfaces = [a for port in ports for a in ("-i", f"{app.prefix}:{port}")]
        super().__init__(
            [
                *on_cpu(lab, cpu),
                lab.program("ringtap"),
                "record",
                "--json",
                "--direction",
                direction,
                *filters,
                *more,
                *interfaces,
                "-w",
                path,
            ],
            "Capturing on",
            seconds=seconds,
        )

    def counts(self) -> Counts:
        self.summary = summary = json.loads(self.end()[0])
        # "written" leaves out what came after the requested time.
        return Counts(
            summary["written" if self.seconds else "captured"],
            summary["filtered"],
            summary["lost_total"],
            summary["duration_ns"] * 1e-9,
        )


class WriteMode(Program):
    """bench/write_modes: what ports receive, written in another way than ringtap record does it."""

    def __init__(self, lab: Lab, app: Any, mode: Any, path: str = "/dev/null"):
        super().__init__([*on_cpu(lab), lab.built("bench/write_modes"), mode, app.prefix, path], "ready")

    def counts(self) -> Counts:
        report = json.loads(self.finish()[0])
        if report["packets"] != report["captured"]:
            raise RuntimeError(f"{self.name}: {report['captured']} packets captured, {report['packets']} handed on")
        return Counts(report["captured"], report["filtered"], report["lost"], report["seconds"])


class Counter(Program):
    """bench/pcap_count, a libpcap program, on an interface of the kernel or on a port of an application. launcher: prefix of
    the command: `ringtap run`, or what enters a network namespace."""

    def __init__(self, lab: Lab, name: str, launcher: Any, expression: str = ""):
        super().__init__([*launcher, *on_cpu(lab), lab.built(f"bench/{COUNTER}"), name, "600", expression], "ready")

    def counts(self) -> Any:
        """Counts from its output: see bench/pcap_count.c."""
        return json.loads(self.finish()[0])


class KernelPort(Program):
    """`ringtap host` on eth0 of a host: an application called app, whose port the interface is."""

    def __init__(self, lab: Lab, host: Any, driver: Any):
        self.app, self.driver = lab.unique("host"), driver
        super().__init__(
            [
                *host.prefix,
                lab.program("ringtap"),
                "host",
                "--name",
                self.app,
                "--driver",
                driver,
                "--cpus",
                lab.cpus[1],
                "eth0",
            ],
            "Ctrl-C ends it",
        )

    def __enter__(self) -> Any:
        try:
            return super().__enter__()
        except RuntimeError as e:
            if self.driver == "af_xdp" and "DPDK port" in str(e):
                raise Unavailable("the kernel or DPDK has no AF_XDP") from e
            raise


def on_port(lab: Lab, app_name: Any, port: Any, expression: str = "") -> Counter:
    """A Counter on an application's port."""
    return Counter(lab, f"ringtap:{app_name}:{port}", [lab.program("ringtap"), "run", "--"], expression)


def _preload():
    """Libraries for LD_PRELOAD with which a secondary process finds testpmd's mempools.

    A mempool names its operations by their index in a table that is filled in order of loading. testpmd is linked with some
    drivers, dpdk-dumpcap with none; the plugins come after those."""
    testpmd = shutil.which(TESTPMD, path=f"{os.environ.get('PATH', '')}:/usr/bin:/usr/local/bin")
    if not testpmd:
        raise FileNotFoundError(TESTPMD)
    driver = re.compile(r"librte_(bus|common|crypto|mempool|net)_")
    return {"LD_PRELOAD": " ".join(lib for lib in process.needed_libraries(testpmd) if driver.match(lib))}


class Dumpcap(Capture):
    """Stock dpdk-dumpcap of all ports, and always of both directions. Unbuffered, so that its first line comes at once."""

    def __init__(self, lab: Lab, app: Any, expression: str = "", path: str = "/dev/null", seconds: float | None = None):
        argv = [*on_cpu(lab), "stdbuf", "-oL", installed(lab, DUMPCAP, "dpdk-dev"), f"--file-prefix={app.prefix}", "-q"]
        filters = ["-f", expression] if expression else []
        for i in range(len(app.source.ports)):
            filters += ["-i", str(i)]
        super().__init__([*argv, *filters, "-w", path], "Capturing on", _preload(), seconds)

    def counts(self, passes: bool = True) -> Counts:
        """passes: whether its filter, if there is one, passes packets: its counters do not separate those that passed from the
        others. "received" are those copied or filtered, "dropped" those of them for which there was no room in the ring
        (or no buffer). Checked against files: they hold the difference, less what it leaves in the ring at the end."""
        found = re.findall(r"received/dropped on interface.*: (\d+)/(\d+)", "".join(self.end()))
        if not found:
            raise self.failed("did not print its counters")
        received, dropped = (sum(int(n) for n in column) for column in zip(*found))
        if not passes:
            return Counts(0, received, dropped, self.seconds)
        return Counts(max(received - dropped, 0), 0, dropped, self.seconds)


class Pdump(Program):
    """Stock dpdk-pdump of what all ports receive. It has no filters."""

    def __init__(self, lab: Lab, app: Any, path: str = "/dev/null"):
        more = [a for i in range(len(app.source.ports)) for a in ("--pdump", f"port={i},queue=*,rx-dev={path}")]
        super().__init__(
            [
                "stdbuf",
                "-oL",
                installed(lab, "dpdk-pdump", "dpdk-dev"),
                f"--file-prefix={app.prefix}",
                "-l",
                str(lab.cpus[1]),
                "--",
                *more,
            ],
            "capture for",
            _preload(),
        )
        self.app = app

    def __enter__(self) -> Any:
        super().__enter__()
        _, self.before = self.app.received()
        return self

    def counts(self) -> Counts:
        """It counts packets that it took out of the ring. The other received packets were lost."""
        _, after = self.app.received()
        found = re.findall(r"packets dequeued:\s*(\d+)", "".join(self.finish()))
        if not found:
            raise self.failed("did not print its counters")
        taken = sum(int(n) for n in found)
        return Counts(taken, 0, max(after - self.before - taken, 0))


class Top(Program):
    """ringtap top, reading five times a second. collectors: a comma list, or its default."""

    def __init__(self, lab: Lab, app: Any, collectors: Any = None, more: Any = ()):
        self.app, self.collectors = app, collectors
        chosen = [f"--{COLLECTORS}", collectors] if collectors else []
        super().__init__(
            [*on_cpu(lab), lab.program("ringtap"), "top", "--json", "--interval", "0.2s", *more, *chosen, app.prefix],
            f'"{COLLECTORS}":["',
        )

    def is_ready(self) -> Any:
        """Whether it runs with exactly the requested collectors."""
        ready = super().is_ready()
        if not ready or not self.collectors:
            return ready
        lines = [
            line for line in self.printed()[0].splitlines(keepends=True) if line.startswith("{") and line.endswith("\n")
        ]
        on = [
            a[COLLECTORS]
            for line in lines
            for a in json.loads(line)["applications"]
            if a["name"] == self.app.prefix and COLLECTORS in a
        ]
        if on and set(on[-1]) != set(self.collectors.split(",")):
            raise RuntimeError(f"other collectors than requested are on: {', '.join(sorted(on[-1]))}")
        return bool(on)


class Latency(Program):
    """ringtap latency of every packet."""

    def __init__(self, lab: Lab, app: Any):
        super().__init__(
            [*on_cpu(lab), lab.program("ringtap"), "latency", "--json", "--duration", "600s", app.prefix], "Measuring"
        )


def need_bpftrace(lab: Lab) -> None:
    installed(lab, "bpftrace", "bpftrace")
    with open(lab.probe_objects()[0], "rb") as f:
        if b"\0ringtap\0rx_burst\0" not in f.read():
            raise Unavailable("ringtap was built without USDT: apt install systemtap-sdt-dev, and build it again")


class Bpftrace(Program):
    """Counts bursts at the USDT sites of the probe: the least that a program for bpftrace can do."""

    def __init__(self, lab: Lab, app: Any):
        need_bpftrace(lab)
        mapped = Path(f"/proc/{app.process.pid}/maps").read_text()
        sites = f"usdt:{next(path for path in lab.probe_objects() if path in mapped)}:ringtap:rx_burst"
        script = f'BEGIN {{ printf("listening\\n"); }} {sites} {{ @events = count(); @packets = sum(arg3); }}'
        super().__init__(
            [*on_cpu(lab), "bpftrace", "-B", "none", "-f", "json", "-p", app.process.pid, "-e", script], "listening"
        )

    def events(self) -> tuple:
        """(events, packets in them, events lost)."""
        found = [json.loads(line) for line in self.finish()[0].splitlines() if line.startswith("{")]
        maps = {k: v for line in found if line["type"] == "map" for k, v in line["data"].items()}
        lost = sum(line["data"].get("events", 0) for line in found if line["type"] == "lost_events")
        return maps["@events"], maps["@packets"], lost


class TraceBurst(Program):
    """ringtap trace burst: bpftrace with a histogram for each queue."""

    def __init__(self, lab: Lab, app: Any):
        need_bpftrace(lab)
        super().__init__(
            [*on_cpu(lab), lab.program("ringtap"), "trace", "burst", "--json", "--duration", "600s", app.prefix],
            "Tracing",
        )

    def events(self) -> tuple:
        """(events, packets in them, events lost): maps lose none."""
        queues = json.loads(self.finish()[0])["applications"][0]["queues"]
        return sum(q["calls"] for q in queues), sum(q["packets"] for q in queues), 0
