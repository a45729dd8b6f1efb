# SPDX-License-Identifier: BSD-3-Clause
"""`make bench ONLY=aims`: its table, its rounds over several runs, and the regimes of the machine that it distinguishes."""

import argparse
import json
import statistics
from types import SimpleNamespace

import pytest
from ringtap_lab.report import aims_table
from ringtap_lab.run import aims, aims_cells, flight_cells, measure
from ringtap_lab.run.lab import Lab
from ringtap_lab.tools import regime
from ringtap_lab.tools.results import Results

PROBE = {"line_ns": 40, "write_ns": 7.0}  # near


def outcome(cell, *runs):
    """runs: pairs of regime and values."""
    return {
        "cell": cell,
        "params": {},
        "runs": [
            {
                "repetition": i,
                "values": values,
                "data": {"regime": name},
                "commands": [],
                "seconds": 1.0,
                "at": "",
                "around": {},
            }
            for i, (name, values) in enumerate(runs)
        ],
    }


def results(*cells):
    found = Results()
    return Results({**{name: getattr(found, name) for name in Results._STATE}, "cells": cells})


def lost(loss, **more):
    return {
        "loss": loss,
        "lost": int(loss * 1e6),
        "captured_pps": 1e8,
        "pause_s": 0.02,
        "cpu_wait_s": 0.5,
        "buffer_used": 1.0,
        **more,
    }


def row(found, name, rounds=1):
    return next(r for r in aims_table.rows(found, rounds) if r["aim"] == name)


@pytest.mark.parametrize("line_ns, write_ns, expected", [(31, 1.1, "core"), (40, 7.0, "near"), (160, 28.0, "far")])
def test_regimes(line_ns, write_ns, expected):
    """Medians of three placements of two CPUs of a virtual machine on an AMD EPYC."""
    probes = [{"line_ns": line_ns, "write_ns": write_ns}, {"line_ns": 40, "write_ns": 7.0}]
    assert regime.of(probes[:1]) == expected
    assert regime.of(probes) == (expected if expected == "near" else "mixed")


@pytest.fixture
def probed(monkeypatch):
    """The machine is in the regime of PROBE."""
    monkeypatch.setattr(regime, "probe", lambda lab: dict(PROBE))


def test_values_belong_to_the_regime_of_their_round(alone, probed, build):
    key = ("captured", "net_null", 64, "ringtap", "null")
    store = measure.Store()
    store.add(1.0, *key)
    with store.between_probes(Lab(argparse.Namespace(build=build, quick=False, cpus=[0, 1]))):
        store.add(2.0, *key, disturbed=0.5)
        store.add(3.0, *key)
    assert store.as_list()[0]["regimes"] == [None, "near", "near"]
    assert store.of_regime("near", *key) == [3.0]  # undisturbed
    assert store.of_regime("none", *key) == []


def test_one_round_with_losses_misses_the_aim():
    found = results(
        outcome("loss-64", *[("near", lost(0.0, added_s=4e-9, alone_pps=2e8))] * 3),
        outcome("loss-1518", ("far", lost(0.0)), ("near", lost(0.016))),
    )
    assert row(found, "lost, 64 B")["met"] is True and row(found, "lost, 64 B")["rounds"] == 3
    missed = row(found, "lost, 1518 B")
    assert missed["met"] is False and missed["text"] == "0.800 (0.000–1.600)"
    assert missed["regimes"]["near"] == {"rounds": 1, "text": "1.600"}
    assert missed["regimes"]["far"] == {"rounds": 1, "text": "0.000"}
    assert row(found, "captured, 64 B")["met"] is False  # 100 Mpps, 110 are wanted
    assert row(found, "time added to a packet, 64 B")["met"] is True
    assert row(found, "memory charged to the application")["met"] is None  # not measured
    text = aims_table.markdown(found)
    assert (
        "| lost, 1518 B | 0 in every round | 0.800 (0.000–1.600) % | 2 | **no** | – | 1.600; 1 | 0.000; 1 | – |" in text
    )
    assert "| lost, 1518 B | 2 | near | 1.600 | 20.0 | 500 | 100 | 100.0 |" in text


def test_without_all_rounds_no_aim_is_reached():
    found = results(
        outcome("loss-64", *[("near", lost(0.0, added_s=4e-9))] * 3),
        outcome("loss-256", ("near", lost(0.01))),
        outcome("dumpcap-64", ("near", {"added_s": 50e-9})),
    )
    assert row(found, "lost, 64 B", 3)["met"] is True
    assert row(found, "lost, 64 B", 4)["met"] is None
    assert row(found, "lost, 256 B", 4)["met"] is False  # one is too many already
    assert row(found, "time added, against dpdk-dumpcap's", 1)["met"] is True
    assert row(found, "time added, against dpdk-dumpcap's", 3)["met"] is None
    text = aims_table.markdown(found, 4)
    assert "- lost, 64 B: 3 of 4 rounds\n" in text and "- membarriers in 2 s: 0 of 4 rounds\n" in text
    assert "- lost, 64 B" not in aims_table.markdown(found, 3)
    assert "older build" in text


