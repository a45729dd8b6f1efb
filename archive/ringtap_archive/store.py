# SPDX-License-Identifier: BSD-3-Clause
"""Changes of an archive that are made wholly or not at all, by several processes at once, whenever one
of them is killed.

A change is prepared in a folder of its own below .tmp, under flock of a file there: a folder
with a lock that can be had belongs to no process, and is removed. Then, under flock of .lock, the renames and
removals that it takes are written to .journal.json, made, and the journal is removed. A process that
finds a journal under the lock completes it first. Readers take .lock shared while they list parts."""
import contextlib
import errno
import fcntl
import json
import os
import shutil
from pathlib import Path

from . import layout
from .errors import Refused

JOURNAL = ".journal.json"
READERS = ".readers"
TEMPORARY = ".tmp"


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_synced(path, data):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def no_space(error):
    """Arrow and zstd raise what they like; the system's number is in their text at least."""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left on device" in str(error)


@contextlib.contextmanager
def flocked(path, how, flags=os.O_RDWR | os.O_CREAT):
    fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, how)
        yield fd
    finally:
        os.close(fd)


class Archive:
    def __init__(self, path, create=False):
        self.path = Path(path)
        if create:
            self._create()
        elif not (self.path / layout.LOCK).exists():
            raise Refused(f"{self.path}: not an archive; 'ringtap archive ingest -d {self.path} FILE' makes one")

    def _create(self):
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not (self.path / layout.LOCK).exists() and any(self.path.iterdir()):
                # Another process may have made the archive since.
                if not (self.path / layout.LOCK).exists():
                    raise Refused(f"{self.path}: not an archive, and not empty; give another folder")
            with flocked(self.path / layout.LOCK, fcntl.LOCK_SH):
                pass
        except OSError as e:
            raise Refused(f"cannot make the archive {self.path}: {e.strerror}") from e

    # ---- locks

    @contextlib.contextmanager
    def locked(self):
        """For a change. What a killed process has left of its own is completed or removed first."""
        try:
            with flocked(self.path / layout.LOCK, fcntl.LOCK_EX):
                self._complete()
                yield self
        except PermissionError as e:
            raise Refused(f"{self.path}: {e.strerror}; its files belong to another user") from e

    @contextlib.contextmanager
    def listing(self):
        """While parts are listed: each change is there wholly or not at all."""
        with flocked(self.path / layout.LOCK, fcntl.LOCK_SH, os.O_RDONLY):
            if not self.unfinished():
                yield self
                return
        try:
            with self.locked():
                pass
        except (Refused, OSError) as e:
            raise Refused(f"{self.path}: a change of it was interrupted, and cannot be completed by this user; run "
                          "ringtap archive verify --repair as its owner") from e
        with self.listing():
            yield self

    def unfinished(self):
        """Whether a change has to be completed."""
        return (self.path / JOURNAL).exists()

    def parts(self, **window):
        """As layout.list_parts()."""
        with self.listing():
            return layout.list_parts(self.path, **window)

    @contextlib.contextmanager
    def reading(self):
        """While files of parts are read: prune and compact remove them only after this."""
        with contextlib.ExitStack() as stack:
            self._lock_shared(stack)
            yield self

    def _lock_shared(self, stack):
        """Also for those that may not write; without a file, in an archive that cannot be written to, there is no lock."""
        for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT):
            try:
                stack.enter_context(flocked(self.path / READERS, fcntl.LOCK_SH, flags))
                return
            except FileNotFoundError:
                continue
            except OSError as e:
                if e.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                return

    @contextlib.contextmanager
    def removing(self):
        """As locked(), once no reader is left. In this order: a reader lists parts while it is one."""
        with flocked(self.path / READERS, fcntl.LOCK_EX), self.locked():
            yield self

    def make_room(self):
        """A full disk may have stopped a change after its journal was written: a new name in a folder can need a block.
        Then removes the oldest parts, which the journal does not name, until the change can be completed. Returns how
        many."""
        removed = 0
        with flocked(self.path / READERS, fcntl.LOCK_EX), flocked(self.path / layout.LOCK, fcntl.LOCK_EX):
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
        todo = json.loads((self.path / JOURNAL).read_bytes())
        named = {*todo["remove"], *(target for _, target in todo["rename"])}
        parts = [part for part in layout.list_parts(self.path)
                 if not named.intersection(str(path.relative_to(self.path)) for path in part.files())]
        for path in min(parts, key=lambda part: part.last_ns).files() if parts else ():
            path.unlink(missing_ok=True)
        return bool(parts)

    # ---- changes

    @contextlib.contextmanager
    def staging(self):
        """A folder in the archive's file system for files to come; it is removed at the end."""
        with self.locked():
            self._remove_abandoned()
            folder = self.path / TEMPORARY / f"{os.getpid()}-{os.urandom(6).hex()}"
            folder.mkdir(parents=True)
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        finally:
            # What a journal names may be here still, after an error of the disk.
            if not (self.path / JOURNAL).exists():
                shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)

    def _remove_abandoned(self):
        removed = 0
        for folder in (self.path / TEMPORARY).glob("*"):
            try:
                with flocked(folder / "lock", fcntl.LOCK_EX | fcntl.LOCK_NB):
                    shutil.rmtree(folder, ignore_errors=True)
                    removed += 1
            except BlockingIOError:
                pass
            except (FileNotFoundError, NotADirectoryError):
                shutil.rmtree(folder, ignore_errors=True)
        return removed

    def apply(self, renames, removals=(), late=()):
        """Under locked(), with removals under removing(). renames: (from, to) pairs, in this order; late:
        metas of parts with packets of other hours. Paths are in the archive; nothing is overwritten."""
        def relative(path):
            return str(Path(path).relative_to(self.path))

        for _, to in renames:
            self._make_folders(Path(to).parent)
        for meta in late:
            self._add_late(Path(meta))
        journal = {"rename": [[relative(a), relative(b)] for a, b in renames],
                   "remove": [relative(path) for path in removals]}
        draft = self.path / f"{JOURNAL}.new"
        try:
            write_synced(draft, json.dumps(journal).encode())
            os.rename(draft, self.path / JOURNAL)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        sync(self.path)
        self._complete()

    def _make_folders(self, folder):
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            sync(path.parent)

    def _add_late(self, meta):
        root = meta.parents[2]
        with open(root / ".late", "a+b") as file:
            # A line that was cut off by a crash must not swallow this one.
            file.write(f"\n{meta.relative_to(root)}"[:-len(layout.META)].encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _complete(self):
        """Makes the changes of the journal, of which some may have been made."""
        journal = self.path / JOURNAL
        try:
            todo = json.loads(journal.read_bytes())
        except FileNotFoundError:
            return
        except ValueError as e:
            raise Refused(f"{journal}: damaged ({e}); no process of ringtap writes that; move it away, then run "
                          "ringtap archive verify") from e
        folders = set()
        for source, target in todo["rename"]:
            folders.add((self.path / target).parent)
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.path / source, self.path / target)
        for path in todo["remove"]:
            folders.add((self.path / path).parent)
            (self.path / path).unlink(missing_ok=True)
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                sync(folder)
        journal.unlink()
        sync(self.path)
        for folder in folders if todo["remove"] else ():
            self._remove_empty(folder)

    def _remove_empty(self, folder):
        """The folders of an hour, its date and its recorder, as far as they are empty."""
        for path in (folder, folder.parent):
            try:
                path.rmdir()
            except OSError:
                return

    def recover(self):
        """Returns what was done: an interrupted change completed; folders of killed processes removed."""
        unfinished = (self.path / JOURNAL).exists()
        with self.locked():
            return unfinished, self._remove_abandoned()
