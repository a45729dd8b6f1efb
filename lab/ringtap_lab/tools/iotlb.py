# SPDX-License-Identifier: BSD-3-Clause
"""A model of an IOTLB, or of any other cache of address translations: fully associative, least
recently used entry replaced. A device that writes received packets into buffers looks up the
page of each.

Mattson and others: Evaluation techniques for storage hierarchies (1970): such a cache
of E entries holds a page if and only if fewer than E different pages were used since its last use. So
one pass over a trace gives the misses for every E. With prev(i) the index of the last use of page i
before i, and -1 if there was none, the number of different pages between both is

    D(i) = #{j < i: prev(j) <= prev(i)} - (prev(i) + 1)

because each page in between counts once, at its first use there, where prev(j) <= prev(i); and all
prev(i) + 1 uses up to prev(i) fulfil that too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from typing import Any

NEVER = 1 << 62  # distance of a first use: a miss whatever the size


def _previous(pages: Any):
    """Index of the last use before, -1 if none."""
    order = numpy.argsort(pages, kind="stable")
    same = pages[order][1:] == pages[order][:-1]
    previous = numpy.full(len(pages), -1, dtype=numpy.int64)
    previous[order[1:][same]] = order[:-1][same]
    return previous


def _not_greater_before(values: Any):
    """For each, how many of those before it are not greater. By merging sorted halves: O(n log² n), all
    in numpy."""
    n = len(values)
    size = 1 << max(n - 1, 1).bit_length()
    padded = numpy.full(size, n, dtype=numpy.int64)  # greater than all; behind all
    padded[:n] = values
    counts = numpy.zeros(size, dtype=numpy.int64)
    width = 1
    while width < size:
        halves = padded.reshape(-1, 2, width)
        apart = (numpy.arange(len(halves), dtype=numpy.int64) * (n + 2))[:, None]
        left = numpy.sort(halves[:, 0, :], axis=1) + apart
        right = halves[:, 1, :] + apart
        found = numpy.searchsorted(left.ravel(), right.ravel(), side="right").reshape(right.shape)
        found -= numpy.arange(len(halves))[:, None] * width
        counts.reshape(-1, 2, width)[:, 1, :] += found
        width *= 2
    return counts[:n]


def distances(pages: Any) -> Any:
    """Number of other pages used since the last use of each page of the trace; NEVER at its first."""
    pages = numpy.asarray(pages, dtype=numpy.int64)
    if not len(pages):
        return numpy.zeros(0, dtype=numpy.int64)
    previous = _previous(pages)
    found = _not_greater_before(previous) - (previous + 1)
    return numpy.where(previous < 0, NEVER, found)


def miss_rates(addresses: Any, page_bytes: Any, entries: Any, warm_up: int = 0) -> list:
    """Misses per packet for each number of entries, without the first warm_up packets, which only
    fill the cache. addresses: of the buffers, in order of use."""
    found = distances(numpy.asarray(addresses, dtype=numpy.int64) // page_bytes)[warm_up:]
    return [float(numpy.mean(found >= e)) if len(found) else 0.0 for e in entries]


def pages_touched(addresses: Any, page_bytes: Any) -> int:
    return len(numpy.unique(numpy.asarray(addresses, dtype=numpy.int64) // page_bytes))
