# SPDX-License-Identifier: BSD-3-Clause
"""Nothing is lost and nothing is there twice, whatever ends an ingest: kill -9, a full disk, another
ingest. `make soak` kills more often (RINGTAP_ARCHIVE_KILLS)."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys

import pytest
from harness import archiving, sandbox
from harness.archiving import assert_all_or_nothing, assert_clean, assert_whole, call, end_of
from harness.proc import child, until
from ringtap_archive import store

KILLS = int(os.environ.get("RINGTAP_ARCHIVE_KILLS", 20))
# What makes a change visible or lasting: a process that is killed before each of these has been killed
# at every moment that differs from its neighbours for another process.
CALLS = (
    "rename",
    "unlink",
    "rmdir",
    "mkdir",
    "fsync",
    *(["write", "close"] if "RINGTAP_ARCHIVE_KILLS" in os.environ else []),
)


def disk(path, size):
    """In memory: there, fsync takes no time."""
    sandbox.mount("ringtap-e2e", path, "tmpfs", options=f"size={size}".encode())
    yield path
    sandbox.unmount(path)


@pytest.fixture
def small_disk(tmp_path):
    yield from disk(tmp_path / "disk", "2m")


@pytest.fixture
def fast_disk(tmp_path):
    yield from disk(tmp_path / "disk", "512m")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return archiving.of_hours(tmp_path_factory.mktemp("file") / "a.pcapng", 3, each=300)


def ingest(archive, *files):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return call("ingest", "-A", archive, "--recorder", "a", *files)


def killing_at(number, function, *args):
    """Runs it, and kills this process before call number n of CALLS."""
    left = number

    def counted(real):
        def wrapper(*words, **options):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*words, **options)

        return wrapper

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    return function(*args)


def test_killed_at_random_moments(tmp_path, file):
    """After each kill the next ingest adds the rest."""
    chance = random.Random(7)
    archive = tmp_path / "archive"
    whole = archiving.seconds_of(lambda: end_of(child(ingest, tmp_path / "once", file)))
    killed = 0
    for _ in range(KILLS):
        pid = child(ingest, archive, file)
        archiving.kill_after(pid, chance.uniform(0, whole), signal.SIGKILL)
        killed += end_of(pid)[1] == signal.SIGKILL
        if (archive / ".lock").exists():
            assert_all_or_nothing(archive)
            if archiving.parts(archive):
                assert_whole(archive, file)
                archive = archive.with_name(f"{archive.name}+")
    assert killed > KILLS // 4
    for path in tmp_path.glob("archive*"):
        assert call("ingest", "-A", path, "--recorder", "a", file) == 0
        assert_whole(path, file)
        assert_clean(path)
        assert call("verify", "-A", path) == 0


def changed(folder, before, change, after):
    """Kills a change at each call, until it runs to its end. before(archive) prepares, after(archive)
    judges what another process then finds."""
    number, ended = 0, False
    while not ended:
        number += 1
        archive = folder / f"at-{number}"
        before(archive)
        pid = child(killing_at, number, change, archive)
        status, killed = end_of(pid)
        ended = killed is None
        assert killed == signal.SIGKILL or status == 0
        after(archive)
        shutil.rmtree(archive, ignore_errors=True)
    return number


def test_killed_at_every_call_of_ingest(fast_disk, file):
    def after(archive):
        if (archive / ".lock").exists():
            assert_all_or_nothing(archive)
        assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
        assert_whole(archive, file)
        assert_clean(archive)

    assert changed(fast_disk, lambda archive: None, lambda archive: ingest(archive, file), after) > 30


def test_killed_at_every_call_of_compact_and_prune(tmp_path, fast_disk):
    files = [archiving.recording(tmp_path / f"{seed}.pcapng", 200, seed) for seed in (1, 2)]
    assert call("ingest", "-A", tmp_path / "all", "--recorder", "a", *files) == 0
    digests = {source: len(n) for source, n in archiving.sources(tmp_path / "all").items()}

    def before(archive):
        shutil.copytree(tmp_path / "all", archive)

    def joined(archive):
        assert_whole(archive, *files)
        assert archiving.rows(archive) == 400
        assert call("compact", "-A", archive) == 0
        assert len(archiving.parts(archive)) == 1
        assert_whole(archive, *files)
        assert call("verify", "--repair", "-A", archive) == 0
        assert_clean(archive)

    def pruned(archive):
        assert {source: len(n) for source, n in archiving.sources(archive).items()} in ({}, digests)
        assert call("prune", "-A", archive, "--keep", "0") == 0
        assert call("verify", "--repair", "-A", archive) == 0
        assert archiving.parts(archive) == []
        assert_clean(archive)

    def quietly(*words):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return call(*words)

    assert changed(fast_disk / "c", before, lambda archive: quietly("compact", "-A", archive), joined) > 20
    assert changed(fast_disk / "p", before, lambda archive: quietly("prune", "-A", archive, "--keep", "0"), pruned) > 5


def test_two_at_once(tmp_path, file):
    """Two ingests of the same files, in opposite order; each is added by one of them."""
    files = [file] + [archiving.recording(tmp_path / f"{i}.pcapng", 500, seed=i + 5) for i in range(3)]
    archive = tmp_path / "archive"
    pids = [child(ingest, archive, *order) for order in (files, files[::-1])]
    assert [end_of(pid) for pid in pids] == [(0, None)] * 2
    assert_whole(archive, *files)
    assert_clean(archive)
    assert call("verify", "-A", archive) == 0


def waits_for_a_lock(pid):
    with open("/proc/locks", encoding="ascii") as locks:
        return any("->" in line and line.split()[5] == str(pid) for line in locks)


def test_a_reader_holds_up_prune_but_not_ingest(tmp_path, file):
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    with store.Archive(archive).reading():
        # Not forked: a child has the locks of its parent.
        prune = subprocess.Popen(
            [sys.executable, "-m", "ringtap_archive.main", "prune", "-A", archive, "--keep", "0"],
            stdout=subprocess.DEVNULL,
        )
        until(lambda: waits_for_a_lock(prune.pid), what="prune to wait")
        assert call("ingest", "-A", archive, "--recorder", "a", archiving.recording(tmp_path / "b.pcapng", 100, 9)) == 0
        assert prune.poll() is None and len(archiving.parts(archive)) == 4
    assert prune.wait(60) == 0
    assert archiving.parts(archive) == []


def test_full_disk(tmp_path, small_disk, file, capsys):
    archive = small_disk / "archive"
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    large = archiving.recording(tmp_path / "large.pcapng", 12000, 3)
    capsys.readouterr()
    assert call("ingest", "-A", archive, "--recorder", "a", large) == 1
    err = capsys.readouterr().err
    assert "no space is left" in err and "prune" in err and err.count("\n") == 1
    assert_whole(archive, file)
    assert_clean(archive)
    # To the last byte: prune still works, and then there is room again.
    with open(small_disk / "filler", "wb", buffering=0) as filler, pytest.raises(OSError):
        while True:
            filler.write(bytes(4096))
    assert call("prune", "-A", archive, "--keep", "0") == 0
    assert archiving.parts(archive) == []
    assert call("verify", "--repair", "-A", archive) == 0
    (small_disk / "filler").unlink()
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    assert_whole(archive, file)
    assert_clean(archive)


def test_full_disk_once_the_journal_is_written(tmp_path, file, monkeypatch, capsys):
    """A new name in a folder can need a block that the disk no longer has. prune removes the oldest part, and completes
    the change."""
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    old = archiving.parts(archive)
    rename = os.rename

    def on_a_full_disk(source, target, **folders):
        if not str(target).endswith(store.JOURNAL) and all(part.meta_path.exists() for part in old):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", on_a_full_disk)
    other = archiving.recording(tmp_path / "b.pcapng", 100, 9)
    assert call("ingest", "-A", archive, "--recorder", "a", other) == 1
    assert "it will be once there is space" in capsys.readouterr().err
    assert call("prune", "-A", archive, "--keep", "1T") == 0
    assert "removed 1 parts, as a change" in capsys.readouterr().out
    oldest = min(old, key=lambda part: part.last_ns)
    assert [part for part in old if not part.meta_path.exists()] == [oldest]
    assert len(archiving.parts(archive)) == len(old)  # with that of the other file
    assert call("verify", "--repair", "-A", archive) == 0
    assert_clean(archive)


def test_compact_leaves_parts_with_ids(tmp_path):
    """Two recordings may have the same ids."""
    archive = tmp_path / "archive"
    for seed in 1, 2, 3, 4:
        one = tmp_path / f"{seed}.pcapng"
        assert call("generate", "--packets", 200, "--seed", seed, *(["--ids"] if seed > 2 else []), "-w", one) == 0
        assert call("ingest", "-A", archive, "--recorder", "a", one) == 0
    assert call("compact", "-A", archive) == 0
    assert sorted(len(part.sources) for part in archiving.parts(archive)) == [1, 1, 2]
