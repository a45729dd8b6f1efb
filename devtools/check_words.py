#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the words of comments, messages and documents that a machine can check: devtools/check_words.py [FILE...].

Prints a line for each fault: file, line, what stands there and what to write.
"""

import re
import subprocess
import sys

COMMENT = r"(?:/\*+|//|^\s*\*|(?:^|\s)#|\"\"\")\s*"
RULES = [
    (COMMENT + r"Of\s", "a comment begins with a noun or a verb, not with 'Of'"),
    (r"/\*+\s*(?:What|Those|Whom|Whose)\s", "a comment begins with the thing that is meant, or with a verb"),
    (r"(?:/\*|(?:^|[\s;,{}])//|\S\s+#)\s*of\s", "name the thing itself: a comment does not begin with 'of'"),
    (r"\"\"\"(?:What|Whatever|Who)\s", "a docstring begins with the thing itself, or with a verb"),
    (r"\bso many\b(?! (?:\w+ )?that\b)", "write N, or 'that number of'"),
    (r"\banew\b", "again"),
    (r"\blikewise\b", "the same, or also"),
    (r"\b(?:whom|whoever|whomever|somebody)\b", "threads, packets and readers are things"),
    (r"\bin place of\b", "instead of"),
    # Units, in what programs print.
    (r"[\u00b5\u03bc]s\b(?!`)", "us"),
    (
        r"(?:%[-0-9.*]*(?:l|ll|z)?[dufgs]|PRI[ux]64 \"|\}) ?[KMGT]B\b(?!/s)",
        "KiB, MiB, GiB: format_bytes() or show.size()",
    ),
    # "There is no session" is a plain sentence, "this is no session" is not.
    (r"(?<![Tt]here )\bis no (?!longer\b|more\b|memory\b|room\b|CPU\b|faster\b|slower\b|one\b)[a-z]", "is not a"),
]
# The rules themselves, a licence, and data that programs have written.
NOT_CHECKED = re.compile(
    r"^devtools/check_words\.py$|^devtools/tests/test_lint\.py$|^web/uplot/LICENSE$|^debian/copyright$|^e2e/web/axe/LICENSE|^docs/report/|\.(?:json|csv|html|svg|png|pcapng?)$"
)


def files():
    names = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in names if not NOT_CHECKED.search(name)]


def main():
    rules = [(re.compile(rule), advice) for rule, advice in RULES]
    status = 0
    for name in sys.argv[1:] or files():
        try:
            with open(name, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for number, line in enumerate(lines, 1):
            for rule, advice in rules:
                if found := rule.search(line):
                    print(f"{name}:{number}: '{found.group().strip()}': {advice}")
                    status = 1
    return status


sys.exit(main())
