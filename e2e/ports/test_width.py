# SPDX-License-Identifier: BSD-3-Clause
"""Tables fit a terminal of 80 columns; longer names are shortened, except in --json."""
import signal

import pytest

from harness.paths import RINGTAP
from harness.proc import Proc, check, run, until
from harness.ringtap import listing
from harness.tracers import bpftrace_missing

LONG = "net_null_of_the_second_floor_on_the_left_9"


def assert_fits(text):
    wide = [line for line in text.expandtabs().splitlines() if len(line) > 80]
    assert not wide, "\n".join(wide)


@pytest.fixture
def many_names(play):
    app = play()
    app.ring("a", rxq=12, txq=12)
    app.plug(LONG)
    return app


def test_list(many_names):
    said = check([RINGTAP, "list"])
    assert_fits(said)
    row, = [line for line in said.splitlines() if "…" in line]
    assert "net_null_o" in row and "left_9 net_null " in row
    assert LONG in check([RINGTAP, "list", "--names"])
    assert LONG in [p["name"] for a in listing() for p in a["ports"]]


def test_short_names_are_not_shortened(app):
    said = check([RINGTAP, "list"])
    assert_fits(said)
    assert "…" not in said and " net_ring_a net_ring " in said


def test_statistics(many_names):
    it = Proc([RINGTAP, "record", "-S", "-i", f"{many_names.prefix}:"], tty=True)
    try:
        it.expect("left_9 ")
        it.send_signal(signal.SIGINT)
        assert it.wait() == 0
    finally:
        it.close()
    assert_fits(it.output)


def test_trace_list(app):
    said = check([RINGTAP, "trace", "list", app.prefix])
    assert_fits("\n".join(line for line in said.splitlines() if not line.startswith("/")))
    assert "uint64 arg4=max_cycles\n" in said


@pytest.mark.parametrize("what", [["latency", "--histogram"], ["memory", "--distances"], ["record", "-w", "/dev/null"]],
                         ids=lambda w: w[0])
def test_reports(testpmd, what):
    pmd = testpmd("net_ring0", "net_null1")
    pmd.start("start tx_first 3")
    until(lambda: pmd.stats(0)["RX-packets"] > 20000, 30, "traffic")
    limit = ["-a", "duration:0.3", "-i", f"{pmd.prefix}:"] if what[0] == "record" else ["--duration", "0.3", pmd.prefix]
    done = run([RINGTAP, *what, *limit])
    assert done.returncode == 0 and "net_null1" in done.stdout + done.stderr
    assert_fits(done.stdout if what[0] != "record" else done.stderr)


@pytest.mark.skipif(bpftrace_missing() is not None, reason=str(bpftrace_missing()))
@pytest.mark.parametrize("what", [["burst", "--empty"], ["latency"], ["drops"], ["gaps"]], ids=lambda w: w[0])
def test_trace(testpmd, what):
    pmd = testpmd("net_ring0", "net_null1")
    pmd.start("start tx_first 3")
    until(lambda: pmd.stats(0)["RX-packets"] > 20000, 30, "traffic")
    said = check([RINGTAP, "trace", *what, "--duration", "0.3", pmd.prefix])
    assert pmd.prefix in said
    assert_fits(said)
