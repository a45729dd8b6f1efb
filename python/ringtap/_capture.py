# SPDX-License-Identifier: BSD-3-Clause
"""Packets, in time order, without copying them."""
import errno
import time

from ._apps import Error, check, resolve, text
from ._ringtap import ffi, lib

RUNS = 16
SLICE_MS = 100  # for Ctrl-C, which Python handles between calls
DIRECTIONS = {"rx": lib.RINGTAP_RX, "tx": lib.RINGTAP_TX, "both": lib.RINGTAP_RX | lib.RINGTAP_TX}
NAMES = {lib.RINGTAP_RX: "rx", lib.RINGTAP_TX: "tx"}
LINKTYPE_ETHERNET = 1
NETMASK_UNKNOWN = 0xffffffff


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
    """
    __slots__ = ("data", "direction", "dropcount", "hash", "interface", "length", "queue", "time_ns")

    @property
    def port(self):
        return self.interface.name

    @property
    def app(self):
        return self.interface.app

    def __repr__(self):
        return f"<ringtap.Packet {self.app}:{self.port} {self.direction} {self.length} bytes at {self.time_ns}>"


class Interface:
    """A captured port: app, name, device, driver, port_id, mac (bytes), link_mbps (0: unknown)."""
    __slots__ = ("app", "device", "driver", "link_mbps", "mac", "name", "port_id")

    def __init__(self, raw):
        self.app, self.name = text(raw.app_name), text(raw.name)
        self.device, self.driver = text(raw.device), text(raw.driver)
        self.port_id, self.mac, self.link_mbps = raw.port_id, bytes(raw.mac), raw.link_mbps

    def __repr__(self):
        return f"<ringtap.Interface {self.app}:{self.name}>"


class _Handle:
    """Owns the C handle. Views of packets refer to it: the rings stay mapped as long as one lives."""

    def __init__(self):
        out = ffi.new("struct ringtap_capture **")
        check(lib.ringtap_capture_create(out, ffi.NULL))
        self.cap = ffi.gc(out[0], lib.ringtap_capture_close)

    def keep(self, _):
        """The destructor of a view's pointer: its reference is what counts."""

    def fail(self, code):
        raise Error(-code, text(lib.ringtap_capture_error(self.cap)))


def compile_filter(expression):
    """A libpcap expression to (instructions, their number, what keeps them alive)."""
    if not expression:
        return ffi.NULL, 0, None
    pcap = ffi.gc(lib.pcap_open_dead(LINKTYPE_ETHERNET, 262144), lib.pcap_close)
    program = ffi.new("struct bpf_program *")
    if lib.pcap_compile(pcap, program, expression.encode(), 1, NETMASK_UNKNOWN) < 0:
        raise Error(errno.EINVAL, f"filter {expression!r}: {text(lib.pcap_geterr(pcap))}")
    program = ffi.gc(program, lib.pcap_freecode)
    return ffi.cast("struct ringtap_insn *", program.bf_insns), program.bf_len, program


