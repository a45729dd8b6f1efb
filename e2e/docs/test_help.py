# SPDX-License-Identifier: BSD-3-Clause
"""Help fits a terminal of 80 columns: of programs, as cli/usage_test.c has the commands of ringtap."""

from harness.paths import BUILD, RINGTAP
from harness.proc import check, run


def test_programs():
    overview = [RINGTAP, "--help"]
    for command in (overview, [BUILD / "extcap/ringtap-extcap", "--help"], [BUILD / "fwd/ringtap-fwd", "--help"]):
        if not command[0].exists():
            continue  # built without ringtap-fwd
        text = check(command)
        wide = [line for line in text.splitlines() if len(line) > 80]
        assert text and not wide, "\n".join(wide)
    names = [line.split()[0] for line in check(overview).splitlines() if line.startswith("  ") and line[2].isalpha()]
    assert "record" in names and "trace" in names
    for name in names:
        assert f"ringtap {name}" in check([RINGTAP, "help", name]).splitlines()[0]
    for word, said in ("--verison", "did you mean '--version'?"), ("-x", "see 'ringtap --help'"):
        assert run([RINGTAP, word]).stderr == f"ringtap: {word}: unknown option; {said}\n"
