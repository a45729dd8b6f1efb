# SPDX-License-Identifier: BSD-3-Clause
"""Containers made with unshare(1): namespaces, and a root folder of bind mounts that has the programs of the
build, but neither the probe nor the host's run-time folders."""

import os
import sys
from pathlib import Path

from . import sandbox
from .paths import BUILD
from .proc import check

# A user namespace with users that are others outside: 0 is FIRST_ID, and so on. newuidmap(1) would need /etc/subuid.
FIRST_ID, ID_COUNT = 100000, 65536
MAP_USERS = """
import ctypes, os, signal, sys
libc, first, count = ctypes.CDLL(None), *sys.argv[1:3]
(child_r, child_w), (parent_r, parent_w) = os.pipe(), os.pipe()
pid = os.fork()
if not pid:
    libc.prctl(1, signal.SIGKILL)
    assert libc.unshare(0x10000000) == 0
    os.write(child_w, b".")
    os.read(parent_r, 1)
    os.setgid(0), os.setuid(0)
    libc.prctl(1, signal.SIGKILL)
    os.execvp(sys.argv[3], sys.argv[3:])
os.read(child_r, 1)
for kind in "uid", "gid":
    with open(f"/proc/{pid}/{kind}_map", "w") as file:
        file.write(f"0 {first} {count}")
os.write(parent_w, b".")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

# Moves to a root of its own. Arguments: folders of the host to have there as well, each with its path there, up to
# a "--"; then a command.
ROOT = """
set -e
root=/mnt
mount -t tmpfs -o mode=755 none "$root"
for folder in usr etc dev sys; do
    mkdir "$root/$folder"
    mount --rbind "/$folder" "$root/$folder"
done
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done
mkdir "$root/proc" "$root/run" "$root/tmp" "$root/var" "$root/root"
ln -s /run "$root/var/run"
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --rbind "$1" "$root$2"
    shift 2
done
shift
mount -t proc none "$root/proc"
mkdir -p "$root/old"
cd "$root"
pivot_root . old
umount -l /old
exec "$@"
"""


class Container:
    """A namespace for Play and others. share: folders of the host that it has, {path: path there};
    users: it has a user namespace. command: runs the program."""

    def __init__(self, share=None, users=False, command=()):
        both = {sandbox.public(BUILD / "e2e"): BUILD / "e2e", sandbox.ALL_DRIVERS: sandbox.ALL_DRIVERS, **(share or {})}
        shared = [str(path) for pair in both.items() for path in pair if pair[0].exists()]
        user = [sys.executable, "-c", MAP_USERS, str(FIRST_ID), str(ID_COUNT)] if users else []
        self.prefix = [
            *user,
            "unshare",
            "--mount",
            "--pid",
            "--net",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            ROOT,
            "sh",
            *shared,
            "--",
            *command,
        ]


def pid_of(app):
    """Process id of an rt_play in a container, in this PID namespace."""
    return int(check(["pgrep", "-f", f"^{BUILD}/e2e/rt_play .*{app.prefix} "]).split()[0])


def namespace_of(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


def inside(pid):
    """The number that a process has in its own PID namespace."""
    (line,) = (x for x in Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("NSpid:"))
    return int(line.split()[-1])
