#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests. A test that fails runs a second time, alone, only to be classified: passed then, it is *flaky*, is named at
the end, and does not fail the run. docs/testing.md has the rules.

usage: run_tests.py unit BUILD [--multiplier N] [--changed] [--only TEST...]
       run_tests.py e2e TESTS... [--jobs N] [--name NAME] [-- PYTEST_ARGUMENT...]
"""

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from datetime import date
from pathlib import Path

import changed_tests
from slow_tests import Watch

REPO = Path(__file__).resolve().parent.parent
REGISTER = REPO / "e2e" / "flaky.toml"
MAX_CLASSIFIED = 8  # more failures than the register may have entries are not luck


class Unit:
    """Unit tests of a build folder, run by meson."""

    skipped = 0  # in the first run

    def __init__(self, args):
        self.build = args.build
        self.command = [
            "meson",
            "test",
            "-C",
            args.build,
            "--no-rebuild",
            "--print-errorlogs",
            "--timeout-multiplier",
            str(args.multiplier),
        ]
        self.results = Path(args.build) / "outcomes-unit.json"
        self.slow = Path(args.build) / "slow-unit.txt"
        self.slow.unlink(missing_ok=True)
        self.changed = args.changed
        self.only = args.only
        self.selection = "changed" if args.changed else " ".join(args.only or [])

    def run(self, tests=None):
        """Returns the exit status and the outcomes: {test: [passed, seconds]}."""
        alone = ["--num-processes", "1"] if tests else []
        tests = tests or self.only
        if self.changed and not tests:
            tests = changed_tests.changed_tests(self.build)
            if not tests:
                print("no unit test concerns what has changed")
                return 0, {}
        watch = Watch(self.build, self.slow)
        watch.start()
        status = subprocess.run([*self.command, *alone, *(tests or [])], check=False).returncode
        watch.stop()
        if self.slow.exists():
            print(f"what slow tests waited for: {self.slow}", flush=True)
        log = Path(self.build) / "meson-logs" / "testlog.json"
        if not log.exists():
            return status, {}
        results = [json.loads(line) for line in log.read_text().splitlines()]
        self.skipped = self.skipped if alone else sum(one["result"] == "SKIP" for one in results)
        # A suite stands before the name, as in "ringtap:common / metrics".
        return status, {
            one["name"].split(" / ")[-1]: [one["result"] in ("OK", "SKIP"), one["duration"]] for one in results
        }


class EndToEnd:
    """Tests with real programs, run by pytest."""

    skipped = 0  # in the first run

    def __init__(self, args):
        self.tests = args.tests
        self.jobs = args.jobs
        self.args = args.rest
        self.selection = " ".join(args.rest)
        name = args.name or args.tests[0].strip("/").replace("/", "-")
        self.results = Path(os.environ.get("RINGTAP_BUILD", "build")) / f"outcomes-{name}.json"

    @staticmethod
    def environment(log):
        path = os.pathsep.join(filter(None, (str(REPO / "devtools"), os.environ.get("PYTHONPATH"))))
        return {**os.environ, "PYTHONPATH": path, "RINGTAP_OUTCOMES": str(log.absolute())}

    def run(self, tests=None):
        """As that of Unit."""
        log = self.results.with_suffix(".lines")
        log.unlink(missing_ok=True)
        jobs = ["-n", str(self.jobs), "--dist", "loadfile"] if self.jobs and not tests else []
        status = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "pytest_outcomes", *jobs, *(tests or self.tests), *self.args],
            check=False,
            env=self.environment(log),
        ).returncode
        outcomes, skipped = {}, set()
        for line in log.read_text().splitlines() if log.exists() else []:
            test, passed, seconds, was_skipped, *_ = json.loads(line)
            skipped |= {test} if was_skipped else set()
            before = outcomes.get(test, [True, 0])
            outcomes[test] = [before[0] and passed, before[1] + seconds]
        self.skipped = self.skipped if tests else len(skipped)
        log.unlink(missing_ok=True)
        return status, outcomes


def failed(outcomes):
    return sorted(test for test, (passed, _) in outcomes.items() if not passed)


def classify(suite, tests, known):
    """Runs failed tests once more, alone. Returns those that are flaky, and those that fail the run."""
    again = [test for test in tests if test not in known]
    if len(again) > MAX_CLASSIFIED:
        return [], again
    flaky, broken = [], []
    for test in again:
        print(f"\n==== alone, to classify it: {test}", flush=True)
        status, outcomes = suite.run([test])
        (flaky if status == 0 and outcomes and not failed(outcomes) else broken).append(test)
    return flaky, broken


def report(text):
    """Prints the lines, and adds them to the file that .ci/run prints at its end."""
    print(text, flush=True)
    if "RINGTAP_FLAKY" in os.environ:
        with open(os.environ["RINGTAP_FLAKY"], "a", encoding="utf-8") as file:
            file.write(text + "\n")


def entry(test):
    return f'[[flaky]]\ntest = "{test}"\ndate = {date.today()}\ncause = ""'


def known_tests():
    return (
        {one["test"] for one in tomllib.loads(REGISTER.read_text(encoding="utf-8")).get("flaky", [])}
        if REGISTER.exists()
        else set()
    )


def revision():
    done = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=REPO, check=False, capture_output=True, text=True
    )
    return done.stdout.strip()


def judge(suite):
    """Runs a suite. Returns its exit status: that of the runner, or 0 if only luck failed it."""
    begin = time.monotonic()
    status, outcomes = suite.run()
    seconds = round(time.monotonic() - begin)
    flaky, broken = [], []
    known = known_tests()
    if outcomes and (tests := failed(outcomes)):
        flaky, broken = classify(suite, tests, known)
        if not broken:
            status = 0
        for test in known.intersection(tests):
            report(f"failed, does not gate (e2e/flaky.toml): {test}")
    suite.results.write_text(
        json.dumps(
            {
                "date": str(date.today()),
                "revision": revision(),
                "selection": suite.selection,
                "seconds": seconds,
                "skipped": suite.skipped,
                "outcomes": outcomes,
                "flaky": flaky,
                "failed": broken,
            },
            indent=1,
        )
    )
    if flaky:
        names = "".join(f"\n  {test}" for test in flaky)
        report(f"{len(flaky)} flaky:{names}\nto commit to e2e/flaky.toml:\n" + "\n".join(map(entry, flaky)))
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True)
    unit = kinds.add_parser("unit")
    unit.set_defaults(suite=Unit)
    unit.add_argument("build")
    unit.add_argument(
        "--multiplier", type=int, default=4, help="of meson's timeouts, which are those of a quiet machine"
    )
    unit.add_argument(
        "--changed", action="store_true", help="only tests of what differs from the branch that this one follows"
    )
    unit.add_argument("--only", nargs="+", metavar="TEST", help="these (default: all)")
    e2e = kinds.add_parser("e2e")
    e2e.set_defaults(suite=EndToEnd)
    e2e.add_argument("tests", nargs="+")
    e2e.add_argument("--jobs", type=int, default=0, help="at a time (0: no worker processes)")
    e2e.add_argument("--name", help="of the outcomes' file (default: that of the first test)")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    args = parser.parse_args(words[:end])
    args.rest = words[end + 1 :]
    return judge(args.suite(args))


if __name__ == "__main__":
    sys.exit(main())
