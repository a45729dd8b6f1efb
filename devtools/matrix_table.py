# SPDX-License-Identifier: BSD-3-Clause
"""The table of docs/dpdk.md of what was tested with which DPDK, from docs/matrix.json, the last result of `make matrix`.

usage: matrix_table.py merge RESULT SUITE_RESULT...   puts the suites' results into RESULT, for those of before
       matrix_table.py write | check                  puts the table there; fails if it is not there"""

import json
import re
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
PAGE, RESULT = REPO / "docs" / "dpdk.md", REPO / "docs" / "matrix.json"
BEGIN = "<!-- made by matrix_table.py -->\n"
WAYS = {"fresh": "started", "running": "attached"}
NAMES = {
    "testpmd": "`dpdk-testpmd`",
    "ovs": "Open vSwitch",
    "shared": "four examples, shared DPDK",
    "static": "four examples, static DPDK",
}


def key(result):
    return result["application"], result["way"], result["check"]


def merge(path, parts):
    """Keeps results that a part of the matrix did not run again."""
    suites = {s["system"]: s for s in json.loads(path.read_text())["suites"]} if path.exists() else {}
    for part in parts:
        suite = json.loads(Path(part).read_text())
        ran = {key(r) for r in suite["results"]}
        before = suites.get(suite["system"], {"dpdk": None, "results": []})
        if before["dpdk"] == suite["dpdk"]:
            suite["results"] += [r for r in before["results"] if key(r) not in ran]
        suites[suite["system"]] = suite
    order = sorted(suites.values(), key=lambda s: [int(part) for part in s["dpdk"].split(".")])
    path.write_text(json.dumps({"suites": order}, indent=1) + "\n")


def group(application):
    """The row in which an application is."""
    return application if application in NAMES else application.rsplit("-", 1)[1]


def verdict(results):
    """Result of the checks of the applications of one row and one way; None if none of them ran."""
    ran = [r for r in results if r["result"] in ("passed", "failed")]
    failed = sorted({r["check"] for r in ran if r["result"] == "failed"})
    skipped = sorted({r["check"] for r in results} - {r["check"] for r in ran})
    if not ran:
        return None
    if failed:
        return "fails: " + ", ".join(failed)
    return "all" if not skipped else "all but " + ", ".join(skipped)


def cell(suite, name):
    rows = [r for r in suite["results"] if group(r["application"]) == name]
    found = {text: verdict([r for r in rows if r["way"] == way]) for way, text in WAYS.items()}
    return "; ".join(f"{text}: {what}" for text, what in found.items() if what) or "–"


def table(suites):
    heads = [f"{s['dpdk']}, {s['system'].replace('GNU/Linux ', '')}" for s in suites]
    lines = ["| DPDK | " + " | ".join(heads) + " |", "|---|" + "---|" * len(suites)]
    for name, text in NAMES.items():
        lines.append(f"| {text} | " + " | ".join(cell(s, name) for s in suites) + " |")
    return "\n".join(lines) + "\n"


def page():
    """The page with the table of docs/matrix.json."""
    made = BEGIN + table(json.loads(RESULT.read_text())["suites"])
    text, count = re.subn(re.escape(BEGIN) + r"(\|.*\n)*", lambda _: made, PAGE.read_text())
    if count != 1:
        sys.exit(f"docs/dpdk.md: the line '{BEGIN.strip()}' must be there once")
    return text


def main(what, *args):
    if what == "merge":
        merge(Path(args[0]), args[1:])
    elif what == "write":
        PAGE.write_text(page())
    elif page() != PAGE.read_text():
        sys.exit(
            "docs/dpdk.md: the table is not that of docs/matrix.json: run 'python3 devtools/matrix_table.py write'"
        )


main(*sys.argv[1:])
