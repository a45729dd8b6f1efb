# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap-lab all`: several experiments in one run, also ones that cannot be measured."""

import json

import pytest
from harness import report

STOP = ("--sample-stop", "two0")
ALL = sorted((r, c) for r in range(3) for c in ("one", "two", "three"))
SOME = "sample,other,impossible"
pytestmark = pytest.mark.usefixtures("no_plots")


@pytest.fixture
def everything(lab, tmp_path):
    return lambda *args, samples=SOME: lab("all", "-w", tmp_path / "out", *args, samples=samples)


def measured(tmp_path):
    """(repetition, cell) of all journals."""
    lines = [json.loads(line) for path in (tmp_path / "out").glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted((e["repetition"], e["cell"]) for e in lines if e["event"] == "run")


def test_failed_experiment_does_not_stop_others(tmp_path, everything):
    done = everything()
    assert done.returncode == 2
    assert "3 experiments: impossible, sample, other; about " in done.stderr
    assert "ringtap-lab: there is nothing to be counted\n" in done.stderr
    assert measured(tmp_path) == ALL
    text = (tmp_path / "out" / "report.html").read_text()
    page, data = report.Page(text), report.load(tmp_path / "out")
    assert set(data) == set(page.experiments()) == {"impossible", "sample", "other"}
    report.check(page, data, "")
    section = page.experiments()["impossible"]
    assert "It could not be measured here: there is nothing to be counted" in section.text()
    summary = page.root.classed("summary")[0].text()
    assert "there is nothing to be counted" in summary
    assert data["impossible"]["trouble"] and not data["sample"]["trouble"] and data["other"]["ended"]
    # When it can be measured later, the error is removed.
    again = everything(samples="sample,other")
    assert again.returncode == 0 and measured(tmp_path) == ALL


def test_remaining_time_is_that_of_all_experiments(everything):
    done = everything(samples="sample,other")
    assert done.returncode == 0, done.stderr
    # Nine cells of 1 s and three of 2 s; no time has been measured yet.
    assert "2 experiments: sample, other; about 15 s\n" in done.stderr
    assert "[1/12] sample: one, repetition 1; about 9 s left, of all experiments 15 s\n" in done.stderr
    last = [line for line in done.stderr.splitlines() if line.startswith("[")][-1]
    assert last.startswith("[10/10] other: three, repetition 3; about ") and "of all" not in last


def test_resumes_after_a_stop(tmp_path, everything):
    """Stopped in the first experiment; the second one, and previous measurements, are kept."""
    assert everything(*STOP).returncode == 130
    assert measured(tmp_path) == [(0, "one")]
    (tmp_path / "healed").touch()
    again = everything(*STOP)
    assert again.returncode == 2 and measured(tmp_path) == ALL
    assert "[1/11] sample: two, repetition 1" in again.stderr
    assert "1 of 9 measurements are in" in again.stderr
    kept = (tmp_path / "out" / "sample.jsonl").read_text().splitlines()[1:3]
    before = {p.name: p.read_text() for p in (tmp_path / "out").glob("*.json*") if "impossible" not in p.name}
    third = everything(*STOP)
    assert "repetition" not in third.stderr and "other: all of it is in" in third.stderr
    assert before == {name: (tmp_path / "out" / name).read_text() for name in before}
    fresh = everything(*STOP, "--fresh")
    assert measured(tmp_path) == ALL and "[1/12] sample: one" in fresh.stderr
    assert (tmp_path / "out" / "sample.jsonl").read_text().splitlines()[1:3] != kept


def test_other_settings_change_nothing(tmp_path, everything):
    """A run with other settings is refused, and the existing report does not mention it."""
    assert everything(samples="sample,other").returncode == 0
    before = (tmp_path / "out" / "report.html").read_text()
    done = everything("--quick", samples="sample,other")
    assert (
        done.returncode == 2 and done.stderr.count("holds results of other settings: quick False instead of True") == 2
    )
    assert (tmp_path / "out" / "report.html").read_text() == before


def test_only_some_cells_of_all(tmp_path, everything):
    assert everything("--only", "thr", samples="sample,other").returncode == 0
    assert measured(tmp_path) == [(0, "three"), (1, "three"), (2, "three")]
    assert [p.name for p in (tmp_path / "out").glob("*.jsonl")] == ["other.jsonl"]
    nothing = everything("--only", "four", samples="sample,other")
    assert nothing.returncode == 2 and "--only four: no such cell in any of them" in nothing.stderr


def test_failed_report_does_not_hide_others(tmp_path, everything):
    done = everything(samples="sample,confused")
    assert done.returncode == 0, done.stderr
    page = report.Page((tmp_path / "out" / "report.html").read_text())
    broken = page.root.classed("broken")
    assert len(broken) == 1 and "confused: this part could not be made" in broken[0].text()
    report.check_values(page, report.load(tmp_path / "out"))
    assert "AttributeError" in done.stderr


def test_list_measures_nothing(tmp_path, everything):
    done = everything("--list")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["impossible three", "sample one", "sample two", "sample gone", "other three"]
    assert not (tmp_path / "out").exists()
