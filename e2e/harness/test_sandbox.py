# SPDX-License-Identifier: BSD-3-Clause
"""The test run restores the state of the machine, even if it is killed."""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.paths import BUILD, E2E, REPO, RINGTAP
from harness.play import Play
from harness.proc import Proc, check, run, until
from harness.sandbox import AUTOGROUP, public

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
RUN = """
from harness import sandbox
sandbox.enter()
sandbox.HugePages(pages={2048: %d})
sandbox.OneGroup()
print("entered", flush=True)
input()
"""


def run_of_its_own(closing):
    pages = int((POOL / "free_hugepages").read_text()) + 8
    proc = closing(Proc([sys.executable, "-c", RUN % pages], env={"PYTHONPATH": str(E2E)}))
    proc.expect("^entered$")
    return proc


@pytest.mark.nightly
@pytest.mark.alone
def test_huge_pages_are_given_back_after_kill_9(closing):
    before = int((POOL / "nr_hugepages").read_text())
    proc = run_of_its_own(closing)
    assert int((POOL / "nr_hugepages").read_text()) == before + 8
    os.kill(proc.pid, signal.SIGKILL)
    until(lambda: int((POOL / "nr_hugepages").read_text()) == before, what="the pages of before")


@pytest.mark.nightly
@pytest.mark.alone
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="the kernel has no autogroups")
def test_autogroups_are_given_back_after_kill_9(closing):
    before = AUTOGROUP.read_text()
    AUTOGROUP.write_text("1")  # this run has switched them off
    try:
        proc = run_of_its_own(closing)
        assert int(AUTOGROUP.read_text()) == 0
        os.kill(proc.pid, signal.SIGKILL)
        until(lambda: int(AUTOGROUP.read_text()), what="the setting of before")
    finally:
        AUTOGROUP.write_text(before)


@pytest.mark.nightly
@pytest.mark.smoke
def test_mounts_are_private(closing):
    before = Path("/proc/self/mounts").read_text()
    proc = run_of_its_own(closing)
    assert Path("/proc/self/mounts").read_text() == before
    assert "ringtap-e2e /run/dpdk tmpfs" in Path(f"/proc/{proc.pid}/mounts").read_text()


HOST = SimpleNamespace(prefix=["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run/dpdk && exec "$@"', "sh"])


def mounts_of(pid):
    return SimpleNamespace(prefix=["nsenter", "-t", str(pid), "-m"])


def names(space=None):
    """The applications that ringtap finds there."""
    return set(check([*(space.prefix if space else []), RINGTAP, "list", "--names"]).split()) - {""}


@pytest.mark.nightly
def test_applications_are_isolated(plugin, play, closing):
    """A run on a host that has an application: neither sees that of the other; and this run sees its own only."""
    mine, hosts = play(), play(namespace=HOST)
    host = mounts_of(hosts.pid)
    proc = closing(Proc([*host.prefix, sys.executable, "-c", RUN % 0], env={"PYTHONPATH": str(E2E)}))
    proc.expect("^entered$")
    inside = mounts_of(proc.pid)
    theirs = closing(Play(plugin, namespace=inside))
    assert names(host) == {hosts.prefix} and names(inside) == {theirs.prefix}
    assert names() == {mine.prefix}


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.mark.nightly
def test_another_user_can_run_the_build():
    assert check([*NOBODY, public(RINGTAP), "--version"]).startswith("ringtap ")


CLONE = """
from harness import sandbox
from harness.paths import BUILD, RINGTAP
sandbox.enter()
print("entered", RINGTAP, sandbox.public(RINGTAP), flush=True)
input()
"""


def test_clone_below_a_folder_of_root(private_dir, closing):
    """Another user may not enter the folder (mode 0700), and runs the build by the sandbox's path."""
    clone = private_dir / "clone"
    clone.mkdir()
    script = f'mount --bind {REPO} {clone} && mkdir -p {clone}/build && mount --bind {BUILD} {clone}/build && exec "$@"'
    proc = closing(
        Proc(
            ["unshare", "-m", "sh", "-c", script, "sh", "env", "-u", "RINGTAP_BUILD", sys.executable, "-c", CLONE],
            env={"PYTHONPATH": str(clone / "e2e")},
        )
    )
    own, path = (word.decode() for word in proc.expect(r"^entered (\S+) (\S+)$").groups())
    assert own == str(clone / "build" / "cli" / "ringtap") and private_dir.stat().st_mode & 0o777 == 0o700
    there = mounts_of(proc.pid).prefix
    assert run([*there, *NOBODY, own, "--version"]).returncode == 127  # neither the program nor its libraries
    assert check([*there, *NOBODY, path, "--version"]).startswith("ringtap ")
