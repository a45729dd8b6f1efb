# SPDX-License-Identifier: BSD-3-Clause
"""CPU time of other programs and other virtual machines during a measurement."""

from __future__ import annotations

import os
import resource

_USER, _NICE, _SYSTEM, _STEAL = 0, 1, 2, 7  # columns of /proc/stat


def _ticks():
    with open("/proc/stat", encoding="ascii") as f:
        return [int(x) for x in f.readline().split()[1:9]]


def _own_s():
    """CPU seconds of this process and those of its children that have ended."""
    return sum(
        u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


class Around:
    """shares() of the time of all CPUs since it was made. All programs that were started since must have ended."""

    def __init__(self):
        self._ticks, self._own_s = _ticks(), _own_s()

    def shares(self) -> dict[str, float]:
        """others: processes that are not ours. steal: the hypervisor ran another machine."""
        spent = [b - a for a, b in zip(self._ticks, _ticks())]
        total = max(sum(spent), 1)
        hz = os.sysconf("SC_CLK_TCK")
        own = (_own_s() - self._own_s) * hz
        busy = spent[_USER] + spent[_NICE] + spent[_SYSTEM]
        return {"others": round(min(max(busy - own, 0) / total, 1), 4), "steal": round(spent[_STEAL] / total, 4)}