def test_disturbed_rounds_are_left_out():
    """Their application did not have its CPU, so their rate was another one."""

    def paced(disturbed, loss, mpps=40):
        return "near", lost(loss, disturbed=disturbed, seen_pps=mpps * 1e6)

    name = "the same, stopped for 20 ms a second, 40 Mpps"
    found = row(results(outcome("stop20-40mpps", paced(0.0, 0.0), paced(0.2, 0.01))), name, 2)
    assert found["met"] is True and found["values"] == [0.0]
    found = row(results(outcome("stop20-40mpps", paced(0.2, 0.01))), name)
    assert found["met"] is False and found["rounds"] == 1
    found = row(results(outcome("stop20-40mpps", paced(0.0, 0.0, 39.5))), "received in stop20-40mpps")
    assert found["met"] is True and found["text"] == "39.5"


def test_seconds_that_are_within_a_span():
    of, start = flight_cells.Seconds(), 1_000_000
    data = {
        "start_ns": str(start * 10**9),  # above 2^53
        "intervals": [
            {"time_s": n + 1.0, "interval_s": 1.0, "rx_ns_per_packet": ns}
            for n, ns in enumerate((50, 51, 900, 60, 62, 64, 900))
        ],
    }
    of.spans = {
        "alone": (start - 0.5, start + 2.1),
        "kept": (start + 2.9, start + 6.05),
        "short": (start + 2.5, start + 3.9),
    }
    report = SimpleNamespace(data=data)
    assert of.per_packet_s("alone", report) == pytest.approx(50.5e-9)
    assert of.per_packet_s("kept", report) == pytest.approx(62e-9)
    with pytest.raises(statistics.StatisticsError):
        of.per_packet_s("short", report)


def test_conditions_that_were_not_reached():
    aims_cells.need_rate(38.9e6, 40e6)
    with pytest.raises(RuntimeError, match="38.7 Mpps instead of 40"):
        aims_cells.need_rate(38.7e6, 40e6)
    aims_cells.need_stop(0.02, 0.02)
    with pytest.raises(RuntimeError, match="longest pause was 19.0 ms"):
        aims_cells.need_stop(0.019, 0.02)
    for other in (None, "busy"):
        aims_cells.need_stop(0.001, other)
    aims_cells.need_polls(1)
    with pytest.raises(RuntimeError, match="no poll"):
        aims_cells.need_polls(0)


def test_time_added_is_compared_with_the_peer():
    ours, theirs = (
        outcome(cell, ("near", lost(0.0, added_s=ns * 1e-9))) for cell, ns in (("loss-64", 6), ("dumpcap-64", 50))
    )
    assert row(results(ours, theirs), "time added, against dpdk-dumpcap's")["text"] == "0.120"
    assert row(results(ours), "time added, against dpdk-dumpcap's")["met"] is None


def test_rounds_of_other_machines_are_reported():
    found = results()
    found.changed.append("kernel '6.2' instead of '6.1'")
    assert "- kernel '6.2' instead of '6.1'" in aims_table.markdown(found)


@pytest.fixture
def bench(monkeypatch, alone, probed, build, call, tmp_path):
    """bench(argument...) runs it; what `push` and `dumpcap` measure is replaced."""
    monkeypatch.setattr(aims.Aims, "check", lambda self, lab: None)
    monkeypatch.setattr(aims_cells, "push", lambda lab, seconds, packets: {"push_s": 5e-9, "uncached_s": 9e-9})
    return lambda *args: call(aims.main, "-w", tmp_path / "out", "--build", build, *args)


def journal(tmp_path):
    return [json.loads(line) for line in (tmp_path / "out" / "aims.jsonl").read_text().splitlines()]


def test_rounds_of_other_builds_are_refused(bench, facts):
    """A changed source is another one with each run: nobody knows what was built."""

    def push(*args):
        return bench("--only", "push-vlan", "--duration", "0.5s", *args)

    def refused(done):
        assert done.returncode == 2 and "results of other settings" in done.stderr, done.stderr
        return done.stderr

    assert push("--repetitions", "1").returncode == 0
    assert push("--repetitions", "2").returncode == 0
    assert "cpus" in refused(push("--repetitions", "3", "--cpus", "1,0"))
    facts["commit"] += "-dirty"
    assert "-dirty" in refused(push("--repetitions", "3"))
    assert push("--repetitions", "1", "--fresh").returncode == 0
    assert "-dirty" in refused(push("--repetitions", "2"))
    facts["commit"] = "123456789abc"
    assert "commit" in refused(push("--repetitions", "2"))


