# SPDX-License-Identifier: BSD-3-Clause
"""Common parts of all DPDK applications: EAL arguments and runtime folders."""

import contextlib
import itertools
import os
import shutil
from pathlib import Path

from ringtap_lab.tools.telemetry import Telemetry

_number = itertools.count()
RUN_DIR = Path("/var/run/dpdk")


def new_prefix(kind):
    """A file-prefix that no other test run uses."""
    return f"rt-{kind}-{os.getpid()}-{next(_number)}"


def eal_args(prefix, plugin=None, vdevs=(), lcores="0,1", memory_mb=256, extra=(), huge_dir=None):
    """EAL arguments for virtual devices. lcores: '0,1' or a --lcores map; None leaves them to the
    application. Without huge pages unless there is a huge_dir."""
    args = ["--huge-dir", huge_dir] if huge_dir else ["--no-huge"]
    args += ["-m", memory_mb, "--no-pci", "--file-prefix", prefix]
    if lcores:
        args += ["--lcores", lcores] if "@" in lcores else ["-l", lcores]
    if plugin:
        args += ["-d", plugin]
    for vdev in vdevs:
        args += ["--vdev", vdev]
    return [*args, *extra]


class HugePages:
    """Huge pages for one application: mounted at a folder in its own mount namespace."""

    def __init__(self, folder):
        self.folder = folder
        self.prefix = ["unshare", "-m", "sh", "-c", 'mount -t hugetlbfs none "$0" && exec "$@"', str(folder)]

    def here(self):
        """The folder is mounted already: processes share it. Returns self."""
        self.prefix = []
        return self

    @staticmethod
    def free_mb():
        info = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        kb = int(info["Hugepagesize"].split()[0])
        return int(info["HugePages_Free"]) * kb // 1024


def remove_run_dir(prefix):
    """EAL removes neither its folder nor its files of huge pages when it is killed."""
    shutil.rmtree(RUN_DIR / prefix, ignore_errors=True)
    for file in Path("/dev/hugepages").glob(f"{prefix}map_*"):
        file.unlink(missing_ok=True)


def telemetry(prefix, command, timeout=60):
    """Sends a command to an application's telemetry socket; returns the decoded answer."""
    with contextlib.closing(Telemetry(prefix, timeout)) as client:
        return {command.split(",")[0]: client.ask(command)}


class Resources:
    """File descriptors, mappings, threads and memory of a process, to detect leaks."""

    def __init__(self, pid):
        proc = Path(f"/proc/{pid}")
        self.fds = len(os.listdir(proc / "fd"))
        self.threads = len(os.listdir(proc / "task"))
        self.maps = len((proc / "maps").read_text().splitlines())
        status = (proc / "status").read_text()
        self.rss_kb = int(status.split("VmRSS:")[1].split()[0])

    def __repr__(self):
        return f"fds={self.fds} threads={self.threads} maps={self.maps} rss_kb={self.rss_kb}"
