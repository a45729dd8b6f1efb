# SPDX-License-Identifier: BSD-3-Clause
"""Programs that look into a running application from its first packet until they are told to end, and
what they say they got."""
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
from dataclasses import dataclass

from ..tools import process
from ..tools.errors import Trouble, Unavailable
from . import capture

READY_S = 30
END_S = 60
ENHANCED_PACKET = 6  # type of a pcapng block


@dataclass
class Counts:
    """Packets while it was attached. What a tool does not say is None; seen is captured + filtered +
    lost."""

    captured: int
    filtered: int
    lost: int
    seconds: float | None = None  # that it was attached

    @property
    def seen(self):
        return self.captured + self.filtered + self.lost


class Tool:
    """argv ends on SIGINT. ready: what it prints when it is at work; what the context waits for."""

    def __init__(self, argv, ready, env=None):
        self.argv, self.ready, self.env = [str(a) for a in argv], ready.encode(), env
        self.name = os.path.basename(next(a for a in self.argv if "/" in a or a.startswith("dpdk")))
        self.process = None

    def __enter__(self):
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        self.process = process.start(self.argv, self.env, stdin=subprocess.DEVNULL,
                                     stdout=self.files[0], stderr=self.files[1])
        try:
            process.wait_for(self._works, READY_S, f"{self.name} to begin")
        except BaseException:
            self.__exit__()
            raise
        return self

    def said(self):
        """(stdout, stderr) so far. Read at offsets: ours would be where it writes next."""
        return tuple(os.pread(f.fileno(), os.fstat(f.fileno()).st_size, 0).decode(errors="replace")
                     for f in self.files)

    def _works(self):
        if self.process.poll() is not None:
            raise self._failed("ended at once")
        return any(self.ready in text.encode() for text in self.said())

    def _failed(self, how):
        last = [line for text in self.said() for line in text.strip().splitlines()[-3:]]
        return RuntimeError(f"{self.name} {how}: {' | '.join(last) or 'it said nothing'}")

    def finish(self):
        """Ends it: (stdout, stderr)."""
        if self.process.poll() is not None:
            raise self._failed("ended by itself")
        self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise self._failed("did not end") from None
        if status != 0:
            raise self._failed(f"ended with status {status}")
        return self.said()

    def __exit__(self, *_):
        process.stop(self.process, signal.SIGINT)
        for f in self.files:
            f.close()


def packets_in(pcapng):
    """How many Enhanced Packet Blocks there are in a file's bytes."""
    count = at = 0
    while at + 8 <= len(pcapng):
        kind, length = struct.unpack_from("<II", pcapng, at)
        if length < 12:
            raise RuntimeError("not a pcapng file")
        count += kind == ENHANCED_PACKET
        at += length
    return count


def on_cpu(lab):
    """What stands before the command of whatever reads."""
    return ["taskset", "-c", str(lab.cpus[1])]


class Record(Tool):
    """ringtap record of all ports."""

    def __init__(self, lab, app, expression="", direction="both", path="/dev/null"):
        more = ["-f", expression] if expression else []
        super().__init__([*on_cpu(lab), lab.program("ringtap"), "record", "--json", "--direction", direction,
                          *more, "-i", f"{app.prefix}:", "-w", path], "Capturing on")

    def counts(self):
        summary = json.loads(self.finish()[0])
        return Counts(summary["captured"], summary["filtered"], summary["lost_total"], summary["duration_s"])


class WriteMode(Tool):
    """bench/write_modes: what ports receive, written otherwise than ringtap record does it."""

    def __init__(self, lab, app, mode, path="/dev/null"):
        super().__init__([*on_cpu(lab), lab.built("bench/write_modes"), mode, app.prefix, path], "ready")

    def counts(self):
        said = json.loads(self.finish()[0])
        if said["packets"] != said["captured"]:
            raise RuntimeError(f"{self.name}: {said['captured']} packets captured, {said['packets']} handed on")
        return Counts(said["captured"], said["filtered"], said["lost"], said["seconds"])


def installed(lab, name, package):
    """Path of a program without which only some cells cannot be measured."""
    try:
        return lab.tool(name, package)
    except Trouble as e:
        raise Unavailable(str(e)) from e


def secondary(lab, name):
    """(command, environment) of a DPDK tool that attaches to testpmd. It prints each line at once, and
    sees mempools as testpmd does."""
    found = installed(lab, name, "dpdk-dev")
    return ["stdbuf", "-oL", found], {"LD_PRELOAD": " ".join(capture.dumpcap_preload())}


