# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts and tables of the experiment memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import plots, sources
from .blocks import (
    CONFIRMED,
    DIFFERENT,
    OPEN,
    PARTLY,
    Claim,
    Datum,
    Plot,
    Ratio,
    Table,
    Value,
    Verdict,
    count,
    mpps,
    percent,
)

if TYPE_CHECKING:
    from typing import Any

    from matplotlib.axes import Axes

    from ..tools.results import Results

PHASES = {1: "below", 2: "above", 3: "below again"}
KINDS = {
    "4k": "4 KiB pages",
    "thp": "transparent huge pages",
    "huge": "own huge pages",
    "dpdk": "DPDK's memory",
    "gpu": "the GPU's memory",
    "gpu-managed": "managed memory",
    "gpu-pinned": "pinned memory",
}
LARGE_PAGES = ("thp", "huge", "dpdk")
POLICIES = {"drop": "ring order, drop", "retry": "ring order, retry", "stack": "stack order, drop"}
STATED = {
    "drop": "in order below the limit, scattered above it, and scattered for good after it",
    "retry": "in order in all phases",
    "stack": "few buffers in use below the limit, with or without drops",
}
ORDERS = "; ".join(f"{POLICIES[p]}: {STATED[p]}" for p in POLICIES)
MISSES = "with 4 KiB pages, drops make more misses, for good; with retry, stack order or huge pages they do not"
NOTHING = "nothing published about this"
PUBLISHED = sources.Published.of(
    sources.MEMORY,
    ("ring order, drop", "buffers in order at first, scattered by drops, and for good"),
    ("retry, stack order, or huge pages", "cure it"),
)
IN_ORDER, SCATTERED = 0.05, 0.5  # shares of packets whose buffer is out of order
FEW = 0.05  # share of the pool
# Misses per packet. In order, about every second packet begins a new page of 4 KiB: more than twice is not possible.
MORE, SAME = 1.4, 0.1  # phase 3 against phase 1
CURED = 0.01
FEW_MISSES = 0.05  # share for 64 entries: less than a tenth of what buffers in order have


def as_stated(kind: str, policy: Any, v: Any, pool: Any) -> int:
    """1 if the three phases of a run differ as published, else 0. v: its values."""
    below = v["dropped_1"] == 0 and v["dropped_3"] == 0
    order = [v[f"out_of_order_{p}"] for p in PHASES]
    if policy == "retry":
        found = v["dropped_2"] == 0 and v["refused_2"] > 0 and max(order) < IN_ORDER
    elif policy == "stack":
        found = v["dropped_2"] > 0 and max(v["buffers_1"], v["buffers_3"]) < FEW * pool
    else:
        found = v["dropped_2"] > 0 and order[0] < IN_ORDER and min(order[1:]) > SCATTERED
    return int(below and found and _misses_as_stated(kind, policy, v))


def _misses_as_stated(kind: str, policy: Any, v: Any):
    """Whether misses of pages of their real size are as stated."""
    if kind in LARGE_PAGES:
        return max(v[f"misses_64_{p}"] for p in PHASES) < CURED
    if policy == "stack":
        return max(v["misses_64_1"], v["misses_64_3"]) < FEW_MISSES
    ratio = v["misses_64_3"] / v["misses_64_1"] if v["misses_64_1"] else float("inf")
    return ratio > MORE if policy == "drop" else abs(ratio - 1) < SAME


def _name(key: str):
    kind, policy = key.rsplit("-", 1)
    return f"{KINDS[kind]}, {POLICIES[policy]}"


def _keys(results: Results):
    """All three-phase cells, in a fixed order."""
    found = [f"{kind}-{policy}" for kind in KINDS for policy in POLICIES]
    return [key for key in found if results.cell(key) and not (key.startswith("gpu") and results.cell(key).unavailable)]


def _phases(results: Results, key: str):
    """Data of a cell's phases, None if there are none."""
    return results.cell(key).data("phases") if results.cell(key) else None


def _by_phase(results: Results, title: str, columns: Any, **more):
    """columns: (head, metric, scale, digits); each once in each phase."""
    head = ["buffers in", *(f"{h}, {PHASES[p]}" for h, *_ in columns for p in PHASES)]
    rows = [
        [
            _name(key),
            *(Value(key, f"{metric}_{p}", scale, digits) for _, metric, scale, digits in columns for p in PHASES),
        ]
        for key in _keys(results)
    ]
    return Table(title, head, rows, **more)


def _verdicts(results: Results):
    rows = [
        [
            _name(key),
            count(key, "as_stated", how="runs"),
            count(key, "attempts", how="greatest"),
            percent(key, "disturbed"),
            percent(key, "wire_2", 1),
        ]
        for key in _keys(results)
    ]
    return Table(
        "Do the three phases differ as published?",
        ["buffers in", "yes, in", "attempts at most", "disturbed, %", "wire reached under overload, %"],
        rows,
        published=ORDERS,
        note="A run in which packets were dropped below the limit, or in which the wire did not reach 95 % of its rate under "
        "overload, because other work held the thread up for too long, is repeated while time allows; the one nearest to the "
        "chosen loads counts. Disturbed: share of the time that the polling thread did not have its CPU. The answer "
        f"includes modelled misses of 64 entries. 4 KiB pages, drop: at least {MORE} times as many after the overload as "
        f"before it. Retry: the same within {SAME * 100:.0f} %. Stack order: below {FEW_MISSES} per packet before and after it, "
        f"with fewer than {FEW * 100:.0f} % of the buffers in use; under overload a queue of buffers is in use there, too. Huge "
        f"pages: below {CURED} in all phases.",
    )


