# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, times and tables for people."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

DASH = "–"


def printable(text: Any) -> str:
    """Text of others on one line, without characters that move the cursor or change the terminal or the order of letters."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def say(text: str, file: Any = None) -> None:
    """Prints a line that may contain text of others."""
    print(printable(text), file=file or sys.stdout, flush=True)


def warn(text: Any) -> None:
    """The same to standard error, with the name of the program."""
    say(f"ringtap: archive: {text}", sys.stderr)


def duration(ns: int, sign: bool = False) -> str:
    """ "812 ns", "20.1 ms": three digits."""
    if ns is None:
        return DASH
    size = abs(ns)
    for unit, name in ((1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")):
        if size < unit * 1000 or name == "s":
            break
    value = ns / unit
    digits = 0 if unit == 1 else max(0, 2 - len(str(int(abs(value)))) + 1)
    if size >= 1000 * 10**9:
        return f"{value:{'+' if sign else ''},.0f} s"
    return f"{value:{'+' if sign else ''}.{digits}f} {name}"


def estimate(ns: int, bound_ns: int) -> str:
    """ "+3.000 ms ± 105 us": as many digits as the bound allows for."""
    for unit, name in ((1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")):
        if abs(ns) < unit * 1000 or name == "s":
            break
    digits = max(0, len(str(unit)) - max(len(str(bound_ns)) - 1, 1))
    return f"{ns / unit:+,.{digits}f} {name} ± {duration(bound_ns)}"


def count(n: int) -> str:
    return DASH if n is None else f"{n:,}"


def si(value: float, unit: str = "") -> str:
    """ "1.23 M", "950 k": three digits."""
    for limit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit * 0.9995:
            value /= limit
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {name}{unit}"
    text = f"{value:.0f}" if value >= 99.95 or value == int(value) else f"{value:.{1 if value >= 9.995 else 2}f}"
    return f"{text} {unit}".rstrip()


def percent(part: int, whole: int) -> str:
    if not whole:
        return DASH
    share = 100 * part / whole
    return f"{share:.0f} %" if share in (0, 100) else f"{share:.3f} %" if share < 0.1 else f"{share:.2f} %"


def size(count: int) -> str:
    """ "1.23 GiB", "64 MiB": as format_bytes() of base/numbers.h."""
    for power, unit in reversed(list(enumerate(("KiB", "MiB", "GiB", "TiB"), 1))):
        if count >= 1023.5 * 1024 ** (power - 1):
            value = count / 1024**power
            return f"{value:.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    return f"{count:.0f} B"


# As packet/protocols.h has them.
PROTOCOLS = {
    1: "ICMP",
    2: "IGMP",
    4: "IPv4",
    6: "TCP",
    17: "UDP",
    41: "IPv6",
    47: "GRE",
    50: "ESP",
    51: "AH",
    58: "ICMPv6",
    89: "OSPF",
    103: "PIM",
    112: "VRRP",
    132: "SCTP",
}
ETHERTYPES = {
    0x0800: "IPv4",
    0x0806: "ARP",
    0x8100: "VLAN",
    0x86DD: "IPv6",
    0x8847: "MPLS",
    0x8848: "MPLS",
    0x8863: "PPPoE",
    0x8864: "PPPoE",
    0x88A8: "VLAN",
    0x88CC: "LLDP",
    0x88F7: "PTP",
    0x8809: "LACP",
}


def protocol(number: int) -> str:
    return DASH if number is None else PROTOCOLS.get(number, f"proto {number}")


def ethertype(number: int) -> str:
    return ETHERTYPES.get(number, f"0x{number:04x}")


def endpoint(address: str, port: int) -> str:
    if address is None:
        return DASH
    if not port:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def table(head: Any, rows: Any, right: Any = None) -> Iterator:
    """Lines. right: numbers of columns that are aligned right; all but the first where None."""
    rows = [[printable(x) for x in row] for row in rows]
    wide = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    right = set(range(1, len(head))) if right is None else set(right)
    for row in [head, *rows]:
        yield "  ".join(x.rjust(w) if i in right else x.ljust(w) for i, (x, w) in enumerate(zip(row, wide))).rstrip()
