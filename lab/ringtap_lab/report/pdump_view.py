# SPDX-License-Identifier: BSD-3-Clause
"""How the experiment pdump is shown."""
from .blocks import BETTER, CONFIRMED, DASH, DIFFERENT, OPEN, PARTLY, Claim, Plot, Table, Value, Verdict
from .plots import COLOURS, MARKERS, plain

PORTS = 2
SIZES = (64, 128, 256, 320, 384, 512)
SMALLEST = SIZES[0]
LINE_BPS = PORTS * 10e9
GAP = 20  # bytes of preamble and gap before and after a frame on the wire
UNTOUCHED, DUMPCAP, PACKET, BUFFER, BATCH, TOUCH = "untouched", "dumpcap", "packet", "buffer", "batch", "touch"
WAYS = {UNTOUCHED: "nobody captures", DUMPCAP: "dpdk-dumpcap (both directions)", PACKET: "a write for each packet",
        BUFFER: "copied into a buffer of 1 MiB", BATCH: "ringtap record: batches as they are", TOUCH: "touch only, not written"}
OURS = (PACKET, BUFFER, BATCH, TOUCH)
CAPTURING = (DUMPCAP, *OURS)
PUBLISHED = {DUMPCAP: 6.5, BUFFER: 13.9, BATCH: 19.1}  # Gbit/s of 20 captured
PUBLISHED_FORWARDING = "2 × 9.8 → 7.2 → 9.5"  # Gbit/s meanwhile; the last one certainly with batches
G = 1e-9


def line_pps(size):
    """Packets per second of both ports at line rate."""
    return LINE_BPS / 8 / (size + GAP)


def _published(size, way):
    return f"{PUBLISHED[way]:.1f}" if size == SMALLEST and way in PUBLISHED else DASH


def _sizes(results):
    return [s for s in SIZES if any(results.cell(f"{way}-{s}") for way in WAYS)]


def _table(results):
    rows = []
    for size in _sizes(results):
        for way, name in WAYS.items():
            key = f"{way}-{size}"
            if not results.cell(key):
                continue
            captures = way != UNTOUCHED
            rows.append([
                f"{size} B, {name}", Value(key, "captured_bps", G, 1) if captures else DASH, _published(size, way),
                Value(key, "captured_pps", 1e-6, 1) if captures else DASH,
                Value(key, "captured_line", 100, 0) if captures else DASH,
                Value(key, "loss", 100, 2) if captures else DASH, Value(key, "forwarded_bps", G, 1),
                Value(key, "forwarded_pps", 1e-6, 1), Value(key, "forwarded_line", 100, 0),
                Value(key, "of_untouched", 100, 0) if captures else DASH, Value(key, "disturbed", 100, 0)])
    return Table("Captured, and forwarded meanwhile, at the application's limit", [
        "size, way", "captured, Gbit/s", "published", "Mpps", "of line rate, %", "lost, %", "forwarded, Gbit/s",
        "Mpps", "of line rate, %", "of untouched, %", "disturbed, %"], rows,
        published=f"{SMALLEST} B, captured 6.5 → 13.9 → 19.1 of 20 Gbit/s, as dpdk-dumpcap was (a write for each packet), with "
                  f"buffered writes, and with batches; forwarded meanwhile {PUBLISHED_FORWARDING} Gbit/s.",
        note="Of both ports together; line rate is 20 Gbit/s, with 20 bytes of preamble and gap for each packet, which all rates "
             "in bit/s contain. The application is not bound by it: it does what its CPU can. dpdk-dumpcap cannot be told to take "
             "one direction only: half of what it captures is what the ports send, so that it can come to twice what is forwarded. Disturbed: "
             "the share of the time that the polling thread waited for its CPU; others' time on it is taken out of the "
             "rates, but gives whoever captures more time than it would have.")


def _paced(results):
    rows = [[WAYS[way], Value(key, "captured_bps", G, 2), Value(key, "captured_line", 100, 2), Value(key, "loss", 100, 4),
             Value(key, "forwarded_line", 100, 2)]
            for way in OURS if results.cell(key := f"paced-{way}")]
    return Table(f"Captured at exactly line rate, {SMALLEST} bytes", [
        "way", "captured, Gbit/s", "of line rate, %", "lost, %", "received, of line rate, %"], rows,
        note="Received: while the tool was attached. ringtap-fwd takes what two ports of 10 Gbit/s bring at most, and when it begins, up to 20 ms' worth at once. dpdk-dumpcap cannot attach to it: an application has to "
             "call rte_pdump_init() for that.") if rows else None


