# SPDX-License-Identifier: BSD-3-Clause
"""Starts programs, waits for them and stops them; command lines are recorded for the report."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from signal import Signals
    from subprocess import Popen
    from typing import Any

commands = []  # command lines in order of first use
abbreviations = {}  # text by what stands instead of it: folders, numbers of processes
echo = True  # prints each as it is used for the first time

READY_S = 30
END_S = 60
PATIENCE_S = 5  # with a process that a signal asks to end
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@contextlib.contextmanager
def recorded() -> Iterator:
    """Within it, command lines go into the list that it yields, and nowhere else."""
    global commands, echo
    outside = commands, echo
    commands, echo = [], False
    try:
        yield commands
    finally:
        commands, echo = outside


def remember(argv: list[str], env: dict[str, str] | None = None) -> None:
    line = " ".join([f"{k}={shlex.quote(v)}" for k, v in (env or {}).items()] + [shlex.join(argv)])
    for text, instead in abbreviations.items():
        line = line.replace(text, instead)
    if line not in commands:
        commands.append(line)
        if echo:
            print(f"$ {line}", flush=True)


def _end_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def start(argv: list[str], env: Any = None, **kwargs) -> Popen:
    """In a process group of its own: Ctrl-C reaches only this program, which ends the others in order. (Not in a session of
    its own: that would not have our niceness.) It ends with the thread that starts it, even if that is killed: to be
    called in the main thread."""
    remember(argv, env)
    return subprocess.Popen(
        argv, env={**os.environ, **(env or {})}, process_group=0, preexec_fn=_end_with_parent, **kwargs
    )


def run(argv: list[str], env: dict[str, str] | None = None, timeout_s: float = 60) -> Any:
    """Runs to its end: (exit status, stdout, stderr). Ended by SIGINT, then SIGKILL, when it hangs or this program is
    interrupted."""
    p = start(argv, env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = p.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        stop(p, signal.SIGINT)
        out, err = p.communicate()
    except BaseException:
        stop(p, signal.SIGINT)
        raise
    return p.returncode, out, err


class Hung(RuntimeError):
    """A program did not end in time."""


class Program:
    """A program that runs until finish(), which sends SIGINT. The context is entered when it has printed `ready`."""

    def __init__(self, argv: list[str], ready: str, env: dict[str, str] | None = None):
        self.argv, self.ready, self.env = [str(a) for a in argv], ready, env
        # Behind prefixes, such as taskset.
        self.name = os.path.basename(
            next((a for a in self.argv if a.startswith(("/", "dpdk", "bpftrace"))), self.argv[0])
        )
        self.process = None

    def __enter__(self) -> Any:
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        self.process = start(self.argv, self.env, stdin=subprocess.DEVNULL, stdout=self.files[0], stderr=self.files[1])
        try:
            wait_for(self.is_ready, READY_S, f"{self.name} to begin")
        except BaseException:
            self.__exit__()
            raise
        return self

    def printed(self) -> tuple:
        """(stdout, stderr) so far. Read at offsets: a position would be shared with the program, which writes there."""
        return tuple(os.pread(f.fileno(), os.fstat(f.fileno()).st_size, 0).decode(errors="replace") for f in self.files)

    def is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise self.failed(f"ended with status {self.process.returncode}")
        return any(self.ready in text for text in self.printed())

    def failed(self, how: Any) -> Any:
        last = [line for text in self.printed() for line in text.strip().splitlines()[-3:]]
        return RuntimeError(f"{self.name} {how}: {' | '.join(last) or 'it printed nothing'}")

    def finish(self, end: bool = True) -> tuple:
        """(stdout, stderr) when it has ended. end: SIGINT ends it, else it ends by itself."""
        if end and self.process.poll() is not None:
            raise self.failed("ended by itself")
        if end:
            self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise Hung(f"{self.name} did not end within {END_S} s") from None
        if status != 0:
            raise self.failed(f"ended with status {status}")
        return self.printed()

    def __exit__(self, *_) -> None:
        stop(self.process, signal.SIGINT)
        for f in self.files:
            f.close()


def cpu_times(task: Any) -> tuple | None:
    """Seconds for a task ("PID" or "PID/task/TID"): (now, has run, has waited for a CPU). None if it has ended."""
    try:
        with open(f"/proc/{task}/schedstat", encoding="ascii") as f:
            ran, waited, _ = f.read().split()
    except (OSError, ValueError):
        return None
    return time.monotonic(), int(ran) * 1e-9, int(waited) * 1e-9


def waiting_share(before: Any, after: Any) -> Any:
    """Part of the time between two cpu_times() in which a task was ready to run and others ran."""
    if not before or not after or after[0] <= before[0]:
        return 0.0
    return (after[2] - before[2]) / (after[0] - before[0])


def stop(p: Popen, sig: Signals = signal.SIGTERM) -> None:
    if p.poll() is None:
        p.send_signal(sig)
    try:
        p.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()


def wait_for(condition: Callable, timeout_s: float, what: str) -> bool:
    """The first true value of condition(); TimeoutError if there is none in time."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise TimeoutError(f"waited {timeout_s} s for {what}")


def needed_libraries(program: Any) -> Any:
    """Shared libraries that a program was linked with, in order."""
    out = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True)
    return re.findall(r"NEEDED.*\[(.*)\]", out.stdout)
