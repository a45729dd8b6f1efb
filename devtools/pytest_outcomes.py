# SPDX-License-Identifier: BSD-3-Clause
"""A plugin of pytest for devtools/run_tests.py: writes a line for each phase of each test, into the file that the variable
RINGTAP_OUTCOMES names: the test, as one names it to pytest in the current folder; whether it did not fail; seconds; whether the test was skipped."""

import json
import os


class Outcomes:
    def __init__(self, path, root):
        self.file = open(path, "a", encoding="utf-8")
        self.root = root

    def pytest_runtest_logreport(self, report):
        path, _, name = report.nodeid.partition("::")
        test = os.path.relpath(self.root / path) + "::" + name
        json.dump([test, not report.failed, round(report.duration, 3), report.skipped], self.file)
        self.file.write("\n")
        self.file.flush()


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # the controller receives the reports of all workers
        config.pluginmanager.register(Outcomes(os.environ["RINGTAP_OUTCOMES"], config.rootpath))
