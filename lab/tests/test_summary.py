# SPDX-License-Identifier: BSD-3-Clause
"""The page of `make bench`: ratios of rounds, and the comparison with a stored run."""

import itertools
import json
import math
import re
import types

import pytest
from conftest import MACHINE
from ringtap_lab.report import markdown, summary
from ringtap_lab.run import bench, measure

OURS, PEER = (("captured", "net_null", 64, tool, "null") for tool in ("ringtap", "dpdk-dumpcap"))
MPPS = 1e6


def measured(ours, peers=(), regimes=itertools.repeat("near")):
    """A store; a value for each round, None where it failed."""
    store = measure.Store()
    for key, values in ((OURS, ours), (PEER, peers)):
        for store.round, (value, regime) in enumerate(zip(values, regimes)):
            if value is not None:
                store.add(value * MPPS, *key)
                store.regimes[key][-1] = regime
    return store


def row(store, peer="dpdk-dumpcap"):
    return next(r for r in summary.results(store) if (r["name"], r["peer"]) == ("captured, 64 B", peer))


def verdict(now, then):
    return summary.verdict(row(now), row(then))


def test_ratios_are_those_of_the_same_round():
    found = row(measured([60, None, 80, 90], [6, 7, None, 10]))
    assert [(r["ours"], r["peer"], r["ratio"]) for r in found["rounds"]] == [
        (60 * MPPS, 6 * MPPS, 10),
        (80 * MPPS, None, None),
        (90 * MPPS, 10 * MPPS, 9),
    ]
    _, lines = summary.table(summary.results(measured([60, 90], [6, 10])), None)
    assert lines[0] == [
        "captured, 64 B",
        "75.0 (60.0–90.0) Mpps",
        "dpdk-dumpcap: 8.0 (6.0–10.0)",
        "9.50 (9.00–10.00) ×",
        "2 near",
    ]


def test_disturbed_values_are_left_out():
    store = measured([60, 70], [6, 7])
    store.series[OURS].disturbed[0] = 0.5
    assert [r["ours"] for r in row(store)["rounds"]] == [70 * MPPS]


def test_added_time_is_that_of_the_same_round():
    store = measured([50, 50])
    for store.round, (alone, attached) in enumerate(((100, 50), (200, 100))):
        store.add(alone * MPPS, "untouched", "net_null", 64)
        store.add(attached * MPPS, "attached", *OURS[1:])
    added = next(r for r in summary.results(store) if r["name"] == "added to a packet, 64 B")
    assert [round(r["ours"] * 1e9, 6) for r in added["rounds"]] == [10, 5]


@pytest.mark.parametrize(
    "now, then, expected",
    [
        ([60, 61, 62, 63, 64], [70, 71, 72, 73, 74], "**-14%, WORSE beyond the noise**"),
        ([80, 81, 82, 83, 84], [70, 71, 72, 73, 74], "**+14%, better beyond the noise**"),
        ([60, 61, 62, 63, 70], [70, 71, 72, 73, 74], "-14%, within the noise"),
        ([60, 61, 62], [70, 71, 72], "-14%, too few rounds to tell: 3, it takes 7"),
    ],
)
def test_beyond_the_noise(now, then, expected):
    assert verdict(measured(now, [1] * len(now)), measured(then, [1] * len(then))) == expected


def test_the_ratio_is_compared_where_there_is_a_peer():
    """A machine that is slower today slows both."""
    slow, fast = measured([30, 31, 32, 33, 34], [3] * 5), measured([60, 62, 64, 66, 68], [6] * 5)
    assert verdict(slow, fast) == "+0%, within the noise"


def test_only_rounds_of_one_regime_are_compared():
    far = measured([30] * 5, [6] * 5, ["far"] * 5)
    assert verdict(far, measured([60] * 5, [6] * 5)) == "no round in the same regime"
    both = measured([30] * 5 + [60] * 6, [6] * 11, ["far"] * 5 + ["near"] * 6)
    assert verdict(both, measured([60] * 5, [6] * 5)) == "+0%, within the noise"


def test_the_regime_with_most_rounds_is_compared():
    then = measured([60] * 2 + [40] * 5, [6] * 7, ["near"] * 2 + ["far"] * 5)
    now = measured([80] * 5 + [20] * 4, [6] * 9, ["near"] * 5 + ["far"] * 4)
    assert verdict(now, then) == "**-50%, WORSE beyond the noise**"


