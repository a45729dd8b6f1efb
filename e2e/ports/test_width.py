# SPDX-License-Identifier: BSD-3-Clause
"""Tables fit a terminal of 80 columns; names that do not are shortened, and whole in --json."""

import re
import signal

import pytest
from harness import dpdk
from harness.doctor import FAULT
from harness.paths import RINGTAP
from harness.proc import Proc, check, run, together, until
from harness.ringtap import OK, listing
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


def test_list_and_statistics(many_names):
    said = check([RINGTAP, "list"])
    assert_fits(said)
    (row,) = [line for line in said.splitlines() if "…" in line]
    assert "net_null_o" in row and "left_9 net_null " in row
    assert LONG in check([RINGTAP, "list", "--names"])
    assert LONG in [p["name"] for a in listing() for p in a["ports"]]
    it = Proc([RINGTAP, "record", "-S", "-i", f"{many_names.prefix}:"], tty=True)
    try:
        it.expect("left_9 ")
        it.send_signal(signal.SIGINT)
        assert it.wait() == 0
    finally:
        it.close()
    assert_fits(it.output)


def test_short_names_are_not_shortened(app):
    said = check([RINGTAP, "list"])
    assert_fits(said)
    assert "…" not in said and " net_ring_a net_ring " in said
    said = check([RINGTAP, "trace", "list", app.prefix])
    assert_fits("\n".join(line for line in said.splitlines() if not line.startswith("/")))
    assert "uint64 arg4=max_cycles\n" in said


LONGEST = ["net_null_" + c * 51 for c in "ab"]


@pytest.fixture
def all_names_long(testpmd):
    pmd = testpmd(
        *LONGEST, "net_ring0", "net_ring1", prefix=dpdk.new_prefix("an-application-with-a-name-as-long-as-they-get")
    )
    pmd.start("start tx_first 3")
    until(lambda: pmd.stats(2)["RX-packets"] > 20000, what="traffic")
    return pmd


REPORTS = [
    ["list"],
    ["latency", "--histogram", "--duration", "0.3s"],
    ["memory", "--distances", "--duration", "0.3s"],
    ["doctor", "--duration", "1s"],
    *(
        ["top", "--once", "--interval", "0.2s", "--view", view]
        for view in ("ports", "queues", "threads", "pools", "latency", "gaps")
    ),
]


def assert_columns_of_top(name):
    def titles(*args, columns):
        shown = check(["env", f"COLUMNS={columns}", RINGTAP, "top", "--once", "--interval", "0.2s", *args, name])
        return shown, shown.splitlines()[0].split()

    assert "REFUSED" in titles(columns=80)[1] and "NO-MBUF" not in titles(columns=80)[1]
    assert "NO-MBUF" in titles(columns=200)[1]
    shown, all_titles = titles("--wide", columns=80)
    assert "NO-MBUF" in all_titles and "ID" in all_titles
    assert name in shown and LONGEST[0] in shown


def test_reports_of_long_names(all_names_long):
    name = all_names_long.prefix
    reports = together(lambda what: run(["env", "COLUMNS=80", RINGTAP, *what, name]), REPORTS)
    for what, done in zip(REPORTS, reports, strict=True):
        assert done.returncode in (OK, FAULT) and len(done.stdout.splitlines()) > 1, what
        assert_fits(done.stdout)
    said = run([RINGTAP, "record", "-i", f"{name}:", "-w", "/dev/null", "-a", "duration:0.3"]).stderr
    # A message is on one line, however long; on a busy machine there is one of packets that were lost.
    assert_fits(
        "\n".join(line for line in said[said.index("\n  interface") :].splitlines() if not line.startswith("ringtap: "))
    )
    assert_columns_of_top(name)


@pytest.mark.nightly
def test_report_of_the_forwarder(fwd):
    """And its lines of each second."""
    ring = "ring-of-the-left"
    it = fwd(
        "--ring",
        ring,
        "--role",
        f"generate:{ring}@0",
        "--role",
        f"sink:{ring}@1",
        "--stages",
        "10k:1.5s",
        "--interval",
        "1s",
        json_out=False,
    )
    said = it.done()
    assert "sequence: " in said and re.search(r"^ +1\.\d s  sink", said, re.MULTILINE)
    assert_fits(said[said.index("running") :])


@pytest.mark.nightly
@pytest.mark.skipif(bpftrace_missing() is not None, reason=str(bpftrace_missing()))
def test_traces_of_long_names(all_names_long):
    traces = (("burst", "--empty"), ("latency",), ("drops",), ("gaps",))
    name = all_names_long.prefix
    printed = together(lambda what: check([RINGTAP, "trace", *what, "--duration", "0.3s", name]), traces)
    for what, said in zip(traces, printed, strict=True):
        assert name in said, what
        assert_fits(said)
