# SPDX-License-Identifier: BSD-3-Clause
"""Each experiment names in one line what this machine lacks, before it measures."""

import os

import pytest
from ringtap_lab.run import cli, experiments
from ringtap_lab.run.lab import Lab
from ringtap_lab.tools import machine

EXPERIMENTS = experiments.load()


@pytest.fixture
def measure(alone, call, build, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(Lab, "need_huge_pages", lambda self, megabytes: None)
    monkeypatch.setattr(Lab, "tool", lambda self, name, package: name)
    return lambda name, *args: call(
        cli.main, name, "-w", tmp_path / "out", *([] if "--build" in args else ["--build", build]), *args
    )


def test_all_experiments_are_found(call):
    assert list(EXPERIMENTS)[:2] == ["latency", "memory"]
    done = call(cli.main, "all", "--list")
    assert done.returncode == 0
    listed = done.stdout.splitlines()
    assert "latency within-packet" in listed and "memory 4k-drop" in listed
    assert {line.split()[0] for line in listed} == set(EXPERIMENTS)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    "name, what, complaint",
    [
        (name, what, complaint)
        for name, experiment in EXPERIMENTS.items()
        for what, complaint in (
            ("root", "needs root, for "),
            ("CPUs", "needs 2 CPUs that may be used: name them by --cpus"),
            ("programs", "neither in /nowhere/"),
            ("huge pages", "the kernel does not find"),
        )
        if what != "huge pages" or experiment.huge_mb
    ],
)
def test_missing_parts_are_reported_in_one_line(measure, monkeypatch, tmp_path, name, what, complaint):
    args = []
    if what == "root":
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    elif what == "CPUs":
        args = ["--cpus", "0"]
    elif what == "programs":
        monkeypatch.setenv("PATH", "/nowhere")
        args = ["--build", "/nowhere"]
    else:
        monkeypatch.undo()
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(machine, "describe", lambda *_: {})
        monkeypatch.setattr(Lab, "tool", lambda self, name, package: name)
        monkeypatch.setattr("ringtap_lab.tools.scope.remove", lambda is_ours: None)
        monkeypatch.setattr("ringtap_lab.tools.scope.FOLDERS", str(tmp_path))
        monkeypatch.setattr("ringtap_lab.tools.hugepages._meminfo", lambda key: 2048 if key == "Hugepagesize" else 0)
        monkeypatch.setattr("ringtap_lab.tools.hugepages.NR", tmp_path / "nr")
    done = measure(name, *args)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and complaint in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_missing_tool_names_its_package(alone, build, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    lab = Lab(cli._parser(EXPERIMENTS).parse_args(["all", "--build", str(build)]))
    with pytest.raises(Exception, match="no-such-tool is not installed: apt install no-such-package"):
        lab.tool("no-such-tool", "no-such-package")


def test_programs_of_the_build_come_first(alone, build, monkeypatch, tmp_path):
    lab = Lab(cli._parser(EXPERIMENTS).parse_args(["all", "--build", str(build)]))
    lab.o.build = build
    assert lab.program("ringtap") == str(build / "cli" / "ringtap")
    (tmp_path / "bin").mkdir()
    other = tmp_path / "bin" / "ringtap-extcap"
    other.touch(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert lab.program("ringtap-extcap") == str(other)
    with pytest.raises(Exception, match="nothing is not there: build it"):
        lab.built("nothing")


def test_names_begin_again_in_each_cell(alone, build):
    lab = Lab(cli._parser(EXPERIMENTS).parse_args(["all", "--build", str(build)]))
    first = [lab.unique("fwd"), lab.unique("n")]
    assert first == [f"{lab.name}-fwd0", f"{lab.name}-n1"]
    lab.begin_cell()
    assert lab.unique("fwd") == first[0]
