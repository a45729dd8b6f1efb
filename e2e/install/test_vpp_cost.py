# SPDX-License-Identifier: BSD-3-Clause
"""Cost for the only worker of VPP, which passes packets of net_null from port to port: untouched, attached to, recorded
and with fates, beside VPP's own 'pcap trace' and 'pcap dispatch trace', by turns. It prints nanoseconds of the worker for
each packet; nothing else may run. RINGTAP_VPP as for test_vpp.py."""

import contextlib
import json
import re
import statistics
import time

import pytest
from harness.attach import attach, detach
from harness.ringtap import Recorder
from harness.vpp import BUILDS, Vpp

ROUNDS = 9
SECONDS = 0.3  # packets of that time have room in VPP's memory
LOTS = 50_000_000

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.alone,
    pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build"),
]


def received(vpp):
    return int(re.search(r"rx packets +(\d+)", vpp.ctl("show interface"))[1])


def ns_a_packet(vpp):
    """In the next moment. The worker has no other work."""
    begin, first = time.monotonic_ns(), received(vpp)
    time.sleep(SECONDS)  # what it measures
    return (time.monotonic_ns() - begin) / (received(vpp) - first)


@contextlib.contextmanager
def recorded(vpp, *args):
    recorder = Recorder(["-i", f"{vpp.prefix}:", "--json", *args], "/dev/null").attached()
    try:
        yield
        text = recorder.finish()
        assert json.loads(text[text.index("\n{") :])["captured"] > 0
    finally:
        recorder.close()


@contextlib.contextmanager
def traced(vpp, on, off):
    vpp.ctl(on)
    yield
    assert "No packets" not in vpp.ctl(off)
    (vpp.dir / "trace.pcap").unlink(missing_ok=True)


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


@pytest.mark.parametrize("build", BUILDS)
def test_cost(build, net, closing):
    vpp = closing(Vpp(net.hub, {}, build, vdevs=("net_null0", "net_null1")))
    for name, other in (vpp.names, vpp.names[::-1]):
        vpp.ctl(f"set interface state {name} up")
        vpp.ctl(f"set interface l2 xconnect {name} {other}")
    found = {}
    for _ in range(ROUNDS):
        for what, way, probe in ways(vpp):
            if probe:
                attach(vpp.pid)
            with way:
                found.setdefault(what, []).append(ns_a_packet(vpp))
            if probe:
                detach(vpp.pid)
    for _ in range(ROUNDS if dispatches(vpp) else 0):  # VPP is slower for a while after it
        with dispatch_trace(vpp):
            found.setdefault("pcap dispatch trace", []).append(ns_a_packet(vpp))
    for what, values in found.items():
        more = [after - before for before, after in zip(found["untouched"], values)]
        quartiles = statistics.quantiles(more, n=4)
        print(
            f"{build}, {what}: {statistics.median(values):.1f} ns, {quartiles[1]:+.1f} "
            f"({quartiles[0]:+.1f} to {quartiles[2]:+.1f})"
        )
