# SPDX-License-Identifier: BSD-3-Clause
"""A child process whose output can be waited for."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

POLL_S = 0.002
MAX_POLL_S = 0.05
# Minimum timeout of an event, in seconds: everything takes longer on a busy machine, and a timeout
# that is not reached costs nothing. RINGTAP_PATIENCE is that of a slower machine: devtools/kernels.py.
# Then the timeout of a program that runs to its end.
PATIENCE = int(os.environ.get("RINGTAP_PATIENCE", 120))
HANG = 5 * PATIENCE


class Gone(AssertionError):
    """The process ended, or closed its output, before the expected output."""


class Proc:
    """Runs argv with stdin open, and collects its output. With tty, on a pseudo-terminal: programs
    then print without buffering."""

    def __init__(self, argv, tty=False, env=None, cwd=None, stdout=None, preexec_fn=None):
        self.argv = [str(a) for a in argv]
        self._lock = threading.Condition()
        self._out = bytearray()
        self._seen = 0
        self._eof = False
        full_env = dict(os.environ, LC_ALL="C", **(env or {}))
        if tty:
            master, slave = pty.openpty()
            self.child = subprocess.Popen(
                self.argv, stdin=slave, stdout=slave, stderr=slave, env=full_env, cwd=cwd, start_new_session=True
            )
            os.close(slave)
            self._in, source = master, master
        else:
            # No session of its own: with sched_autogroup_enabled the kernel shares CPU time among sessions, and
            # pinned threads of a new one have waited five seconds for their CPU.
            self.child = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=stdout or subprocess.PIPE,
                stderr=subprocess.PIPE if stdout else subprocess.STDOUT,
                env=full_env,
                cwd=cwd,
                process_group=0,
                preexec_fn=preexec_fn,
            )
            self._in = self.child.stdin.fileno()
            source = (self.child.stderr if stdout else self.child.stdout).fileno()
        self._tty = tty
        self._reader = threading.Thread(target=self._collect, args=(source,), daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self.child.pid

    def _collect(self, fd):
        while True:
            try:
                data = os.read(fd, 65536)
            except OSError:  # the other end of the pseudo-terminal is closed
                data = b""
            with self._lock:
                self._out += data
                self._eof = self._eof or not data
                self._lock.notify_all()
            if not data:
                return

    @property
    def output(self):
        with self._lock:
            return self._out.decode(errors="replace")

    def expect(self, pattern, timeout=PATIENCE):
        """Waits for the pattern in the output since the last match; returns the match."""
        return self._expect(pattern, max(timeout, PATIENCE))

    def never(self, pattern, seconds):
        """Fails if the pattern is printed within this time."""
        try:
            found = self._expect(pattern, seconds)
        except Gone:
            return
        raise AssertionError(f"{self.argv[0]} printed {found.group().decode(errors='replace')!r}")

    def _expect(self, pattern, timeout):
        regex = re.compile(pattern.encode(), re.MULTILINE)
        deadline = time.monotonic() + timeout
        with self._lock:
            while True:
                found = regex.search(self._out, self._seen)
                if found:
                    self._seen = found.end()
                    return found
                left = deadline - time.monotonic()
                if self._eof or left <= 0:
                    why = "ended" if self._eof else f"silent for {timeout} s"
                    tail = self._out[-20000:].decode(errors="replace")
                    raise Gone(f"{self.argv[0]} {why} before {pattern!r}; it said:\n{tail}")
                self._lock.wait(left)

    def mark(self):
        """Skips the output so far: expect() searches later output only."""
        with self._lock:
            self._seen = len(self._out)

    def send(self, line):
        os.write(self._in, line.encode() + b"\n")

    def close_stdin(self):
        if not self._tty:
            self.child.stdin.close()

    def send_signal(self, number):
        if self.child.poll() is None:
            self.child.send_signal(number)

    def alive(self):
        return self.child.poll() is None

    def wait(self, timeout=PATIENCE):
        """Returns the exit status after all output was read."""
        timeout = max(timeout, PATIENCE)
        try:
            status = self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Gone(f"{self.argv[0]} did not end in {timeout} s; it said:\n{self.output[-20000:]}") from None
        self._reader.join(timeout)
        return status

    def ends_within(self, seconds):
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self):
        self.send_signal(signal.SIGKILL)
        return self.wait()

    def stop(self, number=signal.SIGTERM):
        """Sends the signal and waits for the end; kills the process if it does not end."""
        self.send_signal(number)
        try:
            return self.wait()
        except Gone:
            self.kill()
            raise

    def close(self):
        """For cleanup: ends the process in any state."""
        if self.alive():
            self.send_signal(signal.SIGKILL)
        self.child.wait()
        self._reader.join(5)
        if self._tty and self._in >= 0:
            os.close(self._in)
            self._in = -1


def run(argv, timeout=HANG, env=None, **kwargs):
    """Runs argv to its end; env is added to the environment. Returns the CompletedProcess with text
    output."""
    return subprocess.run(
        [str(a) for a in argv],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=max(timeout, HANG),
        text=True,
        env=dict(os.environ, LC_ALL="C", **(env or {})),
        **kwargs,
    )


def check(argv, timeout=HANG, **kwargs):
    """Like run(); fails the test if the program does. Returns its standard output."""
    done = run(argv, timeout, **kwargs)
    assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def together(f, things):
    """The results of f for each thing, in their order; some run at the same time."""
    with ThreadPoolExecutor(6) as pool:
        return list(pool.map(f, things))


def of_tasks(pid, name):
    """{thread id: its file of this name in /proc} of a process. A thread may end meanwhile, such as those of DPDK's
    telemetry, one for each client."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found[task.name] = (task / name).read_text()
    return found


def name_of(pid):
    """The name of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def child(function, *args):
    """The process id of a child that runs it; its exit status is what it returns. After an exception it ends,
    too, instead of running the tests that follow."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        status = function(*args) or 0
    finally:
        os._exit(status)


def freeze(pid):
    """Stops a process. The signal takes effect once the thread that gets it has run."""

    def is_stopped(stat):
        return stat.rpartition(")")[2].split()[0] == "T"

    os.kill(pid, signal.SIGSTOP)
    until(lambda: all(map(is_stopped, of_tasks(pid, "stat").values())), what="all threads stopped")


def until(condition, timeout=PATIENCE, what="condition"):
    """Calls condition() until it returns a true value, and returns that. Sleeps in between, as the
    programs under test need the CPU."""
    return within(max(timeout, PATIENCE), condition, what)


def within(seconds, condition, what="condition"):
    """As until(), but with an exact timeout."""
    deadline = time.monotonic() + seconds
    while True:
        begin = time.monotonic()
        answer = condition()
        if answer:
            return answer
        end = time.monotonic()
        assert end < deadline, f"{what}: not within {seconds} s"
        # A condition that starts a process or asks a server costs as much as what it waits for.
        time.sleep(max(POLL_S, min(MAX_POLL_S, 3 * (end - begin))))
