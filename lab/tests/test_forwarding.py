# SPDX-License-Identifier: BSD-3-Clause
"""The experiments latency and memory compute results from ringtap-fwd's reports, and repeat failed measurements."""

import argparse
import contextlib
import errno
import json
import socket
from types import SimpleNamespace

import numpy
import pytest
from fakes import lab
from ringtap_lab.report import memory_view
from ringtap_lab.run import forwarder
from ringtap_lab.run.experiment import Cell, Measurement
from ringtap_lab.run.experiments import latency, memory
from ringtap_lab.tools import buffers, process
from ringtap_lab.tools.errors import Unavailable

POOL = memory.POOL


# latency

HISTOGRAM = {
    "packets": 2000,
    "cycles": {"mean": 400.0, "p50": 380, "p99": 900, "max": 4000},
    "ns": {"mean": 200.0, "p50": 190, "p99": 450, "max": 2000},
}


def report(**roles):
    """A report of ringtap-fwd."""
    return forwarder.Report(
        json.dumps(
            {
                "tsc_hz": 2e9,
                "duration_s": 2.0,
                "threads": [{"cpu_s": 1.9}, {"cpu_s": 1.5}],
                "roles": [{"role": kind, **role} for kind, role in roles.items()],
            }
        )
    )


def test_values_of_a_histogram():
    v = latency._values(HISTOGRAM)
    assert v["packets"] == 2000 and v["cycles_p99"] == 900 and v["ns_max"] == 2000
    assert v["projected_pps"] == pytest.approx(1e9 / 190) and v["projected_mean_pps"] == pytest.approx(1e9 / 200)
    assert v["projected_gbps"] == pytest.approx(1e9 / 190 * 84 * 8 / 1e9)
    assert latency._values({**HISTOGRAM, "ns": {**HISTOGRAM["ns"], "p50": 0}})["projected_pps"] == 0


@pytest.mark.parametrize("came, lost", [(2000, 0), (1980, 20), (1979, None)])
def test_one_packet_in_a_hundred_may_be_lost(came, lost):
    if lost is None:
        with pytest.raises(latency.Lost, match="21 of 2000 packets"):
            latency._lost(2000, came)
    else:
        assert latency._lost(2000, came) == lost


@pytest.mark.parametrize("test, source", [("within", "echo"), ("roundtrip", "generate")])
def test_latency_is_of_the_forwarder_or_of_the_round_trip(monkeypatch, test, source):
    here = report(generate={"round_trip": {**HISTOGRAM, "cycles": {**HISTOGRAM["cycles"], "p50": 7777}}})
    there = report(
        echo={
            "time_per_packet": {**HISTOGRAM, "cycles": {**HISTOGRAM["cycles"], "p50": 333}},
            "total": {"rx_packets_per_busy_call": 1.25},
        }
    )
    sent = []
    monkeypatch.setattr(
        forwarder, "Forwarder", lambda *args: contextlib.nullcontext(SimpleNamespace(report=lambda end: there))
    )
    monkeypatch.setattr(forwarder, "run", lambda lab_, end, role, more: sent.append(more) or here)
    v = latency.measure(lab(), (None, None), test, 2000).values
    assert v["cycles_p50"] == {"echo": 333, "generate": 7777}[source] and v["per_burst"] == 1.25 and v["lost"] == 0
    assert v["disturbed"] == pytest.approx(0.25)
    assert sent[0][-1] == {"within": str(latency.WINDOW), "roundtrip": "1"}[test]


def test_one_process_that_passes_pointers(monkeypatch):
    commands = []
    found = report(
        oneway={"time_per_packet": HISTOGRAM, "total": {"rx_packets_per_busy_call": 30.0}},
        sink={"total": {"rx_packets": 2000}},
    )
    monkeypatch.setattr(forwarder, "run_argv", lambda argv, timeout_s: commands.append(argv) or found)
    it = lab()
    it.program, it.unique = lambda name: name, lambda kind: kind
    assert latency._one_process(it, 2000).values["per_burst"] == 30.0
    assert "--json" in commands[0] and "2000" in commands[0]


