# SPDX-License-Identifier: BSD-3-Clause
"""Paths of the files that these programs need, in the build folder or the installation."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def candidates(variable: str, in_build: str, installed: list[str]) -> list[Path]:
    """Paths of a file, the first that exists counts: only the one that the variable names, if it does; else that of a
    build folder (in_build: its path there) beside the sources or beside this environment, or of an installation
    (installed: paths below its prefix)."""
    named = os.environ.get(variable)
    if named:
        return [Path(named)]
    build = os.environ.get("RINGTAP_BUILD")
    builds = [Path(build)] if build else []
    builds += [Path(__file__).resolve().parents[2] / "build", Path(sys.prefix).parent / "build"]
    program = shutil.which("ringtap")  # installed elsewhere than by default
    prefixes = [Path(program).resolve().parents[1]] if program else []
    prefixes += [Path("/usr/local"), Path("/usr")]
    return [b / in_build for b in builds] + [prefix / path for prefix in prefixes for path in installed]
