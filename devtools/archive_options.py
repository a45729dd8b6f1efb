#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the option table of `ringtap archive` as C, from the argument parsers of its commands.

usage: archive_options.py ARCHIVE FILE DEPFILE    ARCHIVE: the folder with the package ringtap_archive

The table is for help, man page and completion of `ringtap`. It is made without the libraries of the
archive: modules that are not installed are replaced by stand-ins."""

import importlib.abc
import importlib.machinery
import sys
from unittest.mock import MagicMock

LIBRARIES = ("duckdb", "lz4", "numpy", "pyarrow", "pyspark", "zstandard")


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what no other finder has found."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in LIBRARIES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


def sentence(text):
    return text[:1].upper() + text[1:]


class Option:
    def __init__(self, action):
        self.words = action.option_strings
        self.actions = {}

    def add(self, command, action, text):
        self.actions[command] = (action, text)

    def help(self):
        """The help that most commands have, then what the others have, by command."""
        texts = [text for _, text in self.actions.values()]
        common = max(texts, key=texts.count)
        others = {}
        for command, (_, text) in self.actions.items():
            if text != common:
                others.setdefault(text, []).append(command)
        return "; ".join([sentence(common), *(f"{', '.join(names)}: {text}" for text, names in others.items())])

    def row(self):
        letter = next((f"'{word[1]}'" for word in self.words if not word.startswith("--")), "0")
        name = next((quoted(word[2:]) for word in self.words if word.startswith("--")), "NULL")
        action = max((a for a, _ in self.actions.values()), key=lambda a: a.nargs != 0)
        kind, arg, choices = "FLAG", None, None
        if action.nargs != 0:
            arg = action.metavar or self.words[-1].lstrip("-").upper()
            kind = "FILE" if arg in ("DIR", "FILE") else "TEXT"
        if action.choices:
            kind, choices = "CHOICE", "|".join(map(str, action.choices))
            arg = action.metavar or choices
        values = ", ".join(quoted(v) if v else "NULL" for v in (arg, choices))
        return f"\t{{OPTION_SET(1), OPTION_{kind}, {letter}, {name}, {values}, 0, 0, {quoted(self.help())}}},"


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def collect(main):
    found = {}
    for command in main.COMMANDS:
        parser = main.parser_of(command)[1]
        formatter = parser._get_formatter()
        for action in parser._actions:
            if action.option_strings and "--help" not in action.option_strings:
                option = found.setdefault(action.option_strings[-1], Option(action))
                option.add(command, action, formatter._expand_help(action))
    return list(found.values())


def rows(main):
    options = collect(main)
    yield from (o.row() for o in options if len(o.actions) > 2)
    for command, text in main.COMMANDS.items():
        own = [o for o in options if len(o.actions) <= 2 and next(iter(o.actions)) == command]
        if own:
            yield f"\t{{.kind = OPTION_HEADING, .help = {quoted(f'{command}: {text}')}}},"
            yield from (o.row() for o in own)


def generate(folder, path, depfile):
    sys.path.insert(0, folder)
    sys.meta_path.append(StandIns())
    sys.dont_write_bytecode = True
    from ringtap_archive import main

    with open(path, "w", encoding="utf-8") as f:
        print("/* Made by devtools/archive_options.py. */", file=f)
        print("static const struct option_def options[] = {", *rows(main), "};", sep="\n", file=f)
        print(f"static const char words[] = {quoted('|'.join(main.COMMANDS))};", file=f)
    read = [m.__file__ for name, m in sys.modules.items() if name.startswith("ringtap_archive")]
    with open(depfile, "w", encoding="utf-8") as f:
        print(f"{path}: {' '.join(read)}", file=f)


if __name__ == "__main__":
    generate(*sys.argv[1:])
