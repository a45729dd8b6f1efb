# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what was measured, and the project's aims beside it."""
from ..run import collectors, forwarders, libpcap
from ..tools.stats import cell

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


def _instrumented(store, quantity, label):
    return store.get(quantity, "net_null", collectors.SIZE, label)


def instrument_table(store):
    rows = [[label, cell(_instrumented(store, "instrumented", label), M),
             cell(_instrumented(store, "instrumented_share", label), 100),
             cell(_instrumented(store, "instrumented_seconds", label), 1e9, 2)]
            for label in collectors.ROWS if _instrumented(store, "instrumented", label)]
    return table(["on", "Mpps", "% of the rate without", "ns added to a packet"], rows)


def instrument_aims(store):
    """Slowdown: of the rate what is lost, and the time that is added to a packet; both are given."""
    off, polls, polling, ours, peer = (
        _instrumented(store, "instrumented_share", label).median() for label in
        (collectors.LOADED, collectors.POLLS, collectors.POLLING, collectors.LATENCY,
         collectors.LATENCYSTATS))
    lost = (1 - ours) / (1 - peer) if ours and peer and peer < 1 else None
    added = _ratio(*(_instrumented(store, "instrumented_seconds", label)
                     for label in (collectors.LATENCY, collectors.LATENCYSTATS)))
    spread = _instrumented(store, "instrumented", collectors.UNTOUCHED)
    return [
        _line("probe loaded, no instrument on", "nothing measurable", off,
              (off or 0) >= 0.99 or _overlap(
                  _instrumented(store, "instrumented", collectors.LOADED), spread),
              f"{_percent(off)} of untouched"),
        _line("instruments polls, busy, gaps", "<= 3 % slower", polling, (polling or 0) >= 0.97,
              f"{(1 - (polling or 0)) * 100:.1f} %; polls alone {(1 - (polls or 0)) * 100:.1f} %"),
        _line("latency of every packet, rate lost", "< 1/3 of latencystats", lost, (lost or 1) < 1 / 3,
              f"{lost or 0:.2f}"),
        _line("the same, time added to a packet", "< 1/3 of latencystats", added,
              (added or 1) < 1 / 3, f"{added or 0:.2f}"),
    ]


def forwarder_table(store):
    rows = []
    for source in forwarders.SOURCES:
        for label in (forwarders.TESTPMD, forwarders.PLAIN, forwarders.STATS):
            key = (source, forwarders.SIZE, label)
            if store.get("forwarded", *key):
                shares = (store.get("forwarded_share", *key, beside)
                          for beside in (forwarders.TESTPMD, forwarders.PLAIN))
                rows.append([source, label, cell(store.get("forwarded", *key), M),
                             *(cell(share, 100) for share in shares)])
    return table(["between two", "forwarder", "Mpps", "% of testpmd", "% of it without statistics"],
                 rows)


def forwarder_aims(store):
    lines = []
    for source in forwarders.SOURCES:
        for label, wanted, least in ((forwarders.PLAIN, ">= testpmd's io", 1.0),
                                     (forwarders.STATS, "<= 5 % below testpmd's io", 0.95)):
            share = store.get("forwarded_share", source, forwarders.SIZE, label, forwarders.TESTPMD)
            value = share.median()
            lines.append(_line(f"{label} over {source}", wanted, value, (value or 0) >= least,
                               f"{cell(share, 100)} %"))
    return lines


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
        *instrument_aims(store),
        *forwarder_aims(store),
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
    parts += _section(f"Instruments, while testpmd forwards from one port (io, net_null, {collectors.SIZE} bytes)",
                      "Per second of the polling thread's time. An instrument is compared with the time "
                      "just before and after, others with an untouched testpmd of the same turn.",
                      instrument_table(store))
    parts += _section(f"Forwarders, both ways between two ports (io, {forwarders.SIZE} bytes)",
                      "Packets of both directions per second of the polling thread's time.",
                      forwarder_table(store))
    if skipped or store.errors:
        parts += ["## Not measured", ""] + [f"- {s}" for s in skipped + store.errors] + [""]
    return "\n".join(parts + ["## What was run", "", "```"] + commands + ["```", ""])
