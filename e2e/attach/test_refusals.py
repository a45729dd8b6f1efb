# SPDX-License-Identifier: BSD-3-Clause
"""Refusals as the command line prints them, and --attach of commands that other tests leave out."""

import json
import re
import shutil
import sys
from types import SimpleNamespace

import pytest
from harness.attach import bare, mapped
from harness.documents import only
from harness.paths import BUILD, RINGTAP
from harness.proc import Proc, check, run, until
from harness.prometheus import Exporter, get

SCOPE = (
    'mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && '
    'echo "$0" >/proc/sys/kernel/yama/ptrace_scope && exec "$@"'
)
NOT_TRACED = ["strace", "-D", "-f", "-o", "/dev/null", "-e", "inject=ptrace:error=EPERM"]


FORBIDDEN = [
    (
        0,
        "not permitted; run ringtap as root with CAP_SYS_PTRACE, outside of containers, or check the security policy "
        "(SELinux, AppArmor)",
    ),
    (1, "the kernel forbids tracing (kernel.yama.ptrace_scope is 1); give root CAP_SYS_PTRACE, which it lacks here"),
    (
        3,
        "the kernel forbids tracing (kernel.yama.ptrace_scope is 3); restart the process with -d, as only a reboot "
        "changes that",
    ),
]


def test_kernel_that_forbids_tracing(closing):
    """The setting is a file instead of the kernel's, and ptrace() fails as it does then."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    app = bare(closing)
    before = mapped(app)
    for scope, text in FORBIDDEN:
        done = run(["unshare", "--mount", "sh", "-c", SCOPE, str(scope), *NOT_TRACED, RINGTAP, "attach", str(app.pid)])
        assert done.returncode == 1
        assert done.stderr == f"ringtap: attach: cannot load the probe into '{app.prefix}' (pid {app.pid}): {text}\n"
        assert mapped(app) == before
    assert app.one("unloop") > 0 and app.quit() == 0


def test_no_thread_that_sleeps(closing):
    """No telemetry, and an interrupt thread that is busy with an alarm."""
    app = bare(closing, eal=["--no-telemetry"])
    before = mapped(app)
    app.do("alarm 1")
    done = run([RINGTAP, "attach", str(app.pid)])
    assert done.returncode == 1 and mapped(app) == before
    assert done.stderr == (
        f"ringtap: attach: cannot load the probe into '{app.prefix}' (pid {app.pid}): it has no thread that can be "
        "interrupted: neither DPDK's telemetry thread nor its interrupt thread sleeps; try again, or start it with -d\n"
    )
    app.do("alarm 0")
    check([RINGTAP, "attach", str(app.pid)])
    assert app.one("unloop") > 0 and app.quit() == 0


HOSTILE = r"""
struct { unsigned version; int status, started; unsigned starts; long handle; char text[488]; } ringtap_probe_loaded = {
	3, -1, 1, 0, 0, "\033]0;owned\a\nroot: ok"};
int ringtap_probe_load(const char *probe, int start) { return -1; }
"""


def test_what_the_process_says_is_printed_without_control_characters(closing, tmp_path):
    """A file of the probe's name, with a reason that sets a terminal's title and begins a line of its own."""
    file, source = tmp_path / "libringtap-probe.so", tmp_path / "hostile.c"
    source.write_text(HOSTILE)
    check(["gcc", "-shared", "-fPIC", "-x", "c", "-o", file, source])
    app = bare(closing, namespace=SimpleNamespace(prefix=["env", f"LD_PRELOAD={file}"]))
    done = run([RINGTAP, "attach", str(app.pid)])
    assert done.returncode == 1
    assert done.stderr == (
        f"ringtap: attach: cannot load the probe into '{app.prefix}' (pid {app.pid}): "
        "the probe cannot be loaded: ?]0;owned? root: ok\n"
    )
    assert app.one("unloop") > 0 and app.quit() == 0


BOTH = """
import ctypes, sys
for path in sys.argv[1:3]:
    ctypes.CDLL(path)
print("loaded", flush=True)
input()
ctypes.CDLL(sys.argv[3])
print("done", flush=True)
input()
"""


def test_two_plugins_that_contain_a_dpdk_each(closing, plugin, tmp_path):
    """Refused before anything is loaded, and by the library itself: both name the two files."""
    one, two = BUILD / "e2e" / "rt_play_plugin.so", tmp_path / "other.so"
    if not one.exists():
        pytest.skip("built without DPDK's static libraries")
    shutil.copy(one, two)
    proc = closing(Proc([sys.executable, "-c", BOTH, one, two, plugin]))
    proc.expect("^loaded$")
    done = run([RINGTAP, "attach", str(proc.pid)])
    assert done.returncode == 1 and re.search(
        r"(rt_play_plugin|other)\.so and (rt_play_plugin|other)\.so contain a DPDK each", done.stderr
    )
    assert not mapped(proc, "libringtap-probe.so")
    proc.send("")
    proc.expect(
        "cannot load the probe: rt_play_plugin.so and other.so contain a DPDK each; the application runs without it"
    )
    proc.expect("^done$")
    proc.send("")
    assert proc.wait() == 0


def test_export_and_trace_attach(closing):
    """Metrics are those of packets that are received."""
    app = bare(closing)
    exporter = closing(Exporter(app, args=("--attach",)))
    assert mapped(app, "libringtap-probe.so")
    until(lambda: exporter.value("ringtap_port_rx_packets_total", port="net_null0"), what="packets")
    assert get(exporter.url)[0] == 200
    assert app.one("unloop") > 0 and app.quit() == 0
    app = bare(closing)
    name = app.prefix
    done = run([RINGTAP, "trace", "list", name])
    assert done.returncode == 1 and "ringtap attach" in done.stderr and not mapped(app, "libringtap-probe.so")
    listed = only(json.loads(check([RINGTAP, "trace", "list", "--attach", "--json", name])))
    assert listed["pid"] == app.pid and mapped(app, "libringtap-probe.so")
    assert app.one("unloop") > 0 and app.quit() == 0
