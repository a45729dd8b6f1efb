# SPDX-License-Identifier: BSD-3-Clause
"""The report of `make bench`: a page, the project's aims, and tables of what was measured, in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..run import collectors, forwarders, libpcap
from ..tools import regime
from ..tools.stats import cell
from . import summary
from .blocks import DASH

if TYPE_CHECKING:
    from typing import Any

M = 1e-6
TO_NULL = ("net_null", 64, "ringtap", "null")


def _table(head: Any, rows: Any):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def _aligned(head: Any, rows: Any):
    """The same, for a terminal."""
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    padded = [[text.ljust(width) for text, width in zip(row, widths)] for row in (head, *rows)]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    lines = ["| " + " | ".join(row) + " |" for row in padded]
    return "\n".join([lines[0], rule, *lines[1:]])


def _ratio(a: Any, b: Any):
    return a.median() / b.median() if a and b and b.median() else None


def _percent(ratio: Any):
    return DASH if ratio is None else f"{ratio * 100:.0f} %"


def _keys(store: Any, sink: Any):
    return sorted({k[1:] for k in store.series if k[0] == "captured" and k[4] == sink})


def _captures(store: Any, sink: Any):
    rows = []
    for source, size, tool, _ in _keys(store, sink):

        def of(quantity: str):
            return store.get(quantity, source, size, tool, sink)

        untouched = store.get("untouched", source, size)
        rows.append(
            [
                source,
                size,
                tool,
                cell(untouched, M),
                cell(store.get("loaded", source, size), M) if tool == "ringtap" else DASH,
                cell(of("attached"), M),
                _percent(_ratio(of("attached"), untouched)),
                cell(of("after"), M),
                cell(of("captured"), M),
                cell(of("captured"), size * 8e-9),
                cell(of("loss"), 100, 2),
                cell(of("disturbed"), 100, 0),
            ]
        )
    return [
        "source",
        "bytes",
        "tool",
        "untouched",
        "plugin loaded",
        "attached",
        "of untouched",
        "afterwards",
        "captured Mpps",
        "captured Gbit/s",
        "loss %",
        "disturbed %",
    ], rows


def _files(store: Any):
    rows = [
        [
            source,
            size,
            tool,
            cell(file := store.get("file", source, size, tool, sink), M, 0),
            _percent(_ratio(file, store.get("dd"))),
        ]
        for source, size, tool, sink in _keys(store, "disk")
    ]
    return ["source", "bytes", "tool", "MB/s in the file", "of dd"], rows


def _ceiling(store: Any, size: Any):
    """Packets per second if a packet costs testpmd's own time and one round of the copy loop."""
    untouched, loop = store.get("untouched", "net_null", size), store.get("copy", size=size)
    return 1 / (1 / untouched.median() + 1 / loop.median()) if untouched and loop else None


def _net_ratio(store: Any, size: Any):
    """Rate of the hook alone, from the time per packet that it adds, relative to the copy loop."""
    untouched, loop = store.get("untouched", "net_null", size), store.get("copy", size=size)
    attached = store.get("attached", "net_null", size, "ringtap", "null")
    if not (untouched and attached and loop) or attached.median() >= untouched.median():
        return None
    return 1 / (1 / attached.median() - 1 / untouched.median()) / loop.median()


def _copies(store: Any):
    rows = []
    for size in sorted(k[2] for k in store.series if k[0] == "copy"):
        loop, top = store.get("copy", size=size), _ceiling(store, size)
        captured = store.get("captured", "net_null", size, "ringtap", "null")
        rows.append(
            [
                size,
                cell(loop, M),
                cell(loop, (size + 52) * 1e-9),
                cell(captured, M),
                _percent(_ratio(captured, loop)),
                f"{top * M:.1f}" if top else DASH,
                _percent(captured.median() / top if top and captured else None),
                _percent(_net_ratio(store, size)),
            ]
        )
    return [
        "bytes",
        "copy loop Mpps",
        "GB/s",
        "captured Mpps",
        "ratio",
        "ceiling Mpps",
        "of ceiling",
        "ratio without testpmd's own time",
    ], rows


def _regimes(store: Any):
    """Values that depend on the caches that CPUs share, by regime."""
    shown = [(*key[1:], "captured Mpps", key) for key in store.series if key[0] == "captured"]
    shown += [(None, key[2], "copy loop", None, "copy loop Mpps", key) for key in store.series if key[0] == "copy"]
    rows = []
    for source, size, tool, sink, what, key in shown:
        parts = [store.of_regime(name, *key) for name in regime.MEANING]
        rows.append(
            [source or DASH, size, tool, sink or DASH, what, *(f"{cell(s, M)}; {len(s)}" if s else DASH for s in parts)]
        )
    return ["source", "bytes", "tool", "to", "", *(f"{name}; rounds" for name in regime.MEANING)], rows


