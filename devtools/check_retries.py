# SPDX-License-Identifier: BSD-3-Clause
"""Prints loops in e2e/ that try an assertion several times: a test that needs luck hides what it finds. Waiting for an event
is the task of harness.proc (until(), Proc.expect()), which has the only such loops.
Run by devtools/lint.sh; exit status 1 if anything is printed. usage: check_retries.py FILE..."""

import ast
import sys
from pathlib import Path

WAITS = {
    ("e2e/harness/proc.py", "within"),
    ("e2e/harness/proc.py", "_expect"),
    ("e2e/qemu/agent.py", "main"),
}  # a server: it sends failures to the test
FAILURES = {"AssertionError", "Exception", "BaseException", "Gone", "Refused", "Failed"}
RERUNS = {"flaky", "repeat", "retry", "rerun"}  # marks and decorators of plug-ins
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.While)


def names(node):
    return (
        {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        if node
        else {"BaseException"}
    )


def inside(node, leave_out=FUNCTIONS):
    """The statements and expressions of a loop's body, without those of inner functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, leave_out):
            yield child
            yield from inside(child, leave_out)


def counts(loop, body):
    """Whether a loop has a fixed number of turns, whose number makes no difference to what it does."""
    if not (
        isinstance(loop.iter, ast.Call) and names(loop.iter.func) == {"range"} and isinstance(loop.target, ast.Name)
    ):
        return False
    return loop.target.id in ("attempt", "trial") or not any(loop.target.id in names(one) for one in body)


def leaves_early(loop):
    """Whether the loop ends by a condition of its body: a return or a break below an if, not of an inner loop's."""
    for one in loop.body:
        for branch in [one, *inside(one, (*FUNCTIONS, *LOOPS, ast.ExceptHandler))]:
            if isinstance(branch, ast.If) and any(
                isinstance(x, (ast.Return, ast.Break)) for x in inside(branch, (*FUNCTIONS, *LOOPS))
            ):
                return True
    return False


def is_limit(test):
    """'len(x) < 10', 'tries < most'"""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], (ast.Lt, ast.LtE))
        and isinstance(test.comparators[0], (ast.Constant, ast.Name))
        and isinstance(test.left, (ast.Name, ast.Call))
    )


def faults(loop):
    for one in inside(loop):
        if (
            isinstance(one, ast.ExceptHandler)
            and FAILURES & names(one.type)
            and not any(isinstance(x, ast.Raise) for x in inside(one))
        ):
            yield one, "a loop that catches a failed assertion"
        if isinstance(one, ast.With) and any(
            "suppress" in names(x.context_expr) and FAILURES & names(x.context_expr) for x in one.items
        ):
            yield one, "a loop that suppresses a failed assertion"
        if isinstance(loop, ast.While) and isinstance(one, ast.Assert) and is_limit(one.test):
            yield one, "a loop that repeats until it succeeds, with a limit"
    if isinstance(loop, ast.For) and counts(loop, loop.body) and leaves_early(loop):
        yield loop, "a loop that repeats until it succeeds"


def check(path, tree):
    functions = [(one.lineno, one.end_lineno, one.name) for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    for node in ast.walk(tree):
        where = {name for begin, end, name in functions if begin <= getattr(node, "lineno", 0) <= end}
        if isinstance(node, LOOPS) and not any((path, name) in WAITS for name in where):
            yield from ((one.lineno, what) for one, what in faults(node))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("any", "next")
            and any(
                isinstance(arg, ast.GeneratorExp) and counts(arg.generators[0], [arg.elt, *arg.generators[0].ifs])
                for arg in node.args
            )
        ):
            yield node.lineno, f"{node.func.id}() that repeats until it succeeds"
        for mark in getattr(node, "decorator_list", []):
            if RERUNS & names(mark):
                yield mark.lineno, "a mark that repeats a failed test"


def main():
    found = {
        (path, *fault)
        for path in sys.argv[1:]
        for fault in check(path, ast.parse(Path(path).read_text(encoding="utf-8")))
    }
    for path, line, what in sorted(found):
        print(f"{path}:{line}: {what}: set up what the test needs, or wait for it by until() of harness.proc")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
