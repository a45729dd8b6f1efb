# SPDX-License-Identifier: BSD-3-Clause
"""The rights that systemd units grant to ringtap's services, without systemd: capabilities and read-only
folders."""

import itertools
import re
import textwrap

from .paths import BUILD, REPO
from .proc import check

ATTACH = BUILD / "systemd" / "ringtap-attach@.service"
EXPORT = BUILD / "systemd" / "ringtap-export.service"
FLIGHT = BUILD / "systemd" / "ringtap-flight@.service"
FLOWS = BUILD / "systemd" / "ringtap-flows@.service"
WEB = BUILD / "systemd" / "ringtap-web.service"
STATE = "/var/lib/ringtap-flight"
READ_ONLY = ("/", "/run/dpdk", "/tmp/dpdk")  # as of ProtectSystem=strict


def settings(name, unit=EXPORT):
    """All values of a setting, in their order."""
    return [line.partition("=")[2] for line in unit.read_text().splitlines() if line.startswith(f"{name}=")]


def setting(name, unit=EXPORT):
    """The value of a setting that occurs once."""
    values = settings(name, unit)
    assert len(values) == 1, f"{name}: {values}"
    return values[0]


def _calls(names, groups):
    """Names of system calls, with the contents of groups (@NAME)."""
    direct = {name for name in names if not name.startswith("@")}
    return direct.union(*(_calls(groups[name], groups) for name in names if name.startswith("@")))


def allowed_calls(unit=EXPORT):
    """System calls that SystemCallFilter= allows, with the groups of systemd-analyze."""
    groups = {}
    for line in check(["systemd-analyze", "syscall-filter"]).splitlines():
        if line.startswith("@"):
            members = groups.setdefault(line.strip(), [])
        elif re.match(r" +[@a-z_]", line):
            members.append(line.strip())
    kept = set(itertools.chain(*(_calls(v.split(), groups) for v in settings("SystemCallFilter", unit) if v[0] != "~")))
    return kept.difference(*(_calls(v[1:].split(), groups) for v in settings("SystemCallFilter", unit) if v[0] == "~"))


def drop_in(unit):
    """The file that docs/flight.md has users make for a unit, as `systemctl edit NAME` does."""
    text = textwrap.dedent("".join(re.findall(r"^    .*\n|^\n", (REPO / "docs" / "flight.md").read_text(), re.M)))
    name = unit.name.replace("@.service", "@my-app").removesuffix(".service")
    found = re.findall(rf"^# systemctl edit {name}\n(\[Service\]\n(?:.+\n)+)", text, re.M)
    assert len(found) == 1, found
    return found[0]


def _added(drop, name):
    return [value for key, _, value in (line.partition("=") for line in drop.splitlines()) if key == name]


def confined(unit=EXPORT, folder=None, also=(), drop=""):
    """A command prefix. folder: instead of the unit's StateDirectory, or of STATE in a drop-in file. also:
    capabilities beside those of the unit. drop: text of a drop-in file."""
    assert setting("ProtectSystem", unit) == "strict" and setting("NoNewPrivileges", unit) == "yes"
    kept = "".join(
        f",+{name.removeprefix('CAP_').lower()}"
        for name in [
            *setting("CapabilityBoundingSet", unit).split(),
            *also,
            *(n for line in _added(drop, "CapabilityBoundingSet") for n in line.split()),
        ]
    )
    writable = [f.removeprefix("-") for line in settings("ReadWritePaths", unit) for f in line.split()]
    writable += [str(folder) if f == STATE else f for line in _added(drop, "ReadWritePaths") for f in line.split()]
    writable += [str(folder)] if folder and settings("StateDirectory", unit) else []
    mounts = [f"mount --rbind {f} {f}" for f in writable]
    mounts += [
        f"mount -o remount,bind,ro {f}" for f in READ_ONLY if not any(f == w or f.startswith(f"{w}/") for w in writable)
    ]
    return [
        "unshare",
        "-m",
        "sh",
        "-c",
        f'{" && ".join(mounts)} && exec "$@"',
        "sh",
        "setpriv",
        "--bounding-set",
        f"-all{kept}",
        "--inh-caps=-all",
        "--no-new-privs",
    ]
