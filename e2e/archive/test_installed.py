# SPDX-License-Identifier: BSD-3-Clause
"""The environment that `make archive` makes, without the variables by which tests run the sources: decoder and page are
found."""

import sys
from pathlib import Path

import pytest
from harness.archiving import recording
from harness.paths import RINGTAP
from harness.proc import check

PROGRAM = Path(sys.executable).parent / "ringtap-archive"


@pytest.mark.parametrize("program", [[RINGTAP, "archive"], [PROGRAM]], ids=["by ringtap", "itself"])
def test_a_recording_becomes_a_report(program, tmp_path):
    bare = ["env", "-u", "PYTHONPATH", "-u", "RINGTAP_BUILD", f"RINGTAP_ARCHIVE={PROGRAM}", *program]
    file, archive, page = tmp_path / "one.pcapng", tmp_path / "archive", tmp_path / "report.html"
    recording(file, 500, 1)
    check([*bare, "ingest", "-A", archive, file])
    check([*bare, "report", "-A", archive, "--html", page])
    assert "@DOCUMENT@" not in page.read_text() and "archive report" in page.read_text()
