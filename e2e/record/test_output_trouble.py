# SPDX-License-Identifier: BSD-3-Clause
"""Closed pipes, full disks: written data stays valid, and the error names the file."""

import bisect
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from harness import pcap, pcapng
from harness.paths import RINGTAP
from harness.proc import Proc, check, run, until
from harness.ringtap import FAILED, Recorder


@pytest.fixture
def small_disk(tmp_path, closing):
    """small_disk(options) mounts a tmpfs."""

    class Disk:
        def __init__(self, options):
            self.path = tmp_path / "disk"
            self.path.mkdir()
            check(["mount", "-t", "tmpfs", "-o", options, "none", self.path])

        def close(self):
            check(["umount", "-l", self.path])

    return lambda options: closing(Disk(options)).path


def test_full_and_read_only_disks(busy, record, small_disk, tmp_path):
    """sink/sink_test.c has the other forms of files, and other paths that cannot be written."""
    out = small_disk("size=1M") / "out.pcapng"
    recorder = record(busy, out=out, attach=False)
    output = recorder.done(status=FAILED)
    assert "No space left" in output and str(out) in output
    assert out.stat().st_size > 900_000
    check(["capinfos", out])
    assert pcapng.read(out).packets
    check(["mount", "-o", "remount,ro", out.parent])
    other = out.with_name("other.pcapng")
    output = record(busy, out=other, attach=False).done(status=FAILED)
    assert "ead-only" in output and str(other) in output


def test_full_disk_of_a_real_file_system(busy, record, private_dir):
    """ext4 in a file: O_DIRECT and allocation behave as on a disk."""
    image, mount = private_dir / "image", private_dir / "mnt"
    mount.mkdir()
    check(["truncate", "-s", "16M", image])
    if run(["mkfs.ext4", "-q", image]).returncode or run(["mount", "-o", "loop", image, mount]).returncode:
        pytest.skip("no loop device, or no ext4, to be had here")
    try:
        recorder = record(busy, out=mount / "out.pcapng", attach=False)
        output = recorder.done(status=FAILED)
        assert "No space left" in output
        assert pcapng.read(mount / "out.pcapng").packets
    finally:
        check(["umount", "-l", mount])  # before the folder is removed


def pipeline(app, command, *options):
    """Runs ringtap record -w - | command; returns the command's output."""
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    recorder = Recorder(["-i", f"{app.prefix}:", *options], "-", stdout=reader.stdin)
    reader.stdin.close()
    reader.stdin = None  # otherwise communicate() would flush it
    try:
        recorder.attached()
        app.rx(n=50)
        app.tx(n=50)
        recorder.done()
        out, err = reader.communicate(timeout=30)
        assert reader.returncode == 0, err
        return out
    finally:
        recorder.close()
        reader.kill()


@pytest.mark.smoke
def test_pipes_into_tcpdump_and_tshark(app):
    out = pipeline(app, ["tcpdump", "-nn", "-r", "-"], "-c", "100", "-P")
    assert len([line for line in out.splitlines() if not line.startswith("\t")]) == 100
    assert len(pipeline(app, ["tshark", "-r", "-"], "-c", "100").splitlines()) == 100


def test_packets_are_written_to_a_pipe_at_once(app, closing):
    """A packet must reach the reader of the pipe without waiting until a buffer is full."""
    read, write = os.pipe()
    recorder = closing(Recorder(["-i", f"{app.prefix}:"], "-", stdout=os.fdopen(write, "wb")))
    recorder.attached()
    app.rx(n=1)
    data = b""
    while not pcapng.parse(data, whole=False).packets if data else True:
        data += os.read(read, 65536)
    os.close(read)
    recorder.proc.send_signal(signal.SIGINT)
    recorder.proc.wait()


THREADS = ("--compress", "lz4", "--threads", "3")


def test_closed_pipe(busy, closing):
    read, write = os.pipe()
    with os.fdopen(write, "wb") as out:
        recorder = closing(Recorder(["-i", f"{busy.prefix}:", *THREADS], "-", stdout=out))
    recorder.attached()
    os.close(read)
    assert "ended by: the reader of the output has closed it\n" in recorder.done()
    assert busy.one("count")


def test_closed_pipe_without_packets(app, closing):
    """Without packets, no write can fail."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as out:
        recorder = closing(Recorder(["-i", f"{app.prefix}:"], "-", stdout=out))
    recorder.attached()
    os.close(read)
    assert "the reader of the output has closed it" in recorder.done()


def pending(pid, number):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("ShdPnd:")[1].split()[0], 16) >> number - 1 & 1


def test_pipe_without_a_reader_can_be_interrupted(busy, closing):
    read, write = os.pipe()
    with os.fdopen(write, "wb") as out:
        recorder = closing(Recorder(["-i", f"{busy.prefix}:", *THREADS], "-", stdout=out))
    recorder.attached()
    recorder.proc.send_signal(signal.SIGINT)
    until(lambda: not pending(recorder.proc.pid, signal.SIGINT), what="the first signal")  # two at once may become one
    recorder.proc.send_signal(signal.SIGINT)
    try:
        recorder.proc.wait()
    finally:
        os.close(read)


def test_terminal_is_refused(app, closing):
    proc = closing(Proc([RINGTAP, "record", "-i", f"{app.prefix}:", "-w", "-"], tty=True))
    assert proc.wait() != 0
    assert "erminal" in proc.output


FORMS = [
    (),
    ("--no-direct",),
    ("-P",),
    ("--compress", "zstd"),
    ("--compress", "lz4"),
    ("--compress", "zstd", "--threads", "3"),
]
RATE = 200  # packets/s, which fill no buffer
LATE_S = 3  # a second is promised; the recorder's threads may have to wait for the CPU


class Steady:
    """Sends packets at RATE from its first call on; old(): those that the files must have."""

    def __init__(self, app):
        self._app = app
        self._begin = time.monotonic()
        self._sent = []  # times, by sequence number

    def __call__(self):
        due = int((time.monotonic() - self._begin) * RATE) - len(self._sent)
        if due > 0:
            self._app.rx(n=due, seq=len(self._sent))
            self._sent += due * [time.monotonic()]

    def old(self):
        return bisect.bisect_left(self._sent, time.monotonic() - LATE_S)

    def in_order(self, recorder, options):
        """All that the file of a running or killed recorder has are the first packets; returns their number."""
        path = recorder.out
        if "--compress" in options:  # the last frame may not be complete
            path = path.with_suffix(".plain")
            run(["sh", "-c", f"{options[1]} -dcq {recorder.out} >{path}"])
        data = path.read_bytes()
        if "-P" in options:
            found = [frame for _ns, frame, _length in pcap.parse(data, whole=False)]
        else:
            found = [p.data for p in pcapng.parse(data, whole=False).packets]
        assert found == [pcap.frame(64, k) for k in range(len(found))]
        return len(found)


def test_packets_are_written_within_a_second(app, record):
    """Also with few packets, and if the recorder is killed."""
    recorders = {options: record(app, *options, buffer="1M") for options in FORMS}
    send = Steady(app)

    def behind():
        """Files that lack packets."""
        old = send.old()
        return {
            options: (there, old)
            for options, recorder in recorders.items()
            if (there := send.in_order(recorder, options)) < old
        }

    def sent(number):
        send()
        return send.old() >= number

    for number in range(1, RATE, RATE // 4):
        until(lambda: sent(number), what="packets that must be written")
        assert not behind()
    for recorder in recorders.values():
        recorder.proc.kill()
    assert not behind()
