# SPDX-License-Identifier: BSD-3-Clause
"""An archive of another user has no effect outside of its folder, allocates no claimed memory, and delays no command."""

import json
import os
import resource
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from harness import archiving
from harness.archiving import call, end_of, parts
from harness.hostile import archive as hostile
from harness.pcapng_write import File
from harness.proc import child
from ringtap_archive import frames, layout, private, store
from ringtap_archive.errors import Refused

NOBODY = 65534


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert (
        call("ingest", "-A", folder / "archive", "--recorder", "a", archiving.recording(folder / "a.pcapng", 500)) == 0
    )
    return folder / "archive"


@pytest.fixture
def archive(tmp_path, whole):
    return shutil.copytree(whole, tmp_path / "archive")


@pytest.fixture
def outside(tmp_path):
    """A folder with a file that no command may touch."""
    folder = tmp_path / "outside"
    (folder / "date=2026-03-01" / "hour=10").mkdir(parents=True)
    (folder / "precious").write_text("x")
    yield folder
    assert (folder / "precious").read_text() == "x" and (folder / "date=2026-03-01" / "hour=10").is_dir()


def filled(content, **values):
    return json.loads(json.dumps(content).replace("{outside}", str(values["outside"])))


@pytest.mark.parametrize("content", hostile.JOURNALS, ids=lambda content: json.dumps(content)[:60])
def test_a_journal_changes_its_archive_only(archive, outside, content, capsys):
    hostile.journal(archive, filled(content, outside=outside / "precious"))
    with store.Archive(archive).reading():
        before = sorted(archive.rglob("*"))
    assert call("query", "-A", archive, "SELECT count(*) FROM packets") == 1
    assert call("ingest", "-A", archive, "--recorder", "a", archive.parent / "none.pcapng") == 1
    assert sorted(archive.rglob("*")) == before and "no process of ringtap writes that" in capsys.readouterr().err


def test_a_journal_of_another_user(archive, outside, capsys):
    """ringtap refuses a journal of another user, even one that only removes parts."""
    hostile.journal(
        archive, {"rename": [], "remove": [str(path.relative_to(archive)) for path in parts(archive)[0].files()]}
    )
    os.chown(archive / store.JOURNAL, NOBODY, NOBODY)
    assert call("query", "-A", archive, "SELECT count(*) FROM packets") == 1
    os.chown(archive, NOBODY, NOBODY)
    for words in (
        ("query", "-A", archive, "SELECT 1"),
        ("prune", "-A", archive, "--keep", "0"),
        ("verify", "--repair", "-A", archive),
    ):
        assert call(*words) == 1
    assert capsys.readouterr().err.count("another user") == 4
    (archive / store.JOURNAL).unlink()
    assert parts(archive) and call("prune", "-A", archive, "--keep", "0", "--shared") == 0 and not parts(archive)


def test_links_are_not_followed(archive, outside, capsys):
    """Links replace the folder of changes, a recorder, an hour, a file of a part, and the folder of damaged files."""
    file = archiving.recording(archive.parent / "b.pcapng", 100, 2)
    for name in (".tmp", ".spool", store.DAMAGED):
        (archive / name).symlink_to(outside) if not (archive / name).exists() else hostile.link(archive / name, outside)
    assert call("ingest", "-A", archive, "--recorder", "a", file) == 1
    assert "a link, or not a folder" in capsys.readouterr().err
    for path in (archive / "recorder=x", archive / "recorder=a" / "date=2026-03-01" / "hour=11"):
        path.symlink_to(outside)
        assert call("prune", "-A", archive, "--keep", "0") == 1
        assert "move it out of the archive" in capsys.readouterr().err
        path.unlink()
    hostile.link(parts(archive)[0].packets, outside / "precious")
    assert call("query", "-A", archive, "SELECT count(*) FROM packets") == 1
    assert call("verify", "-A", archive) == 1


def test_pipes_hold_nobody_up(archive, capsys):
    (part,) = parts(archive)
    for path in (
        part.packets,
        part.meta_path,
        archive / "recorder=a" / ".late",
        archive / store.JOURNAL,
        archive / layout.LOCK,
    ):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        assert call("query", "-A", archive, "--from", "2026-01-01", "SELECT count(*) FROM packets") == 1
        assert call("verify", "-A", archive) == 1
        capsys.readouterr()


