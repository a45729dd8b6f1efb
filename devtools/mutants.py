#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutants: are tests that replace others as strict? Changes C or Python code at random places, one change at a time, in a copy
of the working tree below build/mutants, builds it, and runs the tests of before (--old) and those of now (--new).

Example, with the end-to-end tests of an older revision against a unit test:

  devtools/mutants.py filters --seed 1 --count 15 --revision 208d45b5 \\
      --old 'python3 -m pytest -xq e2e/filters -k refused' --new 'meson test -C $RINGTAP_BUILD filter-option' \\
      packet/filter.c base/options.c:parse_size,parse_time

The commands run in the copy, that of --old with e2e/ of --revision, and with RINGTAP_BUILD set. They must pass without a mutant.
The results are in devtools/mutants, a file for each area, after each mutant. A mutant that is in the file already, by its line's text, is not
tried again, so the same command goes on where it was interrupted; --again runs --new again on those that it has not found. Add
"equivalent": "REASON" to a mutant of the file that no test can find: another takes its place.
Exit status 1: --old has found one that --new has not.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
RESULTS = REPO / "devtools" / "mutants"
NO_CODE = {
    ".c": r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
    ".py": r'""".*?"""|#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
}
NO_CODE[".h"] = NO_CODE[".c"]
COMPARISONS = [
    (r"==", "!="),
    (r"!=", "=="),
    (r"<=", "<"),
    (r">=", ">"),
    (r"(?<![<-])<(?![<=])", "<="),
    (r"(?<![>-])>(?![>=])", ">="),
]
NUMBER = (r"(?<![\w.])(0[xX][0-9a-fA-F]+|\d+)(?![\w.])", None)
# {kind: [(pattern, what replaces it)]}; None: see changes_of()
C_RULES = {
    "condition": [*COMPARISONS, (r"&&", "||"), (r"\|\|", "&&"), (r"!(?![=])", "")],
    "constant": [NUMBER],
    "error path": [(r"(?<=\t)return -\w[^;\n]*;", "return 0;"), (r"(?<=\t\t)return\b[^;\n]*;", ";")],
    "statement": [(r"(?<=\t)(?!return|else|do\b)[a-z_*][\w>.\[\]-]*(\([^\n]*\)| [-+|&]?= [^\n]*|\+\+|--);$", ";")],
}
PYTHON_RULES = {
    "condition": [*COMPARISONS, (r"\band\b", "or"), (r"\bor\b", "and"), (r"\bnot (?!in\b)", "")],
    "constant": [NUMBER],
    "error path": [
        (r"(?<=    )raise\b[^\n(]*(\([^\n]*\))?$", "pass"),
        (r"(?<=        )return\b[^\n]*[\w)\]]$", "pass"),
    ],
    "statement": [(r"(?<=    )[a-z_][\w.]*(\([^\n]*\)| [-+|&]?= [^\n]*[\w)\]])$", "pass")],
}


def code_of(path, text):
    """The text with comments, literals and lines of the preprocessor blanked."""

    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())

    return re.sub(NO_CODE[path.suffix], blank, text, flags=re.DOTALL | re.MULTILINE)


def functions_of(path, text):
    """{name: (first line, last line)}"""
    if path.suffix == ".py":
        return {
            one.name: (one.lineno, one.end_lineno)
            for one in ast.walk(ast.parse(text))
            if isinstance(one, ast.FunctionDef)
        }
    found = {}
    lines = text.split("\n")
    for begin in [i for i, line in enumerate(lines) if line == "{"]:
        head = next(i for i in range(begin - 1, -1, -1) if lines[i][:1].strip())
        if name := re.search(r"(\w+)\(", lines[head]):
            found[name[1]] = (begin + 1, next(i for i in range(begin, len(lines)) if lines[i][:1] == "}") + 1)
    return found


def changes_of(old, new):
    if new is not None:
        return [new]
    value = int(old, 8 if re.fullmatch("0[0-7]+", old) else 0)
    return [str(one) for one in dict.fromkeys((value + 1, value - 1, 0)) if one != value and one >= 0]


