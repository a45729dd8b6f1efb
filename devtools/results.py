# SPDX-License-Identifier: BSD-3-Clause
"""The table of the last results in docs/testing.md, from docs/results.json.

usage: results.py add NAME STATUS SECONDS   notes the end of a part of make nightly, with that exit status
       results.py outcomes FILE...          notes runs of devtools/run_tests.py, by the files that it writes; not runs of some tests
       results.py write | check             puts the table into docs/testing.md; prints if it is not there"""

import json
import sys
from datetime import date
from pathlib import Path

import run_tests

REPO = Path(__file__).resolve().parent.parent
PAGE, RESULTS = REPO / "docs" / "testing.md", REPO / "docs" / "results.json"
BEGIN, END = "<!-- made by results.py -->\n", "<!-- end -->\n"


def read():
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def note(name, seconds, result, day, revision):
    results = {**read(), name: {"date": day, "revision": revision, "seconds": seconds, "result": result}}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def summary(run):
    """The result of a run, whose file run_tests.py has written."""
    every, other = len(run["outcomes"]), [(run["skipped"], "skipped")]
    other += [(len(run[what]), what) for what in ("flaky", "failed")]
    parts = [f"{every - sum(n for n, _ in other)} of {every} passed"]
    return ", ".join(parts + [f"{n} {what}" for n, what in other if n])


def table():
    lines = ["| | last run | revision | time | result |", "|---|---|---|---|---|"]
    for name, one in sorted(read().items()):
        minutes, seconds = divmod(one["seconds"], 60)
        lines.append(f"| {name} | {one['date']} | {one['revision']} | {minutes}:{seconds:02} | {one['result']} |")
    return "\n".join(lines) + "\n"


def page():
    """The page with the table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def main(words):
    if words[:1] == ["add"] and len(words) == 4:
        status = int(words[2])
        note(
            words[1],
            int(words[3]),
            {0: "passed", 124: "stopped after its time"}.get(status, f"failed (status {status})"),
            str(date.today()),
            run_tests.revision(),
        )
        PAGE.write_text(page(), encoding="utf-8")
    elif words[:1] == ["outcomes"]:
        for name in words[1:]:
            run = json.loads(Path(name).read_text(encoding="utf-8"))
            if run["selection"]:
                print(f"{name}: not noted, a run of some tests: {run['selection']}")
                continue
            short = Path(name).stem.removeprefix("outcomes-")
            note(short, int(run["seconds"]), summary(run), run["date"], run["revision"])
    elif words == ["check"]:
        if PAGE.read_text(encoding="utf-8") != page():
            print("docs/testing.md: not the table of docs/results.json: devtools/results.py write")
            return 1
    elif words == ["write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
