# SPDX-License-Identifier: BSD-3-Clause
"""The lab's options follow docs/interface.md, as devtools/check_options.py checks those of ringtap."""

import importlib.util
from pathlib import Path

import pytest
from ringtap_lab.run import aims, bench, cli, experiments
from ringtap_lab.tools import units

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_options", REPOSITORY / "devtools" / "check_options.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(parser):
    for action in parser._actions:
        words = sorted(action.option_strings, key=len)
        if words and "--help" not in words:
            letter = words[0][1] if len(words[0]) == 2 else ""
            yield {"letter": letter, "name": words[-1].removeprefix("--"), "arg": action.metavar}


@pytest.mark.parametrize(
    "parser", [lambda: cli._parser(experiments.load()), aims.parser, bench.parser], ids=["lab", "aims", "bench"]
)
def test_letters_and_names(check, parser):
    page = check.Page((REPOSITORY / "docs" / "interface.md").read_text())
    found = list(options(parser()))
    assert len(found) > 8
    assert [fault for option in found for fault in check.faults(page, option)] == []


@pytest.mark.parametrize(
    ("text", "value"), [("500ms", 0.5), ("1.2s", 1.2), ("2min", 120), ("1h", 3600), ("20us", 2e-5)]
)
def test_times(text, value):
    assert units.seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["5", "5 s", "s", "-1s", "5x", ""])
def test_times_without_a_unit_are_refused(text):
    with pytest.raises(units.argparse.ArgumentTypeError, match="is not a time; give a number with ms"):
        units.seconds(text)