def mutants_of(place):
    """All mutants of a place, FILE or FILE:FUNCTION,..."""
    name, _, wanted = place.partition(":")
    path = Path(name)
    text = (REPO / path).read_text(encoding="utf-8")
    functions = functions_of(path, text)
    if missing := set(filter(None, wanted.split(","))) - set(functions):
        sys.exit(f"mutants.py: {path} has no function {', '.join(sorted(missing))}")
    code, lines = code_of(path, text), text.split("\n")
    for kind, rules in (PYTHON_RULES if path.suffix == ".py" else C_RULES).items():
        for pattern, new in rules:
            for found in re.finditer(pattern, code, re.MULTILINE):
                number = code.count("\n", 0, found.start()) + 1
                function = next((one for one, (a, b) in functions.items() if a <= number <= b), "")
                if wanted and function not in wanted.split(","):
                    continue
                column = found.start() - code.rfind("\n", 0, found.start())
                old = text[found.start() : found.end()]
                for change in changes_of(old, new):
                    yield {
                        "file": name,
                        "line": number,
                        "column": column,
                        "function": function,
                        "kind": kind,
                        "text": lines[number - 1].strip(),
                        "from": old,
                        "to": change,
                    }


def key(one):
    return one["file"], one["function"], one["text"], one["column"], one["to"]


class Copy:
    """The working tree, with a build folder; and one with e2e/ of the older revision."""

    def __init__(self, revision, targets, timeout, wrap):
        self.root = REPO / "build" / "mutants"
        self.tree, self.old_tree, self.build = self.root / "tree", self.root / "old-tree", self.root / "build"
        self.env = {**os.environ, "RINGTAP_BUILD": str(self.build), "PYTHONDONTWRITEBYTECODE": "1"}
        self.targets, self.timeout, self.wrap = targets, timeout, wrap
        self.update(self.tree)
        self.update(self.old_tree)
        if revision:
            shutil.rmtree(self.old_tree / "e2e")
            with subprocess.Popen(["git", "archive", revision, "e2e"], cwd=REPO, stdout=subprocess.PIPE) as archive:
                subprocess.run(["tar", "x", "-C", self.old_tree], stdin=archive.stdout, check=True)
        if not (self.build / "build.ninja").exists():
            subprocess.run(["meson", "setup", self.build, self.tree], check=True, stdout=subprocess.DEVNULL)

    @staticmethod
    def update(tree):
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=REPO, check=True, capture_output=True, text=True
        )
        there = {name for name in names.stdout.splitlines() if (REPO / name).is_file()}
        for name in there:
            if not (tree / name).exists() or (tree / name).read_bytes() != (REPO / name).read_bytes():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPO / name, tree / name)
        for path in tree.rglob("*"):
            if path.is_file() and str(path.relative_to(tree)) not in there:
                path.unlink()

    def make(self):
        """Builds. Returns a digest of the objects; None if the code does not compile."""
        if subprocess.run(["ninja", "-C", self.build, *self.targets], capture_output=True, check=False).returncode:
            return None
        return {path: hashlib.sha1(path.read_bytes()).digest() for path in sorted(self.build.rglob("*.o"))}

    def passes(self, command, tree):
        with (
            open(self.root / "log", "w", encoding="utf-8") as log,
            subprocess.Popen(
                [*self.wrap, "sh", "-c", command],
                cwd=tree,
                env=self.env,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            ) as run,
        ):
            for number, seconds in ((signal.SIGINT, self.timeout), (signal.SIGKILL, 60)):
                try:
                    return run.wait(seconds) == 0
                except subprocess.TimeoutExpired:  # SIGINT first: pytest then ends what it has started
                    os.killpg(run.pid, number)
            return False

    def apply(self, one, back=False):
        for tree in (self.tree, *([self.old_tree] if one["file"].endswith(".py") else [])):
            lines = (REPO / one["file"]).read_text(encoding="utf-8").split("\n")
            line, column = lines[one["line"] - 1], one["column"] - 1
            if not back:
                lines[one["line"] - 1] = line[:column] + one["to"] + line[column + len(one["from"]) :]
            (tree / one["file"]).write_text("\n".join(lines), encoding="utf-8")


