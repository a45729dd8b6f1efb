# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what was measured, and the project's aims beside it."""
from . import libpcap
from .stats import cell

M = 1e-6


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _ratio(a, b):
    return a.median() / b.median() if a and b and b.median() else None


def _percent(ratio):
    return "–" if ratio is None else f"{ratio * 100:.0f} %"


def _keys(store, sink):
    return sorted({k[1:] for k in store.series if k[0] == "captured" and k[4] == sink})


def capture_table(store, sink):
    rows = []
    for source, size, tool, _ in _keys(store, sink):
        key = (source, size, tool, sink)
        untouched = store.get("untouched", source, size)
        attached, captured = store.get("attached", *key), store.get("captured", *key)
        rows.append([source, str(size), tool, cell(untouched, M),
                     cell(store.get("loaded", source, size), M) if tool == "ringtap" else "–",
                     cell(attached, M), _percent(_ratio(attached, untouched)),
                     cell(store.get("after", *key), M), cell(captured, M),
                     cell(captured, size * 8e-9), cell(store.get("loss", *key), 100, 2),
                     cell(store.get("disturbed", *key), 100, 0)])
    head = ["source", "bytes", "tool", "untouched", "plugin loaded", "attached", "of untouched",
            "afterwards", "captured Mpps", "captured Gbit/s", "loss %", "disturbed %"]
    return table(head, rows)


def disk_table(store):
    dd = store.get("dd")
    rows = []
    for source, size, tool, sink in _keys(store, "disk"):
        file = store.get("file", source, size, tool, sink)
        rows.append([source, str(size), tool, cell(file, M, 0), _percent(_ratio(file, dd))])
    return table(["source", "bytes", "tool", "MB/s in the file", "of dd"], rows)


def copy_table(store):
    """Rate against the bare loop; the ceiling is what testpmd would do if each packet cost it what it
    costs untouched, and one round of the bare loop."""
    rows = []
    for size in sorted(k[2] for k in store.series if k[0] == "copy"):
        loop = store.get("copy", size=size)
        captured = store.get("captured", "net_null", size, "ringtap", "null")
        top = ceiling(store, "net_null", size)
        rows.append([str(size), cell(loop, M), cell(loop, (size + 52) * 1e-9),
                     cell(captured, M), _percent(_ratio(captured, loop)),
                     "–" if top is None else f"{top * M:.1f}",
                     "–" if top is None or not captured else _percent(captured.median() / top),
                     _percent(net_ratio(store, "net_null", size))])
    return table(["bytes", "copy loop Mpps", "GB/s", "captured Mpps", "ratio", "ceiling Mpps",
                  "of ceiling", "ratio without testpmd's own time"], rows)


def ceiling(store, source, size):
    """Packets per second if a packet costs the application's own time and one round of the loop."""
    untouched, loop = store.get("untouched", source, size), store.get("copy", size=size)
    if not untouched or not loop:
        return None
    return 1 / (1 / untouched.median() + 1 / loop.median())


def net_ratio(store, source, size):
    """Rate of the hook alone, from the time per packet that it adds, relative to the copy loop."""
    untouched = store.get("untouched", source, size)
    attached = store.get("attached", source, size, "ringtap", "null")
    loop = store.get("copy", size=size)
    if not (untouched and attached and loop):
        return None
    added = 1 / attached.median() - 1 / untouched.median()
    return 1 / added / loop.median() if added > 0 else None


def pcap_table(store):
    rows = [[source, tool, cell(store.get("pcap", source, 64, tool), M, 2),
             cell(store.get("pcap_loss", source, 64, tool), 100, 3)]
            for source, tool in (("net_null", "ringtap"), (libpcap.STEADY, "ringtap"), ("veth", "system"))
            if store.get("pcap", source, 64, tool)]
    return table(["64 bytes from", "libpcap", "Mpps", "loss %"], rows)


def filter_table(store):
    rows = []
    for source in sorted(k[1] for k in store.series if k[0] == "filtered"):
        before, attached = store.get("unfiltered", source, 64), store.get("filtered", source, 64)
        rows.append([source, cell(before, M), cell(attached, M), _percent(_ratio(attached, before)),
                     f"{(1 / attached.median() - 1 / before.median()) * 1e9:.1f}"])
    return table(["source", "untouched Mpps", "filtered Mpps", "of untouched", "ns per packet"], rows)


def pcap_aims(store):
    """Of a libpcap program on a port."""
    ours, loss = store.get("pcap", "net_null", 64, "ringtap"), store.get("pcap_loss", libpcap.STEADY, 64, "ringtap")
    times = _ratio(ours, store.get("pcap", "veth", 64, "system"))
    kept, worst = (_ratio(store.get("filtered", s, 64), store.get("unfiltered", s, 64))
                   for s in (libpcap.ONE_IN_100, libpcap.NOTHING))
    mpps = ours.median()
    return [
        _line("pcap_loop on net_null", ">= 30 Mpps", mpps, (mpps or 0) >= 30e6, cell(ours, M) + " Mpps"),
        _line(f"its loss, {libpcap.STEADY}", "none", loss.median(), loss.median() == 0,
              f"{cell(loss, 100, 3)} %"),
        _line("against the system's libpcap on a veth", ">= 20 x", times, (times or 0) >= 20,
              f"{times or 0:.0f} x"),
        _line("application while a filter passes 1 %", ">= 80 % of untouched", kept, (kept or 0) >= 0.8,
              f"{_percent(kept)}; from net_null, passing nothing, {_percent(worst)}"),
    ]


