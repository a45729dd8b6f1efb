# SPDX-License-Identifier: BSD-3-Clause
"""Resources of the test run, which are released however it ends: a mount namespace with runtime
folders, so that other DPDK applications and ringtap users are separate, huge pages, and a setting of the scheduler."""

import ctypes
import os
import signal
from pathlib import Path

from .paths import BUILD, REPO
from .proc import child

MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18  # <sys/mount.h>
CLONE_NEWNS = 0x20000  # <sched.h>
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
PAGE_SIZES = Path("/sys/kernel/mm/hugepages")
PAGES = {2048: 400}  # kB: number of free pages for each worker; Open vSwitch needs 256
PUBLIC = Path("/run/ringtap-e2e-public")
ALL_DRIVERS = Path("/run/ringtap-e2e-drivers")
# Drivers that the tests use. EAL opens each driver in its folder: with all of Debian's, this is
# most of its start.
DRIVERS = (
    "bus_pci",
    "bus_vdev",
    "mempool_ring",
    "mempool_stack",
    "net_af_packet",
    "net_af_xdp",
    "net_memif",
    "net_null",
    "net_pcap",
    "net_ring",
    "net_tap",
    "net_vhost",
    "net_virtio",
)

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function, *args):
    if function(*args):
        code = ctypes.get_errno()
        raise OSError(code, f"{function.__name__}{args}: {os.strerror(code)}")


def mount(source, target, kind, flags=0, options=None):
    Path(target).mkdir(parents=True, exist_ok=True)
    _call(_libc.mount, source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options)


def unmount(target):
    """Also if a process still has a file of it open."""
    _call(_libc.umount2, os.fsencode(target), 2)  # MNT_DETACH


def _mounted(kind):
    return any(line.split()[2] == kind for line in Path("/proc/self/mounts").read_text().splitlines())


def _is_mount(path):
    """Also where it is of the same file system as its folder, which Path.is_mount() takes for none."""
    return any(line.split()[1] == str(path) for line in Path("/proc/self/mounts").read_text().splitlines())


def driver_folder():
    """The folder of EAL's drivers; None if it is not that of Debian."""
    return next(iter(sorted(Path("/usr/lib").glob("*/dpdk/pmds-*"))), None)


def _few_drivers():
    """Mounts a folder with DRIVERS only over EAL's. The others stay available to programs that are
    linked with them, by names with a version."""
    folder = driver_folder()
    if not folder or _is_mount(ALL_DRIVERS):
        return
    mount(str(folder), ALL_DRIVERS, "none", MS_BIND)
    mount("ringtap-e2e", folder, "tmpfs", options=b"mode=755")
    for path in ALL_DRIVERS.iterdir():
        if path.suffix != ".so" or path.stem.removeprefix("librte_") in DRIVERS:
            (folder / path.name).symlink_to(path)


def enter():
    """Needs root. The mounts end with the last process in the namespace."""
    _call(_libc.unshare, CLONE_NEWNS)
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    for folder in ("/run/dpdk", "/run/netns", "/tmp/dpdk", str(PUBLIC)):
        mount("ringtap-e2e", folder, "tmpfs", options=b"mode=755")
    for name, path in (("repo", REPO), ("build", BUILD)):
        if path.exists():
            mount(str(path), PUBLIC / name, "none", MS_BIND)
    _few_drivers()
    for kind, folder in (("hugetlbfs", "/dev/hugepages"), ("tracefs", "/sys/kernel/tracing")):
        if not _mounted(kind):
            mount("ringtap-e2e", folder, kind)


def public(path):
    """A path by which any user can read a file of the tree or of the build, even if parent folders
    are not accessible."""
    for name, root in (("build", BUILD), ("repo", REPO)):
        if Path(path).is_relative_to(root):
            return PUBLIC / name / Path(path).relative_to(root)
    raise ValueError(path)


def _pool(kb):
    return PAGE_SIZES / f"hugepages-{kb}kB" / "nr_hugepages"


def _add(kb, free):
    """Adds pages until this number is free, or the kernel has no more. Returns the number of added
    ones."""
    pool = _pool(kb)
    if not pool.exists():
        return 0
    before = int(pool.read_text())
    missing = free - int((pool.parent / "free_hugepages").read_text())
    if missing > 0:
        pool.write_text(str(before + missing))
    return int(pool.read_text()) - before


class _Changed:
    """A change of the machine; close(), or the end of this process however it comes, calls undo()."""

    def __init__(self, undo):
        read_end, self._write_end = os.pipe()
        self._guard = child(self._wait_and_undo, read_end, undo)
        os.close(read_end)

    @staticmethod
    def _wait_and_undo(read_end, undo):
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(read_end, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))  # also the write end
        os.read(0, 1)
        undo()

    def close(self):
        os.close(self._write_end)
        os.waitpid(self._guard, 0)


class HugePages(_Changed):
    """Ensures free huge pages, {kB: number} for each worker."""

    def __init__(self, workers=1, pages=PAGES):
        added = {kb: _add(kb, free * workers) for kb, free in pages.items()}

        def undo():
            for kb, count in added.items():
                if count:
                    _pool(kb).write_text(str(max(0, int(_pool(kb).read_text()) - count)))

        super().__init__(undo)


class OneGroup(_Changed):
    """All threads of the machine share its CPUs, whatever session they belong to. With autogroups, as Debian has them, a thread
    that is bound to a CPU has waited for seconds there (Linux 6.18), as the weight of its session's group followed its load late."""

    def __init__(self):
        before = AUTOGROUP.read_text() if AUTOGROUP.exists() else "0"

        def undo():
            if int(before):
                AUTOGROUP.write_text(before)

        if int(before):
            AUTOGROUP.write_text("0")
        super().__init__(undo)
