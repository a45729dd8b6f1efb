# SPDX-License-Identifier: BSD-3-Clause
"""ingest adds recordings completely, once and unchanged; foreign readers read the result."""

import argparse
import gzip
import hashlib
import json
import os
import struct
import subprocess
import weakref

import duckdb
import pyarrow.parquet as pq
import pytest
from harness import archived, archiving
from harness.archiving import START_NS, assert_clean, assert_whole, call, content, packets_in, parts
from harness.pcapng_write import File
from ringtap_archive import frames, ingest, layout, show, units


@pytest.mark.smoke
def test_one_file(tmp_path, capsys):
    file = archiving.recording(tmp_path / "a.pcapng", 5000)
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, "--recorder", "host-1", "--json", file) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["state"], result["packets"], result["parts"], result["salvaged"]) == ("added", 5000, 1, None)
    (part,) = parts(archive)
    assert part.folder == archive / "recorder=host-1/date=2026-03-01/hour=10" and part.number == "000001"
    assert archiving.by_zstd(part.pcapng) == content(part) == file.read_bytes()
    assert_whole(archive, file)
    assert_clean(archive)
    source = part.meta["source"]
    assert source["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest() and source["name"] == "a.pcapng"
    for table in ("pcapng", "packets", "flows"):
        stored = getattr(part, table).read_bytes()
        assert part.meta[table]["sha256"] == hashlib.sha256(stored).hexdigest() and part.meta[table]["bytes"] == len(
            stored
        )


def test_offsets_lead_to_the_packets(tmp_path):
    """DuckDB, which shares no code with the writer, reads packets at the offsets."""
    file = archiving.recording(tmp_path / "a.pcapng", 20000)
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, file) == 0
    (part,) = parts(archive)
    found = duckdb.sql(f"SELECT file_offset, captured, time_ns FROM '{part.packets}'").fetchall()
    assert len(found) == 20000 and part.meta["pcapng"]["frames"] > 5
    assert (min(row[2] for row in found), max(row[2] for row in found)) == (part.first_ns, part.last_ns)
    with frames.Reader(part.pcapng) as reader:
        for offset, captured, _ in found[::97]:
            kind, size, _, _, _, length = struct.unpack("<IIIIII", reader.read(offset, 24))
            assert (kind, length) == (6, captured)
            block = reader.read(offset, size)
            assert len(block) == size and struct.unpack("<I", block[-4:])[0] == size
        # A frame begins at a block, and is read alone.
        places = set(reader.offsets[1:-1])
        assert places <= {row[0] for row in found}


def test_is_idempotent(tmp_path, capsys):
    file = archiving.of_hours(tmp_path / "a.pcapng", 2)
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    other = tmp_path / "b.pcapng"
    other.write_bytes(file.read_bytes())
    capsys.readouterr()
    assert call("ingest", "-A", archive, "--recorder", "a", file, other) == 0
    assert capsys.readouterr().out.count("in the archive already") == 2
    assert_whole(archive, file)
    # Another recorder may have seen the same.
    assert call("ingest", "-A", archive, "--recorder", "b", file) == 0
    assert len(parts(archive)) == 4 and len(parts(archive, recorders=["b"])) == 2


def test_parts_of_hours(tmp_path):
    file = archiving.of_hours(tmp_path / "a.pcapng", 3)
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, "--recorder", "a", "--no-compress", file) == 0
    found = parts(archive)
    assert [part.folder.name for part in found] == ["hour=10", "hour=11", "hour=12"]
    data = file.read_bytes()
    for part in found:
        hour = layout.hour_of(part.folder)
        assert hour <= part.first_ns <= part.last_ns < hour + layout.HOUR_NS
        assert (
            packets_in(part.pcapng.read_bytes())
            == part.meta["packets"]["rows"]
            == pq.read_metadata(part.packets).num_rows
        )
    # Blocks are those of the source, behind headers of their own.
    assert content(found[0]) == data[: len(content(found[0]))]
    assert data.endswith(content(found[2])[-1000:])
    assert [
        len(parts(archive, since=START_NS + h * layout.HOUR_NS, until=START_NS + (h + 1) * layout.HOUR_NS))
        for h in range(-1, 4)
    ] == [0, 1, 1, 1, 0]


def test_clock_set_back(tmp_path):
    """Late packets stay in the part of earlier ones, and a window of their time finds them."""
    early, late = (
        archiving.recording(tmp_path / name, 500, seed, start_ns=start).read_bytes()
        for name, seed, start in (("1", 1, START_NS - 5 * layout.HOUR_NS), ("2", 2, START_NS))
    )
    file = tmp_path / "back.pcapng"
    file.write_bytes(late + early)
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 0
    (part,) = parts(archive)
    assert part.meta["late"] and part.meta["packets"]["rows"] == 1000 and part.folder.name == "hour=10"
    assert 0 <= part.first_ns - (START_NS - 5 * layout.HOUR_NS) < 10**6
    hour = START_NS - 5 * layout.HOUR_NS
    assert [p.name for p in parts(archive, since=hour, until=hour + layout.HOUR_NS)] == [part.name]
    assert call("verify", "-A", archive) == 0


