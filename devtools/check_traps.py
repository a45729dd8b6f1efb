# SPDX-License-Identifier: BSD-3-Clause
"""Prints shell scripts that clean when they exit but not after Ctrl-C: dash runs no EXIT trap when a signal ends it.
Run by devtools/lint.sh; exit status 1 if anything is printed. usage: check_traps.py FILE..."""

import re
import sys
from pathlib import Path

TRAP = re.compile(
    r"(?:^|[;&|{(])\s*trap\s+(-(?=\s)|'[^']*'|\"[^\"]*\"|\S+)((?:[ \t]+(?:[A-Z]+\d?|0)\b)+)", re.MULTILINE
)
SIGNALS = {"INT", "TERM", "HUP"}


def missing(text):
    trapped = set()
    for action, conditions in TRAP.findall(text):
        if action.strip() != "-":
            trapped |= {one.removeprefix("SIG") for one in conditions.split()}
    return SIGNALS - trapped if trapped & {"EXIT", "0"} else set()


def main():
    failed = 0
    for path in sys.argv[1:]:
        signals = missing(Path(path).read_text(encoding="utf-8"))
        if signals:
            print(f"{path}: traps EXIT and not {', '.join(sorted(signals))}: dash cleans after them by trap 'exit 130'")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
