# SPDX-License-Identifier: BSD-3-Clause
"""The cost of keeping packets beside that of recording, and the rate of writing an incident with all kept packets to tmpfs."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import time
from typing import TYPE_CHECKING

from ..tools import process
from . import attached, forwarder
from .aims_cells import Named, need_rate, testpmd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .lab import Lab

KEEP_MIB = 1024
FULL_S = 120  # until the memory is in use, at any rate of these cells
INCIDENT_S = 60
LOOK_S = 0.5
MARGIN_S = 2  # margin of a span, for whole seconds within it
TICKS = os.sysconf("SC_CLK_TCK")


class Flight(process.Program):
    """ringtap flight, on the second CPU."""

    def __init__(self, lab: Lab, app: Any):
        self.folder = pathlib.Path(lab.folder()) / lab.unique("incidents")
        super().__init__(
            [
                *attached.on_cpu(lab),
                lab.program("ringtap"),
                "flight",
                app.prefix,
                "-w",
                self.folder,
                "--buffer",
                f"{KEEP_MIB}M",
                "--before",
                "1000s",
                "--after",
                "0s",
                "--on",
                "exit",
            ],
            "Keeping the packets of",
        )
        self.top = [lab.program("ringtap"), "flight", "top", "--once", app.prefix, "--json"]

    def __exit__(self, *args) -> None:
        super().__exit__(*args)
        shutil.rmtree(self.folder, ignore_errors=True)

    def state(self) -> Any:
        status, out, err = process.run(self.top)
        if status != 0:
            raise RuntimeError(f"flight top ended with status {status}: {err.strip()}")
        return json.loads(out)["applications"][0]["recorders"][0]

    def cpu_s(self) -> float:
        """CPU seconds of all its threads."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def full(self) -> Any:
        """Its state, when it has begun to let packets go."""
        found, end = self.state(), time.monotonic() + FULL_S
        while time.monotonic() < end:
            time.sleep(LOOK_S)
            before, found = found, self.state()
            if found["kept_ns"] - before["kept_ns"] < LOOK_S / 2 * 1e9:
                return found
        raise RuntimeError(f"its memory is not in use after {FULL_S} s")

    def incident(self) -> Any:
        """All that is kept, written."""
        self.process.send_signal(signal.SIGUSR1)
        path = process.wait_for(lambda: next(self.folder.glob("*/incident.json"), None), INCIDENT_S, "the incident")
        return json.loads(path.read_text(encoding="utf-8"))


def _kept(flight: Any, seconds: float, rate: Any):
    """rate(seconds): the application's, over so long."""
    state = flight.full()
    cpu, begin = flight.cpu_s(), time.monotonic()
    pps = rate(seconds)
    share = (flight.cpu_s() - cpu) / (time.monotonic() - begin)
    i = flight.incident()
    took = (i["written_after_ns"] - i["first_byte_after_ns"]) * 1e-9
    packets, size = i["packets"], next(flight.folder.glob("*/packets.pcapng")).stat().st_size
    return {
        "attached_pps": pps,
        "cpu_share": share,
        "kept_s": state["kept_ns"] * 1e-9 * 1024 / KEEP_MIB,
        "first_byte_s": i["first_byte_after_ns"] * 1e-9,
        "finished_s": i["written_after_ns"] * 1e-9,
        "written_bps": size / took,
        "incident_packets": packets,
        "lost": i["lost"] if isinstance(i["lost"], int) else sum(i["lost"].values()),
    }


def full(lab: Lab, seconds: float, size: Any) -> dict:
    """testpmd as fast as it can, alone, recorded to /dev/null and kept."""
    with testpmd(lab, size, lab.plugin()) as app:
        before = app.rate_of_own_time(seconds / 4)
        with attached.Record(lab, app) as t:
            recorded = app.rate_of_own_time(seconds)
            t.counts()
        with Flight(lab, app) as flight:
            values = _kept(flight, seconds, app.rate_of_own_time)
            flight.finish()
        alone = (before + app.rate_of_own_time(seconds / 4)) / 2
    return {
        **values,
        "alone_pps": alone,
        "recorded_added_s": 1 / recorded - 1 / alone,
        "kept_added_s": 1 / values["attached_pps"] - 1 / alone,
    }


class Seconds:
    """Values of a forwarder's report for spans of whole seconds."""

    def __init__(self):
        self.spans = {}

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator:
        begin = time.time()
        yield
        self.spans[name] = begin, time.time()

    def per_packet_s(self, name: str, report: Any) -> Any:
        """Time to receive and free a packet: the median of the seconds that are within the span."""
        begin, end = (at - int(report.data["start_ns"]) * 1e-9 for at in self.spans[name])
        found = [
            s["rx_ns_per_packet"] * 1e-9
            for s in report.data["intervals"]
            if s["time_s"] - s["interval_s"] >= begin and s["time_s"] <= end
        ]
        return statistics.median(found)


def paced(lab: Lab, seconds: float, size: Any, mpps: Any) -> dict:
    """ringtap-fwd, which receives at a steady rate: alone, recorded to /dev/null, kept. Its thread is idle most of the time, so what
    it pays shows in the time that packets take it, not in its rate."""
    end = forwarder.End([], ["--vdev", f"net_null0,size={size}"], "net_null0", lab.cpus[0])
    span, of = seconds + MARGIN_S, Seconds()
    with forwarder.Forwarder(lab, end, "sink", ["--sink-rate", f"{mpps}M", "--interval", "1s"]) as app:
        with of.span("alone"):
            time.sleep(span)
        with attached.Record(lab, Named(app)) as t:
            with of.span("recorded"):
                time.sleep(span)
            t.counts()
        with Flight(lab, Named(app)) as flight:

            def rate(_: Any):
                ports = flight.state()["ports"]
                begin, before = time.monotonic(), sum(p["packets"] for p in ports)
                with of.span("kept"):
                    time.sleep(span)
                return (sum(p["packets"] for p in flight.state()["ports"]) - before) / (time.monotonic() - begin)

            values = _kept(flight, seconds, rate)
            flight.finish()
        report = app.report()
    pps = report.role("sink")["total"]["rx_packets"] / report.data["duration_s"]
    need_rate(pps, mpps * 1e6)
    alone, recorded, kept = (of.per_packet_s(name, report) for name in ("alone", "recorded", "kept"))
    return {
        **values,
        "attached_pps": pps,
        "alone_s": alone,
        "recorded_added_s": recorded - alone,
        "kept_added_s": kept - alone,
        "disturbed": report.disturbed(),
    }