def test(copy, one, args, original):
    """Adds the outcomes to a mutant."""
    copy.apply(one)
    try:
        objects = copy.make()
        if objects is None:
            one["left_out"] = "does not compile"
        elif objects == original and not one["file"].endswith(".py"):
            one["left_out"] = "the same object code"
        else:
            one["new"] = not copy.passes(args.new, copy.tree)
            if "old" not in one and not (args.lazy and one["new"]):
                one["old"] = not copy.passes(args.old, copy.old_tree)
    finally:
        copy.apply(one, back=True)


def outcome(one):
    by = [name for name in ("old", "new") if one.get(name)]
    return one.get("left_out") or ("equivalent" if "equivalent" in one else f"found by {' and '.join(by) or 'none'}")


def candidates(places, seed):
    """Mutants in random order, the kinds in turn."""
    chance = random.Random(seed)
    kinds = {}
    for place in places:
        for one in mutants_of(place):
            kinds.setdefault(one["kind"], []).append(one)
    for found in kinds.values():
        chance.shuffle(found)
    while kinds:
        for kind in list(kinds):
            yield kinds[kind].pop()
            if not kinds[kind]:
                del kinds[kind]


def write(file, args, mutants):
    file.parent.mkdir(exist_ok=True)
    head = {name: getattr(args, name) for name in ("area", "seed", "revision", "old", "new", "places")}
    file.write_text(json.dumps({**head, "mutants": mutants}, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("area", help="name of the results")
    parser.add_argument("places", nargs="+", metavar="FILE[:FUNCTION,...]")
    parser.add_argument("--old", required=True, metavar="COMMAND")
    parser.add_argument("--new", required=True, metavar="COMMAND")
    parser.add_argument(
        "--revision", default="", help="e2e/ of the old command is of this revision (default: the present one)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=15, help="mutants (default: 15)")
    parser.add_argument(
        "--build", default="all", metavar="TARGETS", help="what ninja builds for the commands (default: all)"
    )
    parser.add_argument(
        "--timeout", type=int, default=300, help="seconds of a command, after which it has failed (default: 300)"
    )
    parser.add_argument("--lazy", action="store_true", help="run --old only on mutants that --new does not find")
    parser.add_argument(
        "--again", action="store_true", help="run --new again on mutants of the results that it has not found"
    )
    parser.add_argument("--wrap", default="", metavar="COMMAND", help="put before the commands; not recorded")
    args = parser.parse_args()
    file = RESULTS / f"{args.area}.json"
    done = {key(one): one for one in (json.loads(file.read_text())["mutants"] if file.exists() else [])}
    copy = Copy(args.revision, args.build.split(), args.timeout, args.wrap.split())
    original = copy.make()
    for command, tree in ((args.old, copy.old_tree), (args.new, copy.tree)):
        if original is None or not copy.passes(command, tree):
            sys.exit(
                f"mutants.py: fails without a mutant (see {copy.root / 'log'}): {command if original else 'the build'}"
            )
    tried, counted = [], 0
    for one in candidates(args.places, args.seed):
        if counted == args.count:
            break
        before = done.get(key(one), {})
        one = {**before, **one}
        if not before or (args.again and outcome(one) in ("found by none", "found by old")):
            test(copy, one, args, original)
        tried.append(one)
        counted += "new" in one and "equivalent" not in one
        print(
            f"{outcome(one)}: {one['file']}:{one['line']} {one['kind']} '{one['from']}' -> '{one['to']}' in '{one['text']}'",
            flush=True,
        )
        done.pop(key(one), None)
        write(file, args, tried + list(done.values()))
    write(file, args, tried)
    outcomes = [outcome(one) for one in tried]
    print(f"{counted} mutants: " + ", ".join(f"{outcomes.count(what)} {what}" for what in sorted(set(outcomes))))
    return 1 if "found by old" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
