# SPDX-License-Identifier: BSD-3-Clause
"""The systemd unit of `ringtap export`."""
import re
import shutil

import pytest

from harness import service
from harness.paths import RINGTAP
from harness.proc import check, run, until
from harness.prometheus import Exporter

EXPOSURE = 2.5  # of 10; 0 is no exposure at all


@pytest.fixture
def unit(tmp_path):
    """The unit with the command of the build."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    path = tmp_path / service.UNIT.name
    installed = service.setting("ExecStart").split()[0]
    path.write_text(service.UNIT.read_text().replace(installed, str(RINGTAP)))
    return path


def test_systemd_accepts_the_unit(unit):
    done = run(["systemd-analyze", "verify", "--man=no", unit])
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_exposure_is_small(unit):
    check(["systemd-analyze", "security", "--offline=yes", f"--threshold={int(EXPOSURE * 10)}", unit])


def test_metrics_with_the_rights_of_the_unit(app, closing):
    """An application of root; test_other_users.py has one of another user."""
    exporter = closing(Exporter(app, prefix=service.confined()))
    app.rx(n=10)
    assert exporter.value("ringtap_queue_packets_total", direction="rx", port="net_ring_a") == 10


def test_system_calls_sockets_and_memory_are_those_that_the_unit_allows(app, unit, closing, tmp_path):
    """All calls of the program, with a scrape and the end by a signal."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    log = tmp_path / "strace"
    exporter = closing(Exporter(app, prefix=["strace", "-D", "-f", "-o", log]))  # -D: the child's pid is that of the program
    assert exporter.up(app) == 1
    exporter.proc.stop()
    until(lambda: log.read_text().endswith("+++ exited with 0 +++\n"), what="all of the log")
    text = log.read_text()
    used = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)", text, re.M))
    assert len(used) > 30
    assert used <= service.allowed_calls()
    assert set(re.findall(r" socket\((\w+)", text)) <= set(service.setting("RestrictAddressFamilies").split())
    assert not re.findall(r"PROT_WRITE\|PROT_EXEC|mprotect\(.*PROT_EXEC", text)
