# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive`, in the environment that `make archive` makes."""

import functools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

from .paths import BUILD, REPO

# Runs each command line of standard input, a JSON list, in one process: an interpreter takes a while to start.
MANY = """
import contextlib, io, json, sys
from ringtap_archive import main
done = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        done.append((main.main(words), out.getvalue()))
print(json.dumps(done))
"""


def python():
    own = os.environ.get("RINGTAP_ARCHIVE_PYTHON") or REPO / ".venv-archive" / "bin" / "python"
    return str(own) if os.path.exists(own) else sys.executable


def environment():
    return dict(os.environ, PYTHONPATH=str(REPO / "archive"), RINGTAP_BUILD=str(BUILD))


def _in_child(words, out, err):
    """A child of a server that has imported what commands need, which takes most of a second."""
    for number, path in ((1, out), (2, err)):
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
        os.dup2(fd, number)
        os.close(fd)
    from ringtap_archive import main  # pylint: disable=import-outside-toplevel

    status = main.main(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


@functools.cache
def _server():
    """It forks; it has no threads, and no state that a command could change."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            "harness.archived",
            *(
                f"ringtap_archive.{name}"
                for name in ("main", "compact", "fetch", "hops", "ingest", "prune", "query", "report", "top", "verify")
            ),
        ]
    )
    return context


def run(*words, status=0, timeout=60):
    """One command, in a process of its own; its subprocess.CompletedProcess."""
    words = [str(word) for word in words]
    with (
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as out,
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as err,
    ):
        child = _server().Process(target=_in_child, args=(words, out.name, err.name))
        child.start()
        child.join(timeout)
        if child.exitcode is None:
            child.kill()
            child.join()
        done = subprocess.CompletedProcess(words, child.exitcode, out.read(), err.read())
    assert done.returncode == status, f"{words}: status {done.returncode}: {done.stderr}"
    return done


def many(commands):
    """Statuses of the commands, and what they have printed on standard error."""
    done, errors = outputs(commands)
    return [status for status, _out in done], errors


def outputs(commands):
    """Pairs of status and standard output of the commands; and standard error of all."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [python(), "-c", MANY], env=environment(), input=words, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr
