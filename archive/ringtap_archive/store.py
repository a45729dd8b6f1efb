# SPDX-License-Identifier: BSD-3-Clause
"""Changes of an archive, each complete or without effect, by several processes, also if one of them is killed.

A change is prepared in a folder of its own below .tmp, under flock of a file there: a folder with a free lock
belongs to no process, and is removed. Then, under flock of .lock, the change writes its renames and removals to
.journal.json, makes them, and removes the journal. A process that finds a journal under the lock completes it
first. Readers take .lock shared while they list parts.

Others may have written an archive: only its owner changes it, a journal names only files of the archive, and
private.Tree opens all names."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from . import layout, private
from .errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import ExitStack
    from typing import Any

    from .layout import Part
    from .private import Tree

JOURNAL = ".journal.json"
JOURNAL_MAX = 1 << 28
READERS = ".readers"
TEMPORARY = ".tmp"
DAMAGED = ".damaged"

# The forms of names that a journal has.
_STAGED = re.compile(rf"{re.escape(TEMPORARY)}/\d+-[0-9a-f]{{12}}/{layout.FILE}", re.ASCII)
_PART = re.compile(rf"{layout.FOLDER}/{layout.FILE}", re.ASCII)
_ASIDE = re.compile(rf"{re.escape(DAMAGED)}/{layout.FOLDER}/{layout.FILE}(\.\d+)?", re.ASCII)


def write_synced(fd: int, data: bytes) -> None:
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def no_space(error: Any) -> bool:
    """Arrow and zstd raise what they like; the system's number is in their text at least."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error)


@contextlib.contextmanager
def flocked(path: Path, how: int, flags: int = os.O_RDWR | os.O_CREAT, mode: int = 0o600) -> Iterator:
    fd = private.open_regular(path, flags, mode)
    try:
        fcntl.flock(fd, how)
        yield fd
    finally:
        os.close(fd)


def read_journal(data: bytes) -> tuple:
    """(renames, removals) of a journal's bytes. ValueError: no process of ringtap writes that."""
    todo = json.loads(data)
    if (
        not isinstance(todo, dict)
        or set(todo) != {"rename", "remove"}
        or not all(isinstance(x, list) for x in todo.values())
    ):
        raise ValueError("not two lists")
    for path in todo["remove"]:
        if not isinstance(path, str) or not _PART.fullmatch(path):
            raise ValueError(f"removes {path!r:.200}")
    for pair in todo["rename"]:
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(isinstance(x, str) for x in pair)
            or not (
                (_STAGED.fullmatch(pair[0]) and _PART.fullmatch(pair[1]))
                or (_PART.fullmatch(pair[0]) and _ASIDE.fullmatch(pair[1]))
            )
        ):
            raise ValueError(f"renames {pair!r:.200}")
    return todo["rename"], todo["remove"]


