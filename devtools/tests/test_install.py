# SPDX-License-Identifier: BSD-3-Clause
"""`make install` and `make uninstall` with any PREFIX and DESTDIR, on a project of one file, which the Makefile builds as ringtap."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PROJECT = "project('small')\ninstall_data('small.txt', install_dir: get_option('datadir') / 'ringtap-small')\n"
INSTALLED = "share/ringtap-small/small.txt"


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Runs make on a build folder of the project, as from a shell."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "meson.build").write_text(PROJECT)
    (folder / "small.txt").write_text("small\n")
    (folder / "devtools").symlink_to(REPO / "devtools")
    subprocess.run(["meson", "setup", folder / "build"], cwd=folder, check=True, capture_output=True)
    inherited = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR", "PREFIX", "BUILD")
    env = {name: value for name, value in os.environ.items() if name not in inherited}

    def run(*words):
        command = ["make", "-f", REPO / "Makefile", f"PYTHON={sys.executable}", *words]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done
        return done

    run.folder = folder
    return run


def test_spaces_in_prefix_and_destdir(make, tmp_path):
    prefix, stage = tmp_path / "pre fix", tmp_path / "st age"
    words = [f"PREFIX={prefix}", f"DESTDIR={stage}"]
    root = Path(f"{stage}{prefix}")
    make("install", *words)
    assert (root / INSTALLED).read_text() == "small\n"
    make("uninstall", *words)
    assert not (root / INSTALLED).parent.exists() and (root / "share").is_dir()


def test_destdir_is_relative_to_the_folder_of_make(make):
    make("install", "DESTDIR=stage", "PREFIX=/opt/x")
    assert (make.folder / "stage/opt/x" / INSTALLED).exists() and not (make.folder / "build/stage").exists()
    assert make("uninstall", "DESTDIR=stage").stdout.count("removed '") == 1
    assert not (make.folder / "stage/opt/x" / INSTALLED).exists()


def test_prefix_that_all_may_write_to(make, tmp_path):
    """The warning names the prefix of the build folder, which a later install without PREFIX uses as well."""
    for words in (["PREFIX=/dev/shm/x"], []):
        assert "below /dev/shm/x," in make("install", f"DESTDIR={tmp_path}", *words).stderr


@pytest.fixture
def install():
    spec = importlib.util.spec_from_file_location("install", REPO / "devtools/install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def simulated(tmp_path, install, monkeypatch):
    """Runs install.py on the description of a build folder; returns its result and the commands that it runs."""

    def run(what, prefix):
        folder = tmp_path / "build" / "meson-info"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "intro-buildoptions.json").write_text(json.dumps([{"name": "prefix", "value": prefix}]))
        (folder / "intro-installed.json").write_text(json.dumps({"/src/small.txt": f"{prefix}/{INSTALLED}"}))
        monkeypatch.setattr(sys, "argv", ["install.py", what, str(tmp_path / "build"), str(tmp_path / "stage")])
        commands = []
        monkeypatch.setattr(subprocess, "run", lambda command, **how: commands.append(command))
        return install.main(), commands

    return run


@pytest.mark.parametrize(
    "prefix,warns", [("/tmp", True), ("/var/tmp/x", True), ("/tmpx", False), ("/usr/local", False)]
)
def test_warning_of_the_prefix(simulated, capfd, prefix, warns):
    result, commands = simulated("install", prefix)
    assert result == 0 and len(commands) == 1
    assert (f"below {prefix}," in capfd.readouterr().err) == warns


@pytest.mark.parametrize("what", ["install", "uninstall"])
def test_user_who_may_not_write(tmp_path, simulated, monkeypatch, what):
    """The folder without permission is reported before anything is installed."""
    locked = (tmp_path / "stage/opt/x" / INSTALLED).parent
    locked.mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != locked)
    message, commands = simulated(what, "/opt/x")
    assert message.startswith(f"make: cannot {what}: no permission to change {locked};") and "\n" not in message
    assert not commands


def test_nearest_folder_that_exists_counts(install, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    assert install.read_only([tmp_path / "a", tmp_path / "a/b/c"]) is None
    assert install.read_only([tmp_path / "a", tmp_path / "b/c"]) == tmp_path
