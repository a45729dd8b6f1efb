# SPDX-License-Identifier: BSD-3-Clause
"""Man pages: what the build makes of prose and of option tables."""

import json
import sys

import pytest
from harness.paths import BUILD, REPO, RINGTAP
from harness.proc import check, run

GENERATE = [sys.executable, REPO / "devtools" / "generate.py", "man"]


@pytest.fixture
def extcap(tmp_path):
    """Makes a page of a program with one text."""
    (tmp_path / "commands").write_text(check([BUILD / "extcap" / "ringtap-extcap", "--describe"]))
    return [*GENERATE, tmp_path, tmp_path / "commands", "1.0", "/usr/share", tmp_path / "extcap.txt"]


BROKEN = [
    ("text\n", "extcap.txt:1: text before the first heading"),
    ("#TITLE\ntext\n", "extcap.txt:1: not a heading"),
    ("# ONE\n\n# TWO\ntext\n", "extcap.txt: the section ONE has no text"),
    ("# ONE\ntext\n\n# TWO\n", "extcap.txt: the section TWO has no text"),
    ("", "extcap.txt: no section"),
    ("# ONE\n\n\ttext\n", "extcap.txt:3: a control character"),
    ("# ONE\n@include\n", "extcap.txt:2: unknown instruction"),
    ("# ONE\ntext\n\n@include other.txt\n", "other.txt: [Errno 2] No such file"),
    ("# ONE\ntext\n\n@include loop.txt\n", "loop.txt:1: unknown instruction"),
]


def test_a_broken_text(extcap, tmp_path):
    """The build, which runs this, fails and shows where."""
    for text, what in BROKEN:
        (tmp_path / "extcap.txt").write_text(text)
        (tmp_path / "loop.txt").write_text("@include loop.txt\n")
        done = run(extcap)
        assert done.returncode == 1
        assert what in done.stderr and "Traceback" not in done.stderr
    done = run(extcap[:-1])
    assert done.returncode == 1
    assert done.stderr == "no text for the man page of extcap; add extcap.txt to the build's files\n"


def test_markup(extcap, tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "shared.txt").write_text("# SHARED\n\n.one\n\n  two\n\n  three\n")
    (tmp_path / "extcap.txt").write_text(
        "# ONE\na\nb\n c @DATADIR@/c\n=\n\n@include part/shared.txt\n\n# TWO\n\ne-f\n"
        "\n# EXAMPLES\n\ng\n\n# SEE ALSO\n\ntcpdump(1)\n"
    )
    check(extcap)
    first, others = (tmp_path / "ringtap-extcap.1").read_text().split(".SH OPTIONS\n")
    example = ".PP\n.nf\n.RS 4\n{}\n.RE\n.fi\n"
    assert first.split(".SH ONE\n")[1] == "a b\n" + example.format(" c /usr/share/c") + "=\n"
    assert others.split(".SH SHARED\n")[1] == (
        "\\&.one\n.PP\n"
        + example.format("  two")
        + ".PP\n"
        + example.format("  three")
        + ".SH TWO\ne\\-f\n.SH EXAMPLES\ng\n.SH SEE ALSO\n\\fBtcpdump\\fR(1)\n"
    )
    commands = json.loads(check([RINGTAP, "--describe"]))
    assert len(commands) >= 10
    for command in commands:
        page = (BUILD / "cli" / f"ringtap-{command['name']}.1").read_text()
        listed = "OPTIONS" if command["options"] else "COMMANDS"
        for title in ("NAME", "SYNOPSIS", "DESCRIPTION", listed, "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
            assert page.count(f".SH {title}\n") == 1
