# SPDX-License-Identifier: BSD-3-Clause
"""Packets, in time order, without copying them."""

from __future__ import annotations

import contextlib
import errno
import weakref
from typing import TYPE_CHECKING

from ._apps import Error, check, resolve, text, timeout_ms
from ._batches import read_batches
from ._ringtap import ffi, lib
from ._session import OVERWRITTEN, RUNS, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from ._session import Interface

QUEUES_MAX = 65536
BATCH_MAX = 1 << 24
DIRECTIONS = {"rx": lib.RINGTAP_RX, "tx": lib.RINGTAP_TX, "both": lib.RINGTAP_RX | lib.RINGTAP_TX}
IDS = {False: lib.RINGTAP_NO_IDS, True: lib.RINGTAP_IDS, "inferred": lib.RINGTAP_IDS_INFERRED}
NAMES = {lib.RINGTAP_RX: "rx", lib.RINGTAP_TX: "tx"}
LINKTYPE_ETHERNET = 1
TAGS = {"any": lib.RINGTAP_TAGS_ANY, "as-is": lib.RINGTAP_TAGS_AS_IS}


class Packet:
    """A captured packet.

    data       memoryview of the captured bytes, from the Ethernet header on. It points into the ring:
               its content is valid until the iterator is asked for the next packet. Copy what is kept
               (bytes(p.data)). Reading it later is safe, but shows other packets.
    length     bytes on the wire; len(data) is smaller where a snapshot length cuts
    time_ns    since the epoch
    interface  the Interface; port and app are its names
    queue      None if unknown
    direction  "rx", "tx" or None
    hash       the NIC's RSS hash, or None
    dropcount  packets lost since the packet before of its thread, port, queue and direction
    id         with ids: of a received packet, and of it, its clones and copies when sent; else None
    """

    __slots__ = ("data", "direction", "dropcount", "hash", "id", "interface", "length", "queue", "time_ns")

    @property
    def port(self) -> str:
        return self.interface.name

    @property
    def app(self) -> Any:
        return self.interface.app

    def __repr__(self):
        return f"<ringtap.Packet {self.app}:{self.port} {self.direction} {self.length} bytes at {self.time_ns}>"


def compile_filter(expression: str | None, tags: str = "any") -> tuple:
    """A libpcap expression to (instructions, their number, what keeps them alive)."""
    if tags not in TAGS:
        raise ValueError(f"tags is one of {', '.join(TAGS)}")
    if not expression:
        return ffi.NULL, 0, None
    pcap = ffi.gc(lib.pcap_open_dead(LINKTYPE_ETHERNET, 262144), lib.pcap_close)
    program = ffi.new("struct bpf_program *")
    if lib.compile_filter(pcap, program, expression.encode(), TAGS[tags]) < 0:
        raise Error(errno.EINVAL, f"filter {expression!r}: {text(lib.pcap_geterr(pcap))}")
    program = ffi.gc(program, lib.pcap_freecode)
    return ffi.cast("struct ringtap_insn *", program.bf_insns), program.bf_len, program


class Capture:
    """An iterator over packets, from capture(). It ends after duration, after stop(), or with the
    applications. As a context manager it is closed at the end. Threads may share it; one at a time iterates.
    After os.fork() it is the parent's: the child can neither iterate nor end it."""

    def __init__(
        self,
        targets: dict,
        filter: str | None,
        direction: str,
        queue: int | None,
        snaplen: int,
        duration: float | None,
        options: dict[str, int],
        tags: str,
    ):
        self._session = session = Session(duration)
        self._apps = len(targets)
        insns, count, program = compile_filter(filter, tags)
        options = ffi.new("struct ringtap_capture_options *", options)
        options.size = ffi.sizeof("struct ringtap_capture_options")
        for app, ports in targets.items():
            names = [ffi.NULL if port is None else ffi.new("char[]", port.encode()) for port in ports]
            raw = ffi.new(
                "struct ringtap_target[]",
                [
                    {
                        "port": name,
                        "queue": -1 if queue is None else queue,
                        "directions": DIRECTIONS[direction],
                        "snaplen": snaplen,
                        "filter": insns,
                        "filter_len": count,
                    }
                    for name in names
                ],
            )
            session.call(lib.ringtap_capture_attach, app.dir.encode(), raw, len(names), options)
        del program
        session.call(lib.ringtap_capture_start)
        self._packets = _read(session)
        session.packets = weakref.ref(self._packets)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self):
        if self._session.forked:
            self._session.check_usable()
        return next(self._packets)

    def batches(self, size: int = 65536, data: bool = False) -> Iterator:
        """Iterates over the packets in tables of numpy, see Batch, instead of one by one: at most size packets
        each, and a tenth of a second old. data: with the packets' bytes, copied."""
        self._session.check_usable()
        if size not in range(1, BATCH_MAX + 1):
            raise ValueError(f"size is a number from 1 to {BATCH_MAX}")
        self._packets.close()
        self._packets = read_batches(self._session, size, data)
        self._session.packets = weakref.ref(self._packets)
        return self._packets

    def stop(self) -> None:
        """Ends the capture: the iterator hands out what the rings still hold, then it ends. It does not wait,
        and may be called from another thread or a signal handler."""
        self._session.stop()

    def close(self) -> None:
        """Ends the session in the applications. The rings are unmapped when no view of a packet is left."""
        self._session.close()
        with contextlib.suppress(ValueError):  # another thread iterates: it ends by itself
            self._packets.close()

    @property
    def interfaces(self) -> list[Interface]:
        """The ports that are captured: a list of Interface; packets refer to it. It grows when ports appear."""
        return self._session.learn()

    def stats(self) -> dict[str, int]:
        """Packets: dict of seen, captured, filtered, lost, delivered, reordered; bytes of captured ones; evicted flows.
        seen == captured + filtered + not_sampled + cut + lost, exactly once the iterator has ended."""
        raw = ffi.new("struct ringtap_stats *")
        raw.size = ffi.sizeof("struct ringtap_stats")
        self._session.call(lib.ringtap_capture_stats, raw)
        total = raw.total
        return {
            "seen": total.seen,
            "captured": total.captured,
            "filtered": total.filtered,
            "not_sampled": total.not_sampled,
            "cut": total.cut,
            "evicted": total.evicted,
            "bytes": total.bytes,
            "lost": sum(total.lost),
            "delivered": raw.delivered,
            "reordered": raw.reordered,
        }


