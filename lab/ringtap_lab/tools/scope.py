# SPDX-License-Identifier: BSD-3-Clause
"""Names for everything that a run puts into the system, so that it can be found and taken away:
processes, network namespaces, DPDK's folders and huge pages, folders of our own.

A name holds process id and start time of the run that owns it, thus what belongs to a run that is
alive is never touched."""
import glob
import os
import re
import shutil
import signal
import subprocess
import time

from .hugepages import MOUNT, give_back
from .telemetry import runtime_dir

KIND = "rtlab"
HUGE_PAGES = "hugepages"  # what notes of HugePages are called
VARIABLE = "RINGTAP_LAB"  # in the environment of every process that a run starts
FOLDERS = "/run"
_NAME = re.compile(rf"{KIND}-(\d+)-(\d+)")


def _start_time(pid):
    """In ticks since boot; None if there is no such process, or if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def own_name():
    return f"{KIND}-{os.getpid()}-{_start_time(os.getpid())}"


def _owner(text):
    """The run's name in a text, or None."""
    found = _NAME.search(text)
    return found.group(0) if found else None


def _alive(name):
    pid, start = _NAME.fullmatch(name).groups()
    return _start_time(int(pid)) == int(start)


def _processes():
    """(pid, name of the run that it belongs to) of all processes that runs have started."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                entries = f.read().split(b"\0")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(VARIABLE.encode() + b"="):
                name = _owner(entry.decode(errors="replace"))
                if name and int(pid) != os.getpid() and _start_time(pid) is not None:
                    yield int(pid), name


def _namespaces():
    try:
        return os.listdir("/run/netns")
    except OSError:
        return []


def _paths():
    """Files and folders that carry a run's name."""
    return [path for pattern in (f"{runtime_dir(KIND)}-*", f"{MOUNT}/{KIND}-*", f"{FOLDERS}/{KIND}-*")
            for path in glob.glob(pattern)]


def remains(is_ours):
    """All that exists of the runs for whose name is_ours(name) is true: texts, for people."""
    found = [f"process {pid}" for pid, name in _processes() if is_ours(name)]
    found += [f"network namespace {n}" for n in _namespaces() if _owner(n) and is_ours(_owner(n))]
    return found + [path for path in _paths() if _owner(path) and is_ours(_owner(path))]


def _end_processes(is_ours):
    for sig, patience_s in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        for pid, name in _processes():
            if is_ours(name):
                try:
                    os.kill(pid, sig)
                except ProcessLookupError:
                    pass
        end = time.monotonic() + patience_s
        while any(is_ours(name) for _, name in _processes()):
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        else:
            return


def remove(is_ours):
    """Takes away what remains() would list; processes first."""
    _end_processes(is_ours)
    for namespace in _namespaces():
        name = _owner(namespace)
        if name and is_ours(name):
            subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)
    mine = [path for path in _paths() if _owner(path) and is_ours(_owner(path))]
    for path in mine:
        if not _is_note(path):
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    # Now nothing of ours uses them any more.
    give_back([path for path in mine if _is_note(path)],
              any(_is_note(path) and _alive(_owner(path)) for path in set(_paths()) - set(mine)))


def _is_note(path):
    return HUGE_PAGES in os.path.basename(path)


def remove_leftovers():
    """Takes away what runs that were killed have left. Returns what it was; not what has to stay for now."""
    found = remains(_dead)
    if found:
        remove(_dead)
    left = remains(_dead) if found else []
    return [text for text in found if text not in left]


def _dead(name):
    return not _alive(name)
