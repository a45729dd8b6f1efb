# SPDX-License-Identifier: BSD-3-Clause
"""Names for everything that a run puts into the system, so that it can be found and removed: processes, network namespaces,
DPDK's folders and huge pages, folders of our own.

A name holds process id and start time of the run that owns it: things of a run that is alive are never touched."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from . import process
from .hugepages import MOUNT, give_back
from .telemetry import runtime_dir

if TYPE_CHECKING:
    from collections.abc import Callable

KIND = "rtlab"
HUGE_PAGES = "hugepages"  # in the names of notes of HugePages
VARIABLE = "RINGTAP_LAB"  # in the environment of every process that a run starts
FOLDERS = "/run"
NAMESPACES = "/run/netns"
_NAME = re.compile(rf"{KIND}-(\d+)-(\d+)")


def _start_time(pid: int | str):
    """In ticks since boot; None if there is no such process, or if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def own_name() -> str:
    return f"{KIND}-{os.getpid()}-{_start_time(os.getpid())}"


def _owner(text: str):
    """The run's name in a text, or None."""
    found = _NAME.search(text)
    return found.group(0) if found else None


def _alive(name: str):
    pid, start = _NAME.fullmatch(name).groups()
    return _start_time(int(pid)) == int(start)


def _dead(name: str):
    return not _alive(name)


def _processes(is_ours: Callable):
    """Process ids of all processes that these runs have started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                mine = re.search(rf"(?:^|\0){VARIABLE}=({_NAME.pattern})".encode(), f.read())
        except OSError:
            continue
        if mine and int(pid) != os.getpid() and _start_time(pid) is not None and is_ours(mine.group(1).decode()):
            found.append(int(pid))
    return found


def _owned(names: list[str], is_ours: Callable):
    return [name for name in names if _owner(name) and is_ours(_owner(name))]


def _namespaces(is_ours: Callable):
    return _owned(os.listdir(NAMESPACES) if os.path.isdir(NAMESPACES) else [], is_ours)


def _paths(is_ours: Callable):
    """Files and folders that carry a run's name."""
    patterns = (f"{runtime_dir(KIND)}-*", f"{MOUNT}/{KIND}-*", f"{FOLDERS}/{KIND}-*")
    return _owned([path for pattern in patterns for path in glob.glob(pattern)], is_ours)


def remains(is_ours: Callable) -> list[str]:
    """All that exists of the runs for whose name is_ours(name) is true: texts for messages."""
    return [
        *(f"process {pid}" for pid in _processes(is_ours)),
        *(f"network namespace {n}" for n in _namespaces(is_ours)),
        *_paths(is_ours),
    ]


def _end_processes(is_ours: Callable):
    for sig in (signal.SIGTERM, signal.SIGKILL):
        for pid in _processes(is_ours):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        end = time.monotonic() + process.PATIENCE_S
        while _processes(is_ours):
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        else:
            return


def remove(is_ours: Callable) -> None:
    """Removes what remains() would list; processes first."""
    _end_processes(is_ours)
    for namespace in _namespaces(is_ours):
        subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)
    mine = _paths(is_ours)
    for path in mine:
        if not _is_note(path):
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    # Now nothing of ours uses huge pages any more.
    give_back(
        [path for path in mine if _is_note(path)], any(_is_note(path) and path not in mine for path in _paths(_alive))
    )


def _is_note(path: str):
    return HUGE_PAGES in os.path.basename(path)


def remove_leftovers() -> list[str]:
    """Removes what killed runs have left. Returns what it was; not what has to stay for now."""
    found = remains(_dead)
    if found:
        remove(_dead)
    left = remains(_dead) if found else []
    return [text for text in found if text not in left]
