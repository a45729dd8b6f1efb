# SPDX-License-Identifier: BSD-3-Clause
"""What the machine can do at best: bare copy loop, merging, writing to disk."""
import json
import os
import re

from ..tools import process

DD_BLOCK_MB = 4


def copy_loop(program, size, cpus, extra=()):
    """Packets per second of the bare copy loop, its consumer walking over the headers."""
    argv = [program, "-l", str(size), "-c", f"{cpus[0]},{cpus[1]}", "-n", "3", "-t", "100", *extra]
    status, out, err = process.run(argv)
    if status != 0:
        raise RuntimeError(f"copy_loop ended with status {status}: {err.strip()}")
    return json.loads(out)["mpps_median"] * 1e6


def merge(program, cpu, rings, burst):
    """Packets per second that the reader merges on one core, out of so many rings whose bursts of
    so many packets take turns."""
    argv = ["taskset", "-c", str(cpu), program, "-r", str(rings), "-b", str(burst)]
    status, out, err = process.run(argv)
    if status != 0:
        raise RuntimeError(f"merge_bench ended with status {status}: {err.strip()}")
    return json.loads(out)["mpps_median"] * 1e6


def dd_direct(folder, megabytes):
    """Bytes per second that dd writes with O_DIRECT into a new file there."""
    path = os.path.join(folder, "dd.bin")
    argv = ["dd", "if=/dev/zero", f"of={path}", f"bs={DD_BLOCK_MB}M",
            f"count={megabytes // DD_BLOCK_MB}", "oflag=direct"]
    try:
        status, _, err = process.run(argv, {"LC_ALL": "C"})
        found = re.search(r"(\d+) bytes .* copied, ([0-9.e+-]+) s", err)
        if status != 0 or not found:
            raise RuntimeError(f"dd: {err.strip()}")
        return int(found.group(1)) / float(found.group(2))
    finally:
        if os.path.exists(path):
            os.unlink(path)
