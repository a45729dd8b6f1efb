# SPDX-License-Identifier: BSD-3-Clause
"""Whether cycles can be trusted: what the time stamp counter and the cores' frequency do."""
import glob
import re


def _read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return None


def _flags():
    found = re.search(r"^flags\s*:(.*)$", _read("/proc/cpuinfo") or "", re.M)
    return set(found.group(1).split()) if found else set()


def _governors():
    paths = glob.glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
    return sorted({_read(p) or "unknown" for p in paths})


def _turbo():
    """True, False, or None where the kernel does not say."""
    for path, on in (("/sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
                     ("/sys/devices/system/cpu/cpufreq/boost", "1")):
        text = _read(path)
        if text is not None:
            return text == on
    return None


def describe():
    """Facts, as text by name."""
    flags = _flags()
    found = re.search(r"^bogomips\s*:\s*([\d.]+)", _read("/proc/cpuinfo") or "", re.M)
    turbo = {True: "on", False: "off", None: "not visible"}[_turbo()]
    return {
        # The kernel's delay loop counts the TSC, twice for each tick.
        "tsc_mhz": round(float(found.group(1)) / 2) if found else None,
        "tsc_flags": " ".join(f for f in ("constant_tsc", "nonstop_tsc") if f in flags) or "none",
        "clocksource": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "governor": " ".join(_governors()) or "not visible",
        "turbo": turbo,
        "hypervisor": "yes" if "hypervisor" in flags else "no",
    }


def warnings(about):
    """Sentences, one for each reason why cycles of the TSC are not cycles of the core. about: what
    describe() gave."""
    found = []
    if "constant_tsc" not in about["tsc_flags"]:
        found.append("The TSC is not constant: its ticks follow the core's frequency, and times in "
                     "nanoseconds are wrong where that changes.")
    if "nonstop_tsc" not in about["tsc_flags"]:
        found.append("The TSC may stop in deep sleep.")
    if about["governor"] not in ("performance", "not visible"):
        found.append(f"The frequency is governed by {about['governor']}, not performance: cores may "
                     "run slower than the TSC counts.")
    if about["turbo"] == "on":
        found.append("Turbo is on: cores may run faster than the TSC counts.")
    if about["governor"] == "not visible" or about["turbo"] == "not visible":
        where = "a virtual machine" if about["hypervisor"] != "no" else "this machine"
        found.append(f"The cores' frequency cannot be seen on {where}: cycles are ticks of the TSC, and "
                     "the cores may run faster or slower than those.")
    return found
