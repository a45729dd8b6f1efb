# SPDX-License-Identifier: BSD-3-Clause
"""Tests that run at the same time, and those that run alone."""
import contextlib
import fcntl
import os
import tempfile

_VARIABLE = "RINGTAP_E2E_TURNS"


def prepare():
    """Makes the folder of the locks, for this process and its children. Returns what removes it."""
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
    """Holds the machine for one test: shared with other tests, or alone. The queue keeps those that come later
    from overtaking one that waits to be alone."""
    with contextlib.ExitStack() as held:
        with _locked("queue", fcntl.LOCK_EX):
            held.enter_context(_locked("machine", fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        yield
