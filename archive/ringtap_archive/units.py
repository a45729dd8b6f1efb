# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, durations and times of options and output."""

from __future__ import annotations

import argparse
import re
import time
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

NS = 10**9
TIMES = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": NS,
    "m": 60 * NS,
    "min": 60 * NS,
    "h": 3600 * NS,
    "d": 86400 * NS,
}
_TIMES_MAX = 36500 * TIMES["d"]
SIZES = {"B": 1} | {
    prefix + unit: base ** (power + 1)
    for power, prefix in enumerate("KMGT")
    for unit, base in (("", 1024), ("iB", 1024), ("B", 1000))
}
SIZES = {"kB" if unit == "KB" else unit: n for unit, n in SIZES.items()} | {u.lower(): SIZES[u] for u in "KMGT"}
COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def _parse(text: str, units: dict[str, int], what: str, examples: Any):
    """As the programs in C: base/numbers.h."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([^0-9.]*)", text)
    if not found or (found[2] and found[2] not in units):
        raise argparse.ArgumentTypeError(f"{text}: not a {what}")
    value = Fraction(found[1])
    if found[2] not in units and value:
        raise argparse.ArgumentTypeError(f"'{text}' has no unit; {text}{examples[0]} or {text}{examples[1]}?")
    value *= units.get(found[2], 1)
    if value.denominator != 1:
        raise argparse.ArgumentTypeError(f"{text}: not a {what}")
    return int(value)


def size(text: str) -> int | None:
    """Bytes of "64K", "2T"; 0 needs no unit."""
    return _parse(text, SIZES, "size; give a number with K, M, G or T", "MK")


def count(text: str) -> int | None:
    """1,500,000 of "1.5M"."""
    return _parse(text, COUNTS, "number; give decimal digits, or some with k, M or G", "")


def positive(text: str) -> int:
    """A count above 0."""
    n = count(text)
    if not n:
        raise argparse.ArgumentTypeError(f"{text}: out of range; give 1 or more")
    return n


def duration(text: str) -> int:
    """Nanoseconds of "10s", "5min", "7d"; 0 needs no unit."""
    ns = _parse(text, TIMES, "time; give a number with ns, us, ms, s, min, h or d", ("s", "ms"))
    if ns > _TIMES_MAX:
        raise argparse.ArgumentTypeError(f"{text}: out of range; give 0 to 36500d")
    return ns


def signed_duration(text: str) -> int:
    """Also "-3ms"."""
    return -duration(text[1:]) if text.startswith("-") else duration(text.removeprefix("+"))


def _fraction(digits: str | None):
    return int((digits or "").ljust(9, "0")[:9])


def moment(text: str) -> int | None:
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


def moment_text(ns: int) -> str:
    """UTC, with all nanoseconds."""
    if ns is None:
        return "-"
    try:
        when = datetime.fromtimestamp(ns // NS, UTC)
    except (OverflowError, ValueError, OSError):  # beyond what a calendar has
        return f"@{ns // NS}.{ns % NS:09d}"
    return f"{when:%Y-%m-%dT%H:%M:%S}.{ns % NS:09d}Z"
