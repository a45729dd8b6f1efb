# SPDX-License-Identifier: BSD-3-Clause
"""Two builds are compared file by file: devtools/reproducible.sh."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "reproducible.sh"


@pytest.fixture
def compare(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in first, second:
        (folder / "RPMS").mkdir(parents=True)
        (folder / "RPMS" / "a.rpm").write_text("a")
        (folder / "b.deb").write_text("b")
        (folder / "build.log").write_text(str(folder))  # not compared

    def run():
        return subprocess.run([SCRIPT, "--compare", first, second], capture_output=True, text=True)

    run.second = second
    return run


def test_the_same(compare):
    done = compare()
    assert done.returncode == 0 and "the same twice: 2 files" in done.stdout


def test_a_file_that_differs_is_named(compare):
    (compare.second / "RPMS" / "a.rpm").write_text("c")
    done = compare()
    assert done.returncode == 1 and "not the same: ./RPMS/a.rpm" in done.stdout and "b.deb" not in done.stdout


def test_a_file_that_is_missing_is_named(compare):
    (compare.second / "b.deb").unlink()
    done = compare()
    assert done.returncode == 1 and "./b.deb" in done.stdout and "a.rpm" not in done.stdout


def test_nothing_is_not_the_same(compare, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert subprocess.run([SCRIPT, "--compare", empty, empty], capture_output=True).returncode == 1