def _pushes(store: Any):
    """In the order of the program's output."""
    rows = [[k[1], cell(series, 1e9, 2)] for k, series in store.series.items() if k[0] == "push"]
    return ["packets of bytes", "ns per packet"], rows


def _flows(store: Any):
    rows = [
        [key[1], key[3], cell(store.get(*key), M), cell(store.get("flows_seconds", *key[1:]), 1e9), cpu]
        for key in store.series
        if key[0] == "flows"
        for cpu in [cell(store.get("flows_cpu", *key[1:]), 1, 2)]
    ]
    return ["flows", "", "Mpps of own time", "ns per packet more", "CPUs of the reader"], rows


def _ledgers(store: Any):
    rows = [
        [key[1], key[3], cell(store.get(*key), 1e9), *times]
        for key in store.series
        if key[0] == "ledger"
        for times in [[cell(store.get(f"ledger_{what}", *key[1:]), 1e3, 2) for what in ("top", "text", "json")]]
    ]
    return ["flows", "", "ns per packet", "ms for the 20 largest", "for the screen", "for JSON"], rows


def _flow_readers(store: Any):
    rows = [[key[1], cell(series, M)] for key, series in store.series.items() if key[0] == "flow_reader"]
    return ["flows", "Mpps"], rows


def _merges(store: Any):
    keys = sorted(k for k in store.series if k[0] == "merge")
    return ["rings", "taking turns by", "Mpps on one core"], [[k[2], k[1], cell(store.series[k], M)] for k in keys]


def _pcaps(store: Any):
    rows = [
        [source, tool, cell(pps, M, 2), cell(store.get("pcap_loss", source, 64, tool), 100, 3)]
        for source, tool in (("net_null", "ringtap"), (libpcap.STEADY, "ringtap"), ("veth", "system"))
        if (pps := store.get("pcap", source, 64, tool))
    ]
    return ["64 bytes from", "libpcap", "Mpps", "loss %"], rows


def _filters(store: Any):
    rows = []
    for source in sorted(k[1] for k in store.series if k[0] == "filtered"):
        before, attached = store.get("unfiltered", source, 64), store.get("filtered", source, 64)
        rows.append(
            [
                source,
                cell(before, M),
                cell(attached, M),
                _percent(_ratio(attached, before)),
                f"{(1 / attached.median() - 1 / before.median()) * 1e9:.1f}",
            ]
        )
    return ["source", "untouched Mpps", "filtered Mpps", "of untouched", "ns per packet"], rows


def _collecting(store: Any, what: str, label: str):
    return store.get(f"collecting{what}", "net_null", collectors.SIZE, label)


def _collectors(store: Any):
    rows = [
        [
            label,
            cell(rate, M),
            cell(_collecting(store, "_share", label), 100),
            cell(_collecting(store, "_seconds", label), 1e9, 2),
        ]
        for label in collectors.ROWS
        if (rate := _collecting(store, "", label))
    ]
    return ["on", "Mpps", "% of the rate without", "ns added to a packet"], rows


def _forwarders(store: Any):
    rows = []
    for source in forwarders.SOURCES:
        for label in (forwarders.TESTPMD, forwarders.PLAIN, forwarders.STATS):
            key = (source, forwarders.SIZE, label)
            if rate := store.get("forwarded", *key):
                rows.append(
                    [
                        source,
                        label,
                        cell(rate, M),
                        *(
                            cell(store.get("forwarded_share", *key, beside), 100)
                            for beside in (forwarders.TESTPMD, forwarders.PLAIN)
                        ),
                    ]
                )
    return ["between two", "forwarder", "Mpps", "% of testpmd", "% of it without statistics"], rows


def _aim(name: str, wanted: Any, value: float, reached: Any, text: str):
    """reached(value). text is shown where there is a value."""
    return {
        "aim": name,
        "wanted": wanted,
        "value": value,
        "text": text if value is not None else DASH,
        "reached": None if value is None else reached(value),
    }


def _least(limit: float):
    return lambda value: value >= limit


def _overlap(a: Any, b: Any):
    return bool(a and b) and min(a) <= max(b) and min(b) <= max(a)


