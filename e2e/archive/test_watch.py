# SPDX-License-Identifier: BSD-3-Clause
"""Files are added when they are closed, and while an application is recorded."""

import argparse
import errno
import fcntl
import os
import signal
import sys
import time

import pytest
from harness import archiving
from harness.archiving import assert_clean, assert_whole
from harness.paths import RINGTAP
from harness.proc import Proc, until
from harness.ringtap import sessions
from ringtap_archive import ingest as ingest_module
from ringtap_archive import watch


@pytest.fixture
def ingest(closing, tmp_path):
    def start(*words):
        return closing(
            Proc(
                [
                    sys.executable,
                    "-u",
                    "-m",
                    "ringtap_archive.main",
                    "ingest",
                    "-A",
                    tmp_path / "archive",
                    "--recorder",
                    "a",
                    *words,
                ],
                env={"RINGTAP_PROGRAM": str(RINGTAP)},
            )
        )

    return start


def added(proc, name):
    proc.expect(rf"{name}: \d+ packets in")


def test_watch(tmp_path, ingest):
    folder, archive, files = tmp_path / "spool", tmp_path / "archive", {}
    folder.mkdir()
    for number, name in enumerate(("before", "open", "moved", "torn", "late")):
        files[name] = archiving.recording(tmp_path / f"{name}.pcapng", 300, number)
    data = {name: path.read_bytes() for name, path in files.items()}
    (folder / "before.pcapng").write_bytes(data["before"])
    (folder / "notes.txt").write_text("no recording")
    with open(folder / "open.pcapng", "wb") as writer:
        writer.write(data["open"][:1000])
        writer.flush()
        it = ingest("--watch", folder)
        added(it, "before.pcapng")
        writer.write(data["open"][1000:])
    added(it, "open.pcapng")
    os.rename(files["moved"], folder / "moved.pcapng")
    added(it, "moved.pcapng")
    # One that fails does not end it.
    (folder / "bad.pcapng").write_bytes(b"no pcapng, nor pcap")
    it.expect("cannot decode")
    (folder / "late.pcapng").write_bytes(data["late"])
    added(it, "late.pcapng")
    assert it.stop() == 1  # for bad.pcapng
    (folder / "bad.pcapng").unlink()
    names = ("before", "open", "moved", "late")
    assert_whole(archive, *(folder / f"{name}.pcapng" for name in names))
    # The next one starts with the existing files.
    (folder / "torn.pcapng").write_bytes(data["torn"][:-50])
    again = ingest("--watch", folder, "--remove")
    again.expect("torn.pcapng: .*what is before that was added")
    left = {".torn.pcapng.torn", "notes.txt"}  # what is damaged is not removed
    until(lambda: set(os.listdir(folder)) == left, what="all files to be removed")
    assert (folder / ".torn.pcapng.torn").read_bytes() == data["torn"][:-50]
    assert again.stop(signal.SIGINT) == 0
    assert again.output.count("in the archive already") == 4
    assert ingest("--watch", folder, "--duration", "1ms").wait() == 0
    assert len(archiving.parts(archive)) == 5
    assert_clean(archive)


