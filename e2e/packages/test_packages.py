# SPDX-License-Identifier: BSD-3-Clause
"""Packages: built, installed, used and removed. `make test-deb` runs these tests."""

import os
import platform
import re
import shutil

import pytest
from harness.paths import REPO
from harness.proc import check, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "RINGTAP_PACKAGES" not in os.environ, reason="takes minutes and a mirror of Debian: make test-deb"
    ),
]
HERE = platform.freedesktop_os_release().get("VERSION_CODENAME")
SUITE = os.environ.get("RINGTAP_PACKAGES")  # Debian's: this machine's, or another in a root of its own
BUILD_S = 3000  # the compiler's time; lintian's is a minute
ROOT_S = 1800


def script(name, *args, timeout, env=None):
    """Runs a script of devtools; returns its output."""
    done = run([REPO / "devtools" / name, *args], timeout=timeout, env=env)
    assert done.returncode == 0, f"{name}: status {done.returncode}\n{done.stdout[-20000:]}\n{done.stderr[-20000:]}"
    return done.stdout


def assert_version(said):
    """They name the commit that they are of, and have the probe for each release of which there are headers."""
    commit = check([REPO / "devtools" / "commit.sh"]).strip()
    assert re.search(r"^ringtap \S+ \((\w+)(-changed)?\)$", said, re.MULTILINE)[1] == commit
    abis = sorted(int(path.name.partition(".")[0]) + 1 for path in (REPO / "packaging/dpdk").glob("*.11.tar.xz"))
    assert f"for DPDK's ABI {', '.join(map(str, abis))}\n" in said and len(abis) > 4


def need(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (devtools/deps.sh packages)")


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    """The folder of the packages, which lintian has found no error in."""
    folder = tmp_path_factory.mktemp("debs")
    if SUITE == HERE:
        need("dpkg-buildpackage", "dh", "lintian")
        script("deb.sh", folder / "out", timeout=BUILD_S)
    else:
        need("debootstrap")
        try:
            script("deb.sh", folder / "out", folder / SUITE, timeout=BUILD_S + ROOT_S)
        finally:
            shutil.rmtree(folder / SUITE, ignore_errors=True)
    yield folder / "out"
    shutil.rmtree(folder)


def test_all_packages_are_built(debs):
    built = {path.name.split("_")[0] for path in debs.glob("*.deb")}
    assert {"ringtap", "ringtap-probe", "libringtap0", "libringtap-pcap0", "libringtap-dev", "python3-ringtap"} <= built
    # Drivers of the DPDK that it was built with.
    (ringtap,) = debs.glob("ringtap_*.deb")
    assert re.search(r"librte-net-af-packet\d+\b", check(["dpkg-deb", "-f", ringtap, "Recommends"]))


@pytest.mark.skipif(SUITE not in ("bookworm", "jammy"), reason="later releases have a C library that renames functions")
def test_c_library_of_ubuntu(debs, tmp_path):
    """No package built on Debian 12 (2.36) needs more of the C library than Ubuntu 22.04 has."""
    for deb in debs.glob("*.deb"):
        check(["dpkg-deb", "-x", deb, tmp_path / deb.stem])
    objects = [path for path in tmp_path.rglob("*") if is_elf(path)]
    versions = set(re.findall(r"Name: GLIBC_(\d+)\.(\d+)", check(["readelf", "-V", "-W", *objects])))
    assert len(objects) > 10 and versions
    assert max(tuple(map(int, version)) for version in versions) <= (2, 35)


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


@pytest.fixture
def roots(tmp_path):
    """The folder in which the script makes its root folder, which it removes unless it is
    killed."""
    path = tmp_path / "roots"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def test_clean_root(debs, roots):
    need("debootstrap")
    said = script("deb-root.sh", debs, SUITE, timeout=ROOT_S, env={"TMPDIR": str(roots)})
    assert "installed, used and removed without a trace" in said
    assert_version(said)
    assert not list(roots.iterdir())


@pytest.mark.skipif(SUITE != HERE, reason="the same for each suite: tested with this machine's")
def test_rpm(tmp_path, roots):
    need("rpmbuild", "rpmlint", "debootstrap")
    listed = script("rpm.sh", tmp_path / "rpm", timeout=BUILD_S)
    assert "ringtap-probe-" in listed and "ringtap-devel-" in listed
    said = script("rpm-root.sh", tmp_path / "rpm", timeout=ROOT_S, env={"TMPDIR": str(roots)})
    assert "installed, used and removed without a trace" in said
    assert_version(said)
    assert not list(roots.iterdir())
