# SPDX-License-Identifier: BSD-3-Clause
"""The probe gets into running applications, which go on as if nothing had happened."""

import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import dpdk, pcap, sandbox
from harness.attach import attach, bare, detach, has_probe, killed_at, listed, mapped, refused, unchanged
from harness.cases import nightly
from harness.paths import BUILD, PROBE_OBJECT, RINGTAP
from harness.proc import Proc, check, freeze, of_tasks, run, until
from harness.testpmd import Testpmd

KILLS = 20


@pytest.fixture
def forwarding(closing):
    """A testpmd without the probe that forwards."""
    app = closing(Testpmd(["net_null0", "net_null1"]))
    app.start()
    return app


# ---- running applications --------------------------------------------------------------------


@pytest.mark.smoke
def test_running_testpmd(forwarding, record):
    app = forwarding
    assert not has_probe(app)
    text = attach(app.prefix)
    assert app.prefix in text
    # Its worker polls; the threads that sleep are not named.
    (line,) = text.split("off its CPU meanwhile, for at most:\n")[1].splitlines()
    assert re.fullmatch(r" +[\d.]+ (ns|us|ms|s)  thread rte-worker-1 \(\d+\)", line)
    found = listed(app)
    assert found["pid"] == app.pid and len(found["ports"]) == 2
    recorder = record(app, "-c", "1000")
    recorder.done()
    assert len(recorder.file().packets) >= 1000

    def receives():
        (top,) = json.loads(check([RINGTAP, "top", "--once", "--json", app.prefix]))["applications"]
        return any(port["rx"]["packets_per_second"] > 0 for port in top["ports"])

    until(receives, what="an interval in which its thread had a CPU")
    stats = app.stop()
    assert stats[0][0] > 0 and app.quit() == 0


def test_shared_and_static(closing, record):
    for program in ("rt_play", "rt_play_static", "rt_play_static_no_bpf", "rt_play_plugin"):
        if not (BUILD / "e2e" / program).exists():
            pytest.skip("built without DPDK's static libraries")
        app = bare(closing, program)
        attach(app.pid)
        assert mapped(app, PROBE_OBJECT.name)
        assert [p["name"] for p in listed(app)["ports"]] == ["net_null0"]
        record(app, "-c", "1000").done()
        assert app.one("unloop") > 0 and app.quit() == 0


def test_without_telemetry(closing, record):
    for program in ("rt_play", "rt_play_static"):
        app = bare(closing, program, eal=["--no-telemetry"])
        attach(app.prefix)
        assert listed(app)["pid"] == app.pid
        record(app, "-c", "1000").done()
        # Awake until it is detached.
        detach(app.prefix)
        assert not has_probe(app)
        attach(app.prefix)
        record(app, "-c", "1000").done()
        assert app.one("unloop") > 0 and app.quit() == 0


def test_two_attaches_at_once(closing):
    for _ in range(2):
        app = bare(closing)
        both = [
            subprocess.Popen([RINGTAP, "attach", str(app.pid)], stderr=subprocess.PIPE, text=True) for _ in range(4)
        ]
        for one in both:
            _, text = one.communicate(timeout=60)
            assert one.returncode == 0, text
        assert len(mapped(app, "libringtap-probe.so")) == 1
        assert has_probe(app)
        assert app.one("unloop") > 0 and app.quit() == 0


