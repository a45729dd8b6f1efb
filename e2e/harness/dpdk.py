# SPDX-License-Identifier: BSD-3-Clause
"""Common parts of all DPDK applications: EAL arguments and runtime folders."""
import itertools
import json
import os
import shutil
import socket
from pathlib import Path

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
        self.prefix = ["unshare", "-m", "sh", "-c",
                       'mount -t hugetlbfs none "$0" && exec "$@"', str(folder)]

    @staticmethod
    def free_mb():
        info = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        kb = int(info["Hugepagesize"].split()[0])
        return int(info["HugePages_Free"]) * kb // 1024


def remove_run_dir(prefix):
    """EAL does not remove its folder when it is killed."""
    shutil.rmtree(RUN_DIR / prefix, ignore_errors=True)


def telemetry(prefix, command, timeout=60):
    """Sends a command to an application's telemetry socket; returns the decoded answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(str(RUN_DIR / prefix / "dpdk_telemetry.v2"))  # waits while ten other clients are served
        sock.settimeout(timeout)
        limit = json.loads(sock.recv(1024))["max_output_len"]
        sock.send(command.encode())
        return json.loads(sock.recv(limit))


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
