# SPDX-License-Identifier: BSD-3-Clause
"""Help fits a terminal of 80 columns."""
import re

import pytest

from harness.fwd import FWD
from harness.paths import BUILD, RINGTAP
from harness.proc import check, run


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


# An option whose value has a unit; a value that is refused, and the words of the message.
UNITS = [([RINGTAP, "host"], "--frame-size", ("2k", "2KiB", "2048"), "64M", "out of range"),
         ([RINGTAP, "trace", "gaps"], "--long", ("50us", "1.5ms", "100"), "1500ns", "as in 50, 50us or 2ms"),
         ([FWD], "--buffer-size", ("2k", "4096"), "2x", "with K, M or G"),
         ([FWD], "--stats", ("1s", "2min", "90"), "1.5s", "as in 90 or 2min"),
         ([FWD], "-m", ("1G", "512M", "512"), "1kB", "as in 512 or 2G")]


@pytest.mark.parametrize("command,option,values,wrong,text", UNITS, ids=[u[1] for u in UNITS])
def test_units(command, option, values, wrong, text):
    """Options are checked up to --help."""
    if not command[0].exists():
        pytest.skip("built without ringtap-fwd")
    for value in values:
        check([*command, option, value, "--help"])
    done = run([*command, option, wrong, "--help"])
    line, = done.stderr.splitlines()
    assert done.returncode == 2 and wrong in line and text in line