def _capture_aims(store: Any):
    """64 bytes from net_null to /dev/null, unless another source is named."""
    captured, loss = store.get("captured", *TO_NULL), store.get("loss", *TO_NULL).median()
    untouched, loaded = store.get("untouched", "net_null", 64), store.get("loaded", "net_null", 64)
    app, idle = _ratio(store.get("attached", *TO_NULL), untouched), _ratio(loaded, untouched)
    times = _ratio(captured, store.get("captured", "net_null", 64, "dpdk-dumpcap", "null"))
    loop, net, top = _ratio(captured, store.get("copy", size=64)), _net_ratio(store, 64), _ceiling(store, 64)
    possible = f"; the copy loop would leave {_percent(top / untouched.median())}" if top else ""
    merge = min((s.median() for k, s in store.series.items() if k[0] == "merge"), default=None)
    disk = max(
        (
            r
            for k in _keys(store, "disk")
            if k[2] == "ringtap" and (r := _ratio(store.get("file", *k), store.get("dd")))
        ),
        default=None,
    )
    return [
        _aim("captured", ">= 80 Mpps", captured.median(), _least(80e6), cell(captured, M) + " Mpps"),
        _aim("against dpdk-dumpcap", ">= 10 x", times, _least(10), f"{times or 0:.1f} x"),
        _aim("loss", "none", loss, lambda v: v == 0, f"{(loss or 0) * 100:.3f} %"),
        _aim("application while captured", ">= 60 % of untouched", app, _least(0.6), _percent(app) + possible),
        _aim("against the copy loop", ">= 80 %", loop, _least(0.8), _percent(loop)),
        _aim("the same, without testpmd's own time", ">= 80 %", net, _least(0.8), _percent(net)),
        _aim("merging, slowest case", ">= 40 Mpps", merge, _least(40e6), f"{(merge or 0) * M:.1f} Mpps"),
        _aim("to disk, best source", ">= 90 % of dd", disk, _least(0.9), _percent(disk)),
        _aim(
            "plugin loaded, nothing attached",
            "no difference",
            idle,
            lambda v: v >= 0.97 or _overlap(loaded, untouched),
            f"{_percent(idle)} of untouched",
        ),
    ]


def _pcap_aims(store: Any):
    ours, loss = store.get("pcap", "net_null", 64, "ringtap"), store.get("pcap_loss", libpcap.STEADY, 64, "ringtap")
    times = _ratio(ours, store.get("pcap", "veth", 64, "system"))
    kept, worst = (
        _ratio(store.get("filtered", s, 64), store.get("unfiltered", s, 64))
        for s in (libpcap.ONE_IN_100, libpcap.NOTHING)
    )
    return [
        _aim("pcap_loop on net_null", ">= 30 Mpps", ours.median(), _least(30e6), cell(ours, M) + " Mpps"),
        _aim(f"its loss, {libpcap.STEADY}", "none", loss.median(), lambda v: v == 0, f"{cell(loss, 100, 3)} %"),
        _aim("against the system's libpcap on a veth", ">= 20 x", times, _least(20), f"{times or 0:.0f} x"),
        _aim(
            "application while a filter passes 1 %",
            ">= 80 % of untouched",
            kept,
            _least(0.8),
            f"{_percent(kept)}; from net_null, passing nothing, {_percent(worst)}",
        ),
    ]


def _collector_aims(store: Any):
    """Slowdown: the lost part of the rate, and the time that is added to a packet."""
    off, polls, polling, ours, peer = (
        _collecting(store, "_share", label).median()
        for label in (
            collectors.LOADED,
            collectors.POLLS,
            collectors.POLLING,
            collectors.LATENCY,
            collectors.LATENCYSTATS,
        )
    )
    lost = (1 - ours) / (1 - peer) if ours and peer and peer < 1 else None
    added = _ratio(*(_collecting(store, "_seconds", label) for label in (collectors.LATENCY, collectors.LATENCYSTATS)))
    same = _overlap(*(_collecting(store, "", label) for label in (collectors.LOADED, collectors.UNTOUCHED)))
    return [
        _aim(
            "probe loaded, no collector on",
            "nothing measurable",
            off,
            lambda v: v >= 0.99 or same,
            f"{_percent(off)} of untouched",
        ),
        _aim(
            "collectors polls, busy, gaps",
            "<= 3 % slower",
            polling,
            _least(0.97),
            f"{(1 - (polling or 0)) * 100:.1f} %; polls alone {(1 - (polls or 0)) * 100:.1f} %",
        ),
        _aim(
            "latency of every packet, rate lost", "< 1/3 of latencystats", lost, lambda v: v < 1 / 3, f"{lost or 0:.2f}"
        ),
        _aim(
            "the same, time added to a packet", "< 1/3 of latencystats", added, lambda v: v < 1 / 3, f"{added or 0:.2f}"
        ),
    ]


