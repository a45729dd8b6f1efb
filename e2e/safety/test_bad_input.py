# SPDX-License-Identifier: BSD-3-Clause
"""All errors: one line, no file, no hang, and the application continues."""
import errno
import json
import os
import stat

import pytest

from harness import dpdk, wire
from harness.paths import RINGTAP
from harness.proc import run, until
from harness.ringtap import FAILED, OK, USAGE, listing, sessions

PATIENCE = 30  # s; a longer wait is a hang


def attempt(tmp_path, *args, prefix=(), status=(FAILED, USAGE)):
    """Runs `ringtap record`, which must fail with one line; returns the line."""
    out = tmp_path / "refused.pcapng"
    done = run([*prefix, RINGTAP, "record", *args, "-w", out], timeout=PATIENCE)
    assert done.returncode in status, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ringtap: "), lines[0]
    assert not out.exists(), "a file was left behind"
    return lines[0]


@pytest.fixture
def alone():
    """A command prefix: in its mount namespace there is no DPDK application."""
    return ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh"]


@pytest.fixture
def app(module_app):
    return module_app.unhooked()


def test_no_application(tmp_path, alone):
    assert "no " in attempt(tmp_path, prefix=alone).lower()


def test_nothing_to_list(alone):
    done = run([*alone, RINGTAP, "list"], timeout=PATIENCE)
    assert done.returncode in (OK, FAILED)
    assert len((done.stdout + done.stderr).strip().splitlines()) <= 1


def test_wrong_application(tmp_path, app):
    assert "nosuchapp" in attempt(tmp_path, "-i", "nosuchapp:0")


@pytest.mark.parametrize("port", ["nosuchport", "31", "99999", "-1"])
def test_wrong_port(tmp_path, app, port):
    assert port in attempt(tmp_path, "-i", f"{app.prefix}:{port}")
    assert app.one("callbacks 0") == 0


def test_application_must_be_named_when_there_are_two(tmp_path, app, play):
    other = play()
    line = attempt(tmp_path)
    assert app.prefix in line or other.prefix in line or "several" in line


def test_application_without_the_probe(tmp_path, testpmd):
    pmd = testpmd("net_null0", plugin=None)
    line = attempt(tmp_path, "-i", f"{pmd.prefix}:")
    assert "probe" in line


def test_socket_that_may_not_be_opened(tmp_path, play):
    """Mode bits apply to root without its capabilities."""
    app = play()
    listing()
    folder = dpdk.RUN_DIR / app.prefix
    for sock in folder.glob("*"):
        if stat.S_ISSOCK(sock.stat().st_mode):
            sock.chmod(0)
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    line = attempt(tmp_path, "-i", f"{app.prefix}:", prefix=powerless)
    assert "ermission" in line


@pytest.mark.parametrize("args", [
    ["-s", "x"], ["-s", "-5"], ["-c", "0"], ["-c", "9" * 30], ["-a", "duration"], ["-a", "moon:1"],
    ["-b", "filesize:0"], ["-b", "files:3"], ["--direction", "up"], ["--queue", "70000"],
    ["--buffer", "1"], ["--ring-size", "1Z"], ["--on-full", "explode"], ["--compress", "zip"],
    ["--timestamp", "sundial"], ["--nonsense"], ["-i"], ["stray"], ["--ring-siz", "1M"]])
def test_bad_options(tmp_path, args):
    """Rejected before applications are searched."""
    attempt(tmp_path, *args, status=(USAGE,))


def test_bad_command():
    for args in ([], ["nosuch"], ["--nosuch"]):
        done = run([RINGTAP, *args])
        assert done.returncode == USAGE
        assert done.stderr


# ---- Invalid applications -------------------------------------------------------------------


@pytest.fixture
def impostor(closing):
    """impostor(socket name, answer) simulates an application; returns its prefix."""
    made = []

    def start(name, answer, **kwargs):
        prefix = dpdk.new_prefix("fake")
        made.append(prefix)
        closing(wire.Impostor(dpdk.RUN_DIR / prefix, name, answer, **kwargs))
        return prefix

    yield start
    for prefix in made:
        dpdk.remove_run_dir(prefix)


def nonsense(connection):
    connection.send(b"\0\xff{]" * 20)
    while connection.recv(4096):
        connection.send(b"42")


