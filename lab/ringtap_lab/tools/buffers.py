# SPDX-License-Identifier: BSD-3-Clause
"""The addresses of successive packets, from the samples that ringtap-fwd takes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy

from . import iotlb

if TYPE_CHECKING:
    from typing import Any

    from ..run.lab import Lab

ENTRIES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)  # sizes of the modelled IOTLB
PAGES = {"4k": 4096, "2m": 2 << 20, "1g": 1 << 30}
SHOWN = 1500  # points of a plot
SUCCESSIVE = 1024  # packets, whose pages are counted


class TooFew(RuntimeError):
    """Fewer samples than requested: the machine is too slow, or the run was too disturbed."""


class Samples:
    """A file of them, removed at the end of the context."""

    def __init__(self, lab: Lab):
        self.path = os.path.join(lab.folder(), lab.unique("samples"))
        self._table = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)

    def window(self, role: str, stage: Any, length: Any) -> Any:
        """Addresses of the last `length` packets that a role (by number) received in that stage; of
        samples of every packet."""
        if self._table is None:
            self._table = numpy.loadtxt(
                self.path, dtype=numpy.int64, delimiter=",", skiprows=1, usecols=(0, 2, 4), ndmin=2
            )
        mine = self._table[(self._table[:, 0] == role) & (self._table[:, 1] == stage)]
        if len(mine) < length:
            raise TooFew(
                f"stage {stage}: {len(mine)} packets, fewer than {length}: the machine is too slow, or too disturbed"
            )
        return mine[-length:, 2]


def order(addresses: Any, stride: Any) -> float:
    """Share of packets whose buffer is not the neighbour of the one before: 0 in order, 1 at random. The
    beginning of the pool counts as well: once in a round."""
    steps = numpy.diff(addresses)
    # A pool of several pieces has gaps between them, which are not steps out of order.
    return float(numpy.mean((steps < stride) | (steps >= 2 * stride)))


def describe(addresses: Any, memory: Any) -> tuple:
    """(numbers, misses per packet by page size and entries) of two rounds through the pool. memory: of
    ringtap-fwd's report."""
    own = memory["page_bytes"]
    half = len(addresses) // 2
    curves = {name: iotlb.miss_rates(addresses, size, ENTRIES, half) for name, size in PAGES.items()}
    at = dict(zip(ENTRIES, iotlb.miss_rates(addresses, own, ENTRIES, half)))
    successive = addresses[half : half + SUCCESSIVE]
    found = {
        "out_of_order": order(addresses, memory["stride_bytes"]),
        "buffers": len(numpy.unique(addresses[half:])),
        "pages_4k": iotlb.pages_touched(successive, 4096),
        "pages_own": iotlb.pages_touched(successive, own),
    }
    return found | {f"misses_{e}": at[e] for e in (16, 64, 256, 1024, 4096)}, curves


def offsets(addresses: Any, memory: Any) -> list:
    """For a plot: KiB from the beginning of the pool, of SHOWN packets out of all."""
    some = addresses[numpy.linspace(0, len(addresses) - 1, SHOWN).astype(int)]
    return [int(v) for v in (some - memory["base"]) // 1024]
