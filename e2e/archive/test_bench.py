# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark runs to its end with the programs that it compares. The test does not judge its numbers."""

import json
import os
import subprocess

from harness.archived import python
from harness.paths import BUILD, REPO


def test_the_benchmark_runs(tmp_path):
    env = dict(os.environ, PYTHONPATH=str(REPO / "archive"), RINGTAP_BUILD=str(BUILD))
    done = subprocess.run(
        [
            python(),
            "-m",
            "ringtap_archive.main",
            "bench",
            "--only",
            "index",
            "--packets",
            "4k",
            "--repetitions",
            "1",
            "--folder",
            str(tmp_path / "folder"),
            "--result",
            str(tmp_path / "result.json"),
        ],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    values = {row["name"]: row["values"] for row in json.loads((tmp_path / "result.json").read_text())["rows"]}
    for program in ("decode", "index", "ingest", "capinfos", "tcpdump -r", "tshark -T fields"):
        assert values[f"{program}: packets a second"][0] > 0
        assert f"| {program}: packets a second |" in done.stdout
    assert "$ capinfos -c" in done.stderr
