# SPDX-License-Identifier: BSD-3-Clause
"""Packets as tables of numpy and Arrow: for rates at which an object for each packet is too slow."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ._apps import check
from ._ringtap import ffi, lib
from ._session import OVERWRITTEN, RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

    from numpy import ndarray

    from ._session import Interface, Session

DATA_BYTES = 128 * lib.RINGTAP_SNAPLEN_MAX
AGE_S = 0.1  # a batch that is not full is handed out after it


def _row(numpy: ModuleType):
    """struct batch_row of batch.h."""
    names = ["time_ns", "id", "dropcount", "offset"], ["length", "caplen", "interface", "queue", "hash"]
    row = numpy.dtype(
        [(n, "u8") for n in names[0]]
        + [(n, "u4") for n in names[1]]
        + [("direction", "u1"), ("has_hash", "?"), ("pad", "u1", 2)]
    )
    assert row.itemsize == ffi.sizeof("struct batch_row")
    return row


class Batch:
    """Packets in the order of their threads' rings, sorted by time within a run.

    packets     a numpy array with the fields time_ns, id (0: none), dropcount, offset, length (on the wire), caplen,
                interface (an index), queue (0xffffffff: unknown), hash, has_hash, direction (1: received, 2: sent)
    data        a numpy array of bytes: packet i is data[offset : offset + caplen]; None without data=True
    interfaces  a list of Interface
    """

    __slots__ = ("data", "interfaces", "packets")

    def __init__(self, packets: ndarray, data: ndarray, interfaces: list[Interface]):
        self.packets, self.data, self.interfaces = packets, data, interfaces

    def __len__(self):
        return len(self.packets)

    def bytes(self, i: int) -> bytes:
        """The captured bytes of packet i."""
        start = int(self.packets["offset"][i])
        return self.data[start : start + int(self.packets["caplen"][i])].tobytes()

    def to_arrow(self) -> Any:
        """A pyarrow.RecordBatch with the columns of packets, port names instead of indices, and data as binary."""
        import pyarrow

        p = self.packets
        columns = {n: pyarrow.array(p[n]) for n in ("length", "caplen", "dropcount")}
        columns["time_ns"] = pyarrow.array(p["time_ns"].astype("i8")).cast(pyarrow.timestamp("ns", "UTC"))
        columns["id"] = pyarrow.array(p["id"], mask=p["id"] == 0)
        columns["queue"] = pyarrow.array(p["queue"], mask=p["queue"] == lib.RINGTAP_NO_INDEX)
        columns["hash"] = pyarrow.array(p["hash"], mask=~p["has_hash"])
        for name, values in ("port", [i.name for i in self.interfaces]), ("app", [i.app for i in self.interfaces]):
            columns[name] = pyarrow.DictionaryArray.from_arrays(
                pyarrow.array(p["interface"]), pyarrow.array(values, pyarrow.string())
            )
        columns["direction"] = pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(p["direction"].astype("i1") - 1, mask=p["direction"] == 0), pyarrow.array(["rx", "tx"])
        )
        if self.data is not None:
            columns["data"] = _binary(pyarrow, p, self.data)
        return pyarrow.RecordBatch.from_pydict(columns)


def _binary(pyarrow: Any, packets: Any, data: Any):
    """The bytes lie one behind the other: their offsets, and the end, are all that Arrow needs."""
    import numpy

    offsets = numpy.append(packets["offset"], len(data)).astype("i8")
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(packets), buffers)


class _Filling:
    """The batch that is being filled, and the numpy arrays behind it."""

    def __init__(self, numpy: ModuleType, size: int, with_data: bool):
        self.rows = numpy.empty(size, _row(numpy))
        self.data = numpy.empty(DATA_BYTES, "u1") if with_data else None
        self.raw = ffi.new("struct batch *")
        self.since = time.monotonic()
        self.raw.rows = ffi.cast("struct batch_row *", ffi.from_buffer(self.rows))
        self.raw.room = size
        if with_data:
            self.raw.data = ffi.cast("uint8_t *", ffi.from_buffer(self.data))
            self.raw.size = DATA_BYTES

    def due(self) -> int:
        return self.raw.count and time.monotonic() - self.since >= AGE_S

    def batch(self, interfaces: list[Interface]) -> Batch:
        """The filled part, without the room that is left."""
        data = None if self.data is None else self.data[: self.raw.used]
        return Batch(self.rows[: self.raw.count], data, interfaces)


def read_batches(session: Session, size: int, with_data: bool) -> Iterator:
    """Batches that are full, or as old as AGE_S. Refers to the session only, as the reader of packets does."""
    import numpy

    out = ffi.new("struct ringtap_packets **")
    check(lib.ringtap_packets_create(out))
    it = ffi.gc(out[0], lib.ringtap_packets_free)
    lib.ringtap_packets_fields(it, lib.RINGTAP_FIELDS_ALL)
    runs = ffi.new("struct ringtap_run[]", RUNS)
    mapping = session.mapping  # another thread may close the session while packets are read here
    filling = _Filling(numpy, size, with_data)
    while (count := session.next(runs)) is not None:
        for i in range(count):
            lib.ringtap_packets_start(it, ffi.addressof(runs, i))
            while mapping and not session.closed and lib.batch_fill(filling.raw, it):
                yield filling.batch(list(session.learn()))
                filling = _Filling(numpy, size, with_data)
            if not session.closed:
                check(lib.ringtap_packets_error(it), OVERWRITTEN)
        if filling.due():
            yield filling.batch(list(session.learn()))
            filling = _Filling(numpy, size, with_data)
    if filling.raw.count:
        yield filling.batch(list(session.interfaces if session.closed else session.learn()))
