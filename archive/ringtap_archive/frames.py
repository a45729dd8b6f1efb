# SPDX-License-Identifier: BSD-3-Clause
"""Files in the Zstandard seekable format (contrib/seekable_format of zstd): frames that are decompressed
one by one, and a table of their sizes at the end, in a frame that other programs skip: `zstd -d` reads
the file as any other. Each frame ends in a checksum of its content."""

from __future__ import annotations

import bisect
import itertools
import mmap
import os
import struct
from typing import TYPE_CHECKING

import zstandard

from . import private
from .errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from .index import Digested

FRAME = 1 << 20  # uncompressed, at least, but for the last one
LEVEL = 1
SKIPPABLE = 0x184D2A5E
MAGIC = 0x8F92EAB1
ENTRY = struct.Struct("<II")  # compressed, uncompressed
HEAD = struct.Struct("<II")  # magic, bytes of the content
FOOT = struct.Struct("<IBI")  # number of frames, descriptor, magic
CHECKSUMS = 0x80  # descriptor: entries have four bytes more
FRAME_MAX = (
    128 << 20
)  # uncompressed: a section's header and interfaces, which have at most 64 MiB, and a block of 16 MiB
WINDOW_MAX = 1 << 27  # as zstd -d
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
SCAN_READ = 1 << 10  # compressed; 32 MiB at most when uncompressed


class Corrupt(Refused):
    """The file is damaged."""


class Writer:
    """Writes to a file object that counts and digests, if the caller asks for it."""

    def __init__(self, file: Digested, level: int = LEVEL):
        self.file = file
        self.sizes = []
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=True)

    def frame(self, data: memoryview) -> None:
        """data: whole blocks."""
        packed = self._compressor.compress(data)
        self.file.write(packed)
        self.sizes.append((len(packed), len(data)))

    def finish(self) -> None:
        table = b"".join(itertools.starmap(ENTRY.pack, self.sizes)) + FOOT.pack(len(self.sizes), 0, MAGIC)
        self.file.write(HEAD.pack(SKIPPABLE, len(table)) + table)


class Plain:
    """A file that is not compressed, read as Reader reads those that are."""

    def __init__(self, path: Path):
        self.path = path
        self.fd = private.open_regular(path)
        self.size = os.fstat(self.fd).st_size

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self.fd, size, offset)

    def pieces(self) -> Iterator:
        return ((at, os.pread(self.fd, FRAME, at)) for at in range(0, self.size, FRAME))

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        self.close()


class Reader(Plain):
    """Reads at offsets of the uncompressed data, for the cost of the frame that has it. The last frame
    is kept: packets that are near each other cost it once."""

    def __init__(self, path: Path):
        super().__init__(path)
        try:
            self._table()
        except BaseException:
            self.close()
            raise
        self.size = self.offsets[-1]
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX)
        self._kept = None, b""

    def corrupt(self, text: str) -> Corrupt:
        return Corrupt(f"{self.path}: {text}; run ringtap archive verify --repair")

    def _table(self):
        foot = os.pread(self.fd, FOOT.size, max(0, self.size - FOOT.size))
        if len(foot) < FOOT.size:
            raise self.corrupt("too short for a seek table")
        count, descriptor, magic = FOOT.unpack(foot)
        entry = ENTRY.size + (4 if descriptor & CHECKSUMS else 0)
        size = count * entry + FOOT.size
        if magic != MAGIC or size + HEAD.size > self.size:
            raise self.corrupt("no seek table at its end")
        table = os.pread(self.fd, size + HEAD.size, self.size - size - HEAD.size)
        if HEAD.unpack_from(table) != (SKIPPABLE, size):
            raise self.corrupt("its seek table is damaged")
        sizes = [ENTRY.unpack_from(table, HEAD.size + i * entry) for i in range(count)]
        self.places = [0, *itertools.accumulate(packed for packed, _ in sizes)]
        self.offsets = [0, *itertools.accumulate(plain for _, plain in sizes)]
        if self.places[-1] != self.size - size - HEAD.size:
            raise self.corrupt("its seek table is not of this file")

    def frames(self) -> int:
        return len(self.places) - 1

    def frame(self, index: int) -> bytes:
        """The content of a frame. Raises Corrupt."""
        if self._kept[0] != index:
            begin, end = self.places[index : index + 2]
            plain = self.offsets[index + 1] - self.offsets[index]
            # Sizes are claims: memory is not taken for more than a frame can have.
            if max(plain, end - begin) > FRAME_MAX:
                raise self.corrupt(f"frame {index} has more than {FRAME_MAX} bytes")
            packed = os.pread(self.fd, end - begin, begin)
            try:
                if zstandard.frame_content_size(packed) != plain:
                    raise self.corrupt(f"frame {index} is not of the size in the seek table")
                data = self._decompressor.decompress(packed)
            except zstandard.ZstdError as e:
                raise self.corrupt(f"frame {index} (bytes {begin} to {end}) is damaged: {e}") from e
            self._kept = index, data
        return self._kept[1]

    def packed(self, index: int) -> Any:
        """The stored frame."""
        begin, end = self.places[index : index + 2]
        return os.pread(self.fd, end - begin, begin)

    def read(self, offset: int, size: int) -> bytes:
        found = []
        while size > 0 and 0 <= offset < self.size:
            index = bisect.bisect_right(self.offsets, offset) - 1
            piece = self.frame(index)[offset - self.offsets[index] :][:size]
            found.append(piece)
            offset += len(piece)
            size -= len(piece)
        return found[0] if len(found) == 1 else b"".join(found)

    def pieces(self) -> Iterator:
        return ((self.offsets[i], self.frame(i)) for i in range(self.frames()))


def open_file(path: Path) -> Plain | Reader:
    return Reader(path) if str(path).endswith(".zst") else Plain(path)


def scan(path: Path) -> Iterator:
    """The contents of all frames that are whole, in order, without the seek table: for files that are
    damaged. Between frames stands how many bytes were skipped: (content or None, skipped)."""
    with os.fdopen(private.open_regular(path), "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        at, skipped = 0, 0
        while at < len(data):
            content, used = _frame_at(data, at)
            if used:
                if skipped:
                    yield None, skipped
                if content is not None:
                    yield content, 0
                at, skipped = at + used, 0
                continue
            found = data.find(ZSTD_MAGIC, at + 1)
            skipped += (found if found >= 0 else len(data)) - at
            at = found if found >= 0 else len(data)
        if skipped:
            yield None, skipped


def _frame_at(data: Any, at: int):
    """Content and stored size of the frame; (None, size) of a frame to skip; (None, 0): none is here."""
    if len(data) - at >= HEAD.size:
        magic, size = HEAD.unpack_from(data, at)
        if magic & ~0xF == SKIPPABLE & ~0xF and at + HEAD.size + size <= len(data):
            return None, HEAD.size + size
    if data[at : at + 4] != ZSTD_MAGIC:
        return None, 0
    content, size, end = [], 0, at
    one = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX).decompressobj()
    try:
        while not one.eof and size <= FRAME_MAX and end < len(data):
            content.append(one.decompress(data[end : end + SCAN_READ]))
            size += len(content[-1])
            end = min(end + SCAN_READ, len(data))
    except zstandard.ZstdError:
        return None, 0
    return (b"".join(content), end - at - len(one.unused_data)) if one.eof and size <= FRAME_MAX else (None, 0)
