# SPDX-License-Identifier: BSD-3-Clause
"""`make bench ONLY=aims`, and the regimes of the machine that it distinguishes."""
import argparse
import json
import statistics
from types import SimpleNamespace

import pytest

from harness import lab
from harness.paths import BUILD
from harness.proc import check, run
from ringtap_lab.report import aims_table
from ringtap_lab.run import aims_cells, flight_cells, measure
from ringtap_lab.run.lab import Lab
from ringtap_lab.tools import regime, scope
from ringtap_lab.tools.results import Results

ATTEMPTS = 5
PROBE = BUILD / "bench" / "machine_probe"


def aims(tmp_path, *args, **env):
    return lab.run("-o", tmp_path / "out", *args, program=("-m", "ringtap_lab.run.aims"), cwd=tmp_path, **env)


def git(env, *args):
    check(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *args], env=env)


@pytest.fixture
def clone(tmp_path):
    """Environment in which the sources are a clone without changes, whatever those of this test are."""
    env = {"GIT_DIR": str(tmp_path / "clone" / ".git"), "GIT_WORK_TREE": str(tmp_path / "clone")}
    (tmp_path / "clone").mkdir()
    git(env, "init", "-q")
    (tmp_path / "clone" / "source").write_text("1")
    git(env, "add", "source")
    git(env, "commit", "-qm", "1")
    return env


def journal(tmp_path):
    return [json.loads(line) for line in (tmp_path / "out" / "aims.jsonl").read_text().splitlines()]


def outcome(cell, *runs):
    """runs: pairs of regime and values."""
    return {"cell": cell, "params": {}, "runs": [
        {"repetition": i, "values": values, "data": {"regime": name}, "commands": [], "seconds": 1.0, "at": "", "around": {}}
        for i, (name, values) in enumerate(runs)]}


def results(*cells):
    found = Results()
    return Results({**{name: getattr(found, name) for name in Results._STATE}, "cells": cells})


def lost(loss, **more):
    return {"loss": loss, "lost": int(loss * 1e6), "captured_pps": 1e8, "pause_s": 0.02, "cpu_wait_s": 0.5, "buffer_used": 1.0,
            **more}


def row(found, name, rounds=1):
    return next(r for r in aims_table.rows(found, rounds) if r["aim"] == name)


def test_probe_of_the_machine():
    found = json.loads(check([PROBE, "0", "1"]))
    assert all(0.1 < ghz < 10 for ghz in found["ghz"])
    assert all(0.5 < adds < 16 for adds in found["adds_per_cycle"])
    assert 0.1 < found["together"] < 3
    assert found["line_ns"] > 1 and found["write_ns"] > 0 and found["read_ns"] > 0
    assert found["tlb_4k_ns"] > 1 and found["tlb_2m_ns"] > 1 and found["l3_ns"] > 1
    assert found["memory_read_gbps"] > 0.1 and found["memory_write_gbps"] > 0.1
    assert 0 <= found["steal"] <= 1
    assert regime.of([found]) in regime.MEANING


def test_probe_of_a_missing_cpu_fails():
    done = run([PROBE, "0", "9999"])
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "machine_probe: Invalid argument\n"
    assert run([PROBE, "0"]).returncode == 2


@pytest.mark.parametrize("line_ns, write_ns, expected", [(31, 1.1, "core"), (40, 7.0, "near"), (160, 28.0, "far")])
def test_regimes(line_ns, write_ns, expected):
    """Medians of three placements of two CPUs of a virtual machine on an AMD EPYC."""
    probes = [{"line_ns": line_ns, "write_ns": write_ns}, {"line_ns": 40, "write_ns": 7.0}]
    assert regime.of(probes[:1]) == expected
    assert regime.of(probes) == (expected if expected == "near" else "mixed")


def test_values_belong_to_the_regime_of_their_round(monkeypatch):
    monkeypatch.setenv(scope.VARIABLE, "")  # Lab sets it
    key = ("captured", "net_null", 64, "ringtap", "null")
    store = measure.Store()
    store.add(1.0, *key)
    with store.between_probes(Lab(argparse.Namespace(build=BUILD, quick=False, cpus=[0, 1]))):
        store.add(2.0, *key, disturbed=0.5)
        store.add(3.0, *key)
    unknown, *found = store.as_list()[0]["regimes"]
    assert unknown is None and len(set(found)) == 1 and found[0] in regime.MEANING
    assert store.of_regime(found[0], *key) == [3.0]  # undisturbed
    assert store.of_regime("none", *key) == []


def test_one_round_with_losses_misses_the_aim():
    found = results(outcome("loss-64", *[("near", lost(0.0, added_s=4e-9, alone_pps=2e8))] * 3),
                    outcome("loss-1518", ("far", lost(0.0)), ("near", lost(0.016))))
    assert row(found, "lost, 64 B")["met"] is True and row(found, "lost, 64 B")["rounds"] == 3
    missed = row(found, "lost, 1518 B")
    assert missed["met"] is False and missed["text"] == "0.800 (0.000–1.600)"
    assert missed["regimes"]["near"] == {"rounds": 1, "text": "1.600"}
    assert missed["regimes"]["far"] == {"rounds": 1, "text": "0.000"}
    assert row(found, "captured, 64 B")["met"] is False  # 100 Mpps, 110 are wanted
    assert row(found, "time added to a packet, 64 B")["met"] is True
    assert row(found, "memory charged to the application")["met"] is None  # not measured
    text = aims_table.markdown(found)
    assert "| lost, 1518 B | 0 in every round | 0.800 (0.000–1.600) % | 2 | **no** | – | 1.600; 1 | 0.000; 1 | – |" in text
    assert "| lost, 1518 B | 2 | near | 1.600 | 20.0 | 500 | 100 | 100.0 |" in text


