# SPDX-License-Identifier: BSD-3-Clause
"""tshark with ringtap-extcap as the only program in its extcap folder."""

import re
import shutil

from .paths import BUILD
from .proc import Proc, check, run

EXTCAP = BUILD / "extcap" / "ringtap-extcap"


def folder():
    """The extcap folder of tshark; None without tshark."""
    if not shutil.which("tshark"):
        return None
    found = re.search(r"^Extcap path:\s*(.*)$", check(["tshark", "-G", "folders"]), re.M)
    return found.group(1).strip() if found else None


def inside(where):
    """A command prefix that mounts a folder with this program alone over this one. (As root, Wireshark ignores
    WIRESHARK_EXTCAP_DIR.)"""
    inside = f"{where}/{EXTCAP.name}"
    script = f"mount -t tmpfs none {where} && touch {inside} && mount --bind {EXTCAP} {inside} && exec \"$@\""
    return ["unshare", "-m", "sh", "-c", script, "sh"]


def missing():
    """The reason why it cannot be tested here, or None."""
    if not EXTCAP.exists():
        return f"{EXTCAP} is not built"
    where = folder()
    if not where:
        return "tshark is not installed"
    done = run([*inside(where), "true"])
    return f"no mount namespace for the extcap folder: {done.stderr.strip()}" if done.returncode else None


def interface(app, port=None):
    return f"ringtap:{app.prefix}" + (f":{port}" if port else "")


def preference(interface_name, option, value):
    """tshark arguments that set an option of the capture."""
    return ["-o", f"extcap.{re.sub('[^a-z0-9]', '_', interface_name.lower())}.{option.replace('-', '')}:{value}"]


class Tshark(Proc):
    def __init__(self, args):
        super().__init__([*inside(folder()), "tshark", *args])


def tshark(*args, **kwargs):
    return run([*inside(folder()), "tshark", *args], **kwargs)
