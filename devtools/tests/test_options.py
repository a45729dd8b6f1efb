# SPDX-License-Identifier: BSD-3-Clause
"""Option tables that differ from docs/interface.md are reported, and none that follow it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[1] / "check_options.py"

PAGE = """# Interface

## Command line

| option | meaning |
|---|---|
| `-c`, `--packets N` | stop |
| `-d`, `--print-filter`; `-D`, `--list` | print |
| `-h`, `--help` | help |

| idea | option | not |
|---|---|---|
| time | `--duration TIME` | `--seconds`, `--time` |
| keep | `--keep TIME`; `--keep AGE\\|SIZE` of an archive | |
| packets | `-c` | `--count` |
| a folder | `DIR` | `FOLDER` |

## Units

| `-z`, `--zero` | not a table of options |
"""


def option(letter, name, arg=None, help="Text (default: 5)"):
    return {"kind": "text" if arg else "flag", "letter": letter, "name": name, "arg": arg, "help": help}


GOOD = [
    option("c", "packets", "N"),
    option("d", "print-filter"),
    option("D", "list"),
    option("", "duration", "TIME"),
]
CASES = [
    ([], []),
    ([option("", "other")], []),
    ([option("q", None)], ["ringtap run: -q: no long name"]),
    ([option("q", "quiet")], ["ringtap run: -q, --quiet: the page has no such letter"]),
    ([option("c", "keep", "TIME")], ["ringtap run: -c, --keep: the letter is that of --packets"]),
    ([option("z", "zero")], ["ringtap run: -z, --zero: the page has no such letter"]),
    ([option("", "list")], ["ringtap run: --list: its letter -D is missing"]),
    ([option("", "seconds")], ["ringtap run: --seconds: another name of `--duration TIME`"]),
    ([option("", "time")], ["ringtap run: --time: another name of `--duration TIME`"]),
    ([option("", "keep", "SIZE")], ["ringtap run: --keep: its value is SIZE, not TIME or AGE|SIZE"]),
    ([option("", "duration", "SECONDS")], ["ringtap run: --duration: its value is SECONDS, not TIME"]),
    (
        [option("", "duration")],
        [
            "ringtap run: --duration: its value is None, not TIME",
            "--duration: it has a value in ringtap run, and none in ringtap run sub",
        ],
    ),
    ([option("", "count")], ["ringtap run: --count: another name of `-c`"]),
    ([option("", "own", "N"), option("", "own", "N")], []),
    ([option("", "own", "FOLDER")], ["ringtap run: --own: FOLDER is another name of `DIR`"]),
    ([option("", "own", help="Text (default 5)")], ["ringtap run: --own: its default is not '(default: VALUE)'"]),
    ([option("", "own", help="Text (default)")], []),
    (
        [option("", "own", "N"), option("", "own")],
        ["--own: it has a value in ringtap run sub, and none in ringtap run sub"],
    ),
]


def check(folder, options, page=PAGE):
    (folder / "page.md").write_text(page, encoding="utf-8")
    for name, program, found in (("one", None, [*GOOD, {"kind": "heading", "help": "More"}]), ("two", "ringtap-x", [])):
        commands = [{"name": "run sub", "program": None, "options": options}] if not program else []
        described = [
            {"name": "run", "program": program, "options": found, "commands": []},
            {"name": "keep", "program": program, "options": [option("", "keep", "AGE|SIZE")], "commands": commands},
        ]
        (folder / name).write_text(json.dumps(described), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, CHECK, folder / "page.md", folder / "one", folder / "two"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr and done.returncode == bool(done.stdout)
    return done.stdout.splitlines()


@pytest.mark.parametrize(("options", "faults"), CASES)
def test_each_fault_is_reported(tmp_path, options, faults):
    """In the table of a subcommand, which is the deepest place."""
    assert check(tmp_path, options) == [fault.replace("run:", "run sub:") for fault in faults]


def test_what_no_command_has_does_not_stay_on_the_page(tmp_path):
    page = PAGE.replace("| `-h`,", "| `-n`, `--none` | nothing |\n| `-h`,").replace("`--seconds`", "`--keep`")
    assert check(tmp_path, [], page) == [
        "ringtap keep: --keep: another name of `--duration TIME`",
        "ringtap-x: --keep: another name of `--duration TIME`",
        "Command line: no command has --none",
        "Command line: --keep is a name to use and one not to use",
    ]
