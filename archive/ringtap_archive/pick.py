# SPDX-License-Identifier: BSD-3-Clause
"""Packets out of the parts' pcapng files, by offset, into one pcapng: of a compressed file only the frames that
have them are read."""

from __future__ import annotations

import bisect
import collections
import ctypes
from typing import TYPE_CHECKING

from . import blocks, filters, frames

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

    from .filters import Filter
    from .layout import Part

KEPT = 4  # frames of a part: packets are wanted in the order of time, which is nearly that of the file
OPEN = 256  # parts
WINDOW = 1 << 20  # part of a file that is not compressed
BLOCK_MAX = 1 << 26
FLUSH = 1 << 18


class Frame:
    """Bytes of a file, and where they are in memory, for libpcap."""

    __slots__ = ("address", "begin", "data", "end")

    def __init__(self, begin: int, data: bytes):
        self.begin, self.end, self.data = begin, begin + len(data), data
        self.address = ctypes.cast(data, ctypes.c_void_p).value

    def block_end(self, offset: int) -> int:
        """Offset behind the packet block at this offset; types of such blocks are less than 256."""
        at = offset - self.begin
        if at < 0 or at + 8 > len(self.data):
            return self.end + 1
        return offset + int.from_bytes(self.data[at + 4 : at + 8], "little" if self.data[at] else "big")


class Source:
    """The pcapng of a part."""

    def __init__(self, part: Part):
        self.part = part
        self.interfaces = {}  # those of the output, by index
        self.frames_read = 0
        self._kept = collections.OrderedDict()
        self._bad = {}
        self._frame = Frame(0, b"")
        self._lead = None
        self._file = frames.open_file(part.pcapng)
        self._compressed = isinstance(self._file, frames.Reader)

    def close(self) -> None:
        self._file.close()

    def frame(self, offset: int) -> Frame:
        """The Frame with the packet block at this offset. Raises frames.Corrupt."""
        frame = self._frame
        if not (frame.begin <= offset < frame.end and (self._compressed or frame.block_end(offset) <= frame.end)):
            self._frame = frame = self._framed(offset) if self._compressed else self._window(offset)
        return frame

    def _framed(self, offset: int):
        index = bisect.bisect_right(self._file.offsets, offset) - 1
        if not 0 <= index < self._file.frames():
            raise frames.Corrupt(f"{self.part.pcapng}: ends before the packets that the index has")
        if index in self._bad:
            raise self._bad[index]
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        self.frames_read += 1
        try:
            return self._keep(index, Frame(self._file.offsets[index], self._file.frame(index)))
        except frames.Corrupt as error:
            self._bad[index] = error
            raise

    def _window(self, offset: int):
        for frame in self._kept.values():
            if frame.begin <= offset and frame.block_end(offset) <= frame.end:
                return frame
        frame = Frame(offset, self._file.read(offset, WINDOW))
        if frame.block_end(offset) > frame.end:
            frame = Frame(offset, self._file.read(offset, min(frame.block_end(offset) - offset, BLOCK_MAX)))
        self.frames_read += 1
        return self._keep(offset, frame)

    def _keep(self, key: int, frame: Frame):
        self._kept[key] = frame
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return frame

    def lead(self) -> tuple:
        """(comments, interfaces) of its beginning, as blocks.read_lead()."""
        if self._lead is None:
            try:
                self._lead = blocks.read_lead((self._framed(0) if self._compressed else self._window(0)).data)
            except frames.Corrupt:
                self._lead = [], []
        return self._lead


class Interface:
    """An interface of the output; it has no number until it has a packet."""

    __slots__ = ("block", "filter", "number", "snaplen")

    def __init__(self, filter_: Filter | None, snaplen: int, block: bytes):
        self.number, self.filter, self.snaplen, self.block = None, filter_, snaplen, block


