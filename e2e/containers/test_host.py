# SPDX-License-Identifier: BSD-3-Clause
"""ringtap on the host, applications in containers, with run-time folders that the host does not have."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import dpdk
from harness.attach import attach, bare, detach, refused
from harness.cases import nightly
from harness.container import FIRST_ID, Container, inside, namespace_of, pid_of
from harness.paths import RINGTAP
from harness.proc import Proc, check, run, until
from harness.ringtap import FAILED, Recorder, listing

OTHER = 65534


def entry(name):
    return next((a for a in listing() if a["name"] == name), None)


def recorded(closing, name, path, count=1000):
    """Records packets of an application by its name; returns the file."""
    recorder = closing(Recorder(["-i", f"{name}:", "-c", str(count)], path))
    recorder.done()
    return recorder.file()


@pytest.mark.smoke
@pytest.mark.parametrize("users", [nightly(False), True])
def test_from_list_to_detach(users, closing, tmp_path):
    """In a user namespace, root of the host is the overflow user (65534) for the probe."""
    app = bare(closing, namespace=Container(users=users))
    pid, name = pid_of(app), app.prefix + (f"@{FIRST_ID}" if users else "")
    for kind in ["mnt", "pid", "net", *(["user"] if users else [])]:
        assert namespace_of(pid, kind) != namespace_of("self", kind)
    assert not (dpdk.RUN_DIR / app.prefix).exists()
    found = entry(name)
    assert found["dir"] == f"/proc/{pid}/root/run/dpdk/{app.prefix}" and "without the ringtap probe" in found["error"]
    assert f"(pid {pid})" in attach(name)
    found = entry(name)
    assert not found["error"] and found["host_pid"] == pid and found["pid"] == inside(pid) != pid
    assert f"pid {pid} ({inside(pid)} in its container)" in check([RINGTAP, "list", name])
    file = recorded(closing, name, tmp_path / "a.pcapng")
    assert len(file.packets) == 1000 and {i.name for i in file.interfaces} == {"net_null0"}
    assert check(["capinfos", "-Mc", tmp_path / "a.pcapng"]).split()[-1] == "1000"

    def receives():
        (top,) = json.loads(check([RINGTAP, "top", "--once", "--json", str(pid)]))["applications"]
        assert top["name"] == name
        return top["ports"][0]["rx"]["packets_per_second"] > 0

    until(receives, what="an interval in which its thread had a CPU")
    detach(name)
    until(lambda: "detached" in entry(name)["error"], what="the end of the probe's socket")
    assert app.one("unloop") > 0 and app.quit() == 0
    assert entry(name) is None


def test_same_prefix(closing, tmp_path):
    """Two containers and the host: the host's keeps its name."""
    apps = [bare(closing, namespace=Container())]
    prefix = apps[0].prefix
    assert entry(prefix)
    apps += [bare(closing, namespace=Container(), prefix=prefix)]
    pids = [int(word) for word in check(["pgrep", "-f", f"^[^ ]*/rt_play .*{prefix} "]).split()]
    names = [f"{prefix}~{pid}" for pid in pids]
    assert {a["name"] for a in listing() if a["name"].startswith(prefix)} == set(names)
    line = refused(prefix, *names, "process id")
    assert line.startswith("ringtap: attach: ")
    done = run([RINGTAP, "record", "-i", f"{prefix}:net_null0"])
    assert done.returncode == FAILED and all(name in done.stderr for name in names)
    attach(names[0])
    attach(pids[1])
    recorder = closing(Recorder(["-i", f"{pids[0]}:net_null0", "-i", names[1], "-c", "2000"], tmp_path / "b.pcapng"))
    recorder.done()
    assert {i.name for i in recorder.file().interfaces} == {f"{name}:net_null0" for name in names}
    apps += [bare(closing, prefix=prefix)]
    assert {a["name"] for a in listing() if a["name"].startswith(prefix)} == {prefix, *names}
    assert entry(prefix)["dir"] == str(dpdk.RUN_DIR / prefix)
    for app in apps:
        assert app.one("unloop") > 0 and app.quit() == 0


def connections(prefix, folder):
    """How often a listing opens the telemetry socket of an application, which it does to connect."""
    trace = folder / "trace"
    check(["strace", "-fy", "-e", "trace=openat", "-o", trace, RINGTAP, "list", "--json"])
    return len([line for line in trace.read_text().splitlines() if prefix in line and '"dpdk_telemetry' in line])


