#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutates what an archive has beside Parquet, and reads it: meta.json, the journal, seek tables and frames, blocks.

usage: fuzz_archive.py SECONDS [SEED]
Each target runs SECONDS. All that may come of an input is a refusal; what else does is printed, with the number that
makes the same input again, and the status is 1."""

import copy
import ctypes
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import time
import traceback

from ringtap_archive import blocks, clocks, engine, filters, frames, layout, pick, repair, store
from ringtap_archive.errors import Refused

START = pathlib.Path("/archive/recorder=a/date=2026-03-01/hour=10")
NUMBERS = [
    0,
    1,
    -1,
    4,
    127,
    255,
    256,
    65535,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 63,
    1 << 64,
    -(1 << 63),
    1.5,
    1e308,
]
VALUES = [
    *NUMBERS,
    None,
    True,
    "",
    "x",
    "\ud800",
    "../../x",
    "/etc/passwd",
    "000001.pcapng",
    "x" * 9000,
    [],
    {},
    [[]],
    [None],
    {"a": 1},
]
WORDS = [
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\0\0\0\x80",
    b"\x04\0\0\0",
    b"\0\0\x10\0",
    b"..",
    b"/",
    b"\"",
    b"{",
    b"[" * 50,
    b"\\ud800",
]

META = {
    "format": 1,
    "recorder": "a",
    "source": {"name": "a", "bytes": 5, "sha256": "ab", "parts": 1, "part": 0, "salvaged": None},
    "pcapng": {"file": "000001.pcapng.zst", "bytes": 5, "sha256": "ab", "uncompressed": 9, "frames": 1},
    "packets": {"file": "000001.packets.parquet", "rows": 3, "bytes": 5, "sha256": "ab", "flowless": 0},
    "flows": {"file": "000001.flows.parquet", "rows": 3, "bytes": 5, "sha256": "ab"},
    "first_ns": 1772359200 * 10**9,
    "last_ns": 1772359201 * 10**9,
    "late": False,
    "lean": False,
    "interfaces": [
        {
            "index": 0,
            "name": "eth0",
            "description": "x",
            "linktype": 1,
            "snaplen": 0,
            "tsresol": 9,
            "tsoffset": 0,
            "packets": 3,
        }
    ],
    "losses": [
        {"time_ns": 1772359200 * 10**9, "interface": 0, "queue": None, "direction": "rx", "packets": 7, "reason": "nic"}
    ],
    "losses_beyond": 0,
    "comment": None,
    "versions": {"decoder": "0.1.0"},
    "clock": {
        "reports": 2,
        "unsynchronized": 1,
        "synchronized": False,
        "max_error_ns": 5,
        "estimated_error_ns": 1,
        "set": [{"time_ns": 1, "by_ns": -1}],
        "set_beyond": 0,
    },
}
JOURNAL = {
    "rename": [
        [".tmp/12-0123456789ab/000001.pcapng.zst", "recorder=a/date=2026-03-01/hour=10/000001.pcapng.zst"],
        [
            "recorder=a/date=2026-03-01/hour=10/000001.meta.json",
            ".damaged/recorder=a/date=2026-03-01/hour=10/000001.meta.json.1",
        ],
    ],
    "remove": ["recorder=a/date=2026-03-01/hour=10/000002.flows.parquet"],
}


def bytes_of(chance, data):
    """Some bytes are others."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            word = chance.choice(WORDS)
            data[at : at + len(word)] = word
        elif kind == 2:
            data[at:at] = chance.choice(WORDS)
        elif kind == 3:
            del data[at : at + chance.randint(1, 40)]
        elif kind == 4:
            other = chance.randrange(len(data) + 1)
            data[at:at] = data[other : other + chance.randint(1, 40)]
        else:
            del data[at:]
    return bytes(data)


def json_of(chance, value):
    """One value is another, or the text is damaged."""
    value = copy.deepcopy(value)
    if chance.random() < 0.3:
        return bytes_of(chance, json.dumps(value).encode())
    for _ in range(chance.randint(1, 2)):
        holder = value
        while True:
            keys = list(holder) if isinstance(holder, dict) else range(len(holder))
            key = chance.choice(keys) if keys else None
            if key is None or not isinstance(holder[key], (dict, list)) or not holder[key] or chance.random() < 0.2:
                break
            holder = holder[key]
        if key is None:
            continue
        if chance.random() < 0.15:
            del holder[key]
        elif chance.random() < 0.3 and isinstance(holder[key], str) and holder[key]:
            holder[key] = bytes_of(chance, holder[key].encode()).decode(errors="replace")
        else:
            holder[key] = chance.choice(VALUES)
    return json.dumps(value).encode()


