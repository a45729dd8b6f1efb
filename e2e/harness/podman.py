# SPDX-License-Identifier: BSD-3-Clause
"""Containers of podman, with its default seccomp filter and capabilities, from a root folder of bind mounts: no
image, and no registry."""

import resource
import shutil
import tempfile
from pathlib import Path

from . import sandbox
from .paths import BUILD
from .proc import run

# With a v2 hierarchy beside v1's, crun cannot delegate its control groups.
WITHOUT_V2 = 'mountpoint -q /sys/fs/cgroup/unified && umount /sys/fs/cgroup/unified; exec "$@"'
# Without one of the host's, podman asks for limits that may be above ours. It lowers its own limits, too, and without
# CAP_SYS_RESOURCE a container cannot have ours again.
LIMIT_MAX = 4096
LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}


class Podman:
    """A namespace for Play. close() removes all that podman has made."""

    def __init__(self, *options):
        self.folder = Path(tempfile.mkdtemp(prefix="ringtap-podman-", dir="/run"))
        root = self.folder / "rootfs"
        for name in ("usr", "etc", "dev", "sys", "proc", "run", "tmp", "var"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        (root / "var" / "run").symlink_to("/run")
        shares = [
            ("/usr", "/usr"),
            ("/etc", "/etc"),
            (sandbox.public(BUILD / "e2e"), BUILD / "e2e"),
            (sandbox.ALL_DRIVERS, sandbox.ALL_DRIVERS),
        ]
        self.limits = [
            f"--ulimit={name}={soft}:{soft}"
            for name, number in LIMITS.items()
            for soft in [min(resource.getrlimit(number)[0] % 2**63, LIMIT_MAX)]
        ]
        self.own_mounts = ["unshare", "--mount", "sh", "-c", WITHOUT_V2, "sh"]
        self._podman = [
            *self.own_mounts,
            "podman",
            "--root",
            str(self.folder / "root"),
            "--runroot",
            str(self.folder / "runroot"),
            "--storage-driver",
            "vfs",
        ]
        self.prefix = [
            *self._podman,
            "run",
            "--rm",
            "-i",
            "--network=none",
            *self.limits,
            "--tmpfs=/run:rw,mode=755",
            *(f"--volume={here}:{there}:ro" for here, there in shares if Path(here).exists()),
            *options,
            "--rootfs",
            str(root),
        ]

    def missing(self):
        """The reason why it cannot be used here, or None."""
        if not shutil.which("podman"):
            return "podman is not installed"
        done = run([*self.prefix, "true"])
        return None if done.returncode == 0 else f"podman does not work here: {done.stderr[-200:]}"

    def close(self):
        run([*self._podman, "rm", "--all", "--force", "--time", "0"])
        shutil.rmtree(self.folder, ignore_errors=True)
