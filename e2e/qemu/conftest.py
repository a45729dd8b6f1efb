# SPDX-License-Identifier: BSD-3-Clause
"""Writes what worked to the file that RINGTAP_DRIVERS names: docs/drivers.json is that of the last `make qemu`. A
check is skipped where the card's model or its driver lacks what it is about; the reason says how that is known. A
check that failed has the first line of its error as the reason, and so has one whose virtual machine did not start:
that one is `not run`."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from harness import machine
from harness.paths import dpdk_version

collect_ignore_glob = [] if "RINGTAP_DRIVERS" in os.environ else ["test_*.py"]
results = []


def outcome(report):
    """A result, and its reason if it did not pass."""
    if report.skipped:
        return report.longrepr[2].removeprefix("Skipped: "), None
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = (crash.message if crash else str(report.longrepr)).strip().splitlines()
        return "not run" if report.when == "setup" else "failed", (lines or ["no message"])[0][:200]
    return report.outcome, None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    card = getattr(item, "callspec", None) and item.callspec.params.get("card")
    if not card or (report.when == "teardown" and report.passed) or (report.when == "setup" and report.passed):
        return
    result, reason = outcome(report)
    results.append(
        {
            "card": card,
            "check": item.originalname.removeprefix("test_"),
            "result": result,
            "seen": reason or dict(item.user_properties).get("seen"),
        }
    )


def pytest_sessionfinish(session):
    path = os.environ.get("RINGTAP_DRIVERS")
    if not path or not results:
        return
    kernel = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True).stdout
    Path(path).write_text(
        json.dumps(
            {
                "kernel": kernel.split("linux-image-")[-1].strip(),
                "dpdk": dpdk_version(),
                "qemu": machine.VERSIONS,
                "results": results,
            },
            indent=1,
        )
        + "\n"
    )
