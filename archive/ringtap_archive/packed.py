# SPDX-License-Identifier: BSD-3-Clause
"""Compressed recordings, known by their first bytes: a recorder's --compress, gzip, or programs that rotate files, with
whatever suffix."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

import lz4.frame
import zstandard

from .frames import WINDOW_MAX

if TYPE_CHECKING:
    from typing import Any, BinaryIO

# A file of zstd may begin with a skippable frame: RFC 8878, section 3.1.2. LZ4: the frame format, section "Magic Number".
_ZSTD, _LZ4, _GZIP = b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\x1f\x8b"
ERRORS = (zstandard.ZstdError, zlib.error, EOFError, gzip.BadGzipFile, RuntimeError)  # RuntimeError: of lz4


def opened(file: BinaryIO) -> Any:
    """A reader of the uncompressed data of a binary file at its beginning; None: it is not compressed."""
    magic = file.read(4)
    file.seek(0)
    if magic == _ZSTD or (magic[1:] == b"\x2a\x4d\x18" and 0x50 <= magic[0] <= 0x5F):
        return zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX).stream_reader(file, read_across_frames=True)
    if magic == _LZ4:
        return lz4.frame.LZ4FrameFile(file, mode="rb")
    if magic.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file)
    return None
