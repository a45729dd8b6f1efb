# SPDX-License-Identifier: BSD-3-Clause
"""The command lines of man pages and documents: what follows 'ringtap' there is parsed up to --help, so that options
and their values are those that there are."""

import json
import re
import shlex

from harness.paths import REPO, RINGTAP
from harness.proc import check, run, together

PAGES = [p for p in sorted(REPO.glob("cli/**/*.txt")) if "golden" not in p.parts] + [REPO / "extcap/extcap.txt"]
DOCUMENTS = [REPO / "README.md", *sorted(REPO.glob("docs/*.md"))]
COMMANDS = {c["name"] for c in json.loads(check([RINGTAP, "--describe"]))}


def lines_of(text):
    """Indented lines, with those that they continue in; a quote may go on in the next one."""
    line = ""
    for part in text.split("\n"):
        if not line and not part.startswith(("  ", "\t")):
            continue
        line += part.strip().removeprefix("$ ")
        if line.endswith("\\"):
            line = line[:-1]
            continue
        try:
            yield shlex.split(line, comments=True)
        except ValueError:  # no closing quote yet
            if part:
                line += " "
                continue
        line = ""


def commands_of(path):
    """The words of each call of ringtap."""
    text = path.read_text(encoding="utf-8").split("# EXAMPLES\n")[-1] if path.suffix == ".txt" else path.read_text()
    for words in lines_of(text):
        while "ringtap" in words:
            words = words[words.index("ringtap") + 1 :]
            end = next(
                (i for i, word in enumerate(words) if word in ("|", "&&", ";", "&", ">", ">>", "||")), len(words)
            )
            if words and words[0] in COMMANDS:
                yield [word.rstrip(";)") for word in words[:end] if not re.match(r"\d?>", word)]


def parsed(words):
    """The message of a wrong command line, if it is one. Programs that run starts are not run."""
    if words[0] == "archive":
        words = words[:2]
    if words[0] == "run":
        words = words[:1]
    at = words.index("--") if "--" in words else len(words)
    done = run([RINGTAP, *words[:at], "--help"])
    return done.returncode and f"'ringtap {shlex.join(words)}': {done.stderr}"


def test_command_lines():
    lines = {path: [words for words in commands_of(path) if words] for path in [*PAGES, *DOCUMENTS]}
    calls = [(path.name, words) for path, of_path in lines.items() for words in of_path]
    answers = together(lambda call: parsed(call[1]), calls)
    wrong = [f"{name}: {message}" for (name, _), message in zip(calls, answers, strict=True) if message]
    assert not wrong, "\n".join(wrong)
    without = {path.name for path in PAGES if not lines[path]}
    assert without <= {"open-vswitch.txt", "extcap.txt"}, "no example"
