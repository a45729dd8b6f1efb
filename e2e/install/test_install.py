# SPDX-License-Identifier: BSD-3-Clause
"""The installed files are sufficient to build against, in C and C++, and to run."""

import errno
import fnmatch
import re
import shutil
from pathlib import Path

import pytest
from harness import dpdk
from harness.paths import BUILD, LTTNG_PROVIDER, PROBE_OBJECT, REPO
from harness.proc import Proc, check, run
from harness.ringtap import listing

READER = """
#include <ringtap/reader.h>
#include <stdio.h>
int main(void)
{
	struct ringtap_apps *apps;
	int rc = ringtap_apps_find(&apps);
	printf("%s %d\\n", ringtap_version(), rc);
	ringtap_apps_free(apps);
	return 0;
}
"""
MONITOR = """
#include <ringtap/monitor.h>
#include <stdio.h>
int main(void)
{
	struct ringtap_monitor *mon;
	char err[256];
	struct ringtap_monitor_options opts = {sizeof(opts), RINGTAP_POLLS | RINGTAP_LATENCY, 0, 0, 0};
	int rc = ringtap_monitor_open(&mon, "/nonexistent", &opts, err, sizeof(err));
	printf("%s %d %u\\n", err, rc < 0, ringtap_latency_buckets());
	ringtap_monitor_close(mon);
	return 0;
}
"""
LINK_IN = """
#include <ringtap/probe.h>
#include <rte_eal.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int rc = rte_eal_init(argc, argv) < 0 ? -1 : ringtap_probe_start();
	printf("started %d\\n", rc);
	fflush(stdout);
	getchar();
	ringtap_probe_stop();
	return rte_eal_cleanup();
}
"""
ALL_FUNCTIONS = """
#include <ringtap/probe.h>
#include <stdio.h>
void (*const all[])(void) = {FUNCTIONS};
int main(void)
{
	ringtap_probe_received_until(1);
	printf("%d\\n", ringtap_probe_port_stamped(UINT16_MAX));
	return !all[0];
}
"""


@pytest.fixture(scope="module")
def pkg_config(installation):
    folder = next(installation.rglob("pkgconfig"))

    def flags(package, *which):
        env = {"PKG_CONFIG_PATH": str(folder)}
        return check(["pkg-config", *which, package], env=env).split()

    flags.lib = folder.parent
    return flags


def compile_(source, suffix, folder, compiler, flags):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    path = folder / f"program.{suffix}"
    path.write_text(source)
    check([compiler, "-Wall", "-Wextra", "-Werror", path, "-o", folder / "program", *flags])
    return folder / "program"


def test_reader_library(pkg_config, tmp_path):
    env = {"LD_LIBRARY_PATH": str(pkg_config.lib)}
    flags = pkg_config("libringtap", "--cflags", "--libs")
    for compiler, suffix in (("gcc", "c"), ("g++", "cc"), *([("clang", "c")] if shutil.which("clang") else [])):
        for source, end in ((READER, " 0\n"), (MONITOR, " 1 2368\n")):
            program = compile_(source, suffix, tmp_path, compiler, ["-pedantic", *flags])
            assert check([program], env=env).endswith(end)


def test_link_in(pkg_config, tmp_path):
    """The probe without telemetry, which the plugin needs."""
    for library in ("-lringtap-probe", "-l:libringtap-probe.a"):
        flags = pkg_config("libringtap-probe", "--cflags", "--libs")
        flags[flags.index("-lringtap-probe")] = library
        program = compile_(LINK_IN, "c", tmp_path, "gcc", flags)
        prefix = dpdk.new_prefix("link")
        proc = Proc(
            [program, *dpdk.eal_args(prefix, extra=["--no-telemetry"])], env={"LD_LIBRARY_PATH": str(pkg_config.lib)}
        )
        try:
            proc.expect(r"^started 0$")
            assert [a for a in listing() if a["name"] == prefix]
            proc.send("")
            assert proc.wait() == 0
            assert not (dpdk.RUN_DIR / prefix / "ringtap.sock").exists()
        finally:
            proc.close()
            dpdk.remove_run_dir(prefix)


