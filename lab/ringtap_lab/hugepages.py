# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages for the time of a benchmark: added where they are missing, given back afterwards."""
import os
import re
import subprocess

NR = "/proc/sys/vm/nr_hugepages"
MOUNT = "/dev/hugepages"


def _meminfo(key):
    with open("/proc/meminfo", encoding="ascii") as f:
        found = re.search(rf"^{key}:\s+(\d+)", f.read(), re.M)
    return int(found.group(1)) if found else 0


def _mounted():
    with open("/proc/mounts", encoding="utf-8") as f:
        return any(line.split()[2] == "hugetlbfs" for line in f)


def _write_nr(count):
    with open(NR, "w", encoding="ascii") as f:
        f.write(str(count))


class HugePages:
    """reason is None if there are enough, else a sentence on why there are not."""

    def __init__(self, megabytes):
        self.before = None
        self.set_to = None
        self.mounted_here = False
        self.reason = None
        try:
            self._get(megabytes)
        except (OSError, subprocess.CalledProcessError) as e:
            self.reason = f"no huge pages: {e}"
            self.release()

    def _get(self, megabytes):
        page_kb = _meminfo("Hugepagesize")
        if page_kb == 0:
            self.reason = "no huge pages: the kernel has none"
            return
        missing = megabytes * 1024 // page_kb - _meminfo("HugePages_Free")
        if missing > 0:
            self.before = _meminfo("HugePages_Total")
            self.set_to = self.before + missing
            _write_nr(self.set_to)
            if _meminfo("HugePages_Total") < self.set_to:
                self.reason = f"no huge pages: the kernel does not find {megabytes} MB"
                self.release()
                return
        if not _mounted():
            os.makedirs(MOUNT, exist_ok=True)
            subprocess.run(["mount", "-t", "hugetlbfs", "none", MOUNT], check=True)
            self.mounted_here = True

    def release(self):
        # Someone else may have changed the number since: then it is theirs.
        if self.before is not None and _meminfo("HugePages_Total") == self.set_to:
            _write_nr(self.before)
        self.before = None
        if self.mounted_here:
            subprocess.run(["umount", MOUNT], check=False)
            self.mounted_here = False
