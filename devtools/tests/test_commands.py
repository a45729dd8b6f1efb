# SPDX-License-Identifier: BSD-3-Clause
"""devtools/check_commands.py finds commands in pages, and what no option table has."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import check_commands

OPTIONS = [
    {"kind": "text", "letter": "f", "name": "filter", "arg": "FILTER", "choices": None},
    {"kind": "choice", "letter": "", "name": "by", "arg": "WHAT", "choices": "p50|p99"},
    {"kind": "keyed", "letter": "", "name": "on", "arg": "CONDITION", "choices": "latency|gap"},
    {"kind": "flag", "letter": "q", "name": "quiet", "arg": None, "choices": None},
]
DESCRIBED = [
    {"program": None, "name": "record", "options": OPTIONS, "commands": []},
    {
        "program": None,
        "name": "flight",
        "options": OPTIONS,
        "commands": [{"program": None, "name": "flight top", "options": OPTIONS[:1], "commands": []}],
    },
]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("    $ ringtap record my-app -f 'udp or tcp' -q | jq .x --no-option", []),
        ("    ssh host ringtap record -qw a\n", ["record has no -w"]),
        ("```\nringtap record --quiet  # with --nothing\n```\n", []),
        ("run `ringtap record\n--nothing`, then", ["record has no --nothing"]),
        ("`ringtap recor -f x`", ["ringtap has no command 'recor'"]),
        ("`ringtap flight top -q`", ["flight top has no -q"]),
        ("`ringtap record --by p98`", ["--by: 'p98' is not one of p50|p99"]),
        ("`ringtap record --by p50,p99 --by WHAT --by=p50 --by`", []),
        ("    ringtap flight --on 'latency > 2ms' --on \\\n      leap", ["--on: 'leap' is not one of latency|gap"]),
        ("    $ ringtap record -- tcpdump --nothing", []),
        ("ringtap record --nothing in a sentence, and `it's`", []),
    ],
)
def test_faults(tmp_path, text, faults):
    page = tmp_path / "page.md"
    page.write_text(text)
    found = list(check_commands.check(DESCRIBED, [page]))
    assert len(found) == len(faults) and all(fault in line for fault, line in zip(faults, found)), found
