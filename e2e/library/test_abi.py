# SPDX-License-Identifier: BSD-3-Clause
"""The check of the binary interface passes, and fails after a field is inserted into a
structure."""
import platform
import shutil

import pytest

from harness.paths import BUILD, REPO
from harness.proc import run

pytestmark = pytest.mark.skipif(not shutil.which("abidw") or platform.machine() != "x86_64",
                                reason="needs abigail-tools and x86_64")


def check(include):
    return run([REPO / "devtools" / "abi.sh", "check", BUILD, include])


def test_nothing_has_changed():
    done = check(REPO / "include")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "structures: unchanged" in done.stdout and "libringtap: unchanged" in done.stdout


@pytest.mark.parametrize("header,before", [
    ("monitor.h", "	uint64_t ipackets, opackets"),  # an entry of an array with a stride
    ("reader.h", "	int queue;           /* -1: all */"),  # filled by the caller
    ("reader.h", "	RINGTAP_LOST_NO_RING,")])
def test_field_that_is_inserted_fails(tmp_path, header, before):
    shutil.copytree(REPO / "include", tmp_path / "include")
    path = tmp_path / "include" / "ringtap" / header
    text = path.read_text()
    assert before in text
    inserted = "	INSERTED,\n" if before.endswith(",") and "RINGTAP" in before else "	uint32_t inserted;\n"
    path.write_text(text.replace(before, inserted + before, 1))
    done = check(tmp_path / "include")
    assert done.returncode == 1 and "structures: CHANGED" in done.stdout, done.stdout + done.stderr
    assert "inserted" in done.stdout.lower()
