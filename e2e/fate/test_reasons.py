# SPDX-License-Identifier: BSD-3-Clause
"""Reasons that applications give for their drops, by ringtap_reason()."""

import collections
import csv
import json
import os
import shutil
import signal

import pytest
from harness.documents import only
from harness.known import Measuring
from harness.paths import RINGTAP
from harness.pcapng import NOT_OFFERED, RX
from harness.proc import Proc, check

PACKETS = int(os.environ.get("RINGTAP_FATES", 20_000)) // 2  # packets of each of two threads
DEED_NOT_OFFERED = 2  # enum deed_fate in rt_deeds.h
TEXTS = None, "acl", "no route"  # rt_deeds gives them
DROPS = "--once", "--duration", "1h", "--json", "--buffer", "16M"
STEADY = ("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", 2000)


def number(packet):
    """Number of a packet of rt_deeds."""
    return int.from_bytes(packet.data[16:24], "little")


def reasons(groups):
    return {row["reason"]: row["packets"] for row in groups}


def test_reasons_are_those_that_the_application_gave(play, closing, record, tmp_path):
    """In drops by count, in a recording by packet, and in explain: exactly."""
    app = play(program="rt_deeds")
    recorder = record(app, "--fates", "-s", "64", "--on-full", "wait")
    drops = closing(Measuring("drops", app, *DROPS))
    app.do(f"run {PACKETS} seed=5 infer=1 log={tmp_path}/log")
    report = drops.json(signal.SIGINT)
    recorder.finish()
    given = (tmp_path / "logreasons").read_bytes()
    fates = (tmp_path / "logfates").read_bytes()
    refused = {n for n, fate in enumerate(fates) if fate == DEED_NOT_OFFERED}
    truth = collections.Counter(TEXTS[given[n]] for n in refused)
    assert len(truth) == 3 and all(not given[n] or n in refused for n in range(len(given)))

    assert report["lost"] == 0 and report["not_offered"] == len(refused)
    assert reasons(report["not_offered_packets"]["reasons"]) == truth

    file = recorder.file()
    by_id = {p.id: number(p) for p in file.packets if p.direction == RX}
    found = {by_id[f.id]: file.reasons.get((f.id >> 60, f.why)) for f in file.fates if f.fate == NOT_OFFERED}
    assert found == {n: TEXTS[given[n]] for n in refused}

    outcomes = csv.DictReader(check([RINGTAP, "explain", "--timeout", "1000s", "--csv", recorder.out]).splitlines())
    found = {by_id[int(o["id"])]: o["reason"] or None for o in outcomes if o["fate"] == "not_offered"}
    assert found == {n: TEXTS[given[n]] for n in refused}
    explained = json.loads(check([RINGTAP, "explain", "--timeout", "1000s", "--json", recorder.out]))
    del truth[None]
    assert reasons(explained["fates"]["not_offered_by_reason"]) == truth
    text = check([RINGTAP, "explain", "--timeout", "1000s", recorder.out])
    assert "Not offered, by reason" in text and "no route" in text


def test_reasons_of_ringtap_fwd(fwd, closing):
    """Its sink gives one for each packet, and stops when nobody listens."""
    app = fwd(*STEADY).running()
    for _ in range(3):
        report = closing(Measuring("drops", app, "--once", "--duration", "1s", "--json")).json()
        packets = report["not_offered_packets"]
        assert packets["packets"] > 500
        # A packet that was received before the probe found the program has none.
        assert reasons(packets["reasons"])["sink"] == packets["packets"]
    text = check([RINGTAP, "drops", app.prefix, "--once", "--duration", "1s"])
    assert "By reason, as the application gave it" in text
    flows = RINGTAP, "flows", app.prefix, "--fates", "--sample", "1", "--once", "--duration", "1s"
    report = only(json.loads(check([*flows, "--json"])))
    assert sum(reasons(report["not_offered_reasons"]).values()) == sum(f["not_offered"] for f in report["flows"]) > 500
    assert {f["not_offered_reason"] for f in report["flows"] if f["not_offered"]} <= {"sink", None}
    assert "By reason, as the application gave it" in check([*flows])


@pytest.mark.nightly
def test_readers_come_and_go(fwd):
    app = fwd(*STEADY).running()
    for _ in range(100):
        check([RINGTAP, "drops", app.prefix, "--once", "--duration", "20ms"])
    report = app.stop()
    assert report.role("sink")["sequence"]["lost"] == 0


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("bpftrace"), reason="needs bpftrace")
def test_tracers_have_the_reason(fwd, closing):
    """By the USDT event's semaphore, without a reader."""
    app = fwd(*STEADY).running()
    program = app.proc.pid
    probe = f"usdt:/proc/{program}/exe:ringtap:reason"
    script = f"{probe} {{ @[str(arg1)] = count(); }} interval:s:1 {{ exit(); }}"
    out = closing(Proc(["bpftrace", "-p", program, "-e", script]))
    out.expect(r"@\[sink\]: \d+")