def _read(session: Session):
    """Refers to the session only: a Capture that nothing refers to is freed at once."""
    mapping = session.mapping  # another thread may close the session while packets are read here
    out = ffi.new("struct ringtap_packets **")
    check(lib.ringtap_packets_create(out))
    it = ffi.gc(out[0], lib.ringtap_packets_free)
    lib.ringtap_packets_fields(it, lib.RINGTAP_FIELDS_ALL)
    runs = ffi.new("struct ringtap_run[]", RUNS)
    while (count := session.next(runs)) is not None:
        for i in range(count):
            lib.ringtap_packets_start(it, ffi.addressof(runs, i))
            yield from _run(session, mapping.keep, it)


def _run(session: Session, keep: Callable, it: Any):
    interfaces, no_index = session.interfaces, lib.RINGTAP_NO_INDEX
    while not session.closed and (raw := lib.ringtap_packet_next(it)):
        p = Packet()
        p.data = memoryview(ffi.buffer(ffi.gc(raw.data, keep), raw.caplen)).toreadonly()
        p.length, p.time_ns, p.dropcount = raw.length, raw.ns, raw.dropcount
        p.interface = (interfaces if raw.interface < len(interfaces) else session.learn())[raw.interface]
        p.queue = None if raw.queue == no_index else raw.queue
        p.direction = NAMES.get(raw.direction)
        p.hash = raw.hash if raw.has_hash else None
        p.id = raw.id or None
        yield p
    if not session.closed:
        check(lib.ringtap_packets_error(it), OVERWRITTEN)


def by_app(sources: list[str]) -> dict:
    found = {}
    for source in sources:
        app, port = resolve(source)
        found.setdefault(app, []).append(port)
    return found


def capture(
    source: str | list[str],
    filter: str | None = None,
    *,
    direction: str = "both",
    queue: int | None = None,
    snaplen: int = 0,
    buffer_size: int = 0,
    duration: float | None = None,
    timeout: float = 0,
    ids: bool | str = False,
    sample: int = 1,
    tags: str = "any",
) -> Capture:
    """Captures from APP or APP:PORT (a name or a number), or from a list of them.

    filter     a libpcap expression; the application runs it
    direction  "rx", "tx" or "both"
    queue      a number; None: all
    snaplen    bytes to keep of each packet; 0: all
    buffer_size  bytes for an application's packets; 0: the default
    duration   seconds; None: until stop() or the end of the applications
    timeout    seconds for each answer of an application; 0: the default
    ids        True: packets have ids; "inferred": also those sent with their mbuf's flags reset
    sample     takes one of N packets, N a power of two, at random and before the filter; with ids those of one id together
    tags       "any": a filter matches packets with and without VLAN tags, unless it says vlan; "as-is": as libpcap
               defines it, so "udp port 53" matches no tagged packet
    Returns a Capture; packets flow from then on.
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is one of {', '.join(DIRECTIONS)}")
    if queue is not None and queue not in range(QUEUES_MAX):
        raise ValueError(f"queue is a number from 0 to {QUEUES_MAX - 1}, or None")
    if ids not in IDS:
        raise ValueError('ids is False, True or "inferred"')
    sources = [source] if isinstance(source, str) else list(source)
    if not sources:
        raise ValueError("no application to capture from: the list is empty")
    options = {"buffer_size": buffer_size, "timeout_ms": timeout_ms(timeout), "ids": IDS[ids], "sample": sample}
    return Capture(by_app(sources), filter, direction, queue, snaplen, duration, options, tags)
