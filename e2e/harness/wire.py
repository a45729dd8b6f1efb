# SPDX-License-Identifier: BSD-3-Clause
"""A second implementation of the control protocol and the segment, written from docs/format.md, for
invalid readers and applications."""

import fcntl
import mmap
import os
import socket
import struct
import threading

MAGIC, VERSION, SEG_VERSION = 0x70617472, 4, 5
CHUNK, CHUNKS = 128 << 10, 2  # the smallest, and the least number
HELLO, LIST, OPEN, START, STOP, MONITOR, FILTER, MEMORY = range(1, 9)
(WELCOME, PORTS, SESSIONS, OPENED, STARTED, STOPPED, ERROR, MONITORING, FILTERED, LAYOUT) = range(65, 75)
ALL, NO_FILTER = 0xFFFFFFFF, 0xFFFFFFFF
HEADER = struct.Struct("<IHHI")


def text(value, size=64):
    return value.encode()[: size - 1].ljust(size, b"\0")


def message(kind, body=b"", magic=MAGIC, version=VERSION, length=None):
    return HEADER.pack(magic, version, kind, 12 + len(body) if length is None else length) + body


def hello():
    return message(HELLO, struct.pack("<I", os.getpid()) + text("e2e"))


def target(port="", queue=ALL, directions=3, snaplen=262144, first=NO_FILTER, count=0):
    return text(port) + struct.pack("<IIIII", queue, directions, snaplen, first, count)


def open_request(
    targets=(target(),), insns=(), on_full=0, timestamp=0, buffer_size=1 << 20, target_count=None, insn_count=None
):
    head = struct.pack(
        "<IIIII",
        on_full,
        timestamp,
        len(targets) if target_count is None else target_count,
        len(insns) if insn_count is None else insn_count,
        0,
    )
    return message(
        OPEN,
        head
        + struct.pack("<QQ", buffer_size, 1 << 36)
        + b"".join(targets)
        + b"".join(struct.pack("<HBBI", *i) for i in insns),
    )


def filter_request(insns=(), count=None):
    return message(
        FILTER,
        struct.pack("<I", len(insns) if count is None else count) + b"".join(struct.pack("<HBBI", *i) for i in insns),
    )


def filtered(body):
    """(code, text) of a FILTERED message."""
    code, sentence = struct.unpack("<i256s", body)
    return code, sentence.split(b"\0")[0].decode()


RINGS_MAX = 256
LAYOUT_BODY = struct.Struct(f"<6I4x5Q{RINGS_MAX}i")


class Layout:
    """The memory that a probe requests."""

    def __init__(self, body):
        (self.rings, self.shares, self.interfaces, self.taps, self.chunks, self.order, self.chunk_size, *rest) = (
            LAYOUT_BODY.unpack(body)
        )
        self.sizes, self.filled, self.nodes = rest[:3], rest[3], rest[4:]


def layout(
    sizes, rings=1, shares=1, interfaces=1, taps=1, chunks=CHUNKS, order=2 * CHUNKS, chunk_size=CHUNK, filled=None
):
    return message(
        LAYOUT,
        LAYOUT_BODY.pack(
            rings,
            shares,
            interfaces,
            taps,
            chunks,
            order,
            chunk_size,
            *sizes,
            sizes[0] if filled is None else filled,
            *[-1] * RINGS_MAX,
        ),
    )


def memfd(size, fill=True):
    """A populated memfd, as a reader allocates it."""
    fd = os.memfd_create("e2e", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.truncate(fd, size)
    for at in range(0, size if fill else 0, 1 << 20):
        os.pwrite(fd, bytes(min(1 << 20, size - at)), at)
    return fd


class Reader:
    """A connection to a probe, which telemetry must have woken (`ringtap list` does)."""

    def __init__(self, run_dir, greet=True):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(60)
        self.sock.connect(str(run_dir / "ringtap.sock"))
        self.fds = []
        self.maps = []  # writable mappings of the three memories
        if greet:
            self.send(hello())
            assert self.receive()[0] == WELCOME

    def send(self, data):
        self.sock.send(data)

    def receive(self):
        """(type, body), or (None, b"") when the probe has closed."""
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 200000, 1)
        except ConnectionResetError:
            data, fds = b"", []
        self.fds += fds
        return (HEADER.unpack_from(data)[2], data[12:]) if data else (None, b"")

    def request(self, **kwargs):
        """Requests a session; returns the layout of the memory that the probe requires."""
        self.send(open_request(**kwargs))
        kind, body = self.receive()
        assert kind == LAYOUT, body
        return Layout(body)

    def pass_memory(self, fds):
        """Returns the answer: (type, body)."""
        socket.send_fds(self.sock, [message(MEMORY)], fds)
        return self.receive()

    def open(self, **kwargs):
        self.fds = [memfd(size) for size in self.request(**kwargs).sizes]
        self.maps = [mmap.mmap(fd, 0) for fd in self.fds]
        kind, body = self.pass_memory(self.fds)
        assert kind == OPENED, body
        self.send(message(START))
        assert self.receive()[0] == STARTED

    def write_tails(self, value):
        """Writes value into the tail of every ring."""
        for at in range(0, len(self.maps[2]), 64):
            struct.pack_into("<Q", self.maps[2], at, value)

    def close(self):
        self.sock.close()
        for memory in self.maps:
            memory.close()
        for fd in self.fds:
            os.close(fd)


