# SPDX-License-Identifier: BSD-3-Clause
"""The check of the binary interface passes, and fails after a field is inserted into a
structure."""

import platform
import shutil

import pytest
from harness.paths import BUILD, REPO
from harness.proc import run

pytestmark = pytest.mark.skipif(
    not shutil.which("abidw") or platform.machine() != "x86_64", reason="needs abigail-tools and x86_64"
)


def check(include):
    return run([REPO / "devtools" / "abi.sh", "check", BUILD, include])


def test_nothing_has_changed():
    done = check(REPO / "include")
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("structures", "libringtap", "compiled-in"):
        assert f"{what}: unchanged" in done.stdout


def change(folder, header, old, new):
    shutil.copytree(REPO / "include", folder / "include", dirs_exist_ok=True)
    path = folder / "include" / "ringtap" / header
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return check(folder / "include")


def test_changes_fail(tmp_path):
    """Fields that are inserted, and what programs compile in. The layout of the source may change."""
    for header, before in (
        ("monitor.h", "	uint64_t ipackets, opackets"),  # an entry of an array with a stride
        ("reader.h", "	int queue;           /* -1: all */"),  # filled by the caller
        ("reader.h", "	RINGTAP_LOST_NO_RING,"),
    ):
        inserted = "	INSERTED,\n" if before.endswith(",") and "RINGTAP" in before else "	uint32_t inserted;\n"
        done = change(tmp_path, header, before, inserted + before)
        assert done.returncode == 1 and "structures: CHANGED" in done.stdout, done.stdout + done.stderr
        assert "inserted" in done.stdout.lower()
    for header, old, new in (
        ("reader.h", "#define RINGTAP_LOST_MAX 16", "#define RINGTAP_LOST_MAX 17"),
        ("monitor.h", "RINGTAP_LATENCY = 1 << 4", "RINGTAP_LATENCY = 1 << 9"),  # in an enumeration without a name
        ("reader.h", "RINGTAP_TX = 2", "RINGTAP_TX = 2, RINGTAP_BOTH = 3"),
        ("reader.h", "a->first + i * a->stride", "a->first + i * 8"),
        ("monitor.h", "ringtap_array_at(&t->gaps, i)", "ringtap_array_at(&t->microbursts, i)"),
    ):
        done = change(tmp_path, header, old, new)
        assert done.returncode == 1 and "compiled-in: CHANGED" in done.stdout, (new, done.stdout + done.stderr)
    done = change(
        tmp_path,
        "reader.h",
        "\treturn (const char *)a->first + i * a->stride;",
        "\t/* Comment. */\n\treturn (const char *)a->first +\n\t\ti * a->stride;",
    )
    assert done.returncode == 0, done.stdout + done.stderr