def _described(source: Source, index: int, meta: dict):
    """The options of an interface: those of the file, with the recorder in its name and description. Interfaces
    that are not at the file's beginning have what meta.json has of them."""
    comments, found = source.lead()
    own = dict(found[index]) if index < len(found) else {}
    others = [
        (code, value) for code, value in (found[index] if index < len(found) else []) if code not in blocks.REPLACED
    ]
    recorder = source.part.recorder.encode()
    name = own.get(blocks.IF_NAME) or (meta.get("name") or str(index)).encode()
    description = own.get(blocks.IF_DESCRIPTION) or (meta.get("description") or "").encode()
    return [
        (blocks.IF_NAME, recorder + b":" + name),
        (blocks.IF_DESCRIPTION, (description + b", " if description else b"") + b"recorder " + recorder),
        *((blocks.COMMENT, comment) for comment in comments),
        *others,
    ]


class Output:
    """One pcapng of packets of many parts, in the order in which they are added."""

    def __init__(
        self,
        file: BinaryIO,
        parts: list[Part],
        part_of: Callable,
        comment: str,
        expression: str | None = None,
        any_tags: bool = False,
    ):
        """parts: all that packets may be of; part_of: gives the part of a number."""
        self._file, self._part_of = file, part_of
        self._pending = bytearray(blocks.section(comment))
        self._expression, self._any_tags = expression, any_tags
        self._same, self._count = {}, 0  # interfaces by what they are; how many have a number
        self._sources, self._filters = {}, {}
        snaplens = {interface.get("snaplen") or 0 for part in parts for interface in part.meta["interfaces"]}
        # One for all: libpcap refuses files with interfaces that differ in it.
        self._snaplen = 0 if 0 in snaplens else max(snaplens, default=0)
        self._linktype = next((i["linktype"] for part in parts for i in part.meta["interfaces"]), filters.ETHERNET)
        self.packets = self.frames_read = 0
        self.missing = collections.Counter()  # by error
        self.recorders = set()

    def add(self, time_ns: int, number: int, offset: int, index: int) -> None:
        """The packet of an interface of the part of this number, if the filter matches."""
        source = None
        try:
            source = self._sources.get(number) or self._open(number)
            interface = source.interfaces.get(index) or self._interface(source, index)
            frame = source.frame(offset)
            to = self._count if interface.number is None else interface.number
            block = blocks.packet(frame.data, offset - frame.begin, to, time_ns, interface, frame.address)
        except (frames.Corrupt, OSError) as error:
            self.missing[_explained(self._part_of(number), error)] += 1
            return
        if block is None:
            return
        if interface.number is None:
            interface.number = to
            self._count += 1
            self._pending += interface.block
            self.recorders.add(source.part.recorder)
        self._pending += block
        self.packets += 1
        if len(self._pending) >= FLUSH:
            self.flush()

    def _open(self, number: int):
        source = self._sources[number] = Source(self._part_of(number))
        if len(self._sources) > OPEN:
            self._drop(self._sources.pop(next(iter(self._sources))))
        return source

    def _drop(self, source: Source):
        self.frames_read += source.frames_read
        source.close()

    def _interface(self, source: Source, index: int):
        try:
            meta = source.part.meta["interfaces"][index]
        except IndexError:
            raise frames.Corrupt(f"{source.part.meta_path}: has no interface {index}, which the index has") from None
        block = blocks.interface(meta["linktype"], self._snaplen, _described(source, index, meta))
        identity = source.part.recorder, meta.get("snaplen") or 0, block
        interface = self._same.get(identity)
        if not interface:
            interface = self._same[identity] = Interface(self._filter(meta["linktype"]), *identity[1:])
        source.interfaces[index] = interface
        return interface

    def _filter(self, linktype: int):
        if self._expression and linktype not in self._filters:
            self._filters[linktype] = filters.for_linktype(self._expression, linktype, self._any_tags)
        return self._filters.get(linktype)

    def flush(self) -> None:
        self._file.write(bytes(self._pending))
        self._file.flush()
        self._pending.clear()

    def close(self) -> None:
        if not self._count:  # a file without an interface is none to tcpdump
            self._pending += blocks.interface(self._linktype, self._snaplen, [])
        self.flush()
        for source in self._sources.values():
            self._drop(source)
        self._sources.clear()


def _explained(part: Part, error: Any):
    text = str(error) if isinstance(error, frames.Corrupt) else f"{part.pcapng}: {error.strerror}"
    return text if text.startswith(str(part.folder)) else f"{part.pcapng}: {text}"
