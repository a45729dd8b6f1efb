# SPDX-License-Identifier: BSD-3-Clause
"""Replacements for parts that need programs."""

import argparse
from types import SimpleNamespace


def lab(**more):
    options = {"quick": True, "latency_packets": None, "overhead_seconds": None, **more}
    return SimpleNamespace(
        o=argparse.Namespace(**options),
        quick=options["quick"],
        cpus=[0, 1],
        repetitions=2,
        spare_s=lambda budget_s: more.get("spare_s", 1000.0),
        prepared=more.get("prepared"),
    )
