# SPDX-License-Identifier: BSD-3-Clause
"""Prints lines of Markdown that are too long, links that lead nowhere, and a README that is too long.
Run by devtools/lint.sh; exit status 1 if anything is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

COLUMNS = 100
README_LINES = 110
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}\s+(.*)$")


def documents():
    out = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return [Path(name) for name in out.splitlines() if os.path.isfile(name)]


def prose(text):
    """(number, line) of what is neither a code block nor a table."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith(("    ", "\t", "|")):
            yield number, line


def anchors(path):
    """As GitHub makes them of headings."""
    found = set()
    for _, line in prose(path.read_text(encoding="utf-8")):
        heading = HEADING.match(line)
        if heading:
            words = re.sub(r"[^\w\- ]", "", heading.group(1).lower())
            found.add(words.replace(" ", "-"))
    return found


def too_long(path, text):
    for number, line in prose(text):
        # A link cannot be wrapped.
        if len(LINK.sub("]", line)) > COLUMNS:
            yield f"{path}:{number}: {len(line)} columns, more than {COLUMNS}"


def broken_links(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            target, _, anchor = (match.group(1) or match.group(2)).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = (path.parent / target) if target else path
            if not file.exists():
                yield f"{path}:{number}: no such file: {target}"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield f"{path}:{number}: no such heading: {target}#{anchor}"


def main():
    os.chdir(Path(__file__).resolve().parents[1])
    wrong = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        wrong += [*too_long(path, text), *broken_links(path, text)]
        if str(path) == "README.md" and text.count("\n") > README_LINES:
            wrong.append(f"{path}: {text.count(chr(10))} lines, more than {README_LINES}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
