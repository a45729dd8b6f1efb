# SPDX-License-Identifier: BSD-3-Clause
"""--wait of `ringtap attach`, and of `ringtap flight` with an application that cannot be attached to."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from harness.attach import bare, has_probe, mapped
from harness.paths import BUILD, PROBE_OBJECT, RINGTAP
from harness.proc import Proc, until
from harness.testpmd import Testpmd

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


def attaching(closing, name):
    attacher = closing(Proc([RINGTAP, "attach", "--wait", name], tty=True))
    attacher.expect(f"^Waiting for {name}")
    return attacher


@pytest.mark.nightly
def test_probe_at_each_start(closing):
    """An application that starts later has the probe at once, and so has the next one of its name."""
    prefix = f"later{os.getpid()}"
    attacher = attaching(closing, prefix)
    for _ in range(2):
        app = closing(Testpmd(["net_null0", "net_null1"], prefix=prefix))
        app.start()
        attacher.expect(f"^The probe is in '{prefix}' \\(pid {app.pid}\\), after ")
        assert has_probe(app)
        before = app.stats(0)["RX-packets"]
        until(lambda: app.stats(0)["RX-packets"] > before, what="packets")
        app.proc.kill()
        attacher.expect(f"^'{prefix}' \\(pid {app.pid}\\) has ended")
        attacher.expect(f"^Waiting for {prefix}")
    attacher.send_signal(signal.SIGINT)
    assert attacher.wait() == 0


def test_program_that_nothing_lists(closing, tmp_path):
    """Without telemetry and runtime folder, its name is that of the program."""
    program = Path(shutil.copy(BUILD / "e2e" / "rt_play", tmp_path / f"switch{os.getpid()}"))
    attacher = attaching(closing, program.name)
    app = bare(closing, program, eal=["--no-telemetry", "--no-shconf"])
    attacher.expect(f"^The probe is in '.*' \\(pid {app.pid}\\), after ")
    assert mapped(app, "libringtap-probe.so")
    assert app.one("unloop") > 0 and app.quit() == 0
    attacher.expect("has ended")
    attacher.send_signal(signal.SIGTERM)
    assert attacher.wait() == 0
