# SPDX-License-Identifier: BSD-3-Clause
"""Which things belong to which run: those of a run that is alive are never touched."""

import os

import pytest
from ringtap_lab.tools import netns, scope

DEAD = f"{scope.KIND}-{os.getpid()}-1"  # this process began later than the system


@pytest.fixture
def folders(monkeypatch, tmp_path):
    """The places where runs put things."""
    for name in ("netns", "run", "huge", "dpdk"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(scope, "NAMESPACES", str(tmp_path / "netns"))
    monkeypatch.setattr(scope, "FOLDERS", str(tmp_path / "run"))
    monkeypatch.setattr(scope, "MOUNT", str(tmp_path / "huge"))
    monkeypatch.setattr(scope, "runtime_dir", lambda prefix: str(tmp_path / "dpdk" / prefix))
    monkeypatch.setattr(scope, "_processes", lambda is_ours: [])
    return tmp_path


def test_a_run_is_alive_if_its_process_has_this_start_time():
    assert scope._alive(scope.own_name()) and scope._dead(DEAD)
    assert scope._start_time(2**22 + 1) is None


@pytest.mark.parametrize(
    "text, owner",
    [
        ("rtlab-12-345-fwd0", "rtlab-12-345"),
        ("/run/rtlab-1-2/socket", "rtlab-1-2"),
        ("rtlab-x-1", None),
        ("other-1-2", None),
    ],
)
def test_owner_of_a_name(text, owner):
    assert scope._owner(text) == owner


def test_remains_are_those_of_dead_runs(folders):
    for name in (DEAD, scope.own_name()):
        (folders / "netns" / f"{name}-n0").touch()
        (folders / "run" / name).mkdir()
        (folders / "huge" / f"{name}-app0map_0").touch()
        (folders / "dpdk" / f"{name}-app0").mkdir()
    (folders / "netns" / "another").touch()
    (folders / "run" / "another-1-2").mkdir()
    assert set(scope.remains(scope._dead)) == {
        f"network namespace {DEAD}-n0",
        f"{folders}/run/{DEAD}",
        f"{folders}/huge/{DEAD}-app0map_0",
        f"{folders}/dpdk/{DEAD}-app0",
    }


def test_remains_are_removed(folders, monkeypatch):
    removed, notes = [], []

    def run(argv, **_):
        removed.append(argv[3])
        os.unlink(folders / "netns" / argv[3])

    monkeypatch.setattr(scope.subprocess, "run", run)
    monkeypatch.setattr(scope, "give_back", lambda paths, others: notes.append((paths, others)))
    (folders / "netns" / f"{DEAD}-n0").touch()
    (folders / "run" / DEAD).mkdir()
    (folders / "run" / DEAD / "socket").touch()
    note = folders / "run" / f"{DEAD}-hugepages0"
    note.touch()
    (folders / "run" / scope.own_name()).mkdir()
    assert set(scope.remove_leftovers()) == {f"network namespace {DEAD}-n0", f"{folders}/run/{DEAD}"}  # the note stays
    assert removed == [f"{DEAD}-n0"]
    assert sorted(os.listdir(folders / "run")) == sorted([note.name, scope.own_name()])
    assert notes == [([str(note)], False)]


def test_notes_of_live_runs_are_reported(folders, monkeypatch):
    notes = []
    monkeypatch.setattr(scope, "give_back", lambda paths, others: notes.append((paths, others)))
    (folders / "run" / f"{scope.own_name()}-hugepages0").touch()
    scope.remove(scope._dead)
    assert notes == [([], True)]


def test_nothing_is_left_of_no_run(folders):
    assert scope.remove_leftovers() == []


def test_hosts_are_joined_and_removed(monkeypatch):
    commands = []
    monkeypatch.setattr(netns, "_check", lambda argv: commands.append(" ".join(argv)))
    monkeypatch.setattr(netns.subprocess, "run", lambda argv, **_: commands.append(" ".join(argv)))
    a, b = netns.Namespace("a"), netns.Namespace("b")
    netns.join(a, b)
    a.close()
    assert commands[0] == "ip netns add a" and commands[-1] == "ip netns del a"
    assert "ip -n a link add eth0 type veth peer name eth0 netns b" in commands
    assert "nsenter --net=/run/netns/b ethtool -K eth0 tx off rx off tso off gso off gro off" in commands


def test_host_that_cannot_be_prepared_is_removed(monkeypatch):
    commands = []

    def check(argv):
        if "sysctl" in argv:
            raise RuntimeError("no sysctl")

    monkeypatch.setattr(netns, "_check", check)
    monkeypatch.setattr(netns.subprocess, "run", lambda argv, **_: commands.append(argv))
    with pytest.raises(RuntimeError, match="no sysctl"):
        netns.Namespace("a")
    assert commands == [["ip", "netns", "del", "a"]]
