# SPDX-License-Identifier: BSD-3-Clause
"""Filters that libpcap compiles for the kernel only, and filters of stopped applications."""

import os
import signal

import pytest
from harness import pcap, pcapng
from harness.paths import BUILD, RINGTAP
from harness.proc import Proc, freeze, run, until
from harness.ringtap import BUFFER, OK, TCPDUMP_BUFFER, USAGE, frames_of, sessions
from harness.wireshark import EXTCAP, interface

LIFE = BUILD / "e2e" / "pcap_life"
WAYS = {"outbound": ["tx"], "not outbound and len = 100": ["rx"], "inbound or outbound": ["rx", "tx"]}


@pytest.fixture
def app(module_app):
    return module_app.unhooked()


def burst(app):
    """12 received frames, numbered from 0, and 7 sent ones, from 100."""
    app.rx(n=12, len=100)
    app.tx(n=7, len=100, seq=100)


def expected(ways):
    numbers = [*(range(12) if "rx" in ways else []), *(range(100, 107) if "tx" in ways else [])]
    return [pcap.frame(100, n) for n in numbers]


def test_tcpdump(app, closing, tmp_path):
    """Applications refuse a loop: then the library filters, by the direction of the record."""
    for expression in WAYS:
        want = expected(WAYS[expression])
        dump = closing(
            Proc(
                [
                    RINGTAP,
                    "run",
                    "--",
                    "tcpdump",
                    *TCPDUMP_BUFFER,
                    "-U",
                    "-i",
                    f"ringtap:{app.prefix}:0",
                    "-w",
                    tmp_path / str(len(want)),
                    "-c",
                    len(want),
                    expression,
                ]
            )
        )
        dump.expect("listening on")
        burst(app)
        assert dump.wait() == 0
        assert sorted(pcap.frames(tmp_path / str(len(want)))) == sorted(want)
    dump = closing(
        Proc(
            [
                RINGTAP,
                "run",
                "--",
                "tcpdump",
                *TCPDUMP_BUFFER,
                "-U",
                "-i",
                f"ringtap:{app.prefix}:0",
                "-w",
                tmp_path / "out",
                "-c",
                "7",
                "outbound and not ip6 protochain 58",
            ]
        )
    )
    dump.expect("listening on")
    burst(app)
    assert dump.wait() == 0
    assert pcap.frames(tmp_path / "out") == expected(["tx"])


def test_record(app, record):
    for expression in WAYS:
        recorder = record(app, "-f", expression)
        burst(app)
        recorder.finish()
        assert sorted(frames_of(recorder.file())) == sorted(expected(WAYS[expression]))


def test_extcap(app, closing, tmp_path):
    name = interface(app, "net_ring_a")
    captures = {}
    for i, expression in enumerate(WAYS):
        filtered = [EXTCAP, "--extcap-interface", name, "--extcap-capture-filter", expression]
        assert run(filtered).stdout == ""
        fifo = tmp_path / str(i)
        captures[expression] = fifo, closing(Proc([*filtered, "--capture", "--buffer", BUFFER, "--fifo", fifo]))
    until(lambda: [bool(s["start"]) for s in sessions(app)] == [True] * len(WAYS), what="captures run")
    burst(app)
    for expression, (fifo, it) in captures.items():
        it.send_signal(signal.SIGINT)
        assert it.wait() == OK
        assert sorted(p.data for p in pcapng.read(fifo).packets) == sorted(expected(WAYS[expression]))
    app.unhooked()


def test_check_refuses_what_the_capture_refuses(app, record):
    for expression in ("ifindex 3", "ip6 protochain 58"):
        output = run(
            [EXTCAP, "--extcap-interface", interface(app, "net_ring_a"), "--extcap-capture-filter", expression]
        )
        assert output.returncode == OK and "no application can run it" in output.stdout
        output = record(app, "-f", expression, attach=False).done(status=USAGE)
        assert "no application can run it" in output


def test_stopped_application(app, closing):
    """Without an answer in time: an error, the old filter stays, and both continue later."""

    def answer(line):
        if line == "pause":
            freeze(app.pid)
        if line == "resume":
            os.kill(app.pid, signal.SIGCONT)
        return line in ("pause", "resume")

    proc = closing(Proc([RINGTAP, "run", LIFE, "filters_a_stopped_application", f"ringtap:{app.prefix}:0"]))
    try:
        while (line := proc.expect(r"^(.*)\r?\n").group(1).decode()) != "good":
            if line.startswith("send "):
                app.rx(n=int(line.split()[1]), len=int(line.split()[2]))
            else:
                assert answer(line), line
            proc.send("")
    finally:
        os.kill(app.pid, signal.SIGCONT)
