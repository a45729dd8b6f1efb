# SPDX-License-Identifier: BSD-3-Clause
"""The test run restores the state of the machine, even if it is killed."""
import os
import signal
import sys
from pathlib import Path

import pytest

from harness import dpdk
from harness.paths import E2E, RINGTAP
from harness.proc import Proc, check, until
from harness.sandbox import public

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
RUN = """
from harness import sandbox
sandbox.enter()
sandbox.HugePages(pages={2048: %d})
print("entered", flush=True)
input()
"""


def run_of_its_own(closing):
    pages = int((POOL / "free_hugepages").read_text()) + 8
    proc = closing(Proc([sys.executable, "-c", RUN % pages], env={"PYTHONPATH": str(E2E)}))
    proc.expect("^entered$")
    return proc


@pytest.mark.alone
def test_huge_pages_are_given_back_after_kill_9(closing):
    before = int((POOL / "nr_hugepages").read_text())
    run = run_of_its_own(closing)
    assert int((POOL / "nr_hugepages").read_text()) == before + 8
    os.kill(run.pid, signal.SIGKILL)
    until(lambda: int((POOL / "nr_hugepages").read_text()) == before, what="the pages of before")


@pytest.mark.smoke
def test_mounts_are_private(closing):
    before = Path("/proc/self/mounts").read_text()
    run = run_of_its_own(closing)
    assert Path("/proc/self/mounts").read_text() == before
    assert "ringtap-e2e /run/dpdk tmpfs" in Path(f"/proc/{run.pid}/mounts").read_text()


def test_applications_are_isolated(play):
    """An application in this run is not visible outside, nor the other way round."""
    app = play()
    assert (dpdk.RUN_DIR / app.prefix).exists()
    outside = check(["nsenter", "-t", str(os.getppid()), "-m", "ls", "/run"]).split()
    if "dpdk" in outside:
        assert app.prefix not in check(["nsenter", "-t", str(os.getppid()), "-m", "ls", "/run/dpdk"])


def test_another_user_can_run_the_build():
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    assert check([*nobody, public(RINGTAP), "--version"]).startswith("ringtap ")
