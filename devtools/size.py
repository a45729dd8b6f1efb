#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the lines of C that are neither blank nor comment, as cloc's "code": of no test, fuzzer or benchmark.

usage: size.py [REVISION]     by top folder, and their sum; the work tree without REVISION
       size.py BEFORE..AFTER  by top folder: lines before, lines after, difference
"""

import collections
import os
import re
import subprocess
import sys

NOT_COUNTED = re.compile(r"^(fuzz|bench|e2e|examples)/|(^|/)(test|fake)_[^/]*$|_test\.[ch]$")
# A comment, or a literal in which the characters of a comment mean nothing.
TOKEN = re.compile(r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


def git(*args):
    return subprocess.run(["git", *args], check=True, capture_output=True, text=True, errors="replace").stdout


def lines_of_code(text):
    def without(match):
        token = match.group()
        return "\n" * token.count("\n") if token.startswith("/") else token

    return sum(1 for line in TOKEN.sub(without, text).splitlines() if line.strip())


def count(revision):
    """Returns {top folder: lines}."""
    listing = git("ls-tree", "-r", "--name-only", revision) if revision else git("ls-files")
    lines = collections.Counter()
    for path in listing.splitlines():
        if not path.endswith((".c", ".h")) or NOT_COUNTED.search(path):
            continue
        if revision:
            text = git("show", f"{revision}:{path}")
        else:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        lines[path.split("/", 1)[0]] += lines_of_code(text)
    return lines


def main():
    if len(sys.argv) > 2 or "-h" in sys.argv or "--help" in sys.argv:
        sys.exit(__doc__)
    os.chdir(git("rev-parse", "--show-toplevel").strip())
    before, dots, after = sys.argv[1].partition("..") if len(sys.argv) == 2 else ("", "", "")
    tables = [count(before), count(after)] if dots else [count(before)]
    for folder in [*sorted(set().union(*tables)), "sum"]:
        row = [sum(table.values()) if folder == "sum" else table[folder] for table in tables]
        print(f"{folder:10}" + "".join(f"{n:8}" for n in row) + (f"{row[1] - row[0]:+8}" if dots else ""))


main()
