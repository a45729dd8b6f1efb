# SPDX-License-Identifier: BSD-3-Clause
"""Adds recordings: each in one pass, into files that appear together or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import itertools
import json
import os
import resource
import shutil
import signal
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from . import decoder, document, frames, index, layout, options, packed, private, show, units
from .errors import Lost, Refused, WrongCommandLine
from .store import Archive, no_space, write_synced
from .stored import Bytes, Frames

if TYPE_CHECKING:
    from argparse import Namespace
    from os import stat_result
    from typing import Any

    from pyarrow import RecordBatch

    from .decoder import Decoder, Part
    from .index import Table
    from .main import Parser

OPEN_MAX = 16  # parts with tables that wait for the digest of their recording
HOURS_MAX = 10_000
LONG = ("interfaces", "losses", "clock", "versions", "comment")
PACKET_BYTES = 100  # a small packet's block: for the likely number of packets
SETTLED_S = 60
PACKED_READ = 1 << 16  # what such a read of damaged data would have had is lost
IP_TYPES = pa.array([0x0800, 0x86DD], pa.uint16())
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # <malloc.h>


def arguments(parser: Parser) -> None:
    options.archive(parser)
    parser.add_argument("files", nargs="*", metavar="FILE", help="pcapng or pcap, also compressed by zstd, lz4 or gzip")
    parser.add_argument("--recorder", metavar="NAME", help="the recorder's name in the archive (default: this host's)")
    parser.add_argument("--lean", action="store_true", help="an index without TCP sequence numbers and IP ids")
    parser.add_argument("--no-compress", action="store_true", help="keep pcapng files as they are")
    parser.add_argument("--remove", action="store_true", help="remove each file once it is in the archive")
    parser.add_argument(
        "--watch",
        type=Path,
        metavar="DIR",
        help="add the files of DIR, and those to come when they are closed, until Ctrl-C",
    )
    parser.add_argument(
        "--follow",
        metavar="APP[:PORT]",
        help="record this DPDK application with 'ringtap record' into the archive, until Ctrl-C; "
        "options of record stand behind --",
    )
    parser.add_argument(
        "--rotate", type=units.duration, default="1min", metavar="TIME", help="time of a file of --follow (1min)"
    )
    parser.add_argument(
        "--duration",
        type=units.duration,
        metavar="TIME",
        help="end --watch or --follow after TIME (default: by Ctrl-C)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors")
    options.group(parser, "let the group read a new archive")
    options.shared(parser)
    options.as_json(parser)


class NewPart:
    """Files of a part in the making, in the staging folder."""

    def __init__(
        self, staging: Path, number: int, data: Bytes, header: bytes, size_likely: int, compress: bool, group: bool
    ):
        stem = staging / f"{number:06d}"
        self.stem = stem
        self.data, self.header, self.cuts = data, header, 0
        self.packets = index.Packets(Path(f"{stem}.packets.parquet"), size_likely // PACKET_BYTES, group)
        self.frames = Frames(Path(f"{stem}.pcapng.zst" if compress else f"{stem}.pcapng"), compress, group)
        self.flows, self.group = None, group
        self.flowless, self.typeless = 0, 0
        self.later = False  # flows have what lies behind the part's end

    def batch(self, batch: RecordBatch, part: Part) -> None:
        """Writes the rows, and the full frames."""
        self.packets.add(batch)
        self._count(batch)
        self._cut(part)

    def _cut(self, part: Part):
        cuts = part.cuts_from(self.cuts)
        self.cuts += len(cuts)
        for cut in cuts:
            if cut - self.data.at >= frames.FRAME:
                self._frame(cut)

    def _count(self, batch: RecordBatch):
        """Packets without a flow, of IP's ethertypes and without any: where there are none, which is the rule, a filter
        on addresses need not look for them."""
        if batch.column("flow_id").null_count:
            types = batch.column("ethertype").filter(batch.column("flow_id").is_null())
            self.flowless += pc.sum(pc.is_in(types, IP_TYPES)).as_py() or 0
            self.typeless += types.null_count

    def packets_meta(self, interfaces: list[dict]) -> dict:
        """flowless: packets of IP that have no flow, as their headers are cut or malformed. Other link layers than
        Ethernet may have no type."""
        ethernet = all(interface["linktype"] == 1 for interface in interfaces)
        return {**_table_meta(self.packets.table), "flowless": self.flowless + (0 if ethernet else self.typeless)}

    def _frame(self, end: int):
        self.frames.add(self.data.take(end, b"" if self.frames.bytes else self.header))

    def finish(self, part: Part, following: str | None) -> None:
        self._cut(part)
        if part.end > self.data.at or not self.frames.bytes:
            self._frame(part.end)
        self.frames.finish()
        self.packets.flush()
        self.later = part.look_ahead(following)
        self.flows = index.write_flows(Path(f"{self.stem}.flows.parquet"), part.flow_batches(), self.group)

    def close(self) -> None:
        self.packets.table.close()
        self.frames.file.close()


def _first_time(batch: RecordBatch):
    """Time of the first packet in the file."""
    offsets = batch.column("file_offset")
    return batch.column("time_ns")[pc.index(offsets, pc.min(offsets)).as_py()].as_py()


def _times(part: Part):
    """Times of the first and last packet, or of losses if there is no packet."""
    if part.first_ns is not None:
        return part.first_ns, part.last_ns
    times = [loss["time_ns"] for loss in part.losses if loss.get("time_ns") is not None]
    return (min(times), max(times)) if times else (None, None)


def _table_meta(table: Table):
    return {
        "file": table.file.path.name,
        "rows": table.rows,
        "bytes": table.file.bytes,
        "sha256": table.file.digest.hexdigest(),
    }


def _part_meta(made: NewPart, part: Part, recorder: str, lean: bool):
    section = part.section
    first, last = _times(part)
    return {
        "format": layout.FORMAT,
        "recorder": recorder,
        "source": None,
        "pcapng": made.frames.meta(),
        "packets": made.packets_meta(part.interfaces),
        "flows": _table_meta(made.flows),
        "first_ns": first,
        "last_ns": last,
        "late": part.late,
        "lean": lean,
        "later": made.later,
        "interfaces": part.interfaces,
        "losses": part.losses,
        "losses_beyond": part.losses_beyond,
        "clock": part.clock,
        "comment": section.get("comment"),
        "versions": {
            "ringtap": section.get("application"),
            "hardware": section.get("hardware"),
            "os": section.get("os"),
            "decoder": decoder.version(),
        },
    }


def file_digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def source_in(folder: Path, sha256: str | None, bytes_: int | None = None) -> dict | None:
    """The source as a part of this folder has it, or one of this size (sha256 None); None: no part is of it."""
    for meta in layout.metas_of(folder):
        try:
            part = layout.read_part(meta)
        except layout.BadMeta:
            continue
        for source in part.sources if part else ():
            if source["sha256"] == sha256 or (sha256 is None and source["bytes"] == bytes_):
                return source
    return None


class Known(Exception):
    """The archive has the source."""


def _with_aside(meta: dict):
    if "aside" not in meta:
        return meta
    return {**{key: value for key, value in meta.items() if key != "aside"}, **json.loads(meta["aside"].read_bytes())}


class Job:
    """Adds one file. origin: replaces "source" and "sources" of its meta.json, for files made of parts of the archive.
    following: the path of the next file, which may be of the same recording and have fates of packets of this one."""

    def __init__(
        self,
        archive: Archive,
        path: Path,
        recorder: str,
        lean: bool = False,
        compress: bool = True,
        origin: dict[str, dict] | None = None,
        following: str | None = None,
    ):
        self.archive, self.path, self.recorder = archive, Path(path), recorder
        self.lean, self.compress, self.origin, self.following = lean, compress, origin, following
        self.metas, self.folders = [], []
        self.torn = None
        self.sha256 = None
        self.as_is = True  # neither decompressed nor converted

    def run(self) -> Any:
        """Returns what was added, as a dictionary."""
        begin = time.monotonic()
        try:
            return self._result("added" if self._run() else "empty", begin)
        except Known:
            return self._result("known", begin)

    def _run(self):
        with self.archive.staging() as staging:
            self.prepare(staging)
            if not self.metas and self.torn:
                raise self._lost()
            if not self.metas:
                return False
            with self.archive.locked():
                self.publish(staging)
        return True

    def prepare(self, staging: Path) -> None:
        with self._opened(staging) as source:
            self._decode(source, staging)

    def _result(self, state: str, begin: float):
        return {
            "file": str(self.path),
            "state": state,
            "packets": sum(m["packets"]["rows"] for m in self.metas),
            "parts": len(self.metas),
            "bytes": self.bytes,
            "stored_bytes": sum(m["pcapng"]["bytes"] for m in self.metas),
            "index_bytes": sum(m[table]["bytes"] for m in self.metas for table in ("packets", "flows")),
            "duration_ns": round((time.monotonic() - begin) * 1e9),
            "salvaged": self.torn,
        }

    @contextlib.contextmanager
    def _opened(self, staging: Path):
        """The decoder of the file, which may have to be decompressed first."""
        try:
            self.bytes = self.path.stat().st_size
            path = self._unpacked(staging) or self.path
        except OSError as e:
            if no_space(e):
                raise
            raise Refused(f"cannot read '{self.path}': {e.strerror or e}") from e
        try:
            source = decoder.open(path, lean=self.lean, by_flow=True)
        except Lost as e:
            raise (self._lost() if self.torn else e) from e
        with source:
            yield source

    def _lost(self):
        return Lost(f"cannot read '{self.path}': {self.torn}; no packet is before that")

    def _unpacked(self, staging: Path):
        """None: it is not compressed, or no regular file, which the decoder refuses."""
        if not stat.S_ISREG(self.path.stat().st_mode):
            return None
        path = staging / "unpacked.pcapng"
        with open(self.path, "rb") as file:
            unpacked = packed.opened(file)
            if not unpacked:
                return None
            try:
                with os.fdopen(private.create(path, new=True), "wb") as plain:
                    shutil.copyfileobj(unpacked, plain, PACKED_READ)
            except packed.ERRORS as e:
                self.torn = f"torn: {e}"
        self.as_is, self.sha256 = False, file_digest(self.path)
        return path

    def _decode(self, source: Decoder, staging: Path):
        if source.converted:
            self.as_is, self.sha256 = False, file_digest(self.path)
        data, pending, count = Bytes(source), [], 0
        try:
            for part in source.parts():
                pending.append(self._part(source, staging, count, part, data))
                count += 1
                if count > HOURS_MAX:
                    raise Refused(
                        f"cannot ingest '{self.path}': it has packets of more than {HOURS_MAX} hours; cut it with "
                        "editcap -A, -B"
                    )
                if count > OPEN_MAX:
                    self._complete_some(pending, None, staging)
            self.torn = source.torn or self.torn
            self._check_digest(data.rest())
            self._complete_some(pending, count, staging)
        finally:
            for new, _ in pending:
                new.close()
        for meta in self.metas if not self.origin else ():
            meta["source"].update(parts=count, salvaged=self.torn)

    def _check_digest(self, digest: Any):
        if self.sha256 and self.as_is and self.sha256 != digest:
            raise Refused(f"'{self.path}' changed while it was read; ingest it once it is complete")
        self.sha256 = self.sha256 or digest

    def _complete_some(self, pending: list[tuple], count: int | None, staging: Path):
        """count: None while it is not known. An open table takes a megabyte: for a file of many hours the digest is computed
        before all of it is decoded, which reads it once more."""
        self.sha256 = self.sha256 or file_digest(self.path)
        while pending:
            new, meta = pending[0]
            if meta["first_ns"] is not None:
                self._complete(new, meta, len(self.metas), count)
                if count is None:
                    self._set_aside(meta, staging)
            pending.pop(0)[0].close()

    @staticmethod
    def _set_aside(meta: dict, staging: Path):
        """Sets long values aside until it is published."""
        path = staging / f"{meta['packets']['file']}.aside"
        with os.fdopen(private.create(path, new=True), "w", encoding="utf-8") as file:
            json.dump({key: meta.pop(key) for key in LONG}, file)
        meta["aside"] = path

    def _part(self, source: Decoder, staging: Path, number: int, part: Part, data: Bytes):
        batches = part.batches()
        first = next(batches, None)
        if number == 0 and first is not None and first.num_rows and not self.origin:
            self._look_up(_first_time(first))
        new = NewPart(staging, number, data, part.header, source.size - data.at, self.compress, self.archive.group)
        try:
            for batch in itertools.chain([first] if first is not None else [], batches):
                new.batch(batch, part)
            new.finish(part, self.following)
        except BaseException:
            new.close()
            raise
        new.hour_ns = None if part.hour is None else part.hour * layout.HOUR_NS
        return new, _part_meta(new, part, self.recorder, self.lean)

    def _complete(self, new: Any, meta: dict, number: int, count: int | None):
        """The index names the source, so that a lost meta.json can be made again."""
        source = {
            "name": self.path.name,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "parts": count,
            "part": number,
            "salvaged": self.torn,
        }
        origin = {**(self.origin or {}), "source": {**source, **(self.origin or {}).get("source", {})}}
        new.packets.finish(origin)
        meta.update(**origin, packets=new.packets_meta(meta["interfaces"]))
        if meta["pcapng"]["sha256"] is None:  # the same bytes are digested once
            same = self.as_is and count == 1 and meta["pcapng"]["bytes"] == self.bytes
            meta["pcapng"]["sha256"] = self.sha256 if same else file_digest(new.frames.file.path)
        self.metas.append(meta)
        # That of its first packet, which is not always that of first_ns.
        self.folders.append(layout.hour_folder(self.recorder, meta["first_ns"] if new.hour_ns is None else new.hour_ns))

    def _look_up(self, time_ns: int):
        """Ends it early where the archive has the file: only one of the same size is worth a digest."""
        folder = self.archive.path / layout.hour_folder(self.recorder, time_ns)
        if source_in(folder, None, self.bytes):
            self.sha256 = self.sha256 or file_digest(self.path)
            if known := source_in(folder, self.sha256):
                self.torn = known.get("salvaged")
                raise Known

    def publish(self, staging: Path, removals: list[Path] | tuple = (), moves: list[tuple] | tuple = ()) -> None:
        """Under a lock of the archive; removals and moves are of parts that these replace."""
        renames, metas, late, numbers = [], [], [], {}
        for meta, relative in zip(self.metas, self.folders):
            meta = _with_aside(meta)
            folder = self.archive.path / relative
            if not self.origin and source_in(folder, self.sha256):
                raise Known
            number = int(numbers.get(folder) or layout.next_number(self.archive.path, relative))
            numbers[folder] = f"{number + 1:06d}"
            for table in ("pcapng", "packets", "flows"):
                old = meta[table]["file"]
                meta[table]["file"] = f"{number:06d}{old[old.index('.') :]}"
                renames.append((staging / old, folder / meta[table]["file"]))
            begin = layout.hour_of(folder)
            if meta["late"] or meta["first_ns"] < begin or meta["last_ns"] >= begin + layout.HOUR_NS:
                meta["late"] = True
            if meta["late"] or any(not begin <= ns < begin + layout.HOUR_NS for ns in layout.loss_times(meta)):
                late.append(folder / f"{number:06d}{layout.META}")
            draft = staging / f"{len(metas):06d}{layout.META}"
            write_synced(
                private.create(draft, self.archive.group, new=True), json.dumps(meta, separators=(",", ":")).encode()
            )
            metas.append((draft, folder / f"{number:06d}{layout.META}"))
        self.archive.apply([*moves, *renames, *metas], removals, late)


def keep_memory() -> None:
    """Batches are of the same size again and again: glibc must not give their pages back in between."""
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, 32 << 20)
    libc.mallopt(M_TRIM_THRESHOLD, 512 << 20)


def open_for_writing(path: Path) -> bool:
    """Whether a process writes the file: the kernel gives no read lease then. None: unknown, because the file system has no
    leases, or the file belongs to another user."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        # A writer that comes now waits until the lease is given up, and a signal reports it: an ignored one.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as e:
        return True if e.errno == errno.EAGAIN else None
    finally:
        os.close(fd)
    return False


