# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, durations and times as the commands take them, and as they print them."""

import argparse
import re
import time
from datetime import UTC, datetime

SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
NS = 10**9


def size(text):
    """Bytes of "64k", "2T"."""
    found = re.fullmatch(r"(\d+)([kmgtp]?)(i?b)?", text.strip().lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: not a size; give a number with K, M, G or T")
    return int(found[1]) * SIZES[found[2]]


def duration(text):
    """Nanoseconds of "10s", "5min", "7d"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h|d|w)", text.strip().lower())
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: not a time span; give a number with ms, s, min, h, d or w")
    return int(float(found[1]) * SECONDS[found[2]] * NS)


def _fraction(digits):
    return int((digits or "").ljust(9, "0")[:9])


def moment(text):
    """Nanoseconds since the epoch of "2026-11-24T10:00:00.5" (UTC unless an offset stands behind it),
    "2026-11-24 10:00", "2026-11-24", "@1764000000.25", "now", "-2h" (before now)."""
    text = text.strip()
    if text == "now":
        return time.time_ns()
    if text.startswith("-"):
        return time.time_ns() - duration(text[1:])
    found = re.fullmatch(r"@(\d+)(?:\.(\d{1,9}))?", text)
    if found:
        return int(found[1]) * NS + _fraction(found[2])
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?", text)
    try:
        if not found:
            raise ValueError
        when = datetime.fromisoformat(
            f"{found[1]}T{found[2] or '00:00'}{found[3] or ':00'}{found[5] or '+00:00'}".replace("Z", "+00:00")
        )
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text}: not a time; give 2026-11-24T10:00:00 (UTC), @SECONDS since 1970, now, or -2h"
        ) from None
    return int(when.timestamp()) * NS + _fraction(found[4])


def size_text(count):
    for unit in ("", "K", "M", "G", "T"):
        if count < 1000:
            return f"{count:.0f} {unit}B" if not unit or count >= 100 else f"{count:.3g} {unit}B"
        count /= 1000
    return f"{count:.3g} PB"


def moment_text(ns):
    """UTC, with all nanoseconds."""
    if ns is None:
        return "-"
    try:
        when = datetime.fromtimestamp(ns // NS, UTC)
    except (OverflowError, ValueError, OSError):  # beyond what a calendar has
        return f"@{ns // NS}.{ns % NS:09d}"
    return f"{when:%Y-%m-%dT%H:%M:%S}.{ns % NS:09d}Z"