def test_rounds_of_mixed_regimes_are_not_compared():
    mixed = measured([30] * 5, [6] * 5, ["mixed"] * 5)
    assert verdict(mixed, mixed) == "no round in the same regime"


def test_values_without_a_regime_are_compared():
    unknown = measured([30] * 5, [6] * 5, [None] * 5)
    assert verdict(unknown, unknown) == "+0%, within the noise"


def test_a_share_of_nothing_is_not_printed():
    """Added times are below 0 where nothing is measurable."""
    assert verdict(measured([1] * 5, [1] * 5), measured([-2] * 5, [1] * 5)) == "**better beyond the noise**"


def test_the_page_begins_with_a_conclusion():
    now, then = (summary.results(measured([value] * 5, [1] * 5)) for value in (60, 70))
    stored = {"date": "2026-11-30", "commit": "0", "load": 0.1, "results": then}
    worse = "**Against the stored run: 1 worse (captured, 64 B), 0 better, 0 within the noise, 1 not comparable.**"
    page = markdown.page(now, stored, MACHINE)
    assert worse in page and page.index(worse) < page.index("| what")
    assert "commit 0, load 0.1 before it." in page
    assert summary.conclusion(now, None) == ""


def test_columns_are_aligned():
    lines = [
        line
        for line in markdown.page(summary.results(measured([60], [6])), None, MACHINE).splitlines()
        if line[:1] == "|"
    ]
    assert len(lines) == 4 and len({tuple(i for i, c in enumerate(line) if c == "|") for line in lines}) == 1


@pytest.mark.parametrize("more", ([], ["--quick"], ["--only", "copy"]))
def test_a_part_is_not_stored(more):
    if more:
        with pytest.raises(SystemExit):
            bench.arguments(["--store", *more])
    else:
        assert bench.arguments(["--store"]).repetitions == bench.STORED_REPETITIONS
    assert summary.chance(3, bench.STORED_REPETITIONS) <= summary.CHANCE < summary.chance(3, 5)


def test_chance_is_that_of_all_orders():
    """Counted, for three values and two."""
    orders = list(itertools.permutations(range(5)))
    apart = sum(max(o[:3]) < min(o[3:]) or min(o[:3]) > max(o[3:]) for o in orders)
    assert math.isclose(summary.chance(3, 2), apart / len(orders))


def test_a_run_is_stored_and_compared(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "STORED", tmp_path / "stored")
    monkeypatch.setattr(bench.machine, "describe", lambda *_: dict(MACHINE))
    one = bench.Bench.__new__(bench.Bench)
    one.o = types.SimpleNamespace(cpus=[0, 1], out=tmp_path, store=True)
    one.ringtap, one.skipped, one.store = "ringtap", [], measured([60, 61, 62, 63, 64], [1] * 5)
    one.load = 0.25
    one.write()
    first = capsys.readouterr().out
    assert "No run is stored of this kind of machine (a-cpu-2-cpus-hypervisor-no)" in first
    assert "Stored in " in first and (tmp_path / "stored" / "a-cpu-2-cpus-hypervisor-no.json").exists()
    one.o.store, one.store = False, measured([70, 71, 72, 73, 74], [1] * 5)
    one.write()
    page = capsys.readouterr().out
    assert (
        "commit 0123456789ab, load 0.25 before it" in page
        and "better beyond the noise" in page
        and "Stored in" not in page
    )
    assert (tmp_path / "bench.md").read_text().startswith("# ringtap benchmark\n")
    assert json.loads((tmp_path / "bench.json").read_text())["summary"][0]["name"] == "captured, 64 B"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"results": [{"rounds": [{"regime": null, "ours": "x", "ratio": 1}]}]}']
)
def test_another_file_is_not_compared(monkeypatch, tmp_path, text):
    file = tmp_path / "a.json"
    file.write_text(text)
    one = bench.Bench.__new__(bench.Bench)
    one.skipped = []
    assert one.stored(file) is None
    assert len(one.skipped) == 1 and str(file) in one.skipped[0]


def test_the_page_names_what_it_cannot_compare():
    found = summary.results(measured([60] * 5, [6] * 5))
    page = markdown.page(found, {"date": "2026-11-30", "commit": "0", "load": None, "results": []}, MACHINE)
    assert re.search(r"\| – +\|", page) and "against the stored run" in page