@pytest.fixture
def no_leases(monkeypatch):
    """As on NFS, and for files of other users."""
    real = fcntl.fcntl

    def refusing(fd, command, argument=0):
        if command == fcntl.F_SETLEASE:
            raise PermissionError(errno.EACCES, "no lease")
        return real(fd, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", refusing)


def test_watch_without_leases(tmp_path, no_leases, monkeypatch):
    """A file that a process may write still is neither added nor removed, until it is closed or has rested."""
    folder, archive = tmp_path / "spool", tmp_path / "archive"
    folder.mkdir()
    whole = archiving.recording(tmp_path / "a.pcapng", 3000).read_bytes()
    file = folder / "a.pcapng"
    args = argparse.Namespace(
        archive=archive,
        recorder="a",
        lean=False,
        no_compress=False,
        remove=False,
        quiet=True,
        json=False,
        group=False,
        shared=False,
    )
    it = watch.Watch(ingest_module.Ingester(args), folder, remove=True)
    with open(file, "wb") as writer:
        writer.write(whole[: len(whole) // 2])
        writer.flush()
        it.all()
        assert it.later and file.exists() and not archiving.parts(archive)
        writer.write(whole[len(whole) // 2 :])
    it.new()
    assert not file.exists()
    assert_whole(archive, tmp_path / "a.pcapng")
    # At the start, it has rested; at its end it has changed once more.
    file.write_bytes(archiving.recording(tmp_path / "b.pcapng", 300, 2).read_bytes())
    os.utime(file, (time.time() - 120,) * 2)
    run = ingest_module.Job.run

    def grows(job):
        result = run(job)
        with open(file, "ab") as writer:
            writer.write(b"more")
        return result

    monkeypatch.setattr(ingest_module.Job, "run", grows)
    it.all()
    assert not it.later and file.exists() and len(archiving.parts(archive)) == 2


def test_remove_without_leases(tmp_path, no_leases, capsys):
    file = archiving.recording(tmp_path / "a.pcapng", 300)
    assert archiving.call("ingest", "-A", tmp_path / "archive", "--remove", file) == 0
    assert "is not removed: it may be written still" in capsys.readouterr().err and file.exists()
    os.utime(file, (time.time() - 120,) * 2)
    assert archiving.call("ingest", "-A", tmp_path / "archive", "--remove", file) == 0
    assert not file.exists()


def test_follow(tmp_path, app, ingest):
    """Each packet is in the archive once, also if the ingest is killed meanwhile: its recorder ends, and
    the next one adds what that has left."""
    archive = tmp_path / "archive"
    spool = archive / ".spool" / "recorder=a"
    options = ("--rotate", "1s", "--", "--buffer", "16M", "--compress", "zstd")
    first = ingest("--follow", app.prefix, *options)
    first.expect("Capturing on")
    app.rx(n=100, len=100)
    first.expect("packets in 1 part")
    app.rx(n=50, len=100)
    first.kill()
    until(lambda: not sessions(app), what="the recorder to end")
    assert list(spool.glob("*.pcapng"))
    second = ingest("--follow", f"{app.pid}:net_ring_a", *options)
    second.expect("Capturing on")
    app.rx(n=30, len=100)
    busy = ingest("--follow", app.prefix, *options)
    busy.expect("another 'ingest --follow' records as 'a'")
    assert busy.wait() == 1
    assert second.stop(signal.SIGINT) == 0
    assert archiving.rows(archive) == 180
    assert not list(spool.glob("*.pcapng"))
    assert_clean(archive)
    assert archiving.call("verify", "-A", archive) == 0


class Noted:
    """An ingester that notes what it is to add."""

    def __init__(self):
        self.calls = []

    def add(self, path, remove, _closed, following=None):
        self.calls.append((path.name, following and following.name))
        if remove:
            path.unlink()
        return True


def test_follow_holds_a_file_until_the_next_one(tmp_path):
    """Each file is added with its successor, which may have its fates; the last one has none."""
    noted = Noted()
    it = watch.Following(noted, tmp_path, fates=True)
    for number in range(3):
        (tmp_path / f"{number}.pcapng").write_bytes(b"")
        it.new()
    (tmp_path / ".lock").write_bytes(b"")
    assert noted.calls == [("0.pcapng", "1.pcapng"), ("1.pcapng", "2.pcapng")]
    (tmp_path / "3.pcapng").write_bytes(b"")
    it.last()
    assert noted.calls[2:] == [("2.pcapng", "3.pcapng"), ("3.pcapng", None)]
    it = watch.Following(noted, tmp_path, fates=False)
    (tmp_path / "4.pcapng").write_bytes(b"")
    it.new()
    assert noted.calls[4:] == [("4.pcapng", None)]


def test_follow_nothing(ingest):
    it = ingest("--follow", "no-such-application")
    assert it.wait() == 1
    assert "ringtap record ended with status" in it.output