def _line(name, aim, value, reached, text):
    return {"aim": name, "wanted": aim, "value": value, "text": text,
            "reached": None if value is None else reached}


def aims(store):
    """The issue's aims: 64 bytes from net_null to /dev/null, unless said otherwise."""
    key = ("net_null", 64, "ringtap", "null")
    captured, loss = store.get("captured", *key), store.get("loss", *key)
    dumpcap = store.get("captured", "net_null", 64, "dpdk-dumpcap", "null")
    untouched, loaded = store.get("untouched", "net_null", 64), store.get("loaded", "net_null", 64)
    app = _ratio(store.get("attached", *key), untouched)
    loop = _ratio(captured, store.get("copy", size=64))
    net = net_ratio(store, "net_null", 64)
    top = ceiling(store, "net_null", 64)
    possible = f"; the copy loop would leave {_percent(top / untouched.median())}" if top else ""
    merge = min((s.median() for k, s in store.series.items() if k[0] == "merge"), default=None)
    disk = max((r for r in (_ratio(store.get("file", *k), store.get("dd"))
                            for k in _keys(store, "disk") if k[2] == "ringtap") if r), default=None)
    times, idle = _ratio(captured, dumpcap), _ratio(loaded, untouched)
    mpps = captured.median()
    lost = loss.median()
    return [
        _line("captured", ">= 80 Mpps", mpps, (mpps or 0) >= 80e6, cell(captured, M) + " Mpps"),
        _line("against dpdk-dumpcap", ">= 10 x", times, (times or 0) >= 10,
              f"{times or 0:.1f} x"),
        _line("loss", "none", lost, lost == 0, f"{(lost or 0) * 100:.3f} %"),
        _line("application while captured", ">= 60 % of untouched", app, (app or 0) >= 0.6,
              _percent(app) + possible),
        _line("against the copy loop", ">= 80 %", loop, (loop or 0) >= 0.8, _percent(loop)),
        _line("the same, without testpmd's own time", ">= 80 %", net, (net or 0) >= 0.8,
              _percent(net)),
        _line("merging, slowest case", ">= 40 Mpps", merge, (merge or 0) >= 40e6,
              f"{(merge or 0) * M:.1f} Mpps"),
        _line("to disk, best source", ">= 90 % of dd", disk, (disk or 0) >= 0.9, _percent(disk)),
        _line("plugin loaded, nothing attached", "no difference", idle,
              (idle or 0) >= 0.97 or _overlap(loaded, untouched),
              f"{_percent(idle)} of untouched"),
        *pcap_aims(store),
    ]


def _overlap(a, b):
    return bool(a and b) and min(a) <= max(b) and min(b) <= max(a)


def aims_table(lines):
    words = {None: "not measured", True: "yes", False: "no"}
    return table(["aim", "wanted", "measured", "reached"],
                 [[a["aim"], a["wanted"], a["text"] if a["value"] is not None else "–",
                   words[a["reached"]]] for a in lines])


def merge_table(store):
    keys = sorted(k for k in store.series if k[0] == "merge")
    return table(["rings", "taking turns by", "Mpps on one core"],
                 [[str(k[2]), k[1], cell(store.series[k], M)] for k in keys])


def _section(title, *parts):
    """Nothing at all if its last part is a table without rows."""
    return [] if parts[-1].count("\n") < 2 else [f"## {title}", ""] + [f"{p}\n" for p in parts]


def markdown(store, machine, commands, skipped):
    dd = f"dd oflag=direct in the same folder: {cell(store.get('dd'), M, 0)} MB/s. " \
         "Until all is on the disk:"
    parts = ["# ringtap benchmark", "",
             ", ".join(f"{k} {v}" for k, v in machine.items() if v is not None), "",
             "Medians, least and most in brackets; rates of the application in Mpps. Disturbed: share of "
             "the time that a thread waited because others used its cpu; such measurements are left "
             "out where there are undisturbed ones.", ""]
    parts += _section("Aims", aims_table(aims(store)))
    parts += _section("To /dev/null", capture_table(store, "null"))
    parts += _section("To a file", capture_table(store, "disk"))
    parts += _section("Speed of the file", dd, disk_table(store))
    parts += _section("Bare copy loop, and capturing from net_null to /dev/null",
                      copy_table(store))
    parts += _section("Merging", merge_table(store))
    parts += _section("A libpcap program that counts (bench/pcap_count)", pcap_table(store))
    parts += _section(f"A filter in the application ({libpcap.EXPRESSION})",
                      "Per second of the polling thread's time.", filter_table(store))
    if skipped or store.errors:
        parts += ["## Not measured", ""] + [f"- {s}" for s in skipped + store.errors] + [""]
    return "\n".join(parts + ["## What was run", "", "```"] + commands + ["```", ""])
