# SPDX-License-Identifier: BSD-3-Clause
"""The copy that packages are built of names the commit, and depends on no umask: devtools/sources.sh."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

DEVTOOLS = Path(__file__).resolve().parents[1]
GIT = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost"]


@pytest.fixture
def tree(tmp_path):
    """A repository with the scripts, and the file a."""
    path = tmp_path / "tree"
    (path / "devtools").mkdir(parents=True)
    for name in "commit.sh", "sources.sh":
        shutil.copy(DEVTOOLS / name, path / "devtools")
    (path / "a").write_text("a")
    (path / ".gitignore").write_text("/build*/\n")
    (path / "build").mkdir()
    (path / "build" / "object").touch()
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, *words], cwd=path, check=True)
    return path


def copy(tree, umask=0o022):
    """A copy, and the commit that it names."""
    path = tree.parent / f"copy{len(list(tree.parent.iterdir()))}"
    subprocess.run([tree / "devtools" / "sources.sh", path], check=True, umask=umask)
    commit = path / ".commit"
    return path, commit.read_text().strip() if commit.exists() else None


def head(tree):
    words = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(words, cwd=tree, check=True, text=True, capture_output=True).stdout.strip()


def test_the_commit_is_named(tree):
    path, commit = copy(tree)
    assert commit == head(tree) and (path / "a").read_text() == "a"
    assert not (path / "build").exists() and not (path / ".git").exists()


def test_changed_and_new_files_are_copied_and_named(tree):
    (tree / "a").write_text("b")
    (tree / "new").touch()
    path, commit = copy(tree)
    assert commit == f"{head(tree)}-changed"
    assert (path / "a").read_text() == "b" and (path / "new").exists()


def test_a_copy_of_a_tarball_names_its_commit(tree):
    """The tarball has .commit, and may lie in another repository."""
    first, commit = copy(tree)
    shutil.move(first, tree / "unpacked")
    assert copy(tree / "unpacked")[1] == commit
    (tree / "unpacked" / ".commit").unlink()
    assert copy(tree / "unpacked")[1] is None


def test_permissions_do_not_depend_on_the_umask(tree):
    (tree / "a").chmod(0o664)
    (tree / "devtools").chmod(0o775)
    for umask in 0o002, 0o077:
        path, _ = copy(tree, umask)
        modes = {p.relative_to(path).as_posix(): oct(p.stat().st_mode & 0o777) for p in path.rglob("*")}
        assert (modes["a"], modes["devtools"], modes[".commit"], modes["devtools/commit.sh"]) == (
            "0o644",
            "0o755",
            "0o644",
            "0o755",
        )


def test_tarball_of_the_spec_is_the_published_one():
    published = re.search(r"^name=(ringtap-\S+)$", (DEVTOOLS / "dist.sh").read_text(), re.MULTILINE)[1]
    spec = (DEVTOOLS.parent / "packaging/ringtap.spec").read_text()
    source = re.search(r"^Source0: +(\S+)$", spec, re.MULTILINE)[1].replace("%{name}", "ringtap")
    assert source.replace("%{version}", "$version") == published
    assert f"/SOURCES/{published}" in (DEVTOOLS / "rpm.sh").read_text()
