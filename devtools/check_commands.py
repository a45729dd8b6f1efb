#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the commands that pages show with the option tables of the programs: each command, option and choice exists.
Prints what differs; exit status 1 if there is anything.

usage: check_commands.py FOLDER DEFINITIONS...    FOLDER: the source tree; DEFINITIONS: what a program prints with --describe

Pages are those for users in Markdown, and the prose of manual pages. A command begins with a program's name: in a line of a code block, behind a
prompt, ssh or sudo, or between backquotes. It ends at a pipe, a comment, or the program that it starts."""

import json
import re
import shlex
import sys
from pathlib import Path

PAGES = ("README.md", "SECURITY.md", "docs/*.md", "cli/*.txt", "cli/*/*.txt", "extcap/*.txt", "fwd/*.txt")
HISTORY = "history.md"  # has names of the past
INLINE = re.compile(r"`([^`]+)`")
BEFORE = re.compile(r"^(?:\$ |sudo (?:\S+=\S+ )*|ssh \S+ |timeout \S+ |(?:\.venv\S*|build/\w+|/usr/bin)/)+")
# What a page leaves out, or names by a word of its own.
OPEN = re.compile(r"…|\.\.\.|^[A-Z]+$|\|")


def definitions(described):
    """{words of a command: its definition}, subcommands too."""
    for command in described:
        name = command["program"] or f"ringtap {command['name']}"
        yield tuple(name.split()), command
        yield from definitions(command.get("commands") or [])


def joined(lines):
    """Lines, those that end in a backslash with the next one."""
    text = ""
    for line in lines:
        text += line.strip()
        if text.endswith("\\"):
            text = text[:-1]
            continue
        yield text
        text = ""


def shown(page):
    """The texts of a page that may be commands."""
    code, prose, fenced = [], [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        fenced ^= fence
        (code if fenced or line.startswith("    " if page.suffix == ".md" else " ") else prose).append(
            "" if fence else line
        )
    yield from joined(code)
    for found in INLINE.findall("\n".join(prose)):
        yield " ".join(found.split())


def words_of(text):
    """The words of one command; None: it is not a text for a shell."""
    lexer = shlex.shlex(BEFORE.sub("", text), posix=True, punctuation_chars="|;&<>()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return None
    end = next((i for i, word in enumerate(words) if word == "--" or set(word) <= set("|;&<>()")), len(words))
    return words[:end]


def faults(commands, words):
    """Faults in the words of a command."""
    name = max((n for n in commands if tuple(words[: len(n)]) == n), key=len, default=None)
    if name is None:
        program = {n[0] for n in commands if len(n) > 1}
        if len(words) > 1 and words[0] in program and re.fullmatch(r"[a-z][a-z-]*", words[1]) and words[1] != "help":
            yield f"{words[0]} has no command '{words[1]}'"
        return
    options = {f"--{o['name']}": o for o in commands[name]["options"] if o["name"]}
    options |= {f"-{o['letter']}": o for o in options.values() if o["letter"]}
    rest = list(words[len(name) :])
    while rest:
        word = rest.pop(0)
        option, _, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        if not re.match(r"--?[A-Za-z0-9]", word) or option in ("--help", "-h"):
            continue
        if option not in options:
            yield f"{' '.join(name)} has no {option}"
            return
        it = options[option]
        if it["kind"] == "flag":
            rest[:0] = [f"-{value}"] if value else []  # more letters
            continue
        value = value or (rest.pop(0) if rest else "")
        # Conditions go on behind their name.
        chosen = {re.split("[ :=]", part)[0] for part in value.split(",")}
        if it["choices"] and value and not OPEN.search(value) and not chosen <= set(it["choices"].split("|")):
            yield f"{' '.join(name)} {option}: '{value}' is not one of {it['choices']}"


def check(described, pages):
    commands = dict(definitions(described))
    for page in pages:
        for text in shown(page):
            words = words_of(text)
            for fault in faults(commands, words or []):
                yield f"{page}: {text}: {fault}"


def main(folder, *files):
    described = [c for path in files for c in json.loads(Path(path).read_text(encoding="utf-8"))]
    pages = sorted(path for pattern in PAGES for path in Path(folder).glob(pattern) if path.name != HISTORY)
    found = list(dict.fromkeys(check(described, pages)))
    print("".join(f"{line}\n" for line in found), end="")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
