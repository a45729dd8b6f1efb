# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages for the time of a benchmark: added where they are missing, given back afterwards; also by
another run, if this one is killed: a note says what was done."""
import json
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
    """reason is None if there are enough, else a sentence on why there are not. note: path of a file for
    give_back(), there for as long as something has to be given back; None: none is written."""

    def __init__(self, megabytes, note=None):
        self._note = note
        self._done = {}  # what is to be undone
        self.reason = None
        try:
            self._get(megabytes)
        except (OSError, subprocess.CalledProcessError) as e:
            self.reason = f"no huge pages: {e}"
        if self.reason:
            self.release()

    def _plan(self, **what):
        """Written down before it is done: of what never came to be, nothing will be undone."""
        self._done |= what
        if self._note:
            with open(f"{self._note}.new", "w", encoding="ascii") as f:
                json.dump(self._done, f)
            os.replace(f"{self._note}.new", self._note)

    def _get(self, megabytes):
        page_kb = _meminfo("Hugepagesize")
        if page_kb == 0:
            self.reason = "no huge pages: the kernel has none"
            return
        missing = megabytes * 1024 // page_kb - _meminfo("HugePages_Free")
        if missing > 0:
            before = _meminfo("HugePages_Total")
            self._plan(before=before, set_to=before + missing)
            _write_nr(before + missing)
            found = _meminfo("HugePages_Total")
            if found < before + missing:
                self._plan(set_to=found)
                self.reason = f"no huge pages: the kernel does not find {megabytes} MB"
                return
        if not _mounted():
            os.makedirs(MOUNT, exist_ok=True)
            self._plan(mounted=True)
            subprocess.run(["mount", "-t", "hugetlbfs", "none", MOUNT], check=True)

    def release(self):
        undone = _undo(self._done)
        self._done = {}
        if self._note and undone and os.path.exists(self._note):
            os.unlink(self._note)


def _undo(done):
    """Whether nothing is left to be undone by us."""
    if done.get("mounted") and _mounted():
        subprocess.run(["umount", MOUNT], check=False, capture_output=True)
    # Someone else may have changed the number since: then it is theirs.
    if "set_to" in done and _meminfo("HugePages_Total") != done["set_to"]:
        return done["set_to"] == done["before"]
    if "set_to" in done:
        _write_nr(done["before"])  # what is in use the kernel leaves to who uses it
    return True


def give_back(notes, others):
    """What runs that were killed have left in their notes. others: whether runs that are alive have
    notes: then the number may be one of theirs, and it will be ours again when they have ended."""
    found = []
    for path in notes:
        try:
            with open(path, encoding="ascii") as f:
                found.append((json.load(f), path))
        except (OSError, ValueError):  # not wholly written: nothing was done yet
            found.append(({}, path))
    # The last one that added some is the first one to take them away.
    for done, path in sorted(found, key=lambda x: -x[0].get("set_to", 0)):
        if _undo(done) or not others:
            os.unlink(path)
