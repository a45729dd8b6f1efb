# SPDX-License-Identifier: BSD-3-Clause
"""One module for each experiment, with an instance of its class as EXPERIMENT. A module put here is
found: there is no list to keep."""

from __future__ import annotations

import importlib
import pkgutil


def load() -> dict:
    """All experiments by name, in the order in which they stand in the report."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    found = sorted((m.EXPERIMENT for m in modules), key=lambda e: (e.order, e.name))
    return {e.name: e for e in found}
