# SPDX-License-Identifier: BSD-3-Clause
"""A terminal: tmux, with a separate server."""

import re
import shlex
import shutil
import tempfile
from pathlib import Path

from .proc import check, run, until


class Terminal:
    """Runs argv in a window of the given size."""

    def __init__(self, argv, columns=80, lines=24, env=()):
        self.dir = Path(tempfile.mkdtemp(prefix="ringtap-tmux-"))
        command = ["env", *(f"{k}={v}" for k, v in dict(env).items()), *map(str, argv)]
        self.status = self.dir / "status"
        shell = f"{shlex.join(command)}; echo $? >{self.status}"
        try:
            # Without the configuration of the user.
            check([*self._tmux, "-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines, shell])
        except BaseException:
            self.close()
            raise

    @property
    def _tmux(self):
        return ["tmux", "-S", self.dir / "sock"]

    def keys(self, *keys):
        check([*self._tmux, "send-keys", *keys])

    def resize(self, columns, lines):
        check([*self._tmux, "resize-window", "-x", columns, "-y", lines])

    def screen(self, styles=False):
        """The lines on the screen; with styles, their colours' escape sequences, too."""
        done = run([*self._tmux, "capture-pane", "-p", *(["-e"] if styles else [])])
        return done.stdout.splitlines()

    def shows(self, pattern):
        """Waits until a line matches; returns the screen."""
        regex = re.compile(pattern)

        def seen():
            lines = self.screen()
            return lines if any(regex.search(line) for line in lines) else None

        try:
            return until(seen, what=pattern)
        except AssertionError as e:
            raise AssertionError(f"{e}\n" + "\n".join(self.screen())) from None

    def pid(self):
        """Process id of the shell that runs it."""
        return int(check([*self._tmux, "list-panes", "-F", "#{pane_pid}"]))

    def ended(self):
        """Waits for the program's end; its exit status."""
        until(lambda: self.status.exists() and self.status.read_text().strip(), what="its end")
        return int(self.status.read_text())

    def kill(self):
        """Closes the terminal while its program runs."""
        run([*self._tmux, "kill-server"])

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def missing():
    return None if shutil.which("tmux") else "tmux is not installed"
