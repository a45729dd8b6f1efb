# SPDX-License-Identifier: BSD-3-Clause
"""The effect of dropped packets on the order of a pool's buffers, and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...report import memory_view
from ...tools import buffers, cuda
from ...tools.errors import Trouble
from .. import forwarder, gpu_headers
from ..experiment import Cell, Experiment, Measurement

if TYPE_CHECKING:
    from typing import Any

    from ..lab import Lab

POOL = 32767  # buffers
SLOTS = 8192  # slots of each ring: a drop brings a buffer forward in the pool by that number
KINDS = ("4k", "thp", "huge", "dpdk")
GPU_KINDS = (cuda.DEVICE, cuda.MANAGED, cuda.PINNED)
READ_KINDS = ("4k", "huge", *GPU_KINDS)  # in which a GPU can read packets
CURES = {
    "drop": ["--tx-full", "drop", "--pool-order", "ring"],
    "retry": ["--tx-full", "retry", "--pool-order", "ring"],
    "stack": ["--tx-full", "drop", "--pool-order", "stack"],
}
STRIDE = 2176  # bytes, of ringtap-fwd's default buffer
EAL_MB = 256
# EAL's, those of the pool beside it, and some to spare.
HUGE_MB = EAL_MB + -(-POOL * STRIDE // (2 << 20)) * 2 + 16
ATTEMPTS = 6
BUDGET_S = 240  # time of the whole experiment, within which attempts are repeated
WIRE_REACHED = 0.95  # share of its rate under overload; less: the thread was held up for too long
WINDOW = 2 * POOL  # packets: one round through the pool fills the model's cache, one is counted
ROUNDS = 2 * WINDOW  # packets in each phase, at least
STAGE_MAX_S = 5.0

# The wire behind the forwarder as a share of what the machine can do, and the loads as shares of the wire.
WIRE, BELOW, ABOVE = 0.1, 0.8, 1.4
PHASES = {1: 0, 2: 1, 3: 3}  # phases and their stages; between the last two, queues run empty
DRAIN = "0:200ms"


class Memory(Experiment):
    name = "memory"
    title = "Memory: what drops do to a pool"
    question = (
        "A forwarder is loaded below, above and again below what can be passed on. Where are packets "
        "dropped, where do buffers lie afterwards, how many pages does a device or a CPU have to "
        "translate, and what cures it?"
    )
    conditions = (
        f"Between generator, forwarder and sink there are rings (net_ring) of {SLOTS} packets with back-pressure. "
        "The sink takes packets as a wire does, at 10 % of the rate that the machine reaches with buffers in random "
        "order, forwarder on one CPU, generator and sink on another; loads are 80 %, 140 % and 80 % of that wire. In "
        "the three phases all take turns in one thread: when it loses its CPU, all stand still, and queues grow by "
        "load alone, not by other use of the machine. Packets are dropped at the forwarder's TX, and almost none "
        "before it. "
        f"{POOL} buffers of {STRIDE} bytes, no caches of threads in the pool. The IOTLB is a model: least recently used "
        "entry replaced, one lookup for each packet. The cost is the rate at full load without a wire, of buffers in "
        "order and in random order, on two CPUs, every packet touched; cycles are ticks of the TSC. Packets in a GPU's "
        "own memory are sent, forwarded and freed, but not touched: no CPU can. A kernel of the GPU reads the 42 bytes of headers of two "
        "rounds of packets, in the order in which the forwarder received them, one thread for each packet, out of the GPU's caches; 4 KiB "
        "and huge pages are registered with its driver for that. No NIC takes part."
    )
    published = memory_view.PUBLISHED
    view = memory_view
    root_for = "packet memory and DPDK's run-time folders"
    programs = (forwarder.PROGRAM,)
    huge_mb = HUGE_MB
    prepared_names = {
        "limit_4k_pps": ("limit with 4 KiB pages", 1e-6, 2, "Mpps"),
        "limit_dpdk_pps": ("limit with DPDK's memory", 1e-6, 2, "Mpps"),
        "wire_pps": ("the wire takes", 1e-6, 2, "Mpps"),
        "below_pps": ("load below the limit", 1e-6, 2, "Mpps"),
        "above_pps": ("load above it", 1e-6, 2, "Mpps"),
        "stage_s": ("length of a phase", 1, 1, "s"),
    }
    order = 20
    repetitions = 3
    prepare_s = 6.0
    quick_repetitions = 1

    def prepare(self, lab: Lab) -> dict:
        """The rate of the machine with its slowest memory."""
        # The better of two: other programs can only reduce it.
        found = {
            f"limit_{kind}_pps": max(_cost(lab, kind, "shuffled", 0.5)["pps"] for _ in range(2))
            for kind in ("4k", "dpdk")
        }
        wire = min(found.values()) * WIRE
        # Some rounds through the pool in each phase, and a window of samples, however slow the machine.
        stage_s = max(_stage_s(lab), ROUNDS / (wire * BELOW))
        return {
            **found,
            "wire_pps": wire,
            "below_pps": wire * BELOW,
            "above_pps": wire * ABOVE,
            "stage_s": min(stage_s, STAGE_MAX_S),
        }

    def cells(self, lab: Lab) -> Any:
        stage_s = _stage_s(lab)
        cells = [
            Cell(f"{kind}-{cure}", {"memory": kind, "policy": cure}, 3 * stage_s + 1.5)
            for kind in KINDS
            for cure in CURES
        ]
        cells += [
            Cell(f"{kind}-{cure}", {"memory": kind, "policy": cure}, 3 * stage_s + 3)
            for kind in GPU_KINDS
            for cure in CURES
        ]
        cells += [
            Cell(f"cost-{kind}-{order}", {"memory": kind, "order": order}, stage_s + 1)
            for kind in (*KINDS, *GPU_KINDS)
            for order in ("ring", "shuffled")
        ]
        return cells + [
            Cell(f"read-{kind}", {"memory": kind, "policy": "drop", "reads": "headers"}, 3 * stage_s + 4)
            for kind in READ_KINDS
        ]

    def run(self, lab: Lab, cell: Any, repetition: int) -> Any:
        kind, about = cell.params["memory"], {}
        if kind in GPU_KINDS or "reads" in cell.params:
            with cuda.Gpu() as gpu:  # before anything else is: without one, the cell is not available
                about = {"gpu": gpu.name(), "cuda": gpu.driver()}
        if "reads" in cell.params:
            return _read(lab, kind, about)
        if "order" in cell.params:
            return Measurement(_cost(lab, kind, cell.params["order"], _stage_s(lab)), about)
        return _undisturbed(lab, kind, cell.params["policy"], keep=repetition == 0)


def _stage_s(lab: Lab):
    return 0.4 if lab.quick else 0.6


def _argv(lab: Lab, kind: str, more: list[str], one_thread: bool = False):
    a, b = lab.cpus[:2]
    touch = [] if kind == cuda.DEVICE else ["--mac-swap"]
    if one_thread:
        a = b
    return [
        lab.program(forwarder.PROGRAM),
        "--json",
        "--name",
        lab.unique("fwd"),
        "--ring",
        f"in:{SLOTS}",
        "--ring",
        f"out:{SLOTS}",
        "--role",
        f"generate:in@{a}",
        "--role",
        f"oneway:in,out@{b}",
        "--role",
        f"sink:out@{a}",
        "--pool-memory",
        kind,
        "--frame",
        "udp",
        *touch,
        "--pool-size",
        str(POOL),
        "--pool-cache",
        "0",
        "--dpdk-memory",
        f"{EAL_MB}M",
        *more,
    ]


def _cost(lab: Lab, kind: Any, order: Any, seconds: float):
    """At full load, every packet's header touched."""
    for _ in range(ATTEMPTS):
        report = forwarder.run_argv(
            _argv(
                lab,
                kind,
                [
                    "--pool-order",
                    order,
                    "--tx-full",
                    "retry",
                    "--rate",
                    "max",
                    "--duration",
                    f"{round(seconds * 1000)}ms",
                ],
            ),
            60,
        )
        pps = report.role("sink")["total"]["rx_packets"] / report.data["duration_s"]
        if pps:
            return {"pps": pps, "cycles_per_packet": report.hz / pps, "disturbed": report.disturbed()}
        seconds = min(2 * seconds, STAGE_MAX_S)  # other programs had the CPUs
    raise Trouble(f"no packet in {ATTEMPTS} attempts, the last of {seconds:.1f} s; end other programs on the CPUs")


