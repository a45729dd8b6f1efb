# SPDX-License-Identifier: BSD-3-Clause
"""The check of the binary interface passes, and fails after a field is inserted into a
structure."""

import platform
import shutil

import pytest
from harness.cases import nightly
from harness.paths import BUILD, REPO
from harness.proc import run

pytestmark = pytest.mark.skipif(
    not shutil.which("abidw") or platform.machine() != "x86_64", reason="needs abigail-tools and x86_64"
)


def check(include):
    return run([REPO / "devtools" / "abi.sh", "check", BUILD, include])


@pytest.mark.nightly  # `make abi` is a step of .ci/run
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


@pytest.mark.parametrize(
    "header, before",
    [
        ("monitor.h", "	uint64_t ipackets, opackets"),  # an entry of an array with a stride
        nightly("reader.h", "	int queue;           /* -1: all */"),  # filled by the caller
        nightly("reader.h", "	RINGTAP_LOST_NO_RING,"),
    ],
    ids=["field", "field of an argument", "enumerator"],
)
def test_what_is_inserted_fails(tmp_path, header, before):
    inserted = "	INSERTED,\n" if before.endswith(",") and "RINGTAP" in before else "	uint32_t inserted;\n"
    done = change(tmp_path, header, before, inserted + before)
    assert done.returncode == 1 and "structures: CHANGED" in done.stdout, done.stdout + done.stderr
    assert "inserted" in done.stdout.lower()


@pytest.mark.parametrize(
    "header, old, new",
    [
        nightly("reader.h", "#define RINGTAP_LOST_MAX 16", "#define RINGTAP_LOST_MAX 17"),
        nightly(
            "monitor.h", "RINGTAP_LATENCY = 1 << 4", "RINGTAP_LATENCY = 1 << 9"
        ),  # in an enumeration without a name
        nightly("reader.h", "RINGTAP_TX = 2", "RINGTAP_TX = 2, RINGTAP_BOTH = 3"),
        ("reader.h", "a->first + i * a->stride", "a->first + i * 8"),
        nightly("monitor.h", "ringtap_array_at(&t->gaps, i)", "ringtap_array_at(&t->microbursts, i)"),
    ],
    ids=["macro", "enumeration without a name", "enumerator", "accessor", "field of an accessor"],
)
def test_changes_of_what_programs_compile_in_fail(tmp_path, header, old, new):
    done = change(tmp_path, header, old, new)
    assert done.returncode == 1 and "compiled-in: CHANGED" in done.stdout, (new, done.stdout + done.stderr)


def test_another_layout_of_the_source(tmp_path):
    done = change(
        tmp_path,
        "reader.h",
        "\treturn (const char *)a->first + i * a->stride;",
        "\t/* Comment. */\n\treturn (const char *)a->first +\n\t\ti * a->stride;",
    )
    assert done.returncode == 0, done.stdout + done.stderr
