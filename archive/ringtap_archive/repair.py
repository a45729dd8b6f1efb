# SPDX-License-Identifier: BSD-3-Clause
"""Rebuilds a damaged part from its packets. .damaged keeps replaced damaged files."""

from __future__ import annotations

import contextlib
import os
import re
import struct
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from . import frames, index, ingest, layout, private
from .errors import Lost, Refused
from .store import DAMAGED

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, BinaryIO

    from .layout import Part
    from .store import Archive
    from .verify import Found

SECTION, INTERFACE = 0x0A0D0D0A, 1
_FILE = re.compile(layout.FILE, re.ASCII)
BYTE_ORDER = 0x1A2B3C4D


def _block(kind: int, body: bytes):
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def _option(code: int, value: Any):
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _interface(meta: dict):
    """tsresol and tsoffset count for the times; names are for people."""
    options = b"".join(
        _option(code, meta[key].encode()) for code, key in ((2, "name"), (3, "description")) if meta.get(key)
    )
    options += _option(9, bytes([meta["tsresol"]]))
    if meta.get("tsoffset"):
        options += _option(14, struct.pack("<q", meta["tsoffset"]))
    return _block(INTERFACE, struct.pack("<HHI", meta["linktype"], 0, meta["snaplen"]) + options + bytes(4))


def _header(part: Part):
    """Instead of a first frame that is lost, of meta.json; None: it is lost as well."""
    if not part or not part.meta.get("interfaces"):
        return None
    return _block(SECTION, struct.pack("<IHHq", BYTE_ORDER, 1, 0, -1)) + b"".join(
        map(_interface, sorted(part.meta["interfaces"], key=lambda one: one["index"]))
    )


def _begins_section(data: bytes):
    return data[:4] == struct.pack("<I", SECTION)


def salvage(source: Path, out: BinaryIO, part: Part | None) -> str | None:
    """Writes the undamaged part of a pcapng[.zst] to a file. Returns the loss as a text, or None."""
    if source.suffix != ".zst":
        with os.fdopen(private.open_regular(source), "rb") as file:
            while data := file.read(1 << 20):
                out.write(data)
        return None
    if not source.stat().st_size:
        raise Lost("no frame of it is whole")
    lost, places, first = 0, 0, True
    for content, skipped in frames.scan(source):
        if content is None:
            lost += skipped
            places += 1
            continue
        if first and not _begins_section(content):
            header = _header(part)
            if header is None:
                raise Lost("its first frame and its meta.json are lost, and with them its interfaces")
            out.write(header)
        out.write(content)
        first = False
    if first:
        raise Lost("no frame of it is whole")
    return f"{lost} bytes damaged in {places} place{'s'[: places != 1]}" if places else None


class Gone(Exception):
    """Another process has removed, joined or repaired the part."""


def _stem(archive: Archive, found: Found):
    folder, _, number = found.name.rpartition("/")
    return archive.path / folder, number


def _files(folder: Path, number: str):
    try:
        return sorted(
            path for path in folder.iterdir() if path.name.startswith(f"{number}.") and _FILE.fullmatch(path.name)
        )
    except FileNotFoundError:
        return []


def _check_there(found: Found, folder: Path, number: str, files: list[Path]):
    """Under a lock. The number may be that of another part by now, if all of the hour were removed."""
    try:
        part = layout.read_part(folder / f"{number}{layout.META}")
    except layout.BadMeta as e:
        if isinstance(e.__cause__, OSError):
            raise  # it may be whole
        part = None
    if not files or files != _files(folder, number) or (part and part.meta) != (found.part and found.part.meta):
        raise Gone


def _rows(path: Path):
    try:
        return pq.read_metadata(path).num_rows
    except Exception:
        return None


def _origin(found: Found, packets: Path, pcapng: Path, lost: str | None):
    """The source for the new meta.json, from the old one or the index."""
    if found.part:
        origin = {key: found.part.meta[key] for key in ("source", "sources") if found.part.meta[key]}
    else:
        origin = index.source_of(packets) or {"source": {"name": pcapng.name}}
    if lost:
        before = origin["source"].get("salvaged")
        origin["source"] = {**origin["source"], "salvaged": f"{before}; {lost}" if before else lost}
    return origin


