# SPDX-License-Identifier: BSD-3-Clause
"""On what a benchmark ran."""
import os
import platform
import re
import subprocess

from . import clock


def _first(pattern, text):
    found = re.search(pattern, text, re.M)
    return found.group(1).strip() if found else None


def _output(argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
        return done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _isolation():
    """Which CPUs are kept from other work, by the kernel's command line."""
    with open("/proc/cmdline", encoding="utf-8") as f:
        words = f.read().split()
    of = ("isolcpus=", "nohz_full=", "rcu_nocbs=", "irqaffinity=")
    return " ".join(w for w in words if w.startswith(of)) or "none"


def _huge_pages():
    with open("/proc/meminfo", encoding="ascii") as f:
        text = f.read()
    total, size_kb = (_first(rf"^{key}:\s+(\d+)", text) for key in ("HugePages_Total", "Hugepagesize"))
    with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as f:
        transparent = _first(r"\[(\w+)\]", f.read())
    return f"{total} of {size_kb} KiB, transparent: {transparent}"


def describe(ringtap):
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        cpu = _first(r"^model name\s*:\s*(.*)$", f.read())
    with open("/proc/meminfo", encoding="ascii") as f:
        memory_kb = int(_first(r"^MemTotal:\s*(\d+)", f.read()))
    return {
        "cpu": cpu or platform.machine(),
        "cpus": os.cpu_count(),
        "memory_mb": memory_kb // 1024,
        "kernel": platform.release(),
        "dpdk": _first(r"DPDK ([\d.]+)", _output(["dpdk-dumpcap", "--version"])),
        "ringtap": _first(r"(\d+\.\d+\.\d+)", _output([ringtap, "--version"])),
        "load": round(os.getloadavg()[0], 2),
        **clock.describe(),
        "isolation": _isolation(),
        "huge_pages": _huge_pages(),
    }
