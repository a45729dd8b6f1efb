# SPDX-License-Identifier: BSD-3-Clause
"""ringtap flight --wait --attach, as of its systemd unit, with an application that cannot be attached to."""

import signal

import pytest
from harness.attach import bare, has_probe
from harness.paths import PROBE_OBJECT
from harness.proc import Proc

FAILED = "^ringtap: flight: cannot load the probe into"


def damage(moved):
    """Returns what mends it."""
    probe = moved / "probe" / "ringtap" / PROBE_OBJECT.name
    code = probe.read_bytes()
    probe.unlink()
    probe.write_bytes(b"something else" * 100)

    def mend():
        probe.unlink()
        probe.write_bytes(code)

    return mend


def waiting(closing, moved, app, tmp_path):
    return closing(
        Proc(
            [
                moved / "cli" / "ringtap",
                "flight",
                "--wait",
                "--attach",
                "--buffer",
                "64M",
                "-w",
                tmp_path / "i",
                app.prefix,
            ]
        )
    )


@pytest.mark.nightly
def test_attempts_become_rare(closing, moved, tmp_path):
    """The application is interrupted less and less often, and recorded once it can be."""
    app = bare(closing)
    mend = damage(moved)
    recorder = waiting(closing, moved, app, tmp_path)
    for seconds in 1, 2, 4:
        recorder.expect(FAILED)
        recorder.expect(f"^Trying again in {seconds} s$")
    mend()
    recorder.expect("^Keeping the packets of")
    assert recorder.output.count("cannot load the probe") == 3
    assert has_probe(app)
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait() == 0
    assert app.one("unloop") > 0 and app.quit() == 0


def test_another_process_is_tried_at_once(closing, moved, tmp_path):
    """A signal ends the waiting."""
    app = bare(closing)
    mend = damage(moved)
    recorder = waiting(closing, moved, app, tmp_path)
    recorder.expect("^Trying again in 2 s$")
    app.proc.kill()
    recorder.expect(f"^Waiting for {app.prefix}$")
    another = bare(closing, prefix=app.prefix)
    recorder.expect(FAILED)
    recorder.expect("^Trying again in 1 s$")
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait() == 0
    recorder = waiting(closing, moved, another, tmp_path)
    recorder.expect("^Trying again in 1 s$")
    mend()
    recorder.expect("^Keeping the packets of")
    another.proc.kill()
    assert recorder.wait() == 0
