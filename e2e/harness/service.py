# SPDX-License-Identifier: BSD-3-Clause
"""The rights that the systemd unit grants to `ringtap export`, without systemd: capabilities and
read-only folders."""
import itertools
import re

from .paths import BUILD
from .proc import check

UNIT = BUILD / "systemd" / "ringtap-export.service"
READ_ONLY = ("/", "/run/dpdk", "/tmp/dpdk")  # as of ProtectSystem=strict


def settings(name):
    """All values of a setting, in their order."""
    return [line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.startswith(f"{name}=")]


def setting(name):
    """The value of a setting that occurs once."""
    values = settings(name)
    assert len(values) == 1, f"{name}: {values}"
    return values[0]


def _calls(names, groups):
    """Names of system calls, with the contents of groups (@NAME)."""
    direct = {name for name in names if not name.startswith("@")}
    return direct.union(*(_calls(groups[name], groups) for name in names if name.startswith("@")))


def allowed_calls():
    """System calls that SystemCallFilter= allows, with the groups of systemd-analyze."""
    groups = {}
    for line in check(["systemd-analyze", "syscall-filter"]).splitlines():
        if line.startswith("@"):
            members = groups.setdefault(line.strip(), [])
        elif re.match(r" +[@a-z_]", line):
            members.append(line.strip())
    kept = set(itertools.chain(*(_calls(v.split(), groups) for v in settings("SystemCallFilter") if v[0] != "~")))
    return kept.difference(*(_calls(v[1:].split(), groups) for v in settings("SystemCallFilter") if v[0] == "~"))


def confined():
    """A command prefix."""
    assert setting("ProtectSystem") == "strict" and setting("NoNewPrivileges") == "yes"
    kept = "".join(f",+{name.removeprefix('CAP_').lower()}" for name in setting("CapabilityBoundingSet").split())
    mounts = " && ".join(f"mount -o remount,bind,ro {folder}" for folder in READ_ONLY)
    return ["unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh",
            "setpriv", "--bounding-set", f"-all{kept}", "--inh-caps=-all", "--no-new-privs"]
