# SPDX-License-Identifier: BSD-3-Clause
"""Tests that run alone keep the machine until the last of them."""

import os
import sys

import pytest

from harness import turns
from harness.paths import E2E
from harness.proc import Proc

OTHER = """
from harness import turns
print("waits", flush=True)
with turns.turn(alone=False):
    print("runs", flush=True)
"""


@pytest.fixture
def folder(monkeypatch):
    """Locks of this test."""
    monkeypatch.setenv("RINGTAP_E2E_TURNS", "")
    remove = turns.prepare()
    yield
    remove()


@pytest.mark.nightly
def test_others_wait_for_the_last_one(folder, closing):
    with turns.turn(alone=True, next_alone=True):
        other = closing(
            Proc([sys.executable, "-c", OTHER], env={"PYTHONPATH": f"{E2E}{os.pathsep}{E2E.parent / 'lab'}"})
        )
        other.expect("^waits$")
    with turns.turn(alone=True):
        other.never("^runs$", 0.2)
    other.expect("^runs$")


@pytest.mark.nightly
def test_others_run_beside_one_that_does_not(folder, closing):
    with turns.turn(alone=False, next_alone=True):
        other = closing(
            Proc([sys.executable, "-c", OTHER], env={"PYTHONPATH": f"{E2E}{os.pathsep}{E2E.parent / 'lab'}"})
        )
        other.expect("^runs$")
