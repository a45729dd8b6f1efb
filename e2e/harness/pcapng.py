# SPDX-License-Identifier: BSD-3-Clause
"""A strict pcapng reader: little endian, one section, all padding bytes and lengths checked.
Written from the specification, independent of the writer."""

import functools
import gc
import struct
from dataclasses import dataclass, field

_BLOCK, _EPB, _OPTION = struct.Struct("<II"), struct.Struct("<IIIII"), struct.Struct("<HH")
SHB, IDB, ISB, EPB, CB = 0x0A0D0D0A, 1, 5, 6, 0x0BAD
FATES = 0x80525446  # for local use: docs/format.md
INTERVALS = 0x80525449
_INTERVALS, _THREAD = struct.Struct("<HHHHII"), struct.Struct("<IIII16s")
_INTERVAL, _LOSS = struct.Struct("<IIQIIIHBB"), struct.Struct("<IIIIQ")
GAP, BUSY = 1, 2
_FATES, _FATE, _QUEUE = struct.Struct("<HHIII"), struct.Struct("<QIIIHBB"), struct.Struct("<IHHQQQQQQQ")
_REASON = struct.Struct("<BB62s")
NOT_OFFERED, UNKNOWN, INFERRED, OPEN = 1, 2, 3, 4
RX, TX = 1, 2


@dataclass
class Interface:
    linktype: int
    snaplen: int
    options: dict
    stats: list = field(default_factory=list)  # options of its ISBs, as dictionaries

    def text(self, code):
        return self.options[code][0].decode()

    @property
    def name(self):
        return self.text(2)


@dataclass(slots=True)
class Packet:
    interface: int
    ns: int
    data: bytes
    length: int  # on the wire
    options: dict  # shared by packets with the same ones

    def number(self, code):
        """An integer option, or None."""
        values = self.options.get(code)
        return int.from_bytes(values[0], "little") if values else None

    @property
    def direction(self):
        return (self.number(2) or 0) & 3

    @property
    def dropped(self):
        return self.number(4) or 0

    @property
    def queue(self):
        return self.number(6)

    @property
    def id(self):
        """Equal in records of one packet; None if it has none."""
        return self.number(5)

    @property
    def hash(self):
        return self.options.get(3, [None])[0]


@dataclass(slots=True)
class Fate:
    id: int
    ns: int
    interface: int
    queue: int
    fate: int
    why: int  # reason of an unknown one
    packets: int  # that stand before it in the file


@dataclass
class FateCounts:
    interface: int
    queue: int
    received: int
    offered: int
    not_offered: int
    open: int
    unknown: int
    inferred: int
    lost: int


@dataclass
class File:
    section: dict
    interfaces: list
    packets: list
    fates: list = field(default_factory=list)
    fates_begin: bool = False
    reasons: dict = field(default_factory=dict)  # texts by source and number
    fate_counts: list = None  # counts of each queue, once the recording has ended
    threads: dict = field(default_factory=dict)  # names by number in the intervals
    intervals: list = field(default_factory=list)
    interval_losses: list = field(default_factory=list)


@functools.lru_cache(maxsize=10000)
def _decoded(data):
    out, at = {}, 0
    while at < len(data):
        assert len(data) - at >= 4, "stray bytes after the options"
        code, length = _OPTION.unpack_from(data, at)
        at += 4
        if code == 0:
            assert length == 0 and at == len(data), "opt_endofopt is not the end"
            return out
        assert at + length <= len(data), f"option {code} runs over the block"
        out.setdefault(code, []).append(data[at : at + length])
        padding = data[at + length : at + length + (-length % 4)]
        assert not any(padding), f"option {code} is padded with {padding!r}"
        at += length + (-length % 4)
    return out


def _options(data, where):
    """Decodes options up to opt_endofopt or the end of the block."""
    try:
        return _decoded(data)
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from None


def blocks(data, whole=True):
    """Yields (type, body, offset). With whole=False a truncated last block is ignored."""
    at = 0
    while at < len(data):
        if len(data) - at < 12:
            assert not whole, f"{len(data) - at} stray bytes at the end"
            return
        kind, length = _BLOCK.unpack_from(data, at)
        assert length % 4 == 0 and length >= 12, f"block at {at}: length {length}"
        if at + length > len(data):
            assert not whole, f"block at {at}: cut off"
            return
        trailer = int.from_bytes(data[at + length - 4 : at + length], "little")
        assert trailer == length, f"block at {at}: {length} before, {trailer} after"
        yield kind, data[at + 8 : at + length - 4], at
        at += length


def _packet(body, file, at):
    iface, high, low, captured, length = _EPB.unpack_from(body)
    assert iface < len(file.interfaces), f"EPB at {at}: interface {iface} is not declared"
    end = 20 + captured
    assert end + (-captured % 4) <= len(body), f"EPB at {at}: {captured} bytes do not fit"
    assert captured <= length, f"EPB at {at}: captured more than there was"
    snaplen = file.interfaces[iface].snaplen
    assert not snaplen or captured <= snaplen, f"EPB at {at}: beyond snaplen"
    try:
        options = _decoded(body[end + (-captured % 4) :])
    except AssertionError as error:
        raise AssertionError(f"EPB at {at}: {error}") from None
    return Packet(iface, high << 32 | low, body[20:end], length, options)


@dataclass(slots=True)
class Interval:
    start: int
    ns: int
    thread: int
    packets: int
    interface: int | None
    queue: int
    kind: int


