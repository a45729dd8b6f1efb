# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive`, in the environment that `make archive` makes."""
import json
import os
import subprocess
import sys

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


def run(*words, status=0, **options):
    """One command; its subprocess.CompletedProcess."""
    done = subprocess.run([python(), "-m", "ringtap_archive.main", *map(str, words)], env=environment(), capture_output=True,
                          **{"text": True, "timeout": 60, **options})
    assert done.returncode == status, f"{words}: status {done.returncode}: {done.stderr}"
    return done


def many(commands):
    """Statuses of the commands, and what they have printed on standard error."""
    done, errors = outputs(commands)
    return [status for status, _out in done], errors


def outputs(commands):
    """Pairs of status and standard output of the commands; and standard error of all."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run([python(), "-c", MANY], env=environment(), input=words, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr
