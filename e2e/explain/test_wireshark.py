# SPDX-License-Identifier: BSD-3-Clause
"""The Lua plugin in tshark: latency, peer frames and fate of each packet of a file whose truth is known."""

import shutil

import pytest
from harness.paths import REPO, RINGTAP
from harness.proc import check, run
from harness.traced import RX, START, TX, Plan, Writer

pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")

PLUGIN = REPO / "extcap" / "ringtap.lua"
FIELDS = ("frame.number", "ringtap.fate", "ringtap.latency", "ringtap.peer", "ringtap.times", "ringtap.copy")
SENT, NOT_SENT, MADE, UNKNOWN = "1234"
TWICE = ("-2", "-Y", "frame")  # without a filter, the first pass of tshark reads no fields


def tshark(path, *args):
    done = run(["tshark", "-X", f"lua_script:{PLUGIN}", "-r", path, *args])
    assert done.returncode == 0 and "Lua" not in done.stderr, done.stderr
    return done.stdout


def table(path, *args):
    fields = [word for name in FIELDS for word in ("-e", name)]
    lines = tshark(path, *args, "-T", "fields", *fields).splitlines()
    return {int(line.split("\t")[0]): tuple(line.split("\t")[1:]) for line in lines}


def seconds(ns):
    return f"{ns / 1e9:.9f}"


def expected(plan, twice):
    """Fields of each frame. On one pass, what comes later in the file is not known."""
    out = {}
    for r in plan.received:
        peers = ",".join(str(s.number) for s in r.sendings)
        if not twice:
            out[r.number] = ("",) * 5
        elif r.sendings:
            out[r.number] = (SENT, seconds(r.sendings[0].ns - r.ns), peers, str(len(r.sendings)), "")
        else:
            out[r.number] = (NOT_SENT, "", "", "", "")
        for copy, s in enumerate(r.sendings):
            out[s.number] = (SENT, seconds(s.ns - r.ns), str(r.number), "", str(copy))
    out.update({s.number: (MADE, "", "", "", "") for s in plan.made})
    out.update({s.number: (UNKNOWN, "", "", "", "") for _, s in plan.unknown})
    return out


@pytest.fixture(scope="module")
def plan():
    return Plan(7, packets=600)


@pytest.fixture(scope="module")
def traced(plan, tmp_path_factory):
    return plan.write(Writer()).write(tmp_path_factory.mktemp("lua") / "trace.pcapng")


@pytest.mark.smoke
def test_every_frame_has_its_fields(traced, plan):
    """On two passes and on one, in filters and in columns."""
    for passes in (TWICE, ()):
        assert table(traced, *passes) == expected(plan, bool(passes))
    slow = {s.number for r in plan.received for s in r.sendings if s.ns - r.ns > 100_000}
    slow |= {r.number for r in plan.received if r.sendings and r.sendings[0].ns - r.ns > 100_000}
    found = tshark(traced, "-2", "-Y", "ringtap.latency > 0.0001", "-T", "fields", "-e", "frame.number")
    assert set(map(int, found.split())) == slow != set()
    # A column that Wireshark would sort by.
    column = tshark(traced, *TWICE, "-o", 'gui.column.format:"No.","%m","Latency","%Cus:ringtap.latency"')
    first = plan.received[0].number
    shown = {int(line.split()[0]): line.split()[1:] for line in column.splitlines()}
    assert shown[first] == ([expected(plan, True)[first][1]] if plan.received[0].sendings else [])


def test_fates_and_ids(tmp_path):
    """A plugin does not get blocks of fates, but comments: of an annotated recording."""
    w = Writer()
    w.interface("p0")
    w.fates(1)
    for id in range(1, 6):
        w.packet(0, START + id, bytes(60), RX, 0, id)
    w.packet(0, START + 10, bytes(60), TX, 0, 1)
    w.packet(0, START + 11, bytes(60), TX, 0, 2)  # a copy
    w.fates(4, [(0, 254, b"acl")])
    w.fates(
        2,
        [
            (2, START + 1_500_000_002, 0, 0, 1, 254),
            (3, START + 30, 0, 0, 3),
            (4, START + 30, 0, 0, 2),
            (5, START + 40, 0, 0, 4),
        ],
    )
    w.fates(3)
    out = tmp_path / "annotated.pcapng"
    check([RINGTAP, "explain", w.write(tmp_path / "fates.pcapng"), "--annotate", out])
    fields = [
        word
        for name in ("frame.number", "ringtap.fate", "ringtap.noticed", "ringtap.peer", "ringtap.reason")
        for word in ("-e", name)
    ]
    found = [tuple(line.split("\t")) for line in tshark(out, *TWICE, "-T", "fields", *fields).splitlines()]
    assert found == [
        ("1", SENT, "", "6", ""),
        ("2", "5", "1.500000000", "7", "acl"),
        ("3", "7", "", "", ""),
        ("4", "8", "", "", ""),
        ("5", "6", "", "", ""),
        ("6", SENT, "", "1", ""),
        ("7", SENT, "", "2", ""),
    ]
    # One pass is enough for these, and for a column that Wireshark would sort by.
    column = tshark(
        out, "-Y", "ringtap.fate == 5", "-o", 'gui.column.format:"No.","%m","Noticed","%Cus:ringtap.noticed"'
    )
    assert column.split() == ["2", "1.500000000"]

    # Files without ids have no fields, and ids of two applications are two.
    w = Writer()
    w.interface("p0")
    w.packet(0, START, bytes(60), RX, 0)
    w.packet(0, START + 1, bytes(60), TX, 0)
    assert set(table(w.write(tmp_path / "plain.pcapng"), *TWICE).values()) == {("",) * 5}
    w = Writer()
    w.interface("a:p0", "a")
    w.interface("b:p0", "b")
    w.interface("own", description="described by the user")  # belongs to the first application
    w.packet(0, START, bytes(60), RX, 0, 1)
    w.packet(1, START + 1, bytes(60), TX, 0, 1)
    w.packet(2, START + 2, bytes(60), TX, 0, 1)
    found = table(w.write(tmp_path / "two.pcapng"), *TWICE)
    assert [found[n][0] for n in (1, 2, 3)] == [SENT, UNKNOWN, SENT] and found[1][2] == "3"
