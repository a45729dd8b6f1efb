# SPDX-License-Identifier: BSD-3-Clause
"""axe-core, which finds what keeps people with a screen reader or a keyboard from using a page: e2e/web/axe."""

import lzma

from .paths import REPO

SERIOUS = """axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations
  .filter((v) => v.impact === "serious" || v.impact === "critical")
  .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n["html"].slice(0, 200)).join(" | ")}`))"""


def faults(shown):
    """Serious faults of a page that is open, one text each."""
    script = lzma.decompress((REPO / "e2e" / "web" / "axe" / "axe.min.js.xz").read_bytes()).decode()
    shown.ask(f"{script}; null")
    return shown.run(SERIOUS)
