# SPDX-License-Identifier: BSD-3-Clause
"""JSON documents with the first keys of all commands: docs/interface.md, and json_document() of base/json.c."""

from __future__ import annotations

import json
import math
import socket
import time
from typing import TYPE_CHECKING

from . import decoder

if TYPE_CHECKING:
    from typing import Any

SCHEMA = 1
INTEGER_MAX = 2**53
# Keys of tables that are points in time, and ids, whose values need more digits than a double has.
TIMES = {"first_ns": "first", "last_ns": "last", "in_ns": "in", "time_ns": "time"}
IDS = ("flow_id", "digest")


def moment(ns: int) -> str | None:
    """ "2026-11-27T14:30:00.123456789Z"; None: null."""
    if ns is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + f".{ns % 10**9:09}Z"


def _pair(key: str, value: Any):
    if key in TIMES:
        return TIMES[key], moment(value)
    return key, str(value) if key in IDS and value is not None else plain(value)


def plain(value: Any) -> Any:
    """A value as a document has it: numbers of 9 digits, integers that a double holds, points in time as texts."""
    if isinstance(value, dict):
        return dict(_pair(key, one) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > INTEGER_MAX:
        return str(value)
    return value


def make(command: str, content: dict) -> dict:
    return {
        "schema": SCHEMA,
        "ringtap": decoder.version(),
        "command": f"archive {command}",
        "time": moment(time.time_ns()),
        "host": socket.gethostname(),
        "applications": [],
        **plain(content),
    }


def write(command: str, content: dict, indent: int | None = None) -> None:
    print(json.dumps(make(command, content), indent=indent), flush=True)
