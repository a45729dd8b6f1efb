# SPDX-License-Identifier: BSD-3-Clause
"""An application in a container of podman, with its default seccomp filter and without capabilities."""

from pathlib import Path

import pytest
from harness.attach import attach, bare, detach
from harness.container import inside, pid_of
from harness.podman import Podman
from harness.ringtap import Recorder, listing


@pytest.fixture
def podman(closing):
    it = closing(Podman())
    reason = it.missing()
    if reason:
        pytest.skip(reason)
    return it


def test_from_list_to_detach(podman, closing, tmp_path):
    app = bare(closing, namespace=podman)
    pid = pid_of(app)
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    assert status["Seccomp"] == "2" and not int(status["CapEff"], 16) >> 21 & 1  # CAP_SYS_ADMIN
    attach(app.prefix)
    (found,) = (a for a in listing() if a["name"] == app.prefix)
    assert not found["error"] and found["host_pid"] == pid and found["pid"] == inside(pid)
    recorder = closing(Recorder(["-i", app.prefix, "-c", "1000"], tmp_path / "a.pcapng"))
    recorder.done()
    assert len(recorder.file().packets) == 1000
    detach(app.prefix)
    assert app.one("unloop") > 0 and app.quit() == 0
