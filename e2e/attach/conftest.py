# SPDX-License-Identifier: BSD-3-Clause
"""ringtap in a folder of its own, with files that a test may spoil."""

import shutil

import pytest
from harness.paths import BUILD, PROBE_OBJECT


@pytest.fixture
def moved(private_dir):
    """A copy of ringtap and the probe, in the same folders as in the build."""
    for name in (
        "cli/ringtap",
        "probe/libringtap-probe.so",
        f"probe/ringtap/{PROBE_OBJECT.name}",
        *(f"reader/{p.name}" for p in (BUILD / "reader").glob("libringtap.so*") if p.is_file()),
    ):
        (private_dir / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / name, private_dir / name, follow_symlinks=True)
    return private_dir
