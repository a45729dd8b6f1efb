# SPDX-License-Identifier: BSD-3-Clause
"""How the results of the memory experiment are judged and shown."""
from .blocks import CONFIRMED, DIFFERENT, OPEN, PARTLY, Claim, Datum, Plot, Ratio, Table, Value, Verdict
from .plots import COLOURS, MARKERS

PHASES = {1: "below", 2: "above", 3: "below again"}
KINDS = {"4k": "4 KiB pages", "thp": "transparent huge", "huge": "own huge pages",
         "dpdk": "DPDK's memory"}
POLICIES = {"drop": "ring order, drop", "retry": "ring order, retry", "stack": "stack order, drop"}
PUBLISHED = {"drop": "in order below the limit, scattered above it, and scattered for good after it",
             "retry": "in order in all phases", "stack": "few buffers in use below the limit, whatever was dropped"}
MISSES = "with 4 KiB pages, drops make more misses, for good; with retry, stack order or huge pages they do not"
NOTHING = "no figure of this"
IN_ORDER, SCATTERED = 0.05, 0.5  # shares of packets whose buffer is out of order
FEW = 0.05  # of the pool
# Misses per packet. In order, every other packet or so begins a new page of 4 KiB: more than twice is not possible.
MORE, SAME = 1.4, 0.1  # phase 3 against phase 1
CURED = 0.01
FEW_MISSES = 0.05  # of 64 entries: less than a tenth of what buffers in order have


def as_stated(kind, policy, v, pool):
    """1 if the three phases of a run differ as they should, else 0. v: its values."""
    below = v["dropped_1"] == 0 and v["dropped_3"] == 0
    order = [v[f"out_of_order_{p}"] for p in PHASES]
    if policy == "retry":
        found = v["dropped_2"] == 0 and v["refused_2"] > 0 and max(order) < IN_ORDER
    elif policy == "stack":
        found = v["dropped_2"] > 0 and max(v["buffers_1"], v["buffers_3"]) < FEW * pool
    else:
        found = v["dropped_2"] > 0 and order[0] < IN_ORDER and min(order[1:]) > SCATTERED
    return int(below and found and _misses_as_stated(kind, policy, v))


def _misses_as_stated(kind, policy, v):
    """Of pages of the size that they really have."""
    if kind != "4k":
        return max(v[f"misses_64_{p}"] for p in PHASES) < CURED
    if policy == "stack":
        return max(v["misses_64_1"], v["misses_64_3"]) < FEW_MISSES
    ratio = v["misses_64_3"] / v["misses_64_1"] if v["misses_64_1"] else float("inf")
    return ratio > MORE if policy == "drop" else abs(ratio - 1) < SAME


def _keys(results):
    """(cell, its name for people) of all three-phase cells, in a fixed order."""
    return [(f"{kind}-{policy}", f"{KINDS[kind]}, {POLICIES[policy]}")
            for kind in KINDS for policy in POLICIES if results.cell(f"{kind}-{policy}")]


def _by_phase(results, title, columns, **more):
    """columns: (head, metric, scale, digits); each once in each phase."""
    head = ["buffers in", *(f"{h}, {PHASES[p]}" for h, *_ in columns for p in PHASES)]
    rows = [[name, *(Value(key, f"{metric}_{p}", scale, digits) for _, metric, scale, digits in columns
                     for p in PHASES)] for key, name in _keys(results)]
    return Table(title, head, rows, **more)


def _verdicts(results):
    rows = []
    for key, name in _keys(results):
        rows.append([name, Value(key, "as_stated", 1, 0, how="runs"),
                     Value(key, "attempts", 1, 0, how="greatest"), Value(key, "disturbed", 100, 0),
                     Value(key, "wire_2", 100, 1)])
    return Table(
        "Do the three phases differ as published?", [
            "buffers in", "as published", "attempts at most", "disturbed, %", "wire reached under overload, %"], rows,
        published="; ".join(f"{POLICIES[p]}: {PUBLISHED[p]}" for p in POLICIES),
        note="A run in which packets were dropped below the limit, or in which the wire did not reach 95 % of its rate "
             "under overload, because other work held the thread up for too long, is repeated while time allows; the "
             "one nearest to the chosen loads counts. Disturbed: share of the time that the polling thread did not "
             "have its CPU. Modelled misses of 64 entries are part of the verdict. 4 KiB pages, drop: "
             f"{MORE} times as many after the overload as before it, or more. Retry: the same within "
             f"{SAME * 100:.0f} %. Stack order: below {FEW_MISSES} per packet before and after it, with fewer than "
             f"{FEW * 100:.0f} % of the buffers in use; under overload a queue of buffers is in use there, too. "
             f"Huge pages: below {CURED} in all phases.")


