# SPDX-License-Identifier: BSD-3-Clause
"""Memory cgroups, version 1 or 2."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from .process import wait_for

if TYPE_CHECKING:
    from typing import Any

_number = itertools.count()


def _base():
    """(folder below which groups can be made, version), or None."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            root = Path("/sys/fs/cgroup/memory")
            here = root / path.lstrip("/")
            return (here if here.is_dir() else root), 1
    root = Path("/sys/fs/cgroup")
    enabled = root / "cgroup.subtree_control"
    if enabled.exists() and "memory" in enabled.read_text(encoding="ascii").split():
        return root, 2
    return None


BASE = _base()


class MemoryGroup:
    """prefix: a command prefix that runs the command in the group."""

    def __init__(self, limit: float):
        base, self.version = BASE
        self.path = base / f"ringtap-{os.getpid()}-{next(_number)}"
        self.path.mkdir()
        name = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        (self.path / name).write_text(str(limit), encoding="ascii")
        self.prefix = ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh"]

    def _events(self, name: str, key: str):
        return int(dict(line.split() for line in (self.path / name).read_text(encoding="ascii").splitlines())[key])

    @property
    def oom_kills(self) -> Any:
        return self._events("memory.oom_control" if self.version == 1 else "memory.events", "oom_kill")

    @property
    def usage(self) -> int:
        """Bytes, including memory of the kernel."""
        name = "memory.usage_in_bytes" if self.version == 1 else "memory.current"
        return int((self.path / name).read_text(encoding="ascii"))

    def close(self) -> None:
        procs = self.path / "cgroup.procs"
        wait_for(lambda: not procs.read_text(encoding="ascii"), 20, "processes gone")
        self.path.rmdir()