def test_paths_and_mounts_of_one_application(closing, tmp_path):
    """One application, although it is reached by two paths. Services with mounts of their own see the host's folders: the
    application is asked once, not once for each of them."""
    app = bare(closing, namespace=Container(share={dpdk.RUN_DIR: Path("/run/dpdk")}))
    (found,) = (a for a in listing() if a["name"].startswith(app.prefix))
    assert found["dir"] == str(dpdk.RUN_DIR / app.prefix)
    before = connections(app.prefix, tmp_path)
    for _ in range(4):
        closing(Proc(["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo there; read x"])).expect(
            "there"
        )
    assert connections(app.prefix, tmp_path) == before >= 1
    attach(app.prefix)
    assert len(recorded(closing, app.prefix, tmp_path / "c.pcapng").packets) == 1000
    assert app.one("unloop") > 0 and app.quit() == 0


HIDE = """
import os, socket, subprocess, sys
folder, other = sys.argv[1:]
os.makedirs(folder)
sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sock.bind(folder + "/ringtap.sock")
sock.listen()
print("bound", flush=True)
sys.stdin.readline()
subprocess.run(["mount", "--bind", other, folder], check=True)
print("mounted", flush=True)
sys.stdin.read()
"""


def test_of_another_user(closing, tmp_path, private_dir):
    """A folder that no variable of root names. Any user can make a mount namespace in which it has another path;
    that is not another application, and does not hide this one."""
    folder, false = private_dir / "dpdk", "/run/dpdk/false"
    folder.mkdir()
    other = closing(
        Proc([*Container(share={private_dir: "/shared"}).prefix, "python3", "-c", HIDE, false, "/shared/dpdk"])
    )
    other.expect("^bound$")
    os.chown(private_dir, OTHER, OTHER)
    os.chown(folder, OTHER, OTHER)
    user = [
        "setpriv",
        f"--reuid={OTHER}",
        f"--regid={OTHER}",
        "--clear-groups",
        "env",
        f"XDG_RUNTIME_DIR={private_dir}",
    ]
    app = bare(closing, namespace=SimpleNamespace(prefix=user))
    name = f"{app.prefix}@{OTHER}"
    assert other.pid < app.pid
    other.send("")
    other.expect("^mounted$")
    assert [(a["name"], a["dir"]) for a in listing() if app.prefix in a["name"] or "false" in a["dir"]] == [
        (name, str(folder / app.prefix))
    ]
    attach(name)
    assert len(recorded(closing, name, tmp_path / "d.pcapng").packets) == 1000
    assert app.one("unloop") > 0 and app.quit() == 0


READ_ONLY = ["sh", "-c", 'mount --rbind /run /run && mount -o remount,ro,bind /run && exec "$@"', "sh"]


def test_without_a_folder(closing, tmp_path):
    """EAL has no run-time folder where /run is read-only: the application is found when it has the probe."""
    for users, eal in ((False, "--in-memory"), (True, "--no-shconf")):
        assert_found_with_the_probe(users, eal, closing, tmp_path)


def assert_found_with_the_probe(users, eal, closing, tmp_path):
    huge_dir = "/dev/hugepages" if eal == "--in-memory" else None  # which is refused without huge pages
    app = bare(
        closing,
        namespace=Container(users=users, command=READ_ONLY),
        eal=[eal, "--no-telemetry"],
        huge_dir=huge_dir,
        memory_mb=64,
    )
    pid, name = pid_of(app), app.prefix + (f"@{FIRST_ID}" if users else "")
    assert entry(name) is None and not Path(f"/proc/{pid}/root/run/dpdk/{app.prefix}").exists()
    assert f"'{name}'" in attach(pid)
    found = entry(name)
    assert found["dir"] == f"/proc/{pid}/net/@ringtap.sock/{app.prefix}/{inside(pid)}" and found["host_pid"] == pid
    assert len(recorded(closing, name, tmp_path / "e.pcapng").packets) == 1000
    detach(name)
    assert entry(name) is None
    attach(pid)
    assert not entry(name)["error"]
    assert app.one("unloop") > 0 and app.quit() == 0
