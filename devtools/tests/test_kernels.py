# SPDX-License-Identifier: BSD-3-Clause
"""Results of tests in a guest are kept one by one: devtools/kernels.py."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "devtools"), str(REPO / "e2e")]
import kernels  # noqa: E402

A, B, C = "ports/test_a.py::test_a", "record/test_b.py::test_b[1]", "record/test_c.py::test_c"


def phase(test, when, passed=True, skipped=False, reason=""):
    return json.dumps([test, passed, 2.5, skipped, when, reason]) + "\n"


def whole(test, **call):
    return phase(test, "setup") + phase(test, "call", **call) + phase(test, "teardown")


class Guest:
    """A machine whose program has written its outcomes when it starts."""

    boot_s = 1

    def __init__(self, folder, outcomes, status="0\n"):
        self.work, self.outcomes, self.status = folder, outcomes, status
        self.proc = SimpleNamespace(alive=lambda: True, output="")
        folder.mkdir()

    def run(self, *_):
        return {"out": "5.10.0-32-amd64\n"}

    def start(self, _, command):
        self.command = command
        (self.work / "outcomes").write_text(self.outcomes)
        if self.status:
            (self.work / "status").write_text(self.status)

    def close(self):
        pass


@pytest.fixture
def runs(tmp_path):
    """Runs tests in guests that write these outcomes, one after the other; returns the reports."""

    def run(tests, *outcomes):
        guests = [Guest(tmp_path / str(i), text) for i, text in enumerate(outcomes)]
        reports, left = [], list(guests)
        kernels.run("bullseye", tests, 60, lambda *report: reports.append(report[:3]), lambda _: left.pop(0))
        assert not left
        return reports, guests

    return run


def test_outcomes_come_one_by_one(runs):
    failed = whole(B, passed=False, reason="assert 1 == 2")
    skipped = phase(C, "setup", skipped=True, reason="no vhost") + phase(C, "teardown")
    reports, _ = runs([A, B, C], whole(A) + failed + skipped)
    assert [report[1:] for report in reports] == [
        (A, "passed"),
        (B, "failed: assert 1 == 2"),
        (C, "skipped: no vhost"),
    ]
    assert {report[0] for report in reports} == {"5.10.0-32-amd64"}


def test_another_guest_runs_what_is_left(runs):
    """The test that the first guest ended with has failed. A line that is not complete is not read."""
    reports, guests = runs([A, B, C], whole(A) + phase(B, "setup") + "[", whole(C))
    assert [report[1] for report in reports] == [A, B, C]
    assert reports[1][2].startswith("failed: it did not end")
    assert guests[1].command[-1] == C and A not in guests[1].command


def test_tests_without_a_result_come_first():
    results = {A: {"date": "2026-11-02"}, B: {"date": "2026-11-01"}}
    assert kernels.due([A, B, C], results) == [C, B, A]


def test_results_of_another_kernel_or_of_no_test_are_dropped():
    before = {"kernel": "5.10.0-32-amd64", "results": {A: 1, "gone.py::test": 2}}
    assert kernels.of_kernel(before, "5.10.0-32-amd64", [A, B]) == {
        "kernel": "5.10.0-32-amd64",
        "tests": 2,
        "results": {A: 1},
    }
    assert kernels.of_kernel(before, "5.10.0-33-amd64", [A, B])["results"] == {}


def test_table(tmp_path, monkeypatch):
    """By version, with the number of tests that ran, and what happened to those that did not pass."""
    results = {A: {"date": "2026-11-01", "result": "passed"}, B: {"date": "2026-11-03", "result": "failed: a | b"}}
    monkeypatch.setattr(kernels, "RESULT", tmp_path / "kernels.json")
    monkeypatch.setattr(kernels, "PAGE", tmp_path / "page.md")
    kernels.PAGE.write_text(f"before\n{kernels.BEGIN}old\n{kernels.END}after\n")
    kernels.write(
        {
            "bookworm": {"kernel": "6.1.0-40-amd64", "tests": 3, "results": {A: results[A]}},
            "bullseye": {"kernel": "5.10.0-32-amd64", "tests": 3, "results": results},
            "trixie": {"kernel": "6.12", "tests": 3, "results": {}},
        }
    )
    text = kernels.PAGE.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        "| 5.10.0-32-amd64 | Debian's bullseye, 2026-11-01 to 2026-11-03 | 2 of 3 | 1 |"
        " `e2e/record/test_b.py::test_b[1]`: failed: a / b |",
        "| 6.1.0-40-amd64 | Debian's bookworm, 2026-11-01 | 1 of 3 | 1 | none |",
    ]
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
