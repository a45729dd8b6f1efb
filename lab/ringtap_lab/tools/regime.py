# SPDX-License-Identifier: BSD-3-Clause
"""Which regime the machine is in: a hypervisor moves a virtual machine's CPUs between cores, from one second to the next, and the
time that a cache line takes from one to the other changes by a factor of five (docs/performance.md)."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from . import process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..run.lab import Lab

PROGRAM = "bench/machine_probe"
CORE, NEAR, FAR, MIXED = "core", "near", "far", "mixed"
MEANING = {
    CORE: "both CPUs are halves of one core",
    NEAR: "they share a cache",
    FAR: "they share none",
    MIXED: "it changed meanwhile",
}
# Writing a line that the other CPU has just read, in a cache that both share: 1.1 ns where that is the L2, 7 ns where it is the L3.
CORE_WRITE_NS = 3
# One way, of a written line. Cores with a common L3: 30 to 60 ns. Those without one, or of different sockets: 100 ns and more.
NEAR_LINE_NS = 80


def probe(lab: Lab) -> dict:
    """The output of bench/machine_probe."""
    status, out, err = process.run([lab.built(PROGRAM), *map(str, lab.cpus)])
    if status != 0:
        raise RuntimeError(f"{PROGRAM} ended with status {status}: {err.strip()}")
    return json.loads(out)


def _of(found: dict):
    if found["write_ns"] < CORE_WRITE_NS:
        return CORE
    return NEAR if found["line_ns"] < NEAR_LINE_NS else FAR


def of(probes: list[dict]) -> str:
    """The regime that these probes agree on."""
    regimes = {_of(p) for p in probes}
    return regimes.pop() if len(regimes) == 1 else MIXED


class Round:
    """A measurement between two probes. regime is known when the context has been left."""

    def __init__(self):
        self.probes, self.regime = [], None


@contextlib.contextmanager
def around(lab: Lab) -> Iterator:
    found = Round()
    found.probes.append(probe(lab))
    yield found
    found.probes.append(probe(lab))
    found.regime = of(found.probes)
