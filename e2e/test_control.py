# SPDX-License-Identifier: BSD-3-Clause
"""What the control thread costs the application that it lives in."""
import signal

import pytest

from harness.proc import Proc, run, until

TICKS = 60  # of the control thread: 3 s


def test_running_capture_interrupts_no_core(busy, record, closing, tmp_path):
    """membarrier(2) interrupts every core that runs a thread of the application."""
    if run(["strace", "-V"]).returncode:
        pytest.skip("needs strace")
    recorder = record(busy, "-s", "64", out="/dev/null")
    log = tmp_path / "calls"
    tracer = closing(Proc(["strace", "-f", "-e", "trace=membarrier,poll", "-o", log, "-p", busy.pid]))
    until(lambda: log.exists() and log.read_text().count("poll(") >= TICKS, 60, "ticks of the control thread")
    calls = log.read_text()
    tracer.send_signal(signal.SIGINT)
    tracer.wait(20)
    assert "membarrier" not in calls
    recorder.finish()
