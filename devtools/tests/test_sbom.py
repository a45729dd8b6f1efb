# SPDX-License-Identifier: BSD-3-Clause
"""The bill of materials names each package once, with all relations, and is the same for the same lines."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "sbom.py"
LINES = """package ringtap 0.1.0 BSD-3-Clause
contains libpcap0.8 1.10.0-2
contains uPlot 1.6.32 MIT
package ringtap-probe 0.1.0 BSD-3-Clause
contains libpcap0.8 1.10.0-2
depends libc6
depends ringtap
"""


def test_packages_and_relations():
    def made():
        env = {"SOURCE_DATE_EPOCH": "86400"}
        return subprocess.run(
            [sys.executable, SCRIPT, "test"], input=LINES, env=env, text=True, check=True, capture_output=True
        ).stdout

    document = json.loads(made())
    assert made() == made() and document["creationInfo"]["created"] == "1970-01-02T00:00:00Z"
    assert [(p["name"], p["versionInfo"], p["licenseDeclared"]) for p in document["packages"]] == [
        ("ringtap", "0.1.0", "BSD-3-Clause"),
        ("libpcap0.8", "1.10.0-2", "NOASSERTION"),
        ("uPlot", "1.6.32", "MIT"),
        ("ringtap-probe", "0.1.0", "BSD-3-Clause"),
        ("libc6", "NOASSERTION", "NOASSERTION"),
    ]
    ids = {p["SPDXID"] for p in document["packages"]} | {document["SPDXID"]}
    relations = [tuple(r.values()) for r in document["relationships"]]
    assert len(relations) == 7 and all(a in ids and b in ids for a, _, b in relations)
    assert ("SPDXRef-ringtap-probe-0.1.0", "DEPENDS_ON", "SPDXRef-libc6") in relations
    assert ("SPDXRef-ringtap-probe-0.1.0", "DEPENDS_ON", "SPDXRef-ringtap-0.1.0") in relations
    assert ("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-ringtap-0.1.0") in relations
