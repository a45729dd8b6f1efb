# SPDX-License-Identifier: BSD-3-Clause
"""Recorders with made traffic, so that it is known what became of each packet; as pcapng, and as an archive."""

import contextlib
import io
import json
import random
import struct
import sys
from dataclasses import dataclass, field
from ipaddress import ip_address

from .paths import REPO

SECOND = 10**9
START = 1_763_978_400 * SECOND  # a full hour
TCP, UDP = 6, 17
FLAGS = {"rx": 1, "tx": 2}


def _block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def _option(code, value):
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def frame(src, dst, sport, dport, protocol=UDP, ip_id=0, payload=b"", vlan=None):
    """Ethernet and IP; checksums are not filled in."""
    if protocol == TCP:
        transport = struct.pack(">HHIIBBHHH", sport, dport, 1, 1, 0x50, 0x18, 512, 0, 0) + payload
    else:
        transport = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    a, b = ip_address(src), ip_address(dst)
    if a.version == 4:
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(transport), ip_id, 0, 64, protocol, 0) + a.packed + b.packed
    else:
        ip = struct.pack(">IHBB", 6 << 28, len(transport), protocol, 64) + a.packed + b.packed
    kind = struct.pack(">H", 0x0800 if a.version == 4 else 0x86DD)
    tag = b"" if vlan is None else struct.pack(">HH", 0x8100, vlan)
    return bytes.fromhex("020000000001020000000002") + tag + kind + ip + transport


@dataclass
class Recorder:
    """ahead(t): how far its clock is ahead, ns. packets: (true time, interface, direction, frame)."""

    name: str
    ahead: object = staticmethod(lambda t: 0)
    interfaces: tuple = ("eth0",)
    packets: list = field(default_factory=list)

    def clock(self, t):
        return t + self.ahead(t)

    def record(self, t, data, interface=0, direction=None):
        self.packets.append((t, interface, direction, data))

    def pcapng(self):
        out = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
        out += [
            _block(1, struct.pack("<HHI", 1, 0, 0) + _option(2, name.encode()) + _option(9, b"\x09") + _option(0, b""))
            for name in self.interfaces
        ]
        for t, interface, direction, data in sorted(self.packets, key=lambda p: p[0]):
            ns = self.clock(t)
            head = struct.pack("<IIIII", interface, ns >> 32, ns & 0xFFFFFFFF, len(data), len(data))
            more = _option(2, struct.pack("<I", FLAGS[direction])) + _option(0, b"") if direction else b""
            out.append(_block(6, head + data + bytes(-len(data) % 4) + more))
        return b"".join(out)


@dataclass
class Sent:
    """A packet, the recorders that it passed, and its true time there. lost_at: the recorder that it did not come to."""

    number: int
    flow: tuple  # src, dst, sport, dport, protocol
    times: dict
    lost_at: str = None


def archive_command(*words):
    """(status, output, errors) of `ringtap archive`, in this process: starting another takes a second."""
    if str(REPO / "archive") not in sys.path:
        sys.path.insert(0, str(REPO / "archive"))
    from ringtap_archive.main import main

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main([str(word) for word in words])
    return status, out.getvalue(), errors.getvalue()


class Site:
    """Recorders on paths, and their archive in a folder."""

    def __init__(self, folder, *recorders, seed=1):
        self.folder, self.archive = folder, folder / "archive"
        self.recorders = {r.name: r for r in recorders}
        self.random = random.Random(seed)
        self.sent = []

    def send(self, path, flow, start, ip_id=None, payload=None, lost=None, delay=None):
        """A packet along the recorders. lost: name of a recorder -> probability not to get there. delay(a, b): ns."""
        src, dst, sport, dport, protocol = flow
        number = len(self.sent)
        packet = Sent(number, flow, {})
        data = frame(
            src,
            dst,
            sport,
            dport,
            protocol,
            number % 65536 if ip_id is None else ip_id,
            b"%012d" % number if payload is None else payload,
        )
        t, before = start, None
        for name in path:
            if before is not None:
                t += delay(before, name)
                if self.random.random() < (lost or {}).get(name, 0):
                    packet.lost_at = name
                    break
            packet.times[name] = t
            self.recorders[name].record(t, data)
            before = name
        self.sent.append(packet)
        return packet

    def ingest(self, **options):
        for name, recorder in self.recorders.items():
            file = self.folder / f"{name}.pcapng"
            file.write_bytes(recorder.pcapng())
            status, _, errors = archive_command("ingest", "-A", self.archive, "--recorder", name, file)
            assert status == 0, errors
        return self

    def run(self, command, *words, status=0):
        got, out, errors = archive_command(command, "-A", self.archive, *words)
        assert got == status, errors or out
        return out if status == 0 else errors

    def json(self, command, *words):
        return json.loads(self.run(command, "--json", *words))