def limited(function, *words):
    """The exit status in a process that gets 512 MiB more."""

    def run():
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20),) * 2)
        try:
            return function(*words)
        except MemoryError:
            return 77

    return end_of(child(run))


def test_sizes_that_a_frame_claims(archive):
    (part,) = parts(archive)
    hostile.claim(part.pcapng, 2 << 30)
    assert part.pcapng.stat().st_size < 1 << 20

    def first():
        with frames.open_file(part.pcapng) as file, pytest.raises(frames.Corrupt, match="more than"):
            file.frame(0)

    def all_whole():
        assert [content for content, _ in frames.scan(part.pcapng)] == [None]

    assert limited(first) == limited(all_whole) == (0, None)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(interfaces=7),
        lambda m: m["interfaces"][0].update(name="\ud800"),
        lambda m: m.update(first_ns=1 << 70),
        lambda m: m["interfaces"][0].update(tsresol=256),
        lambda m: m.update(losses=[3]),
        lambda m: m.update(source=[]),
        lambda m: m.update(clock={"reports": "x"}),
        lambda m: m["packets"].update(rows=-1),
        lambda m: m.update(format="1"),
        lambda m: m.update(late=None),
        lambda m: m["pcapng"].pop("frames"),
        lambda m: m["interfaces"][0].pop("snaplen"),
    ],
    ids=range(12),
)
def test_meta_of_another_shape(archive, change, capsys):
    """One line, and a repair makes the file again from the packets."""
    hostile.meta(archive, change)
    for words in (
        ("query", "-A", archive, "SELECT * FROM interfaces"),
        ("top", "-A", archive),
        ("verify", "-A", archive),
    ):
        assert call(*words) == 1
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err and err.count("\n") in (2, 3)
    if "of another version" not in err:
        assert call("verify", "-A", archive, "--repair") == 0 and call("verify", "-A", archive) == 0


def test_meta_without_what_may_be_missing(archive, capsys):
    hostile.meta(archive, lambda m: m.update(clock={"reports": 1, "unsynchronized": 1, "set": [], "set_beyond": 0}))
    assert (
        call("hops", "-A", archive, "--json") in (0, 1)
        and call("report", "-A", archive, "--html", archive.parent / "page") == 0
    )
    assert "Traceback" not in capsys.readouterr().err


