#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Installs a build folder into its prefix, below the folder DESTDIR if one is given, or removes what an installation would put
there now; of folders only ringtap's own.

usage: install.py install|uninstall BUILD_FOLDER [DESTDIR]
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

OPEN_TO_ALL = ("/tmp", "/var/tmp", "/dev/shm")


def introspect(build, what):
    """As `meson introspect`, whose results are in the build folder."""
    return json.loads((Path(build) / "meson-info" / f"intro-{what}.json").read_text())


def meson_install(build, destdir, *options):
    environment = {**os.environ, "DESTDIR": str(destdir)}
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", *options], check=True, env=environment)


def existing(folder):
    return next(one for one in [folder, *folder.parents] if os.path.lexists(one))


def read_only(folders):
    """The first of the folders, or the parent in which it is made, that this user may not change."""
    parents = sorted({existing(folder) for folder in folders})
    return next((folder for folder in parents if not os.access(folder, os.W_OK | os.X_OK)), None)


def uninstall(build, root):
    with tempfile.TemporaryDirectory() as stage:
        meson_install(build, stage, "--quiet")
        found = sorted(Path(stage).rglob("*"), reverse=True)  # what is in a folder before the folder
        for path in found:
            name = path.relative_to(stage)
            there = root / name
            if path.is_symlink() or not path.is_dir():
                if os.path.lexists(there):
                    there.unlink()
                    print(f"removed '{there}'")
            elif "ringtap" in str(name) and there.is_dir() and not any(there.iterdir()):
                there.rmdir()


def main():
    what, build = sys.argv[1:3]
    destdir = os.path.abspath(sys.argv[3]) if sys.argv[3:] and sys.argv[3] else ""
    prefix = next(one["value"] for one in introspect(build, "buildoptions") if one["name"] == "prefix")
    root = Path(destdir or "/")
    folders = [(root / path.lstrip("/")).parent for path in introspect(build, "installed").values()]
    if what == "uninstall":
        folders = [folder for folder in folders if folder.is_dir()]
    refused = read_only(folders)
    if refused:
        named = "DESTDIR" if destdir else "PREFIX"
        return f"make: cannot {what}: no permission to change {refused}; run as root, or name your own folder: {named}=FOLDER"
    if what == "uninstall":
        uninstall(build, root)
        return 0
    if any(f"{prefix}/".startswith(f"{folder}/") for folder in OPEN_TO_ALL):
        warning = f"EAL refuses plugins (-d) below {prefix}, where all may write; applications cannot load the probe"
        print(f"make: {warning}", file=sys.stderr)
    meson_install(build, destdir)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:  # meson has printed why
        sys.exit(error.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