@pytest.mark.parametrize(
    "plane, family", [("af_xdp", "AF_XDP"), ("packet", "AF_PACKET"), ("mmap", "AF_PACKET"), ("af_packet", "AF_PACKET")]
)
def test_kernel_without_a_plane(monkeypatch, plane, family):
    def none(number, _):
        assert number == {"AF_XDP": 44, "AF_PACKET": 17}[family]
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", none)
    with pytest.raises(Unavailable, match=f"the kernel has no {family} sockets: Address family not supported"):
        latency._need_socket(plane)


@pytest.mark.parametrize("plane", ["memif", "ring"])
def test_planes_without_sockets(monkeypatch, plane):
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a socket is opened"))
    latency._need_socket(plane)


@pytest.mark.parametrize("message, error", [("Unknown device type.", Unavailable), ("out of memory", RuntimeError)])
def test_kernel_without_veth(message, error):
    @contextlib.contextmanager
    def hosts():
        raise RuntimeError(message)
        yield

    with pytest.raises(error, match=message), latency._hosts(SimpleNamespace(hosts=hosts)):
        pass


@pytest.mark.parametrize("plane, error", [("memif", Unavailable), ("af_xdp", Unavailable), ("packet", RuntimeError)])
def test_dpdk_without_a_driver(monkeypatch, plane, error):
    monkeypatch.setattr(latency, "_run", lambda *_: (_ for _ in ()).throw(RuntimeError("EAL: failed to parse device")))
    with pytest.raises(error, match="failed to parse device") as found:
        latency.EXPERIMENT._attempts(lab(), Cell("x", {"test": "within", "plane": plane}), 10)
    assert type(found.value) is error


@pytest.mark.parametrize("spare_s, attempts", [(1000.0, latency.ATTEMPTS), (0.0, 1)])
def test_lost_packets_are_sent_again_while_there_is_time(monkeypatch, spare_s, attempts):
    calls = []
    monkeypatch.setattr(latency, "_run", lambda *_: calls.append(1) or (_ for _ in ()).throw(latency.Lost("lost")))
    with pytest.raises(latency.Lost):
        latency.EXPERIMENT._attempts(lab(spare_s=spare_s), Cell("x", {"test": "within", "plane": "packet"}), 10)
    assert len(calls) == attempts


def test_slow_cell_has_fewer_packets_in_later_runs(monkeypatch):
    it = latency.Latency()
    it._took = {"slow": (1, 40.0, 1000), "quick": (1, 1.0, 1000)}
    assert it._share(Cell("quick"), 1000, 5) == it._share(Cell("unknown"), 1000, 5) == 1.0
    assert it._share(Cell("slow"), 1000, 2) == pytest.approx(latency.RUN_S / 2 / 40)


def test_cells_of_latency():
    planes = ("packet", "mmap", "af_packet", "af_xdp", "memif")
    assert {c.key for c in latency.EXPERIMENT.cells(lab())} == {
        f"{t}-{p}" for t in ("within", "roundtrip") for p in planes
    } | {"within-ring"}


@pytest.mark.parametrize("key, count", [("within-memif", 20000), ("roundtrip-mmap", 200)])
def test_packets_of_a_run(monkeypatch, key, count):
    sent = []
    it = latency.Latency()
    it._took = {}
    monkeypatch.setattr(it, "_attempts", lambda lab_, cell, n: sent.append(n))
    it.run(lab(), Cell(key), 0)
    assert sent == [count]


@pytest.mark.parametrize("text", ["0", "1000000001", "x"])
def test_numbers_of_packets(text):
    with pytest.raises((argparse.ArgumentTypeError, ValueError)):
        latency.packets(text)
    assert latency.packets("1000000000") == 10**9


def test_forwarder_that_fails(monkeypatch):
    monkeypatch.setattr(process, "run", lambda argv, timeout_s: (1, "", "first\nringtap-fwd: no such port\n"))
    with pytest.raises(RuntimeError, match="ringtap-fwd ended with status 1: ringtap-fwd: no such port"):
        forwarder.run_argv(["ringtap-fwd"], 1)
    monkeypatch.setattr(process, "run", lambda argv, timeout_s: (2, "", ""))
    with pytest.raises(RuntimeError, match="status 2: it printed nothing"):
        forwarder.run_argv(["ringtap-fwd"], 1)


def test_roles_of_a_report():
    found = report(generate={}, oneway={"x": 1})
    assert found.number("oneway") == 1 and found.role("oneway")["x"] == 1
    assert found.disturbed() == pytest.approx(0.25)


