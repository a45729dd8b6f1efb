# SPDX-License-Identifier: BSD-3-Clause
"""Which CPUs are halves of one core."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .clock import read

if TYPE_CHECKING:
    from typing import Any


def _siblings(cpu: int):
    """Text that all CPUs of a core have in common."""
    return read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu)


def spread(cpus: list[int] | None = None, siblings: Any = _siblings) -> Any:
    """CPUs (those that may be used), first one of each core, then the others."""
    first, rest, seen = [], [], set()
    for cpu in sorted(os.sched_getaffinity(0) if cpus is None else cpus):
        core = siblings(cpu)
        (rest if core in seen else first).append(cpu)
        seen.add(core)
    return first + rest


def cores(cpus: list[int], siblings: Any = _siblings) -> int:
    """Number of cores that these CPUs are of."""
    return len({siblings(cpu) for cpu in cpus})
