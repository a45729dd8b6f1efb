# SPDX-License-Identifier: BSD-3-Clause
"""Applications and errors."""

from __future__ import annotations

import errno
import math
import typing
from typing import TYPE_CHECKING

from ._ringtap import ffi, lib

if TYPE_CHECKING:
    from typing import Any


class Error(OSError):
    """An error of the C library: errno and a message."""


class App(typing.NamedTuple):
    """A DPDK application: its name, as `ringtap list` shows it, and its runtime folder."""

    name: str
    dir: str


def text(pointer: Any) -> str:
    return ffi.string(pointer).decode(errors="replace")


def check(code: int, message: str = "") -> int:
    """Raises Error for a negative code; returns others."""
    if code < 0:
        raise Error(-code, message or errno.errorcode.get(-code, "unknown error"))
    return code


def version() -> str:
    """The version of the C library."""
    return text(lib.ringtap_version())


def apps() -> list[App]:
    """The applications that are alive: a list of App."""
    out = ffi.new("struct ringtap_apps **")
    check(lib.ringtap_apps_find(out))
    try:
        return [
            App(text(lib.ringtap_apps_name(out[0], i)), text(lib.ringtap_apps_dir(out[0], i)))
            for i in range(lib.ringtap_apps_count(out[0]))
        ]
    finally:
        lib.ringtap_apps_free(out[0])


def resolve(source: str) -> tuple:
    """APP or APP:PORT to (App, port or None)."""
    alive = apps()
    for app in alive:
        if app.name == source:
            return app, None
    for app in sorted(alive, key=lambda a: -len(a.name)):
        if source.startswith(app.name + ":"):
            return app, source[len(app.name) + 1 :]
    raise Error(errno.ENOENT, f"no application for {source!r}; 'ringtap list' shows what there is")


def timeout_ms(seconds: float) -> int | None:
    if not 0 <= seconds <= 1000000:
        raise ValueError("timeout is a number of seconds, 0 for the default")
    return math.ceil(seconds * 1000)
