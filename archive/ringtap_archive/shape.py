# SPDX-License-Identifier: BSD-3-Clause
"""Shape of the values of a meta.json. Others may have written it: another shape is damage, so later code need not
check it. Other keys are of a later version, and nothing reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

TEXT = str
FLAG = bool
MAX = 1 << 20  # entries of a list
TEXT_MAX = 8192


class Maybe:
    """Null, or of this shape; a key with it may be missing."""

    def __init__(self, shape: Any):
        self.shape = shape


COUNT, INDEX = range(1 << 63), range(1 << 31)
TIME = range(-(1 << 63), 1 << 63)
U8, U16, U32 = range(1 << 8), range(1 << 16), range(1 << 32)

SOURCE = {
    "name": TEXT,
    "bytes": Maybe(COUNT),
    "sha256": Maybe(TEXT),
    "parts": Maybe(COUNT),
    "part": Maybe(COUNT),
    "salvaged": Maybe(TEXT),
}
INTERFACE = {
    "index": INDEX,
    "name": Maybe(TEXT),
    "description": Maybe(TEXT),
    "app": Maybe(TEXT),
    "port": Maybe(U32),
    "linktype": U16,
    "snaplen": U32,
    "tsresol": U8,
    "tsoffset": Maybe(TIME),
    "sample": Maybe(COUNT),
    "first": Maybe(TEXT),
    "packets": Maybe(COUNT),
}
LOSS = {
    "time_ns": Maybe(TIME),
    "interface": Maybe(INDEX),
    "queue": Maybe(U32),
    "direction": Maybe(TEXT),
    "packets": COUNT,
    "reason": TEXT,
}
CLOCK = {
    "reports": COUNT,
    "unsynchronized": COUNT,
    "synchronized": Maybe(FLAG),
    "max_error_ns": Maybe(COUNT),
    "estimated_error_ns": Maybe(COUNT),
    "set": [{"time_ns": TIME, "by_ns": TIME}],
    "set_beyond": COUNT,
}
ORIGIN = {"source": SOURCE, "sources": Maybe([SOURCE])}
_TABLE = {"file": TEXT, "rows": COUNT, "bytes": COUNT, "sha256": TEXT}
META = {
    "format": COUNT,
    "recorder": TEXT,
    "source": SOURCE,
    "sources": Maybe([SOURCE]),
    "pcapng": {"file": TEXT, "bytes": COUNT, "sha256": TEXT, "uncompressed": COUNT, "frames": COUNT},
    "packets": {**_TABLE, "flowless": Maybe(COUNT)},
    "flows": _TABLE,
    "first_ns": TIME,
    "last_ns": TIME,
    "late": FLAG,
    "lean": FLAG,
    "later": Maybe(FLAG),
    "interfaces": [INTERFACE],
    "losses": [LOSS],
    "losses_beyond": Maybe(COUNT),
    "clock": Maybe(CLOCK),
    "comment": Maybe(TEXT),
    "versions": Maybe({"decoder": Maybe(TEXT)}),
}


def check(value: Any, shape: Any, name: str) -> None:
    """Raises ValueError with the name of the value of another shape. Sets missing optional keys to null."""
    if isinstance(shape, Maybe):
        if value is not None:
            check(value, shape.shape, name)
    elif isinstance(shape, dict):
        _check(isinstance(value, dict), name)
        for key, of in shape.items():
            _check(key in value or isinstance(of, Maybe), f"{name}.{key}")
            check(value.setdefault(key, None), of, f"{name}.{key}")
    elif isinstance(shape, list):
        _check(isinstance(value, list) and len(value) <= MAX, name)
        for entry in value:
            check(entry, shape[0], name)
    elif isinstance(shape, range):
        _check(type(value) is int and value in shape, name)
    else:
        _check(type(value) is shape and (shape is not TEXT or _is_text(value)), name)


def _is_text(value: str):
    """A surrogate alone can neither be printed nor be written to a file."""
    return len(value) <= TEXT_MAX and not any("\ud800" <= c <= "\udfff" for c in value)


def _check(good: bool, name: str):
    if not good:
        raise ValueError(f"{name[1:] or 'all of it'} is missing, or not what ringtap writes")
