# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages for the time of a benchmark: missing ones are added, and given back afterwards; by the next run if this one is
killed: a note records the change."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess

NR = pathlib.Path("/proc/sys/vm/nr_hugepages")
MOUNT = "/dev/hugepages"


def _meminfo(key: str):
    found = re.search(rf"^{key}:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="ascii"), re.M)
    return int(found.group(1)) if found else 0


def _mounted():
    with open("/proc/mounts", encoding="utf-8") as f:
        return any(line.split()[2] == "hugetlbfs" for line in f)


class HugePages:
    """reason is None if there are enough, else a sentence on why there are not. note: path of a file for give_back(), there for as
    long as something has to be given back; None: none is written."""

    def __init__(self, megabytes: int, note: str | None = None):
        self._note = note
        self._done = {}  # what is to be undone
        try:
            self.reason = self._get(megabytes)
        except (OSError, subprocess.CalledProcessError) as e:
            self.reason = f"no huge pages: {e}"
        if self.reason:
            self.release()

    def _plan(self, **what):
        """Written down before it is done; undoing something that was not done has no effect."""
        self._done |= what
        if self._note:
            with open(f"{self._note}.new", "w", encoding="ascii") as f:
                json.dump(self._done, f)
            os.replace(f"{self._note}.new", self._note)

    def _get(self, megabytes: int):
        """None, or a reason."""
        page_kb = _meminfo("Hugepagesize")
        if page_kb == 0:
            return "no huge pages: the kernel has none"
        missing = megabytes * 1024 // page_kb - _meminfo("HugePages_Free")
        if missing > 0:
            before = _meminfo("HugePages_Total")
            self._plan(before=before, set_to=before + missing)
            NR.write_text(str(before + missing), encoding="ascii")
            found = _meminfo("HugePages_Total")
            if found < before + missing:
                self._plan(set_to=found)
                return f"no huge pages: the kernel does not find {megabytes} MiB"
        if not _mounted():
            os.makedirs(MOUNT, exist_ok=True)
            self._plan(mounted=True)
            subprocess.run(["mount", "-t", "hugetlbfs", "none", MOUNT], check=True)
        return None

    def release(self) -> None:
        undone = _undo(self._done)
        self._done = {}
        if self._note and undone and os.path.exists(self._note):
            os.unlink(self._note)


def _undo(done: dict[str, int]):
    """Whether nothing of ours is left to be undone."""
    if done.get("mounted") and _mounted():
        subprocess.run(["umount", MOUNT], check=False, capture_output=True)
    # A number that another process has changed since belongs to that process.
    if "set_to" in done and _meminfo("HugePages_Total") != done["set_to"]:
        return done["set_to"] == done["before"]
    if "set_to" in done:
        NR.write_text(str(done["before"]), encoding="ascii")  # the kernel leaves pages that are in use to their users
    return True


def give_back(notes: list[str], others: bool) -> None:
    """Gives back what killed runs have left in their notes. others: runs that are alive have notes, too: then the number may be one
    of theirs, and it will be ours again when they have ended."""
    found = []
    for path in notes:
        try:
            with open(path, encoding="ascii") as f:
                found.append((json.load(f), path))
        except (OSError, ValueError):  # not wholly written: nothing was done yet
            found.append(({}, path))
    # The last run that added some is the first one to remove them.
    for done, path in sorted(found, key=lambda x: -x[0].get("set_to", 0)):
        if _undo(done) or not others:
            os.unlink(path)