def _forwarder_aims(store: Any):
    shares = [
        (source, label, wanted, least, store.get("forwarded_share", source, forwarders.SIZE, label, forwarders.TESTPMD))
        for source in forwarders.SOURCES
        for label, wanted, least in (
            (forwarders.PLAIN, ">= testpmd's io", 1.0),
            (forwarders.STATS, "<= 5 % below testpmd's io", 0.95),
        )
    ]
    return [
        _aim(f"{label} over {source}", wanted, share.median(), _least(least), f"{cell(share, 100)} %")
        for source, label, wanted, least, share in shares
    ]


def aims(store: Any) -> list:
    return [*_capture_aims(store), *_pcap_aims(store), *_collector_aims(store), *_forwarder_aims(store)]


def _aims(store: Any):
    words = {None: "not measured", True: "yes", False: "no"}
    return ["aim", "wanted", "measured", "reached"], [
        [a["aim"], a["wanted"], a["text"], words[a["reached"]]] for a in aims(store)
    ]


def page(found: Any, stored: Any, machine: Any) -> str:
    """Can be read in a minute. found: summary.results(); stored: an earlier run on such a machine, or None."""
    parts = [
        "# ringtap benchmark",
        summary.explained(stored, summary.kind_of(machine)),
        *filter(None, [summary.conclusion(found, stored)]),
        _aligned(*summary.table(found, stored)),
        ", ".join(f"{k} {v}" for k, v in machine.items() if v is not None),
    ]
    return "\n\n".join(parts) + "\n"


def details(store: Any, commands: Any, skipped: Any) -> str:
    own_time = "Per second of the polling thread's time."
    sections = [
        ("Aims", "", _aims(store)),
        ("To /dev/null", "", _captures(store, "null")),
        ("To a file", "", _captures(store, "disk")),
        (
            "Speed of the file",
            f"dd oflag=direct in the same folder: {cell(store.get('dd'), M, 0)} MB/s. Until all is on the disk:",
            _files(store),
        ),
        ("Bare copy loop, and capturing from net_null to /dev/null", "", _copies(store)),
        (
            "By the machine's regime",
            "; ".join(f"{name}: {what}" for name, what in regime.MEANING.items()) + ". Measured before and "
            "after each round (bench/machine_probe).",
            _regimes(store),
        ),
        ("The copy into a ring, alone (bench/push_bench)", "Lower quartiles of many short samples.", _pushes(store)),
        ("Merging", "", _merges(store)),
        ("A libpcap program that counts (bench/pcap_count)", "", _pcaps(store)),
        (
            "Counting flows of testpmd (rxonly, net_pcap, 64 bytes)",
            f"{own_time} A reader that is too slow loses packets, which costs the application less.",
            _flows(store),
        ),
        ("The table of flows, alone (bench/ledger_bench)", "", _ledgers(store)),
        ("A reader that counts all packets by flow (bench/merge_bench -f)", "", _flow_readers(store)),
        (f"A filter in the application ({libpcap.EXPRESSION})", own_time, _filters(store)),
        (
            f"Collectors, while testpmd forwards from one port (io, net_null, {collectors.SIZE} bytes)",
            f"{own_time} A collector is compared with the time just before and after, others with an untouched testpmd of the same "
            "turn.",
            _collectors(store),
        ),
        (
            f"Forwarders, both ways between two ports (io, {forwarders.SIZE} bytes)",
            "Packets of both directions per second of the polling thread's time.",
            _forwarders(store),
        ),
    ]
    parts = [
        "Medians, least and most in brackets; rates of the application in Mpps. Disturbed: share of the time that a thread "
        "waited because others used its CPU; such measurements are left out where there are undisturbed ones.",
    ]
    for title, text, (head, rows) in sections:
        if rows:
            parts += [f"## {title}", *filter(None, [text]), _table(head, rows)]
    if skipped or store.errors:
        parts += ["## Not measured", "\n".join(f"- {s}" for s in skipped + store.errors)]
    return "\n\n".join([*parts, "## Commands", "\n".join(["```", *commands, "```"])]) + "\n"
