# SPDX-License-Identifier: BSD-3-Clause
"""Notes, of unit tests that take unusually long, what their threads wait for and who has the CPUs, so that a test that luck
failed has a cause. It reads /proc only."""

import threading
import time
from pathlib import Path

SECONDS = 30  # a test that takes longer is noted
INTERVAL = 15
BESIDE = 6  # threads of others that are named


def read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended, or its stack is root's
        return ""


def tests_of(build):
    """{pid: name} of the unit tests of a build folder that run."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            program = (process / "exe").readlink()
        except OSError:
            continue
        if program.name.endswith("_test") and program.is_relative_to(build):
            found[int(process.name)] = program.name
    return found


def times():
    """{task's path: (ns that it ran, ns that it waited for a CPU)} of all threads of the machine."""
    found = {}
    for task in Path("/proc").glob("[0-9]*/task/[0-9]*"):
        words = read(task / "schedstat").split()
        if len(words) >= 2:
            found[task] = (int(words[0]), int(words[1]))
    return found


def of_task(task, ran_ns, waited_ns):
    rest = read(task / "stat").rpartition(")")[2].split()
    allowed = "".join(
        line.split()[1] for line in read(task / "status").splitlines() if line.startswith("Cpus_allowed_list")
    )
    state, cpu = (rest[0], rest[36]) if len(rest) > 36 else ("?", "?")
    stack = " < ".join(line.split()[-1].partition("+")[0] for line in read(task / "stack").splitlines()[:8])
    return (
        f"{task.name} {read(task / 'comm').strip()}: {state}, on CPU {cpu} of {allowed}, "
        f"ran {ran_ns / 1e6:.0f} ms and waited {waited_ns / 1e6:.0f} ms; {stack or 'in user space'}"
    )


def snapshot(slow):
    """Lines about these tests, {pid: (name, seconds)}, from two looks a second apart."""
    before = times()
    time.sleep(1)
    spent = {task: [b - a for a, b in zip(before[task], now)] for task, now in times().items() if task in before}
    lines = []
    for pid, (name, seconds) in slow.items():
        lines.append(f"{time.strftime('%H:%M:%S')} {name} has taken {seconds:.0f} s; in a second its threads")
        lines += ["  " + of_task(task, *ns) for task, ns in spent.items() if task.parts[2] == str(pid)]
    others = [task for task in spent if int(task.parts[2]) not in slow]
    busiest = sorted(others, key=lambda task: spent[task][0], reverse=True)[:BESIDE]
    return [*lines, "beside", *("  " + of_task(task, *spent[task]) for task in busiest)]


class Watch(threading.Thread):
    """Looks until stop() is called. What it has noted is in the file."""

    def __init__(self, build, file, seconds=SECONDS, interval=INTERVAL):
        super().__init__(daemon=True)
        self.build = Path(build).resolve()
        self.file = Path(file)
        self.seconds, self.interval = seconds, interval
        self.ended = threading.Event()

    def run(self):
        seen = {}
        while not self.ended.wait(self.interval):
            now = time.monotonic()
            tests = tests_of(self.build)
            seen = {pid: seen.get(pid, now) for pid in tests}
            slow = {pid: (name, now - seen[pid]) for pid, name in tests.items() if now - seen[pid] >= self.seconds}
            if slow:
                with self.file.open("a", encoding="utf-8") as file:
                    file.write("\n".join(snapshot(slow)) + "\n")

    def stop(self):
        self.ended.set()
        self.join()
