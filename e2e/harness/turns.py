# SPDX-License-Identifier: BSD-3-Clause
"""Locks for tests that run in parallel, and for those that run alone."""

import contextlib
import fcntl
import os
import tempfile

_VARIABLE = "RINGTAP_E2E_TURNS"


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


@contextlib.contextmanager
def turn(alone):
    """Locks the machine for one test: shared, or exclusive. The queue prevents later tests from
    overtaking one that waits for the exclusive lock."""
    with contextlib.ExitStack() as held:
        with _locked("queue", fcntl.LOCK_EX):
            held.enter_context(_locked("machine", fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        yield
