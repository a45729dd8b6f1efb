# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap web` beside a file system that does not answer, as a dead server of NFS or FUSE leaves one."""

import sys
import time
import urllib.parse

import pytest
from harness.flight import Flight, command
from harness.live import Web
from harness.proc import until

NAME = "20260102T030405.000001-gap"
# Mounts FUSE, whose requests nobody reads, in a mount namespace of the program's own.
HANGING = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(ret):
    assert ret == 0, os.strerror(ctypes.get_errno())
call(libc.unshare(0x20000))
call(libc.mount(b"none", b"/", None, 0x4000 | 1 << 18, None))
fd = os.open("/dev/fuse", os.O_RDWR)
os.set_inheritable(fd, True)
call(libc.mount(b"dead", sys.argv[1].encode(), b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd))
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Inside:
    def __init__(self, folder):
        self.prefix = [sys.executable, "-c", HANGING, folder]


@pytest.mark.nightly
def test_a_folder_that_hangs_holds_up_nothing_else(fwd, closing, tmp_path):
    """Its page and its recorder are refused in some seconds, and so is each later request at once."""
    dead, sound = tmp_path / "dead", tmp_path / "sound"
    app = fwd("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", 1000).running()
    recorders = [closing(Flight(app, folder)) for folder in (dead, sound)]
    command("trigger", sound)
    recorders[1].incidents(1)
    web = closing(Web(args=("--allow-actions",), namespace=Inside(dead)))
    stream = web.events(app=app.prefix)

    def listed():
        _, document = next(stream)
        return next((p for p in document["panels"] if p["id"] == "incidents" and p["rows"]), None)

    table = until(listed)
    assert [row[2] for row in table["rows"]] == [str(sound)]
    assert any("does not answer" in note for note in table["notes"])
    asked = {"app": app.prefix, "folder": dead, "name": NAME}
    path = f"?{urllib.parse.urlencode(asked)}"
    for what, method in (("/incident", "GET"), ("/trigger", "POST")):
        for _ in range(2):
            began = time.monotonic()
            status, _, text = web.request(what + path, method)
            assert status == 503 and b"does not answer" in text
            assert time.monotonic() - began < 30
            next(stream)
    page = urllib.parse.urlencode({**asked, "folder": sound, "name": table["rows"][0][0]["page"]["name"]})
    status, _, text = web.request(f"/incident?{page}")
    assert status == 200 and b"<html" in text
    stream.close()
    web.close()