def _entries(results: Results):
    """Misses by the size of the IOTLB, in the last phase, of pages of each size."""
    shown = [key for key in ("4k-drop", "4k-retry", "4k-stack") if _phases(results, key)]
    if not shown:
        return []
    entries = results.cell(shown[0]).data("entries")
    rows = [
        [f"{_name(key)}, {text}", *(Datum(key, ("phases", "3", "misses", size, i), 4) for i in range(len(entries)))]
        for key in shown
        for size, text in (("4k", "4 KiB"), ("2m", "2 MiB"), ("1g", "1 GiB"))
    ]
    return [
        Table(
            "Modelled IOTLB misses per packet after the overload, by entries and size of pages",
            ["buffers in, pages of", *(f"{e:,}" for e in entries)],
            rows,
            published=MISSES,
            shows=shown,
            note="First repetition. A page counts as a miss if at least as many other pages as there are entries were used "
            "since its last use.",
        )
    ]


def _addresses(results: Results, key: str, published: Any):
    phases = _phases(results, key)
    if not phases or "offsets_kib" not in phases["1"]:
        return []

    def draw(axes: Axes):
        for ax, (phase, text) in zip(axes, PHASES.items()):
            y = [k / 1024 for k in phases[str(phase)]["offsets_kib"]]
            ax.plot(
                [2 * i / len(y) for i in range(len(y))],
                y,
                ".",
                markersize=1.8,
                color=plots.COLOURS[phase - 1],
                rasterized=True,
            )
            ax.set_title(
                f"load {text} the limit" if phase < 3 else "load below the limit again", fontsize=10, loc="left"
            )
            ax.set_ylabel("MiB")
        axes[-1].set_xlabel("packets, in rounds through the pool")

    return [
        Plot(
            f"Addresses of successive packets' buffers: {_name(key)}",
            draw,
            [key],
            height=1.1,
            rows=3,
            published=published,
            note="First repetition; from the beginning of the pool.",
        )
    ]


def _misses(results: Results):
    shown = [key for key in ("4k-drop", "4k-retry", "4k-stack", "huge-drop") if _phases(results, key)]
    if not shown:
        return []

    def draw(axes: Axes):
        for i, key in enumerate(shown):
            for phase, style in (("1", ":"), ("3", "-")):
                axes.plot(
                    results.cell(key).data("entries"),
                    _phases(results, key)[phase]["misses"]["4k" if key.startswith("4k") else "2m"],
                    style,
                    marker=plots.MARKERS[i],
                    color=plots.COLOURS[i],
                    label=_name(key) if phase == "3" else None,
                )
        entries = results.cell(shown[0]).data("entries")[::2]
        axes.set_xscale("log", base=2)
        axes.set_xticks(entries, [f"{e:,}" for e in entries])
        axes.set(ylim=(-0.03, 1.1), xlabel="entries of the IOTLB", ylabel="misses per packet")
        plots.legend(axes, "above")

    return [
        Plot(
            "Modelled IOTLB misses before and after the overload",
            draw,
            shown,
            height=0.8,
            published=MISSES,
            note="Dotted: before; solid: after. Pages of 4 KiB, of own huge pages 2 MiB. First repetition.",
        )
    ]


def _cost(results: Results):
    rows = []
    for kind, name in KINDS.items():
        ring, shuffled = f"cost-{kind}-ring", f"cost-{kind}-shuffled"
        if kind.startswith("gpu") and not results.series(ring, "pps"):
            continue
        rows.append(
            [
                name,
                mpps(ring, digits=3),
                mpps(shuffled, digits=3),
                count(ring, "cycles_per_packet", 1),
                count(shuffled, "cycles_per_packet", 1),
                Ratio(*(count(k, "cycles_per_packet", 1, "least") for k in (shuffled, ring)), change=True),
                Ratio(*(count(ring, "pps", how=how) for how in ("greatest", "least")), 2),
                percent(ring, "disturbed"),
                percent(shuffled, "disturbed"),
            ]
        )
    return Table(
        "What does random order cost the CPU?",
        [
            "buffers in",
            "Mpps, in order",
            "Mpps, random",
            "cycles per packet, in order",
            "random",
            "more, of the fastest",
            "fastest against slowest run, in order",
            "disturbed, %, in order",
            "random",
        ],
        rows,
        published=NOTHING,
        note="Of generator, forwarder and sink together at full load: each touches the packet's header. For \"more\", the fastest "
        "repetition of each order counts, as other programs can only slow it down. Where runs of one order differ by more than "
        "the orders do, nothing follows. Packets in the GPU's memory are not touched. Where huge pages show less of a difference than "
        "4 KiB pages, the TLB is a likely cause; it was not measured by itself.",
    )


