# SPDX-License-Identifier: BSD-3-Clause
"""pcapng blocks as `ringtap record` writes them: docs/format.md, and common/pcapng.h."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    from numpy import ndarray

    from .conversations import Packets

ALGORITHM = 5  # epb_hash's: Toeplitz
RX, TX = 1, 2  # epb_flags
FATES = 0x80525446
FATES_BEGIN, FATES_PACKETS, FATES_END = 1, 2, 3
NOT_OFFERED, UNKNOWN, OPEN = 1, 2, 4
FATE = np.dtype(
    [
        ("id", "<u8"),
        ("time_high", "<u4"),
        ("time_low", "<u4"),
        ("interface", "<u4"),
        ("queue", "<u2"),
        ("fate", "u1"),
        ("reserved", "u1"),
    ]
)
FATES_QUEUE = np.dtype(
    [
        ("interface", "<u4"),
        ("queue", "<u2"),
        ("reserved", "<u2"),
        ("received", "<u8"),
        ("offered", "<u8"),
        ("not_offered", "<u8"),
        ("open", "<u8"),
        ("unknown", "<u8"),
        ("likely", "<u8"),
        ("lost", "<u8"),
    ]
)
FATES_MOST = 4096


def _option(code: int, value: bytes):
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _block(kind: int, body: bytes):
    total = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + total + body + total


def section(application: str) -> bytes:
    options = _option(2, b"synthetic") + _option(3, b"none") + _option(4, application.encode()) + _option(0, b"")
    return _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + options)


def interface(name: str, description: str, mac: bytes, snaplen: int) -> bytes:
    options = (
        _option(2, name.encode())
        + _option(3, description.encode())
        + _option(6, mac)
        + _option(8, struct.pack("<Q", 10**11))
        + _option(9, b"\x09")
        + _option(0, b"")
    )
    return _block(1, struct.pack("<HHI", 1, 0, snaplen) + options)


def statistics(number: int, start_ns: int, end_ns: int, seen: int, lost: int) -> bytes:
    def count(code: int, value: int):
        return _option(code, struct.pack("<Q", value))

    def time(code: int, ns: int):
        return _option(code, struct.pack("<II", ns >> 32, ns & 0xFFFFFFFF))

    options = (
        time(2, start_ns)
        + time(3, end_ns)
        + count(4, seen)
        + count(5, 0)
        + count(6, seen)
        + count(7, lost)
        + count(8, seen - lost)
        + _option(0, b"")
    )
    return _block(5, struct.pack("<III", number, end_ns >> 32, end_ns & 0xFFFFFFFF) + options)


def fates(kind: int, ns: int, entries: Any = ()) -> bytes:
    size = entries.dtype.itemsize if len(entries) else 0
    return _block(FATES, struct.pack("<HHIII", kind, size, len(entries), ns >> 32, ns & 0xFFFFFFFF) + bytes(entries))


def options(p: Packets, ids: bool, drops: bool) -> ndarray:
    """Padding is in front of it, the block's second length behind. Returns 32-bit words, a row for each packet."""
    columns = [
        4 << 16 | 2,
        np.where(p["tx"], TX, RX),
        4 << 16 | 6,
        p["queue"],
        5 << 16 | 3,
        ALGORITHM | (p["rss"] & 0xFFFFFF) << 8,
        p["rss"] >> 24,
    ]
    if ids:
        columns += [8 << 16 | 5, p["id"] & 0xFFFFFFFF, p["id"] >> 32]
    if drops:
        columns += [8 << 16 | 4, p["drops"], 0]
    columns += [0, p["total"]]
    columns[0] = 4 << 16 | 2
    words = np.empty((len(p["queue"]), len(columns)), "<u4")
    for i, column in enumerate(columns):
        words[:, i] = column
    return words


def windows(array: ndarray, size: int) -> ndarray:
    """All places of an array of bytes or words where N elements fit: one row each, overlapping."""
    return np.lib.stride_tricks.as_strided(array, (len(array) - size + 1, size), (array.itemsize, array.itemsize))
