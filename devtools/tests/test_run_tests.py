# SPDX-License-Identifier: BSD-3-Clause
"""A test that fails is run once more, alone, to classify it: devtools/run_tests.py, devtools/check_flaky.py."""

import json
import os
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]

FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    first = not Path("seen").exists()
    Path("seen").touch()
    assert not first

def test_passes():
    pass
"""
FAILS = "def test_fails():\n    assert False\n"


def run(command, cwd, env=None, check=False):
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **(env or {})}, check=check
    )


@pytest.fixture
def tree(tmp_path):
    """A repository of a few tests, with the runner."""
    (tmp_path / "devtools").mkdir()
    (tmp_path / "e2e").mkdir()
    for name in ("run_tests.py", "changed_tests.py", "slow_tests.py", "pytest_outcomes.py", "check_flaky.py"):
        shutil.copy(REPO / "devtools" / name, tmp_path / "devtools")
    (tmp_path / "e2e" / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run_tests(tree, jobs=0, **tests):
    for name, text in tests.items():
        (tree / "e2e" / f"{name}.py").write_text(text)
    environment = {"RINGTAP_BUILD": str(tree), "RINGTAP_FLAKY": str(tree / "flaky.txt"), "PYTHONDONTWRITEBYTECODE": "1"}
    return run(
        [sys.executable, "devtools/run_tests.py", "e2e", "e2e", "--jobs", str(jobs), "--", "-p", "no:cacheprovider"],
        cwd=tree,
        env=environment,
    )


def test_passed_the_second_time_is_flaky(tree):
    result = run_tests(tree, 2, test_once=FAILS_ONCE)
    assert result.returncode == 0, result.stdout
    assert (tree / "flaky.txt").read_text() == (
        "1 flaky:\n  e2e/test_once.py::test_fails_once\nto commit to e2e/flaky.toml:\n"
        f'[[flaky]]\ntest = "e2e/test_once.py::test_fails_once"\ndate = {date.today()}\ncause = ""\n'
    )
    stored = json.loads((tree / "outcomes-e2e.json").read_text())
    assert stored["flaky"] == ["e2e/test_once.py::test_fails_once"]
    assert set(stored["outcomes"]) == {"e2e/test_once.py::test_fails_once", "e2e/test_once.py::test_passes"}


def test_failed_twice_fails_the_run(tree):
    result = run_tests(tree, test_once=FAILS_ONCE, test_always=FAILS)
    assert result.returncode == 1
    assert json.loads((tree / "outcomes-e2e.json").read_text())["failed"] == ["e2e/test_always.py::test_fails"]


def test_many_failures_are_not_luck(tree):
    many = (
        FAILS_ONCE.replace("def", "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef", 1)
        .replace("test_fails_once()", "test_fails_once(n)")
        .replace('"seen"', 'f"seen{n}"')
    )
    result = run_tests(tree, test_many=many)
    assert result.returncode == 1
    assert "to classify" not in result.stdout


def test_known_flaky_tests_do_not_gate(tree):
    (tree / "e2e" / "flaky.toml").write_text(
        f'[[flaky]]\ntest = "e2e/test_always.py::test_fails"\ndate = {date.today()}\ncause = ""\n'
    )
    result = run_tests(tree, test_always=FAILS)
    assert result.returncode == 0
    assert "does not gate (e2e/flaky.toml): e2e/test_always.py::test_fails" in result.stdout


def test_files_that_cannot_be_read_fail_the_run(tree):
    assert run_tests(tree, test_once=FAILS_ONCE, test_broken="import nothing_of_this_name").returncode != 0


def test_unit_tests_are_classified_too(tree):
    once = tree / "once.sh"
    once.write_text('#!/bin/sh\n[ -e "$1" ] || { touch "$1"; exit 1; }\n')
    once.chmod(0o755)
    (tree / "meson.build").write_text(
        "project('tests')\nsuite = find_program('once.sh')\n"
        f"test('once', suite, args: '{tree}/seen')\ntest('passes', find_program('true'))\n"
    )
    run(["meson", "setup", "build"], cwd=tree)
    command = [sys.executable, "devtools/run_tests.py", "unit", "build"]
    environment = {"RINGTAP_FLAKY": str(tree / "flaky.txt")}
    result = run(command, cwd=tree, env=environment)
    assert result.returncode == 0, result.stdout
    assert "1 flaky:\n  once\n" in result.stdout
    once.write_text("#!/bin/sh\nexit 1\n")
    assert run(command, cwd=tree, env=environment).returncode == 1


def test_results_are_those_of_whole_runs(tree):
    """make results takes no run of some tests, and counts skipped tests as such."""
    (tree / "docs").mkdir()
    (tree / "docs" / "testing.md").write_text("# Tests\n\n<!-- made by results.py -->\n<!-- end -->\n")
    shutil.copy(REPO / "devtools" / "results.py", tree / "devtools")
    (tree / "e2e" / "test_three.py").write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('absent')\ndef test_c(): assert 0\n"
    )
    command = [sys.executable, "devtools/run_tests.py", "e2e", "e2e", "--"]
    environment = {"RINGTAP_BUILD": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}

    def noted(*args):
        run([*command, *args], cwd=tree, env=environment)
        return run([sys.executable, "devtools/results.py", "outcomes", "outcomes-e2e.json"], tree, check=True).stdout

    assert "outcomes-e2e.json: not noted, a run of some tests: -k test_a" in noted("-k", "test_a")
    assert not (tree / "docs" / "results.json").exists()
    assert noted() == ""
    run([sys.executable, "devtools/results.py", "write"], tree, check=True)
    assert " | 1 of 3 passed, 1 skipped, 1 failed |\n" in (tree / "docs" / "testing.md").read_text()
    run([sys.executable, "devtools/results.py", "check"], tree, check=True)
    run([sys.executable, "devtools/results.py", "add", "soak", "124", "75"], tree, check=True)
    assert "| soak | " in (tree / "docs" / "testing.md").read_text()


REGISTERS = [
    ([("e2e/test_a.py::test_a", 15, "")], "no cause after 14 days"),
    ([("e2e/test_a.py::test_a", 14, ""), ("e2e/test_a.py::test_b", 99, "known")], None),
    ([("e2e/test_b.py::test_a", 0, "")], "no such test"),
    ([("e2e/test_a.py::test_a", 0, "")] * 9, "9 entries; at most 8"),
]


def test_register_is_checked(tree):
    (tree / "e2e" / "test_a.py").write_text("")
    for entries, fault in REGISTERS:
        (tree / "e2e" / "flaky.toml").write_text(
            "".join(
                f'[[flaky]]\ntest = "{test}"\ndate = {date.today() - timedelta(days=age)}\ncause = "{cause}"\n'
                for test, age, cause in entries
            )
        )
        result = run([sys.executable, "devtools/check_flaky.py"], cwd=tree)
        assert result.returncode == (1 if fault else 0), fault
        assert (fault or "") in result.stdout
