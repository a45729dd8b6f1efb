# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap flight --fates`: what became of the packets of an incident."""

import json

import pytest
from harness.flight import command, panel
from harness.paths import RINGTAP
from harness.pcapng import NOT_OFFERED, OPEN, RX
from harness.proc import check


def test_an_incident_says_what_was_freed_and_what_is_held(app, keep):
    recorder = keep(app, "--fates", "--before", "60s", "--after", "100ms")
    app.do("hold 1")
    app.rx(n=7)
    app.do("hold 0")
    app.rx(n=5)
    command("trigger", recorder.folder)
    (incident,) = recorder.incidents(1)
    file = incident.file
    ids = [p.id for p in file.packets if p.direction == RX]
    assert len(ids) == 12 and file.fates_begin
    fates = {f.id: f.fate for f in file.fates}
    assert [fates[i] for i in ids] == [OPEN] * 7 + [NOT_OFFERED] * 5
    counts = [(c.received, c.open, c.not_offered, c.lost) for c in file.fate_counts if c.received]
    assert counts == [(12, 7, 5, 0)]
    # The page, and explain, name them.
    table = panel(incident, "unsent")
    column = [c["name"] for c in table["columns"]].index("what became of it")
    became = [row[column] for row in table["rows"]]
    assert became[:7] == ["open: the application still had it"] * 7
    assert len(became) == 12 and all(b.startswith("not sent: freed, noticed after ") for b in became[7:])
    explained = json.loads(check([RINGTAP, "explain", incident.folder, "--json"]))["fates"]
    assert (explained["open"], explained["not_offered"], explained["offered"]) == (7, 5, 0)
    recorder.finish()


def test_what_is_forwarded_is_not_among_them(stream, keep):
    """The sink of port b frees what it receives."""
    recorder = keep(stream, "--fates", "--before", "1s", "--after", "100ms")
    command("trigger", recorder.folder)
    (incident,) = recorder.incidents(1)
    recorder.finish()
    table = panel(incident, "unsent")
    names = [c["name"] for c in table["columns"]]
    rows = [dict(zip(names, row)) for row in table["rows"]]
    assert len(rows) == 1000 and {row["port"] for row in rows} == {"net_ring_b"}
    assert all(row["what became of it"].startswith(("not sent: ", "open: ")) for row in rows)
    explained = json.loads(check([RINGTAP, "explain", incident.folder, "--json"]))["fates"]
    assert explained["offered"] >= 1000 and not explained["unknown"]


@pytest.mark.nightly
def test_the_page_names_the_reasons(fwd, keep):
    """The sink of ringtap-fwd gives one for each packet."""
    app = fwd("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", 2000).running()
    recorder = keep(app, "--fates", "--before", "1s", "--after", "100ms")
    command("trigger", recorder.folder)
    (incident,) = recorder.incidents(1)
    recorder.finish()
    table = panel(incident, "unsent")
    column = [c["name"] for c in table["columns"]].index("what became of it")
    became = [row[column] for row in table["rows"]]
    assert became and all(b.startswith(("not sent: sink, freed, noticed after ", "open: ")) for b in became)
    assert any(b.startswith("not sent: sink, ") for b in became)
