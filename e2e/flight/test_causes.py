# SPDX-License-Identifier: BSD-3-Clause
"""Why a thread did not poll: a task with a real-time priority takes its CPU, again and again."""

import re
import sys

import pytest
from harness import flight
from harness.proc import Proc, until

NAME = "greedy-task"
ONCE_NS, OFTEN_NS, TIMES = 20_000_000, 1_000_000, 100

# Once for 20 ms, and 100 times for 1 ms in half a second: it runs for as long as it has the CPU. A trace has the name that
# a task had when it got the CPU, so it comes to CPU 1 from another one once it has its name.
GREEDY = f"""
import ctypes, os, time
libc = ctypes.CDLL(None)
assert libc.prctl(15, b"{NAME}", 0, 0, 0) == 0
assert libc.mlockall(3) == 0  # a page that has to be read gives the CPU back
os.sched_setaffinity(0, {{0}})
os.sched_setaffinity(0, {{1}})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
def take(ns):
    end = time.monotonic_ns() + ns
    while time.monotonic_ns() < end:
        pass
take(1000)
begin = time.time_ns()
take({ONCE_NS})
end = time.time_ns()
for _ in range({TIMES}):
    time.sleep(0.004)
    take({OFTEN_NS})
print("took", begin, end, flush=True)
"""


def gaps_of(incident):
    """Gaps of the lanes whose text names the task: start since the epoch, length, name of the state, the task's time."""
    panel = flight.panel(incident, "threads")
    states = [s["name"] for s in panel["states"]]
    for lane in panel["lanes"]:
        for start, ns, state, *text in lane["intervals"]:
            found = re.search(rf"'{NAME}' \(\d+\)(?: had its CPU)? for ([0-9.]+) (us|ms|s)", text[0] if text else "")
            if found:
                had = float(found[1]) * {"us": 1e3, "ms": 1e6, "s": 1e9}[found[2]]
                yield incident.at("from") + start, ns, states[state], had


@pytest.mark.alone
def test_the_task_that_took_the_cpu_is_named(stream_of, keep, closing):
    """The windows of the probe have eight gaps a second, none of them with a task."""
    app = stream_of("20k")
    kept = keep(app, "--before", "4s", "--after", "50ms", "--collectors", "gaps,busy")
    until(lambda: flight.state(app)["kept_ns"] > 3_500_000_000, what="threads are followed")
    greedy = closing(Proc([sys.executable, "-c", GREEDY]))
    begin, end = map(int, greedy.expect(r"^took (\d+) (\d+)").groups())
    flight.command("trigger", kept.folder)
    (incident,) = kept.incidents(1)
    kept.finish()
    gaps = list(gaps_of(incident))
    assert {state for _start, _ns, state, _had in gaps} == {"gap: waited for its CPU"}
    once = [g for g in gaps if g[0] <= begin + 100_000 and g[0] + g[1] >= end - 100_000]
    assert len(once) == 1, (begin, end, gaps)
    assert once[0][1] >= 0.99 * ONCE_NS and once[0][3] >= 0.99 * ONCE_NS
    # Beside other load one gap may have several of its times.
    assert len(gaps) > 8 and sum(had for *_gap, had in gaps) > 0.5 * TIMES * OFTEN_NS
    assert not incident.file.interval_losses