def _plot(results, metric, title, ways, more=None):
    shown = [f"{way}-{size}" for way in ways for size in _sizes(results) if results.series(f"{way}-{size}", metric)]

    def draw(axes):
        for i, way in enumerate(WAYS):
            found = [(s, results.series(f"{way}-{s}", metric)) for s in _sizes(results) if f"{way}-{s}" in shown]
            if found:
                axes.errorbar([s for s, _ in found], [x.mean() * G for _, x in found],
                              yerr=[(x.deviation() or 0) * G for _, x in found], capsize=2, color=COLOURS[i],
                              marker=MARKERS[i], label=WAYS[way])
        axes.axhline(LINE_BPS * G, color="grey", linestyle="--", label="line rate of two ports")
        if more:
            axes.plot([SMALLEST] * len(more), list(more.values()), "*", color="black", markersize=8, label="published")
        axes.set_xlabel("bytes of a packet")
        axes.set_ylabel("Gbit/s")
        axes.set_yscale("log")
        plain(axes.yaxis)
        axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))

    return Plot(title, draw, shown, note="Mean and standard deviation. Log scale.", height=0.8, published=(
        f"{SMALLEST} B: 6.5 → 13.9 → 19.1 of 20 Gbit/s (stars)" if more else f"{SMALLEST} B: {PUBLISHED_FORWARDING} Gbit/s"))


def blocks(results):
    found = [_table(results), _plot(results, "captured_bps", "Captured by packet size", CAPTURING, PUBLISHED),
             _plot(results, "forwarded_bps", "Forwarded by packet size", WAYS), _paced(results)]
    return [b for b in found if b]


def _bits(way, metric="captured_bps"):
    return Value(f"{way}-{SMALLEST}", metric, G, 1, "Gbit/s")


def _claim_ways(results):
    one, buffered, batch = (_bits(way).number(results) for way in (PACKET, BUFFER, BATCH))
    least = PUBLISHED[BATCH] / PUBLISHED[DUMPCAP]
    if None in (one, buffered, batch):
        verdict = Verdict(OPEN)
    elif one < buffered < batch and batch >= least * one:
        verdict = Verdict(CONFIRMED, "Batches in the file's format do as much better as published, or more.")
    elif one < batch:
        verdict = Verdict(PARTLY, "Batches capture more than one write for each packet; the steps are not those published.")
    else:
        verdict = Verdict(DIFFERENT, "The way of writing does not decide here.")
    return Claim("How packets are written decides how many are captured: one by one, buffered, in batches.",
                 "6.5 → 13.9 → 19.1 of 20 Gbit/s",
                 [("dpdk-dumpcap, both directions", _bits(DUMPCAP)), ("ringtap, one by one", _bits(PACKET)), ("buffered", _bits(BUFFER)),
                  ("batches", _bits(BATCH))], verdict)


def _claim_line_rate(results):
    share, lost = (Value(f"paced-{BATCH}", metric, 100, 2, "%") for metric in ("captured_line", "loss"))
    reached, offered = share.number(results), results.mean(share.cell, "forwarded_line")
    known = PUBLISHED[BATCH] / (LINE_BPS * G)
    if reached is None:
        verdict = Verdict(OPEN)
    elif offered < known:
        verdict = Verdict(OPEN, "The application itself did not receive at line rate.")
    elif reached >= known:
        verdict = Verdict(CONFIRMED, "So it is here, of the smallest packets.")
    else:
        verdict = Verdict(DIFFERENT, "Less of it is captured here.")
    return Claim("Batches capture nearly all that two ports of 10 Gbit/s bring.", f"{PUBLISHED[BATCH]} of 20 Gbit/s",
                 [("captured, of line rate", share), ("lost", lost)], verdict)


def _claim_forwarding(results):
    dumpcap, batch = (_bits(way, "forwarded_bps").number(results) for way in (DUMPCAP, BATCH))
    if None in (dumpcap, batch):
        verdict = Verdict(OPEN)
    elif batch > dumpcap:
        verdict = Verdict(BETTER, "Faster than while dpdk-dumpcap captures, though more is captured.")
    elif batch > 0.9 * dumpcap:
        verdict = Verdict(CONFIRMED, "Nearly as fast, though more is captured.")
    else:
        verdict = Verdict(DIFFERENT, "Slower than while dpdk-dumpcap captures.")
    return Claim("With batches the application forwards nearly as fast as while dpdk-dumpcap captures less.",
                 f"{PUBLISHED_FORWARDING} Gbit/s",
                 [("nobody captures", _bits(UNTOUCHED, "forwarded_bps")), ("dpdk-dumpcap", _bits(DUMPCAP, "forwarded_bps")),
                  ("ringtap, one by one", _bits(PACKET, "forwarded_bps")),
                  ("ringtap, buffered", _bits(BUFFER, "forwarded_bps")), ("batches", _bits(BATCH, "forwarded_bps"))], verdict)


def summary(results):
    return [_claim_ways(results), _claim_line_rate(results), _claim_forwarding(results)]
