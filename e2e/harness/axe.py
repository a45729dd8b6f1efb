# SPDX-License-Identifier: BSD-3-Clause
"""axe-core, which finds what keeps people with a screen reader or a keyboard from using a page. It is fetched from
the npm registry once, by version and hash: 550 kB for one test are no part of this repository."""

import hashlib
import subprocess
import tarfile

from .paths import BUILD

ARCHIVE = "axe-core-4.10.3.tgz"
SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"
SERIOUS = """axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations
  .filter((v) => v.impact === "serious" || v.impact === "critical")
  .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n["html"].slice(0, 200)).join(" | ")}`))"""


def source():
    """Its script; None: npm is not installed, or the registry cannot be reached."""
    folder = BUILD / "axe"
    archive = folder / ARCHIVE
    if not archive.exists():
        folder.mkdir(exist_ok=True)
        name = ARCHIVE.removesuffix(".tgz").replace("core-", "core@")
        try:
            subprocess.run(["npm", "pack", name], cwd=folder, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return None
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found == SHA256, f"{archive} is not the release: {found}"
    with tarfile.open(archive) as tar:
        return tar.extractfile("package/axe.min.js").read().decode()


def faults(shown):
    """Serious faults of a page that is open, one text each."""
    shown.ask(f"{source()}; null")
    return shown.run(SERIOUS)
