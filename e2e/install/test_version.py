# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap --version`: the commit, and what is installed."""

import re

from harness.paths import REPO, RINGTAP
from harness.proc import check, run
from harness.ringtap import listing


def test_of_an_installation(installation):
    """The ABIs of DPDK are those of the objects beside the probe's library."""
    program = next(installation.rglob("bin/ringtap"))
    first, probe, libraries, tracers = check([program, "--version"]).splitlines()
    commit = run(["git", "-C", REPO, "rev-parse", "--short=12", "HEAD"]).stdout.strip()
    assert re.fullmatch(rf"ringtap \d+\.\d+\.\d+ \({commit or 'release'}\)", first)
    objects = next(installation.rglob("libringtap-probe.so")).parent.joinpath("ringtap").glob("probe-abi*.so")
    known = sorted(int(re.search(r"abi(\d+)", path.name)[1]) for path in objects)
    assert known and probe.endswith(f"libringtap-probe.so, for DPDK's ABI {', '.join(map(str, known))}")
    assert re.fullmatch(r"libraries: libpcap version .*, zstd [\d.]+, lz4 [\d.]+, io_uring", libraries)
    assert tracers.startswith("tracers: ")


def test_of_a_probe(app):
    """A loaded probe has its version and commit, those of the command."""
    version, commit = re.match(r"ringtap (\S+) \((\w+)\)", check([RINGTAP, "--version"])).groups()
    (probe,) = (a["probe"] for a in listing() if a["name"] == app.prefix)
    assert probe == (version if commit == "release" else f"{version}+{commit}")


def test_tracers_are_those_in_path(tmp_path):
    program = tmp_path / "bpftrace"
    for mode, expected in ((0o755, "tracers: bpftrace"), (0o644, "tracers: none installed")):
        program.touch()
        program.chmod(mode)
        assert check([RINGTAP, "--version"], env={"PATH": str(tmp_path)}).splitlines()[-1] == expected
