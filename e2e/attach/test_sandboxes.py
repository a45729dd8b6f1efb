# SPDX-License-Identifier: BSD-3-Clause
"""Attaches to applications that do not see the probe's files, or may not make all system calls."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import dpdk, sandbox, service
from harness.attach import attach, bare, detach, listed, mapped, refused, unchanged
from harness.paths import BUILD, PROBE_OBJECT, RINGTAP
from harness.proc import Proc, check, run, until

# ---- a file system of its own -----------------------------------------------------------------


# Without what copies of another attach may be in: of the host's only folders that DPDK needs.
OWN_RUN = " && ".join(
    [
        "mount -t tmpfs -o mode=755 none /mnt",
        *(
            f"mkdir /mnt/{folder.name} && mount --bind {folder} /mnt/{folder.name}"
            for folder in (dpdk.RUN_DIR, sandbox.ALL_DRIVERS)
        ),
        "mount -n --move /mnt /run",
    ]
)


def container(*commands, user=()):
    """A mount, PID and network namespace without the probe's files, and with a /run of its own. user: options
    of unshare for a user namespace."""
    script = " && ".join([f"mount -t tmpfs none {BUILD}/probe", OWN_RUN, *commands, 'exec "$@"'])
    return SimpleNamespace(
        prefix=[
            "unshare",
            *user,
            "--mount",
            "--pid",
            "--net",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            script,
            "sh",
        ]
    )


def pid_of(app):
    """Process id of the application, in this PID namespace."""
    return check(["pgrep", "-f", f"^{BUILD}/e2e/rt_play .*{app.prefix} "]).split()[0]


def folders_of(pid):
    return list(Path(f"/proc/{pid}/root/run").glob("ringtap-[0-9]*"))


def test_without_our_files(closing, record):
    for telemetry in (True, False):
        app = bare(closing, namespace=container(), eal=[] if telemetry else ["--no-telemetry"])
        attach(app.prefix)
        found = listed(app)
        assert not found["error"] and found["pid"] != app.pid  # in its PID namespace
        pid = pid_of(app)
        files = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if PROBE_OBJECT.name in line]
        assert files and all("/ringtap-" in line and "(deleted)" in line for line in files)
        assert not folders_of(pid)
        record(app, "-c", "1000").done()
        assert "has the probe already" in attach(pid)
        detach(app.prefix)
        attach(pid)
        record(app, "-c", "1000").done()
        assert app.one("unloop") > 0 and app.quit() == 0


def test_in_a_user_namespace(closing, record):
    """Its root has no rights outside."""
    app = bare(closing, namespace=container(user=["--user", "--map-root-user"]))
    pid = pid_of(app)
    assert os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user")
    attach(pid)
    assert not folders_of(pid)
    record(app, "-c", "1000").done()
    assert app.one("unloop") > 0 and app.quit() == 0


POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
USER_NAMESPACE = ["unshare", "--user", "--map-root-user"]


def in_user_namespace_of(app):
    return ["nsenter", "--user", "--preserve-credentials", "-t", str(app.pid)]


OTHER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def of_another_user(closing):
    """An application that finds only files in /var/tmp that it may write to; and its process id."""
    namespace = container("mount -t tmpfs -o mode=1777 none /var/tmp")
    namespace.prefix += [*OTHER, "env", "XDG_RUNTIME_DIR=/var/tmp"]
    app = bare(closing, namespace=namespace)
    return app, pid_of(app)


def with_unit_rights(drop=()):
    """Those of ringtap-flight@.service, without some of them."""
    words = service.confined(
        service.FLIGHT, also=[] if "Seccomp:\t0" in Path("/proc/self/status").read_text() else ["CAP_SYS_ADMIN"]
    )
    return [",".join(part for part in word.split(",") if part not in drop) for word in words]


def test_files_are_those_of_its_user(closing):
    """Also with the rights of the unit: as root, they would be in /run. Without rights that it needs, it is refused."""
    app, pid = of_another_user(closing)
    for right in ("+setuid", "+setgid"):
        done = run([*with_unit_rights([right]), RINGTAP, "attach", pid])
        (line,) = done.stderr.splitlines()
        assert done.returncode == 1 and "(uid 65534, gid 65534)" in line and "CAP_SETUID and CAP_SETGID" in line
        assert not mapped(SimpleNamespace(pid=pid), PROBE_OBJECT.name)
        assert not list(Path(f"/proc/{pid}/root/var/tmp").glob("ringtap-[0-9]*")) and not folders_of(pid)
    check([*with_unit_rights(), RINGTAP, "attach", pid])
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert set(re.findall(r" (/\S+)/ringtap-\d\S+ \(deleted\)", maps)) == {"/var/tmp"}
    assert app.one("unloop") > 0 and app.quit() == 0


def test_by_its_own_user(closing, record):
    """Without any capability; as root of a user namespace."""
    app = bare(closing, namespace=SimpleNamespace(prefix=POWERLESS))
    check([*POWERLESS, RINGTAP, "attach", str(app.pid)])
    record(app, "-c", "1000").done()
    assert app.one("unloop") > 0 and app.quit() == 0
    app = bare(closing, namespace=SimpleNamespace(prefix=USER_NAMESPACE))
    check([*in_user_namespace_of(app), RINGTAP, "attach", str(app.pid)])
    record(app, "-c", "1000").done()
    assert app.one("unloop") > 0 and app.quit() == 0


def test_another_attempt_without_our_files(closing, moved, record):
    """It brings the files again: those of the first one were removed."""
    app = bare(closing, namespace=container())
    probe, code = moved / "probe" / "ringtap" / PROBE_OBJECT.name, (BUILD / "probe" / "ringtap" / PROBE_OBJECT.name)
    probe.unlink()
    probe.write_bytes(b"something else" * 100)
    pid = pid_of(app)
    for _ in range(2):
        done = run([moved / "cli" / "ringtap", "attach", pid])
        assert done.returncode == 1 and "invalid ELF header" in done.stderr
    probe.unlink()
    shutil.copy(code, probe)
    check([moved / "cli" / "ringtap", "attach", pid])
    record(app, "-c", "1000").done()
    assert not folders_of(pid)
    assert app.one("unloop") > 0 and app.quit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_signal_while_files_are_there(number, closing):
    app = bare(closing, namespace=container())
    pid = pid_of(app)
    slowly = ["strace", "-D", "-o", "/dev/null", "-e", "inject=sendfile:delay_exit=200000"]
    attacher = subprocess.Popen([*slowly, RINGTAP, "attach", pid], stdout=subprocess.DEVNULL)
    until(lambda: folders_of(pid), what="the files are there")
    attacher.send_signal(number)
    attacher.wait()
    until(lambda: not folders_of(pid), what="they are removed")
    assert app.one("unloop") > 0 and app.quit() == 0


def test_files_of_a_killed_attach(closing):
    app = bare(closing, namespace=container())
    pid = pid_of(app)
    ended = Proc(["true"])
    ended.wait()
    run_folder = Path(f"/proc/{pid}/root/run")
    stale, young = (run_folder / f"ringtap-{ended.pid}-{n}" for n in (1, 2))
    for folder in (stale, young):
        (folder / "ringtap").mkdir(parents=True)
        (folder / "ringtap" / PROBE_OBJECT.name).touch()
        (folder / "libringtap-probe.so").touch()
    os.utime(stale, (0, 0))
    try:
        attach(pid)
        assert not stale.exists() and young.exists()
    finally:
        shutil.rmtree(young)
    assert app.one("unloop") > 0 and app.quit() == 0


def test_without_a_folder_for_files(closing):
    app = bare(
        closing,
        namespace=container(
            "mount -o remount,bind,noexec /run",
            *(f"mount -t tmpfs -o noexec none {folder}" for folder in ("/var/tmp", "/tmp", "/dev/shm")),
        ),
    )
    refused(app.prefix, "/run, /var/tmp, /tmp and /dev/shm", "noexec")
    assert app.one("unloop") > 0 and app.quit() == 0


def test_two_attaches_at_once_without_our_files(closing):
    """Each would bring files of its own."""
    for eal in ([], ["--no-telemetry"]):
        app = bare(closing, namespace=container(), eal=eal)
        pid = pid_of(app)
        both = [subprocess.Popen([RINGTAP, "attach", pid], stderr=subprocess.PIPE, text=True) for _ in range(4)]
        for one in both:
            _, text = one.communicate(timeout=60)
            assert one.returncode == 0, text
        for name in ("libringtap-probe.so", PROBE_OBJECT.name):
            assert (
                len(
                    {
                        line.split(maxsplit=5)[5]
                        for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
                        if name in line
                    }
                )
                == 1
            )
        assert app.one("unloop") > 0 and app.quit() == 0


# ---- seccomp ----------------------------------------------------------------------------------

FILTER = """
import ctypes, os, struct, sys
action, calls = int(sys.argv[1], 0), [int(n) for n in sys.argv[2].split(",")]
ret = lambda k: struct.pack("HBBI", 6, 0, 0, k)
code = struct.pack("HBBI", 0x20, 0, 0, 0)
for i, nr in enumerate(calls):
    code += struct.pack("HBBI", 0x15, len(calls) - i, 0, nr)