def test_only_the_owner_reads_packets(tmp_path, capsys):
    """Only the owner reads packets, with any umask; with -g the group, too."""

    def modes(folder):
        return {stat.S_IMODE(path.lstat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir()}, {
            stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*") if path.is_file()
        }

    file = archiving.recording(tmp_path / "a.pcapng", 500)
    for mask, more, folders, files in ((0, [], {0o700}, {0o600}), (0o077, ["-g"], {0o750}, {0o640})):
        archive = tmp_path / f"archive{mask}"
        before = os.umask(mask)
        try:
            assert (
                call(
                    "ingest",
                    "-A",
                    archive,
                    "--recorder",
                    "a",
                    *more,
                    file,
                    archiving.recording(tmp_path / "b.pcapng", 50, 3),
                )
                == 0
            )
            assert call("compact", "-A", archive) == 0 and len(parts(archive)) == 1
            assert call("fetch", "-A", archive, "-w", tmp_path / f"out{mask}", *more) == 0
            assert call("query", "-A", archive, "SELECT 1 AS a", "--arrow", tmp_path / f"arrow{mask}", *more) == 0
            assert call("report", "-A", archive, "--html", tmp_path / f"page{mask}", *more) == 0
        finally:
            os.umask(before)
        assert modes(archive) == (folders, files)
        assert {stat.S_IMODE((tmp_path / f"{name}{mask}").stat().st_mode) for name in ("out", "arrow", "page")} == files
    capsys.readouterr()
    assert call("ingest", "-A", tmp_path / "archive0", "-g", file) == 1 and "chmod -R" in capsys.readouterr().err


def test_a_file_of_another_user_gets_no_packets(archive, tmp_path, capsys):
    (tmp_path / "out.pcapng").write_text("x")
    os.chown(tmp_path / "out.pcapng", NOBODY, NOBODY)
    assert call("fetch", "-A", archive, "-w", tmp_path / "out.pcapng") == 1
    assert "belongs to another user" in capsys.readouterr().err and (tmp_path / "out.pcapng").read_text() == "x"


def test_a_member_of_the_group_reads(tmp_path):
    with tempfile.TemporaryDirectory(prefix="ringtap-e2e-") as folder:  # pytest's are root's only
        os.chmod(folder, 0o755)
        archive = Path(folder) / "archive"
        assert (
            call("ingest", "-A", archive, "-g", "--recorder", "a", archiving.recording(tmp_path / "a.pcapng", 100)) == 0
        )
        for path in [archive, *archive.rglob("*")]:
            os.chown(path, -1, NOBODY)

        def count():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with pytest.raises(Refused, match="another user"), store.Archive(archive).locked():
                pass
            return len(parts(archive)) * 7

        assert end_of(child(count)) == (7, None)


def test_names_do_not_lead_out(tmp_path, outside):
    tree = private.Tree(outside)
    with pytest.raises(Refused, match="leads out"):
        tree.read("../outside/precious", 10)


EVIL = b"\x1b]0;owned\x07\x1b[31m\xc2\x9b2J\r\n\xe2\x80\xaeeth0"


@pytest.mark.parametrize(
    "words",
    [
        ("query", "SELECT name, description FROM interfaces"),
        ("query", "--csv", "SELECT name FROM interfaces"),
        ("query", "--json", "SELECT name FROM interfaces"),
        ("query", "SELECT CAST(name AS INT) FROM interfaces"),
        ("top", "--view", "interfaces"),
        ("hops",),
        ("hops", "--json"),
        ("verify",),
        ("ingest", "--recorder", "c", "{file}"),
        ("ingest", "--recorder", "d", "{torn}"),
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_text_of_others_is_printed_as_text(tmp_path, words, capsys):
    """Names in a recording, and names of files, are printed as text."""
    file = tmp_path / "evil\x1b[2J.pcapng"
    for recorder, ns in (("a", 0), ("b", 1000)):
        f = File().section().interface(1, 0, (2, EVIL), (3, b"=1+1" + EVIL), (9, b"\x09"))
        for n in range(20):
            f.packet(
                bytes([2] * 12)
                + b"\x08\x00"
                + bytes.fromhex("4500001c000%x0000401100000a0000010a000002" % (n % 16))
                + bytes([0, n]) * 4,
                archiving.START_NS + n * 10**6 + ns,
            )
        f.write(file)
        assert call("ingest", "-A", tmp_path / "archive", "--recorder", recorder, "-q", file) == 0
    (tmp_path / "torn\x1b[2J.pcapng").write_bytes(file.read_bytes()[:-7])
    if words == ("verify",):
        parts(tmp_path / "archive")[0].flows.write_bytes(b"")
    capsys.readouterr()
    call(
        words[0],
        "-A",
        tmp_path / "archive",
        *(word.format(file=file, torn=tmp_path / "torn\x1b[2J.pcapng") for word in words[1:]),
    )
    out, err = capsys.readouterr()
    text = (out + err).replace("\n", "")
    assert len(out + err) > 20 and text.isprintable() and "Traceback" not in text
    assert words[0] not in ("top", "hops") or "eth0" in text


def test_cells_of_csv_are_not_computed(archive, capsys):
    """Text that begins like a formula gets a quote; numbers stay numbers."""
    sql = "SELECT * FROM (VALUES ('=1+1', -5, -0.5::DOUBLE, '-5'), ('@x', 7, 1e30, '+a'), ('a=b', NULL, -1, NULL)) AS t(a, b, \"=c\", d)"
    assert call("query", "-A", archive, "--csv", sql) == 0
    assert capsys.readouterr().out.splitlines() == ["a,b,'=c,d", "'=1+1,-5,-0.5,'-5", "'@x,7,1e+30,'+a", "a=b,,-1.0,"]
