# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-lab as a program, and its remains in the system."""

import os
import subprocess
import sys

from ringtap_lab.tools import scope

from .paths import BUILD, REPO
from .proc import Proc

LAB = REPO / "lab"
SAMPLE = (str(REPO / "e2e" / "apps" / "lab_sample.py"),)  # a small experiment
STOP = ["--sample-stop", "two0"]


def environment(**more):
    return {"RINGTAP_BUILD": str(BUILD), "PYTHONPATH": str(LAB), "MPLCONFIGDIR": "/tmp/ringtap-mpl", **more}


def start(*args, program=("-m", "ringtap_lab.run.cli"), cwd=None, **env):
    """Starts ringtap-lab in the background. program: the command that runs it."""
    return Proc([sys.executable, *program, *args], env=environment(**env), cwd=cwd)


def run(*args, program=("-m", "ringtap_lab.run.cli"), timeout=1200, cwd=None, wrap=(), **env):
    """CompletedProcess of ringtap-lab with text output. wrap: a command prefix."""
    return subprocess.run(
        [*map(str, wrap), sys.executable, *program, *map(str, args)],
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **environment(**env)},
    )


def messages(done):
    """Lines on standard error. Each start reports remains of killed runs that it has removed, also
    of other workers' tests."""
    return [line for line in done.stderr.splitlines() if not line.startswith("removed what a run before had left")]


def remains(pid):
    """Remains in the system of a run of this process."""
    return scope.remains(lambda name: name.startswith(f"{scope.KIND}-{pid}-"))
