# SPDX-License-Identifier: BSD-3-Clause
"""pcapng files with all that the format allows: both byte orders, all blocks of packets, other units of
time. Written from the specification."""

import struct

SHB, IDB, PB, SPB, ISB, EPB = 0x0A0D0D0A, 1, 2, 3, 5, 6


class File:
    def __init__(self, order="<"):
        self.order, self.data = order, bytearray()

    def pack(self, format, *values):
        return struct.pack(self.order + format, *values)

    def options(self, *pairs):
        """(code, bytes) each."""
        out = b"".join(self.pack("HH", code, len(value)) + value + bytes(-len(value) % 4) for code, value in pairs)
        return out + self.pack("I", 0) if pairs else b""

    def block(self, kind, body):
        total = 12 + len(body) + -len(body) % 4
        self.data += self.pack("II", kind, total) + body + bytes(-len(body) % 4) + self.pack("I", total)
        return self

    def section(self, *options):
        return self.block(SHB, self.pack("IHHq", 0x1A2B3C4D, 1, 0, -1) + self.options(*options))

    def interface(self, linktype=1, snaplen=0, *options):
        return self.block(IDB, self.pack("HHI", linktype, 0, snaplen) + self.options(*options))

    def packet(self, data, time=0, interface=0, length=None, options=()):
        head = self.pack(
            "IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(data), len(data) if length is None else length
        )
        return self.block(EPB, head + data + bytes(-len(data) % 4) + self.options(*options))

    def obsolete(self, data, time=0, interface=0, drops=0, options=()):
        head = self.pack("HHIIII", interface, drops, time >> 32, time & 0xFFFFFFFF, len(data), len(data))
        return self.block(PB, head + data + bytes(-len(data) % 4) + self.options(*options))

    def simple(self, data, length=None):
        return self.block(SPB, self.pack("I", len(data) if length is None else length) + data)

    def statistics(self, interface, time, *options):
        return self.block(ISB, self.pack("III", interface, time >> 32, time & 0xFFFFFFFF) + self.options(*options))

    def write(self, path):
        path.write_bytes(self.data)
        return path