# memory


def phases(**more):
    """Values of a run in order, without drops; more: what differs, such as dropped_2."""
    one = {"dropped": 0, "refused": 0, "out_of_order": 0.01, "buffers": POOL, "misses_64": 0.5, "offered": 1000}
    values = {f"{k}_{p}": v for k, v in one.items() for p in memory_view.PHASES}
    return {**values, "wire_2": 1.0, **more}


DROP = phases(dropped_2=9, out_of_order_2=0.9, out_of_order_3=0.9, misses_64_3=0.9)
RETRY = phases(refused_2=9)
STACK = phases(dropped_2=9, buffers_1=60, buffers_3=60, misses_64_1=0.01, misses_64_3=0.01)
HUGE = phases(
    dropped_2=9, out_of_order_2=0.9, out_of_order_3=0.9, misses_64_1=0.001, misses_64_2=0.001, misses_64_3=0.001
)


@pytest.mark.parametrize(
    "kind, policy, values",
    [("4k", "drop", DROP), ("4k", "retry", RETRY), ("4k", "stack", STACK), ("huge", "drop", HUGE)],
)
def test_verdicts_are_distinct(kind, policy, values):
    assert memory_view.as_stated(kind, policy, values, POOL) == 1
    for found in (DROP, RETRY, STACK, HUGE):
        assert memory_view.as_stated(kind, policy, found, POOL) == (found is values)


@pytest.mark.parametrize(
    "kind, policy, values, change",
    [
        ("4k", "drop", DROP, {"dropped_1": 1}),
        ("4k", "drop", DROP, {"dropped_3": 1}),
        ("4k", "drop", DROP, {"dropped_2": 0}),
        ("4k", "drop", DROP, {"out_of_order_1": memory_view.IN_ORDER}),
        ("4k", "drop", DROP, {"out_of_order_2": memory_view.SCATTERED}),
        ("4k", "drop", DROP, {"misses_64_3": memory_view.MORE * 0.5}),
        ("4k", "retry", RETRY, {"dropped_2": 1}),
        ("4k", "retry", RETRY, {"refused_2": 0}),
        ("4k", "retry", RETRY, {"out_of_order_3": memory_view.IN_ORDER}),
        ("4k", "retry", RETRY, {"misses_64_3": 0.56}),
        ("4k", "stack", STACK, {"buffers_3": memory_view.FEW * POOL}),
        ("4k", "stack", STACK, {"misses_64_1": memory_view.FEW_MISSES}),
        ("huge", "drop", HUGE, {"misses_64_2": memory_view.CURED}),
    ],
)
def test_each_part_of_a_verdict_counts(kind, policy, values, change):
    assert memory_view.as_stated(kind, policy, {**values, **change}, POOL) == 0


def test_loads_that_were_not_reached():
    assert memory._short(Measurement(phases())) == 0
    assert memory._short(Measurement(phases(wire_2=memory.WIRE_REACHED))) == 0
    assert memory._short(Measurement(phases(wire_2=memory.WIRE_REACHED / 2))) == pytest.approx(0.5)
    assert memory._short(Measurement(phases(dropped_1=50, dropped_3=50))) == pytest.approx(0.05)


@pytest.mark.parametrize(
    "spare_s, drops, best, attempts", [(1000.0, (9, 5, 0), 0, 3), (1000.0, (9, 5, 7, 8, 6, 9), 5, 6), (0.0, (9,), 9, 1)]
)
def test_the_run_nearest_to_the_loads_counts(monkeypatch, spare_s, drops, best, attempts):
    left = list(drops)
    monkeypatch.setattr(memory, "_stages", lambda *_: Measurement(phases(dropped_1=left.pop(0))))
    found = memory._undisturbed(lab(spare_s=spare_s, prepared={"stage_s": 0.4}), "4k", "drop", False)
    assert found.values["dropped_1"] == best and found.values["attempts"] == attempts and not left


@pytest.mark.parametrize("repetition", [0, 1])
def test_addresses_are_kept_of_the_first_repetition(monkeypatch, repetition):
    monkeypatch.setattr(memory, "_undisturbed", lambda lab_, kind, policy, keep: keep)
    cell = Cell("4k-drop", {"memory": "4k", "policy": "drop"})
    assert memory.EXPERIMENT.run(lab(), cell, repetition) == (repetition == 0)


