# SPDX-License-Identifier: BSD-3-Clause
"""Paths: the build, the plugin, captured packets, temporary folders."""
import os
import shutil
import stat
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
E2E = REPO / "e2e"
BUILD = Path(os.environ.get("RINGTAP_BUILD") or REPO / "build").resolve()
RINGTAP = BUILD / "cli" / "ringtap"
# The object with the code of the probe, which the plugin loads into applications of this DPDK
# version.
PROBE_OBJECT = next((BUILD / "probe" / "ringtap").glob("probe-abi*.so"), BUILD / "no-probe")
LTTNG_PROVIDER = BUILD / "probe" / "libringtap-lttng.so"
CORPUS = REPO.parent / "shared" / "pcaps"


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
