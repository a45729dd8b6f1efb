# SPDX-License-Identifier: BSD-3-Clause
"""Several measurements of one thing: median, least and most, mean and standard deviation."""

from __future__ import annotations

import statistics

DISTURBED = 0.03  # share of the time waiting for a cpu from which a measurement counts as disturbed


class Series(list):
    """Values; beside each, how much other programs disturbed its measurement (0 to 1)."""

    def __init__(self):
        super().__init__()
        self.disturbed = []

    def add(self, value: float, disturbed: float = 0.0) -> None:
        self.append(value)
        self.disturbed.append(disturbed)

    def calm(self) -> Series:
        """Only undisturbed values, if there are some."""
        calm = Series()
        for value, disturbed in zip(self, self.disturbed):
            if disturbed < DISTURBED:
                calm.add(value, disturbed)
        return calm or self

    def median(self) -> float | None:
        return statistics.median(self) if self else None

    def mean(self) -> float | None:
        return statistics.fmean(self) if self else None

    def deviation(self) -> float | None:
        """Standard deviation of the sample; None where there are fewer than two."""
        return statistics.stdev(self) if len(self) > 1 else None

    def summary(self) -> dict[str, int]:
        return {"median": self.median(), "min": min(self), "max": max(self), "n": len(self)}


def cell(series: Series, scale: float = 1.0, digits: int = 1) -> str:
    """ "median (min–max)", or a dash."""
    if not series:
        return "–"
    low, mid, high = min(series) * scale, series.median() * scale, max(series) * scale
    if len(series) == 1:
        return f"{mid:.{digits}f}"
    return f"{mid:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"
