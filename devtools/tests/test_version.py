# SPDX-License-Identifier: BSD-3-Clause
"""The version in one place: devtools/version.sh finds files that have another one, and sets all."""

import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
FILES = [
    "meson.build",
    "archive/pyproject.toml",
    "lab/pyproject.toml",
    "packaging/ringtap.spec",
    "debian/changelog",
    "CHANGELOG.md",
]


@pytest.fixture
def version(tmp_path):
    for name in [*FILES, "devtools/version.sh"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPO / name, tmp_path / name)

    def run(*args):
        return subprocess.run(
            [tmp_path / "devtools/version.sh", *args], capture_output=True, text=True, check=True
        ).stdout

    return run


@pytest.mark.parametrize("name", FILES[1:])
def test_another_version_is_found(version, tmp_path, name):
    assert version("check") == ""
    now = version().strip()
    path = tmp_path / name
    path.write_text(path.read_text(encoding="utf-8").replace(now, "7.8.9", 1), encoding="utf-8")
    assert version("check") == f"{name}: version 7.8.9; meson.build has {now}\n"


def test_set(version):
    left = version("set", "7.8.9")
    assert version() == "7.8.9\n"
    assert [line.split(":")[0] for line in left.splitlines()] == ["debian/changelog", "CHANGELOG.md"]
