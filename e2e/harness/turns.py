# SPDX-License-Identifier: BSD-3-Clause
"""Locks for tests that run in parallel, and for those that run alone."""

import contextlib
import fcntl
import os
import tempfile

_VARIABLE = "RINGTAP_E2E_TURNS"
_kept = None  # the exclusive lock, between two tests that run alone


def prepare():
    """Makes the folder of the locks, for this process and its children. Returns a function that
    removes it."""
    folder = tempfile.TemporaryDirectory(prefix="ringtap-e2e-turns-")
    os.environ[_VARIABLE] = folder.name
    return folder.cleanup


@contextlib.contextmanager
def _locked(name, how):
    with open(os.path.join(os.environ[_VARIABLE], name), "w", encoding="ascii") as file:
        fcntl.flock(file, how)
        yield


def _lock(how):
    """The queue prevents later tests from overtaking one that waits for the exclusive lock."""
    held = contextlib.ExitStack()
    with _locked("queue", fcntl.LOCK_EX):
        held.enter_context(_locked("machine", how))
    return held


@contextlib.contextmanager
def turn(alone, next_alone=False):
    """Locks the machine for one test: shared, or exclusive. If the next test of this process runs alone,
    too, it keeps the lock: others would each run a test before it gets that again."""
    global _kept
    held, _kept = _kept or _lock(fcntl.LOCK_EX if alone else fcntl.LOCK_SH), None
    try:
        yield
    finally:
        if alone and next_alone:
            _kept = held
        else:
            held.close()
