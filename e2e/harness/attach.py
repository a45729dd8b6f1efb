# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap attach` and its effects."""

from pathlib import Path

from .paths import RINGTAP
from .play import Play
from .proc import check, run
from .ringtap import listing


def attach(app, *args):
    """Attaches by name or process id; returns what it prints."""
    return check([RINGTAP, "attach", *args, str(app)])


def killed_at(call):
    """Prefix of a command that is killed when it makes this call of ptrace(), counted from 1."""
    return [
        "strace",
        "-fqqq",
        "-o",
        "/dev/null",
        "-e",
        "trace=ptrace",
        "-e",
        f"inject=ptrace:signal=SIGKILL:when={call}",
    ]


def detach(app):
    return check([RINGTAP, "detach", str(app)])


def refused(app, *words):
    """It fails with one line that has these words, which is returned."""
    done = run([RINGTAP, "attach", str(app)])
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and all(word in line for word in words), line
    return line


def listed(app):
    """The application in `ringtap list`."""
    return next(a for a in listing() if a["name"] == app.prefix)


def has_probe(app):
    return not listed(app)["error"]


def mapped(app, name=None):
    """Paths of mapped files, with this name."""
    lines = Path(f"/proc/{app.pid}/maps").read_text().splitlines()
    return {line.split(maxsplit=5)[5] for line in lines if "/" in line and name in (None, line.rsplit("/", 1)[-1])}


def bare(closing, program="rt_play", **kwargs):
    """An application without the probe that receives."""
    app = closing(Play(None, program=program, **kwargs))
    app.plug("net_null0")
    app.do("loop 0 0")
    return app


def unchanged(app, *words):
    """It is refused, as above, and goes on without the probe."""
    before = mapped(app)
    line = refused(app.pid, *words)
    assert mapped(app) == before
    assert app.one("unloop") > 0 and app.quit() == 0
    return line
