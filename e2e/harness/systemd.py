# SPDX-License-Identifier: BSD-3-Clause
"""A systemd of the test's own: process 1 of its own PID, mount, network and cgroup namespaces, with no units but those
that the test gives it. It neither sees nor changes what the machine's systemd manages, if there is one."""

from pathlib import Path

from . import sandbox
from .paths import BUILD
from .proc import Proc, check, run, until

SYSTEMD = Path("/lib/systemd/systemd")
TREE = Path("/media")  # place for the build, where ProtectHome= does not hide it

# What all units depend on is empty here: no journal, no udev, no clean-up of the machine's folders.
TARGETS = ("basic", "multi-user", "network", "shutdown", "sysinit", "test", "umount")

# Names of cgroups begin with the shell's pid: a cgroup that is left by kill -9 is empty.
OUTER = """
groups=$(mktemp -d) && mount -t cgroup -o none,name=systemd cgroup "$groups" 2>/dev/null ||
	mount -t cgroup2 cgroup2 "$groups" || exit 77
own=$groups/ringtap-e2e-$$
mkdir "$own" && echo $$ >"$own/cgroup.procs" || exit 77
unshare --pid --fork --kill-child --mount --net --ipc --uts --cgroup sh -euc "$1" sh "$2" "$3" "$4"
echo $$ >"$groups/cgroup.procs"
find "$own" -depth -type d -exec rmdir {} +
umount "$groups" && rmdir "$groups"
"""
INNER = """
mount -t proc proc /proc
mount --bind "$1" /media
mount --bind "$2" /usr/lib/systemd/system
[ ! -d "$3" ] || mount --bind "$3" /mnt
for folder in /run /tmp /etc/systemd/system /etc/default /var/lib/ringtap-flight; do
	mkdir -p "$folder" && mount -t tmpfs -o mode=755 tmpfs "$folder"
done
mkdir -p /run/dpdk /run/empty "$3"
mount --bind /mnt "$3"
mount --bind /run/empty /usr/lib/systemd/system-generators
mount -t tmpfs tmpfs /sys/fs/cgroup
mkdir /sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd 2>/dev/null || {
	umount /sys/fs/cgroup
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
}
ip link set lo up
export container=ringtap-e2e
exec /lib/systemd/systemd --system --unit=test.target --log-target=console --show-status=no
"""


def missing():
    """Why there can be none; None: there can."""
    if not SYSTEMD.exists():
        return "systemd is not installed"
    kinds = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    return None if kinds & {"cgroup", "cgroup2"} else "the kernel has no cgroups"


class Systemd:
    """prefix: of commands that are to run there."""

    def __init__(self, folder, units):
        """folder: for files; units: their texts by name."""
        shelf = folder / "units"
        shelf.mkdir()
        for target in TARGETS:
            (shelf / f"{target}.target").write_text("[Unit]\nDefaultDependencies=no\n")
        for name, text in units.items():
            (shelf / name).write_text(text)
        self.proc = Proc(
            [
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-c",
                OUTER,
                "sh",
                INNER,
                BUILD,
                shelf,
                sandbox.ALL_DRIVERS,
            ]
        )
        self.init = None
        try:
            self.init = until(self._find_init, what="systemd")
            self.prefix = ["nsenter", "-t", str(self.init), "-m", "-p", "-n", "-i", "-u", "-C"]
            until(
                lambda: run([*self.prefix, "systemctl", "is-active", "test.target"]).stdout == "active\n",
                what="its target",
            )
        except BaseException:
            self.close()
            raise

    def _find_init(self):
        """systemd, once its shell has executed it."""
        assert self.proc.alive(), self.proc.output
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                parent = Path(f"/proc/{fields['PPid']}/status").read_text()
            except OSError:  # it has ended
                continue
            if (
                fields["Name"] == "systemd"
                and f"\nPPid:\t{self.proc.pid}\n" in parent
                and fields["NSpid"].split()[-1] == "1"
            ):
                return int(fields["Pid"])
        return None

    def path(self, inside):
        """A path of a file there."""
        return Path(f"/proc/{self.init}/root{inside}")

    def check(self, argv, **kwargs):
        return check([*self.prefix, *argv], **kwargs)

    def ctl(self, *args):
        return self.check(["systemctl", *args])

    def show(self, unit, key):
        return self.ctl("show", "--value", "-p", key, unit).strip()

    def close(self):
        if self.init and self.proc.alive():
            run(["kill", "-9", str(self.init)])
            self.proc.wait()
        self.proc.close()


def with_build(text, installed):
    """A unit with the command of the build instead of the installed one; its output in files below /run."""
    assert installed in text
    text = text.replace(installed, str(TREE / "cli" / "ringtap"))
    return text.replace(
        "[Service]\n", "[Service]\nStandardOutput=append:/run/%n.log\nStandardError=append:/run/%n.log\n"
    )
