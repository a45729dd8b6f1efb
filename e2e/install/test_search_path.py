# SPDX-License-Identifier: BSD-3-Clause
"""No program or library of ours is started with libraries of the current folder."""

import os
import re
import stat

from harness.paths import BUILD
from harness.proc import check


def elf_files(tree):
    for folder, folders, names in os.walk(tree):
        # Other systems' files: 'make matrix' keeps roots there.
        folders[:] = [name for name in folders if name != "roots"]
        for name in names:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def dynamic_sections(paths):
    """The path and the text of each file."""
    return re.findall(r"^File: (.*)\n((?:(?!File: ).*\n)*)", check(["readelf", "-dW", *paths]), re.M)


def test_libraries_are_searched_in_absolute_folders_only(installation):
    """Each entry of a run path is absolute or begins with the file's own folder; no library is named by a relative path."""
    for tree in BUILD, installation:
        found = [
            (path, kind, entry)
            for path, table in dynamic_sections(list(elf_files(tree)))
            for kind, value in re.findall(r"\((RUNPATH|RPATH|NEEDED)\)[^[]*\[(.*)\]", table)
            for entry in value.split(":")
        ]
        assert {kind for _, kind, _ in found} >= {"RUNPATH", "NEEDED"}, tree
        assert not [
            (path, kind, entry)
            for path, kind, entry in found
            if (kind == "NEEDED" and "/" in entry and not entry.startswith("/"))
            or (kind != "NEEDED" and not re.match(r"/|\$ORIGIN(/|$)", entry))
        ]
