# SPDX-License-Identifier: BSD-3-Clause
"""Runs ringtap-fwd and reads its report."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from ..tools import process

if TYPE_CHECKING:
    from typing import Any

    from .lab import Lab

PROGRAM = "ringtap-fwd"


class Report:
    """The output of --json."""

    def __init__(self, text: str):
        self.data = json.loads(text)
        self.hz = self.data["tsc_hz"]  # ticks per second

    def role(self, kind: str) -> dict[str, str]:
        """The first role of the kind."""
        return next(r for r in self.data["roles"] if r["role"] == kind)

    def disturbed(self) -> float:
        """Greatest share of the time that a polling thread did not have its CPU."""
        return max(0.0, *(1 - t["cpu_s"] / self.data["duration_s"] for t in self.data["threads"]))

    def number(self, kind: str) -> Any:
        """The role's number, as in the file of samples."""
        return next(i for i, r in enumerate(self.data["roles"]) if r["role"] == kind)


class End:
    """Where a forwarder works: the command's prefix, which enters a network namespace, its options for plane and devices,
    its port, its CPU."""

    def __init__(self, prefix: list, options: list[str], port: str, cpu: int):
        self.prefix, self.options, self.port, self.cpu = prefix, options, port, cpu

    def argv(self, lab: Lab, role: str, more: list[str]) -> list[str]:
        # By this name its remains are found if it is killed.
        self.name = lab.unique("fwd")
        return [
            *self.prefix,
            lab.program(PROGRAM),
            "--json",
            "--name",
            self.name,
            *self.options,
            "--role",
            f"{role}:{self.port}@{self.cpu}",
            *more,
        ]


def run_argv(argv: list[str], timeout_s: int) -> Report:
    """Runs to its end: a Report."""
    status, out, err = process.run(argv, timeout_s=timeout_s)
    if status != 0:
        lines = err.strip().splitlines() or ["it printed nothing"]
        raise RuntimeError(f"{PROGRAM} ended with status {status}: {lines[-1]}")
    return Report(out)


def run(lab: Lab, end: End, role: str, more: list[str], timeout_s: int = 120) -> Any:
    return run_argv(end.argv(lab, role, more), timeout_s)


class Forwarder(process.Program):
    """One that runs until report(). It touches its memory page by page before it prints that it is running."""

    def __init__(self, lab: Lab, end: End, role: str, more: list[str]):
        super().__init__(end.argv(lab, role, more), "running")
        self.prefix = end.name  # name of the application, as other tools print it

    def report(self, end: bool = True) -> Report:
        """Its Report, when it has ended; end: see finish()."""
        return Report(self.finish(end)[0])


def veth_ends(lab: Lab, hosts: Any, plane: str) -> list:
    """Ends on eth0 of two hosts."""
    driver = f"net_{plane}0"
    options, port = {"packet": (["--plane", "packet"], "eth0"), "mmap": (["--plane", "packet-mmap"], "eth0")}.get(
        plane, (["--vdev", f"{driver},iface=eth0"], driver)
    )
    return [End(host.prefix, options, port, cpu) for host, cpu in zip(hosts, lab.cpus)]


def memif_pair(lab: Lab) -> list[End]:
    """Ends of a shared memory link between two processes; the first is to be started first."""
    socket = os.path.join(lab.folder(), lab.unique("memif"))
    return [
        End([], ["--vdev", f"net_memif0,role={role},socket={socket},socket-abstract=no"], "net_memif0", cpu)
        for role, cpu in zip(("server", "client"), lab.cpus)
    ]
