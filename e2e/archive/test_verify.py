# SPDX-License-Identifier: BSD-3-Clause
"""verify finds and reports damage of every kind, and repairs it as far as the packets exist."""

import argparse
import errno
import fcntl
import hashlib
import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness import archiving
from harness.archiving import START_NS, assert_clean, assert_whole, call, content, packets_in, parts
from harness.pcapng_write import File
from ringtap_archive import decoder, frames, ingest, layout, repair, store, verify


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """An archive of one file, and the file."""
    folder = tmp_path_factory.mktemp("original")
    file = archiving.recording(folder / "a.pcapng", 12000)
    assert call("ingest", "-A", folder / "archive", "--recorder", "a", file) == 0
    return folder / "archive", file


@pytest.fixture
def archive(original, tmp_path):
    return shutil.copytree(original[0], tmp_path / "archive")


def overwrite(path, at, data=b"\xff\x00\xff\x00\xff\x00"):
    with open(path, "r+b") as file:
        file.seek(at if at >= 0 else path.stat().st_size + at)
        file.write(data)


def damaged_packets(part):
    overwrite(part.packets, part.packets.stat().st_size // 2)


def damaged_footer(part):
    overwrite(part.packets, -30)


def lost_packets(part):
    part.packets.unlink()


def damaged_flows(part):
    overwrite(part.flows, 100)


def lost_meta(part):
    part.meta_path.unlink()


def damaged_meta(part):
    overwrite(part.meta_path, 5)


def short_meta(part):
    part.meta_path.write_bytes(part.meta_path.read_bytes()[:100])


def other_packets(part):
    """An index that is whole, but not of these packets; with checksums to match."""
    table = pq.read_table(part.packets, partitioning=None)
    ports = pa.chunked_array([pa.array([1] * table.num_rows, pa.uint16())])
    pq.write_table(
        table.set_column(table.schema.get_field_index("dst_port"), table.schema.field("dst_port"), ports), part.packets
    )
    meta = dict(part.meta)
    meta["packets"].update(
        bytes=part.packets.stat().st_size, sha256=hashlib.sha256(part.packets.read_bytes()).hexdigest()
    )
    part.meta_path.write_text(json.dumps(meta))


@pytest.mark.parametrize(
    "damage",
    [damaged_packets, damaged_footer, lost_packets, damaged_flows, lost_meta, damaged_meta, short_meta, other_packets],
    ids=lambda f: f.__name__,
)
def test_index(archive, original, capsys, damage):
    """The index is made again: nothing is lost."""
    damage(parts(archive)[0])
    assert call("verify", "-A", archive) == 1
    assert "1 damaged; --repair" in capsys.readouterr().out
    assert call("verify", "-A", archive, "--repair") == 0
    out = capsys.readouterr().out
    assert "made again from all 12000 packets" in out, out
    assert call("verify", "-A", archive) == 0
    assert_whole(archive, original[1])
    assert_clean(archive)
    assert content(parts(archive)[0]) == original[1].read_bytes()
    # It is still known.
    capsys.readouterr()
    assert call("ingest", "-A", archive, "--recorder", "a", original[1]) == 0
    assert "in the archive already" in capsys.readouterr().out


@pytest.mark.parametrize("frame", [0, 2, -1])
def test_frame(archive, original, capsys, frame):
    """A damaged frame loses only its own packets, and their number is printed."""
    (part,) = parts(archive)
    with frames.Reader(part.pcapng) as reader:
        frame %= reader.frames()
        begin, end = reader.offsets[frame : frame + 2]
        place = reader.places[frame]
    offsets = pq.read_table(part.packets, columns=["file_offset"], partitioning=None)["file_offset"].to_pylist()
    hit = sum(begin <= offset < end for offset in offsets)
    overwrite(part.pcapng, place + 50)
    assert call("verify", "-A", archive, "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)["damaged"]
    assert "pcapng" in found["problems"]
    assert call("verify", "-A", archive, "--repair") == 1  # packets are lost
    assert f"{hit} packets lost" in capsys.readouterr().out
    (part,) = parts(archive)
    assert part.meta["packets"]["rows"] == 12000 - hit and 0 < hit < 12000
    assert "damaged" in part.meta["source"]["salvaged"]
    assert packets_in(content(part)) == 12000 - hit
    assert call("verify", "-A", archive) == 0
    assert list((archive / ".damaged").rglob("*.pcapng.zst"))
    assert_clean(archive)


def test_seek_table(archive, original):
    overwrite(parts(archive)[0].pcapng, -4)
    assert call("verify", "-A", archive) == 1
    assert call("verify", "-A", archive, "--repair") == 0
    assert_whole(archive, original[1])
    assert content(parts(archive)[0]) == original[1].read_bytes()


def test_lost_pcapng(archive, capsys):
    parts(archive)[0].pcapng.unlink()
    assert call("verify", "-A", archive) == 1
    capsys.readouterr()
    assert call("verify", "-A", archive, "--repair") == 1
    assert "12000 packets lost" in capsys.readouterr().out
    assert call("verify", "-A", archive) == 0 and parts(archive) == []
    assert_clean(archive)


def test_others_go_on(archive, tmp_path, capsys):
    """A damaged meta.json does not stop verify, prune or ingest; listing names it."""
    overwrite(parts(archive)[0].meta_path, 5)
    file = archiving.recording(tmp_path / "b.pcapng", 100, 4)
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    assert call("compact", "-A", archive) == 1
    assert "verify --repair" in capsys.readouterr().err
    assert call("verify", "-A", archive, "--repair") == 0
    assert sorted(part.meta["packets"]["rows"] for part in parts(archive)) == [100, 12000]


def test_quick(archive):
    assert call("verify", "-A", archive, "--quick") == 0
    overwrite(parts(archive)[0].flows, 100)
    assert call("verify", "-A", archive, "--quick") == 1


def files_of(archive):
    return {path: path.read_bytes() for path in archive.rglob("*") if path.is_file() and path.name[0] != "."}


@pytest.mark.parametrize("damage", [None, damaged_flows], ids=["whole", "damaged_flows"])
def test_without_the_decoder(archive, original, tmp_path, monkeypatch, capsys, damage):
    """Failures other than damaged data move no files."""
    if damage:
        damage(parts(archive)[0])
    before = files_of(archive)
    with monkeypatch.context() as without:
        without.setattr(decoder, "_lib", None)
        without.setenv("RINGTAP_ARCHIVE_DECODER", str(tmp_path / "none.so"))
        assert call("verify", "-A", archive, "--repair") == 1
    out, err = capsys.readouterr()
    assert ("repair: libringtap" in out if damage else err.count("\n") == 1) and "was not found" in out + err
    assert files_of(archive) == before and not (archive / ".damaged").exists()
    assert call("verify", "-A", archive, "--repair") == 0
    assert_whole(archive, original[1])


def test_full_disk(archive, monkeypatch, capsys):
    """An error of the system is one line."""

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    damaged_flows(parts(archive)[0])
    before = files_of(archive)
    with monkeypatch.context() as disk:
        disk.setattr(store, "write_synced", full)
        assert call("verify", "-A", archive, "--repair") == 1
    assert "No space left" in capsys.readouterr().out and files_of(archive) == before


@pytest.mark.parametrize("bytes_", [b"", bytes(5000)], ids=["empty", "zeros"])
def test_nothing_is_whole(archive, capsys, bytes_):
    parts(archive)[0].pcapng.write_bytes(bytes_)
    assert call("verify", "-A", archive, "--repair") == 1
    assert "no frame of it is whole; 12000 packets lost" in capsys.readouterr().out
    assert parts(archive) == [] and [path.read_bytes() for path in (archive / ".damaged").rglob("*.zst")] == [bytes_]


def losses(archive):
    """[(hour, interface's name, reason, packets)] of all parts."""
    return sorted(
        (
            loss["time_ns"] // layout.HOUR_NS,
            part.meta["interfaces"][loss["interface"]]["name"],
            loss["reason"],
            loss["packets"],
        )
        for part in parts(archive)
        for loss in part.meta["losses"]
    )


def two_hours(path, name, seed):
    """A recording of two interfaces; isb_ifdrop and isb_osdrop of both at its end, in the second hour."""
    f = File().section()
    for number in range(2):
        f.interface(1, 0, (2, b"%s%d" % (name, number)), (9, b"\x09"))
    for at in range(40):
        f.packet(bytes([2] * 12) + b"\x08\x00" + bytes([seed] * 40), START_NS + at * layout.HOUR_NS // 20, at % 2)
    for number in range(2):
        f.statistics(
            number,
            START_NS + 2 * layout.HOUR_NS - 1,
            (5, f.pack("Q", 3 + seed + number)),
            (7, f.pack("Q", 5 + seed)),
            (8, f.pack("Q", 20)),
        )
    return f.write(path)


def test_losses_stay(tmp_path):
    """Statistics count all packets of a recording: parts of one hour do not have them, but their losses do."""
    archive = tmp_path / "archive"
    for seed, name in enumerate((b"x", b"y")):
        assert call("ingest", "-A", archive, "--recorder", "a", two_hours(tmp_path / f"{seed}.pcapng", name, seed)) == 0
    found = losses(archive)
    hour = START_NS // layout.HOUR_NS + 1
    assert found == sorted(
        (hour, f"{name}{number}", reason, count)
        for seed, name in enumerate("xy")
        for number in range(2)
        for reason, count in (("nic", 3 + seed + number), ("capture", 5 + seed))
    )
    assert len(parts(archive)) == 4
    for part in parts(archive):
        damaged_flows(part)
    assert call("verify", "-A", archive, "--repair") == 0
    assert len(parts(archive)) == 4 and losses(archive) == found
    assert call("compact", "-A", archive) == 0
    assert len(parts(archive)) == 2 and losses(archive) == found
    for part in parts(archive):
        damaged_flows(part)
    assert call("verify", "-A", archive, "--repair") == 0
    assert len(parts(archive)) == 2 and losses(archive) == found
    assert call("verify", "-A", archive) == 0


@pytest.mark.parametrize(
    "meta",
    [damaged_meta, lost_meta, lambda part: (lost_meta(part), lost_packets(part))],
    ids=["damaged_meta", "lost_meta", "lost_packets"],
)
def test_pcapng_and_meta(archive, capsys, meta):
    """A damaged pcapng is kept, also with other damage."""
    (part,) = parts(archive)
    with frames.Reader(part.pcapng) as reader:
        overwrite(part.pcapng, reader.places[2] + 50)
    damaged = part.pcapng.read_bytes()
    meta(part)
    assert call("verify", "-A", archive, "--repair") == 1
    out = capsys.readouterr().out
    assert "bytes damaged in 1 place" in out and ", 0 packets lost" not in out
    assert [path.read_bytes() for path in (archive / ".damaged").rglob("*.pcapng.zst")] == [damaged]
    assert parts(archive)[0].meta["packets"]["rows"] < 12000 and call("verify", "-A", archive) == 0
    assert_clean(archive)


@pytest.mark.parametrize("known", [True, False])
def test_cut_pcapng(archive, capsys, known):
    """Cut behind a frame nothing of it looks damaged."""
    (part,) = parts(archive)
    with frames.Reader(part.pcapng) as reader:
        cut = reader.places[2]
    os.truncate(part.pcapng, cut)
    lost_meta(part)
    if not known:
        lost_packets(part)
    call("verify", "-A", archive, "--repair")
    assert ("packets lost" in capsys.readouterr().out) == known
    assert [path.stat().st_size for path in (archive / ".damaged").rglob("*.pcapng.zst")] == [cut]


def found_in(archive):
    """As verify finds it, before another process makes a change."""
    args = argparse.Namespace(since=None, until=None, recorders=None, quick=False)
    return [found for found in verify.examine(store.Archive(archive), args) if found]


@pytest.mark.parametrize(
    "damage",
    [damaged_flows, damaged_meta, lost_meta, lambda part: part.pcapng.unlink()],
    ids=["damaged_flows", "damaged_meta", "lost_meta", "lost_pcapng"],
)
def test_repaired_meanwhile(archive, capsys, damage):
    """A part that another process has repaired is not repaired again, and no loss is reported."""
    damage(parts(archive)[0])
    (found,) = found_in(archive)
    call("verify", "-A", archive, "--repair")
    before = files_of(archive)
    assert not repair.repair(store.Archive(archive), found) and found.outcome is None and not found.lost
    assert files_of(archive) == before


def test_number_of_another_part(archive, tmp_path):
    """A new part with the number of a removed one is not repaired."""
    damaged_flows(parts(archive)[0])
    (found,) = found_in(archive)
    shutil.rmtree(archive / "recorder=a")
    file = archiving.recording(tmp_path / "b.pcapng", 100, 4)
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    assert parts(archive)[0].name == found.name and not repair.repair(store.Archive(archive), found)
    assert_whole(archive, file)


@pytest.mark.parametrize("damage", [damaged_flows, lost_meta], ids=lambda f: f.__name__)
def test_two_repairs(archive, original, monkeypatch, damage):
    """The second one is done while the first one has files in the making."""
    damage(parts(archive)[0])
    prepare, begun = ingest.Job.prepare, []

    def prepare_and_wait(job, staging):
        prepare(job, staging)
        begun.append(job)
        if len(begun) == 1:
            assert call("verify", "-A", archive, "--repair") == 0

    monkeypatch.setattr(ingest.Job, "prepare", prepare_and_wait)
    assert call("verify", "-A", archive, "--repair") == 0
    assert len(begun) == 2
    assert_whole(archive, original[1])
    assert_clean(archive)


def test_verify_is_a_reader(archive, monkeypatch):
    """Parts that verify checks are not removed meanwhile; a repair does not wait for its own check."""
    check, busy = verify.check, []

    def lockable():
        try:
            with store.flocked(archive / store.READERS, fcntl.LOCK_EX | fcntl.LOCK_NB):
                return True
        except BlockingIOError:
            return False

    monkeypatch.setattr(verify, "check", lambda *args: busy.append(not lockable()) or check(*args))
    damaged_flows(parts(archive)[0])
    args = argparse.Namespace(since=None, until=None, recorders=None, quick=False)
    assert [lockable() for _ in verify.examine(store.Archive(archive), args)] == [True] and busy == [True]


@pytest.mark.parametrize("pruned", [False, True])
def test_a_file_is_not_found(archive, monkeypatch, capsys, pruned):
    """Without a file of the part, the part is gone; without another file, it stays and the error is printed."""

    def prepare(*_):
        if pruned:
            shutil.rmtree(archive / "recorder=a")
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "some file")

    damaged_flows(parts(archive)[0])
    before = files_of(archive)
    monkeypatch.setattr(ingest.Job, "prepare", prepare)
    assert call("verify", "-A", archive, "--repair") == (0 if pruned else 1)
    assert ("some file" in capsys.readouterr().out) != pruned
    assert pruned or files_of(archive) == before


def test_meta_that_cannot_be_read(archive, monkeypatch, capsys):
    """A meta.json that cannot be read is not damage."""

    def read(path, _):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    before = files_of(archive)
    with monkeypatch.context() as denied:
        denied.setattr(layout.private, "read", read)
        assert call("verify", "-A", archive, "--repair") == 1
    assert "Permission denied" in capsys.readouterr().out and files_of(archive) == before
    assert call("verify", "-A", archive) == 0