def _entries(results):
    """Misses by the size of the IOTLB, in the last phase, of pages of each size."""
    rows, head, shown = [], None, ("4k-drop", "4k-retry", "4k-stack")
    for key, name in _keys(results):
        outcome = results.cell(key)
        phases, entries = outcome.data("phases"), outcome.data("entries")
        if not phases:
            continue
        head = ["buffers in, pages of", *(f"{e:,}" for e in entries)]
        for size, text in (("4k", "4 KiB"), ("2m", "2 MiB"), ("1g", "1 GiB")):
            if key in shown:
                rows.append([f"{name}, {text}", *(Datum(key, ("phases", "3", "misses", size, i), 4)
                                                  for i in range(len(entries)))])
    if not rows:
        return []
    return [Table("Modelled IOTLB misses per packet after the overload, by entries and size of pages", head, rows,
                  published=MISSES,
                  note="First repetition. A page counts as a miss if as many other pages as there are entries were "
                       "used since its last use.", shows=[k for k, _ in _keys(results) if k in shown])]


def _addresses(results, key, name, published):
    phases = results.cell(key).data("phases") if results.cell(key) else None
    if not phases or "offsets_kib" not in phases["1"]:
        return []

    def draw(axes):
        for ax, (phase, text) in zip(axes, PHASES.items()):
            y = [k / 1024 for k in phases[str(phase)]["offsets_kib"]]
            ax.plot([2 * i / len(y) for i in range(len(y))], y, ".", markersize=1.8, color=COLOURS[phase - 1],
                    rasterized=True)
            ax.set_title(f"load {text} the limit" if phase < 3 else "load below the limit again",
                         fontsize=10, loc="left")
            ax.set_ylabel("MiB")
        axes[-1].set_xlabel("packets, in rounds through the pool")

    return [Plot(f"Addresses of successive packets' buffers: {name}", draw, [key], height=1.1, rows=3,
                 published=published, note="First repetition; from the beginning of the pool.")]


def _misses(results):
    shown = [k for k in ("4k-drop", "4k-retry", "4k-stack", "huge-drop") if results.cell(k)
             and results.cell(k).data("phases")]
    if not shown:
        return []

    def draw(axes):
        for i, key in enumerate(shown):
            size = "4k" if key.startswith("4k") else "2m"
            outcome = results.cell(key)
            for phase, style in (("1", ":"), ("3", "-")):
                axes.plot(outcome.data("entries"), outcome.data("phases")[phase]["misses"][size], style,
                          marker=MARKERS[i], color=COLOURS[i],
                          label=f"{key}, {'before' if phase == '1' else 'after'}")
        axes.set_xscale("log", base=2)
        axes.set_ylim(-0.03, 1.05)
        axes.set_xlabel("entries of the IOTLB")
        axes.set_ylabel("misses per packet")
        axes.legend(fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.45, 1.3))

    return [Plot("Modelled IOTLB misses before and after the overload", draw, shown, height=0.8,
                 published=MISSES,
                 note="Dotted: before; solid: after. Pages of 4 KiB, of huge-drop 2 MiB. First repetition.")]


def _cost(results):
    rows = []
    for kind, name in KINDS.items():
        ring, shuffled = f"cost-{kind}-ring", f"cost-{kind}-shuffled"
        more = Ratio(*(Value(k, "cycles_per_packet", how="least") for k in (shuffled, ring)), change=True)
        rows.append([name, Value(ring, "pps", 1e-6, 3), Value(shuffled, "pps", 1e-6, 3),
                     Value(ring, "cycles_per_packet"), Value(shuffled, "cycles_per_packet"), more,
                     Ratio(Value(ring, "pps", how="greatest"), Value(ring, "pps", how="least"), 2),
                     Value(ring, "disturbed", 100, 0), Value(shuffled, "disturbed", 100, 0)])
    return Table("What random order costs the CPU", [
        "buffers in", "Mpps, in order", "Mpps, random", "cycles per packet, in order", "random", "more, of the fastest",
        "fastest against slowest run, in order", "disturbed, %, in order", "random"], rows, published=NOTHING,
        note="Of generator, forwarder and sink together at full load: each touches the packet's header. Of the repetitions in "
             "each order the fastest one counts for \"more\", as others can only slow it down. Where runs "
             "of one order differ by more than the orders do, nothing follows. Where huge pages show less of a difference than "
             "4 KiB pages, the TLB is a likely cause; it was not measured by itself.")


