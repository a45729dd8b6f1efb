#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The unit tests of devtools/threaded_tests.txt, which are those that ThreadSanitizer can find anything in.

usage: threaded_tests.py BUILD tests|programs   prints their names, or what ninja makes of them
       threaded_tests.py BUILD unlisted         for a build that lacks some tests

Exit status 1: the list lacks a test whose source starts a thread, or (not with unlisted) has one that there is not."""

import json
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")


def introspected(build, what):
    done = subprocess.run(["meson", "introspect", what, build], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def starts_threads(sources):
    tests = [Path(path) for path in sources if path.endswith("_test.c")]
    return any("pthread_create(" in path.read_text(encoding="utf-8") for path in tests)


def programs(build):
    """{program: (its test's name, its sources)}"""
    tests = {test["cmd"][0]: test["name"] for test in introspected(build, "--tests")}
    return {
        name: (tests[name], [path for group in one["target_sources"] for path in group.get("sources", [])])
        for one in introspected(build, "--targets")
        for name in one["filename"]
        if name in tests
    }


def with_libraries(build, names):
    """The files that these tests need: their programs, and libraries that these load."""
    files = {one["id"]: one["filename"] for one in introspected(build, "--targets")}
    needed = {
        file for t in introspected(build, "--tests") if t["name"] in names for d in t["depends"] for file in files[d]
    }
    return sorted(needed)


def absent(listed, found):
    return [f"there is no test {name}" for name in sorted(listed - {name for name, _ in found.values()})]


def unlisted(listed, found):
    return [
        f"{name} starts a thread and is not listed"
        for name, sources in sorted(found.values())
        if name not in listed and starts_threads(sources)
    ]


def main(build, what):
    listed = {line for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    found = programs(build)
    wrong = unlisted(listed, found) + (absent(listed, found) if what != "unlisted" else [])
    for text in wrong:
        print(f"{LIST.name}: {text}", file=sys.stderr)
    if what == "unlisted":
        return bool(wrong)
    chosen = {name for name, _ in found.values() if name in listed}
    root = Path(build).resolve()
    print(
        "\n".join(
            sorted(chosen)
            if what == "tests"
            else [str(Path(p).relative_to(root)) for p in with_libraries(build, chosen)]
        )
    )
    return bool(wrong)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("tests", "programs", "unlisted"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
