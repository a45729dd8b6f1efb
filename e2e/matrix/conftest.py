# SPDX-License-Identifier: BSD-3-Clause
"""Writes what worked to the file that RINGTAP_MATRIX names: docs/matrix.json is made of it."""

import json
import os
import platform
from pathlib import Path

import pytest
from harness.paths import dpdk_version

results = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    cell = getattr(item, "callspec", None) and item.callspec.params.get("cell")
    if not cell or (report.when == "teardown" and report.passed) or (report.when == "setup" and report.passed):
        return
    application, way = cell
    reason = report.longrepr[2].removeprefix("Skipped: ") if report.skipped else ""
    results.append(
        {
            "application": application,
            "way": way,
            "check": item.originalname.removeprefix("test_"),
            "result": reason or report.outcome,
        }
    )


def pytest_sessionfinish(session):
    if "RINGTAP_MATRIX" not in os.environ:
        return
    system = platform.freedesktop_os_release()
    Path(os.environ["RINGTAP_MATRIX"]).write_text(
        json.dumps(
            {"system": system["PRETTY_NAME"], "kernel": platform.release(), "dpdk": dpdk_version(), "results": results},
            indent=1,
        )
        + "\n"
    )
