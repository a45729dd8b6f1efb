# SPDX-License-Identifier: BSD-3-Clause
"""Several measurements of one thing: median, least and most."""
import statistics


class Series(list):
    def median(self):
        return statistics.median(self) if self else None

    def summary(self):
        if not self:
            return None
        return {"median": self.median(), "min": min(self), "max": max(self), "n": len(self)}


def cell(series, scale=1.0, digits=1):
    """"median (min–max)", or a dash."""
    if not series:
        return "–"
    low, mid, high = min(series) * scale, series.median() * scale, max(series) * scale
    if len(series) == 1:
        return f"{mid:.{digits}f}"
    return f"{mid:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"
