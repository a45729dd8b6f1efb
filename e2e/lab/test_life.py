# SPDX-License-Identifier: BSD-3-Clause
"""Runs of ringtap-lab with processes, namespaces and files: nothing is left in the system, however a run ends."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from harness import lab
from harness.lab import SAMPLE, STOP
from harness.proc import check, name_of, until
from ringtap_lab.tools import scope

DEAF = ("--sample-deaf", "yes")


def sample(tmp_path, *args):
    return lab.run("sample", "-w", tmp_path / "out", *args, program=SAMPLE, cwd=tmp_path)


def measured(tmp_path):
    lines = [json.loads(line) for line in (tmp_path / "out" / "sample.jsonl").read_text().splitlines()]
    return sorted((e["repetition"], e["cell"]) for e in lines if e["event"] == "run")


@pytest.fixture
def stopped(tmp_path, closing):
    """A run stopped in its second cell, with namespaces, processes and files; a process ignores SIGTERM."""
    p = closing(lab.start("sample", "-w", tmp_path / "out", *STOP, *DEAF, program=SAMPLE, cwd=tmp_path))
    p.expect("everything is there")
    here = lab.remains(p.pid)
    assert sum(x.startswith("network namespace") for x in here) == 2, here
    # A process may be executing another program, and has no environment then.
    until(lambda: sum(x.startswith("process") for x in lab.remains(p.pid)) >= 2, what="both processes")
    assert any(x.startswith("/run/") for x in here), here
    return p


def ignores_all(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    ignored = int(next(line for line in text.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    return all(ignored >> (n - 1) & 1 for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


@pytest.mark.nightly
def test_nothing_is_left_after_an_interrupt(tmp_path, stopped):
    """Cleanup waits for a process that ignores SIGTERM; further signals arrive meanwhile. The same command goes on."""
    stopped.send_signal(signal.SIGTERM)
    until(lambda: ignores_all(stopped.pid), what="signals ignored")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        stopped.send_signal(number)
    assert stopped.wait() == 130
    assert lab.remains(stopped.pid) == []
    assert measured(tmp_path) == [(0, "one")]
    assert (tmp_path / "out" / "report.html").exists()
    (tmp_path / "healed").touch()
    again = sample(tmp_path, *STOP, *DEAF)
    assert again.returncode == 0 and "[1/8] sample: two, repetition 1" in again.stderr
    assert measured(tmp_path) == [(r, c) for r in range(3) for c in ("one", "two")]


@pytest.mark.nightly
def test_next_run_removes_remains_of_a_killed_one(tmp_path, stopped):
    """Its children end with it, but for those that ignore SIGTERM; things of others are kept."""
    namespaces = [x for x in lab.remains(stopped.pid) if "namespace" in x]
    stopped.child.kill()
    stopped.child.wait()
    until(
        lambda: not any(
            name_of(x.split()[1]) == "sleep" and "1000" in Path(f"/proc/{x.split()[1]}/cmdline").read_text()
            for x in lab.remains(stopped.pid)
            if x.startswith("process")
        ),
        what="end of the children",
    )
    assert set(namespaces) <= set(lab.remains(stopped.pid))
    other = f"{scope.KIND}-{os.getpid()}-{scope._start_time(os.getpid())}-n0"
    foreign = f"notours{os.getpid()}"
    for name in (other, foreign):
        check(["ip", "netns", "add", name])
    try:
        done = sample(tmp_path, *STOP, *DEAF, "--only", "one")
        assert done.returncode == 0, done.stderr
        assert all(f"removed what a run before had left: {x}" in done.stderr for x in namespaces)
        assert lab.remains(stopped.pid) == []
        assert {other, foreign} <= set(os.listdir("/run/netns"))
    finally:
        for name in (other, foreign):
            check(["ip", "netns", "del", name])


@pytest.fixture
def huge_pages():
    """Their number, which is restored. Skips if the kernel has none."""
    path = Path("/proc/sys/vm/nr_hugepages")
    before = path.read_text()
    yield lambda: int(path.read_text())
    if path.read_text() != before:
        path.write_text(before)


@pytest.mark.nightly
@pytest.mark.alone
def test_next_run_frees_huge_pages_of_a_killed_one(tmp_path, closing, huge_pages):
    before = huge_pages()
    p = closing(
        lab.start("sample", "-w", tmp_path / "out", *STOP, "--sample-huge-mb", "4", program=SAMPLE, cwd=tmp_path)
    )
    p.expect("everything is there")
    (note,) = (x for x in lab.remains(p.pid) if scope.HUGE_PAGES in x)
    assert json.loads(Path(note).read_text()) == {"before": before, "set_to": huge_pages()} and huge_pages() > before
    p.kill()
    done = sample(tmp_path, "--fresh", "--only", "one")
    assert done.returncode == 0 and scope.HUGE_PAGES in done.stderr, done.stderr
    assert huge_pages() == before
    assert lab.remains(p.pid) == []


@pytest.mark.nightly
@pytest.mark.slow
def test_installs_without_the_network(tmp_path):
    """The steps of `make lab`, in a temporary folder."""
    venv = tmp_path / "venv"
    check([sys.executable, "-m", "venv", "--system-site-packages", venv])
    source = tmp_path / "lab"
    check(["cp", "-r", lab.LAB, source])
    check([venv / "bin" / "pip", "install", "-q", "--no-build-isolation", "--no-index", "-e", source])
    out = check([venv / "bin" / "ringtap-lab", "--help"])
    assert "Experiments: " in out