def test_machine_that_is_too_slow_has_longer_stages(monkeypatch):
    tried = []

    def stages(lab_, kind, policy, stage_s, keep):
        tried.append(stage_s)
        if len(tried) < 5:
            raise buffers.TooFew("few")
        return Measurement(phases())

    monkeypatch.setattr(memory, "_stages", stages)
    memory._undisturbed(lab(prepared={"stage_s": 0.5}), "4k", "drop", False)
    assert tried == [0.5, 1.0, 2.0, 4.0, memory.STAGE_MAX_S]
    tried.clear()
    with pytest.raises(buffers.TooFew):
        memory._undisturbed(lab(spare_s=0.0, prepared={"stage_s": 0.5}), "4k", "drop", False)


def test_rates_of_the_three_phases(monkeypatch):
    limits = {"4k": [10e6, 12e6], "dpdk": [30e6, 20e6]}
    monkeypatch.setattr(memory, "_cost", lambda lab_, kind, order, seconds: {"pps": limits[kind].pop()})
    p = memory.EXPERIMENT.prepare(lab())
    assert p["limit_4k_pps"] == 12e6 and p["limit_dpdk_pps"] == 30e6
    assert p["wire_pps"] == pytest.approx(1.2e6)
    assert p["below_pps"] < p["wire_pps"] < p["above_pps"] and p["stage_s"] == 0.4
    limits = {"4k": [1e4] * 2, "dpdk": [1e4] * 2}
    assert memory.EXPERIMENT.prepare(lab())["stage_s"] == memory.STAGE_MAX_S


def test_counts_of_a_stage():
    found = report(
        generate={"stages": [{"tx_packets": 10, "tx_refused": 2, "tx_nombuf": 1}]},
        oneway={
            "stages": [
                {
                    "tx_dropped": 3,
                    "rx_packets_per_call": 1.5,
                    "rx_packets_per_busy_call": 4.0,
                    "rx_calls": 8,
                    "rx_busy_calls": 3,
                    "tx_retried": 5,
                }
            ]
        },
        sink={"stages": [{"rx_packets": 7}]},
    )
    assert memory._counts(found, 0) == {
        "offered": 13,
        "dropped": 3,
        "refused": 2,
        "no_buffer": 1,
        "passed": 7,
        "per_burst": 1.5,
        "per_nonzero_burst": 4.0,
        "bursts": 8,
        "nonzero_bursts": 3,
        "retried": 5,
    }


# Addresses of packets


def test_order_of_buffers():
    stride = 2176
    inorder = numpy.arange(100) * stride
    assert buffers.order(inorder, stride) == 0
    assert buffers.order(inorder[::-1], stride) == 1
    assert buffers.order(inorder + (numpy.arange(100) > 50) * 100, stride) == 0  # a gap between two pieces
    assert buffers.order(numpy.concatenate([inorder, inorder]), stride) == pytest.approx(1 / 199)


def test_addresses_of_a_stage(tmp_path):
    path = tmp_path / "samples"
    path.write_text(
        "role,time,stage,length,address\n"
        + "".join(f"{role},0,{stage},60,{n}\n" for role in (0, 1) for stage in (0, 1) for n in range(5))
    )
    with buffers.Samples(SimpleNamespace(folder=lambda: str(tmp_path), unique=lambda kind: kind)) as samples:
        assert samples.path == str(path)
        assert list(samples.window(1, 1, 3)) == [2, 3, 4]
        with pytest.raises(buffers.TooFew, match="stage 1: 5 packets, fewer than 6"):
            samples.window(1, 1, 6)
    assert not path.exists()


def test_description_of_addresses():
    memory_ = {"page_bytes": 4096, "stride_bytes": 2048, "base": 1 << 20}
    addresses = numpy.tile((1 << 20) + numpy.arange(4096) * 2048, 2)
    found, curves = buffers.describe(addresses, memory_)
    assert found["buffers"] == 4096 and found["pages_4k"] == found["pages_own"] == buffers.SUCCESSIVE // 2
    assert found["misses_64"] == 0.5 and found["misses_4096"] == 0 and set(curves) == {"4k", "2m", "1g"}
    offsets = buffers.offsets(addresses, memory_)
    assert len(offsets) == buffers.SHOWN and offsets[0] == 0 and max(offsets) <= 4096 * 2