code += ret(0x7fff0000) + ret(action)
insns = ctypes.create_string_buffer(code)
prog = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(insns))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(prog), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[3], sys.argv[3:])
"""
KILL, EPERM = 0x80000000, 0x00050001
PTRACE, PROCESS_VM_READV, PIVOT_ROOT, RT_SIGRETURN, MEMBARRIER = 101, 310, 155, 15, 324


def filtered(action, *calls):
    return SimpleNamespace(prefix=[sys.executable, "-c", FILTER, str(action), ",".join(map(str, calls))])


@pytest.mark.nightly
def test_filter_that_would_end_it(closing):
    """The filter forbids a system call that the application itself never makes."""
    for call in (RT_SIGRETURN, MEMBARRIER):
        app = bare(closing, namespace=filtered(KILL, call))
        unchanged(app, "seccomp", "-d")


def test_filter_that_returns_an_error(closing, record):
    """As Docker's, of which these calls are some."""
    app = bare(closing, namespace=filtered(EPERM, PTRACE, PROCESS_VM_READV, PIVOT_ROOT))
    attach(app.prefix)
    record(app, "-c", "1000").done()
    assert app.one("unloop") > 0 and app.quit() == 0


@pytest.mark.nightly
def test_filter_that_cannot_be_read(closing):
    app = bare(closing, namespace=filtered(KILL, MEMBARRIER))
    cannot_read(app, ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"])
    # By root of a user namespace.
    app = bare(closing, namespace=SimpleNamespace(prefix=[*USER_NAMESPACE, *filtered(KILL, MEMBARRIER).prefix]))
    cannot_read(app, in_user_namespace_of(app))


def cannot_read(app, user):
    done = run([*user, RINGTAP, "attach", str(app.pid)])
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and "seccomp" in line and "CAP_SYS_ADMIN" in line
    assert not mapped(app, "libringtap-probe.so")
    assert app.one("unloop") > 0 and app.quit() == 0