def _undisturbed(lab: Lab, kind: str, policy: Any, keep: Any):
    """The first of some attempts in which the loads are as chosen, else the nearest one: other programs may have the CPU for too
    long."""
    stage_s, best = lab.prepared["stage_s"], None
    for attempt in range(1, ATTEMPTS + 1):
        more = attempt < ATTEMPTS and lab.spare_s(BUDGET_S) > 3 * stage_s + 1.5
        try:
            m = _stages(lab, kind, policy, stage_s, keep)
        except buffers.TooFew:
            if not more and not best:
                raise
            stage_s = min(stage_s * 2, STAGE_MAX_S)
            continue
        m.values["attempts"] = attempt
        if not best or _short(m) <= _short(best):
            best = m
        if not _short(m) or not more:
            break
    best.values["attempts"] = attempt
    return best


def _short(m: Any):
    """By how much the loads were not what they should be: 0 if the wire reached its rate under overload, and
    passed on what was offered below."""
    v = m.values
    reached = min(1.0, v["wire_2"] / WIRE_REACHED)
    return 1 - reached + (v["dropped_1"] + v["dropped_3"]) / max(v["offered_1"] + v["offered_3"], 1)


def _windows(lab: Lab, kind: str, policy: Any, stage_s: Any):
    """(addresses of the last packets in each phase, memory of the pool, whole report) of one run of the three phases."""
    p = lab.prepared
    below, above = round(p["below_pps"]), round(p["above_pps"])
    span = f"{round(stage_s * 1000)}ms"
    with buffers.Samples(lab) as samples:
        report = forwarder.run_argv(
            _argv(
                lab,
                kind,
                [
                    *CURES[policy],
                    "--sink-rate",
                    str(round(p["wire_pps"])),
                    "--stages",
                    f"{below}:{span},{above}:{span},{DRAIN},{below}:{span}",
                    "--samples",
                    samples.path,
                    "--sample",
                    "1",
                    "--max-samples",
                    str(1 << 22),
                ],
                one_thread=True,
            ),
            60,
        )
        windows = {phase: samples.window(report.number("oneway"), stage, WINDOW) for phase, stage in PHASES.items()}
    return windows, report.data["memory"], report


