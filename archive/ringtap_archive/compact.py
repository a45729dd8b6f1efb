# SPDX-License-Identifier: BSD-3-Clause
"""Joins small parts of an hour: pcapng files behind each other are a pcapng file of several sections."""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from . import clocks, document, frames, ingest, layout, options, private, show, units
from .errors import Refused
from .store import Archive, no_space

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from .layout import Part
    from .main import Parser


def arguments(parser: Parser) -> None:
    options.archive(parser)
    parser.add_argument(
        "--below",
        type=units.size,
        default=64 << 20,
        metavar="SIZE",
        help="join parts of less than SIZE on disk (default: 64M)",
    )
    parser.add_argument(
        "--up-to", type=units.size, default=1 << 30, metavar="SIZE", help="to parts of at most SIZE (default: 1G)"
    )
    options.window(parser)
    options.recorders(parser)
    options.shared(parser)
    parser.add_argument("--dry-run", action="store_true", help="print what would be joined")
    options.as_json(parser)


def has_ids(part: Part) -> bool:
    """Packet ids, and the fates that they have, belong to one recording: of two in a file, latencies and fates would be
    mixed."""
    ids = pq.read_table(part.packets, columns=["packet_id"]).column(0)
    return ids.null_count < len(ids)


def joinable(part: Part, below: int) -> bool:
    """Late packets would make other parts than one. What compact has made is not made again unless it
    grows by another one."""
    begin = layout.hour_of(part.folder)
    return (
        not part.meta["late"]
        and part.meta["pcapng"]["bytes"] < below
        and part.first_ns >= begin
        and part.last_ns < begin + layout.HOUR_NS
        and not has_ids(part)
    )


def groups(parts: list[Part], below: Any, most: int) -> Iterator:
    """Lists of two or more parts of one folder, in the order of time; also of one kind of index, and of
    storage."""

    def kind(part: Part):
        return str(part.folder), part.meta["lean"], part.pcapng.suffix

    small = sorted((part for part in parts if joinable(part, below)), key=lambda part: (kind(part), part.first_ns))
    for _, same in itertools.groupby(small, kind):
        group, size = [], 0
        for part in same:
            stored = part.meta["pcapng"]["bytes"]
            if group and size + stored > most:
                yield group
                group, size = [], 0
            group.append(part)
            size += stored
        yield group


def keep_losses(meta: dict, group: list[Part]) -> None:
    """Those of the parts: statistics are judged by all packets of a file, and parts of it no longer have
    them. Interfaces are numbered on from part to part."""
    begins = list(itertools.accumulate((len(part.meta["interfaces"]) for part in group), initial=0))
    if begins[-1] == len(meta["interfaces"]):
        meta["losses"] = [
            {**loss, "interface": loss["interface"] + begin}
            for part, begin in zip(group, begins)
            for loss in part.meta["losses"]
        ]
        meta["losses_beyond"] = sum(part.meta.get("losses_beyond", 0) for part in group)


def join(archive: Archive, group: Any) -> Path | None:
    """Replaces the parts by one. Returns its path."""
    first = group[0]
    with archive.staging() as staging:
        joined = staging / "joined.pcapng"
        with os.fdopen(private.create(joined, new=True), "wb") as out:
            for part in group:
                with frames.open_file(part.pcapng) as file:
                    for _, piece in file.pieces():
                        out.write(piece)
        job = ingest.Job(
            archive,
            joined,
            first.recorder,
            first.meta["lean"],
            first.pcapng.suffix == ".zst",
            origin={
                "source": {"name": "compact", "salvaged": None},
                "sources": [source for part in group for source in part.sources],
            },
        )
        job.prepare(staging)
        rows = sum(part.meta["packets"]["rows"] for part in group)
        if job.torn or len(job.metas) != 1 or job.metas[0]["packets"]["rows"] != rows:
            raise Refused(
                f"cannot join parts of {first.folder}: {job.torn or 'other packets than before'}; run ringtap "
                "archive verify"
            )
        keep_losses(job.metas[0], group)
        if any(part.meta.get("clock") for part in group):
            job.metas[0]["clock"] = clocks.merged(part.meta.get("clock") for part in group)
        joined.unlink()
        with archive.removing():
            now = [layout.read_part(part.meta_path) for part in group]
            if not all(part and part.meta == old.meta for part, old in zip(now, group)):
                return None  # pruned, joined or repaired by another process in the meantime; the number may be another part's
            job.publish(staging, [path for part in group for path in part.files()])
        return first.folder / job.metas[0]["pcapng"]["file"]


def run(args: Namespace) -> Any:
    pa.set_cpu_count(1)
    archive = Archive(args.archive, shared=args.shared)
    begin = time.monotonic_ns()
    parts = archive.parts(since=args.since, until=args.until, recorders=args.recorders)
    found = [group for group in groups(parts, args.below, args.up_to) if len(group) > 1]
    done, failed = 0, 0
    for group in found if not args.dry_run else ():
        try:
            done += bool(join(archive, group))
        except (Refused, OSError, pa.ArrowException) as e:
            failed += 1
            text = f"no space is left in {archive.path}; prune it" if no_space(e) else e
            show.warn(f"compact: {text}")
    joined = sum(map(len, found))
    result = {
        "parts": len(parts),
        "joined": joined,
        "into": len(found),
        "done": done,
        "failed": failed,
        "duration_ns": time.monotonic_ns() - begin,
        "dry_run": args.dry_run,
    }
    if args.json:
        document.write("compact", result)
    else:
        show.say(
            f"{'would join' if args.dry_run else 'joined'} {joined} of {len(parts)} parts into {len(found)}"
            + (f"; {failed} failed" if failed else "")
        )
    return 1 if failed else 0