def test_torn_file(tmp_path, capsys):
    whole = archiving.recording(tmp_path / "a.pcapng", 4000).read_bytes()
    file = tmp_path / "torn.pcapng"
    file.write_bytes(whole[: len(whole) * 2 // 3])
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, file) == 0
    out = capsys.readouterr().out
    (part,) = parts(archive)
    assert "what is before that was added" in out and part.meta["source"]["salvaged"] in out
    assert packets_in(content(part)) == part.meta["packets"]["rows"] > 2000
    assert whole.startswith(content(part))
    assert call("ingest", "-A", archive, file) == 0 and "in the archive already" in capsys.readouterr().out
    assert call("verify", "-A", archive) == 0
    # The rest behind the damage is kept, whether the file is added now or was before.
    for where in (tmp_path / "other", archive):
        copy = tmp_path / "copy.pcapng"
        copy.write_bytes(file.read_bytes())
        assert call("ingest", "-A", where, "--remove", copy) == 0 and "behind the damage" in capsys.readouterr().err
        assert not copy.exists() and copy.with_name(".copy.pcapng.torn").read_bytes() == file.read_bytes()
    assert (
        call("ingest", "-A", tmp_path / "third", "--remove", file) == 0
        and "behind the damage" in capsys.readouterr().err
    )
    assert not file.exists() and file.with_name(".torn.pcapng.torn").stat().st_size == len(whole) * 2 // 3


@pytest.mark.parametrize("name", ["a.pcapng.zst", "a.pcapng.gz", "a.pcapng.lz4", "zstd.pcapng", "a.pcap"])
def test_other_files(tmp_path, name):
    plain = archiving.recording(tmp_path / "a.pcapng", 1000)
    file = tmp_path / name
    if "zst" in name:  # also where the suffix does not say so
        subprocess.run(["zstd", "-q", plain, "-o", file], check=True)
    elif name.endswith(".lz4"):
        subprocess.run(["lz4", "-q", plain, file], check=True)
    elif name.endswith(".gz"):
        file.write_bytes(gzip.compress(plain.read_bytes()))
    else:
        subprocess.run(["editcap", "-F", "nsecpcap", plain, file], check=True)
    archive = tmp_path / "archive"
    assert call("ingest", "-A", archive, file) == 0
    assert_whole(archive, file)
    assert archiving.rows(archive) == 1000
    if not name.endswith(".pcap"):
        assert content(parts(archive)[0]) == plain.read_bytes()
    assert call("verify", "-A", archive) == 0


def test_refusals(tmp_path, capsys):
    def refused(text, *words, status=1):
        assert call(*words) == status
        err = capsys.readouterr().err
        assert text in err and err.count("\n") == 1

    file = archiving.recording(tmp_path / "a.pcapng", 100)
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    archive = tmp_path / "archive"
    refused("not an archive, and not empty", "ingest", "-A", other, file)
    refused("not an archive", "verify", "-A", other)
    refused("No such file", "ingest", "-A", archive, tmp_path / "nothing.pcapng")
    refused("cannot decode", "ingest", "-A", archive, __file__)
    refused("not a name", "ingest", "-A", archive, "--recorder", "../x", file)
    refused("give FILEs", "ingest", "-A", archive, status=2)
    refused("unknown command", "ingset", status=2)
    refused("--archive is missing", "ingest", file, status=2)
    with open(file, "ab"):
        refused("a process writes it", "ingest", "-A", archive, file)
    assert parts(archive) == []
    # The rest of the command line is added all the same.
    assert call("ingest", "-A", archive, tmp_path / "nothing.pcapng", file) == 1
    assert_whole(archive, file)


def test_lean(tmp_path):
    file = archiving.recording(tmp_path / "a.pcapng", 2000)
    for name, words in (("full", []), ("lean", ["--lean"])):
        assert call("ingest", "-A", tmp_path / name, *words, file) == 0
        assert call("verify", "-A", tmp_path / name) == 0
    full, lean = (pq.read_table(parts(tmp_path / name)[0].packets, partitioning=None) for name in ("full", "lean"))
    gone = {"tcp_seq", "ip_id"}
    assert [name for name in full.schema.names if not full[name].equals(lean[name])] == sorted(
        gone, key=full.schema.names.index
    )
    assert all(lean[name].null_count == 2000 for name in gone)


def test_a_frame_costs_no_other(tmp_path):
    """A damaged frame does not affect reading of the others."""
    path = tmp_path / "x.zst"
    data = [bytes([i]) * (frames.FRAME + i) for i in range(4)]
    with open(path, "wb") as file:
        writer = frames.Writer(file)
        for piece in data:
            writer.frame(piece)
        writer.finish()
    assert archiving.by_zstd(path) == b"".join(data)
    with frames.Reader(path) as reader:
        assert reader.frames() == 4
        begin = reader.places[1]
        assert reader.read(frames.FRAME - 2, 4) == b"\0\0\1\1"
        assert reader.read(sum(map(len, data)) - 1, 100) == b"\3"
    with open(path, "r+b") as file:
        file.seek(begin + 9)
        file.write(b"xxxx")
    with frames.Reader(path) as reader:
        assert reader.read(0, 1) == b"\0" and reader.read(frames.FRAME * 2 + 5, 1) == b"\2"
        with pytest.raises(frames.Corrupt, match="frame 1"):
            reader.read(frames.FRAME + 1, 1)
    with open(path, "r+b") as file:
        file.truncate(begin)
    with pytest.raises(frames.Corrupt, match="no seek table"):
        frames.Reader(path)


def test_units():
    sizes = {"0": 0, "2T": 2 << 40, "64k": 1 << 16, "1.5GiB": 3 << 29, "3MB": 3 * 10**6, "1kB": 1000, "7B": 7}
    assert {text: units.size(text) for text in sizes} == sizes
    times = {"0": 0, "0s": 0, "7d": 7 * 86400 * 10**9, "1.5ms": 1_500_000, "2\u00b5s": 2000, "5m": 300 * 10**9}
    assert {text: units.duration(text) for text in times} == times
    assert units.signed_duration("-3ms") == -3_000_000 and units.count("1.5M") == 1_500_000
    for parse, wrong, words in (
        (units.duration, ("5", "0.5"), "has no unit"),
        (units.duration, ("", "s", "1 s", "-1s", "1w", "0.1ns", "1.s"), "not a time"),
        (units.duration, ("36501d", f"{10**30}s"), "out of range"),
        (units.size, ("64",), "has no unit; 64M or 64K"),
        (units.size, ("1KB", "5s", "K", "-1K"), "not a size"),
        (units.count, ("1.5", "10K", "10m", "x"), "not a number"),
    ):
        for text in wrong:
            with pytest.raises(argparse.ArgumentTypeError, match=words):
                parse(text)
    assert [show.size(n) for n in (0, 1023, 1024, 64 << 20, 3 << 29)] == ["0 B", "1023 B", "1 KiB", "64 MiB", "1.5 GiB"]
    assert [show.duration(n) for n in (331, 12_300, 36_200_000)] == ["331 ns", "12.3 us", "36.2 ms"]
    assert (
        units.moment("2026-03-01T10:00:00.000000001Z")
        == START_NS + 1
        == units.moment("2026-03-01T12:00:00.000000001+02:00")
    )
    assert (
        units.moment_text(START_NS + 1) == "2026-03-01T10:00:00.000000001Z"
        and units.moment(f"@{START_NS // 10**9}") == START_NS
    )
    for text in ("7", "x", "2026-13-01", "10:00", "@1e5"):
        with pytest.raises(argparse.ArgumentTypeError, match="not a"):
            units.moment(text)


def test_losses_of_the_next_hour(tmp_path, capsys):
    """Statistics come after the last packet: they are found at their time, and only there."""
    end = START_NS + layout.HOUR_NS
    file = File().section().interface(1, 0, (9, b"\x09"))
    file.packet(b"\0" * 60, end - 1000).statistics(0, end - 900, (7, file.pack("Q", 0)), (8, file.pack("Q", 1)))
    file.statistics(0, end + 300, (7, file.pack("Q", 500)), (8, file.pack("Q", 1)))
    archive = tmp_path / "archive"
    assert call("ingest", "-q", "-A", archive, file.write(tmp_path / "a.pcapng")) == 0
    for window, lost in ((("--from", "2026-03-01T11:00"), 500), (("--to", "2026-03-01T11:00"), None)):
        capsys.readouterr()
        assert call("query", "-A", archive, "--json", *window, "SELECT sum(packets) AS lost FROM losses") == 0
        assert json.loads(capsys.readouterr().out)["rows"] == [{"lost": lost}]
    assert call("verify", "-A", archive) == 0


def test_numbers_beyond_all_bounds(tmp_path, capsys):
    """A strange recording must not spoil the views of all."""
    file = File().section().interface(1, 0, (9, b"\x09"), (3, b"port 4294967295 of DPDK application a"))
    file.packet(b"\0" * 60, START_NS, options=((6, file.pack("I", 4294967294)), (4, file.pack("Q", 2**64 - 1))))
    archive = tmp_path / "archive"
    assert call("ingest", "-q", "-A", archive, file.write(tmp_path / "a.pcapng")) == 0
    capsys.readouterr()
    assert (
        call("query", "-A", archive, "--json", "SELECT queue, packets, port FROM losses JOIN interfaces USING (part)")
        == 0
    )
    assert json.loads(capsys.readouterr().out)["rows"] == [
        {"queue": 4294967294, "packets": str(2**63 - 1), "port": 4294967295}
    ]


def test_begin_of_fates_stands_once_in_each_part(tmp_path):
    """A later part has the begin of fates once, even if the file repeats it."""
    begin = struct.pack("<HHIII", 1, 0, 0, 0, 0)
    file = File().section().interface(1, 0, (9, b"\x09"))
    for _ in range(1000):
        file.block(0x80525446, begin)
    for hour in range(2):
        file.packet(b"\0" * 60, START_NS + hour * layout.HOUR_NS)
    archive = tmp_path / "archive"
    assert call("ingest", "-q", "-A", archive, file.write(tmp_path / "a.pcapng")) == 0
    found = [content(part).count(struct.pack("<II", 0x80525446, 12 + len(begin))) for part in parts(archive)]
    assert found == [1000, 1]


def test_names_of_any_bytes(tmp_path):
    """Names with bytes outside of the encoding are printed."""
    file = archiving.recording(tmp_path / "a.pcapng", 100)
    named = os.fsencode(tmp_path) + b"/\xff\xe4.pcapng"
    os.rename(file, named)
    words = [archived.python(), "-m", "ringtap_archive.main", "ingest", "-A", tmp_path / "archive", named]
    done = subprocess.run(
        words, env=archived.environment() | {"PYTHONIOENCODING": "utf-8"}, capture_output=True, check=False
    )
    assert done.returncode == 0 and b"100 packets" in done.stdout, done.stderr


def test_recording_of_many_hours(tmp_path):
    """A recording of more hours than a process may have open files is added."""
    file = File().section().interface(1, 0, (9, b"\x09"))
    for hour in range(60):
        file.packet(b"\0" * 60, START_NS + hour * layout.HOUR_NS)
    file.write(tmp_path / "a.pcapng")
    done = subprocess.run(
        [
            "prlimit",
            "--nofile=64:1024",
            archived.python(),
            "-m",
            "ringtap_archive.main",
            "ingest",
            "-A",
            tmp_path / "archive",
            tmp_path / "a.pcapng",
        ],
        env=archived.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(parts(tmp_path / "archive")) == 60


def test_memory_does_not_grow_with_hours(tmp_path, monkeypatch):
    """Tables of a megabyte each are open until the digest of the recording is known."""
    most, alive = [0], weakref.WeakSet()

    class Counted(ingest.NewPart):
        def __init__(self, *args):
            super().__init__(*args)
            alive.add(self)
            most[0] = max(most[0], len(alive))

    monkeypatch.setattr(ingest, "NewPart", Counted)
    f = File().section().interface(1, 0, (9, b"\x09"))
    for hour in range(60):
        f.packet(bytes(60), START_NS + hour * layout.HOUR_NS)
    file = f.write(tmp_path / "sparse.pcapng")
    assert call("ingest", "-A", tmp_path / "archive", "--recorder", "a", file) == 0
    assert most[0] <= ingest.OPEN_MAX + 2
    assert_whole(tmp_path / "archive", file)
    assert all(part.meta["interfaces"] and "aside" not in part.meta for part in parts(tmp_path / "archive"))
    assert call("verify", "-A", tmp_path / "archive") == 0
    monkeypatch.setattr(ingest, "HOURS_MAX", 50)
    assert call("ingest", "-A", tmp_path / "archive", "--recorder", "b", file) == 1


def test_frames_do_not_grow_with_what_is_between_packets(tmp_path):
    f = File().section().interface(1, 0, (9, b"\x09"))
    for at in range(3):
        f.packet(bytes(60), START_NS + at)
        for _ in range(10):
            f.block(0x0BAD, struct.pack("<I", 0) + bytes(1 << 20))
    file = f.write(tmp_path / "gaps.pcapng")
    assert call("ingest", "-A", tmp_path / "archive", "--recorder", "a", file) == 0
    (part,) = parts(tmp_path / "archive")
    with frames.open_file(part.pcapng) as packed:
        assert max(len(data) for _, data in packed.pieces()) < 3 << 20
    assert content(part) == file.read_bytes()
    assert call("verify", "-A", tmp_path / "archive") == 0
