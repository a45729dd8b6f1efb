# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest for devtools/run_tests.py and kernels.py: writes a line for each phase of each test, into the file that the
variable RINGTAP_OUTCOMES names: the test, as one names it to pytest in the current folder; whether it did not fail; seconds;
whether the test was skipped; the phase (setup, call or teardown); the first line of why it failed or was skipped."""

import json
import os


def reason(report):
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    if not report.failed:
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    return next(iter((crash.message if crash else str(report.longrepr)).strip().splitlines()), "")


class Outcomes:
    def __init__(self, path, root):
        self.file = open(path, "a", encoding="utf-8")
        self.root = root

    def pytest_runtest_logreport(self, report):
        path, _, name = report.nodeid.partition("::")
        test = os.path.relpath(self.root / path) + "::" + name
        line = [test, not report.failed, round(report.duration, 3), report.skipped, report.when, reason(report)]
        json.dump(line, self.file)
        self.file.write("\n")
        self.file.flush()


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # the controller receives the reports of all workers
        config.pluginmanager.register(Outcomes(os.environ["RINGTAP_OUTCOMES"], config.rootpath))
