# SPDX-License-Identifier: BSD-3-Clause
"""Refusals are one line, without a file, a hang, or harm to the application.

One of each kind. All command lines are in cli/usage_test.c and cli/record/options_test.c, all messages of readers in
probe/control/control_refuse_test.c and request_test.c, of probes in reader/conn/conn_test.c, memories in probe/memory/shm_refuse_test.c,
reader/memory/segment_test.c and reader/memory/memory_test.c, records in reader/capture/merge_test.c."""

import errno
import json
import signal
import stat

import pytest
from harness import dpdk, wire
from harness.paths import RINGTAP
from harness.proc import Proc, run, until
from harness.ringtap import FAILED, OK, USAGE, listing, sessions
from harness.wireshark import EXTCAP


def attempt(tmp_path, *args, prefix=(), status=FAILED, out=None):
    """Runs `ringtap record`, which must fail with one line; returns the line."""
    out = out or tmp_path / "refused.pcapng"
    done = run([*prefix, RINGTAP, "record", *args, "-w", out])
    assert done.returncode == status, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ringtap: "), lines[0]
    assert not (tmp_path / "refused.pcapng").exists(), "a file was left behind"
    return lines[0]


def test_no_application(tmp_path):
    # Without the processes of other tests: those with a DPDK are listed.
    namespaces = ["unshare", "-m", "--pid", "--fork", "--mount-proc"]
    alone = [*namespaces, "sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh"]
    assert "no " in attempt(tmp_path, prefix=alone).lower()
    done = run([*alone, RINGTAP, "list"])
    assert done.returncode == OK and len((done.stdout + done.stderr).strip().splitlines()) == 1


def test_command_lines():
    alone = run([RINGTAP])
    assert alone.returncode == USAGE and alone.stderr == run([RINGTAP, "--help"]).stdout and not alone.stdout
    for args in (["nosuch"], ["--nosuch"], ["help", "nonsense"]):
        done = run([RINGTAP, *args])
        assert done.returncode == USAGE and len(done.stderr.splitlines()) == 1 and not done.stdout
    for args in (["--help"], ["record", "--help"], ["list", "--help"], ["--version"]):
        done = run([RINGTAP, *args])
        assert done.returncode == OK and done.stdout and not done.stderr
    assert run([RINGTAP, "help"]).stdout == run([RINGTAP, "--help"]).stdout
    assert run([RINGTAP, "help", "record"]).stdout == run([RINGTAP, "record", "--help"]).stdout


@pytest.mark.smoke
def test_requests_that_cannot_be_met(tmp_path, play):
    """The application, its port, the option, the filter, the output: nothing is attached."""
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
    app = apps[0]
    assert "nosuchapp" in attempt(tmp_path, "-i", "nosuchapp:0")
    for port in ("nosuchport", "31", "99999", "-1"):
        assert port in attempt(tmp_path, "-i", f"{app.prefix}:{port}")
    line = attempt(tmp_path)
    assert app.prefix in line or apps[1].prefix in line or "several" in line
    assert "not a size" in attempt(tmp_path, "-i", f"{app.prefix}:", "-s", "x", status=USAGE)
    for expression in ("ip and and", "host 300.1.1.1"):
        theirs = run(["tcpdump", "-d", "-y", "EN10MB", expression]).stderr.strip().splitlines()[-1]
        line = attempt(tmp_path, "-i", f"{app.prefix}:", "-f", expression, status=USAGE)
        assert theirs.removeprefix("tcpdump: ").strip() in line
    assert "NIC time stamps" in attempt(tmp_path, "-i", f"{app.prefix}:", "--timestamp", "nic")
    for path, why in (("/nonexistent/out.pcapng", "No such file"), ("/", "s a directory")):
        assert why in attempt(tmp_path, "-i", f"{app.prefix}:", out=path)
    assert sessions(app) == [] and app.one("callbacks 0") == 0


def test_application_without_the_probe(tmp_path, testpmd):
    pmd = testpmd("net_null0", plugin=None)
    assert "probe" in attempt(tmp_path, "-i", f"{pmd.prefix}:")
    assert "without the probe" in run([RINGTAP, "list", pmd.prefix]).stdout
    assert pmd.prefix not in run([EXTCAP, "--extcap-interfaces"]).stdout


def test_socket_that_may_not_be_opened(tmp_path, app):
    """Mode bits apply to root without its capabilities."""
    listing()
    folder = dpdk.RUN_DIR / app.prefix
    for sock in folder.glob("*"):
        if stat.S_ISSOCK(sock.stat().st_mode):
            sock.chmod(0)
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    line = attempt(tmp_path, "-i", f"{app.prefix}:", prefix=powerless)
    assert "ermission" in line


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


