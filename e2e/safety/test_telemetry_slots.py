# SPDX-License-Identifier: BSD-3-Clause
"""DPDK 23.11.0 serves ten clients of telemetry, and never gives back the place of one that leaves too early."""

from harness.hostile.application import Telemetry
from harness.paths import RINGTAP
from harness.proc import run
from harness.prometheus import Exporter


def test_no_command_takes_a_place_for_ever(closing):
    app = closing(Telemetry())
    for _ in range(3):
        done = run([RINGTAP, "list"])
        assert done.returncode == 0 and app.prefix in done.stdout
    exporter = closing(Exporter())
    exporter.proc.expect(f"{app.prefix}: without the probe")
    assert app.clients and not app.lost
