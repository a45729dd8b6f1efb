# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tracing tests."""

import os
import shutil
from pathlib import Path

import pytest
from harness.monitor import Monitor
from harness.paths import LTTNG_PROVIDER
from harness.proc import Proc, until
from harness.tracers import Lttng, lttng_missing


@pytest.fixture
def monitor(closing):
    return lambda app, *args, **kwargs: closing(Monitor(app, *args, **kwargs))


@pytest.fixture
def lttng(closing, tmp_path):
    """A session daemon in a separate namespace and folder."""
    reason = lttng_missing()
    if not LTTNG_PROVIDER.exists():
        reason = "built without LTTng"
    if reason:
        pytest.skip(reason)
    return closing(Lttng(tmp_path))


@pytest.fixture
def hog(closing, tmp_path):
    """A program with this name that uses a CPU continuously. Among more programs than the polling thread and it, it is
    the next one that runs, which is what traces name, as it gets most of the time."""

    def start(cpu, name="rt-hog"):
        if not (tmp_path / name).exists():
            shutil.copy(os.path.realpath(shutil.which("yes")), tmp_path / name)
        it = closing(
            Proc(["nice", "-n", "-10", "taskset", "-c", str(cpu), "sh", "-c", 'exec "$0" >/dev/null', tmp_path / name])
        )

        def ticks():
            text = Path(f"/proc/{it.pid}/stat").read_text()
            return text.split(") ")[0].endswith(f"({name}") and sum(int(t) for t in text.split(") ")[1].split()[11:13])

        it.ticks = ticks
        until(lambda: ticks() >= 20, what="the hog had 0.2 s")
        return it

    return start
