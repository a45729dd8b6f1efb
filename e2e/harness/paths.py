# SPDX-License-Identifier: BSD-3-Clause
"""Where things are: the build, the plugin, real packets, folders of our own."""
import os
import shutil
import stat
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
E2E = REPO / "e2e"
BUILD = Path(os.environ.get("RINGTAP_BUILD") or REPO / "build").resolve()
RINGTAP = BUILD / "cli" / "ringtap"
# What the plugin loads into applications of the DPDK that was built with: the probe's code is there.
PROBE_OBJECT = next((BUILD / "probe" / "ringtap").glob("probe-abi*.so"), BUILD / "no-probe")
LTTNG_PROVIDER = BUILD / "probe" / "libringtap-lttng.so"
CORPUS = REPO.parent / "shared" / "pcaps"


def world_writable(path):
    """Whether EAL would refuse a plugin in this folder: it checks all folders above, too."""
    return any(p.stat().st_mode & stat.S_IWOTH for p in [path, *path.parents])


def private_folder():
    """A new folder that EAL takes plugins from. The caller removes it."""
    for parent in ("/run", os.environ.get("XDG_RUNTIME_DIR"), str(Path.home())):
        if parent and os.access(parent, os.W_OK) and not world_writable(Path(parent)):
            return Path(tempfile.mkdtemp(prefix="ringtap-e2e-", dir=parent))
    raise RuntimeError("no folder to be found whose parents only root may write")


def probe_object(plugin):
    """Path of the code that the plugin loads."""
    return plugin.parent / PROBE_OBJECT.parent.name / PROBE_OBJECT.name


def copy_probe(plugin, folder):
    """The plugin with the objects that it loads, in another folder; returns its path there."""
    objects = Path(folder) / PROBE_OBJECT.parent.name
    objects.mkdir()
    shutil.copy(probe_object(plugin), objects)
    return Path(shutil.copy(plugin, folder))


class Plugin:
    """The probe where EAL's -d accepts it: in place, or copied to where EAL accepts it, with what it loads
    from beside it."""

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
