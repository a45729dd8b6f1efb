# SPDX-License-Identifier: BSD-3-Clause
"""On what a benchmark ran."""
import glob
import os
import pathlib
import platform
import re
import subprocess

from . import clock

_SOURCES = pathlib.Path(__file__).resolve().parent


def _first(pattern, text):
    found = re.search(pattern, text, re.M)
    return found.group(1).strip() if found else None


def _output(argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
        return done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def _isolation():
    """Which CPUs are kept from other work: by the kernel's command line, and what came of it."""
    of = ("isolcpus=", "nohz_full=", "rcu_nocbs=", "irqaffinity=")
    words = [w for w in _read("/proc/cmdline").split() if w.startswith(of)]
    words += [f"{name} {cpus}" for name in ("isolated", "nohz_full")
              if (cpus := _read(f"/sys/devices/system/cpu/{name}")) not in ("", "(null)")]
    return ", ".join(words) or "none: no isolcpus, no nohz_full"


def _memory(text):
    """text: of /proc/meminfo."""
    def number(key):
        return int(_first(rf"^{key}:\s+(\d+)", text) or 0)

    transparent = _first(r"\[(\w+)\]", _read("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {"memory": f"{number('MemTotal') // 1024:,} MB",
            "huge_pages": f"of {number('Hugepagesize'):,} KiB; transparent: {transparent}",
            "memory_free": f"{number('MemAvailable') // 1024:,} MB",
            "huge_pages_free": f"{number('HugePages_Free'):,} of {number('HugePages_Total'):,}"}


def _caches():
    found = {}
    for path in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        level, kind, size = (_read(f"{path}/{name}") for name in ("level", "type", "size"))
        if kind != "Instruction" and size:
            found[f"L{level}"] = size.replace("K", " KiB")
    return ", ".join(f"{k} {v}" for k, v in found.items()) or None


def _virtual(hypervisor):
    """And by which hypervisor, as far as it shows."""
    vendor = _first(r"^Hypervisor vendor:\s*(.*)$", _output(["lscpu"]))
    return f"{hypervisor}, {vendor}" if vendor else hypervisor


def _commit():
    """What was built, if this is a clone; "-dirty": with changes that are not in it."""
    return _first(r"^([0-9a-f]{7,}\S*)$", _output(
        ["git", "-c", "safe.directory=*", "-C", str(_SOURCES), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]))


def describe(ringtap, cpus):
    """cpus: those that are measured on."""
    time = clock.describe()
    return {
        "cpu": _first(r"^model name\s*:\s*(.*)$", _read("/proc/cpuinfo")) or platform.machine(),
        "cpus": f"{os.cpu_count()}; measured on {' and '.join(str(c) for c in cpus)}",
        "caches": _caches(),
        **_memory(_read("/proc/meminfo")),
        "system": _first(r'^PRETTY_NAME="?(.*?)"?$', _read("/etc/os-release")),
        "kernel": platform.release(),
        "dpdk": _first(r"DPDK ([\d.]+)", _output(["dpdk-dumpcap", "--version"])),
        "ringtap": _first(r"(\d+\.\d+\.\d+)", _output([ringtap, "--version"])),
        "commit": _commit(),
        **time,
        "hypervisor": _virtual(time["hypervisor"]),
        "isolation": _isolation(),
        "load": round(os.getloadavg()[0], 2),
    }
