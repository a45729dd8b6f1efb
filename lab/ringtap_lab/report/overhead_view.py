# SPDX-License-Identifier: BSD-3-Clause
"""How the experiment overhead is shown."""
import statistics
from dataclasses import dataclass

from .blocks import CONFIRMED, DASH, DIFFERENT, MINUS, OPEN, PARTLY, Claim, Plot, Table, Value, Verdict

ONCE = 0.03  # error of what was measured only once
TOO_NOISY = 0.05  # of the rate: nothing can be said of what is off
NOTHING = 0.01  # of the rate: less is not told from nothing, and neither is what "nothing" itself shows


@dataclass(frozen=True)
class Row:
    """off, on: cells. published_off, published_on: percent, DPDK 19.11."""

    name: str
    off: str | None
    on: str
    published_off: float | None = None
    published_on: float | None = None


ROWS = [
    Row("nothing, twice: what the method shows", None, "same"),
    Row("ringtap record", "probe-off", "record-on"),
    Row("ringtap record, filter passes all", "probe-off", "record-all-on"),
    Row("ringtap record, filter passes none", "probe-off", "record-none-on"),
    Row("dpdk-dumpcap", "dumpcap-off", "dumpcap-on"),
    Row("dpdk-dumpcap, filter passes all", "dumpcap-off", "dumpcap-all-on"),
    Row("dpdk-dumpcap, filter passes none", "dumpcap-off", "dumpcap-none-on"),
    Row("dpdk-pdump", "pdump-off", "pdump-on", None, -36.85),
    Row("LTTng", "lttng-off", "lttng-on", -0.42, -0.02),
    Row("USDT, bpftrace counts", "probe-off", "usdt-on", -0.01, -56.72),
    Row("USDT, ringtap trace burst", "probe-off", "trace-burst-on"),
    Row("rte_trace", "probe-off", "rte_trace-on"),
    Row("ringtap top, polls only", "probe-off", "polls-on"),
    Row("ringtap top", "probe-off", "top-on"),
    Row("ringtap latency", "probe-off", "latency-on"),
    Row("testpmd --latencystats", None, "latencystats-on"),
]
CAPTURING = ("record", "record-all", "record-none", "dumpcap", "dumpcap-all", "dumpcap-none", "pdump")
TRACING = ("lttng-on", "usdt-on", "trace-burst-on", "rte_trace-on")


def percent(value):
    return DASH if value is None else f"{value:.2f} %".replace("-", MINUS)


def change(key, metric="change"):
    return Value(key, metric, 100, 2, "%") if key else DASH


def rows_of(results, keys=None):
    return [r for r in ROWS if results.cell(r.on) and (keys is None or r.on in keys)]


def _changes(results):
    rows = [[r.name, change(r.off), percent(r.published_off), change(r.on), percent(r.published_on),
             Value(r.on, "added_ns", 1, 2), Value(r.on, "pps", 1e-6), Value(r.on, "untouched_pps", 1e-6),
             Value(r.on, "drift", 100, 1)] for r in rows_of(results)]
    return Table("Change of received packets per second", [
        "instrument", "disabled", "published", "enabled", "published", "ns added to a packet", "Mpps", "Mpps without",
        "drift, %"], rows,
        note="Disabled: of ringtap, USDT and rte_trace the probe is loaded, and its hooks are not in; of LTTng the provider is loaded, "
             "too, and a session daemon runs; dpdk-dumpcap and dpdk-pdump were attached, and have gone. latencystats is chosen when "
             "testpmd starts, and its periodic update runs on another lcore. As nothing is sent, ringtap latency and latencystats do only what they do at reception. Drift: how "
             "much faster the application by itself was afterwards than before. The published ones were measured "
             "with another version, on a NIC, with trace points that others put elsewhere: their percentages say how much it was there.")


def _captured(results):
    keys = [f"{name}-on" for name in CAPTURING]
    rows = [[r.name, Value(r.on, "pps", 1e-6), Value(r.on, "captured_pps", 1e-6, 2), Value(r.on, "loss", 100, 2)]
            for r in rows_of(results, keys)]
    return Table("What those that capture got", [
        "instrument", "application, Mpps", "captured, Mpps", "lost of what should be captured, %"], rows,
        note="To /dev/null. Filters look at the same bytes, \"not udp port 53\" and \"udp port 53\". dpdk-pdump has none; "
             "what it lost is counted from just after it was attached, and so a little too low.")


def _traced(results):
    rows = [[r.name, change(r.off), change(r.on, "hooks_change"), change(r.on), Value(r.on, "event_ns", 1, 0),
             Value(r.on, "per_event", 1, 0), Value(r.on, "events", 1, 0), Value(r.on, "lost_events", 1, 0)]
            for r in rows_of(results, TRACING)]
    return Table("What tracing costs by the event", [
        "tracer", "hooks out", "hooks in, nobody traces", "traced", "ns added by an event", "packets of an event", "events",
        "discarded"], rows,
        note="An event is a burst. bpftrace counts events and adds up their packets, ringtap trace burst has it make a histogram of them, LTTng records them to the disk, rte_trace keeps "
             "the last ones in memory and overwrites the others, which count as discarded; its events are bursts of 32, and so are LTTng's, whose number is "
             "that of the packets that the port received. An event that is discarded costs less than one that is recorded. An event's time is that of a packet while traced, less that with the hooks in, times its "
             "packets.")


