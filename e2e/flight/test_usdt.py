# SPDX-License-Identifier: BSD-3-Clause
"""USDT events of an application, in each of its files and threads: app:mark of rt_play, which passes it
if its semaphore says that it is traced."""

import shutil
import signal
from pathlib import Path

import pytest
from harness.paths import BUILD, PROBE_OBJECT
from harness.proc import run, until
from harness.tracers import usdt_sites

LIBRARY = BUILD / "e2e" / "librt_event.so"
CONDITION = ("--on", "usdt: app:mark", "--before", "0s", "--after", "1ms", "--cooldown", "0s")


@pytest.fixture
def app(app):
    if not usdt_sites(PROBE_OBJECT):
        pytest.skip("built without sys/sdt.h")
    assert app.one(f"event {LIBRARY}") == app.one("event program") == 0
    return app


def breakpoints(kept):
    """Perf events that the recorder has open; others of its files come and go."""
    links = run(["find", f"/proc/{kept.proc.pid}/fd", "-printf", "%l\n"]).stdout.splitlines()
    return sum(link == "anon_inode:[perf_event]" for link in links)


def buffers(kept):
    """Buffers of perf that the recorder has mapped, one a thread: what happened before is not in them."""
    return Path(f"/proc/{kept.proc.pid}/maps").read_text().count("anon_inode:[perf_event]")


def test_all_files_that_have_the_event(app, keep, closing):
    """The program and a library, by two names of one file; then in a thread that begins later. Each event is met once."""
    linked = LIBRARY.with_name("librt_event_linked.so")
    linked.unlink(missing_ok=True)
    linked.hardlink_to(LIBRARY)
    closing(type("Link", (), {"close": lambda _: linked.unlink()})())
    app.do(f"event_map {linked}")
    kept = keep(app, *CONDITION)
    before = breakpoints(kept)
    for count, where in enumerate(("program", LIBRARY, LIBRARY, "program"), 1):
        assert app.one(f"event {where}") == 1
        kept.incidents(count)
    app.do("event_later")
    until(lambda: breakpoints(kept) >= before + 2, what="breakpoints of the new thread")
    assert app.one("event_go") == 1
    incident = kept.incidents(5)[-1]
    kept.proc.send_signal(signal.SIGUSR1)
    last = kept.incidents(6)[-1]
    kept.finish()
    assert len(kept.folders()) == 6
    assert incident["trigger"]["where"] not in ("", f"thread {app.pid}")
    assert incident["trigger"]["suppressed_before"] == last["trigger"]["suppressed_before"] == 0
    # The semaphores are as before.
    assert app.one(f"event {LIBRARY}") == app.one("event program") == 0


def test_a_library_that_is_loaded_later(play, keep):
    app = play()
    if not usdt_sites(PROBE_OBJECT):
        pytest.skip("built without sys/sdt.h")
    assert app.one("event program") == 0
    kept = keep(app, *CONDITION)
    before = breakpoints(kept)
    assert app.one(f"event {LIBRARY}") in (0, 1)  # it is loaded, and may have been found already
    until(lambda: breakpoints(kept) >= 2 * before, what="breakpoints in the library")
    made = len(kept.folders())
    assert app.one(f"event {LIBRARY}") == 1
    kept.incidents(made + 1)
    kept.finish()
    assert app.one(f"event {LIBRARY}") == app.one("event program") == 0


@pytest.mark.nightly
def test_a_thread_that_begins_when_a_file_is_gone(play, keep, tmp_path):
    """The other files still have the event."""
    app = play()
    if not usdt_sites(PROBE_OBJECT):
        pytest.skip("built without sys/sdt.h")
    copy = tmp_path / LIBRARY.name
    shutil.copy(LIBRARY, copy)
    assert app.one(f"event {copy}") == app.one("event program") == 0
    kept = keep(app, *CONDITION)
    before = buffers(kept)
    copy.unlink()
    app.do("event_later")
    until(lambda: buffers(kept) > before, what="the buffer of the new thread")
    assert app.one("event_go") == 1
    kept.incidents(1)
    kept.finish()
    assert len(kept.folders()) == 1 and "may be missed" not in kept.proc.output