def test_detach_and_attach(closing, record, app):
    """Detaching is not limited to attached probes. At the exit of an application that is recorded, the bus that is registered late
    is cleaned up first, as with -d."""
    detach(app.prefix)
    assert listed(app)["error"]
    attach(app.prefix)
    assert not listed(app)["error"]
    app = bare(closing)
    attach(app.prefix)
    maps = Path(f"/proc/{app.pid}/maps").read_text()
    assert "has the probe already" in attach(app.prefix)
    assert Path(f"/proc/{app.pid}/maps").read_text().count("ringtap") == maps.count("ringtap")
    recorder = record(app)
    detach(app.prefix)
    assert recorder.done().count("packets")
    found = listed(app)
    assert found["error"] and "ringtap attach" in found["error"]
    done = run([RINGTAP, "record", "-i", f"{app.prefix}:", "-c", "1"])
    assert done.returncode == 1 and "ringtap attach" in done.stderr
    threads = len(os.listdir(f"/proc/{app.pid}/task"))
    attach(app.prefix)
    record(app, "-c", "1000").done()
    detach(app.prefix)
    until(lambda: len(os.listdir(f"/proc/{app.pid}/task")) <= threads, what="the control thread has ended")
    assert "no probe that is awake" in detach(app.prefix)
    attach(app.prefix)
    recorder = record(app)
    app.do("unloop")
    assert app.quit() == 0
    recorder.done()


def test_telemetry_goes_on(closing):
    """Its commands are registered while clients are served."""
    app = bare(closing)
    attached, stop = threading.Event(), threading.Event()
    faults, asked_after = [], [0, 0, 0]

    def ask(client):
        try:
            while not stop.is_set():
                after = attached.is_set()
                assert dpdk.telemetry(app.prefix, "/ethdev/list")["/ethdev/list"] == [0]
                dpdk.telemetry(app.prefix, "/")
                asked_after[client] += after
        except Exception as fault:  # pylint: disable=broad-exception-caught
            faults.append(fault)

    clients = [threading.Thread(target=ask, args=(client,)) for client in range(len(asked_after))]
    for client in clients:
        client.start()
    try:
        attach(app.prefix)
        attached.set()
        until(lambda: faults or all(asked_after), what="each client asked after the attach, too")
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert not faults
    assert "/ringtap/attach" in dpdk.telemetry(app.prefix, "/")["/"]
    assert app.one("unloop") > 0 and app.quit() == 0


@pytest.mark.nightly
def test_dpdks_tracing_is_on(closing, tmp_path):
    """EAL has described its events by then: a trace stays readable, as the probe adds none."""
    app = bare(closing, eal=["--trace=lib.eal.*", f"--trace-dir={tmp_path}"])
    attach(app.prefix)
    answer = dpdk.telemetry(app.prefix, "/ringtap/trace,on")["/ringtap/trace"]
    assert answer["status"] != 0 and "-d" in answer["error"] and answer["points_on"] == 0
    assert dpdk.telemetry(app.prefix, "/ringtap/trace,save")["/ringtap/trace"]["status"] == 0
    assert app.one("unloop") > 0 and app.quit() == 0
    (folder,) = {path.parent for path in tmp_path.rglob("metadata")}
    assert "ringtap" not in (folder / "metadata").read_text()
    if shutil.which("babeltrace2"):
        assert "lib.eal" in check(["babeltrace2", folder])


def has_interrupt_thread(pid):
    return any(name.strip() in ("eal-intr-thread", "dpdk-intr") for name in of_tasks(pid, "comm").values())


def opened_by_both(fifo):
    """A descriptor to write to the reader of a FIFO. None: it has no reader."""
    with contextlib.suppress(OSError):
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    return None


@pytest.mark.parametrize("eal", [nightly([]), ["--no-telemetry"]])
def test_while_dpdk_is_initialised(eal, closing, tmp_path):
    """EAL waits for the file of a driver: its interrupt thread exists, telemetry and the list of ports do not. The attach waits
    for those."""
    fifo = tmp_path / "packets.pcap"
    os.mkfifo(fifo)
    prefix = dpdk.new_prefix("early")
    vdevs = [f"net_pcap0,rx_pcap={fifo},tx_pcap=/dev/null"]
    proc = closing(Proc([BUILD / "e2e" / "rt_play", *dpdk.eal_args(prefix, None, vdevs, "0,1", 256, eal)]))
    app = SimpleNamespace(prefix=prefix, pid=proc.pid)
    writer = until(lambda: opened_by_both(fifo), what="EAL opens the file")
    assert has_interrupt_thread(proc.pid)
    attacher = closing(Proc([RINGTAP, "attach", app.pid]))
    assert not attacher.ends_within(1) and "ready" not in proc.output
    with open(writer, "wb") as file:
        file.write(pcap.write(tmp_path / "empty.pcap", []).read_bytes())
    assert attacher.wait() == 0, attacher.output
    assert has_probe(app)
    proc.expect("^ready$")
    if not eal:
        answer = dpdk.telemetry(prefix, "/ringtap/trace,on")["/ringtap/trace"]
        assert answer["status"] != 0 and answer["points_on"] == 0
    proc.send("quit")
    assert proc.wait() == 0