def test_all_public_functions_of_the_probe_can_be_called(installation, pkg_config, tmp_path):
    """The functions of the header are those of the map, and both libraries export them."""
    for library, dpdk_loaded in (
        ("-lringtap-probe", False),
        ("-lringtap-probe", True),
        ("-l:libringtap-probe.a", True),
    ):
        header = next(installation.rglob("ringtap/probe.h")).read_text()
        names = re.findall(r"^(?:int|void) (ringtap_\w+)\(", header, re.M)
        listed = re.findall(
            r"^\t(ringtap_\w+);", (REPO / "probe" / "libringtap-probe.map").read_text().split("};")[0], re.M
        )
        assert names and sorted(names) == listed
        flags = [f for f in pkg_config("libringtap-probe", "--cflags", "--libs") if f != "-Wl,--as-needed"]
        flags[flags.index("-lringtap-probe")] = library
        functions = ", ".join(f"(void (*)(void)){name}" for name in names)
        program = compile_(
            ALL_FUNCTIONS.replace("FUNCTIONS", functions),
            "c",
            tmp_path,
            "gcc",
            ["-Wno-cast-function-type", f"-Wl,--{'no-' if dpdk_loaded else ''}as-needed", *flags],
        )
        done = run([program], env={"LD_LIBRARY_PATH": str(pkg_config.lib)})
        expected = "EINVAL" if dpdk_loaded else "ENOSYS"
        assert done.returncode == 0 and done.stdout == f"{-getattr(errno, expected)}\n", done.stderr


