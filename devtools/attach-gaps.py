#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Longest polling gaps of an application in windows with and without an attach, and how long an
attach takes: attach-gaps.py [WINDOWS]. Needs root and a quiet machine. Every window has a fresh
process; both kinds take turns."""

import os
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("e2e", "lab")]
from harness import dpdk  # noqa: E402
from harness.paths import BUILD, RINGTAP  # noqa: E402
from harness.proc import Proc, check  # noqa: E402

WINDOW_S = 0.2


def window(attach):
    """The longest gap and the time of the attach, in microseconds and milliseconds."""
    prefix = dpdk.new_prefix("gap")
    app = Proc([BUILD / "e2e" / "rt_gap", *dpdk.eal_args(prefix, vdevs=["net_null0"], lcores="0,1", memory_mb=64)])
    try:
        app.expect("^ready$")
        time.sleep(WINDOW_S)
        app.send("")
        app.expect(r"^\d+$")
        begin = time.monotonic()
        # The same work on the other core, without the attach.
        check(["taskset", "-c", "0", RINGTAP, *(["attach", str(app.pid)] if attach else ["list"])])
        took = time.monotonic() - begin
        time.sleep(max(0, WINDOW_S - took))
        app.send("")
        gap = int(app.expect(r"^\d+$").group()) / 1000
        app.close_stdin()
        assert app.wait() == 0
        return gap, took * 1000
    finally:
        app.close()
        dpdk.remove_run_dir(prefix)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    os.sched_setaffinity(0, {0})
    results = {True: [], False: []}
    for _ in range(count):
        for attach in (True, False):
            results[attach].append(window(attach))
    for attach, name in ((True, "with an attach"), (False, "without")):
        gaps, times = zip(*results[attach])
        gaps = sorted(gaps)
        print(
            f"{name}: longest gap: median {statistics.median(gaps):.1f} us, least {gaps[0]:.1f}, most {gaps[-1]:.1f}; "
            f"command: median {statistics.median(times):.0f} ms, most {max(times):.0f}"
        )
    print(
        f"difference of the medians: "
        f"{statistics.median(g for g, _ in results[True]) - statistics.median(g for g, _ in results[False]):.1f} us"
    )


if __name__ == "__main__":
    main()
