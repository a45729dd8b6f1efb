# SPDX-License-Identifier: BSD-3-Clause
"""Cost for the only worker of VPP, which passes packets of net_null from port to port: untouched, attached to, recorded
and with fates, beside VPP's own 'pcap trace' and 'pcap dispatch trace', by turns. It prints nanoseconds of the worker's
CPU time for each packet; other work should not run. RINGTAP_VPP as for test_vpp.py."""

import contextlib
import json
import re
import statistics
from pathlib import Path

import pytest
from harness.attach import attach, detach
from harness.proc import of_tasks, until
from harness.ringtap import Recorder
from harness.vpp import BUILDS, Vpp

ROUNDS = 9
NS = 300_000_000  # packets of that time have room in VPP's memory
LOTS = 50_000_000

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.alone,
    pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build"),
]


def received(vpp):
    return int(re.search(r"rx packets +(\d+)", vpp.ctl("show interface"))[1])


class Worker:
    """The thread that passes packets, and has no other work."""

    def __init__(self, vpp):
        self.vpp = vpp
        (tid,) = (tid for tid, name in of_tasks(vpp.pid, "comm").items() if name.startswith("vpp_wk_"))
        self.path = Path(f"/proc/{vpp.pid}/task/{tid}/schedstat")

    def _ran_ns(self):
        return int(self.path.read_text().split()[0])

    def _now(self):
        """CPU time and packets, read at the same time."""
        before = self._ran_ns()
        count = received(self.vpp)
        return (before + self._ran_ns()) / 2, count

    def ns_a_packet(self):
        """In the next moment."""
        begin, first = self._now()
        until(lambda: self._ran_ns() - begin > NS, what="CPU time")
        end, last = self._now()
        return (end - begin) / (last - first)


@contextlib.contextmanager
def recorded(vpp, *args):
    recorder = Recorder(["-i", f"{vpp.prefix}:", "--json", *args], "/dev/null").attached()
    try:
        yield
        text = recorder.finish()
        assert json.loads(text[text.index("\n{") : text.rindex("}") + 1])["captured"] > 0
    finally:
        recorder.close()


@contextlib.contextmanager
def traced(vpp, on, off):
    vpp.ctl(on)
    yield
    written = vpp.ctl(off)
    assert "No packets" not in written
    Path(re.search(r" to (/tmp/\S+\.pcap)", written)[1]).unlink()


def ways(vpp):
    """Whose cost is measured. Ours need the probe, VPP's are without it."""
    yield "untouched", contextlib.nullcontext(), False
    yield "attached", contextlib.nullcontext(), True
    yield "recorded", recorded(vpp), True
    yield "recorded with fates", recorded(vpp, "--ids", "--fates"), True
    on = f"pcap trace rx tx max {LOTS} intfc any max-bytes-per-pkt 64 file trace.pcap"
    yield "pcap trace", traced(vpp, on, "pcap trace off"), False


def dispatches(vpp):
    return any((vpp.build / "lib").glob("*/vpp_plugins/dispatch_trace_plugin.so"))


def dispatch_trace(vpp):
    on = f"pcap dispatch trace on max {LOTS} file dispatch.pcap buffer-trace dpdk-input 1000000000"
    return traced(vpp, on, "pcap dispatch trace off")


def report(build, found):
    for what, values in found.items():
        more = [after - before for before, after in zip(found["untouched"], values)]
        quartiles = statistics.quantiles(more, n=4)
        print(
            f"{build}, {what}: {statistics.median(values):.1f} ns, {quartiles[1]:+.1f} "
            f"({quartiles[0]:+.1f} to {quartiles[2]:+.1f})",
            flush=True,
        )


@pytest.mark.parametrize("build", BUILDS)
def test_cost(build, net, closing):
    vpp = closing(Vpp(net.hub, {}, build, vdevs=("net_null0", "net_null1")))
    for name, other in (vpp.names, vpp.names[::-1]):
        vpp.ctl(f"set interface state {name} up")
        vpp.ctl(f"set interface l2 xconnect {name} {other}")
    worker, found = Worker(vpp), {}
    for _ in range(ROUNDS):
        for what, way, probe in ways(vpp):
            if probe:
                attach(vpp.pid)
            with way:
                found.setdefault(what, []).append(worker.ns_a_packet())
            if probe:
                detach(vpp.pid)
    report(build, found)
    found = {"untouched": found["untouched"]}
    for _ in range(ROUNDS if dispatches(vpp) else 0):  # VPP is slower for a while after it
        with dispatch_trace(vpp):
            found.setdefault("pcap dispatch trace", []).append(worker.ns_a_packet())
    report(build, found)
