#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests marked smoke with kernels of other releases of Debian, in QEMU with the programs of this machine: the guest's
root folder is a copy in memory, made as it is written to, of the host's.

usage: kernels.py run SUITE... [-- PYTEST_ARGUMENT...]   puts the results into docs/kernels.json, for those of before; with
                                                         arguments, which choose tests, it prints them only
       kernels.py write | check                          puts the table into docs/requirements.md; fails if it is not there

The variables RINGTAP_BUILD and RINGTAP_ACCEL are those of the other tests in QEMU."""

import json
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from datetime import date
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
PAGE, RESULT = REPO / "docs" / "requirements.md", REPO / "docs" / "kernels.json"
BEGIN, END = "<!-- made by kernels.py -->\n", "<!-- end -->\n"
MEMORY_MB = 4096
LIMIT_S = 5000  # a part of make nightly has 5400
# In this order, so that a run that is stopped has what matters most.
SMOKE = (
    "-m smoke"
    " ports record attach filters latency memory monitor flight order secondary host pcap fate trace explain flows fwd safety"
    " docs install containers extcap ovs web"
)


def outcome(case):
    """passed, or what happened and its first line."""
    for what in ("failure", "error", "skipped"):
        found = case.find(what)
        if found is not None:
            lines = (found.get("message") or "no message").strip().splitlines()
            return f"{'skipped' if what == 'skipped' else 'failed'}: {lines[0][:200]}"
    return "passed"


def outcomes(junit):
    """{test: what happened}, of a file of pytest."""
    return {
        f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}": outcome(case)
        for case in ElementTree.parse(junit).iter("testcase")
    }


def run(suite, arguments):
    sys.path.insert(0, str(REPO / "e2e"))
    from harness.machine import Machine
    from harness.paths import BUILD

    machine = Machine([], memory_mb=MEMORY_MB, iommu=False, suite=suite, writable=True)
    try:
        kernel = machine.run("uname", "-r")["out"].strip()
        print(f"{suite}: {kernel} booted in {machine.boot_s:.0f} s; {machine.work}/log", flush=True)
        tests = f"{SMOKE} {shlex.join(arguments)}"
        # timeout(1) interrupts pytest, which then still writes its file.
        machine.run(
            "sh",
            "-c",
            f"cd {REPO / 'e2e'} && RINGTAP_BUILD={BUILD} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 timeout -s INT {LIMIT_S} /usr/bin/python3"
            f" -m pytest -v -p no:cacheprovider --junitxml /tmp/junit.xml {tests} >/run/ringtap-guest/log 2>&1;"
            " cp /tmp/junit.xml /run/ringtap-guest",
            timeout=LIMIT_S + 120,
        )
        print((machine.work / "log").read_text(errors="replace")[-6000:])
        return {"kernel": kernel, "date": str(date.today()), "results": outcomes(machine.work / "junit.xml")}
    finally:
        machine.close()


def read():
    return json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}


def table():
    if not read():
        return ""
    lines = ["| kernel | of | smoke tests in QEMU | not passed |", "|---|---|---|---|"]
    for suite, one in sorted(read().items(), key=lambda item: [int(part) for part in item[1]["kernel"].split(".")[:2]]):
        passed = sum(what == "passed" for what in one["results"].values())
        others = [
            f"{test.split('::')[1]} ({what})" for test, what in sorted(one["results"].items()) if what != "passed"
        ]
        lines.append(
            f"| {one['kernel']} | Debian's {suite}, {one['date']} | {passed} of {len(one['results'])} passed |"
            f" {'; '.join(others).replace('|', '/') or 'none'} |"
        )
    return "\n".join(lines) + "\n"


def page():
    """The page with the table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def main(words):
    if words[:1] == ["run"] and len(words) > 1:
        end = words.index("--") if "--" in words else len(words)
        suites, arguments = words[1:end], words[end + 1 :]
        failed = False
        for suite in suites:
            one = run(suite, arguments)
            failed |= any(what.startswith("failed") for what in one["results"].values())
            if not arguments:
                RESULT.write_text(json.dumps({**read(), suite: one}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
                PAGE.write_text(page(), encoding="utf-8")
        return int(failed)
    if words == ["write"]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if words == ["check"]:
        if PAGE.read_text(encoding="utf-8") != page():
            print("docs/requirements.md: not the table of docs/kernels.json; devtools/kernels.py write")
        return 0
    print(__doc__.split("\n\n")[1], file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
