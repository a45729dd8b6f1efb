# SPDX-License-Identifier: BSD-3-Clause
"""The bytes of a recording on their way into an archive: read once and digested, written as frames."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from . import frames, index
from .errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from .decoder import Decoder

READ = 1 << 20


class Frames:
    """The pcapng of a part, cut at blocks into frames as they are read; whole where it is not compressed."""

    def __init__(self, path: Path, compress: bool, group: bool):
        self.file = index.Digested(path, digest=compress, group=group)
        self.writer = frames.Writer(self.file) if compress else None
        self.bytes = 0

    def add(self, data: memoryview) -> None:
        self.bytes += len(data)
        if self.writer:
            self.writer.frame(data)
        else:
            self.file.write(data)

    def finish(self) -> None:
        if self.writer:
            self.writer.finish()
        self.file.finish()

    def meta(self) -> dict:
        return {
            "file": self.file.path.name,
            "bytes": self.file.bytes,
            "sha256": self.file.digest.hexdigest() if self.writer else None,
            "uncompressed": self.bytes,
            "frames": len(self.writer.sizes) if self.writer else 0,
        }


class Bytes:
    """The source's bytes from front to back: read once, digested, and handed on in pieces. Not mapped: a
    file that becomes shorter must not end the program."""

    def __init__(self, source: Decoder):
        self._source = source
        self.at = 0
        self.digest = hashlib.sha256()
        self._buffer = bytearray(2 * READ)

    def take(self, end: int, before: bytes = b"") -> memoryview:
        """Bytes up to an offset, with others in front of them; valid until the next call."""
        head, size = len(before), end - self.at
        if head + size > len(self._buffer):
            self._buffer = bytearray(head + size)
        data = memoryview(self._buffer)[: head + size]
        data[:head] = before
        done = head
        while done < len(data):
            count = self._source.readinto(self.at, data[done:])
            if not count:
                raise Refused(f"{self._source.path}: became shorter while it was read; ingest it once it is complete")
            self.at += count
            done += count
        self.digest.update(data[head:])
        return data

    def rest(self) -> str:
        """To the end; returns the digest of all."""
        while count := self._source.readinto(self.at, self._buffer):
            self.digest.update(memoryview(self._buffer)[:count])
            self.at += count
        return self.digest.hexdigest()
