#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests marked smoke with kernels of other releases of Debian, in QEMU with the programs of this machine: the guest's
root folder is a copy in memory, made as it is written to, of the host's. Without KVM a test takes minutes, so a result is kept
as soon as its test ends, and a run that has no time left is continued by the next one: it begins with the tests without a
result, then takes the oldest results.

usage: kernels.py run [--seconds N] SUITE... [-- PYTEST_ARGUMENT...]
                               puts results into docs/kernels.json, beside those of before; arguments may choose tests
       kernels.py write | check
                               puts the table into docs/requirements.md; fails if it is not there

The variables RINGTAP_BUILD and RINGTAP_ACCEL are those of the other tests in QEMU."""

import argparse
import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from datetime import date
from functools import partial
from pathlib import Path

import run_tests

REPO = Path(__file__).resolve().parents[1]
E2E = REPO / "e2e"
PAGE, RESULT = REPO / "docs" / "requirements.md", REPO / "docs" / "kernels.json"
BEGIN, END = "<!-- made by kernels.py -->\n", "<!-- end -->\n"
WORK = "/run/ringtap-guest"  # the folder of Machine.work in the guest: e2e/qemu/init
MEMORY_MB = 4096
LIMIT_S = 5000  # a part of make nightly has 5400
STUCK_S = 1800  # without an outcome: three times what a test waits for one event
PATIENCE_S = 600  # instead of 120: e2e/harness/proc.py
# In this order, so that a run that is stopped has what matters most. What flight compares takes more than ten minutes.
SUBJECTS = (
    "ports record attach filters latency memory monitor order secondary host pcap fate trace explain flows safety docs"
    " install containers extcap ovs flight"
)
# Smoke tests that do not depend on the kernel, by the beginning of their names.
LEFT_OUT = {
    "explain/test_wireshark.py": "tshark's reading of a file",
    "install/test_plugin.py": "the symbols of the probe",
    "pcap/test_tools.py::test_run_command": "exit codes of `run`",
    "trace/test_points.py": "the instructions at trace points",
    "fwd/": "`ringtap-fwd` by itself",
    "web/": "pages in a browser",
}


# ---- results


def read():
    return json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}


def write(results):
    RESULT.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def due(tests, results):
    """The order of a run: tests without a result, then the oldest results."""
    return sorted(tests, key=lambda test: results.get(test, {}).get("date", ""))


def of_kernel(before, kernel, tests):
    """The entry of a suite before a run: of the same kernel, results of tests that there are."""
    results = before.get("results", {}) if before.get("kernel") == kernel else {}
    return {"kernel": kernel, "tests": len(tests), "results": {t: r for t, r in results.items() if t in tests}}


def result_of(phases):
    """passed, or what happened, of the lines that devtools/pytest_outcomes.py wrote of a test."""
    for _, passed, _, skipped, _, reason in phases:
        if not passed or skipped:
            return f"{'skipped' if skipped else 'failed'}: {reason[:200] or 'no message'}"
    return "passed"


def row(suite, one):
    results = one["results"]
    days = sorted({result["date"] for result in results.values()})
    others = [f"`e2e/{t}`: {r['result']}" for t, r in sorted(results.items()) if r["result"] != "passed"]
    passed = len(results) - len(others)
    when = " to ".join(dict.fromkeys([days[0], days[-1]]))
    return (
        f"| {one['kernel']} | Debian's {suite}, {when} | {len(results)} of {one['tests']} | {passed} |"
        f" {'; '.join(others).replace('|', '/') or 'none'} |\n"
    )


def version(one):
    return [int(part) for part in re.findall(r"\d+", one["kernel"])]


def table():
    ran = {suite: one for suite, one in read().items() if one["results"]}
    if not ran:
        return ""
    text = "| kernel | of | smoke tests that ran | passed | others |\n|---|---|---|---|---|\n"
    text += "".join(row(suite, one) for suite, one in sorted(ran.items(), key=lambda item: version(item[1])))
    left_out = f"Left out, as they do not depend on the kernel: tests of {', '.join(LEFT_OUT.values())}."
    return text + "\n" + textwrap.fill(left_out, 98) + "\n"


def page():
    """The page with the table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


# ---- runs


