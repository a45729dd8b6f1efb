# SPDX-License-Identifier: BSD-3-Clause
"""How the experiment overhead is shown."""
from .blocks import CONFIRMED, DASH, DIFFERENT, MINUS, OPEN, PARTLY, Claim, Plot, Table, Value, Verdict

PUBLISHED = {"pdump-on": "−36.85 %", "lttng-off": "−0.42 %", "lttng-on": "−0.02 %", "usdt-off": "−0.01 %",
             "usdt-on": "−56.72 %"}
NOTHING = 0.01  # of the rate: less is not told from nothing, and neither is what "nothing" itself shows
OF_TESTPMD = "nothing to load"
# Name, cell or text of "disabled", cell of "enabled".
ROWS = [
    ("nothing, twice: what the method shows", None, "same"),
    ("ringtap record", "probe-off", "record-on"),
    ("ringtap record, filter passes all", "probe-off", "record-all-on"),
    ("ringtap record, filter passes none", "probe-off", "record-none-on"),
    ("dpdk-dumpcap", "dumpcap-off", "dumpcap-on"),
    ("dpdk-dumpcap, filter passes all", "dumpcap-off", "dumpcap-all-on"),
    ("dpdk-dumpcap, filter passes none", "dumpcap-off", "dumpcap-none-on"),
    ("dpdk-pdump", "pdump-off", "pdump-on"),
    ("ringtap top, polls only", "probe-off", "polls-on"),
    ("ringtap top", "probe-off", "top-on"),
    ("ringtap latency", "probe-off", "latency-on"),
    ("testpmd --latencystats=1", None, "latencystats-on"),
]
CAPTURING = ("record", "record-all", "record-none", "dumpcap", "dumpcap-all", "dumpcap-none", "pdump")


def _change(key):
    return Value(key, "change", 100, 2, "%") if key else DASH


def _changes(results):
    rows = []
    for name, off, on in ROWS:
        if not results.cell(on):
            continue
        rows.append([name, _change(off), PUBLISHED.get(off, DASH), _change(on), PUBLISHED.get(on, DASH),
                     Value(on, "added_ns", 1, 2), Value(on, "pps", 1e-6), Value(on, "untouched_pps", 1e-6)])
    return Table("Change of received packets per second", [
        "instrument", "disabled", "published", "enabled", "published", "ns added to a packet", "Mpps", "Mpps without"], rows,
        note="Disabled, of ringtap: the probe is loaded and its hooks are not in. Of dpdk-dumpcap and dpdk-pdump: they were attached, "
             "and have gone. latencystats is chosen when testpmd starts. As nothing is sent, ringtap latency and latencystats "
             "do only what they do at reception.")


def _captured(results):
    rows = [[name, Value(on, "pps", 1e-6), Value(on, "captured_pps", 1e-6, 2), Value(on, "loss", 100, 2)]
            for name, _, on in ROWS if on.removesuffix("-on") in CAPTURING and results.cell(on)]
    return Table("What those that capture got", [
        "instrument", "application, Mpps", "captured, Mpps", "lost of what should be captured, %"], rows,
        note="To /dev/null. Filters look at the same bytes, \"not udp port 53\" and \"udp port 53\".")


def _plot(results):
    shown = [(name, on) for name, _, on in ROWS if results.series(on, "change")]

    def draw(axes):
        series = [results.series(on, "change") for _, on in shown]
        places = range(len(shown))
        axes.barh(places, [s.mean() * 100 for s in series], xerr=[(s.deviation() or 0) * 100 for s in series],
                  height=0.6, error_kw={"capsize": 2})
        for place, (_, on) in enumerate(shown):
            if on in PUBLISHED:
                value = float(PUBLISHED[on].replace(MINUS, "-").removesuffix(" %"))
                axes.plot([value], [place], "*", color="black", markersize=9,
                          label="published" if on == "pdump-on" else None)
        axes.set_yticks(places, [name for name, _ in shown], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("change of the application's rate, %")
        axes.grid(axis="y", visible=False)
        if any(on == "pdump-on" for _, on in shown):
            axes.legend(fontsize=8)

    return Plot("Change of the application's rate, enabled", draw, [on for _, on in shown],
                published="; ".join(f"{name} {PUBLISHED[on]}" for name, _, on in ROWS if on in PUBLISHED) + " (stars)",
                note="Mean and standard deviation.", height=0.3 + 0.06 * len(shown))


def blocks(results):
    return [_changes(results), _plot(results), _captured(results)]


def _cost(results, key):
    return Value(key, "change", 100, 2, "%").number(results)


def _verdict(results, off, on, much, texts):
    """much: whether it was published that it costs something when it is on. texts: if it is so; if it costs
    nothing measurable although it should; if it costs something although it should not; if even off it does."""
    noise = max([NOTHING, *(abs(c) for c in results.series("same", "change"))])
    costs = [_cost(results, key) for key in (off, on) if key]
    if None in costs:
        return Verdict(OPEN)
    if len(costs) == 2 and costs[0] < -noise:
        return Verdict(DIFFERENT, texts[3])
    if much == (costs[-1] < -noise):
        return Verdict(CONFIRMED, texts[0])
    return Verdict(DIFFERENT, texts[1]) if much else Verdict(PARTLY, texts[2])


def summary(results):
    def ours(*rows):
        return [(name, _change(key)) for name, key in rows]

    bare = "this application does nothing else with a packet"
    return [
        Claim("dpdk-pdump costs an application more than a third of its rate.", f"{PUBLISHED['pdump-on']}, on",
              ours(("dpdk-pdump, on", "pdump-on"), ("dpdk-dumpcap, on", "dumpcap-on"), ("ringtap record, on", "record-on"),
                   ("ringtap, off", "probe-off")),
              _verdict(results, None, "pdump-on", True, (
                  f"Capturing each packet is not free, whoever does it, and {bare}.", "It costs nothing measurable.", "", ""))),
        Claim("LTTng costs nothing that matters, neither off nor on.",
              f"{PUBLISHED['lttng-off']} off, {PUBLISHED['lttng-on']} on",
              ours(("LTTng, off", "lttng-off"), ("LTTng, on", "lttng-on")),
              _verdict(results, "lttng-off", "lttng-on", False, (
                  "Nothing measurable.", "", f"Off it costs nothing measurable; on it does, as {bare}.",
                  "Even off it costs something."))),
        Claim("bpftrace costs nothing while it does not look, and more than half of the rate while it does.",
              f"{PUBLISHED['usdt-off']} off, {PUBLISHED['usdt-on']} on",
              ours(("USDT, off", "usdt-off"), ("USDT under bpftrace, on", "usdt-on")),
              _verdict(results, "usdt-off", "usdt-on", True, (
                  "Off nothing measurable; each burst that it looks at traps into the kernel.",
                  "On it costs nothing measurable.", "", "Even off it costs something.")))]
