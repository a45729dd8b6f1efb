# SPDX-License-Identifier: BSD-3-Clause
"""DPDK of other releases: builds and tests in root folders of other Debian suites. RINGTAP_ROOTS
names their parent folder; devtools/other-dpdk.sh makes one."""

import os
from pathlib import Path

import pytest
from harness.paths import REPO
from harness.proc import check

ROOTS = sorted(Path(os.environ["RINGTAP_ROOTS"]).iterdir()) if "RINGTAP_ROOTS" in os.environ else []


@pytest.mark.skipif(not ROOTS, reason="RINGTAP_ROOTS names no folder of roots of other suites")
@pytest.mark.parametrize("root", ROOTS, ids=lambda path: path.name)
@pytest.mark.slow
def test_suite(root):
    assert "ringtap works with DPDK" in check([REPO / "devtools" / "other-dpdk.sh", root], timeout=1800)
