# SPDX-License-Identifier: BSD-3-Clause
"""A unit test that takes long is noted with what it waits for: devtools/slow_tests.py."""

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import slow_tests


def test_tests_of_a_build_are_found_and_noted(tmp_path):
    build, other = tmp_path / "build", tmp_path / "other"
    for folder, name in ((build, "sleepy_test"), (build, "program"), (other, "sleepy_test")):
        folder.mkdir(exist_ok=True)
        shutil.copy(shutil.which("sleep"), folder / name)
    programs = [
        subprocess.Popen([path, "600"]) for path in (build / "sleepy_test", build / "program", other / "sleepy_test")
    ]
    try:
        assert slow_tests.tests_of(build) == {programs[0].pid: "sleepy_test"}
        head, task, *_ = slow_tests.snapshot({programs[0].pid: ("sleepy_test", 45)})
        assert head.endswith("sleepy_test has taken 45 s; in a second its threads")
        assert f" {programs[0].pid} sleepy_test: S, on CPU " in task and "nanosleep" in task
        watch = slow_tests.Watch(build, tmp_path / "slow.txt", seconds=0, interval=0.01)
        watch.start()
        while not (tmp_path / "slow.txt").exists():
            assert watch.is_alive()
            watch.join(0.05)
        watch.stop()
        assert "nanosleep" in (tmp_path / "slow.txt").read_text()
    finally:
        for program in programs:
            program.kill()
            program.wait()


def test_nothing_is_written_of_quick_ones(tmp_path):
    watch = slow_tests.Watch(tmp_path, tmp_path / "slow.txt", interval=0.01)
    watch.start()
    watch.ended.wait(0.1)
    watch.stop()
    assert not (tmp_path / "slow.txt").exists()
