# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic recordings: the same bytes for the same options and version, on every machine."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import sys
import time
from typing import TYPE_CHECKING

import numpy as np

from . import units
from .synthetic import blocks, layouts
from .synthetic.conversations import Conversations, Packets, mix, pool

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from numpy import ndarray

VERSION = 1  # another one where the same options give other bytes
SLICE = 1 << 17  # packets that are computed at once
PORTS = 2  # a sends to the first, b to the second
START = "2026-01-01T00:00:00Z"
SNAPLEN_LEAST = (layouts.LONGEST + 3) & ~3
SNAPLEN = 262144
FORWARDED_NOT = 1024  # one received packet of N is not sent
NOTICED_NS = 10_000
HEADER_COLUMNS = (
    "layout",
    "slot",
    "from_a",
    "port_a",
    "interface",
    "tx",
    "frame",
    "payload",
    "ip_id",
    "start",
    "generation",
    "seq",
    "ack",
    "tcp_flags",
    "rss",
    "time",
    "total",
    "at",
    "captured",
)
OPTION_COLUMNS = ("tx", "queue", "rss", "drops", "total", "at", "padded")


class Generator:
    """Traffic of a forwarding application with two ports; each file continues the last one."""

    def __init__(
        self,
        seed: int = 1,
        flows: int = 10_000,
        size: str = "imix",
        traffic: str = "realistic",
        ids: bool = False,
        fates: bool = False,
        loss: float = 0.0,
        rate: int = 1_000_000,
        burst: int = 4,
        queues: int = 4,
        snaplen: int = SNAPLEN,
        start_ns: int | None = None,
    ):
        """ids: also what is sent, with packet ids; fates: and what becomes of the others. loss: share of the
        records that are missing and counted. rate: packets received a second; burst: packets with one time, on average."""
        self.ids, self.fates, self.burst, self.queues, self.snaplen = ids or fates, fates, burst, queues, snaplen
        self.conversations = Conversations(flows, seed, size, traffic)
        self.pool = pool(seed)
        self.filler = layouts.Filler(self.conversations.slots, self.pool, self.conversations.fragments)
        self.random = np.random.PCG64(seed)  # only its raw output: that does not change with numpy's version
        self.seed = seed
        self.gap_scale = int(2 * burst * 10**9 / rate)  # uniform distribution from 0
        self.lost_below = int(loss * 2**32)
        self.now_ns = parse_time(START) if start_ns is None else start_ns
        self.numbers = np.ones((PORTS, queues), np.int64)  # next id of each thread
        self.waiting = None  # sent packets, later than the slice
        self.records = 0  # with those that are lost
        self.pending = np.zeros(2 * PORTS * queues, np.int64)  # lost since the last record of the tap
        self.totals = np.zeros((4, PORTS, queues), np.int64)  # received, not offered, unknown, open
        self.seen = np.zeros(PORTS, np.int64)
        self.lost = np.zeros(PORTS, np.int64)
        self.resent = 0
        self.buffer = np.empty(0, np.uint8)
        self.open = []

    def write(self, path: str | Path, packets: int) -> dict[str, int]:
        """Records of N received packets. Returns what was written, as a dictionary."""
        begin_ns = self.now_ns
        seen, lost, resent, written, size = self.seen.copy(), self.lost.copy(), self.resent, 0, 0
        with open_output(path) as out:

            def put(data: bytes | memoryview):
                nonlocal size
                out.write(data)
                size += len(data)

            put(self._header(begin_ns))
            for done in range(0, packets, SLICE):
                last = packets - done <= SLICE
                data, fates, count = self._slice(min(SLICE, packets - done), last)
                put(data)
                put(fates)
                written += count
            put(self._trailer(begin_ns))
        return {
            "records": written,
            "lost": int((self.lost - lost).sum()),
            "seen": int((self.seen - seen).sum()),
            "bytes": size,
            "retransmissions": self.resent - resent,
            "first_ns": begin_ns,
            "last_ns": self.now_ns,
        }

    def _header(self, ns: int):
        parts = [blocks.section(f"ringtap-archive generate {VERSION}")]
        for port in range(PORTS):
            mac = bytes([2, 0, 0, 0, 0, port])
            parts.append(blocks.interface(f"synthetic:port{port}", f"port {port}", mac, self.snaplen))
        if self.fates:
            parts.append(blocks.fates(blocks.FATES_BEGIN, ns))
        return b"".join(parts)

    def _trailer(self, begin_ns: int):
        parts = [
            blocks.statistics(i, begin_ns, self.now_ns, int(self.seen[i]), int(self.lost[i])) for i in range(PORTS)
        ]
        if self.fates:
            parts += [blocks.fates(blocks.FATES_PACKETS, self.now_ns, f) for f in self.open]
            self.open = []
            parts.append(blocks.fates(blocks.FATES_END, self.now_ns, self._fates_end()))
        return b"".join(parts)

    def _fates_end(self):
        queues = np.zeros(PORTS * self.queues, blocks.FATES_QUEUE)
        queues["interface"] = np.repeat(np.arange(PORTS), self.queues)
        queues["queue"] = np.tile(np.arange(self.queues), PORTS)
        received, not_offered, unknown, still_open = (t.ravel() for t in self.totals)
        queues["received"], queues["not_offered"], queues["unknown"], queues["open"] = (
            received,
            not_offered,
            unknown,
            still_open,
        )
        queues["offered"] = received - not_offered - unknown - still_open
        return queues

    def _slice(self, count: int, last: bool):
        raw = self.random.random_raw(count)
        order, p = self.conversations.slice(self.conversations.slots.draw((raw >> np.uint64(32)).astype(np.int64)))
        times = self._times(raw)
        self.resent += int(p["resent"].sum())
        p["time"] = times[order]
        p["interface"] = np.where(p["from_a"], 0, 1)
        p["queue"] = p["rss"] % self.queues
        p["tx"] = np.zeros(count, bool)
        natural = np.empty(count, np.int64)
        natural[order] = np.arange(count)
        fates = b""
        if self.ids:
            p, natural, fates = self._forward(p, natural, last)
        p, natural = self._lose(p, natural)
        return self._encode(p, natural), fates, len(natural)

    def _times(self, raw: ndarray):
        low = (raw & np.uint64(0xFFFFFFFF)).astype(np.int64)
        new = (low & 1023) * self.burst < 1024
        gap = np.where(new, ((low >> 10) * self.gap_scale) >> 22, 0)
        times = self.now_ns + np.cumsum(gap)
        self.now_ns = int(times[-1])
        return times

    def _forward(self, p: Any, natural: ndarray, last: bool):
        """Gives ids; sent packets leave by the other port some microseconds later. Returns packets in order of time."""
        tap = (p["interface"] * self.queues + p["queue"])[natural]
        p["id"] = np.zeros(len(natural), np.int64)
        p["id"][natural] = p["interface"][natural] << 50 | p["queue"][natural] << 42 | self._count(tap)
        h = mix(p["id"], self.seed + 4)
        stays = ((h & np.uint64(FORWARDED_NOT - 1)) == 0) | (p["kind"] == layouts.Kind.ARP.value)
        fates = self._decide(p, stays, h) if self.fates else b""
        sent = p.take(natural[~stays[natural]])
        slow = (mix(sent["id"], self.seed + 5) & np.uint64(0xFFFFF)).astype(np.int64)
        latency = 2000 + (slow & 0xFFF) + np.where((slow >> 12) < 3, 20_000 + (slow & 0xFFFF), 0)
        sent["time"] = sent["time"] + latency
        sent["interface"] = 1 - sent["interface"]
        sent["tx"] = np.ones(len(sent["tx"]), bool)
        parts = [p] if self.waiting is None else [p, self.waiting]
        everything = Packets.concat([*parts, sent])
        rows = np.concatenate([natural, np.arange(len(natural), len(everything["time"]))])
        rows = rows[np.argsort(everything["time"][rows], kind="stable")]
        until = len(rows) if last else np.searchsorted(everything["time"][rows], self.now_ns, side="right")
        self.waiting = None if last else everything.take(rows[until:])
        if last:
            self.now_ns = max(self.now_ns, int(everything["time"][rows[-1]]))
        return everything, rows[:until], fates

    def _count(self, tap: ndarray):
        """Numbers of each thread, in order of time."""
        order = np.argsort(tap.astype(np.uint8), kind="stable")
        begin = np.flatnonzero(np.diff(tap[order], prepend=-1))
        count = np.diff(begin, append=len(tap))
        flat = self.numbers.reshape(-1)
        number = np.empty(len(tap), np.int64)
        number[order] = np.arange(len(tap)) + np.repeat(flat[tap[order][begin]] - begin, count)
        flat[tap[order][begin]] += count
        return number

    def _decide(self, p: Packets, stays: ndarray, h: ndarray):
        """Fates of packets that are not sent: most not offered, some unknown or still open at the end."""
        np.add.at(self.totals[0], (p["interface"], p["queue"]), 1)
        rows = np.flatnonzero(stays)
        rows = rows[np.argsort(p["time"][rows], kind="stable")]
        kind = (h[rows] >> np.uint64(20)) & np.uint64(31)
        fate = np.select([kind == 0, kind == 1], [blocks.UNKNOWN, blocks.OPEN], blocks.NOT_OFFERED)
        for i, number in ((1, blocks.NOT_OFFERED), (2, blocks.UNKNOWN), (3, blocks.OPEN)):
            of = rows[fate == number]
            np.add.at(self.totals[i], (p["interface"][of], p["queue"][of]), 1)
        entries = np.zeros(len(rows), blocks.FATE)
        noticed = p["time"][rows] + NOTICED_NS
        entries["id"], entries["interface"], entries["queue"] = p["id"][rows], p["interface"][rows], p["queue"][rows]
        entries["time_high"], entries["time_low"], entries["fate"] = noticed >> 32, noticed & 0xFFFFFFFF, fate
        self.open.append(entries[fate == blocks.OPEN][: blocks.FATES_MOST])
        entries = entries[fate != blocks.OPEN]
        chunks = [entries[i : i + blocks.FATES_MOST] for i in range(0, len(entries), blocks.FATES_MOST)]
        return b"".join(blocks.fates(blocks.FATES_PACKETS, self.now_ns, chunk) for chunk in chunks)

    def _lose(self, p: Packets, natural: ndarray):
        """Takes records out, in runs of 16, and counts them in the next one of the same queue and direction."""
        p["drops"] = np.zeros(len(p["time"]), np.int64)
        np.add.at(self.seen, p["interface"][natural], 1)
        if not self.lost_below:
            return p, natural
        number = self.records + np.arange(len(natural))
        self.records += len(natural)
        lost = (mix(number >> 4, self.seed + 6) >> np.uint64(32)).astype(np.int64) < self.lost_below
        np.add.at(self.lost, p["interface"][natural[lost]], 1)
        tap = (p["tx"] * PORTS + p["interface"])[natural] * self.queues + p["queue"][natural]
        for t in range(len(self.pending)):
            rows = np.flatnonzero(tap == t)
            kept = np.flatnonzero(~lost[rows])
            if not len(kept):
                self.pending[t] += len(rows)
                continue
            drops = np.diff(kept, prepend=-1) - 1
            drops[0] += self.pending[t]
            p["drops"][natural[rows[kept]]] = drops
            self.pending[t] = len(rows) - 1 - kept[-1]
        return p, natural[~lost]

    def _encode(self, p: Packets, rows: ndarray):
        """The blocks of these rows of p, one behind the other. Valid until the next call."""
        p["captured"] = np.minimum(p["frame"], self.snaplen)
        p["padded"] = (p["captured"] + 3) & ~3
        p["total"] = layouts.BLOCK_LENGTH + p["padded"] + 4 * (9 + 3 * self.ids + 3 * (p["drops"] > 0))
        total = p["total"][rows]
        end = np.cumsum(total)
        p["at"] = np.empty(len(p["total"]), np.int64)
        p["at"][rows] = end - total
        size = int(end[-1]) if len(end) else 0
        if len(self.buffer) < size:  # kept: the faults of new pages would cost as much as the rest
            self.buffer = np.empty(size + size // 4 & ~3, np.uint8)
        out = self.buffer[:size]
        self._bodies(out, p, rows)
        self._headers(out, p, rows)
        self._options(out.view("<u4"), p, rows)
        return out.data

    def _bodies(self, out: ndarray, p: Packets, rows: ndarray):
        """Payloads with the bytes before them in the pool, which the headers overwrite."""
        at, captured = p["at"][rows] + layouts.BLOCK_LENGTH, p["captured"][rows]
        out.view("<u4")[((at + p["padded"][rows]) >> 2) - 1] = 0
        start = (p["start"] - layouts.LENGTHS[p["layout"]])[rows]
        for some in groups(captured.astype(np.uint16)):
            size = int(captured[some[0]])
            blocks.windows(out, size)[at[some]] = blocks.windows(self.pool, size)[start[some]]

    def _headers(self, out: ndarray, p: Packets, rows: ndarray):
        for some in groups(p["layout"][rows]):
            part = p.take(rows[some], HEADER_COLUMNS)
            layout = layouts.ALL[part["layout"][0]]
            h = self.filler.fill(layout, part)
            block = h["block"]
            block["type"], block["total"], block["interface"] = 6, part["total"], part["interface"]
            block["time_high"], block["time_low"] = part["time"] >> 32, part["time"] & 0xFFFFFFFF
            block["captured"], block["length"] = part["captured"], part["frame"]
            size = layout.dtype.itemsize
            blocks.windows(out, size)[part["at"]] = h.view(np.uint8).reshape(len(h), size)

    def _options(self, words: ndarray, p: Packets, rows: ndarray):
        with_drops = p["drops"][rows] > 0
        for drops in (False, True):
            part = p.take(rows[with_drops == drops], (*OPTION_COLUMNS, "id") if self.ids else OPTION_COLUMNS)
            if len(part["at"]):
                trailer = blocks.options(part, self.ids, drops)
                blocks.windows(words, trailer.shape[1])[(part["at"] + layouts.BLOCK_LENGTH + part["padded"]) >> 2] = (
                    trailer
                )


def groups(key: ndarray) -> list[ndarray]:
    """Indices of equal keys, which are small integers."""
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    return np.split(order, cuts) if len(order) else []


def parse_time(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return ((since.days * 86400 + since.seconds) * 10**6 + since.microseconds) * 1000


@contextlib.contextmanager
def open_output(path: str | Path) -> Iterator:
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with open(path, "wb") as out:
            yield out


def write(path: str | Path, packets: int, **options) -> dict[str, int]:
    """One file; options are those of Generator."""
    return Generator(**options).write(path, packets)


def _share(text: str):
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: out of range; give 0 to 0.99")
    return value


def _snaplen(text: str):
    value = int(text)
    if not SNAPLEN_LEAST <= value <= SNAPLEN:
        raise argparse.ArgumentTypeError(
            f"{text}: out of range; give {SNAPLEN_LEAST} to {SNAPLEN}: headers are not cut"
        )
    return value


def _time(text: str):
    try:
        return parse_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("a time is written like 2026-01-01T00:00:00Z") from error


def arguments(parser: Any) -> None:
    parser.description = "Write a synthetic recording: the same bytes for the same options."
    parser.add_argument("-w", "--write", required=True, metavar="FILE", help="pcapng file to write; -: standard output")
    parser.add_argument(
        "-c", "--packets", type=units.positive, default=100_000, metavar="N", help="received packets (default: 100k)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the random numbers (default: 1)")
    parser.add_argument(
        "--flows",
        type=units.positive,
        default=10_000,
        metavar="N",
        help="flows at a time, by Zipf's law (default: 10k)",
    )
    parser.add_argument(
        "--size",
        choices=["imix", "64"],
        default="imix",
        help="frames: 64, 590 and 1514 bytes, or all 64 (default: imix)",
    )
    parser.add_argument(
        "--mix",
        choices=["realistic", "udp"],
        default="realistic",
        help="TCP, tunnels, IPv6, VLANs, fragments, DNS and ARP, or only UDP over IPv4 (default: realistic)",
    )
    parser.add_argument("--ids", action="store_true", help="record also what is sent, with packet ids")
    parser.add_argument("--fates", action="store_true", help="record also what becomes of packets that are not sent")
    parser.add_argument(
        "--loss",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="share of the records that are lost, and counted (default: 0)",
    )
    parser.add_argument(
        "--rate", type=units.positive, default=1_000_000, metavar="N", help="packets received a second (default: 1M)"
    )
    parser.add_argument(
        "--burst", type=units.positive, default=4, metavar="N", help="packets with one time, on average (default: 4)"
    )
    parser.add_argument(
        "--queues",
        type=int,
        choices=range(1, 9),
        default=4,
        metavar="N",
        help="queues of each port, 1 to 8 (default: 4)",
    )
    parser.add_argument(
        "-s",
        "--snapshot-length",
        dest="snaplen",
        type=_snaplen,
        default=SNAPLEN,
        metavar="BYTES",
        help="bytes of a packet that are captured",
    )
    parser.add_argument(
        "--start", type=_time, default=START, metavar="TIME", help=f"time of the first packet (default: {START})"
    )


def run(args: Namespace) -> Any:
    begin = time.monotonic()
    start_ns = args.start if isinstance(args.start, int) else parse_time(args.start)
    done = write(
        args.write,
        args.packets,
        seed=args.seed,
        flows=args.flows,
        size=args.size,
        traffic=args.mix,
        ids=args.ids,
        fates=args.fates,
        loss=args.loss,
        rate=args.rate,
        burst=args.burst,
        queues=args.queues,
        snaplen=args.snaplen,
        start_ns=start_ns,
    )
    seconds = time.monotonic() - begin
    name = "standard output" if args.write == "-" else os.path.basename(args.write)
    print(
        f"{name}: {done['records']:,} packets, {done['bytes']:,} bytes, {done['lost']:,} lost, in {seconds:.1f} s",
        file=sys.stderr,
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="ringtap-archive generate")
    arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
