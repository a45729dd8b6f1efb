# SPDX-License-Identifier: BSD-3-Clause
"""Files that hold packets, which nobody else may read, and folders that others may have written.

Files are 0600 and folders 0700, a group's 0640 and 0750, whatever the umask is. Below an archive names are opened
component by component and no link is followed: another user may replace a folder by a link at any moment."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def create(path: str | Path, group: bool = False, new: bool = False, dir_fd: int | None = None) -> int:
    """A descriptor of the file, which is empty. new: it must not exist. A pipe or a device is written to as it is."""
    mode = 0o640 if group else 0o600
    fd = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL | os.O_NOFOLLOW if new else 0), mode, dir_fd=dir_fd
    )
    try:
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            if status.st_uid != os.geteuid():
                raise PermissionError(
                    errno.EPERM, "it belongs to another user; remove it, or give another name", str(path)
                )
            os.fchmod(fd, mode)
            os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_regular(path: str | Path, flags: int = os.O_RDONLY, mode: int = 0o600, dir_fd: int | None = None) -> int:
    """A descriptor of a file; OSError if it is a link, a pipe or a device: those of others may block, or be elsewhere."""
    fd = os.open(path, flags | SAFE, mode, dir_fd=dir_fd)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read(path: Path, most: int, dir_fd: int | None = None) -> bytes:
    """The bytes of a file; OSError if there are more than `most`."""
    with os.fdopen(open_regular(path, dir_fd=dir_fd), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most} bytes", str(path))
    return data


class Tree:
    """A folder by its descriptor, and what is below it. owner: of all that is opened; None: any user."""

    def __init__(self, path: Path):
        self.path, self.owner = Path(path), None
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __del__(self):
        if hasattr(self, "fd"):
            os.close(self.fd)

    def _checked(self, fd: int, path: str | Path):
        if self.owner is None or os.fstat(fd).st_uid == self.owner:
            return fd
        os.close(fd)
        raise Refused(
            f"{self.path / path}: belongs to another user; --shared changes an archive that several users write"
        )

    def _below(self, parent: int, name: str, path: str | Path, make: int | None):
        flags = os.O_RDONLY | os.O_DIRECTORY | SAFE
        if name == "..":
            raise Refused(f"{self.path / path}: leads out of the archive")
        try:
            return os.open(name, flags, dir_fd=parent)
        except FileNotFoundError:
            if make is None:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        fd = os.open(name, flags, dir_fd=parent)
        os.fchmod(fd, make | os.fstat(fd).st_mode & stat.S_ISGID)
        os.fsync(parent)
        return fd

    @contextlib.contextmanager
    def folder(self, path: str | Path = ".", make: int | None = None) -> Iterator:
        """A descriptor of the folder. make: the mode of those that are missing."""
        fd = os.dup(self.fd)
        try:
            for name in Path(path).parts:
                try:
                    below = self._below(fd, name, path, make)
                except OSError as e:
                    if e.errno in (errno.ELOOP, errno.ENOTDIR):
                        raise Refused(f"{self.path / path}: a link, or not a folder; an archive has neither") from e
                    raise
                os.close(fd)
                fd = self._checked(below, path)
            yield fd
        finally:
            os.close(fd)

    def open(self, path: Any, flags: int = os.O_RDONLY, mode: int = 0o600) -> int | None:
        """A descriptor of a file."""
        path = Path(path)
        with self.folder(path.parent) as fd:
            return self._checked(open_regular(path.name, flags, mode, fd), path)

    def read(self, path: str, most: int) -> bytes:
        with os.fdopen(self.open(path), "rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise Refused(f"{self.path / path}: more than {most} bytes")
        return data

    def exists(self, path: str) -> bool:
        with contextlib.suppress(FileNotFoundError), self.folder(Path(path).parent) as fd:
            os.stat(Path(path).name, dir_fd=fd, follow_symlinks=False)
            return True
        return False

    def rename(self, source: str, target: str) -> None:
        with self.folder(Path(source).parent) as here, self.folder(Path(target).parent) as there:
            os.rename(Path(source).name, Path(target).name, src_dir_fd=here, dst_dir_fd=there)

    def unlink(self, path: str) -> None:
        """Also if it is not there."""
        with contextlib.suppress(FileNotFoundError), self.folder(Path(path).parent) as fd:
            os.unlink(Path(path).name, dir_fd=fd)

    def rmdir(self, path: Path) -> None:
        with self.folder(Path(path).parent) as fd:
            os.rmdir(Path(path).name, dir_fd=fd)

    def sync(self, path: str = ".") -> None:
        with self.folder(path) as fd:
            os.fsync(fd)
