# SPDX-License-Identifier: BSD-3-Clause
"""Priority of a benchmark over other programs of the machine."""

from __future__ import annotations

import os

AUTOGROUP = "/proc/self/autogroup"  # "/autogroup-25 nice 0": what counts between login sessions


def _autogroup():
    try:
        with open(AUTOGROUP, encoding="ascii") as f:
            return int(f.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def _set_autogroup(nice: int):
    try:
        with open(AUTOGROUP, "w", encoding="ascii") as f:
            f.write(str(nice))
    except OSError:
        pass  # then only niceness within the session counts


class Niceness:
    """Applies to this process and its children; release() restores the session's own."""

    def __init__(self, nice: int):
        self.session = None
        if nice == 0:
            return
        os.nice(nice)
        self.session = _autogroup()
        if self.session is not None:
            _set_autogroup(nice)

    def release(self) -> None:
        if self.session is not None:
            _set_autogroup(self.session)
