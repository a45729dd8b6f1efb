# SPDX-License-Identifier: BSD-3-Clause
"""Times of the command line, as ringtap's own programs take them."""

from __future__ import annotations

import argparse
import re

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """Seconds of "500ms" or "5s"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]+)", text)
    if not found or found[2] not in UNITS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time; give a number with ms, s, min or h")
    return float(found[1]) * UNITS[found[2]]
