# SPDX-License-Identifier: BSD-3-Clause
"""Several measurements of one thing: median, least and most, mean and standard deviation."""

import statistics

DISTURBED = 0.03  # share of the time waiting for a cpu from which a measurement counts as disturbed


class Series(list):
    """Values; beside each, how much other programs disturbed its measurement (0 to 1)."""

    def __init__(self):
        super().__init__()
        self.disturbed = []

    def add(self, value, disturbed=0.0):
        self.append(value)
        self.disturbed.append(disturbed)

    def calm(self):
        """Only undisturbed values, if there are some."""
        calm = Series()
        for value, disturbed in zip(self, self.disturbed):
            if disturbed < DISTURBED:
                calm.add(value, disturbed)
        return calm or self

    def median(self):
        return statistics.median(self) if self else None

    def mean(self):
        return statistics.fmean(self) if self else None

    def deviation(self):
        """Standard deviation of the sample; None where there are fewer than two."""
        return statistics.stdev(self) if len(self) > 1 else None

    def summary(self):
        return {"median": self.median(), "min": min(self), "max": max(self), "n": len(self)}


def cell(series, scale=1.0, digits=1):
    """ "median (min–max)", or a dash."""
    if not series:
        return "–"
    low, mid, high = min(series) * scale, series.median() * scale, max(series) * scale
    if len(series) == 1:
        return f"{mid:.{digits}f}"
    return f"{mid:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"