@pytest.mark.parametrize("command", ["record", "flight"])
def test_a_signal_ends_attaching(tmp_path, impostor, closing, command):
    """Ctrl-C is obeyed while an application does not answer, and no file is left."""
    heard = []
    prefix = impostor("ringtap.sock", wire.fake_probe(wire.segment(), opened=False, heard=heard))
    target = ["-i", f"{prefix}:"] if command == "record" else [prefix]
    proc = closing(Proc([RINGTAP, command, *target, "-w", tmp_path / "out"]))
    until(lambda: wire.OPEN in heard or wire.MONITOR in heard, what="a request")
    proc.send_signal(signal.SIGINT)
    assert proc.wait() == FAILED
    assert f"cannot attach to '{prefix}': interrupted" in proc.output
    assert not (tmp_path / "out").is_file()


def nonsense(connection):
    connection.send(b"\0\xff{]" * 20)
    while connection.recv(4096):
        connection.send(b"42")


def slam(connection):
    connection.close()


def endless(connection):
    while True:
        connection.send(b'{"version":"DPDK 22.11.0","pid":1,"max_output_len":16384}')


def test_invalid_applications_do_not_affect_others(tmp_path, impostor, app, record):
    """The list and a capture of another application work."""
    for name, answer in (("dpdk_telemetry.v2", endless), ("ringtap.sock", nonsense), ("ringtap.sock", slam)):
        prefix = impostor(name, answer)
        assert prefix in attempt(tmp_path, "-i", f"{prefix}:")
        assert app.prefix in str(listing())
    recorder = record(app)
    app.rx(n=5)
    recorder.finish()
    assert len(recorder.file().packets) == 5


def test_socket_of_another_user_is_skipped(tmp_path, impostor, app):
    heard = []
    prefix = impostor("ringtap.sock", lambda c: heard.append(c.recv(4096)), owner=65534)
    done = run([RINGTAP, "list", "--json"])
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert app.prefix in str(found["applications"]) and prefix not in str(found["applications"])
    assert "belongs to user 65534, not to user 0" in str(found["skipped"])
    assert prefix in done.stderr and done.stderr.count("\n") == 1
    attempt(tmp_path, "-i", f"{prefix}:")
    assert not heard


@pytest.mark.smoke
def test_records_of_a_false_application(record, impostor):
    """Without faults they are recorded. Before a corrupt one they are saved, and the error has its position."""

    class App:
        prefix = impostor(
            "ringtap.sock",
            wire.fake_probe(wire.segment(records=wire.epb(b"A" * 60) + wire.epb(b"B" * 61, ns=10**18 + 5))),
        )

    recorder = record(App, "-c", "2", attach=False)
    recorder.done()
    assert [p.data for p in recorder.file().packets] == [b"A" * 60, b"B" * 61]

    good, corrupt = wire.epb(b"A" * 60), wire.epb(b"B" * 60, total=97)
    App.prefix = impostor("ringtap.sock", wire.fake_probe(wire.segment(records=good * 3 + corrupt)))
    recorder = record(App, attach=False)
    output = recorder.done(status=FAILED)
    assert [p.data for p in recorder.file().packets] == [b"A" * 60] * 3
    assert str(3 * len(good)) in output or "corrupt" in output.lower()


# ---- Invalid readers --------------------------------------------------------------------------


def test_invalid_readers_end_only_themselves(app, record, closing):
    """A recorder beside them has all packets."""
    good = record(app)

    def reader():
        return closing(wire.Reader(dpdk.RUN_DIR / app.prefix))

    for message in (
        bytes(range(256)) * 4,
        wire.message(999),
        wire.open_request(on_full=9),
        wire.open_request(targets=(wire.target(snaplen=0xFFFFFFFF),)),
    ):
        it = reader()
        it.send(message)
        kind, _ = it.receive()
        assert kind in (None, wire.ERROR)
        assert kind is None or it.receive()[0] is None
    app.rx(n=3, len=77)

    it = reader()  # what a refused filter does not end
    it.open()
    it.send(wire.filter_request(insns=((0x15, 200, 200, 0), (6, 0, 0, 1))))
    kind, body = it.receive()
    code, sentence = wire.filtered(body)
    assert kind == wire.FILTERED and code == -errno.EINVAL and "refuses the filter" in sentence
    it.send(wire.filter_request(insns=((6, 0, 0, 1),)))
    kind, body = it.receive()
    assert kind == wire.FILTERED and wire.filtered(body) == (0, "")

    liar = reader()
    liar.open()
    liar.write_tails(1 << 63)
    until(lambda: app.rx(n=500, len=1500) and len(sessions(app)) == 2, what="liar thrown out")
    app.rx(n=3, len=77)
    good.finish()
    assert [p.length for p in good.file().packets if p.length == 77] == [77] * 6