class Dumpcap(Tool):
    """Stock dpdk-dumpcap of all ports. It takes both directions: there is no choice."""

    def __init__(self, lab, app, expression="", path="/dev/null"):
        argv, env = secondary(lab, capture.DUMPCAP)
        more = ["-f", expression] if expression else []
        for i in range(len(app.source.ports)):
            more += ["-i", str(i)]
        super().__init__([*on_cpu(lab), *argv, f"--file-prefix={app.prefix}", "-q", *more, "-w", path],
                         "Capturing on", env)

    def counts(self, passes=True):
        """passes: whether its filter, if there is one, passes packets; it does not tell those that passed
        from the others. What it calls received are those copied or filtered, dropped those of them for
        which the ring had no room (and those for which there was no buffer, which it does not tell apart)."""
        found = re.findall(r"received/dropped on interface.*: (\d+)/(\d+)", "".join(self.finish()))
        if not found:
            raise self._failed("did not say what it got")
        received, dropped = (sum(int(n) for n in column) for column in zip(*found))
        if not passes:
            return Counts(0, received, dropped)
        return Counts(max(received - dropped, 0), 0, dropped)


class Pdump(Tool):
    """Stock dpdk-pdump of what all ports receive. It has no filters."""

    def __init__(self, lab, app, path="/dev/null"):
        argv, env = secondary(lab, "dpdk-pdump")
        more = [a for i in range(len(app.source.ports))
                for a in ("--pdump", f"port={i},queue=*,rx-dev={path}")]
        super().__init__([*argv, f"--file-prefix={app.prefix}", "-l", str(lab.cpus[1]), "--", *more],
                         "capture for", env)
        self.app = app

    def __enter__(self):
        super().__enter__()
        _, self.before = self.app.received()
        return self

    def counts(self):
        """It tells what it took out of the ring. The rest, to what the ports received, was lost."""
        _, after = self.app.received()
        found = re.findall(r"packets dequeued:\s*(\d+)", "".join(self.finish()))
        if not found:
            raise self._failed("did not say what it got")
        taken = sum(int(n) for n in found)
        return Counts(taken, 0, max(after - self.before - taken, 0))


class Top(Tool):
    """ringtap top, reading five times a second. instruments: a comma list, or its own choice."""

    def __init__(self, lab, app, instruments=None):
        more = ["--instruments", instruments] if instruments else []
        super().__init__([*on_cpu(lab), lab.program("ringtap"), "top", "--json", "--interval", "0.2", *more,
                          app.prefix], '"instruments":["')


class Latency(Tool):
    """ringtap latency of every packet."""

    def __init__(self, lab, app):
        super().__init__([*on_cpu(lab), lab.program("ringtap"), "latency", "--json", "--duration", "600",
                          app.prefix], "Measuring")


def need_bpftrace(lab):
    installed(lab, "bpftrace", "bpftrace")
    with open(lab.probe_object(), "rb") as f:
        if b"\0ringtap\0rx_burst\0" not in f.read():
            raise Unavailable("ringtap was built without USDT: apt install systemtap-sdt-dev, and build it again")


class Bpftrace(Tool):
    """Counts bursts, by the USDT sites of the probe in the application: the least that a program for it
    can do."""

    def __init__(self, lab, app):
        need_bpftrace(lab)
        sites = f"usdt:{lab.probe_object()}:ringtap:rx_burst"
        program = f'BEGIN {{ printf("listening\\n"); }} {sites} {{ @events = count(); @packets = sum(arg3); }}'
        super().__init__([*on_cpu(lab), "bpftrace", "-B", "none", "-f", "json",
                          "-p", app.process.pid, "-e", program], "listening")

    def events(self):
        """(events, packets in them, events lost)."""
        found = [json.loads(line) for line in self.finish()[0].splitlines() if line.startswith("{")]
        maps = {k: v for told in found if told["type"] == "map" for k, v in told["data"].items()}
        lost = sum(told["data"].get("events", 0) for told in found if told["type"] == "lost_events")
        return maps["@events"], maps["@packets"], lost


class TraceBurst(Tool):
    """ringtap trace burst: bpftrace with a histogram for each queue."""

    def __init__(self, lab, app):
        need_bpftrace(lab)
        super().__init__([*on_cpu(lab), lab.program("ringtap"), "trace", "burst", "--json", "--duration", "600",
                          app.prefix], "Tracing")

    def events(self):
        """(events, packets in them, events lost): maps lose none."""
        queues = json.loads(self.finish()[0])["queues"]
        return sum(q["calls"] for q in queues), sum(q["packets"] for q in queues), 0
