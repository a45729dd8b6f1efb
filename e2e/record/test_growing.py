# SPDX-License-Identifier: BSD-3-Clause
"""Ends of either side while a buffer of the default size is still being populated."""

import signal

from harness.pcapng import check_sums
from harness.proc import until
from harness.ringtap import sessions


def test_recorder_is_killed(app, record, tmp_path):
    """The application goes on, keeps nothing of it, and the next recording is complete."""
    for _ in range(3):
        record(app, buffer=None).proc.kill()
        until(lambda: sessions(app) == [], what="the end of the session")
    recorder = record(app, buffer=None)
    app.rx(n=100, len=60)
    recorder.finish()
    ((seen, captured, lost), *_) = check_sums(recorder.file())
    assert (seen, captured, lost) == (100, 100, 0)


def test_application_is_killed(play, record):
    """The file has the packets that the application has published."""
    app = play()
    app.ring("a")
    recorder = record(app, buffer=None)
    app.burst("rx", 0, 0, n=50, len=60)
    app.proc.send_signal(signal.SIGKILL)
    recorder.done()
    ((_, captured, _), *_) = check_sums(recorder.file())
    assert captured == 50


def test_recording_is_ended(app, record):
    """At once, as a recording of one packet is."""
    for _ in range(3):
        recorder = record(app, buffer=None)
        app.rx(n=10, len=60)
        recorder.finish()
        ((seen, captured, lost), *_) = check_sums(recorder.file())
        assert (seen, captured, lost) == (10, 10, 0)
        until(lambda: sessions(app) == [], what="the end of the session")
