# SPDX-License-Identifier: BSD-3-Clause
"""Paths: the build, the plugin, captured packets, temporary folders."""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
E2E = REPO / "e2e"
BUILD = Path(os.environ.get("RINGTAP_BUILD") or REPO / "build").resolve()
# The prefix of an installation that is tested instead of the build's programs.
PREFIX = Path(os.environ["RINGTAP_PREFIX"]).resolve() if "RINGTAP_PREFIX" in os.environ else None
RINGTAP = PREFIX / "bin" / "ringtap" if PREFIX else BUILD / "cli" / "ringtap"


def dpdk_version():
    """Version of this machine's DPDK; None if it has none to build with."""
    done = subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True, text=True)
    return done.stdout.strip() or None


def _abi(version):
    """The number of DPDK's ABI: the year after that of its November release."""
    year, month = (int(part) for part in version.split(".")[:2])
    return year + (month >= 11)


# The object with the code of the probe, which the plugin loads into applications of this machine's
# DPDK.
PROBE_OBJECT = BUILD / "probe" / "ringtap" / f"probe-abi{_abi(dpdk_version() or '0.0')}.so"
LTTNG_PROVIDER = BUILD / "probe" / "libringtap-lttng.so"
CORPUS = Path(os.environ.get("RINGTAP_CORPUS") or REPO.parent / "shared" / "pcaps").absolute()


def world_writable(path):
    """Whether EAL would refuse a plugin in this folder: it also checks all parent folders."""
    return any(p.stat().st_mode & stat.S_IWOTH for p in [path, *path.parents])


def private_folder():
    """A new folder from which EAL loads plugins. The caller removes it."""
    for parent in ("/run", os.environ.get("XDG_RUNTIME_DIR"), str(Path.home())):
        if parent and os.access(parent, os.W_OK) and not world_writable(Path(parent)):
            return Path(tempfile.mkdtemp(prefix="ringtap-e2e-", dir=parent))
    raise RuntimeError("no folder to be found whose parents only root may write")


def probe_object(plugin):
    """Path of the code that the plugin loads."""
    return plugin.parent / PROBE_OBJECT.parent.name / PROBE_OBJECT.name


def copy_probe(plugin, folder):
    """Copies the plugin and the objects that it loads to another folder; returns its path there."""
    objects = Path(folder) / PROBE_OBJECT.parent.name
    objects.mkdir()
    shutil.copy(probe_object(plugin), objects)
    return Path(shutil.copy(plugin, folder))


class Plugin:
    """The plugin at a path that EAL's -d accepts: in the build, or a copy with the objects that it
    loads."""

    def __init__(self):
        built = BUILD / "probe" / "libringtap-probe.so"
        if PREFIX:
            built = next(PREFIX.glob("lib/*/libringtap-probe.so"))
        self._own = None
        self.path = built
        if built.exists() and world_writable(built.parent):
            self._own = private_folder()
            self.path = copy_probe(built, self._own)
            if LTTNG_PROVIDER.exists():
                shutil.copy(LTTNG_PROVIDER, self._own)

    def close(self):
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)
