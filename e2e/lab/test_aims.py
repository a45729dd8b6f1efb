# SPDX-License-Identifier: BSD-3-Clause
"""`make bench ONLY=aims` with real programs. What it computes of their values is tested in lab/tests/test_aims.py."""

import json

import pytest
from harness import lab
from harness.paths import BUILD
from harness.proc import check, run
from ringtap_lab.tools import regime

PROBE = BUILD / "bench" / "machine_probe"


def aims(tmp_path, *args, **env):
    return lab.run("-w", tmp_path / "out", *args, program=("-m", "ringtap_lab.run.aims"), cwd=tmp_path, **env)


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


@pytest.mark.nightly
def test_rounds_are_merged_over_runs(tmp_path, clone):
    """Each run adds rounds to those that are in the folder, with the same build and settings."""

    def push(*args):
        return aims(tmp_path, "--only", "push-vlan", "--duration", "0.5s", *args, **clone)

    done = push("--repetitions", "1")
    assert done.returncode == 0, done.stderr
    done = push("--repetitions", "2", "--json")
    assert done.returncode == 0, done.stderr
    table = {r["aim"]: r for r in json.loads(done.stdout[done.stdout.index("{\n") :])["aims"]}
    assert table["the copy of 64, stripped tag"]["rounds"] == 2
    runs = [e for e in journal(tmp_path) if e["event"] == "run"]
    assert [e["repetition"] for e in runs] == [0, 1] and runs[0]["values"]["push_s"] > 0
    assert runs[0]["data"]["regime"] in regime.MEANING and len(runs[0]["data"]["probes"]) == 2
    (tmp_path / "clone" / "source").write_text("2")
    refused = push("--repetitions", "3", "--nice", "1")
    assert refused.returncode == 2 and all(
        text in refused.stderr for text in ("results of other settings", "-dirty", "nice")
    )


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_probe_of_a_missing_cpu_fails():
    done = run([PROBE, "0", "9999"])
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "machine_probe: Invalid argument\n"
    assert run([PROBE, "0"]).returncode == 2


@pytest.mark.nightly
@pytest.mark.alone
@pytest.mark.parametrize(
    "name, keys",
    [
        ("loss-64", {"captured_pps", "lost", "loss", "pause_s", "cpu_wait_s", "buffer_used", "alone_pps", "added_s"}),
        ("stop100-20mpps", {"captured_pps", "seen_pps", "lost", "stop_s", "disturbed"}),
        ("busy-20mpps", {"seen_pps", "lost"}),
        ("dumpcap-64", {"captured_pps", "loss", "attached_pps", "added_s"}),
        ("memory", {"charged_bytes", "tables_bytes", "buffer_bytes"}),
        ("membarrier", {"membarriers", "polls"}),
    ],
)
def test_measures_real_programs(tmp_path, clone, name, keys):
    done = aims(tmp_path, "--only", name, "--repetitions", "1", "--duration", "1.2s", "--nice", "-20", **clone)
    assert done.returncode == 0, done.stderr
    measured = [e for e in journal(tmp_path) if e["event"] == "run"]
    assert [e["cell"] for e in measured] == [name]
    assert keys <= set(measured[0]["values"])
    assert measured[0]["data"]["regime"] in regime.MEANING and len(measured[0]["data"]["probes"]) == 2