def sealed(data):
    """A sealed memfd with the contents, as a probe makes it for its statistics."""
    fd = memfd(len(data))
    os.pwrite(fd, data, 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


class Impostor:
    """Simulates an application: listens on its socket, and calls answer(connection) in a thread for
    each connection. owner: of the socket, before anybody can connect to it."""

    def __init__(self, run_dir, name, answer, owner=0):
        self.dir = run_dir
        self.dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = self.dir / name
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.bind(str(self.path))
        os.chown(self.path, owner, owner)
        self._sock.listen(8)
        self._answer = answer
        self._open = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._sock.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection):
        try:
            self._answer(connection)
        except OSError:
            pass  # the other side has closed, as the tests expect

    def close(self):
        self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        for connection in self._open:
            connection.close()
        self.path.unlink(missing_ok=True)


def segment(records=b"", head=None, **fields):
    """A segment with one interface, one tap and one ring that holds the records: what a probe writes
    into the three memories. fields replace those of the header."""
    header = dict(
        magic=b"RINGTAP\0",
        version=SEG_VERSION,
        header_size=256,
        segment_size=0,
        chunk_size=CHUNK,
        ring_count=1,
        if_capacity=1,
        tap_capacity=1,
        clock_offset=256,
        if_offset=4096,
        tap_offset=4096 + 256,
        ring_offset=8192,
        count_offset=8192 + 128,
        order_offset=12288,
        chunk_count=CHUNKS,
        order_count=2 * CHUNKS,
        pid=os.getpid(),
        shares=1,
        start_ns=1,
        state=1,
        if_count=1,
        tap_count=1,
        refused=0,
    )
    header["segment_size"] = 16384
    header.update(fields)
    out = bytearray(max(header["segment_size"], 16384) if header["segment_size"] < 1 << 20 else 16384)
    struct.pack_into("<8sIIQQIIIIQQQQQIIIIQIIII", out, 0, *header.values())
    struct.pack_into("<4QIIQ", out, 192, 1, 0, 0, 0, 2, 0, 8192 + 256)  # used rings, window, reserve
    struct.pack_into("<IIQQQ", out, 256, 0, 0, 0, 10**18, 1 << 40)
    struct.pack_into(
        "<64s64s6sHIIIIII", out, 4096, text("port0"), text("net_fake"), b"\2" * 6, 0, 0, 262144, 1, 1, 0, 1
    )
    struct.pack_into("<IHB", out, 4096 + 256, 0, 0, 0)
    end = len(records) if head is None else head
    struct.pack_into("<QQII", out, 8192, end, 10**18, 0, 0)
    n = len(records)
    struct.pack_into("<QQ", out, 8192 + 128, n and 1, n and 1)
    struct.pack_into("<IIII", out, 12288, 0, 1, 0, 0)
    data = records.ljust(CHUNKS * CHUNK, b"\0")
    return [bytes(out), data, bytes(4096)]


def epb(data, ns=10**18, interface=0, total=None, captured=None):
    """An Enhanced Packet Block as of the probe, with optional faults."""
    body = data + b"\0" * (-len(data) % 4)
    options = struct.pack("<HHIHHIHH", 2, 4, 1, 6, 4, 0, 0, 0)
    size = 28 + len(body) + len(options) + 4
    return (
        struct.pack(
            "<IIIIIII",
            6,
            size if total is None else total,
            interface,
            ns >> 32,
            ns & 0xFFFFFFFF,
            len(data) if captured is None else captured,
            len(data),
        )
        + body
        + options
        + struct.pack("<I", size)
    )


def fake_probe(contents, opened=True, spoil=lambda fds: None, layout_message=None, heard=None):
    """An answer for Impostor: greets, and makes a session of these contents. layout_message
    replaces the layout. spoil(fds) is called with the reader's memory before OPENED is sent. Types of messages
    are appended to heard."""

    def fill(fds):
        for fd, data in zip(fds, contents):
            with mmap.mmap(fd, len(data)) as memory:
                memory[:] = data
        spoil(fds)

    def answer(connection):
        while True:
            request, fds, _, _ = socket.recv_fds(connection, 200000, 3)
            if not request:
                return
            kind = HEADER.unpack_from(request)[2]
            if heard is not None:
                heard.append(kind)
            if kind == HELLO:
                connection.send(
                    message(
                        WELCOME, struct.pack("<I", os.getpid()) + text("fake") + text("fake") + text("DPDK") + text("0")
                    )
                )
            elif kind == LIST:
                port = struct.pack(
                    "<64s64s6sHIHHIII", text("port0"), text("net_fake"), b"\2" * 6, 0, 0, 1, 1500, 1, 1, 1
                )
                connection.send(message(PORTS, port))
                connection.send(message(SESSIONS))
            elif kind == OPEN and opened:
                connection.send(layout_message or layout([len(c) for c in contents]))
            elif kind == MEMORY:
                fill(fds)
                for fd in fds:
                    os.close(fd)
                connection.send(message(OPENED))
            elif kind == START:
                connection.send(message(STARTED))
            elif kind == STOP:
                connection.send(message(STOPPED))
            elif kind == FILTER:
                connection.send(message(FILTERED, struct.pack("<i256s", 0, b"")))

    return answer