def test_niceness_is_a_setting():
    options = argparse.Namespace(quick=False, aims_seconds=5.0, build="b", cpus=[0, 1], nice=0)
    before = aims._settings(options, "1234567")
    options.nice = -5
    assert aims._settings(options, "1234567") == {**before, "nice": -5}
    assert aims._settings(options, None)["commit"] is None


def test_rounds_are_merged_over_runs(tmp_path, bench):
    """Each run adds rounds to those that are in the folder."""
    done = bench("--only", "push-vlan", "--repetitions", "1", "--duration", "0.5s")
    assert done.returncode == 0, done.stderr
    done = bench("--only", "push", "--repetitions", "2", "--duration", "0.5s", "--json")
    assert done.returncode == 0, done.stderr
    table = {r["aim"]: r for r in json.loads(done.stdout)["aims"]}
    assert table["the copy of 64, stripped tag"]["rounds"] == table["the copy of 1518, -s 64"]["rounds"] == 2
    runs = [e for e in journal(tmp_path) if e["event"] == "run"]
    assert len({(e["cell"], e["repetition"]) for e in runs}) == len(runs) == 6
    assert {e["data"]["regime"] for e in runs} == {"near"} and runs[0]["values"]["line_s"] == pytest.approx(40e-9)
    none = bench("--only", "push", "--repetitions", "3", "--duration", "0.5s", "--within", "1s")
    assert "3 measurements are left for another run" in none.stderr
    assert len([e for e in journal(tmp_path) if e["event"] == "run"]) == 6
    other = bench("--only", "push", "--repetitions", "2", "--duration", "7s")
    assert other.returncode == 2 and "results of other settings" in other.stderr


def test_report_measures_nothing(tmp_path, bench):
    done = bench("--report")
    assert done.returncode == 2 and done.stderr == f"ringtap_lab.run.aims: {tmp_path}/out has no results of aims\n"
    assert bench("--only", "push-vlan", "--repetitions", "1").returncode == 0
    before = journal(tmp_path)
    done = bench("--report", "--repetitions", "1")
    assert done.returncode == 0 and "| the copy of 64, stripped tag | <= 6 ns | 5.0 ns | 1 | yes |" in done.stdout
    assert journal(tmp_path) == before


def test_list_names_every_cell(bench):
    names = bench("--list").stdout.split()
    assert len(names) == len(set(names)) and {*aims_table.LOSSES, *aims_table.PUSHES, *aims_table.PACED} <= set(names)


def test_interrupt_is_reported(bench, monkeypatch):
    monkeypatch.setattr(aims_cells, "push", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    done = bench("--only", "push-vlan", "--repetitions", "1")
    assert done.returncode == 130 and "the same command goes on from here" in done.stderr


@pytest.mark.parametrize("failures, status, attempts", [(0, 0, 1), (2, 0, 3), (3, 1, 3)])
def test_dpdk_dumpcap_has_three_attempts(bench, monkeypatch, failures, status, attempts):
    """It ends some applications."""
    calls = []

    def dumpcap(lab, seconds, size):
        calls.append(seconds)
        if len(calls) <= failures:
            raise RuntimeError("testpmd has ended")
        return {"captured_pps": 1e6, "attached_pps": 1e6, "loss": 0.0, "added_s": 50e-9, "alone_pps": 2e6}

    monkeypatch.setattr(aims_cells, "dumpcap", dumpcap)
    done = bench("--only", "dumpcap-64", "--repetitions", "1", "--quick")
    assert done.returncode == status and calls == [aims.QUICK_SECONDS] * attempts
    assert ("failed: testpmd has ended" in done.stderr) == (status == 1)


def test_other_measurements_have_one_attempt(bench, monkeypatch):
    calls = []
    monkeypatch.setattr(aims_cells, "push", lambda *_: calls.append(1) or (_ for _ in ()).throw(RuntimeError("no")))
    assert bench("--only", "push-vlan", "--repetitions", "1").returncode == 1
    assert calls == [1]


def test_time_that_recording_adds():
    """In 10 ns a packet instead of the mean of 4 and 6."""
    found = aims_cells._added({"attached_pps": 1e8}, 1 / 4e-9, 1 / 6e-9)
    assert found["alone_pps"] == pytest.approx((2.5e8 + 1e9 / 6) / 2)
    assert found["added_s"] == pytest.approx(1e-8 - 1 / found["alone_pps"])
