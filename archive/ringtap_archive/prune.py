# SPDX-License-Identifier: BSD-3-Clause
"""Removes the oldest parts."""

from __future__ import annotations

import argparse
import re
import time
from typing import TYPE_CHECKING

from . import document, layout, options, show, units
from .store import Archive, no_space

if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from .layout import Part
    from .main import Parser


def limit(text: str) -> tuple:
    """("age", ns) or ("size", bytes). The unit is required: without it a value could empty the archive."""
    if re.fullmatch(r"[1-9]\d*m?", text.strip()):
        raise argparse.ArgumentTypeError(f"{text}: which unit? give 7d, 90min, 500M or 2T")
    for kind, parse in (("age", units.duration), ("size", units.size)):
        try:
            return kind, parse(text)
        except argparse.ArgumentTypeError:
            pass
    raise argparse.ArgumentTypeError(f"{text}: neither an age nor a size; give 7d or 2T")


def arguments(parser: Parser) -> None:
    options.archive(parser)
    parser.add_argument(
        "--keep",
        required=True,
        type=limit,
        metavar="AGE|SIZE",
        help="keep parts with packets of this age, as in 7d, or of this size in all, as in 2T",
    )
    options.recorders(parser)
    options.shared(parser)
    parser.add_argument("--dry-run", action="store_true", help="print what would be removed")
    options.as_json(parser)


def too_old(parts: list[Part], age_ns: int) -> list[Part]:
    oldest = time.time_ns() - age_ns
    return [part for part in parts if part.last_ns < oldest]


def too_many(parts: list[Part], most: int) -> list:
    sizes = {part.meta_path: part.stored() for part in parts}
    excess = sum(sizes.values()) - most
    chosen = []
    for part in sorted(parts, key=lambda part: (part.last_ns, part.name)):
        if excess <= 0:
            break
        excess -= sizes[part.meta_path]
        chosen.append(part)
    return chosen


def remove(archive: Archive, parts: list[Part]) -> None:
    """Under removing(). On a full disk not even the journal can be written: then the first part goes
    without one, its meta.json first. Killed in between, it leaves files that `verify` reports."""
    try:
        archive.apply([], [path for part in parts for path in part.files()])
    except OSError as e:
        if not no_space(e) or not parts:
            raise
        archive.remove(parts[0].files())
        remove(archive, parts[1:])


def run(args: Namespace) -> Any:
    archive = Archive(args.archive, shared=args.shared)
    kind, value = args.keep
    damaged = []
    before = 0 if args.dry_run else archive.make_room()
    with archive.removing():
        parts = layout.list_parts(archive.path, recorders=args.recorders, damaged=damaged)
        chosen = (too_old if kind == "age" else too_many)(parts, value)
        freed = sum(part.stored() for part in chosen)
        packets = sum(part.meta["packets"]["rows"] for part in chosen)
        last = max((part.last_ns for part in chosen), default=None)
        if chosen and not args.dry_run:
            remove(archive, chosen)
    if args.json:
        document.write(
            "prune",
            {
                "parts": [part.name for part in chosen],
                "bytes": freed,
                "packets": packets,
                "last_ns": last,
                "left": len(parts) - len(chosen),
                "dry_run": args.dry_run,
                "removed_before": before,
            },
        )
        return 0
    if before:
        show.say(f"removed {before} parts, as a change was not completed for lack of space; it is now")
    show.say(
        f"{'would remove' if args.dry_run else 'removed'} {len(chosen)} of {len(parts)} parts, {packets} packets, "
        f"{show.size(freed)}" + (f", up to {units.moment_text(last)}" if chosen else "")
    )
    for _, error in damaged:
        show.say(f"left alone: {error}")
    return 0
