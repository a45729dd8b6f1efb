# SPDX-License-Identifier: BSD-3-Clause
"""State of the time stamp counter and the cores' frequency: whether cycles are meaningful."""

from __future__ import annotations

import glob
import pathlib
import re


def read(path: str) -> str:
    """A file's text, empty if there is none."""
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _turbo():
    for path, on in (
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
        ("/sys/devices/system/cpu/cpufreq/boost", "1"),
    ):
        if text := read(path):
            return "on" if text == on else "off"
    return "not visible"


def describe() -> dict:
    """Facts, as text by name."""
    cpuinfo = read("/proc/cpuinfo")
    flags = set(" ".join(re.findall(r"^flags\s*:(.*)$", cpuinfo, re.M)[:1]).split())
    bogomips = re.search(r"^bogomips\s*:\s*([\d.]+)", cpuinfo, re.M)
    governors = {read(p) or "unknown" for p in glob.glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")}
    return {
        # The kernel's delay loop counts the TSC, twice for each tick.
        "tsc_mhz": round(float(bogomips.group(1)) / 2) if bogomips else None,
        "tsc_flags": " ".join(f for f in ("constant_tsc", "nonstop_tsc") if f in flags) or "none",
        "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource") or None,
        "governor": " ".join(sorted(governors)) or "not visible",
        "turbo": _turbo(),
        "hypervisor": "yes" if "hypervisor" in flags else "no",
    }


def warnings(about: dict[str, str]) -> list[str]:
    """Sentences, one for each reason why cycles of the TSC are not cycles of the core. about: what describe() gave."""
    where = "a virtual machine" if about["hypervisor"] != "no" else "this machine"
    return [
        text
        for holds, text in (
            (
                "constant_tsc" not in about["tsc_flags"],
                "The TSC is not constant: its ticks follow the core's frequency, and times in "
                "nanoseconds are wrong where that changes.",
            ),
            ("nonstop_tsc" not in about["tsc_flags"], "The TSC may stop in deep sleep."),
            (
                about["governor"] not in ("performance", "not visible"),
                f"The frequency is governed by {about['governor']}, not performance: cores may run slower than the TSC counts.",
            ),
            (about["turbo"] == "on", "Turbo is on: cores may run faster than the TSC counts."),
            (
                "not visible" in (about["governor"], about["turbo"]),
                f"The cores' frequency is not visible on {where}: cycles are ticks "
                "of the TSC, and the cores may run faster or slower.",
            ),
        )
        if holds
    ]