def silence(connection):
    while connection.recv(4096):
        pass


def slam(connection):
    connection.close()


def endless(connection):
    while True:
        connection.send(b'{"version":"DPDK 22.11.0","pid":1,"max_output_len":16384}')


@pytest.mark.parametrize("answer", [nonsense, silence, slam, endless])
@pytest.mark.parametrize("name", ["dpdk_telemetry.v2", "ringtap.sock"])
def test_sockets_with_invalid_answers(tmp_path, impostor, answer, name):
    prefix = impostor(name, answer)
    assert prefix in attempt(tmp_path, "-i", f"{prefix}:")


@pytest.mark.parametrize("answer", [nonsense, silence])
def test_invalid_application_does_not_affect_the_list(impostor, app, answer):
    impostor("ringtap.sock", answer)
    assert app.prefix in str(listing())


@pytest.mark.parametrize("name", ["dpdk_telemetry.v2", "ringtap.sock"])
def test_socket_of_another_user_is_skipped(tmp_path, impostor, app, name):
    heard = []
    prefix = impostor(name, lambda c: heard.append(c.recv(4096)), owner=65534)
    done = run([RINGTAP, "list", "--json"])
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert app.prefix in str(found["applications"]) and prefix not in str(found["applications"])
    assert "belongs to user 65534, not to user 0" in str(found["skipped"])
    assert prefix in done.stderr and done.stderr.count("\n") == 1
    attempt(tmp_path, "-i", f"{prefix}:")
    assert not heard


def test_other_protocol_version(tmp_path, impostor):
    prefix = impostor("ringtap.sock", lambda c: (c.recv(4096), c.send(
        wire.message(wire.WELCOME, b"\0" * 260, version=wire.VERSION + 1))))
    assert "version" in attempt(tmp_path, "-i", f"{prefix}:")


