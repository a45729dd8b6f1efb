# SPDX-License-Identifier: BSD-3-Clause
"""Help fits a terminal of 80 columns."""
import re

import pytest

from harness.paths import BUILD, RINGTAP
from harness.proc import check


def assert_fits(text):
    wide = [line for line in text.splitlines() if len(line) > 80]
    assert text and not wide, "\n".join(wide)


@pytest.mark.smoke
def test_commands():
    overview = check([RINGTAP, "--help"])
    assert_fits(overview)
    names = re.findall(r"^  ([a-z]+) ", overview, re.MULTILINE)
    assert "record" in names and "trace" in names
    for name in names:
        assert_fits(check([RINGTAP, "help", name]))


@pytest.mark.parametrize("word", ["trigger", "top", "list", "show", "extract", "prune"])
def test_commands_of_flight(word):
    text = check([RINGTAP, "flight", word, "--help"])
    assert_fits(text)
    assert re.search(rf"^flight {word}: [a-z]", text, re.MULTILINE)
    assert text.endswith("man ringtap-flight\n")


@pytest.mark.parametrize("program", ["extcap/ringtap-extcap", "fwd/ringtap-fwd"])
def test_other_programs(program):
    assert_fits(check([BUILD / program, "--help"]))