def test_exported_names_are_public(installation, tmp_path):
    """The probe has rte_eal_init() for LD_PRELOAD, in each version, and no linker takes it. The replacement
    of libpcap has no function of ringtap, and none that libpcap lacks; and ioctl(), see pcap/ifreq.c. No object makes stacks
    executable: each has a GNU_STACK header without the flag E. Without a header, the loader makes all stacks executable."""
    names = ["libringtap.so", "libringtap-probe.so"]
    if LTTNG_PROVIDER.exists():
        names.append(LTTNG_PROVIDER.name)

    def exported(lib):
        return {line.split()[-1] for line in check(["nm", "-D", "--defined-only", lib]).splitlines()}

    versions = [f"DPDK_{abi}" for abi in range(22, 27)]
    preloaded = {"rte_eal_init", *(f"rte_eal_init@{version}" for version in versions), *versions}
    for name in names:
        found = exported(next(installation.rglob(name)))
        foreign = {s for s in found if not s.startswith(("ringtap_", "RINGTAP", "LIBRINGTAP"))}
        assert foreign == (preloaded if name == "libringtap-probe.so" else set()), name
    (tmp_path / "main.c").write_text("int rte_eal_init(int, char **); int main(void) { return rte_eal_init(0, 0); }")
    folder = next(installation.rglob("libringtap-probe.so")).parent
    linked = run(["gcc", tmp_path / "main.c", "-o", tmp_path / "main", f"-L{folder}", "-lringtap-probe"])
    assert "undefined reference to `rte_eal_init'" in linked.stderr
    ours = exported(next(installation.rglob("libringtap-pcap.so")))
    theirs = exported(check(["sh", "-c", "ldd $(command -v tcpdump) | awk '/libpcap/{print $3}'"]).strip())
    assert len(ours) > 1 and ours <= theirs | {"ioctl"}
    objects = [path for path in installation.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert len(objects) > 8
    for path in objects:
        flags = re.findall(r"GNU_STACK .* (\S+) +0x\w+$", check(["readelf", "-lW", path]), re.M)
        assert flags == ["RW"], path


def test_dlopen_of_libpcap_finds_the_replacement_library(installation, app):
    """By the folder of the library, without preloading."""
    shim = next(installation.rglob("ringtap/libpcap.so*"))
    listed = check(["tcpdump", "-D"], env={"LD_LIBRARY_PATH": str(shim.parent)})
    assert f"ringtap:{app.prefix}:net_ring_a" in listed


def test_packages_carry_every_object_of_the_probe(installation):
    """One for each ABI that was built, in the package ringtap-probe and no other."""
    built = {path.name for path in (BUILD / "probe" / "ringtap").glob("probe-abi*.so")}
    there = set(installation.rglob("probe-abi*.so"))
    assert PROBE_OBJECT.name in built == {path.name for path in there}
    (prefix,) = {path.parents[3] for path in there}  # above lib/ARCHITECTURE/ringtap
    for path in there:
        name = str("usr" / path.relative_to(prefix))
        takers = [
            file.stem
            for file in (REPO / "debian").glob("*.install")
            if any(path_matches(name, line) for line in file.read_text().split())
        ]
        assert takers == ["ringtap-probe"]


def path_matches(name, line):
    """As dh_install: a pattern for each folder of the path; one for a folder takes all of it."""
    parts, patterns = Path(name).parts, Path(line).parts
    return len(parts) >= len(patterns) and all(map(fnmatch.fnmatch, parts, patterns))


def test_binaries_run_from_the_installation(installation):
    assert check([next(installation.rglob("bin/ringtap")), "--version"])


@pytest.fixture(scope="module")
def small_build(tmp_path_factory):
    """A separate build folder that `make` may configure again; it needs no DPDK."""
    build = tmp_path_factory.mktemp("small") / "build"
    options = ["probe=disabled", "fwd=disabled", "tests=false", "bench=false", "buildtype=plain"]
    check(["meson", "setup", build, *(f"-D{option}" for option in options)])
    return build


@pytest.mark.nightly
@pytest.mark.parametrize("prefix", ["/usr/local", "/opt/ringtap"])
@pytest.mark.slow
def test_make_install_with_any_prefix_and_uninstall(small_build, tmp_path, prefix):
    """The installed command starts without environment variables, and `make uninstall` removes
    everything."""
    root = tmp_path / "root"
    where = ["-C", REPO, f"BUILD={small_build}", f"DESTDIR={root}", f"PREFIX={prefix}"]
    check(["make", *where, "install"])
    program = root / prefix[1:] / "bin" / "ringtap"
    assert check([program, "--version"]).startswith("ringtap ")
    moved = tmp_path / "moved"
    (root / prefix[1:]).rename(moved)
    assert check([moved / "bin" / "ringtap", "run", "--", "tcpdump", "--version"])
    moved.rename(root / prefix[1:])
    check(["make", *where, "uninstall"])
    assert [path for path in root.rglob("*") if not path.is_dir() or "ringtap" in path.name] == []


@pytest.mark.nightly
@pytest.mark.slow
def test_dpdk_outside_of_the_default_folders(tmp_path):
    """ringtap-fwd uses only the DPDK that it was built with; its man page, which it prints itself,
    is made."""
    elsewhere = tmp_path / "dpdk"
    elsewhere.mkdir()
    libdir = Path(check(["pkg-config", "--variable=libdir", "libdpdk"]).strip())
    for lib in libdir.glob("librte_*.so*"):
        (elsewhere / lib.name).symlink_to(lib.resolve())
    for name in ("libdpdk.pc", "libdpdk-libs.pc"):
        pc = Path(check(["pkg-config", "--variable=pcfiledir", "libdpdk"]).strip()) / name
        (elsewhere / name).write_text(re.sub(r"(?m)^libdir=.*", f"libdir={elsewhere}", pc.read_text()))
    build = tmp_path / "build"
    check(
        ["meson", "setup", build, "-Dtests=false", "-Dbench=false", "-Dbuildtype=plain"],
        env={"PKG_CONFIG_PATH": str(elsewhere)},
    )
    check(["ninja", "-C", build, "fwd/ringtap-fwd", "fwd/ringtap-fwd.1"])
    used = re.findall(r"(librte_\S+) => (\S+)/", check(["ldd", build / "fwd" / "ringtap-fwd"]))
    assert used and {folder for _, folder in used} == {str(elsewhere)}
    assert (build / "fwd" / "ringtap-fwd.1").stat().st_size > 1000


def test_link_in_program_captures(play, record):
    app = play(linkin=True, eal=["--no-telemetry"])
    app.ring("a")
    assert app.one("probe_start") == 0
    recorder = record(app)
    app.rx(n=10)
    app.do("probe_stop")
    recorder.proc.wait()
    assert len(recorder.file().packets) == 10
    assert app.one("callbacks 0") == 0
    assert app.one("probe_start") == 0
    again = record(app)
    app.rx(n=10)
    again.finish()
    assert len(again.file().packets) == 10
