#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the option tables of the commands of `ringtap archive` as C, from their argument parsers.

usage: archive_options.py ARCHIVE FILE DEPFILE    ARCHIVE: the folder with the package ringtap_archive

The tables are for help, man page and completion of `ringtap`. They are made without the libraries of the
archive: modules that are not installed are replaced by stand-ins."""

import datetime
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


def row(action, text):
    words = action.option_strings
    letter = next((f"'{word[1]}'" for word in words if not word.startswith("--")), "0")
    name = next((quoted(word[2:]) for word in words if word.startswith("--")), "NULL")
    kind, arg, choices = "FLAG", None, None
    if action.nargs != 0:
        arg = action.metavar or words[-1].lstrip("-").upper()
        kind = "FILE" if arg in ("DIR", "FILE") else "TEXT"
    if action.choices:
        kind, choices = "CHOICE", "|".join(map(str, action.choices))
        arg = action.metavar or choices
    values = ", ".join(quoted(v) if v else "NULL" for v in (arg, choices))
    return f"\t{{OPTION_SET(1), OPTION_{kind}, {letter}, {name}, {values}, 0, 0, {quoted(sentence(text))}}},"


def operand(action):
    """As in the help of the other commands."""
    name = action.metavar or action.dest.upper()
    return {None: name, "?": f"[{name}]", "*": f"[{name}]...", "+": f"{name}..."}.get(action.nargs, f"[{name}...]")


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def table(main, command):
    """Options and command, as C."""
    parser = main.parser_of(command)[1]
    formatter = parser._get_formatter()
    options = [a for a in parser._actions if a.option_strings and "--help" not in a.option_strings]
    operands = " ".join(operand(a) for a in parser._actions if not a.option_strings)
    yield f"static const struct option_def {command}_options[] = {{"
    yield from (row(a, formatter._expand_help(a)) for a in options)
    yield "};"
    yield f"static const struct command {command}_command = {{"
    yield f'\t.name = "archive {command}", .summary = {quoted(main.COMMANDS[command])},'
    yield f"\t.options = {command}_options, .option_count = {len(options)},"
    if operands:
        yield f"\t.operands = {quoted(operands)}, .operand = operand,"
    yield "};"


def generate(folder, path, depfile):
    sys.path.insert(0, folder)
    sys.meta_path.append(StandIns())
    sys.dont_write_bytecode = True
    # The archive needs Python 3.11; what builds ringtap may have 3.9 (Debian 11) or 3.10 (Ubuntu 22.04).
    datetime.UTC = datetime.timezone(datetime.timedelta(0))
    from ringtap_archive import main

    with open(path, "w", encoding="utf-8") as f:
        print("/* Made by devtools/archive_options.py. */", file=f)
        for command in main.COMMANDS:
            print(*table(main, command), sep="\n", file=f)
        print("static const struct command *const below[] = {", file=f)
        print(*(f"\t&{command}_command," for command in main.COMMANDS), "\tNULL,", "};", sep="\n", file=f)
    read = [m.__file__ for name, m in sys.modules.items() if name.startswith("ringtap_archive")]
    with open(depfile, "w", encoding="utf-8") as f:
        print(f"{path}: {' '.join(read)}", file=f)


if __name__ == "__main__":
    generate(*sys.argv[1:])
