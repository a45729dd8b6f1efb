# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-fwd: started, waited for, and its report read."""
import json
import os
import select
import signal
import subprocess
import time

from ..tools import process

PROGRAM = "ringtap-fwd"
START_S = 30  # memory is touched page by page before it says that it runs


class Hung(RuntimeError):
    """It did not end in time, as one that waits for a packet that was lost."""


class Report:
    """What --json prints."""

    def __init__(self, text):
        self.data = json.loads(text)
        self.hz = self.data["tsc_hz"]  # ticks per second

    def role(self, kind):
        """The first role of the kind."""
        return next(r for r in self.data["roles"] if r["role"] == kind)

    def disturbed(self):
        """Greatest share of the time that a polling thread did not have its CPU."""
        shares = [1 - t["cpu_seconds"] / self.data["seconds"] for t in self.data["threads"]]
        return max(0.0, *shares)

    def number(self, kind):
        """The role's number, as in the file of samples."""
        return next(i for i, r in enumerate(self.data["roles"]) if r["role"] == kind)


class End:
    """Where a forwarder works: the command's prefix, which enters a network namespace, its options
    for plane and devices, its port, its CPU."""

    def __init__(self, prefix, options, port, cpu):
        self.prefix, self.options, self.port, self.cpu = prefix, options, port, cpu

    def argv(self, lab, role, more):
        # What is left of it if it is killed is found by the name.
        return [*self.prefix, lab.program(PROGRAM), "--json", "--name", lab.unique("fwd"), *self.options,
                "--role", f"{role}:{self.port}@{self.cpu}", *more]


def _failed(argv, status, err):
    said = err.strip().splitlines()
    return RuntimeError(f"{PROGRAM} ended with status {status}: {said[-1] if said else 'it said nothing'}")


def run_argv(argv, timeout_s):
    """Runs to its end: a Report."""
    status, out, err = process.run(argv, timeout_s=timeout_s)
    if status != 0:
        raise _failed(argv, status, err)
    return Report(out)


def run(lab, end, role, more, timeout_s=120):
    return run_argv(end.argv(lab, role, more), timeout_s)


class Forwarder:
    """One that runs until finish(); the context is entered when it is ready."""

    def __init__(self, lab, end, role, more):
        self.argv = end.argv(lab, role, more)

    def __enter__(self):
        self.process = process.start(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self):
        """For its line on stderr."""
        said, end = b"", time.monotonic() + START_S
        while b"running" not in said:
            ready, _, _ = select.select([self.process.stderr], [], [], max(end - time.monotonic(), 0))
            more = os.read(self.process.stderr.fileno(), 4096) if ready else b""
            said += more
            if not more:
                process.stop(self.process)
                text = (said + self.process.stderr.read()).decode(errors="replace")
                raise _failed(self.argv, self.process.returncode, text)

    def finish(self, ask=True):
        """Its Report, when it has ended. ask: else it ends by itself."""
        if ask:
            self.process.send_signal(signal.SIGINT)
        try:
            out, err = self.process.communicate(timeout=START_S)
        except subprocess.TimeoutExpired:
            process.stop(self.process)
            raise Hung(f"{PROGRAM} did not end within {START_S} s") from None
        if self.process.returncode != 0:
            raise _failed(self.argv, self.process.returncode, err.decode(errors="replace"))
        return Report(out)

    def __exit__(self, *_):
        process.stop(self.process)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


def veth_ends(lab, hosts, plane):
    """Ends on eth0 of two hosts."""
    options = {
        "packet": ["--plane", "packet"],
        "mmap": ["--plane", "packet-mmap"],
        "af_packet": ["--vdev", "net_af_packet0,iface=eth0"],
        "af_xdp": ["--vdev", "net_af_xdp0,iface=eth0"],
    }[plane]
    port = {"af_packet": "net_af_packet0", "af_xdp": "net_af_xdp0"}.get(plane, "eth0")
    return [End(host.prefix, options, port, cpu) for host, cpu in zip(hosts, lab.cpus)]


def memif_pair(lab):
    """Ends of a shared memory link between two processes; the first is to be started first."""
    socket = os.path.join(lab.folder(), lab.unique("memif"))
    return [End([], ["--vdev", f"net_memif0,role={role},socket={socket},socket-abstract=no"],
                "net_memif0", cpu) for role, cpu in zip(("server", "client"), lab.cpus)]