def _lean(found: Found, packets: Path):
    if found.part:
        return found.part.meta["lean"]
    with contextlib.suppress(Exception):  # a damaged file
        file = pq.ParquetFile(packets)
        return all(
            file.metadata.row_group(i).column(file.schema_arrow.get_field_index("ip_id")).statistics.null_count
            == file.metadata.row_group(i).num_rows
            for i in range(file.num_row_groups)
        )
    return False


def _keep(found: Found, metas: list[dict]):
    """Losses and the state of the clock of the old meta.json: statistics cover all packets of the recording, and the part
    may be one hour of it."""
    old = found.part.meta if found.part else {}
    if old.get("clock") and len(metas) == 1:
        metas[0]["clock"] = old["clock"]
    if "losses" in old and len(metas) == 1 and len(metas[0]["interfaces"]) == len(old.get("interfaces", ())):
        metas[0].update(losses=old["losses"], losses_beyond=old.get("losses_beyond", 0))


def _set_aside(archive: Archive, path: Path):
    """Path for a damaged file; with a number if the name is in use."""
    target = archive.path / DAMAGED / path.relative_to(archive.path)
    count = 0
    while target.exists():
        count += 1
        target = target.with_name(f"{path.name}.{count}")
    return path, target


def repair(archive: Archive, found: Found) -> bool:
    """Sets outcome and lost; False: the part is gone. Files go to .damaged only if their data are bad: what
    else fails, such as memory, space or permissions, is a problem, and they stay."""
    folder, number = _stem(archive, found)
    files = []
    try:
        with archive.listing():
            files += _files(folder, number)
            _check_there(found, folder, number, files)
        _repair(archive, found, files)
    except Gone:
        return False
    except (Refused, OSError, MemoryError, pa.ArrowException) as e:
        if isinstance(e, FileNotFoundError) and files != _files(folder, number):
            return False  # while it was read
        found.problems["repair"] = str(e) or "no memory"
    return True


def _repair(archive: Archive, found: Found, files: list[Path]):
    folder, number = _stem(archive, found)
    pcapng = next((path for path in files if path.name.endswith((".pcapng", ".pcapng.zst"))), None)
    packets = folder / f"{number}.packets.parquet"
    had = found.part.meta["packets"]["rows"] if found.part else _rows(packets)
    try:
        if pcapng is None:
            raise Lost("its packets are lost")
        rows, lost = _replace(archive, found, files, pcapng, packets, had)
        found.lost = max(0, had - rows) if had is not None else None if lost else 0
        what = "an unknown number of" if found.lost is None else found.lost
        found.outcome = (
            f"made again from {rows} packets; {f'{lost}, ' if lost else ''}{what} packets lost"
            if lost or found.lost
            else f"made again from {'' if had is None else 'all '}{rows} packets"
        )
    except Lost as e:
        with archive.removing():
            _check_there(found, folder, number, files)
            archive.apply([_set_aside(archive, path) for path in files])
        found.lost = had
        found.outcome = f"moved to {DAMAGED}: {e}; {'all' if had is None else had} packets lost"


def _replace(archive: Archive, found: Found, files: list[Path], pcapng: Path, packets: Path, had: int | None):
    recorder = pcapng.parents[2].name.removeprefix("recorder=")
    ends = {"pcapng": pcapng.suffix, "packets": ".packets.parquet", "flows": ".flows.parquet", "meta": layout.META}
    with archive.staging() as staging:
        plain = staging / "salvaged.pcapng"
        with os.fdopen(private.create(plain, new=True), "wb") as out:
            lost = salvage(pcapng, out, found.part)
        job = ingest.Job(
            archive,
            plain,
            recorder,
            _lean(found, packets),
            pcapng.suffix == ".zst",
            _origin(found, packets, pcapng, lost),
        )
        job.prepare(staging)
        if job.torn:
            lost = f"{lost}; {job.torn}" if lost else job.torn
        if not job.metas:
            raise Lost("no packet of it is whole")
        _keep(found, job.metas)
        rows = sum(meta["packets"]["rows"] for meta in job.metas)
        bad = {what for what in ends if found.problems[what]}
        if lost or had is None or rows < had:
            bad.add("pcapng")  # whatever has been found before: there may be more in it
        damaged = tuple(ends[what] for what in bad)
        with archive.removing():
            _check_there(found, *_stem(archive, found), files)
            aside = [_set_aside(archive, path) for path in files if path.name.endswith(damaged)]
            kept = {path for path, _ in aside}
            job.publish(staging, [path for path in files if path not in kept], aside)
        return rows, lost