def blocks(results):
    found = [_verdicts(results)]
    for policy in POLICIES:
        found += _addresses(results, f"4k-{policy}", f"4 KiB pages, {POLICIES[policy]}", PUBLISHED[policy])
    found += _addresses(results, "huge-drop", "huge pages, ring order, drop",
                        "as scattered as in small pages, but of few pages")
    found += [
        _by_phase(results, "Packets dropped, by place", [
            ("by the forwarder", "dropped", 1, 0), ("before it", "refused", 1, 0)],
            published=NOTHING,
            note="By the forwarder: its port took no more. Before it: its own ring was full, as a NIC misses packets; "
                 "the generator keeps the buffer."),
        _by_phase(results, "Bursts that the forwarder received", [
            ("packets per burst", "per_burst", 1, 2), ("per non-zero burst", "per_nonzero_burst", 1, 2)],
            published=NOTHING),
        _by_phase(results, "Order of buffers", [
            ("out of order, %", "out_of_order", 100, 2), ("buffers used in a round", "buffers", 1, 0),
            ("pages of 1,024 packets", "pages_own", 1, 0)],
            published="; ".join(f"{POLICIES[p]}: {PUBLISHED[p]}" for p in POLICIES),
            note="Out of order: packets whose buffer is not the neighbour of the one before. A round: as many packets as "
                 "the pool has buffers. Pages: of the size that they really have."),
        _by_phase(results, "Modelled IOTLB misses per packet", [
            ("64 entries", "misses_64", 1, 4), ("1,024 entries", "misses_1024", 1, 4)],
            published=MISSES,
            note="With pages of the size that they really have.")]
    found += _misses(results) + _entries(results) + [_cost(results)]
    return found


def _verdict(found, confirmed, different):
    """found: of each run, whether it was as published."""
    if not found:
        return Verdict(OPEN)
    if all(found):
        return Verdict(CONFIRMED, confirmed)
    return Verdict(PARTLY, f"In some runs only. {confirmed}") if any(found) else Verdict(DIFFERENT, different)


def _scattered(results):
    order = [results.series("4k-drop", f"out_of_order_{p}") for p in PHASES]
    return [before < IN_ORDER and min(during, after) > SCATTERED for before, during, after in zip(*order)]


def _cured_by_pages(results):
    return [misses < CURED for misses in results.series("huge-drop", "misses_64_3")]


def summary(results):
    def order(policy):
        return [(text, Value(f"4k-{policy}", f"out_of_order_{p}", 100, 1, "% out of order"))
                for p, text in ((1, "before the overload"), (3, "after it"))]

    def runs(*keys):
        return [(f"{name}, as published", Value(key, "as_stated", 1, 0, how="runs"))
                for key, name in _keys(results) if key in keys]

    def misses(kind):
        return f"{KINDS[kind]}, after it", Value(f"{kind}-drop", "misses_64_3", 1, 3, "misses per packet")

    both = [x == 1 for key in ("4k-retry", "4k-stack") for x in results.series(key, "as_stated")]
    return [
        Claim("Dropped packets scatter a pool's buffers, and for good.", "in order, then scattered for good",
              order("drop"), _verdict(_scattered(results), "Nothing puts the buffers in order again.",
                                      "The buffers did not stay scattered.")),
        Claim("Trying again instead of dropping, or a pool in stack order, cures it.",
              "retry: in order; stack: few buffers in use",
              runs("4k-retry", "4k-stack"), _verdict(both, "Both do what is claimed.",
                                                     "The phases of no run were as claimed.")),
        Claim("So do huge pages: scattered buffers then lie in few pages.", "more misses, for good; with huge pages few",
              [misses("4k"), misses("huge")], _verdict(
                  _cured_by_pages(results), "In the model of the IOTLB hardly a packet misses.", "Modelled misses remain."))]