def _intervals(body, file, at):
    version, kind, size, zero, count, also_zero = _INTERVALS.unpack_from(body)
    entries = body[_INTERVALS.size :]
    assert version == 1 and not zero and not also_zero, f"intervals at {at}"
    assert len(entries) == size * count, f"intervals at {at}: {count} entries do not fit"
    layout = {1: _THREAD, 2: _INTERVAL, 3: _LOSS}[kind]
    assert size == layout.size, f"intervals at {at}: entries of {size} bytes"
    for e in layout.iter_unpack(entries):
        if kind == 1:
            file.threads[e[0]] = e[4].rstrip(b"\0").decode()
        elif kind == 3:
            file.interval_losses.append((e[0] << 32 | e[1], e[2] << 32 | e[3], e[4]))
        else:
            high, low, ns, thread, packets, interface, queue, what, _cause = e
            assert thread in file.threads and what in (GAP, BUSY), f"intervals at {at}"
            interface = None if interface == 0xFFFFFFFF else interface
            assert interface is None or interface < len(file.interfaces), f"intervals at {at}"
            file.intervals.append(Interval(high << 32 | low, ns, thread, packets, interface, queue, what))


def _fates(body, file, at):
    kind, size, count, _high, _low = _FATES.unpack_from(body)
    entries = body[_FATES.size :]
    assert len(entries) == size * count, f"fates at {at}: {count} entries do not fit"
    assert file.fate_counts is None or kind == 3, f"fates at {at} after their end"
    if kind == 1:
        assert count == 0 and not file.fates_begin
        file.fates_begin = True
        return
    assert file.fates_begin, f"fates at {at} before their begin"
    if kind == 2:
        assert size == _FATE.size
        for id, high, low, iface, queue, fate, why in _FATE.iter_unpack(entries):
            assert iface < len(file.interfaces) and 1 <= fate <= 4 and id, f"fates at {at}"
            assert why <= 2 if fate == 2 else not why or (fate == 1 and (id >> 60, why) in file.reasons), (
                f"fates at {at}"
            )
            file.fates.append(Fate(id, high << 32 | low, iface, queue, fate, why, len(file.packets)))
        return
    if kind == 4:
        assert size == 64
        for source, number, text in _REASON.iter_unpack(entries):
            assert source < 16 and number and (source, number) not in file.reasons and text[-1] == 0, f"fates at {at}"
            file.reasons[source, number] = text.split(b"\0")[0].decode()
        return
    assert kind == 3 and size == _QUEUE.size
    file.fate_counts = file.fate_counts or []
    for iface, queue, zero, *counts in _QUEUE.iter_unpack(entries):
        assert iface < len(file.interfaces) and not zero
        file.fate_counts.append(FateCounts(iface, queue, *counts))


def _resolution_is_ns(options, at):
    assert options.get(9) == [b"\x09"], f"IDB at {at}: time is not in nanoseconds"


def parse(data, whole=True):
    """Returns the File. Without garbage collection, which would visit all packets repeatedly."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return _file(data, whole)
    finally:
        if collects:
            gc.enable()


def _file(data, whole):
    file = File({}, [], [])
    for kind, body, at in blocks(data, whole):
        assert (kind == SHB) == (at == 0), f"block {kind:#x} at {at}: one section, and it comes first"
        if kind == SHB:
            magic, major, _minor = struct.unpack_from("<IHH", body)
            assert magic == 0x1A2B3C4D and major == 1, "not a little-endian pcapng 1.x section"
            file.section = _options(body[16:], "SHB")
        elif kind == IDB:
            link, _, snaplen = struct.unpack_from("<HHI", body)
            options = _options(body[8:], f"IDB at {at}")
            _resolution_is_ns(options, at)
            file.interfaces.append(Interface(link, snaplen, options))
        elif kind == EPB:
            file.packets.append(_packet(body, file, at))
        elif kind == ISB:
            iface, _high, _low = struct.unpack_from("<III", body)
            file.interfaces[iface].stats.append(_options(body[12:], f"ISB at {at}"))
        elif kind == FATES:
            _fates(body, file, at)
        elif kind == INTERVALS:
            _intervals(body, file, at)
        else:
            assert kind == CB, f"block {kind:#x} at {at} is not one that we write"
    return file


def read(path, whole=True):
    with open(path, "rb") as f:
        return parse(f.read(), whole)


def stat(interface, code):
    """A counter of the interface's last ISB: 4 received, 5 dropped, 6 accepted, 7 dropped by OS,
    8 delivered."""
    values = interface.stats[-1].get(code)
    return int.from_bytes(values[0], "little") if values else None


def assert_in_order(file):
    late = [i for i in range(1, len(file.packets)) if file.packets[i].ns < file.packets[i - 1].ns]
    assert not late, f"{len(late)} packets step back in time, first at {late[0]}"


RECEIVED, ACCEPTED, LOST, DELIVERED = 4, 6, 7, 8  # options of an ISB


def check_sums(file):
    """Checks the counters of the file against its packets; returns (seen, captured, lost) of each
    interface."""
    out = []
    for i, iface in enumerate(file.interfaces):
        seen, accepted, lost, delivered = (stat(iface, code) for code in (RECEIVED, ACCEPTED, LOST, DELIVERED))
        assert delivered == sum(p.interface == i for p in file.packets)
        assert accepted == delivered + lost
        assert seen >= accepted
        out.append((seen, delivered, lost))
    return out
