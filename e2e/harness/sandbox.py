# SPDX-License-Identifier: BSD-3-Clause
"""Resources of the test run, which are released however it ends: a mount namespace with runtime
folders, so that other DPDK applications and ringtap users are separate, and huge pages."""
import ctypes
import os
import signal
from pathlib import Path

from .paths import BUILD, REPO

MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18  # <sys/mount.h>
CLONE_NEWNS = 0x20000  # <sched.h>
PAGE_SIZES = Path("/sys/kernel/mm/hugepages")
PAGES = {2048: 400}  # kB: number of free pages for each worker; Open vSwitch needs 256
PUBLIC = Path("/run/ringtap-e2e-public")
ALL_DRIVERS = Path("/run/ringtap-e2e-drivers")
# Drivers that the tests use. EAL opens each driver in its folder: with all of Debian's, this is
# most of its start.
DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "mempool_stack", "net_af_packet", "net_af_xdp", "net_memif",
           "net_null", "net_pcap", "net_ring", "net_tap", "net_vhost", "net_virtio")

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function, *args):
    if function(*args):
        code = ctypes.get_errno()
        raise OSError(code, f"{function.__name__}{args}: {os.strerror(code)}")


def _mount(source, target, kind, flags=0, options=None):
    Path(target).mkdir(parents=True, exist_ok=True)
    _call(_libc.mount, source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options)


def _mounted(kind):
    return any(line.split()[2] == kind for line in Path("/proc/self/mounts").read_text().splitlines())


def driver_folder():
    """The folder of EAL's drivers; None if it is not that of Debian."""
    return next(iter(sorted(Path("/usr/lib").glob("*/dpdk/pmds-*"))), None)


def _few_drivers():
    """Mounts a folder with DRIVERS only over EAL's. The others stay available to programs that are
    linked with them, by names with a version."""
    folder = driver_folder()
    if not folder or ALL_DRIVERS.is_mount():
        return
    _mount(str(folder), ALL_DRIVERS, "none", MS_BIND)
    _mount("ringtap-e2e", folder, "tmpfs", options=b"mode=755")
    for path in ALL_DRIVERS.iterdir():
        if path.suffix != ".so" or path.stem.removeprefix("librte_") in DRIVERS:
            (folder / path.name).symlink_to(path)


def enter():
    """Needs root. The mounts end with the last process in the namespace."""
    _call(_libc.unshare, CLONE_NEWNS)
    _mount("none", "/", "none", MS_REC | MS_PRIVATE)
    for folder in ("/run/dpdk", "/run/netns", "/tmp/dpdk", str(PUBLIC)):
        _mount("ringtap-e2e", folder, "tmpfs", options=b"mode=755")
    for name, path in (("repo", REPO), ("build", BUILD)):
        if path.exists():
            _mount(str(path), PUBLIC / name, "none", MS_BIND)
    _few_drivers()
    for kind, folder in (("hugetlbfs", "/dev/hugepages"), ("tracefs", "/sys/kernel/tracing")):
        if not _mounted(kind):
            _mount("ringtap-e2e", folder, kind)


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


class HugePages:
    """Ensures free huge pages, {kB: number} for each worker; close(), or the end of this process,
    removes the added ones."""

    def __init__(self, workers=1, pages=PAGES):
        self.added = {kb: _add(kb, free * workers) for kb, free in pages.items()}
        read_end, self._write_end = os.pipe()
        self._guard = os.fork()
        if not self._guard:
            self._wait_and_give_back(read_end)
        os.close(read_end)

    def _wait_and_give_back(self, read_end):
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.dup2(read_end, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))  # also the write end
        os.read(0, 1)
        for kb, count in self.added.items():
            if count:
                _pool(kb).write_text(str(max(0, int(_pool(kb).read_text()) - count)))
        os._exit(0)

    def close(self):
        os.close(self._write_end)
        os.waitpid(self._guard, 0)
