# SPDX-License-Identifier: BSD-3-Clause
"""pcapng blocks: read in either byte order, written little endian with times in ns.

draft-ietf-opsawg-pcapng, sections 3.1 (blocks), 3.5 (options), 4.1 to 4.4, appendix A (obsolete packet block).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from .frames import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .pick import Interface

SECTION, INTERFACE, OLD_PACKET, SIMPLE, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_MAGIC = 0x1A2B3C4D
_PACKETS = {OLD_PACKET, SIMPLE, PACKET}
_BIG = {kind.to_bytes(4, "big"): kind for kind in _PACKETS}
NO_BLOCK = "there is no packet block where the index has one; run ringtap archive verify"
_HEAD = struct.Struct("<II")
_SIZES = struct.Struct("<II")
_EPB = struct.Struct("<IIIII")

COMMENT, IF_NAME, IF_DESCRIPTION, IF_TSRESOL, IF_TZONE, IF_TSOFFSET = 1, 2, 3, 9, 10, 14
_APPLICATION = 4
# Options of interfaces that the output has of its own. Its times are in ns, UTC.
REPLACED = {IF_NAME, IF_DESCRIPTION, IF_TSRESOL, IF_TZONE, IF_TSOFFSET}
_WORDS_64 = {8, 16, 17}  # if_speed, if_txspeed, if_rxspeed
_CUSTOM = {2988, 2989, 19372, 19373}


def _padded(data: bytes):
    return data + bytes(-len(data) % 4)


def options(pairs: list[tuple]) -> bytes:
    """The bytes of (code, value) with the end of options."""
    out = b"".join(struct.pack("<HH", code, len(value)) + _padded(value) for code, value in pairs)
    return out + bytes(4) if out else b""


def read_options(data: bytes, order: str) -> Iterator:
    """(code, value) up to the end of options, or to where they are malformed."""
    at = 0
    while at + 4 <= len(data):
        code, length = struct.unpack_from(order + "HH", data, at)
        if code == 0 or at + 4 + length > len(data):
            return
        yield code, bytes(data[at + 4 : at + 4 + length])
        at += 4 + (length + 3) // 4 * 4


def block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def section(comment: str) -> bytes:
    """A section header."""
    return block(
        SECTION,
        struct.pack("<IHHq", _MAGIC, 1, 0, -1)
        + options([(COMMENT, comment.encode()[:60000]), (_APPLICATION, b"ringtap archive fetch")]),
    )


def interface(linktype: int, snaplen: int, pairs: list[tuple]) -> bytes:
    """An interface description, with times in ns."""
    return block(INTERFACE, struct.pack("<HHI", linktype, 0, snaplen) + options([*pairs, (IF_TSRESOL, b"\x09")]))


def read_lead(data: bytes) -> tuple:
    """From a file's beginning: comments of its first section header, and the interfaces before its first packet, as
    lists of (code, value)."""
    comments, found, order, at = [], [], "<", 0
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
        kind, length = struct.unpack_from(order + "II", data, at)
        if kind in _PACKETS or length < 12 or length % 4 or at + length > len(data):
            break
        if kind == SECTION:
            comments += [
                value for code, value in read_options(data[at + 24 : at + length - 4], order) if code == COMMENT
            ]
        elif kind == INTERFACE:
            found.append(
                [
                    (code, _native(code, value, order))
                    for code, value in read_options(data[at + 16 : at + length - 4], order)
                    if order == "<" or code not in _CUSTOM
                ]
            )
        at += length
    return comments, found


def _native(code: int, value: bytes, order: str):
    return value[::-1] if order == ">" and code in _WORDS_64 and len(value) == 8 else value


def packet(data: bytes, at: int, number: int, time_ns: int, interface: Interface, address: int) -> bytes | None:
    """The packet block at data[at:] as an enhanced packet block of interface `number`. None: the interface's filter
    does not match. address: of the data, in memory."""
    kind, length = _HEAD.unpack_from(data, at) if at + 8 <= len(data) else (0, 0)
    end = at + length
    if kind != PACKET:
        return _unusual(data, at, number, time_ns, interface, address)
    captured, original = _SIZES.unpack_from(data, at + 20) if 32 <= length <= len(data) - at else (length, 0)
    if length & 3 or captured > length - 32 or _HEAD.unpack_from(data, end - 8)[1] != length:
        raise Corrupt(NO_BLOCK)
    if interface.filter and not interface.filter.matches(address + at + 28, captured, original):
        return None
    return _EPB.pack(PACKET, length, number, time_ns >> 32 & 0xFFFFFFFF, time_ns & 0xFFFFFFFF) + data[at + 20 : end]


def _unusual(data: bytes, at: int, number: int, time_ns: int, interface: Interface, address: int):
    """Big endian, simple and obsolete blocks."""
    order = ">" if data[at : at + 4] in _BIG else "<"
    kind, length = struct.unpack_from(order + "II", data, at) if at + 8 <= len(data) else (0, 0)
    if (
        kind not in _PACKETS
        or length & 3
        or not 16 <= length <= len(data) - at
        or (kind != SIMPLE and length < 32)
        or struct.unpack_from(order + "I", data, at + length - 4)[0] != length
    ):
        raise Corrupt(NO_BLOCK)
    start, captured, original, extra = _fields(data, at, kind, length, order, interface.snaplen)
    if start + captured > at + length - 4:
        raise Corrupt(NO_BLOCK)
    if interface.filter and not interface.filter.matches(address + start, captured, original):
        return None
    if kind != SIMPLE:
        behind = data[start + (captured + 3) // 4 * 4 : at + length - 4]
        extra += [
            (code, _packet_option(kind, code, value, order))
            for code, value in read_options(behind, order)
            if order == "<" or code not in _CUSTOM
        ]
    body = struct.pack("<IIIII", number, time_ns >> 32 & 0xFFFFFFFF, time_ns & 0xFFFFFFFF, captured, original)
    return block(PACKET, body + _padded(data[start : start + captured]) + options(extra))


def _fields(data: bytes, at: int, kind: int, length: int, order: str, snaplen: int):
    """(offset of its data, captured, length, options for its other fields)"""
    if kind == SIMPLE:
        (original,) = struct.unpack_from(order + "I", data, at + 8)
        return at + 12, min(original, snaplen or original, length - 16), original, []
    captured, original = struct.unpack_from(order + "II", data, at + 20)
    if kind == PACKET:
        return at + 28, captured, original, []
    (drops,) = struct.unpack_from(order + "H", data, at + 10)
    return at + 28, captured, original, [(4, struct.pack("<Q", drops))] if drops not in (0, 0xFFFF) else []


def _packet_option(kind: int, code: int, value: bytes, order: str):
    """epb_flags, epb_dropcount, epb_packetid and epb_queue are numbers."""
    numbers = {2: 4} if kind == OLD_PACKET else {2: 4, 4: 8, 5: 8, 6: 4}
    return value[::-1] if order == ">" and numbers.get(code) == len(value) else value
