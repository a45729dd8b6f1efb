# SPDX-License-Identifier: BSD-3-Clause
"""Description of the machine that something was measured on."""

from __future__ import annotations

import glob
import os
import pathlib
import platform
import re
import subprocess

from . import clock
from .clock import read

_SOURCES = pathlib.Path(__file__).resolve().parent


def _first(pattern: str, text: str):
    found = re.search(pattern, text, re.M)
    return found.group(1).strip() if found else None


def _output(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
        return done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _isolation():
    """CPUs that are kept from other work: by the kernel's command line, and in effect."""
    options = ("isolcpus=", "nohz_full=", "rcu_nocbs=", "irqaffinity=")
    words = [w for w in read("/proc/cmdline").split() if w.startswith(options)]
    words += [
        f"{name} {cpus}"
        for name in ("isolated", "nohz_full")
        if (cpus := read(f"/sys/devices/system/cpu/{name}")) not in ("", "(null)")
    ]
    return ", ".join(words) or "none: no isolcpus, no nohz_full"


def _memory():
    facts = read("/proc/meminfo")

    def number(key: str):
        return int(_first(rf"^{key}:\s+(\d+)", facts) or 0)

    transparent = _first(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "memory": f"{number('MemTotal') // 1024:,} MiB",
        "huge_pages": f"of {number('Hugepagesize'):,} KiB; transparent: {transparent}",
        "memory_free": f"{number('MemAvailable') // 1024:,} MiB",
        "huge_pages_free": f"{number('HugePages_Free'):,} of {number('HugePages_Total'):,}",
    }


def _caches():
    found = {}
    for path in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        level, kind, size = (read(f"{path}/{name}") for name in ("level", "type", "size"))
        if kind != "Instruction" and size:
            found[f"L{level}"] = size.replace("K", " KiB")
    return ", ".join(f"{k} {v}" for k, v in found.items()) or None


def _gpu():
    """{} without NVIDIA's driver."""
    models = [
        _first(r"^Model:\s*(.*)$", read(path)) for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information"))
    ]
    driver = _first(r"x86_64\s+([\d.]+)", read("/proc/driver/nvidia/version"))
    return {"gpu": f"{', '.join(filter(None, models))}; driver {driver}"} if models else {}


def describe(ringtap: str, cpus: list[int]) -> dict[str, str]:
    """cpus: those that are measured on."""
    time = clock.describe()
    vendor = _first(r"^Hypervisor vendor:\s*(.*)$", _output("lscpu"))
    commit = _output(
        "git",
        "-c",
        "safe.directory=*",
        "-C",
        str(_SOURCES),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    )
    return {
        "cpu": _first(r"^model name\s*:\s*(.*)$", read("/proc/cpuinfo")) or platform.machine(),
        "cpus": f"{os.cpu_count()}; measured on {(' and ' if len(cpus) == 2 else ', ').join(str(c) for c in cpus)}",
        "caches": _caches(),
        **_memory(),
        **_gpu(),
        "system": _first(r'^PRETTY_NAME="?(.*?)"?$', read("/etc/os-release")),
        "kernel": platform.release(),
        "dpdk": _first(r"DPDK ([\d.]+)", _output("dpdk-dumpcap", "--version")),
        "ringtap": _first(r"(\d+\.\d+\.\d+)", _output(ringtap, "--version")),
        # None outside a clone, and what was not packed from one; "-dirty": with other changes.
        "commit": os.environ.get("RINGTAP_COMMIT") or _first(r"^([0-9a-f]{7,}\S*)$", commit),
        **time,
        "hypervisor": ", ".join(filter(None, [time["hypervisor"], vendor])),
        "isolation": _isolation(),
        "load": round(os.getloadavg()[0], 2),
    }
