#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the option tables of all programs with the page that decides on them: a letter has one long name in all
commands, an idea has one name. Prints what differs; exit status 1 if there is anything.

usage: check_options.py PAGE DEFINITIONS...    DEFINITIONS: what a program prints with --describe

The page has the letters in a table with rows "`-x`, `--name ARG`", and the names in one with the columns idea, option
and "not": the names that no command may have."""

import json
import re
import sys
from pathlib import Path

LETTER = re.compile(r"`-(\w)`, `--([\w-]+)")
NAME = re.compile(r"`--([\w-]+)")
DEFAULT = re.compile(r"\(default[^:)]")
VALUE = re.compile(r"--([\w-]+) ([A-Z]+(?:\\\|[A-Z]+)*)`")
WITH_UNIT = {"TIME", "SIZE", "BYTES", "N"}
SECTION = "## Command line\n"


def rows(text):
    """The cells of the tables of the section."""
    section = text.split(SECTION)[1].split("\n## ")[0]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("|")]


class Page:
    def __init__(self, text):
        found = rows(text)
        self.letters = {letter: name for cells in found for letter, name in LETTER.findall(cells[0])}
        ideas = [cells for cells in found if len(cells) == 3]
        self.names = {name for cells in ideas for name in NAME.findall(cells[1])} | set(self.letters.values())
        self.values = {}
        for name, value in (pair for cells in found for cell in cells[:2] for pair in VALUE.findall(cell)):
            self.values.setdefault(name, []).append(value.replace("\\|", "|"))
        self.refused = {name: cells[1].strip() for cells in ideas for name in NAME.findall(cells[2])}
        self.refused_values = {
            value: cells[1].strip() for cells in ideas for value in re.findall(r"`([A-Z]+)`", cells[2])
        }


def commands(described):
    """(name, options) of each command, and of its subcommands."""
    for command in described:
        yield command["program"] or f"ringtap {command['name']}", command["options"]
        yield from commands(command.get("commands") or [])


def faults(page, option):
    letter, name = option["letter"], option["name"]
    of_name = next((x for x, its in page.letters.items() if its == name), "")
    if not name:
        yield f"-{letter}: no long name"
    elif letter and letter not in page.letters:
        yield f"-{letter}, --{name}: the page has no such letter"
    elif letter and page.letters[letter] != name:
        yield f"-{letter}, --{name}: the letter is that of --{page.letters[letter]}"
    elif of_name != letter:
        yield f"--{name}: its letter -{of_name} is missing"
    if name in page.refused:
        yield f"--{name}: another name of {page.refused[name]}"
    for value in re.findall("[A-Z]+", option.get("arg") or ""):
        if value in page.refused_values:
            yield f"--{name}: {value} is another name of {page.refused_values[value]}"
    if DEFAULT.search(option.get("help") or ""):
        yield f"--{name}: its default is not '(default: VALUE)'"
    values = page.values.get(name, [])
    if WITH_UNIT & set(values) and option.get("arg") not in values:
        yield f"--{name}: its value is {option.get('arg')}, not {' or '.join(values)}"


def check(text, described):
    page = Page(text)
    used = {"help"}
    kinds = {}
    for command, options in commands(described):
        for option in options:
            if option["kind"] == "heading":
                continue
            used.add(option["name"])
            kinds.setdefault(option["name"] or "", {}).setdefault(option["kind"] == "flag", command)
            for fault in faults(page, option):
                yield f"{command}: {fault}"
    for name, users in sorted(kinds.items()):
        if len(users) == 2:
            yield f"--{name}: it has a value in {users[False]}, and none in {users[True]}"
    for name in sorted(page.names - used):
        yield f"{SECTION.strip('# ').strip()}: no command has --{name}"
    for name in sorted(page.names & page.refused.keys()):
        yield f"{SECTION.strip('# ').strip()}: --{name} is a name to use and one not to use"


def main(page, *definitions):
    described = [c for path in definitions for c in json.loads(Path(path).read_text(encoding="utf-8"))]
    found = list(check(Path(page).read_text(encoding="utf-8"), described))
    print("".join(f"{line}\n" for line in found), end="")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