def meta(chance, _):
    """All that reads a meta.json."""
    try:
        content = json.loads(json_of(chance, META))
        layout.check_meta(content, "000001")
    except (ValueError, RecursionError):
        return
    part = layout.Part(START, "000001", content)
    part.overlaps(0, 5)
    assert all(path.parent == START for path in part.files()) and part.sources
    engine.rows([part], "losses")
    engine.rows([part], "interfaces")
    list(clocks.notes({"a": clocks.merged([content.get("clock"), META["clock"]])}))
    repair._header(part)
    for index, interface in enumerate(content["interfaces"]):
        blocks.interface(
            interface["linktype"], interface.get("snaplen") or 0, pick._described(Lead(part), index, interface)
        )


class Lead:
    """Instead of pick.Source: a file of which the beginning is damaged."""

    def __init__(self, part):
        self.part = part

    @staticmethod
    def lead():
        return [], []


def journal(chance, _):
    """Names of parts only."""
    try:
        renames, removals = store.read_journal(json_of(chance, JOURNAL))
    except (ValueError, RecursionError):
        return
    for path in [*removals, *(name for pair in renames for name in pair)]:
        assert os.path.normpath(path) == path and path.startswith((".tmp/", ".damaged/recorder=", "recorder=")), path


def _packed():
    """Blocks, and the same in frames of their own."""
    data = blocks.section("x") + blocks.interface(1, 0, [(blocks.IF_NAME, b"eth0"), (blocks.COMMENT, b"c")])
    packet = (
        bytes([2] * 12) + b"\x08\x00" + bytes.fromhex("4500002800010000400600000a0000010a00000200500051" + "00" * 16)
    )
    for _ in range(6):
        data += blocks.block(
            blocks.PACKET, struct.pack("<5I", 0, 0, 5, len(packet), len(packet)) + packet + bytes(-len(packet) % 4)
        )
    return data


PCAPNG = _packed()


class Out:
    """Target of frames.Writer."""

    def __init__(self):
        self.data = bytearray()

    def write(self, data):
        self.data += data


def _zst():
    out = Out()
    writer = frames.Writer(out)
    for at in range(0, len(PCAPNG), 150):
        writer.frame(PCAPNG[at : at + 150])
    writer.finish()
    return bytes(out.data)


ZST = _zst()


def seekable(chance, folder):
    """Seek table and frames, and all frames without it."""
    path = folder / "x.zst"
    data = bytes_of(chance, ZST)
    if chance.random() < 0.5:  # a row of the table
        data = ZST[:-60] + bytes_of(chance, ZST[-60:])
    path.write_bytes(data)
    try:
        with frames.open_file(path) as file:
            for index in range(min(file.frames(), 100)):
                assert len(file.frame(index)) == file.offsets[index + 1] - file.offsets[index]
            file.read(chance.choice([0, 149, file.size - 1, -1]), 300)
    except Refused:
        pass
    if data:
        assert sum(len(content or b"") for content, _ in frames.scan(path)) <= frames.FRAME_MAX


class Interface:
    """An interface of the output of fetch."""

    snaplen = 0
    filter = filters.Filter("tcp port 80")


def packets(chance, _):
    """Blocks, at their places and at others."""
    data = bytes_of(chance, PCAPNG)
    blocks.read_lead(data)
    address = ctypes.cast(data, ctypes.c_void_p).value
    for at in (len(data) - 96, chance.randrange(len(data) + 1), len(PCAPNG) - 96):
        try:
            if at >= 0:
                blocks.packet(data, at, 0, 5, Interface, address)
        except frames.Corrupt:
            pass


def run(target, seconds, seed, folder):
    """False: it has found something."""
    count, begin = 0, time.monotonic()
    while count % 64 or time.monotonic() - begin < seconds:
        count += 1
        try:
            target(random.Random(f"{target.__name__}{seed}{count}"), folder)
        except Exception:
            traceback.print_exc()
            print(f"{target.__name__}: seed {seed}, execution {count}")
            return False
    print(f"{target.__name__}: {count} executions, {count / (time.monotonic() - begin):.0f} a second")
    return True


def main():
    seconds, seed = float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else time.time_ns()
    with tempfile.TemporaryDirectory(
        prefix="ringtap-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    ) as folder:
        found = [
            target
            for target in (meta, journal, seekable, packets)
            if not run(target, seconds, seed, pathlib.Path(folder))
        ]
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
