# SPDX-License-Identifier: BSD-3-Clause
"""Folders and files of an archive, and which of them a window of time needs. docs/archive.md has the
description.

    ARCHIVE/.lock, .readers, .journal.json, .tmp/, .spool/, .damaged/
    ARCHIVE/recorder=NAME/.late
    ARCHIVE/recorder=NAME/date=YYYY-MM-DD/hour=HH/NNNNNN.{pcapng[.zst],packets.parquet,flows.parquet,meta.json}

A part exists when its meta.json does."""

from __future__ import annotations

import contextlib
import datetime as dates
import json
import os
import re
import socket
import stat
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from . import private, shape
from .errors import Refused

if TYPE_CHECKING:
    from typing import Any

FORMAT = 3  # 1 and 2 are read as well: their packets are in the order of the file; flows of 1 lack schema.REASONS
LOCK = ".lock"
HOUR_NS = 3600 * 10**9
META_MAX = 1 << 26  # bytes; 65,536 losses and as many interfaces have less
LATE_MAX = 1 << 24
_NAMES = {"recorder=": r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", "date=": r"\d{4}-\d\d-\d\d", "hour=": r"(?:[01]\d|2[0-3])"}
RECORDER = re.compile(_NAMES["recorder="])
NUMBER = re.compile(r"(\d{6,})\.", re.ASCII)
META = ".meta.json"
# Endings of a part's files, behind its number.
FILES = {"pcapng": (".pcapng", ".pcapng.zst"), "packets": (".packets.parquet",), "flows": (".flows.parquet",)}
# Regular expressions of names: the folder of an hour, and a file in it.
FOLDER = "/".join(prefix + name for prefix, name in _NAMES.items())
FILE = r"\d{6,18}(" + "|".join(re.escape(end) for ends in ((META,), *FILES.values()) for end in ends) + ")"


def recorder_name(text: str | None = None) -> str:
    """A name that a folder may have; that of this host if none is given."""
    name = socket.gethostname() if text is None else text
    if not RECORDER.fullmatch(name):
        raise Refused(f"--recorder {name}: not a name; give letters, digits, '.', '_' and '-' (at most 128)")
    return name


def hour_folder(recorder: str, time_ns: int) -> Path:
    """Relative to the archive. Times beyond what a calendar has are of a broken clock: the last hour."""
    try:
        when = datetime.fromtimestamp(time_ns // 10**9, dates.UTC)
    except (OverflowError, ValueError, OSError):
        when = datetime(9999, 12, 31, 23, tzinfo=dates.UTC)
    return Path(f"recorder={recorder}", f"date={when:%Y-%m-%d}", f"hour={when:%H}")


def hour_of(folder: Path) -> int:
    """The first nanosecond of a folder's hour."""
    when = datetime.fromisoformat(f"{folder.parent.name[5:]}T{folder.name[5:]}:00+00:00")
    return int(when.timestamp()) * 10**9


def loss_times(meta: dict) -> list[int]:
    """Losses from statistics are later than the last packet."""
    return [loss["time_ns"] for loss in meta.get("losses") or () if loss.get("time_ns") is not None]


@dataclass
class Part:
    folder: Path
    number: str  # the digits of its files' names
    meta: dict = field(repr=False)

    def path(self, suffix: str) -> Path:
        return self.folder / f"{self.number}{suffix}"

    @property
    def meta_path(self) -> Path:
        return self.path(META)

    @property
    def pcapng(self) -> Path:
        return self.folder / self.meta["pcapng"]["file"]

    @property
    def packets(self) -> Path:
        return self.folder / self.meta["packets"]["file"]

    @property
    def flows(self) -> Path:
        return self.folder / self.meta["flows"]["file"]

    @property
    def recorder(self) -> str:
        """As the folder has it: SQL takes it from there, and folders are renamed."""
        return self.folder.parents[1].name.removeprefix("recorder=")

    @property
    def first_ns(self) -> int:
        return self.meta["first_ns"]

    @property
    def last_ns(self) -> int:
        return self.meta["last_ns"]

    @property
    def name(self) -> str:
        """Relative to the archive, for messages."""
        return str(Path(*self.folder.parts[-3:], self.number))

    @property
    def sources(self) -> list[dict]:
        """More than one after compact."""
        return self.meta.get("sources") or [self.meta["source"]]

    @property
    def has_reasons(self) -> bool:
        return self.meta["format"] >= 2

    @property
    def by_flow(self) -> bool:
        """Whether packets are sorted by flow."""
        return self.meta["format"] >= 3

    def files(self) -> list[Path]:
        """All of the part, meta.json first: without it, the others are no part."""
        return [self.meta_path, self.pcapng, self.packets, self.flows]

    def stored(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.files() if path.exists())

    def overlaps(self, since: int | None, until: int | None) -> bool:
        """until is outside of the window."""
        times = [self.first_ns, self.last_ns, *loss_times(self.meta)]
        return (since is None or max(times) >= since) and (until is None or min(times) < until)


class BadMeta(Refused):
    """A meta.json that cannot be read."""


def check_meta(meta: dict, number: str) -> None:
    """ValueError: no process of ringtap writes that."""
    shape.check(meta, shape.META, "")
    # prune removes what it names.
    for key, suffixes in FILES.items():
        if meta[key]["file"] not in [number + suffix for suffix in suffixes]:
            raise ValueError(f"{key}: no file of this part")


def read_part(meta_path: Path) -> Part | None:
    """None: it was removed in the meantime. All that is in it may be another user's."""
    number = meta_path.name[: -len(META)]
    try:
        meta = json.loads(private.read(meta_path, META_MAX))
        if isinstance(meta, dict) and meta.get("format", FORMAT) not in range(1, FORMAT + 1):
            raise Refused(
                f"{meta_path}: format {str(meta['format'])[:20]}, of another version of ringtap; this one reads "
                f"1 to {FORMAT}; use that version"
            )
        check_meta(meta, number)
        part = Part(meta_path.parent, number, meta)
        for path in part.files():
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    raise ValueError(f"{path.name}: not a regular file")
        return part
    except FileNotFoundError:
        return None
    except PermissionError as e:
        raise BadMeta(
            f"{meta_path}: {e.strerror}; its owner may open the archive to a group: chmod -R g+rX,o= "
            f"{meta_path.parents[3]}"
        ) from e
    except (ValueError, RecursionError, OSError) as e:
        raise BadMeta(f"{meta_path}: unreadable ({type(e).__name__}: {e}); run ringtap archive verify --repair") from e


def _named(prefix: str, value: str):
    """Whether a folder of an archive may have this name."""
    if not re.fullmatch(_NAMES[prefix], value, re.ASCII):
        return False
    with contextlib.suppress(ValueError):
        return prefix != "date=" or bool(dates.date.fromisoformat(value))
    return False


def _entries(folder: Path, prefix: str):
    """Values of the folders prefix=VALUE, sorted. Refuses links: prune would remove files outside of the archive."""
    try:
        with os.scandir(folder) as found:
            entries = [e for e in found if e.name.startswith(prefix) and not e.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    for entry in entries:
        if entry.is_symlink() or not _named(prefix, entry.name[len(prefix) :]):
            raise Refused(f"{folder / entry.name}: a link, or a name that no archive has; move it out of the archive")
    return sorted(entry.name[len(prefix) :] for entry in entries)


def _folders(root: Path, since: int | None, until: int | None):
    """Folders of one recorder that have hours of the window."""
    first = hour_folder("", since).parts[1:] if since is not None else None
    last = hour_folder("", until).parts[1:] if until is not None else None
    for date in _entries(root, "date="):
        name = f"date={date}"
        if (first and name < first[0]) or (last and name > last[0]):
            continue
        for hour in _entries(root / name, "hour="):
            at = (name, f"hour={hour}")
            if (not first or at >= first) and (not last or at <= last):
                yield root.joinpath(*at)


def metas_of(folder: Path) -> list[Path]:
    try:
        return sorted(
            folder / name
            for name in os.listdir(folder)
            if (found := NUMBER.match(name)) and name[found.end() - 1 :] == META
        )
    except FileNotFoundError:
        return []


def late_metas(root: Path) -> list[Path]:
    """meta.json files of parts with packets of other hours than their folder's: each window includes them."""
    try:
        lines = private.read(root / ".late", LATE_MAX).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    form = re.compile(r"date=\d{4}-\d\d-\d\d/hour=\d\d/\d{6,18}", re.ASCII)
    return [root / f"{line}{META}" for line in dict.fromkeys(lines) if form.fullmatch(line)]


def recorders_of(archive: Path) -> list[str]:
    return _entries(archive, "recorder=")


def list_parts(
    archive: Any, since: int | None = None, until: int | None = None, recorders: Any = None, damaged: Any = None
) -> list[Part] | None:
    """Parts with packets from since up to until [ns], in the order of their first packets. damaged: a
    list that gets the errors of metas which cannot be read; without it, the first one is raised."""
    parts = []
    for recorder in recorders_of(archive):
        if recorders is not None and recorder not in recorders:
            continue
        root = archive / f"recorder={recorder}"
        paths = [path for folder in _folders(root, since, until) for path in metas_of(folder)]
        if since is not None or until is not None:
            paths = dict.fromkeys([*paths, *late_metas(root)])
        for path in paths:
            try:
                part = read_part(path)
            except BadMeta as e:
                if damaged is None:
                    raise
                damaged.append((path, e))
                continue
            if part and part.overlaps(since, until):
                parts.append(part)
    return sorted(parts, key=lambda part: (part.first_ns, part.name))


def next_number(archive: Path, folder: Path) -> str:
    """Beyond all numbers of the folder, so that a query which runs meets no other part's files."""
    try:
        names = os.listdir(archive / folder)
    except FileNotFoundError:
        names = []
    used = [int(found[1]) for found in map(NUMBER.match, names) if found]
    return f"{max(used, default=0) + 1:06d}"