class Archive:
    """create: makes it if it is missing. group: its group reads what is in it; shared: and changes it. Both stay: .lock has
    the modes of all other files."""

    def __init__(self, path: Path, create: bool = False, group: bool = False, shared: bool = False):
        self.path, self.shared = Path(path), shared
        self._staged = {}  # folder of a change: its name in the archive
        if create:
            self._create(group, shared)
        elif not (self.path / layout.LOCK).exists():
            raise Refused(f"{self.path}: not an archive; 'ringtap archive ingest -A {self.path} FILE' makes one")
        self.tree = private.Tree(self.path)

    def _create(self, group: bool, shared: bool):
        try:
            made = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            if not (self.path / layout.LOCK).exists() and any(self.path.iterdir()):
                # Another process may have made the archive since.
                if not (self.path / layout.LOCK).exists():
                    raise Refused(f"{self.path}: not an archive, and not empty; give another folder")
            self._create_lock(made, group or shared, shared)
        except OSError as e:
            raise Refused(f"cannot make the archive {self.path}: {e.strerror}") from e

    def _create_lock(self, made: bool, group: bool, shared: bool):
        bits = 0o060 if shared else 0o040 if group else 0
        tree = private.Tree(self.path)
        if not tree.exists(layout.LOCK):
            before = stat.S_IMODE(os.fstat(tree.fd).st_mode)
            if made or group:
                os.fchmod(tree.fd, before & ~(0o077 if made else 0) | bits | (0o010 if bits else 0))
            with contextlib.suppress(FileExistsError):
                fd = tree.open(layout.LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL)
                os.fchmod(fd, 0o600 | bits)
                os.close(fd)
                return
        if bits & ~self._bits(tree):
            raise Refused(
                f"{self.path}: an archive of its owner only; 'chmod -R g+rX,o= {self.path}' opens it to its group"
                f"{', g+rwX to change it' if shared else ''}"
            )

    @staticmethod
    def _bits(tree: Tree):
        """Rights of the group, from .lock. A file that all may read is of an earlier ringtap, and does not count."""
        with tree.folder() as fd:
            mode = os.stat(layout.LOCK, dir_fd=fd, follow_symlinks=False).st_mode
        return 0 if mode & 0o007 else mode & 0o060

    @property
    def group(self) -> bool:
        """Whether the archive's group may read its files."""
        return bool(self._bits(self.tree))

    @property
    def _folder_mode(self):
        bits = self._bits(self.tree)
        return 0o700 | bits | (0o010 if bits else 0)

    @property
    def _lock_mode(self):
        return 0o600 | self._bits(self.tree)

    # ---- locks

    def _own(self):
        """Whether this user may change it. Root may not either: it would execute another user's journal with its own rights."""
        status = os.fstat(self.tree.fd)
        return self.shared or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)

    def _check_own(self):
        if not self._own():
            raise Refused(
                f"{self.path}: belongs to another user, or others may write to it; change it as its owner, or with "
                "--shared if its users trust each other"
            )
        self.tree.owner = None if self.shared else os.geteuid()

    @contextlib.contextmanager
    def _flocked(self, name: str, how: int):
        self._check_own()
        try:
            fd = self.tree.open(name, os.O_RDWR)
        except FileNotFoundError:
            fd = self.tree.open(name, os.O_RDWR | os.O_CREAT)
            os.fchmod(fd, self._lock_mode)
        except PermissionError as e:
            raise Refused(f"{self.path}: {e.strerror}; its files belong to another user") from e
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def locked(self) -> Iterator:
        """For a change. What a killed process has left of its own is completed or removed first."""
        with self._flocked(layout.LOCK, fcntl.LOCK_EX):
            self._complete()
            yield self

    @contextlib.contextmanager
    def listing(self) -> Iterator:
        """While parts are listed: each change is there wholly or not at all."""
        with flocked(self.path / layout.LOCK, fcntl.LOCK_SH, os.O_RDONLY):
            if not self.unfinished():
                yield self
                return
        try:
            with self.locked():
                pass
        except (Refused, OSError) as e:
            raise Refused(
                f"{self.path}: a change of it was interrupted, and cannot be completed ({e}); run "
                "ringtap archive verify --repair as its owner"
            ) from e
        with self.listing():
            yield self

    def unfinished(self) -> bool:
        """Whether a change has to be completed."""
        return self.tree.exists(JOURNAL)

    def parts(self, **window) -> list[Part] | None:
        """As layout.list_parts()."""
        with self.listing():
            return layout.list_parts(self.path, **window)

    @contextlib.contextmanager
    def reading(self) -> Iterator:
        """While files of parts are read: prune and compact remove them only after this."""
        with contextlib.ExitStack() as stack:
            self._lock_shared(stack)
            yield self

    def _lock_shared(self, stack: ExitStack):
        """Also works without the right to write. A read-only archive without the file has no lock. In the archive of another user
        no file is made, because that user could not open it."""
        for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT) if self._own() else (os.O_RDONLY,):
            try:
                stack.enter_context(flocked(self.path / READERS, fcntl.LOCK_SH, flags, self._lock_mode))
                return
            except FileNotFoundError:
                continue
            except OSError as e:
                if e.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                return

    @contextlib.contextmanager
    def removing(self) -> Iterator:
        """As locked(), once no reader is left. In this order: a reader lists parts while it is one."""
        with self._flocked(READERS, fcntl.LOCK_EX), self.locked():
            yield self

    def make_room(self) -> int:
        """Removes the oldest parts that the journal does not name, until an interrupted change can be completed: a full disk may
        have stopped it after its journal was written, since a new name in a folder can need a block. Returns their number."""
        removed = 0
        with self._flocked(READERS, fcntl.LOCK_EX), self._flocked(layout.LOCK, fcntl.LOCK_EX):
            while True:
                try:
                    self._complete()
                    return removed
                except OSError as e:
                    if not no_space(e) or not self._remove_oldest():
                        raise
                    removed += 1

    def _remove_oldest(self):
        """False: there is none."""
        renames, removals = self._journal()
        named = {*removals, *(target for _, target in renames)}
        parts = [
            part for part in layout.list_parts(self.path) if not named.intersection(map(self._relative, part.files()))
        ]
        self.remove(min(parts, key=lambda part: part.last_ns).files() if parts else ())
        return bool(parts)

    def remove(self, paths: list[Path]) -> None:
        """Under removing(). Files of parts, without a journal."""
        for path in paths:
            self.tree.unlink(self._relative(path))

    # ---- changes

    @contextlib.contextmanager
    def staging(self) -> Iterator:
        """A folder in the archive's file system for files to come; it is removed at the end. Its path is that of a descriptor:
        no other process can put another folder there."""
        with contextlib.ExitStack() as stack:
            with self.locked(), self.tree.folder(TEMPORARY, self._folder_mode) as parent:
                self._remove_abandoned(parent)
                name = f"{os.getpid()}-{os.urandom(6).hex()}"
                folder = stack.enter_context(self.tree.folder(f"{TEMPORARY}/{name}", self._folder_mode))
                lock = private.open_regular("lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, dir_fd=folder)
                stack.callback(os.close, lock)
                fcntl.flock(lock, fcntl.LOCK_EX)
            path = Path(f"/proc/self/fd/{folder}")
            self._staged[path] = f"{TEMPORARY}/{name}"
            try:
                yield path
            finally:
                del self._staged[path]
                # What a journal names may be here still, after an error of the disk.
                if not self.unfinished():
                    with self.tree.folder(TEMPORARY) as parent:
                        shutil.rmtree(name, ignore_errors=True, dir_fd=parent)

    def _remove_abandoned(self, parent: int):
        """parent: a descriptor of the folder of all changes. Returns how many were removed."""
        removed = 0
        for name in os.listdir(parent):
            try:
                with contextlib.ExitStack() as stack:
                    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | private.SAFE, dir_fd=parent)
                    stack.callback(os.close, folder)
                    with contextlib.suppress(FileNotFoundError):
                        lock = private.open_regular("lock", os.O_RDWR, dir_fd=folder)
                        stack.callback(os.close, lock)
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(name, ignore_errors=True, dir_fd=parent)
                    removed += 1
            except (BlockingIOError, PermissionError):
                pass
            except NotADirectoryError:
                os.unlink(name, dir_fd=parent)
        return removed

    def _relative(self, path: Path):
        path = Path(path)
        if path.parent in self._staged:
            return f"{self._staged[path.parent]}/{path.name}"
        return str(path.relative_to(self.path))

    def apply(self, renames: list[tuple], removals: list[Path] | tuple = (), late: list | tuple = ()) -> None:
        """Under locked(), with removals under removing(). renames: (from, to) pairs, in this order; late:
        metas of parts with packets of other hours. Paths are in the archive; nothing is overwritten."""
        journal = {
            "rename": [[self._relative(a), self._relative(b)] for a, b in renames],
            "remove": [self._relative(path) for path in removals],
        }
        data = json.dumps(journal).encode()
        if len(data) > JOURNAL_MAX:
            raise Refused(f"{self.path}: {len(renames) + len(removals)} files are too many for one change")
        for _, to in journal["rename"]:
            with self.tree.folder(Path(to).parent, self._folder_mode):
                pass
        for meta in late:
            self._add_late(Path(self._relative(meta)))
        draft = f"{JOURNAL}.new"
        try:
            self.tree.unlink(draft)
            write_synced(self.tree.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), data)
            self.tree.rename(draft, JOURNAL)
        except OSError:
            self.tree.unlink(draft)
            raise
        self.tree.sync()
        self._complete()

    def _add_late(self, meta: Path):
        fd = self.tree.open(Path(meta.parts[0], ".late"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        with os.fdopen(fd, "ab") as file:
            os.fchmod(fd, 0o640 if self.group else 0o600)
            # A line that was cut off by a crash must not swallow this one.
            file.write(f"\n{meta.relative_to(meta.parts[0])}"[: -len(layout.META)].encode() + b"\n")
            file.flush()
            os.fsync(fd)

    def _journal(self):
        """(renames, removals); None: there is none."""
        try:
            return read_journal(self.tree.read(JOURNAL, JOURNAL_MAX))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as e:
            raise Refused(
                f"{self.path / JOURNAL}: damaged ({e}); no process of ringtap writes that; move it away, then run "
                "ringtap archive verify"
            ) from e

    def _complete(self):
        """Makes the changes of the journal; some may be done already."""
        todo = self._journal()
        if todo is None:
            return
        renames, removals = todo
        folders = {str(Path(path).parent) for path in [*removals, *(target for _, target in renames)]}
        for source, target in renames:
            with contextlib.suppress(FileNotFoundError):
                self.tree.rename(source, target)
        for path in removals:
            self.tree.unlink(path)
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                self.tree.sync(folder)
        self.tree.unlink(JOURNAL)
        self.tree.sync()
        for folder in folders if removals else ():
            self._remove_empty(Path(folder))

    def _remove_empty(self, folder: Path):
        """The folders of an hour and its date, as far as they are empty."""
        for path in (folder, folder.parent):
            try:
                self.tree.rmdir(path)
            except OSError:
                return

    def recover(self) -> tuple:
        """Returns the actions: an interrupted change completed; folders of killed processes removed."""
        unfinished = self.unfinished()
        with self.locked():
            try:
                with self.tree.folder(TEMPORARY) as parent:
                    return unfinished, self._remove_abandoned(parent)
            except FileNotFoundError:
                return unfinished, 0
