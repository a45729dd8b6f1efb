# SPDX-License-Identifier: BSD-3-Clause
"""Lint finds tests that try an assertion several times, by devtools/check_retries.py."""

import subprocess
import sys
import textwrap
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]

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


def check(folder, cases):
    """The result of the check of one file for each case."""
    for case, code in cases.items():
        (folder / f"{case.replace(' ', '_')}.py").write_text(
            f"def test_it():\n{textwrap.indent(textwrap.dedent(code), '    ')}\n"
        )
    return subprocess.run(
        [sys.executable, REPO / "devtools" / "check_retries.py", *sorted(folder.glob("*.py"))],
        capture_output=True,
        text=True,
        check=False,
    )


def test_retries_are_found(tmp_path):
    done = check(tmp_path, RETRIES)
    found = sorted(Path(line.split(":")[0]).stem.replace("_", " ") for line in done.stdout.splitlines())
    assert done.returncode == 1 and found == sorted(RETRIES)


def test_other_loops_are_allowed(tmp_path):
    done = check(tmp_path, NONE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
