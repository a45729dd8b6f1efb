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
    "README.md",
    "docs/usage.md",
    "docs/compatibility.md",
]
PLACES = [
    ("archive/pyproject.toml", '"{}"'),
    ("lab/pyproject.toml", '"{}"'),
    ("packaging/ringtap.spec", "Version:        {}"),
    ("packaging/ringtap.spec", "- {}-1"),
    ("debian/changelog", "({})"),
    ("CHANGELOG.md", "] {}"),
    ("README.md", "ringtap {}"),
    ("docs/usage.md", "ringtap-{}-"),
    ("docs/usage.md", "ringtap-{} "),
    ("docs/compatibility.md", "Versions of {}"),
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


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_another_version_is_found(version, tmp_path, name, place):
    assert version("check") == ""
    now = version().strip()
    path = tmp_path / name
    text = path.read_text(encoding="utf-8")
    assert place.format(now) in text
    path.write_text(text.replace(place.format(now), place.format("7.8.9"), 1), encoding="utf-8")
    end = f"7.8.9; meson.build has {now}\n"
    assert version("check") in (f"{name}: version {end}", f"{name}: version {now} {end}")


def test_set(version):
    left = version("set", "7.8.9")
    assert version() == "7.8.9\n"
    assert [line.split(":")[0] for line in left.splitlines()] == [
        "packaging/ringtap.spec",
        "debian/changelog",
        "CHANGELOG.md",
    ]
