# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/drivers.md, from docs/drivers.json, the last result of `make qemu`.

usage: drivers_table.py merge RESULT     puts the result of some cards into docs/drivers.json, for those of before
       drivers_table.py write | check    puts the tables into docs/drivers.md; fails if they are not there"""

import json
import re
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
PAGE, RESULT = REPO / "docs" / "drivers.md", REPO / "docs" / "drivers.json"
CARDS = ["e1000", "e1000e", "igb", "vmxnet3", "virtio-net-pci"]
CHECKS = [
    "list",
    "record",
    "rss_hash",
    "stripped_vlan",
    "tso",
    "mbuf_fast_free",
    "link_goes_down_and_comes_up",
    "missed_packets",
    "unplugged",
    "iotlb",
]
UNKNOWN = "the reason was not kept when this ran, and it has not run to its end since"
BEGIN = "<!-- made by drivers_table.py: {} -->\n"


def text(check):
    return check.replace("_", " ")


def summary(data):
    """A row for each check, a column for each card."""
    cards = [c for c in CARDS if any(r["card"] == c for r in data["results"])]
    cells = {(r["card"], r["check"]): r["result"] for r in data["results"]}
    lines = [
        "| | " + " | ".join(f"{c} (QEMU {data['qemu'][c]})" if c in data["qemu"] else c for c in cards) + " |",
        "|---|" + "---|" * len(cards),
    ]
    for check in CHECKS:
        found = [cells.get((c, check), "–") for c in cards]
        lines.append(
            f"| {text(check)} | "
            + " | ".join(r if r in ("passed", "failed", "not run", "–") else "not there" for r in found)
            + " |"
        )
    return lines


def details(data):
    """Results of checks that passed, and reasons of others that failed or did not run."""
    lines = ["| card | check | what was found |", "|---|---|---|"]
    for r in data["results"]:
        found = r["result"]
        if found == "passed":
            found = r["seen"]
        elif found in ("failed", "not run"):
            found += f": {r['seen'] or UNKNOWN}"
        if found:
            lines.append(f"| {r['card']} | {text(r['check'])} | {found.replace('|', ' ')} |")
    return lines


def page():
    """docs/drivers.md with the tables of docs/drivers.json."""
    data, out = json.loads(RESULT.read_text()), PAGE.read_text()
    for name, table in (("summary", summary), ("details", details)):
        begin = BEGIN.format(name)
        made = begin + "\n".join(table(data)) + "\n"
        out, count = re.subn(re.escape(begin) + r"(\|.*\n)*", lambda _, made=made: made, out)
        if count != 1:
            sys.exit(f"docs/drivers.md: the line '{begin.strip()}' must be there once")
    return out


def merge(path):
    """Checks that did not run again stay."""
    new = json.loads(Path(path).read_text())
    ran = {(r["card"], r["check"]) for r in new["results"]}
    if RESULT.exists():
        old = json.loads(RESULT.read_text())
        new["results"] += [r for r in old["results"] if (r["card"], r["check"]) not in ran]
        new["qemu"] = old["qemu"] | new["qemu"]
    new["results"].sort(key=lambda r: (CARDS.index(r["card"]), CHECKS.index(r["check"])))
    RESULT.write_text(json.dumps(new, indent=1) + "\n")


def main(what, *args):
    if what == "merge":
        merge(*args)
    elif what == "write":
        PAGE.write_text(page())
    elif page() != PAGE.read_text():
        sys.exit(
            "docs/drivers.md: the tables are not those of docs/drivers.json: "
            "run 'python3 devtools/drivers_table.py write'"
        )


main(*sys.argv[1:])