def settled(status: stat_result) -> bool:
    """Whether the file has not been changed for a while: a recorder writes at least every 10 seconds."""
    return time.time() - status.st_mtime >= SETTLED_S


def identity(status: stat_result) -> tuple:
    return status.st_ino, status.st_size, status.st_mtime_ns


def describe(result: dict) -> str:
    name = result["file"]
    if result["state"] == "known":
        return f"{name}: in the archive already"
    if result["state"] == "empty":
        return f"{name}: has neither packets nor losses; nothing is added"
    text = (
        f"{name}: {result['packets']} packets in {result['parts']} part{'s'[: result['parts'] != 1]}, "
        f"{show.size(result['bytes'])} as {show.size(result['stored_bytes'])} and an index of "
        f"{show.size(result['index_bytes'])}, in {result['duration_ns'] / 1e9:.2f} s"
    )
    return text + (f"; {result['salvaged']}; what is before that was added" if result["salvaged"] else "")


class Ingester:
    """Adds files with the options of the command line, and reports them."""

    def __init__(self, args: Namespace):
        self.archive = Archive(args.archive, create=True, group=args.group, shared=args.shared)
        self.recorder = layout.recorder_name(args.recorder)
        self.args = args
        self.failed = 0

    def remove(self, path: Path, result: dict, before: stat_result, closed: bool) -> None:
        """Keeps a damaged file, which may have more than the archive, by a name that --watch skips, and a file that is still
        written. before: its state when it was read; closed: no process writes it."""
        now = path.stat()
        if identity(now) != identity(before) or not (closed or settled(now)):
            show.warn(f"'{path}' is not removed: it may be written still; ingest it again once it is closed")
            return
        if not result["salvaged"]:
            path.unlink(missing_ok=True)
            return
        kept = path.with_name(f".{path.name}.torn")
        path.rename(kept)
        show.warn(f"'{path}' is damaged: what is behind the damage is only in '{kept}'")

    def add(self, path: Path, remove: bool = False, closed: bool = False, following: Any = None) -> bool:
        """Whether the file is in the archive. closed: it is known that no process writes it. following: see Job."""
        try:
            writer = open_for_writing(path)
            if writer:
                raise Refused(f"cannot ingest '{path}': a process writes it; ingest it once it is closed")
            before = path.stat() if path.exists() else None
            result = Job(
                self.archive, path, self.recorder, self.args.lean, not self.args.no_compress, following=following
            ).run()
            self.report(result)
            if remove or self.args.remove:
                self.remove(path, result, before, closed or writer is False)
            return True
        except Refused as e:
            self.complain(e)
        except (OSError, pa.ArrowException) as e:
            if no_space(e):
                added = "it will be once there is space" if self.archive.unfinished() else "nothing of it was added"
                self.complain(
                    f"cannot ingest '{path}': no space is left in {self.archive.path}; {added}; "
                    "give it space: ringtap archive prune --keep SIZE"
                )
            else:
                self.complain(f"cannot ingest '{path}': {e}; nothing of it was added")
        return False

    def complain(self, text: str | Lost | Refused) -> None:
        self.failed += 1
        show.warn(text)

    def report(self, result: dict) -> None:
        if self.args.json:
            document.write("ingest", result)
        elif not self.args.quiet:
            show.say(describe(result))


def _allow_files():
    """A part's tables stay open until the digest of its recording is known: three files an hour."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(args: Namespace) -> Any:
    ways = bool(args.files) + (args.watch is not None) + (args.follow is not None)
    if ways != 1 and not (args.follow and args.files):
        raise WrongCommandLine("ingest: give FILEs, --watch DIR or --follow APP; see 'ringtap archive ingest --help'")
    if args.duration is not None and not (args.watch or args.follow):
        raise WrongCommandLine("ingest: --duration: it ends --watch and --follow; leave it out")
    # One process, one core: several ingest at once, each on its own.
    pa.set_cpu_count(1)
    keep_memory()
    _allow_files()
    ingester = Ingester(args)
    if args.watch or args.follow:
        from . import watch

        return watch.follow(ingester, args) if args.follow else watch.watch(ingester, args)
    for path, following in itertools.zip_longest(args.files, args.files[1:]):
        ingester.add(Path(path), following=following)
    return 1 if ingester.failed else 0