# ---- killed attaches --------------------------------------------------------------------------


def killed_before_it_is_loaded(app, most):
    """Kills attaches, at most N, each one call of ptrace() later than the one before, until one of them has begun to load
    the probe: later ones have nothing to do. Returns how many."""
    kills = 0
    while kills < most and not mapped(app, "libringtap-probe.so"):
        kills += 1
        run([*killed_at(kills), RINGTAP, "attach", str(app.pid)])
        assert app.proc.alive()
    return kills


def test_killed_attaches(closing):
    kills = 0
    while kills < KILLS:
        app = bare(closing)
        kills += killed_before_it_is_loaded(app, KILLS - kills)
        attach(app.pid)
        assert has_probe(app)
        assert app.one("unloop") > 0 and app.quit() == 0


def test_killed_attach_while_forwarding(forwarding, record):
    app = forwarding
    killed_before_it_is_loaded(app, KILLS)
    attach(app.pid)
    record(app, "-c", "1000").done()
    before = app.stats(0)["RX-packets"]
    until(lambda: app.stats(0)["RX-packets"] > before, what="it goes on forwarding")
    assert app.quit() == 0


def slow_load(hold):
    """An application whose dynamic loader stops between mapping and relocating the probe while this file
    exists."""
    hold.touch()
    return SimpleNamespace(
        prefix=[
            "env",
            "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536",
            f"LD_AUDIT={BUILD}/e2e/librt_slow_load.so",
            f"RT_SLOW_LOAD={hold}",
        ]
    )


def attach_unseen(pid):
    """Attaches without a request to the telemetry, whose thread is busy. Returns the process."""
    return subprocess.Popen(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            'mount -t tmpfs none /var/run/dpdk && exec "$@"',
            "sh",
            RINGTAP,
            "attach",
            str(pid),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )


def waits(attacher):
    with pytest.raises(subprocess.TimeoutExpired):
        attacher.wait(1)


def test_killed_attach_whose_library_is_not_relocated(closing, tmp_path):
    """The next one waits before it calls a function of the library."""
    hold = tmp_path / "hold"
    app = bare(closing, namespace=slow_load(hold))
    first = attach_unseen(app.pid)
    until(lambda: mapped(app, "libringtap-probe.so"), what="the probe is mapped")
    first.kill()
    first.wait()
    second = attach_unseen(app.pid)
    waits(second)
    hold.unlink()
    _, text = second.communicate(timeout=60)
    assert second.returncode == 0, text
    assert has_probe(app)
    assert app.one("unloop") > 0 and app.quit() == 0


# ---- refusals ---------------------------------------------------------------------------------


def test_no_such_application(closing):
    refused("no-such-app", "no application is called 'no-such-app'")
    ended = Proc(["true"])
    ended.wait()
    refused(ended.pid, "no such process")
    proc = closing(Proc(["sleep", "1000"]))
    refused(proc.pid, "no DPDK")
    assert proc.alive()