def test_without_all_rounds_no_aim_is_reached():
    found = results(outcome("loss-64", *[("near", lost(0.0, added_s=4e-9))] * 3), outcome("loss-256", ("near", lost(0.01))),
                    outcome("dumpcap-64", ("near", {"added_s": 50e-9})))
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
    data = {"start_ns": start * 10**9, "intervals": [
        {"time_s": n + 1.0, "interval_s": 1.0, "rx_ns_per_packet": ns} for n, ns in enumerate((50, 51, 900, 60, 62, 64, 900))]}
    of.spans = {"alone": (start - 0.5, start + 2.1), "kept": (start + 2.9, start + 6.05), "short": (start + 2.5, start + 3.9)}
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
    ours, theirs = (outcome(cell, ("near", lost(0.0, added_s=ns * 1e-9))) for cell, ns in (("loss-64", 6), ("dumpcap-64", 50)))
    assert row(results(ours, theirs), "time added, against dpdk-dumpcap's")["text"] == "0.120"
    assert row(results(ours), "time added, against dpdk-dumpcap's")["met"] is None


def test_rounds_of_other_builds_are_refused(tmp_path, clone):
    """A changed source is another one with each run: nobody knows what was built."""
    def push(*args):
        return aims(tmp_path, "--only", "push-vlan", "--seconds", "0.5", *args, **clone)

    def refused(done):
        assert done.returncode == 2 and "results of other settings" in done.stderr, done.stderr
        return done.stderr

    assert push("--rounds", "1").returncode == 0
    assert push("--rounds", "2").returncode == 0
    assert "cpus" in refused(push("--rounds", "3", "--cpus", "1,0"))
    assert "nice" in refused(push("--rounds", "3", "--nice", "1"))
    source = tmp_path / "clone" / "source"
    source.write_text("2")
    assert "-dirty" in refused(push("--rounds", "3"))
    assert push("--rounds", "1", "--fresh").returncode == 0
    assert "-dirty" in refused(push("--rounds", "2"))
    git(clone, "commit", "-qam", "2")
    assert "commit" in refused(push("--rounds", "2"))


def test_rounds_of_other_machines_are_told():
    found = results()
    found.changed.append("kernel '6.2' instead of '6.1'")
    assert "- kernel '6.2' instead of '6.1'" in aims_table.markdown(found)


def test_rounds_are_merged_over_runs(tmp_path, clone):
    """Each run adds rounds to those that are in the folder."""
    done = aims(tmp_path, "--only", "push-vlan", "--rounds", "1", "--seconds", "0.5", **clone)
    assert done.returncode == 0, done.stderr
    done = aims(tmp_path, "--only", "push", "--rounds", "2", "--seconds", "0.5", "--json", **clone)
    assert done.returncode == 0, done.stderr
    table = {r["aim"]: r for r in json.loads(done.stdout[done.stdout.index("{\n"):])["aims"]}
    assert table["the copy of 64, stripped tag"]["rounds"] == table["the copy of 1518, -s 64"]["rounds"] == 2
    rounds = [(e["cell"], e["repetition"]) for e in journal(tmp_path) if e["event"] == "run"]
    assert len(set(rounds)) == len(rounds) == 6
    none = aims(tmp_path, "--only", "push", "--rounds", "3", "--seconds", "0.5", "--limit", "1", **clone)
    assert "3 measurements are left for another run" in none.stderr
    assert len([e for e in journal(tmp_path) if e["event"] == "run"]) == 6
    other = aims(tmp_path, "--only", "push", "--rounds", "2", "--seconds", "7", **clone)
    assert other.returncode == 2 and "results of other settings" in other.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name, keys", [
    ("loss-64", {"captured_pps", "lost", "loss", "pause_s", "cpu_wait_s", "buffer_used", "alone_pps", "added_s"}),
    ("stop100-20mpps", {"captured_pps", "seen_pps", "lost", "stop_s", "disturbed"}), ("busy-20mpps", {"seen_pps", "lost"}),
    ("dumpcap-64", {"captured_pps", "loss", "attached_pps", "added_s"}),
    ("memory", {"charged_bytes", "tables_bytes", "buffer_bytes"}), ("membarrier", {"membarriers", "polls"})])
def test_measures_real_programs(tmp_path, clone, name, keys):
    for _ in range(ATTEMPTS):
        done = aims(tmp_path, "--only", name, "--rounds", "1", "--seconds", "1.2", "--nice", "-20", **clone)
        # Others had the CPU nevertheless; dpdk-dumpcap ended the application, three times.
        if "Mpps instead of" not in done.stderr and "polling thread has ended" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    measured = [e for e in journal(tmp_path) if e["event"] == "run"]
    assert [e["cell"] for e in measured] == [name]
    assert keys <= set(measured[0]["values"])
    assert measured[0]["data"]["regime"] in regime.MEANING and len(measured[0]["data"]["probes"]) == 2
