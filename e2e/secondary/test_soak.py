# SPDX-License-Identifier: BSD-3-Clause
"""Many secondaries are killed, at any moment of a recording that begins, runs and ends: `make soak`."""

import os
import random
import signal
import time

from harness.proc import until

KILLS = int(os.environ["RINGTAP_SOAK"])
SEED = int(os.environ.get("RINGTAP_SEED", 1))


def test_kills_at_any_moment(primary, secondary, plugin, record):
    """Nothing that a killed process held may stop the primary: it begins and ends a recording after each kill."""
    chance = random.Random(SEED)
    for _ in range(KILLS):
        other = secondary(plugin)
        other.send("forward 1000000 0")
        recorder = record(primary, "-f", "greater 20000", attach=False)
        time.sleep(chance.uniform(0, 1))
        os.kill(other.pid, signal.SIGKILL)
        until(lambda: not other.proc.alive(), what="its end")
        other.close()
        if "Capturing on" not in recorder.proc.output:
            recorder.attached()
        recorder.finish()
        recorder = record(primary, "--ids")
        primary.send("forward 10 0")
        primary.done()
        recorder.finish()
        assert len(recorder.file().packets) == 20
