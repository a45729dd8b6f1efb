# SPDX-License-Identifier: BSD-3-Clause
"""Which unit tests of a build folder concern a change: those whose program is made of a changed file, or of one that includes it.

usage: changed_tests.py BUILD   prints their names"""

import json
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def output(*command, cwd=REPO):
    return subprocess.run([str(word) for word in command], cwd=cwd, check=False, capture_output=True, text=True).stdout


def changed_files():
    """Absolute paths of files that differ from the branch that this one follows, or from the last commit."""
    base = output("git", "merge-base", "HEAD", "@{upstream}").strip() or "HEAD"
    names = output("git", "diff", "--name-only", base) + output("git", "ls-files", "--others", "--exclude-standard")
    return {REPO / name for name in names.splitlines()}


def included(build):
    """{object: paths of its source and headers}"""
    found, now = {}, None
    for line in output("ninja", "-C", build, "-t", "deps").splitlines():
        if line.startswith(" "):
            found[now].add((build / line.strip()).resolve())
        elif ": #deps" in line:
            now = line.partition(": #deps")[0]
            found[now] = set()
    return found


def changed_tests(build):
    build, changed = Path(build).resolve(), changed_files()
    headers = included(build)
    names = []
    for test in json.loads(output("meson", "introspect", "--tests", build)):
        files = [Path(word) for word in test["cmd"] if Path(word).exists()]
        sources = {(build / file).resolve() for file in files}
        for program in (file for file in files if file.resolve().is_relative_to(build)):
            for name in output("ninja", "-C", build, "-t", "inputs", program.resolve().relative_to(build)).splitlines():
                sources |= headers.get(name, set()) | {(build / name).resolve()}
        if sources & changed:
            names.append(test["name"])
    return names


if __name__ == "__main__":
    print("\n".join(changed_tests(sys.argv[1])))