@pytest.mark.smoke
def test_static_applications_that_are_refused(closing, tmp_path):
    """One that exports nothing; of another DPDK, without telemetry, by the name of the folder of drivers that EAL has in it."""
    if not (BUILD / "e2e" / "rt_play_static_hidden").exists():
        pytest.skip("built without DPDK's static libraries")
    unchanged(bare(closing, "rt_play_static_hidden"), "exports no symbols", "-Wl,--export-dynamic")
    for abi, words in (
        (b"21", ["older than 21.11"]),
        (b"98", ["no probe for its DPDK 97.11 (ABI 98)", "build ringtap"]),
    ):
        program = tmp_path / "rt_play_static"
        if not (BUILD / "e2e" / program.name).exists():
            pytest.skip("built without DPDK's static libraries")
        code, count = re.subn(rb"(dpdk/pmds-)\d\d(?=\.)", rb"\g<1>" + abi, (BUILD / "e2e" / program.name).read_bytes())
        assert count
        program.unlink(missing_ok=True)
        program.write_bytes(code)
        program.chmod(0o755)
        unchanged(bare(closing, program, eal=["--no-telemetry"]), *words)


# As a program that loads a plugin with a DPDK, and then the system's, each for itself alone.
TWO = """
import ctypes, os, sys
plugin, eal = ctypes.CDLL(sys.argv[2], os.RTLD_LAZY), ctypes.CDLL(sys.argv[1], os.RTLD_LAZY)
args = [a.encode() for a in sys.argv[2:]]
sys.exit(plugin.main(len(args), (ctypes.c_char_p * len(args))(*args)))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("telemetry", [(), ("--no-telemetry",)], ids=["telemetry", "no telemetry"])
def test_two_dpdks_in_one_process(telemetry, closing):
    """The probe would serve one of them: both are named, and nothing of it stays."""
    plugin = "rt_play_plugin.so"
    if not (BUILD / "e2e" / plugin).exists():
        pytest.skip("built without DPDK's static libraries")
    libraries = check(["ldd", BUILD / "e2e" / "rt_play"]).splitlines()
    (eal,) = (line.split()[2] for line in libraries if "librte_eal.so" in line)
    two = SimpleNamespace(prefix=[sys.executable, "-c", TWO, eal])
    app = bare(closing, plugin, namespace=two, eal=telemetry)
    unchanged(app, plugin, Path(eal).name, "contain a DPDK each")


def test_processes_that_cannot_be_traced(closing):
    """A process of another user, one that a debugger traces, and one that is stopped."""
    app = bare(closing)
    done = run(
        [
            "setpriv",
            "--reuid",
            "65534",
            "--clear-groups",
            "--bounding-set=-all",
            "--inh-caps=-all",
            sandbox.public(RINGTAP),
            "attach",
            str(app.pid),
        ]
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and "belongs to user 0" in line and "as root" in line
    tracer = closing(Proc(["strace", "-f", "-o", "/dev/null", "-p", str(app.pid)]))
    tracer.expect("attached")
    unchanged_line = refused(app.pid, "traces it")
    assert str(tracer.pid) in unchanged_line
    tracer.stop(signal.SIGINT)
    freeze(app.pid)
    try:
        refused(app.pid, "stopped")
    finally:
        os.kill(app.pid, signal.SIGCONT)
    assert app.one("unloop") > 0 and app.quit() == 0


MAPS = """
import mmap, sys
files = [open(path) for path in sys.argv[1:]]
maps = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]
print("mapped", flush=True)
sys.stdin.read()
"""


def test_processes_that_cannot_have_the_probe(closing, tmp_path):
    """A process that maps files of these names, for programs that cannot run here: a 32-bit program that calls pause() in a loop."""
    for names, words in (
        (["librte_eal.so.21.0"], ["older than 21.11"]),
        (["librte_eal.so.99.0"], ["no probe for its DPDK 98.11 (ABI 99)", "build ringtap"]),
        (["librte_eal.so.23.0", "ld-musl-x86_64.so.1"], ["musl"]),
    ):
        for name in names:
            (tmp_path / name).write_bytes(bytes(4096))
        proc = closing(Proc([sys.executable, "-c", MAPS, *(tmp_path / name for name in names)]))
        proc.expect("^mapped$")
        refused(proc.pid, *words)
        assert proc.alive()
    code = bytes.fromhex("b81d000000cd80ebf7")
    head = (
        b"\x7fELF"
        + bytes([1, 1, 1])
        + bytes(9)
        + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    )
    segment = struct.pack("<IIIIIIII", 1, 0, 0x8048000, 0x8048000, 84 + len(code), 84 + len(code), 5, 4096)
    program = tmp_path / "pause32"
    program.write_bytes(head + segment + code)
    program.chmod(0o755)
    try:
        proc = closing(Proc([program]))
    except OSError as error:
        pytest.skip(f"the kernel runs no 32-bit programs: {error}")
    refused(proc.pid, "32-bit")
    assert proc.alive()


# ---- the probe's files ------------------------------------------------------------------------


def refused_by(ringtap, app, *words):
    done = run([ringtap, "attach", str(app.pid)])
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and all(word in line for word in words), line


def test_missing_files(closing, moved):
    app = bare(closing)
    (moved / "probe" / "ringtap" / PROBE_OBJECT.name).unlink()
    refused_by(moved / "cli" / "ringtap", app, "no probe for its DPDK 22.11 (ABI 23)", "build ringtap")
    (moved / "probe" / "libringtap-probe.so").write_bytes(b"\x7fELF" + bytes(1000))
    refused_by(moved / "cli" / "ringtap", app, "missing or damaged")
    assert not mapped(app, "libringtap-probe.so")
    assert app.one("unloop") > 0 and app.quit() == 0


def test_object_that_cannot_be_loaded(closing, moved):
    """The reason is reported, nothing stays mapped, and a repaired one is loaded later."""
    for how in ("damaged", "constructor"):
        app = bare(closing)
        before = mapped(app)
        probe = moved / "probe" / "ringtap" / PROBE_OBJECT.name
        code = probe.read_bytes()
        probe.unlink()
        if how == "damaged":
            probe.write_bytes(b"something else" * 100)
        else:
            probe.write_bytes(code.replace(b"\0rte_eth_add_tx_callback\0", b"\0rte_eth_add_xx_callback\0"))
        refused_by(
            moved / "cli" / "ringtap",
            app,
            str(probe),
            "invalid ELF header" if how == "damaged" else "undefined symbol: rte_eth_add_xx_callback",
        )
        assert "ringtap:" not in app.proc.output and not has_probe_now(app)
        assert mapped(app) == before
        probe.unlink()
        probe.write_bytes(code)
        check([moved / "cli" / "ringtap", "attach", app.prefix])
        assert has_probe_now(app)
        assert app.one("unloop") > 0 and app.quit() == 0


def test_failure_with_a_standard_error(closing, moved, tmp_path):
    """As that of `app 2>&1 | tee` whose tee has ended, or is stopped: an attach prints nothing there."""
    for pipe in ("ended", "full"):
        fifo = tmp_path / pipe
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        app = bare(closing, namespace=SimpleNamespace(prefix=["sh", "-c", f'exec 2>{fifo} "$@"', "sh"]))
        if pipe == "ended":
            os.close(reader)
        else:
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            for size in (4096, 1):  # a write up to PIPE_BUF is done as a whole or not at all
                with pytest.raises(BlockingIOError):
                    while True:
                        os.write(writer, bytes(size))
        (moved / "probe" / "ringtap" / PROBE_OBJECT.name).write_bytes(b"something else" * 100)
        refused_by(moved / "cli" / "ringtap", app, "invalid ELF header")
        assert app.one("unloop") > 0 and app.quit() == 0


def has_probe_now(app):
    return "/ringtap/attach" in dpdk.telemetry(app.prefix, "/")["/"]


# ---- other commands ---------------------------------------------------------------------------


COMMANDS = [
    ["record", "-c", "100", "-w", "/dev/null", "-i"],
    ["top", "--once"],
    ["latency", "--duration", "0.1s"],
    ["memory", "--duration", "0.1s"],
    ["doctor", "--duration", "1s"],
]


def test_commands_attach(closing):
    """By the name of the application, and by its process id."""
    for number, command in enumerate(COMMANDS):
        by = ("prefix", "pid")[number % 2]
        app = bare(closing)
        name = str(getattr(app, by))
        done = run([RINGTAP, *command, name])
        assert done.returncode == 1 and not mapped(app, "libringtap-probe.so"), done.stderr
        done = run([RINGTAP, command[0], "--attach", *command[1:], name])
        assert done.returncode in (0, 4) and mapped(app, "libringtap-probe.so"), done.stderr
        assert app.one("unloop") > 0 and app.quit() == 0


def only(folder, *apps):
    """A mount namespace that shows the runtime folders of these applications and no others."""
    script = ""
    for app in apps:
        (folder / app.prefix).mkdir()
        script += f"mount --bind /var/run/dpdk/{app.prefix} {folder / app.prefix} && "
    return ["unshare", "--mount", "sh", "-c", f'{script} mount --rbind {folder} /var/run/dpdk && exec "$@"', "sh"]


def test_all_applications(closing, tmp_path):
    """One that refuses does not keep the others out."""
    if not (BUILD / "e2e" / "rt_play_static_hidden").exists():
        pytest.skip("built without DPDK's static libraries")
    refusing, app = bare(closing, "rt_play_static_hidden"), bare(closing)
    done = run([*only(tmp_path, refusing, app), RINGTAP, "top", "--once", "--attach"])
    assert done.returncode == 0 and refusing.prefix in done.stderr and "exports no symbols" in done.stderr
    assert "net_null0" in done.stdout and has_probe(app)
    assert not mapped(refusing, "libringtap-probe.so")


def test_question_at_a_terminal(closing, tmp_path):
    """A recorder that waits for an application also asks once."""
    for answer, loaded in (("n", False), ("", False), ("y", True)):
        app = bare(closing)
        proc = closing(Proc([RINGTAP, "latency", "--duration", "0.1s", app.prefix], tty=True))
        proc.expect(r"runs without the probe. Load it now\? \[y/N\]")
        proc.send(answer)
        assert proc.wait() == (0 if loaded else 1)
        assert bool(mapped(app, "libringtap-probe.so")) == loaded
        assert app.one("unloop") > 0 and app.quit() == 0
    app = bare(closing)
    recorder = closing(Proc([RINGTAP, "flight", "--wait", "-w", tmp_path / "i", app.prefix], tty=True))
    recorder.expect(r"runs without the probe. Load it now\? \[y/N\] ")
    recorder.send("n")
    assert recorder.wait() == 1 and recorder.output.count("[y/N]") == 1
    assert app.one("unloop") > 0 and app.quit() == 0


def test_process_without_telemetry_is_listed_and_its_program_is_a_target(closing, tmp_path):
    program = Path(shutil.copy(BUILD / "e2e" / "rt_play", tmp_path / f"router{os.getpid()}"))
    app = bare(closing, program, eal=["--no-telemetry", "--no-shconf"])
    text = f"{program.name}  (pid {app.pid})\n  no probe, no telemetry; 'ringtap attach {app.pid}' loads the probe\n"
    assert check([RINGTAP, "list", program.name]) == text
    attach(program.name)
    assert f"pid {app.pid}" in check([RINGTAP, "list", str(app.pid)])
    assert app.one("unloop") > 0 and app.quit() == 0
    app = bare(closing, program, eal=["--no-telemetry"])  # which has a runtime folder
    assert check([RINGTAP, "list", app.prefix]).endswith(f"without the probe; 'ringtap attach {app.prefix}' loads it\n")
    attach(program.name)
    assert has_probe(app)
    assert app.one("unloop") > 0 and app.quit() == 0
