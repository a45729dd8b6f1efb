# SPDX-License-Identifier: BSD-3-Clause
"""Starting, waiting for and stopping programs; what was started is remembered for the report."""
import contextlib
import ctypes
import os
import re
import shlex
import signal
import subprocess
import time

commands = []  # command lines in order of first use
abbreviations = {}  # of what tells a reader nothing: folders, numbers of processes
echo = True  # prints each as it is used for the first time

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@contextlib.contextmanager
def recorded():
    """Within it, the command lines gather in the list that it gives, and nowhere else."""
    global commands, echo
    outside = commands, echo
    commands, echo = [], False
    try:
        yield commands
    finally:
        commands, echo = outside


def remember(argv, env=None):
    line = " ".join([f"{k}={shlex.quote(v)}" for k, v in (env or {}).items()] + [shlex.join(argv)])
    for what, instead in abbreviations.items():
        line = line.replace(what, instead)
    if line not in commands:
        commands.append(line)
        if echo:
            print(f"$ {line}", flush=True)


def _end_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def start(argv, env=None, **kwargs):
    """In a process group of its own: of a Ctrl-C only we learn, and end it as is proper. (Not in a
    session of its own: it would not have our niceness.) It ends with the thread that starts it, even
    if that is killed: to be called in the main thread."""
    remember(argv, env)
    return subprocess.Popen(argv, env={**os.environ, **(env or {})}, process_group=0,
                            preexec_fn=_end_with_parent, **kwargs)


def run(argv, env=None, timeout_s=60, on_start=None):
    """Runs to its end: (exit status, stdout, stderr). Ended by SIGINT, then SIGKILL, when it hangs or
    we are interrupted. on_start is called with its pid."""
    p = start(argv, env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
              text=True)
    try:
        if on_start:
            on_start(p.pid)
        out, err = p.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        stop(p, signal.SIGINT)
        out, err = p.communicate()
    except BaseException:
        stop(p, signal.SIGINT)
        raise
    return p.returncode, out, err


def cpu_times(task):
    """Seconds for a task ("PID" or "PID/task/TID"): (now, has run, has waited for a cpu to run on).
    None if it has ended."""
    try:
        with open(f"/proc/{task}/schedstat", encoding="ascii") as f:
            ran, waited, _ = f.read().split()
    except (OSError, ValueError):
        return None
    return time.monotonic(), int(ran) * 1e-9, int(waited) * 1e-9


def waiting_share(before, after):
    """Part of the time between two cpu_times() that a task wanted to run and others did."""
    if not before or not after or after[0] <= before[0]:
        return 0.0
    return (after[2] - before[2]) / (after[0] - before[0])


def stop(p, sig=signal.SIGTERM, patience_s=5):
    if p.poll() is None:
        p.send_signal(sig)
    try:
        p.wait(patience_s)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()


def wait_for(condition, timeout_s, what):
    """The first true value of condition(); TimeoutError if there is none in time."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise TimeoutError(f"waited {timeout_s} s for {what}")


def needed_libraries(program):
    """Shared libraries that a program was linked with, in order."""
    out = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True)
    return re.findall(r"NEEDED.*\[(.*)\]", out.stdout)