def smoke_tests(arguments):
    """Names of the tests in e2e/, in the order of the subjects. This leaves them compiled, which the guest takes minutes for."""
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "smoke", *SUBJECTS.split(), *arguments]
    done = subprocess.run(argv, cwd=E2E, capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if re.match(r"[\w/]+\.py::", line)]
    if not found:
        sys.exit(f"kernels: no test is chosen\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [test for test in found if not test.startswith(tuple(LEFT_OUT))]


def follow(machine, tests, deadline, put):
    """Runs tests in a guest, and calls put(test, result, seconds) for each as it ends. Returns those that are left; the first of
    them is the one that ran last."""
    from harness.paths import BUILD

    log, status = machine.work / "outcomes", machine.work / "status"
    variables = {
        "RINGTAP_BUILD": BUILD,
        "RINGTAP_OUTCOMES": f"{WORK}/outcomes",
        "RINGTAP_PATIENCE": PATIENCE_S,
        "PYTHONPATH": REPO / "devtools",
        "PYTHONDONTWRITEBYTECODE": 1,
    }
    pytest = ["/usr/bin/python3", "-m", "pytest", "-v", "--color=no", "-p", "no:cacheprovider", "-p", "pytest_outcomes"]
    environment = [f"{name}={value}" for name, value in variables.items()]
    script = f'cd {E2E}; env "$@"; echo $? >{WORK}/status'
    machine.start("tests", ["sh", "-c", script, "sh", *environment, *pytest, *tests])
    phases, at, last, ended = {}, 0, time.monotonic(), False
    while len(tests) > 0 and not ended and time.monotonic() < min(deadline, last + STUCK_S):
        ended = status.exists() or not machine.proc.alive()  # what was written before that is read below
        data = log.read_bytes()[at:] if log.exists() else b""
        lines = data[: data.rfind(b"\n") + 1]
        at += len(lines)
        for line in map(json.loads, lines.splitlines()):
            phases.setdefault(line[0], []).append(line)
            if line[4] == "teardown":
                last = time.monotonic()
                tests = [test for test in tests if test != line[0]]
                put(line[0], result_of(phases[line[0]]), sum(phase[2] for phase in phases[line[0]]))
        if not lines:
            time.sleep(1)  # no event to wait for: another system writes the file
    return tests


def run(suite, tests, seconds, report, make_machine):
    """Calls report(kernel, test, result, seconds) for each test that ended in this time."""
    deadline = time.monotonic() + seconds
    while tests and time.monotonic() < deadline:
        machine = make_machine(suite)
        try:
            kernel = machine.run("uname", "-r")["out"].strip()
            print(f"{suite}: {kernel} booted in {machine.boot_s:.0f} s; {machine.work}/tests.out", flush=True)
            tests = follow(machine, tests, deadline, partial(report, kernel))
            if tests and time.monotonic() < deadline:
                output = machine.work / "tests.out"
                print(output.read_text(errors="replace")[-4000:] if output.exists() else machine.proc.output[-4000:])
                report(kernel, tests[0], "failed: it did not end, or the guest ended before", STUCK_S)
                tests = tests[1:]
        finally:
            machine.close()


def guest(suite):
    from harness.machine import Machine

    return Machine([], memory_mb=MEMORY_MB, iommu=False, suite=suite, writable=True)


def run_all(suites, seconds, arguments):
    """The exit status."""
    sys.path.insert(0, str(E2E))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
    tests = smoke_tests([])
    chosen = [test for test in smoke_tests(arguments) if test in tests] if arguments else tests
    deadline = time.monotonic() + seconds
    failed = []

    def put(suite, kernel, test, result, took):
        print(f"{suite}: {test}: {result} ({took:.0f} s)", flush=True)
        failed.extend([test] if result.startswith("failed") else [])
        one = of_kernel(read().get(suite, {}), kernel, tests)
        one["results"][test] = {
            "date": str(date.today()),
            "result": result,
            "revision": run_tests.revision(),
            "seconds": round(took),
        }
        write({**read(), suite: one})

    for i, suite in enumerate(suites):
        ordered = due(chosen, read().get(suite, {}).get("results", {}))
        share = (deadline - time.monotonic()) / (len(suites) - i)
        try:
            run(suite, ordered, share, partial(put, suite), guest)
        except (AssertionError, OSError) as e:
            print(f"{suite}: no virtual machine: {e}", file=sys.stderr)
            failed.append(suite)
    return int(bool(failed))


def main(words):
    end = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2])
    parser.add_argument("what", choices=["run", "write", "check"])
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--seconds", type=int, default=LIMIT_S)
    args = parser.parse_intermixed_args(words[:end])
    if args.what == "run":
        return run_all(args.suites or parser.error("name a suite"), args.seconds, words[end + 1 :])
    if args.what == "write":
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        print("docs/requirements.md: not the table of docs/kernels.json; devtools/kernels.py write")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