def _stages(lab: Lab, kind: str, policy: Any, stage_s: Any, keep: Any):
    """One run of the three phases. keep: data for the plots, too."""
    windows, memory, report = _windows(lab, kind, policy, stage_s)
    values, data = {"disturbed": report.disturbed()}, {}
    for phase, stage in PHASES.items():
        values |= {f"{k}_{phase}": v for k, v in _counts(report, stage).items()}
        found, curves = buffers.describe(windows[phase], memory)
        values |= {f"{k}_{phase}": v for k, v in found.items()}
        data[str(phase)] = {
            "misses": curves,
            **({"offsets_kib": buffers.offsets(windows[phase], memory)} if keep else {}),
        }
        values[f"wire_{phase}"] = values[f"passed_{phase}"] / (lab.prepared["wire_pps"] * stage_s)
    values["as_stated"] = memory_view.as_stated(kind, policy, values, POOL)
    return Measurement(values, {"phases": data, "entries": list(buffers.ENTRIES)} if keep else {})


def _counts(report: Any, stage: Any):
    """Drops by place, and bursts, of one stage."""
    generator, forward, sink = (report.role(r)["stages"][stage] for r in ("generate", "oneway", "sink"))
    offered = generator["tx_packets"] + generator["tx_refused"] + generator["tx_nombuf"]
    return {
        "offered": offered,
        "dropped": forward["tx_dropped"],
        "refused": generator["tx_refused"],
        "no_buffer": generator["tx_nombuf"],
        "passed": sink["rx_packets"],
        "per_burst": forward["rx_packets_per_call"],
        "per_nonzero_burst": forward["rx_packets_per_busy_call"],
        "bursts": forward["rx_calls"],
        "nonzero_bursts": forward["rx_busy_calls"],
        "retried": forward["tx_retried"],
    }


def _read(lab: Lab, kind: str, about: Any):
    """A GPU reads the headers of packets, in the order before and after an overload."""
    for attempt in range(ATTEMPTS):
        try:
            windows, memory, report = _windows(lab, kind, "drop", lab.prepared["stage_s"])
            break
        except buffers.TooFew:
            if attempt == ATTEMPTS - 1:
                raise
    values = {"disturbed": report.disturbed()}
    with cuda.Gpu() as gpu:
        pool = gpu_headers.Pool(gpu, kind, POOL, memory["stride_bytes"])
        for phase in (1, 3):
            values |= {f"{k}_{phase}": v for k, v in pool.read(windows[phase] - memory["base"]).items()}
            values[f"out_of_order_{phase}"] = buffers.order(windows[phase], memory["stride_bytes"])
    return Measurement(values, about)


EXPERIMENT = Memory()