class Capture:
    """An iterator over packets, from capture(). It ends after duration, after stop(), or with the
    applications. As a context manager it is closed at the end."""

    def __init__(self, sources, filter, direction, queue, snaplen, ring_size, duration):
        self._handle = _Handle()
        self._end = None if duration is None else time.monotonic() + duration
        self._interfaces = []
        self._stopped = False
        insns, count, program = compile_filter(filter)
        options = ffi.new("struct ringtap_capture_options *", {"ring_size": ring_size})
        options.size = ffi.sizeof("struct ringtap_capture_options")
        for app, ports in _by_app(sources).items():
            names = [ffi.NULL if port is None else ffi.new("char[]", port.encode()) for port in ports]
            targets = ffi.new("struct ringtap_target[]", [{
                "port": name, "queue": -1 if queue is None else queue, "directions": DIRECTIONS[direction],
                "snaplen": snaplen, "filter": insns, "filter_len": count} for name in names])
            code = lib.ringtap_capture_attach(self._cap, app.dir.encode(), targets, len(names), options)
            if code:
                self._handle.fail(code)
        del program
        code = lib.ringtap_capture_start(self._cap)
        if code:
            self._handle.fail(code)
        self._packets = self._read()

    @property
    def _cap(self):
        if self._handle is None:
            raise ValueError("the capture is closed")
        return self._handle.cap

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._packets)

    def stop(self):
        """Ends the capture: the iterator hands out what the rings still hold, then it ends."""
        if not self._stopped:
            self._stopped = True
            check(lib.ringtap_capture_stop(self._cap))

    def break_(self):
        """Wakes a waiting iterator; may be called from another thread."""
        lib.ringtap_capture_break(self._cap)

    def close(self):
        """Detaches. The rings are unmapped when no view of a packet is left."""
        if self._handle is not None:
            self._packets.close()
            self._handle = None

    @property
    def interfaces(self):
        """The ports that are captured: a list of Interface; packets refer to it. It grows when ports appear."""
        while len(self._interfaces) < lib.ringtap_capture_interface_count(self._cap):
            raw = ffi.new("struct ringtap_interface *")
            raw.size = ffi.sizeof("struct ringtap_interface")
            check(lib.ringtap_capture_interface(self._cap, len(self._interfaces), raw))
            self._interfaces.append(Interface(raw))
        return self._interfaces

    def stats(self):
        """Packets: dict of seen, captured, filtered, lost, delivered, reordered; bytes of captured ones.
        seen == captured + filtered + lost, exactly once the iterator has ended."""
        raw = ffi.new("struct ringtap_stats *")
        raw.size = ffi.sizeof("struct ringtap_stats")
        check(lib.ringtap_capture_stats(self._cap, raw))
        total = raw.total
        return {"seen": total.seen, "captured": total.captured, "filtered": total.filtered, "bytes": total.bytes,
                "lost": sum(total.lost), "delivered": raw.delivered, "reordered": raw.reordered}

    def _wait_ms(self):
        if self._end is None or self._stopped:
            return SLICE_MS
        left = self._end - time.monotonic()
        if left <= 0:
            self.stop()
        return max(0, min(SLICE_MS, int(left * 1000) + 1))

    def _read(self):
        out = ffi.new("struct ringtap_packets **")
        check(lib.ringtap_packets_create(out))
        it = ffi.gc(out[0], lib.ringtap_packets_free)
        lib.ringtap_packets_fields(it, lib.RINGTAP_FIELDS_ALL)
        runs = ffi.new("struct ringtap_run[]", RUNS)
        while True:
            count = lib.ringtap_capture_next(self._cap, runs, RUNS, self._wait_ms())
            if count == -errno.EPIPE:
                return
            if count < 0:
                self._handle.fail(count)
            for i in range(count):
                lib.ringtap_packets_start(it, ffi.addressof(runs, i))
                yield from self._run(it)
            lib.ringtap_capture_release(self._cap)

    def _run(self, it):
        keep, no_index = self._handle.keep, lib.RINGTAP_NO_INDEX
        while raw := lib.ringtap_packet_next(it):
            p = Packet()
            p.data = memoryview(ffi.buffer(ffi.gc(raw.data, keep), raw.caplen)).toreadonly()
            p.length, p.time_ns, p.dropcount = raw.length, raw.ns, raw.dropcount
            p.interface = (self._interfaces[raw.interface] if raw.interface < len(self._interfaces)
                           else self.interfaces[raw.interface])
            p.queue = None if raw.queue == no_index else raw.queue
            p.direction = NAMES.get(raw.direction)
            p.hash = raw.hash if raw.has_hash else None
            yield p
        check(lib.ringtap_packets_error(it), "the application has overwritten packets that were not read yet")


def _by_app(sources):
    found = {}
    for source in [sources] if isinstance(sources, str) else sources:
        app, port = resolve(source)
        found.setdefault(app, []).append(port)
    return found


def capture(source, filter=None, *, direction="both", queue=None, snaplen=0, ring_size=0, duration=None):
    """Captures from APP or APP:PORT (a name or a number), or from a list of them.

    filter     a libpcap expression; the application runs it
    direction  "rx", "tx" or "both"
    queue      a number; None: all
    snaplen    bytes to keep of each packet; 0: all
    ring_size  bytes per polling thread of the application; 0: the default
    duration   seconds; None: until stop() or the end of the applications
    Returns a Capture; packets flow from then on.
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is one of {', '.join(DIRECTIONS)}")
    return Capture(source, filter, direction, queue, snaplen, ring_size, duration)
