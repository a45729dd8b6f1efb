# SPDX-License-Identifier: BSD-3-Clause
"""devtools/mutants.py changes code, and only code."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import mutants

C = r'''/* if (a == 1) */
#define LIMIT (a == 2)
static const char text[] = "a == 3";

static int first(int a)
{
	if (a == 4 && !text[0]) {
		prepare(a);
		return -EINVAL;
	}
	return a << 5;
}

int second(int a)
{
	return a >= 6 ? a : -1; // a == 7
}
'''
PYTHON = '''"""a == 1"""


def first(a):
    # a == 2
    if a == 3 and not a:
        raise ValueError("a == 4")
    prepare(a)
'''


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "REPO", tmp_path)

    def find(place, text):
        (tmp_path / place.partition(":")[0]).write_text(text)
        return {(one["line"], one["kind"], one["from"], one["to"]) for one in mutants.mutants_of(place)}

    return find


def test_a_function_of_c(found):
    assert found("a.c:first", C) == {
        (7, "condition", "==", "!="),
        (7, "condition", "&&", "||"),
        (7, "condition", "!", ""),
        (7, "constant", "4", "5"),
        (7, "constant", "4", "3"),
        (7, "constant", "4", "0"),
        (7, "constant", "0", "1"),
        (8, "statement", "prepare(a);", ";"),
        (9, "error path", "return -EINVAL;", "return 0;"),
        (9, "error path", "return -EINVAL;", ";"),
        (11, "constant", "5", "6"),
        (11, "constant", "5", "4"),
        (11, "constant", "5", "0"),
    }


def test_another_function_of_c(found):
    conditions = {one for one in found("a.c:second", C) if one[1] == "condition"}
    assert conditions == {(16, "condition", ">=", ">")}
    assert found("a.c", C) == found("a.c:first", C) | found("a.c:second", C)


def test_a_function_of_python(found):
    assert found("a.py:first", PYTHON) == {
        (6, "condition", "==", "!="),
        (6, "condition", "and", "or"),
        (6, "condition", "not ", ""),
        (6, "constant", "3", "4"),
        (6, "constant", "3", "2"),
        (6, "constant", "3", "0"),
        (7, "error path", 'raise ValueError("a == 4")', "pass"),
        (8, "statement", "prepare(a)", "pass"),
    }


def test_a_function_that_does_not_exist_is_refused(found):
    with pytest.raises(SystemExit, match="a.c has no function third"):
        found("a.c:third", C)


def test_seed_and_kinds(tmp_path, monkeypatch):
    """The same seed gives the same mutants, and the kinds come in turn."""
    monkeypatch.setattr(mutants, "REPO", tmp_path)
    (tmp_path / "a.c").write_text(C)
    first, again, other = ([mutants.key(one) for one in mutants.candidates(["a.c"], seed)] for seed in (1, 1, 2))
    assert first == again != other and sorted(first) == sorted(other)
    assert {one["kind"] for one, _ in zip(mutants.candidates(["a.c"], 1), range(4))} == set(mutants.C_RULES)
