# SPDX-License-Identifier: BSD-3-Clause
"""Reads and writes classic pcap files."""

import struct

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}


def parse(data, whole=True):
    """Returns a list of (ns, bytes, original length). As in libpcap, packets are truncated to the
    snapshot length of the file. With whole=False a truncated last packet is ignored."""
    if not whole and len(data) < 24:
        return []
    order, scale = _MAGICS[data[:4]]
    (snaplen,) = struct.unpack_from(order + "I", data, 16)
    out, at = [], 24
    while at < len(data):
        if not whole and at + 16 > len(data):
            break
        sec, frac, captured, length = struct.unpack_from(order + "IIII", data, at)
        at += 16
        if not whole and at + captured > len(data):
            break
        assert at + captured <= len(data), "the last packet is cut off"
        out.append((sec * 10**9 + frac * scale, data[at : at + min(captured, snaplen)], length))
        at += captured
    return out


def read(path):
    with open(path, "rb") as f:
        return parse(f.read())


def frames(path):
    return [data for _ns, data, _length in read(path)]


def write(path, packets, snaplen=262144):
    """Writes frames, a microsecond apart."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snaplen, 1))
        for i, data in enumerate(packets):
            f.write(struct.pack("<IIII", 1 + i // 10**6, i % 10**6, len(data), len(data)) + data)
    return path


def frame(length, seq=0):
    """An Ethernet frame of this length and number; rt_play makes the same."""
    head = bytes.fromhex("020000000001020000000002") + b"\x88\xb5" + struct.pack(">I", seq)
    period = bytes((i * 7 + seq) & 0xFF for i in range(256))
    body = period * (max(0, length - len(head)) // 256 + 1)
    return (head + body)[:length] if length < len(head) else head + body[: length - len(head)]