BROKEN = {
    "foreign magic": dict(magic=b"SOMEONE\0"),
    "older version": dict(version=0),
    "newer version": dict(version=wire.SEG_VERSION + 1),
    "header size": dict(header_size=128),
    "larger than the file": dict(segment_size=1 << 40),
    "smaller than its header": dict(segment_size=16),
    "chunk size no power of two": dict(chunk_size=wire.CHUNK + 4096),
    "chunk size zero": dict(chunk_size=0),
    "chunks beyond the data": dict(chunk_size=1 << 20),
    "too few chunks": dict(chunk_count=wire.CHUNKS - 1),
    "order too short": dict(order_count=wire.CHUNKS),
    "order outside": dict(order_offset=16384),
    "ring count": dict(ring_count=1 << 20),
    "no share": dict(shares=0),
    "more shares than rings": dict(shares=2),
    "interface table outside": dict(if_offset=1 << 32),
    "interface table unaligned": dict(if_offset=(1 << 64) - 8),
    "tap table outside": dict(tap_offset=16384),
    "rings outside": dict(ring_offset=16384),
    "counters outside": dict(count_offset=16380),
    "clock outside": dict(clock_offset=0xFFFFFFF0),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_segments(tmp_path, impostor, what):
    prefix = impostor("ringtap.sock", wire.fake_probe(wire.segment(**BROKEN[what])))
    attempt(tmp_path, "-i", f"{prefix}:", status=(FAILED,))


def test_application_cannot_truncate_the_memory(record, impostor):
    """Truncation would kill the recorder by SIGBUS."""
    refused = []

    def spoil(fds):
        for fd in fds:
            try:
                os.truncate(fd, 0)
            except PermissionError:
                refused.append(fd)

    class App:
        prefix = impostor("ringtap.sock", wire.fake_probe(
            wire.segment(records=wire.epb(b"A" * 60)), spoil=spoil))
    recorder = record(App, "-c", "1", attach=False)
    recorder.done()
    assert len(refused) == 3


LAYOUTS = {
    "no rings": dict(sizes=[16384, 0, 4096], rings=0),
    "more shares than rings": dict(sizes=[16384, 2 * wire.CHUNK, 4096], shares=2),
    "more to fill than there is": dict(sizes=[16384, 2 * wire.CHUNK, 4096], filled=20480),
    "too many rings": dict(sizes=[1 << 20, 514 * wire.CHUNK, 20480], rings=257, chunks=514, order=1024),
    "a buffer of a TiB": dict(sizes=[16384, 1 << 40, 4096], chunks=1 << 23, order=1 << 24),
    "data larger than its chunks": dict(sizes=[16384, 1 << 30, 4096]),
    "tables without end": dict(sizes=[1 << 40, 2 * wire.CHUNK, 4096]),
    "too many taps": dict(sizes=[1 << 30, 2 * wire.CHUNK, 4096], taps=1 << 20),
    "wrong sum": dict(sizes=[16384, 2 * wire.CHUNK, (1 << 64) - 4096]),
}


@pytest.mark.parametrize("what", LAYOUTS)
def test_impossible_layouts(tmp_path, impostor, what):
    prefix = impostor("ringtap.sock", wire.fake_probe(
        wire.segment(), layout_message=wire.layout(**LAYOUTS[what])))
    output = attempt(tmp_path, "-i", f"{prefix}:", status=(FAILED,))
    assert "impossible memory" in output
    assert what != "too many rings" or "numbers of rings" in output


@pytest.mark.smoke
def test_valid_simulated_application_is_recorded(record, impostor):
    """The simulated application is correct without faults: otherwise the tests of faults would
    prove nothing."""
    class App:
        prefix = impostor("ringtap.sock", wire.fake_probe(
            wire.segment(records=wire.epb(b"A" * 60) + wire.epb(b"B" * 61, ns=10**18 + 5))))
    recorder = record(App, "-c", "2", attach=False)
    recorder.done()
    assert [p.data for p in recorder.file().packets] == [b"A" * 60, b"B" * 61]


def test_counts_beyond_their_tables_are_limited(record, impostor):
    """They change during the session, so they must be checked at each read."""
    contents = wire.segment(records=wire.epb(b"A" * 60), if_count=1000, tap_count=1000)

    class App:
        prefix = impostor("ringtap.sock", wire.fake_probe(contents))
    recorder = record(App, "-c", "1", attach=False)
    recorder.done()
    assert [i.name for i in recorder.file().interfaces] == ["port0"]


GOOD = wire.epb(b"A" * 60)
CORRUPT = {
    "length zero": wire.epb(b"B" * 60, total=0),
    "length odd": wire.epb(b"B" * 60, total=97),
    "length beyond the head": wire.epb(b"B" * 60, total=4096),
    "captured beyond the block": wire.epb(b"B" * 60, captured=1 << 20),
    "no such interface": wire.epb(b"B" * 60, interface=7),
    "not a packet": b"\7" * 32,
    "cut off": GOOD[:20],
}


@pytest.mark.parametrize("what", CORRUPT)
def test_corrupt_records(record, impostor, what):
    """Earlier packets are saved; the error has the position."""
    class App:
        prefix = impostor("ringtap.sock", wire.fake_probe(
            wire.segment(records=GOOD * 3 + CORRUPT[what])))
    recorder = record(App, attach=False)
    output = recorder.done(status=FAILED)
    assert [p.data for p in recorder.file().packets] == [b"A" * 60] * 3
    assert str(3 * len(GOOD)) in output or "corrupt" in output.lower()


@pytest.mark.parametrize("head", [1 << 40, (1 << 64) - 1, 65536 + 4])
def test_head_beyond_the_ring(record, impostor, head):
    class App:
        prefix = impostor("ringtap.sock", wire.fake_probe(wire.segment(records=GOOD, head=head)))
    recorder = record(App, attach=False)
    recorder.done(status=FAILED)


# ---- Invalid readers --------------------------------------------------------------------------


@pytest.fixture
def reader(app, closing):
    listing()  # wakes the probe
    return lambda **kwargs: closing(wire.Reader(dpdk.RUN_DIR / app.prefix, **kwargs))


@pytest.mark.parametrize("tail", [1 << 40, 1 << 63, (1 << 64) - 1])
def test_impossible_tail_ends_only_its_session(app, reader, record, tail):
    good = record(app)
    liar = reader()
    liar.open()
    liar.write_tails(tail)
    until(lambda: app.rx(n=500, len=1500) and len(sessions(app)) == 1, 10, "liar thrown out")
    app.rx(n=3, len=77)
    good.finish()
    assert [p.length for p in good.file().packets if p.length == 77] == [77] * 3


MESSAGES = {
    "empty": b"",
    "short": b"\1",
    "noise": bytes(range(256)) * 4,
    "magic": wire.message(wire.HELLO, b"\0" * 68, magic=1),
    "version": wire.message(wire.HELLO, b"\0" * 68, version=77),
    "length": wire.message(wire.HELLO, b"\0" * 68, length=4),
    "type": wire.message(999),
    "huge": wire.message(wire.OPEN, b"\0" * 100000),
    "no targets": wire.open_request(targets=()),
    "missing targets": wire.open_request(target_count=64),
    "too many targets": wire.open_request(target_count=0xFFFFFFFF),
    "instructions that are not there": wire.open_request(insn_count=4096),
    "instruction range": wire.open_request(
        targets=(wire.target(first=5, count=0xFFFFFFFF),), insns=((6, 0, 0, 1),)),
    "jump out of the filter": wire.open_request(
        targets=(wire.target(first=0, count=2),), insns=((0x15, 200, 200, 0), (6, 0, 0, 1))),
    "filter without return": wire.open_request(
        targets=(wire.target(first=0, count=1),), insns=((0x00, 0, 0, 0),)),
    "scratch memory out of range": wire.open_request(
        targets=(wire.target(first=0, count=2),), insns=((0x60, 0, 0, 9999), (6, 0, 0, 1))),
    "snaplen": wire.open_request(targets=(wire.target(snaplen=0xFFFFFFFF),)),
    "direction": wire.open_request(targets=(wire.target(directions=0xFF),)),
    "policy": wire.open_request(on_full=9),
    "time stamps": wire.open_request(timestamp=9),
    "buffer size": wire.open_request(buffer_size=1 << 60),
    "name without end": wire.open_request(targets=(b"A" * 64 + wire.target()[64:],)),
    "memory without a session": wire.message(wire.MEMORY),
    "filter without a session": wire.filter_request(insns=((6, 0, 0, 1),)),
}


@pytest.mark.parametrize("greet", [True, False])
@pytest.mark.parametrize("what", MESSAGES)
def test_broken_control_messages(app, reader, what, greet):
    """Refused; no callback stays, and the next reader is accepted."""
    liar = reader(greet=greet)
    liar.send(MESSAGES[what])
    liar.sock.shutdown(1)
    while True:
        kind, _ = liar.receive()
        assert kind not in (wire.LAYOUT, wire.OPENED), "that should not have been granted"
        if kind is None:
            break
    assert app.one("callbacks 0") == 0
    reader().close()


BAD_FILTERS = {
    "jump out of the filter": wire.filter_request(insns=((0x15, 200, 200, 0), (6, 0, 0, 1))),
    "filter without return": wire.filter_request(insns=((0x00, 0, 0, 0),)),
    "scratch memory out of range": wire.filter_request(insns=((0x60, 0, 0, 9999), (6, 0, 0, 1))),
}


@pytest.mark.parametrize("what", BAD_FILTERS)
def test_refused_filter_does_not_end_the_session(app, reader, what):
    """The reader gets the reason; the session continues and accepts a valid filter."""
    it = reader()
    it.open()
    it.send(BAD_FILTERS[what])
    kind, body = it.receive()
    code, sentence = wire.filtered(body)
    assert kind == wire.FILTERED and code == -errno.EINVAL and "refuses the filter" in sentence
    it.send(wire.filter_request(insns=((6, 0, 0, 1),)))
    kind, body = it.receive()
    assert kind == wire.FILTERED and wire.filtered(body) == (0, "")


@pytest.mark.parametrize("count", [1, 4096, 0xFFFFFFFF])
def test_filter_of_another_length_ends_the_connection(app, reader, count):
    it = reader()
    it.open()
    it.send(wire.filter_request(insns=((6, 0, 0, 1),) * 2, count=count))
    assert it.receive()[0] == wire.ERROR
    until(lambda: sessions(app) == [], 10, "session ended")


def test_many_connections(app, reader):
    """Idle connections do not block others forever, nor harm the application."""
    crowd = []
    for _ in range(200):
        try:
            crowd.append(reader(greet=False))
        except OSError:
            break
    for one in crowd:
        one.sock.close()
    until(lambda: app.prefix in str(listing()), 10, "served again")
    assert app.one("now")
