# SPDX-License-Identifier: BSD-3-Clause
"""Applications and ports as words: each command takes a name, a process id, and the name of a program that one
application runs; target/which_app_test.c has what words mean."""

import os
import shutil
from types import SimpleNamespace

from harness.flight import Flight
from harness.paths import BUILD, RINGTAP
from harness.proc import check, run, together
from harness.ringtap import FAILED

WHOLE = [  # commands of whole applications
    ["list", "--names"],
    ["attach"],
    ["top", "--once", "--interval", "100ms"],
    ["export", "--listen", "127.0.0.1:0", "--duration", "100ms"],
    ["doctor", "--duration", "1s"],
    ["trace", "list"],
    ["detach"],
]
PORTS = [
    ["record", "--duration", "100ms", "-w", os.devnull],
    ["latency", "--duration", "100ms"],
    ["memory", "--duration", "100ms"],
    ["drops", "--once", "--duration", "100ms"],
    ["held", "--once", "--older", "10ms", "--interval", "100ms"],
]


def program(tmp_path, length):
    """A program of its own, whose name has this length: the kernel has 15 characters of it."""
    return shutil.copy(BUILD / "e2e" / "rt_play", tmp_path / f"router{os.getpid()}".ljust(length, "x"))


def test_every_command_takes_the_program_of_one_application(play, closing, tmp_path):
    path = program(tmp_path, 15)
    app = play(program=path)
    app.ring("a")
    for i, word in enumerate((path.name, f"{path.name}:0", str(app.pid))):
        kept = closing(Flight(SimpleNamespace(prefix=word), tmp_path / str(i), "--buffer", "16M"))
        assert f"Keeping the packets of '{app.prefix}'" in kept.proc.output
        kept.finish()
    words = [path.name, str(app.pid)]
    ports = [f"{path.name}:net_ring_a", f"{app.pid}:0"]
    lines = [[*c, w] for c in PORTS for w in [*words, *ports]] + [[*c, w] for c in WHOLE for w in words]
    last = [line for line in lines if line[0] == "detach"]
    lines = [line for line in lines if line not in last]
    # Most of them wait for the end of an interval.
    done = together(lambda line: run([RINGTAP, *line]), lines) + [run([RINGTAP, *line]) for line in last]
    for line, one in zip(lines + last, done, strict=True):
        assert one.returncode == 0, (line, one.stderr)


def test_the_kernel_cuts_names_of_programs(play, tmp_path):
    path = program(tmp_path, 20)
    app = play(program=path)
    assert check([RINGTAP, "list", "--names", path.name]).split() == [app.prefix]


def test_the_program_of_two_applications_is_refused(play, tmp_path):
    path = program(tmp_path, 15)
    apps = [play(program=path), play(program=path)]
    for command in [*WHOLE, *PORTS, ["flight", "-w", tmp_path / "i"], ["flight", "top"]]:
        done = run([RINGTAP, *command, path.name])
        assert done.returncode == FAILED, command
        (line,) = done.stderr.splitlines()
        name, _, rest = line.removeprefix("ringtap: ").partition(": several applications run ")
        assert name.split()[0] == command[0] and rest.startswith(f"'{path.name}' ("), line
        assert all(f"{app.prefix} (pid {app.pid})" in rest for app in apps), line
    assert check([RINGTAP, "list", "--names", str(apps[0].pid)]).split() == [apps[0].prefix]
