# SPDX-License-Identifier: BSD-3-Clause
"""Addresses: 16 bytes in the index, text for people, and `ip('…')` in SQL."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from .errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from re import Match

MAPPED = bytes(10) + b"\xff\xff"

# ip( 'literal' ), and what must not be searched for it: other literals, quoted names, comments.
_TOKEN = re.compile(
    r"""(?P<ip>\bip\s*\(\s*'(?P<text>[^']*)'\s*\))|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/""",
    re.IGNORECASE | re.DOTALL,
)
_CALL = re.compile(r"\bip\s*\(", re.IGNORECASE)


def packed(text: str) -> bytes:
    """The 16 bytes of an address, as the index has them."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        raise Refused(f"'{text}' is not an IP address; ip() takes one such as '10.0.0.1' or '2001:db8::1'") from None
    return MAPPED + address.packed if address.version == 4 else address.packed


def text(blob: bytes) -> str:
    """The address of 16 bytes; of other bytes, hexadecimal digits."""
    if len(blob) != 16:
        return blob.hex()
    if blob.startswith(MAPPED):
        return f"{blob[12]}.{blob[13]}.{blob[14]}.{blob[15]}"
    return str(ipaddress.IPv6Address(bytes(blob)))


def fold(sql: str, literal: Callable) -> str | None:
    """Replaces calls of ip() by literals, so that each engine can compare them with statistics and bloom filters."""

    def replacement(match: Match):
        return literal(packed(match["text"])) if match["ip"] else match[0]

    return _TOKEN.sub(replacement, sql)


def calls_remain(sql: str) -> bool:
    """Whether ip() is called with an argument that is not a literal."""
    return bool(_CALL.search(_TOKEN.sub(" ", sql)))


def text_function(every: Callable, let: Callable) -> str:
    """The expression of ip_text(b). `every` replaces all matches of a pattern; `let` gives a value a name, so that
    the expression has it once."""
    byte = "CAST(16 * (instr(d, substr(h, {a}, 1)) - 1) + instr(d, substr(h, {b}, 1)) - 1 AS STRING)"
    four = let("'0123456789ABCDEF'", "d", " || '.' || ".join(byte.format(a=at, b=at + 1) for at in range(25, 33, 2)))
    groups = every(
        "':' || " + " || ':' || ".join(f"substr(lower(h), {at}, 4)" for at in range(1, 33, 4)) + " || ':'",
        ":0{1,3}",
        ":",
    )
    runs = [":0" * n + ":" for n in range(8, 1, -1)]  # RFC 5952: the longest run of zeros, the first of equal ones
    squeezed = (
        "CASE "
        + " ".join(
            f"WHEN instr(s, '{run}') > 0 THEN substr(s, 1, instr(s, '{run}') - 1) || '::' || "
            f"substr(s, instr(s, '{run}') + {len(run)})"
            for run in runs
        )
        + " ELSE s END"
    )
    left = "CASE WHEN substr(s, 1, 2) = '::' THEN s ELSE substr(s, 2) END"
    right = "CASE WHEN right(s, 2) = '::' THEN s ELSE substr(s, 1, length(s) - 1) END"
    six = let(let(let(groups, "s", squeezed), "s", left), "s", right)
    return let("hex(b)", "h", f"CASE WHEN substr(h, 1, 24) = '{MAPPED.hex().upper()}' THEN {four} ELSE {six} END")
