# SPDX-License-Identifier: BSD-3-Clause
"""An archive that others have changed, and files that are not recordings, cause a clear message and no loss."""

import fcntl
import gzip
import json
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import archiving, proc
from harness.archiving import call, parts
from ringtap_archive import layout, store


@pytest.fixture
def archive(tmp_path):
    assert (
        call("ingest", "-A", tmp_path / "archive", "--recorder", "a", archiving.recording(tmp_path / "a.pcapng", 500))
        == 0
    )
    return tmp_path / "archive"


@pytest.mark.parametrize("name", ["../../../../precious", "{absolute}", "000002.pcapng.zst"])
def test_a_part_has_its_own_files_only(archive, tmp_path, name, capsys):
    """prune removes what meta.json names."""
    precious = tmp_path / "precious"
    precious.write_text("x")
    (part,) = parts(archive)
    meta = json.loads(part.meta_path.read_text())
    meta["pcapng"]["file"] = name.format(absolute=precious)
    part.meta_path.write_text(json.dumps(meta))
    with pytest.raises(layout.BadMeta):
        layout.read_part(part.meta_path)
    call("prune", "-A", archive, "--keep", "0")
    assert precious.exists() and "verify --repair" in capsys.readouterr().out


def test_a_recorder_is_renamed(archive, tmp_path, capsys):
    (archive / "recorder=a").rename(archive / "recorder=b")
    for chosen in ("greater 1", None):
        words = [chosen] if chosen else ["--where", "length > 0"]
        assert call("fetch", "-A", archive, *words, "-w", tmp_path / "out.pcapng", "--quiet") == 0
        text = subprocess.run(
            ["capinfos", "-Mc", tmp_path / "out.pcapng"], check=True, capture_output=True, text=True
        ).stdout
        assert int(text.split()[-1]) == 500
    assert (
        call(
            "query",
            "-A",
            archive,
            "--csv",
            "SELECT DISTINCT p.recorder, i.recorder FROM packets p JOIN interfaces i ON p.part = i.part",
        )
        == 0
    )
    assert capsys.readouterr().out.split()[-1] == "b,b"


def test_a_filter_that_jumps_back(archive, tmp_path):
    assert call("fetch", "-A", archive, "ip6 protochain 6", "-w", tmp_path / "out.pcapng", "--quiet") == 0


@pytest.mark.parametrize("option", [(), ("--remove",)], ids=["keep", "remove"])
def test_damaged_before_the_first_packet(archive, tmp_path, capsys, option):
    """A file with one wrong bit in the length of the interface's block is not empty."""
    file = archiving.recording(tmp_path / "b.pcapng", 500, seed=2)
    data = bytearray(file.read_bytes())
    at = struct.unpack_from("<I", data, 4)[0]  # behind the section header
    data[at + 4] ^= 1
    file.write_bytes(data)
    assert call("ingest", "-A", archive, "--recorder", "b", file, *option) == 1
    assert f"cannot read '{file}': " in capsys.readouterr().err
    assert file.read_bytes() == data and len(parts(archive)) == 1


def test_compressed_data_are_damaged(archive, tmp_path, capsys):
    whole = gzip.compress(archiving.recording(tmp_path / "b.pcapng", 4000, seed=2).read_bytes())
    for name, at in (("half", len(whole) // 2), ("all", 20)):
        data = bytearray(whole)
        data[at : at + 40] = b"\xff" * 40
        (tmp_path / f"{name}.pcapng.gz").write_bytes(data)
    assert call("ingest", "-A", archive, "--recorder", "a", tmp_path / "half.pcapng.gz") == 0
    assert "what is before that was added" in capsys.readouterr().out
    assert 0 < parts(archive)[1].meta["packets"]["rows"] < 4000
    assert call("ingest", "-A", archive, "--recorder", "a", tmp_path / "all.pcapng.gz") == 1
    assert f"cannot read '{tmp_path / 'all.pcapng.gz'}': torn" in capsys.readouterr().err


def lock_without_rights(archive, out, done):
    os.setuid(65534)
    with store.Archive(archive).reading():
        os.write(out, b"locked")
        os.read(done, 1)


def test_readers_without_rights_hold_off_prune(archive):
    """Their lock needs no right to write."""
    with tempfile.TemporaryDirectory(prefix="ringtap-e2e-") as folder:  # pytest's are root's only
        os.chmod(folder, 0o755)
        there = shutil.copytree(archive, Path(folder) / "archive")
        subprocess.run(["chmod", "-R", "g+rX,o=", there], check=True)
        with store.Archive(there).reading():
            pass  # makes the file
        out, done = os.pipe(), os.pipe()
        pid = proc.child(lock_without_rights, there, out[1], done[0])
        os.close(out[1])  # so that the end of the child is seen
        try:
            assert os.read(out[0], 6) == b"locked"
            with open(there / store.READERS) as readers, pytest.raises(BlockingIOError):
                fcntl.flock(readers, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.write(done[1], b"x")
            status = archiving.end_of(pid)
            for fd in (out[0], *done):
                os.close(fd)
        assert status == (0, None)


def test_an_error_while_reading_is_passed_on(archive):
    with pytest.raises(PermissionError), store.Archive(archive).reading():
        raise PermissionError(13, "of something else")


def test_a_report_of_losses_without_packets(tmp_path, capsys):
    """A recording with statistics of losses and no packet has a report."""

    def block(kind, body):
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    ns = archiving.START_NS // 1000
    statistics = block(5, struct.pack("<IIIHHQHHQHHQHH", 0, ns >> 32, ns & 0xFFFFFFFF, 4, 8, 0, 7, 8, 9, 8, 8, 0, 0, 0))
    (tmp_path / "lost.pcapng").write_bytes(section + block(1, struct.pack("<HHI", 1, 0, 0)) + statistics)
    call("ingest", "-A", tmp_path / "archive", tmp_path / "lost.pcapng")
    assert parts(tmp_path / "archive")
    assert call("report", "-A", tmp_path / "archive", "--html", tmp_path / "page.html") in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