def _read(results: Results):
    rows = [
        [
            name,
            *(
                Value(f"read-{kind}", f"{metric}_{phase}", scale, digits)
                for metric, scale, digits in (("read_s", 1e9, 3), ("written_s", 1e9, 3), ("burst_s", 1e6, 1))
                for phase in (1, 3)
            ),
        ]
        for kind, name in KINDS.items()
        if results.series(f"read-{kind}", "read_s_1")
    ]
    return (
        [
            Table(
                "What does it cost a GPU to read each packet's header?",
                [
                    "buffers in",
                    "ns per packet, in order",
                    "after the overload",
                    "CPU has just written them: ns per packet, in order",
                    "after the overload",
                    "burst of 32, us, in order",
                    "after the overload",
                ],
                rows,
                published=NOTHING,
                note="Two rounds through the pool in one launch, by the GPU's clock; median of 14 launches. The order is that in which the forwarder "
                "received the packets below the limit, and below it again after the overload. No CPU can write to the GPU's memory. Managed "
                "memory moves to the GPU when that reads it, and back when the CPU does. A burst: from its launch until the CPU knows its end; "
                "median of 200.",
            )
        ]
        if rows
        else []
    )


def blocks(results: Results) -> list:
    found = [_verdicts(results)]
    for policy in POLICIES:
        found += _addresses(results, f"4k-{policy}", STATED[policy])
    return [
        *found,
        *_addresses(results, "huge-drop", "as scattered as in small pages, but of few pages"),
        *_addresses(results, "gpu-drop", NOTHING),
        _by_phase(
            results,
            "Packets dropped, by place",
            [("by the forwarder", "dropped", 1, 0), ("before it", "refused", 1, 0)],
            published=NOTHING,
            note="By the forwarder: its port took no more. Before it: its own ring was full, as a NIC "
            "misses packets; the generator keeps the buffer.",
        ),
        _by_phase(
            results,
            "Bursts that the forwarder received",
            [("packets per burst", "per_burst", 1, 2), ("per non-zero burst", "per_nonzero_burst", 1, 2)],
            published=NOTHING,
        ),
        _by_phase(
            results,
            "Order of buffers",
            [
                ("out of order, %", "out_of_order", 100, 2),
                ("buffers used in a round", "buffers", 1, 0),
                ("pages of 1,024 packets", "pages_own", 1, 0),
            ],
            published=ORDERS,
            note="Out of order: packets whose buffer is not the neighbour of the one before. A round: as many packets as the pool "
            "has buffers. Pages: of their real size.",
        ),
        _by_phase(
            results,
            "Modelled IOTLB misses per packet",
            [("64 entries", "misses_64", 1, 4), ("1,024 entries", "misses_1024", 1, 4)],
            published=MISSES,
            note="With pages of their real size.",
        ),
        *_misses(results),
        *_entries(results),
        _cost(results),
        *_read(results),
    ]


def _verdict(found: Any, confirmed: Any, different: Any):
    """found: of each run, whether it was as published."""
    if not found:
        return Verdict(OPEN)
    if all(found):
        return Verdict(CONFIRMED, confirmed)
    return Verdict(PARTLY, f"In some runs only. {confirmed}") if any(found) else Verdict(DIFFERENT, different)


def summary(results: Results) -> list:
    order = [results.series("4k-drop", f"out_of_order_{p}") for p in PHASES]
    scattered = [before < IN_ORDER and min(during, after) > SCATTERED for before, during, after in zip(*order)]
    cures = {"4k-retry": "runs with retry", "4k-stack": "runs with stack order"}
    cured = [x == 1 for key in cures for x in results.series(key, "as_stated")]
    return [
        Claim(
            "Dropped packets scatter a pool's buffers, and for good.",
            "in order, then scattered for good",
            [
                ("before the overload", percent("4k-drop", "out_of_order_1", 1, "% out of order")),
                ("after it", percent("4k-drop", "out_of_order_3", 1, "% out of order")),
            ],
            _verdict(scattered, "Nothing puts the buffers in order again.", "The buffers did not stay scattered."),
        ),
        Claim(
            "Trying again instead of dropping, or a pool in stack order, cures it.",
            "retry: in order; stack: few buffers in use",
            [(name, count(key, "as_stated", how="runs")) for key, name in cures.items()],
            _verdict(cured, "Both do what is claimed.", "The phases of no run were as claimed."),
        ),
        Claim(
            "So do huge pages: scattered buffers then lie in few pages.",
            "more misses, for good; with huge pages few",
            [
                (f"misses, {KINDS[kind]}", Value(f"{kind}-drop", "misses_64_3", 1, 3, "per packet"))
                for kind in ("4k", "huge")
            ],
            _verdict(
                [m < CURED for m in results.series("huge-drop", "misses_64_3")],
                "In the model of the IOTLB almost no packet misses.",
                "Modelled misses remain.",
            ),
        ),
    ]
