# SPDX-License-Identifier: BSD-3-Clause
"""The rights that the systemd unit leaves to `ringtap export`, without systemd: capabilities and read-only folders."""
from .paths import BUILD

UNIT = BUILD / "systemd" / "ringtap-export.service"
READ_ONLY = ("/", "/run/dpdk", "/tmp/dpdk")  # as of ProtectSystem=strict


def setting(name):
    """The only value of a setting."""
    values = [line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.startswith(f"{name}=")]
    assert len(values) == 1, f"{name}: {values}"
    return values[0]


def confined():
    """To be put before a command."""
    assert setting("ProtectSystem") == "strict" and setting("NoNewPrivileges") == "yes"
    kept = "".join(f",+{name.removeprefix('CAP_').lower()}" for name in setting("CapabilityBoundingSet").split())
    mounts = " && ".join(f"mount -o remount,bind,ro {folder}" for folder in READ_ONLY)
    return ["unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh",
            "setpriv", "--bounding-set", f"-all{kept}", "--inh-caps=-all", "--no-new-privs"]
