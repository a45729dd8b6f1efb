# SPDX-License-Identifier: BSD-3-Clause
"""The rows of recordings: libringtap-archive, by ctypes and Arrow's C stream interface.

    with decoder.open("recording.pcapng") as d:
        for part in d.parts():
            for batch in part.batches():
                ...
            part.flows()

A part's packets are read to their end, in this order and once. Requesting the next part reads and drops the rest."""

from __future__ import annotations

import array
import ctypes
import errno
import json
import os
import stat
import tempfile
from typing import TYPE_CHECKING

import pyarrow as pa

from . import packed
from .built import candidates
from .errors import Lost, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from pyarrow import Table

LIBRARY = "libringtap-archive.so"
_LEAN, _NO_DIGEST, _NO_FLOWS, _BY_FLOW = 1, 2, 4, 8
_READ = 1 << 20
_FOLLOWING_MAX = 64 << 20  # bytes of a file that follows, of which the first minute is read


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [
        (name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")
    ]


def _candidates():
    libs = [f"{lib}/ringtap/{LIBRARY}" for lib in ("lib", f"lib/{os.uname().machine}-linux-gnu", "lib64")]
    return candidates("RINGTAP_ARCHIVE_DECODER", f"archive/decoder/{LIBRARY}", libs)


def _load():
    path = next((p for p in _candidates() if p.is_file()), None)
    if not path:
        raise Refused(f"{LIBRARY} was not found; build ringtap ('make'), or name it with RINGTAP_ARCHIVE_DECODER")
    lib = ctypes.CDLL(str(path))
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    by_size, by_number = ctypes.POINTER(size), ctypes.POINTER(ctypes.c_uint64)
    for name, result, arguments in (
        ("open", ctypes.c_int, [ctypes.POINTER(pointer), ctypes.c_int, ctypes.c_uint]),
        ("close", None, [pointer]),
        ("part_next", ctypes.c_int, [pointer]),
        ("part_packets", ctypes.c_int, [pointer, ctypes.POINTER(_Stream)]),
        ("part_flows", ctypes.c_int, [pointer, ctypes.POINTER(_Stream)]),
        ("part_later", ctypes.c_int, [pointer, ctypes.c_int]),
        ("part_header", pointer, [pointer, by_size]),
        ("part_range", None, [pointer, by_number, by_number]),
        ("part_cuts", pointer, [pointer, by_size]),
        ("part_info", pointer, [pointer]),
        ("torn", text, [pointer]),
        ("convert", ctypes.c_int, [ctypes.c_int, ctypes.c_int, text, size]),
        ("free", None, [pointer]),
        ("version", text, []),
    ):
        function = getattr(lib, f"rt_archive_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


_lib = None


def _library():
    global _lib
    _lib = _lib or _load()
    return _lib


def version() -> str:
    """Version of the decoder."""
    return _library().rt_archive_version().decode()


def open(
    path: Path, lean: bool = False, digest: bool = True, flows: bool = True, by_flow: bool = False
) -> Decoder | None:
    """The recording at this path, pcapng or classic pcap; a Decoder. by_flow: rows of a batch are in the order of their
    flows, not in that of the file."""
    return Decoder(path, lean, digest, flows, by_flow)


class Decoder:
    """A recording. `torn`: where and why it is damaged, or None; all before is decoded. Known once
    its packets have been read. `converted`: it is a classic pcap file, and all offsets are those of
    the pcapng that it was made into, which convert() and read() give."""

    def __init__(self, path: Path, lean: bool = False, digest: bool = True, flows: bool = True, by_flow: bool = False):
        self.path = os.fspath(path)
        self.handle, self.converted, self._torn, self._part = ctypes.c_void_p(), False, None, None
        self._lib, self._flags = _library(), lean * _LEAN | (not digest) * _NO_DIGEST | (not flows) * _NO_FLOWS
        self._flags |= by_flow * _BY_FLOW
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(f"cannot read '{self.path}': {error.strerror}") from None
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self):
        """A file that is not pcapng may be a classic pcap file: it is converted, into an unnamed file."""
        result = self._lib.rt_archive_open(self.handle, self._fd, self._flags)
        if result == -errno.EBADMSG and self._make_pcapng():
            self._lib.rt_archive_close(self.handle)
            self.handle = ctypes.c_void_p()
            result = self._lib.rt_archive_open(self.handle, self._fd, self._flags)
        if result:
            why = self.torn or os.strerror(-result)
            raise (Lost if result == -errno.EBADMSG else Refused)(f"cannot decode '{self.path}': {why}")

    def _make_pcapng(self):
        torn = ctypes.create_string_buffer(160)
        with tempfile.TemporaryFile() as made:
            result = self._lib.rt_archive_convert(self._fd, made.fileno(), torn, len(torn))
            if result < 0:
                raise Refused(
                    f"cannot convert '{self.path}' to pcapng in {tempfile.gettempdir()}: {os.strerror(-result)}"
                )
            if result:
                return False
            os.close(self._fd)
            self._fd = os.dup(made.fileno())
        self.converted, self._torn = True, torn.value.decode() or None
        return True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self._torn = self.torn
        self._lib.rt_archive_close(self.handle)
        self.handle = ctypes.c_void_p()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def torn(self) -> str:
        torn = self._lib.rt_archive_torn(self.handle) if self.handle else None
        return torn.decode() if torn else self._torn

    @property
    def size(self) -> int:
        """Bytes of the file, as pcapng."""
        return os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file, as pcapng; fewer at its end."""
        out = bytearray()
        while len(out) < length:
            data = os.pread(self._fd, length - len(out), offset + len(out))
            if not data:
                break
            out += data
        return bytes(out)

    def readinto(self, offset: int, buffer: bytearray | memoryview) -> int:
        """As read(), into a buffer; returns how many bytes."""
        return os.preadv(self._fd, [buffer], offset)

    def convert(self, to: Path) -> None:
        """Writes the file as pcapng to this path."""
        offset = 0
        with _create(to) as out:
            while data := self.read(offset, _READ):
                out.write(data)
                offset += len(data)

    def parts(self) -> Iterator:
        """One for each hour, in the order of the file."""
        while True:
            if self._part:
                self._part.finish()
                self._torn = self.torn
            result = self._lib.rt_archive_part_next(self.handle)
            if result < 0:
                raise Refused(f"cannot read '{self.path}': {os.strerror(-result)}")
            if not result:
                return
            self._part = Part(self)
            yield self._part


def _create(path: Path):
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666), "wb")


def _unpacked(file: Any):
    """The beginning of a compressed recording, in memory: up to where it is damaged, or _FOLLOWING_MAX."""
    fd = os.memfd_create("ringtap-following")
    try:
        with packed.opened(file) as data, os.fdopen(os.dup(fd), "wb") as plain:
            for _ in range(_FOLLOWING_MAX // _READ):
                piece = data.read(_READ)
                if not piece:
                    break
                plain.write(piece)
    except packed.ERRORS:
        pass  # what came before counts
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _open_other(path: str | Path):
    """-1: it cannot be read as a regular file. A FIFO must not make this wait."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return -1
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return -1
    with os.fdopen(os.dup(fd), "rb") as file:
        compressed = packed.opened(file) is not None
        file.seek(0)
        if not compressed:
            return fd
        os.close(fd)
        return _unpacked(file)


class Part:
    """An hour of a recording. Once its packets have been read: begin and end, its bytes in the file,
    which follow header; cuts, offsets in the file at which a frame may begin; first_ns, last_ns (None
    without packets); late, whether it has packets of an earlier hour; interfaces, losses, section and
    clock, as meta.json has them."""

    def __init__(self, decoder: Decoder):
        self._decoder, self._lib, self._handle = decoder, decoder._lib, decoder.handle
        length = ctypes.c_size_t()
        at = self._lib.rt_archive_part_header(self._handle, length)
        self.header = ctypes.string_at(at, length.value) if length.value else b""
        self._reader = self._known = self._flows = None

    def _stream(self, function: Any):
        stream = _Stream()
        result = function(self._handle, stream)
        if result:
            raise Refused(f"cannot read '{self._decoder.path}': {os.strerror(-result)}")
        return pa.RecordBatchReader._import_from_c(ctypes.addressof(stream))

    def batches(self) -> Iterator:
        """The packets, as record batches of at most 128 Ki rows, or of 256 Ki by_flow."""
        if self._known:
            return
        self._reader = self._reader or self._stream(self._lib.rt_archive_part_packets)
        try:
            yield from self._reader
        except OSError as error:
            raise Refused(f"cannot read '{self._decoder.path}': {error}") from None
        self._end()

    def finish(self) -> None:
        """Reads and drops the rest."""
        for _ in self.batches():
            pass

    def cuts_from(self, first: int) -> Any:
        """cuts[first:], as far as packets have been read."""
        count, cuts = ctypes.c_size_t(), array.array("Q")
        at = self._lib.rt_archive_part_cuts(self._handle, count)
        cuts.frombytes(ctypes.string_at(at + 8 * first, 8 * (count.value - first)) if count.value > first else b"")
        return cuts

    def _end(self):
        begin, end = ctypes.c_uint64(), ctypes.c_uint64()
        self._lib.rt_archive_part_range(self._handle, begin, end)
        cuts = self.cuts_from(0)
        text = self._lib.rt_archive_part_info(self._handle)
        if not text:
            raise MemoryError
        info = json.loads(ctypes.string_at(text))
        self._lib.rt_archive_free(text)
        self._known = {**info, "begin": begin.value, "end": end.value, "cuts": cuts}

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        if not self._known:
            raise AttributeError(f"{name} is known once the part's packets have been read")
        if name not in self._known:
            raise AttributeError(name)
        return self._known[name]

    def look_ahead(self, following: str | Path | None = None) -> bool:
        """Before flows are read: reads the packets' fates within a minute behind the part's end, in the file, and in the next
        one of the recording. Returns whether the flows differ from those of the part alone."""
        self.finish()
        fd = -1 if following is None else _open_other(following)
        try:
            result = self._lib.rt_archive_part_later(self._handle, fd)
        finally:
            if fd >= 0:
                os.close(fd)
        if result < 0:
            raise Refused(f"cannot read '{self._decoder.path}': {os.strerror(-result)}")
        return bool(result)

    def flow_batches(self) -> Iterator:
        """The flows, sorted by flow_id, as record batches: for more than memory should hold at once."""
        self.finish()
        with self._stream(self._lib.rt_archive_part_flows) as reader:
            yield from reader

    def flows(self) -> Table:
        """The flows as a table, sorted by flow_id."""
        if self._flows is None:
            self.finish()
            with self._stream(self._lib.rt_archive_part_flows) as reader:
                self._flows = reader.read_all()
        return self._flows