def _plot(results):
    shown = [r for r in ROWS if results.series(r.on, "change")]

    def draw(axes):
        series = [results.series(r.on, "change") for r in shown]
        axes.barh(range(len(shown)), [s.mean() * 100 for s in series],
                  xerr=[(s.deviation() or 0) * 100 for s in series], height=0.6, error_kw={"capsize": 2})
        published = [(r.published_on, place) for place, r in enumerate(shown) if r.published_on is not None]
        if published:
            axes.plot(*zip(*published), "*", color="black", markersize=9, label="published")
            axes.legend(fontsize=8)
        axes.set_yticks(range(len(shown)), [r.name for r in shown], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("change of the application's rate, %")
        axes.grid(axis="y", visible=False)

    return Plot("Change of the application's rate, enabled", draw, [r.on for r in shown],
                published="; ".join(f"{r.name} {percent(r.published_on)}" for r in ROWS if r.published_on is not None) + " (stars)",
                note="Mean and standard deviation.", height=0.3 + 0.05 * len(shown))


def blocks(results):
    found = [_changes(results), _plot(results), _captured(results), _traced(results)]
    return [b for b in found if isinstance(b, Plot) or b.rows]


def _noise(results):
    """What nothing itself shows; and as nothing that is off makes an application faster, so are gains."""
    gains = [statistics.median(results.series(key, "change")) for key in {r.off for r in ROWS if r.off}
             if results.series(key, "change")]
    return max([NOTHING, *(abs(c) for c in results.series("same", "change")), *gains])


def _costs_something(results, key):
    """More than the noise, and than is likely to be chance."""
    series = results.series(key, "change")
    noise = _noise(results)
    error = series.deviation() / len(series) ** 0.5 if len(series) > 1 else ONCE
    return series.mean() < -noise - 2 * error


def _verdict(results, off, on, most, texts):
    """most: the change that was claimed of it when it is on, None: nothing that matters. texts: if it is so; if it costs
    nothing measurable although it should; if it costs something although it should not; if even off it does."""
    if any(key and not results.series(key, "change") for key in (off, on)):
        return Verdict(OPEN)
    if off and _costs_something(results, off):
        return Verdict(DIFFERENT, texts[3])
    costs = _costs_something(results, on)
    if not costs and _noise(results) > TOO_NOISY or off and _noise(results) > TOO_NOISY:
        return Verdict(OPEN, "Applications without any instrument differ by more than it may cost.")
    if most is None:
        return Verdict(PARTLY, texts[2]) if costs else Verdict(CONFIRMED, texts[0])
    if not costs:
        return Verdict(DIFFERENT, texts[1])
    if results.mean(on, "change") > most:
        return Verdict(PARTLY, "It costs something, but less than that.")
    return Verdict(CONFIRMED, texts[0])


def summary(results):
    def ours(*rows):
        return [(name, change(key)) for name, key in rows]

    def published(key, state):
        row = next(r for r in ROWS if r.on == key)
        return f"{percent(getattr(row, 'published_' + state))}, {state}"

    bare = "this application does nothing else with a packet"
    return [
        Claim("dpdk-pdump costs an application more than a third of its rate.", published("pdump-on", "on"),
              ours(("dpdk-pdump, on", "pdump-on"), ("dpdk-dumpcap, on", "dumpcap-on"), ("ringtap record, on", "record-on"),
                   ("ringtap, off", "probe-off")),
              _verdict(results, None, "pdump-on", -1 / 3, (
                  f"Capturing each packet is not free, whoever does it, and {bare}.", "It costs nothing measurable.", "", ""))),
        Claim("LTTng costs nothing that matters, neither off nor on.",
              f"{published('lttng-on', 'off')}; {published('lttng-on', 'on')}",
              ours(("LTTng, off", "lttng-off"), ("LTTng, on", "lttng-on")),
              _verdict(results, "lttng-off", "lttng-on", None, (
                  "Nothing measurable.", "", f"Off it costs nothing measurable; on it does, as {bare}.",
                  "Even off it costs something."))),
        Claim("bpftrace costs nothing while it does not look, and more than half of the rate while it does.",
              f"{published('usdt-on', 'off')}; {published('usdt-on', 'on')}",
              ours(("ringtap with USDT, off", "probe-off"), ("USDT under bpftrace, on", "usdt-on")),
              _verdict(results, "probe-off", "usdt-on", -1 / 2, (
                  "Off nothing measurable; each burst that it looks at traps into the kernel.",
                  "On it costs nothing measurable.", "", "Even off it costs something.")))]
