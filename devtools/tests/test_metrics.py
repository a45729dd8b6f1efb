# SPDX-License-Identifier: BSD-3-Clause
"""docs/statistics.md, which is stable, names the metrics that ringtap export adds to those of common/metrics.h, and their labels."""

import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


def test_metrics_of_export_are_listed():
    names = re.findall(r'\.prometheus = "(\w+)"', (REPO / "cli/export/families.c").read_text(encoding="utf-8"))
    page = (REPO / "docs/statistics.md").read_text(encoding="utf-8")
    metrics = page[page.index("\n## Metrics\n") :]
    assert "flow_bits_per_second" in names
    for word in [*(f"ringtap_{name}" for name in names), "program", "dpdk", "probe", "work", "flow"]:
        assert f"`{word}`" in metrics, word
