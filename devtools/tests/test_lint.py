# SPDX-License-Identifier: BSD-3-Clause
"""The checks of Markdown, of cited names, of words and of traps report faults, and none in a correct tree."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]

GOOD = {
    "README.md": "# Title\n\nA [link](docs/a.md#a-heading), `src/a.c` and `work()`.\n",
    "docs/a.md": "# A heading\n\n| a table may be wide " + "x" * 100 + " |\n\n    code " + "x" * 100 + "\n",
    "docs/troubleshooting.md": "| symptom | cause |\n|---|---|\n| `cannot open …; try again` | – |\n",
    "src/a.c": '/* Calls work(), which src/a.c has. */\nvoid work(void)\n{\n'
    '\tsay("cannot open %s; "\n\t    "try again");\n}\n',
}
MARKDOWN = [
    ("README.md", "x" * 101 + "\n", "README.md:1: 101 columns"),
    ("README.md", "[link](docs/b.md)\n", "no such file: docs/b.md"),
    ("README.md", "[link](docs/a.md#other)\n", "no such heading: docs/a.md#other"),
    ("README.md", "![picture](p.png)\n", "no such file: p.png"),
    ("README.md", "line\n" * 111, "README.md: 111 lines"),
]
CITATIONS = [
    ("docs/a.md", "`gone()`\n", "docs/a.md:1: no such function: gone"),
    ("docs/a.md", "`src/gone.c`\n", "docs/a.md:1: no such file: src/gone.c"),
    ("docs/a.md", "`rt_gone`\n", "docs/a.md:1: no such name: rt_gone"),
    ("src/a.c", "/* One.\n * Pairs with gone(). */\n", "src/a.c:2: no such function: gone"),
    (
        "src/a.c",
        "/* Pairs with the acquire in\n * src/a.c. */\n",
        "src/a.c:1: no such function named that it: Pairs with",
    ),
    ("src/a.c", "/* See gone.h. */\n", "src/a.c:1: no such file: gone.h"),
    ("docs/troubleshooting.md", "| `cannot read …` | – |\n", "no such message: cannot read"),
]
WORDS = [
    ("a.c", "int a; /* Of the ring. */\n", "a comment begins with a noun"),
    ("a.c", "/* What a reader keeps. */\nint a;\n", "a comment begins with the thing"),
    ("a.c", "int a; /* of the ring */\n", "name the thing itself"),
    ("a.c", "int a; // of the ring\n", "name the thing itself"),
    ("a.py", "a = 1  # of the ring\n", "name the thing itself"),
    ("a.py", '"""What is printed."""\n', "a docstring begins with"),
    ("a.md", "This is no session.\n", "is not a"),
    ("a.md", "At most so many packets.\n", "write N"),
]
TRAPS = [
    ("trap clean EXIT\ntrap 'exit 130' INT TERM HUP\n", []),
    ("\ttrap finish 0\ntrap 'exit 130' INT\ntrap 'exit 143' SIGTERM HUP PIPE\n", []),
    ("# trap clean EXIT\n", []),
    ("trap 'rm -f \"$made\"' EXIT\n", ["HUP", "INT", "TERM"]),
    ("set -e; x=$(mktemp); trap 'rm $x' EXIT; trap 'exit 130' INT TERM\n", ["HUP"]),
    ("trap clean EXIT\ntrap - EXIT INT TERM HUP\n", ["HUP", "INT", "TERM"]),
]
GOOD_WORDS = "/* One\n * of the rings. */\nint a; /* the oldest of the rings */ // There is no session.\n"


def lint(folder, script, changed=None, text=""):
    """Runs a script of devtools on the correct tree with one file changed."""
    (folder / "devtools").mkdir()
    for path in [*(REPO / "devtools").glob("check_*.py"), REPO / "devtools" / "lint.sh"]:  # they cite each other
        shutil.copy(path, folder / "devtools")
    for name, content in GOOD.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if name == changed else content, encoding="utf-8")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return subprocess.run([sys.executable, folder / "devtools" / script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", ["check_markdown.py", "check_citations.py"])
def test_nothing_in_a_good_tree(tmp_path, script):
    done = lint(tmp_path, script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("changed,text,expected", MARKDOWN, ids=lambda text: text[:20])
def test_markdown(tmp_path, changed, text, expected):
    done = lint(tmp_path, "check_markdown.py", changed, text)
    assert done.returncode == 1 and expected in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("changed,text,expected", CITATIONS, ids=lambda text: text[:20])
def test_citations(tmp_path, changed, text, expected):
    done = lint(tmp_path, "check_citations.py", changed, text)
    assert done.returncode == 1 and expected in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name,text,expected", [*WORDS, ("a.c", GOOD_WORDS, None)])
def test_words(tmp_path, name, text, expected):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, REPO / "devtools" / "check_words.py", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if expected else 0) and (expected or "") in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("text,missing", TRAPS)
def test_traps(tmp_path, text, missing):
    path = tmp_path / "a.sh"
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    done = subprocess.run([sys.executable, REPO / "devtools" / "check_traps.py", path], capture_output=True, text=True)
    expected = f"{path}: traps EXIT and not {', '.join(missing)}: dash" if missing else ""
    assert done.returncode == bool(missing) and done.stdout.startswith(expected) and bool(done.stdout) == bool(missing)
