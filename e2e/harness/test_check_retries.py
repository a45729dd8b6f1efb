# SPDX-License-Identifier: BSD-3-Clause
"""Lint finds tests that try an assertion several times, by devtools/check_retries.py."""

import sys
import textwrap

from harness.paths import REPO
from harness.proc import run, together

RETRIES = {
    "returns early": """
        for _ in range(20):
            report = measure()
            if good(report):
                return report
        raise AssertionError""",
    "breaks": """
        for attempt in range(5):
            folder = f"{attempt}"
            if seconds(folder) == [1, 1]:
                break""",
    "catches": """
        for delay in DELAYS:
            try:
                assert_all(delay)
            except AssertionError:
                pass""",
    "suppresses": """
        while True:
            with contextlib.suppress(Gone):
                proc.expect("ready")""",
    "has a limit": """
        while not took or took[-1] > 0.9:
            assert len(took) < 10, took
            took.append(measure())""",
    "any": "assert any(measure() < 0.002 for _ in range(3))",
    "next": "found = next(x for x in (1, 2) if [y for y in range(3)]) or next(measure() for _ in range(3))",
    "mark": """
        @pytest.mark.flaky(reruns=3)
        def test():
            pass""",
}
NONE = {
    "several cases": """
        for number in range(3):
            assert measure(number)
            if number == 2:
                break""",
    "repeats all": """
        for _ in range(3):
            assert measure()""",
    "searches": """
        for line in lines:
            if "name" in line:
                return line""",
    "raises again": """
        for one in things:
            try:
                one.check()
            except AssertionError:
                print(one)
                raise""",
    "another error": """
        for _ in range(200):
            try:
                crowd.append(connect())
            except OSError:
                break""",
    "waits": """
        until(lambda: app.stats(0) > before)
        proc.expect("ready")""",
}


def check(folder, code):
    folder.mkdir()
    file = folder / "test_it.py"
    file.write_text(f"def test_it():\n{textwrap.indent(textwrap.dedent(code), '    ')}\n")
    return run([sys.executable, REPO / "devtools" / "check_retries.py", file])


def check_all(tmp_path, cases):
    """{case: the result of the check}."""
    return dict(zip(cases, together(lambda case: check(tmp_path / case, cases[case]), cases), strict=True))


def test_retries_are_found(tmp_path):
    for case, done in check_all(tmp_path, RETRIES).items():
        assert done.returncode == 1 and done.stdout.count("\n") == 1, (case, done)


def test_other_loops_are_allowed(tmp_path):
    for case, done in check_all(tmp_path, NONE).items():
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), case
