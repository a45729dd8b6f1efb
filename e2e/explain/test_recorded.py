# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap explain` on what `ringtap record --ids` records, against a join in Python and what the application does."""

import csv
import io
import json

import pytest
from harness import pcap
from harness.paths import RINGTAP
from harness.pcapng import RX, TX
from harness.proc import check

ID = 5  # option of a record
FRAMES = 600


def explain(path, *args):
    return check([RINGTAP, "explain", path, *args])


def joined(file):
    """(rx frame, tx frame, latency) of each sending whose packet was received, and the received frames of the rest."""
    last, sendings, sent = {}, set(), set()
    received = set()
    for n, p in enumerate(file.packets, 1):
        id = p.number(ID)
        if id is None:
            continue
        if p.direction == RX:
            last[id] = n, p.ns
            received.add(n)
        elif id in last:
            sendings.add((last[id][0], n, p.ns - last[id][1]))
            sent.add(last[id][0])
    return sendings, received - sent


def assert_as_joined(recorder):
    """Returns the numbers of the report."""
    file = recorder.file()
    rows = list(csv.DictReader(io.StringIO(explain(recorder.out, "--csv", "--timeout", "1h"))))
    sendings, unsent = joined(file)
    assert sendings == {
        (int(r["rx_frame"]), int(r["tx_frame"]), int(r["latency_ns"])) for r in rows if r["fate"] == "sent"
    }
    assert unsent == {int(r["rx_frame"]) for r in rows if r["fate"] in ("open", "not_sent", "let_go")}
    j = json.loads(explain(recorder.out, "--json", "--timeout", "1h"))
    assert j["sent"] + j["copies"] == len(sendings) and j["received"] == j["sent"] + len(unsent)
    assert j["made"] == sum(p.direction == TX and p.number(ID) is None for p in file.packets)
    return j


@pytest.mark.smoke
def test_ringtap_fwd(fwd, record):
    """The recording has the packets of the generator, of a forwarder in another thread, and of the sink."""
    app = fwd(
        "--ring",
        "a",
        "--ring",
        "b",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@1",
        "--role",
        "sink:b@0",
        "--rate",
        "20k",
        "--duration",
        "60s",
    ).running()
    recorder = record(app, "--ids", "-c", "20000")
    recorder.done()
    app.stop()
    j = assert_as_joined(recorder)
    pairs = {(p["rx_port"]["name"], p["tx_port"]["name"]): p["latency"]["packets"] for p in j["pairs"]}
    assert set(pairs) == {("net_ring_a", "net_ring_b")} and pairs["net_ring_a", "net_ring_b"] > 1000
    assert j["made"] > 1000 and j["reordered"] == 0
    # What port b receives goes to the sink.
    unsent = {u["rx_port"]["name"]: u["packets"] for u in j["not_sent_by_protocol"]}
    assert not unsent  # with a timeout of an hour they are open
    assert (
        json.loads(explain(recorder.out, "--json", "--timeout", "1ms"))["not_sent_by_protocol"][0]["rx_port"]["name"]
        == "net_ring_b"
    )


@pytest.fixture
def ports(testpmd, tmp_path):
    """A testpmd whose two ports receive numbered frames."""

    def start(mode):
        frames = [
            bytes.fromhex("02000000000202000000000188b5") + n.to_bytes(2, "big") + bytes(50) for n in range(FRAMES)
        ]
        file = pcap.write(tmp_path / "in.pcap", frames)
        app = testpmd(
            *(f"net_pcap{i},rx_pcap={file},tx_pcap={tmp_path}/out{i}.pcap" for i in (0, 1)), args=("--no-flush-rx",)
        )
        app.cmd(f"set fwd {mode}")
        return app

    return start


def recorded(app, record, option, packets):
    recorder = record(app, option, "-c", str(packets))
    app.start()
    recorder.done()
    app.stop()
    return recorder


def test_testpmd(ports, record):
    """In mac mode, testpmd resets the flags of what it sends: without --infer-ids nothing is sent with an id."""
    j = assert_as_joined(recorded(ports("mac"), record, "--infer-ids", 4 * FRAMES))
    assert (j["received"], j["sent"], j["copies"]) == (2 * FRAMES, 2 * FRAMES, 0)
    assert {k: v["packets"] for k, v in j["changes"].items() if v["packets"]} == dict.fromkeys(
        ("src_mac", "dst_mac"), 2 * FRAMES
    )
    assert {(p["rx_port"]["name"], p["tx_port"]["name"]) for p in j["pairs"]} == {
        ("net_pcap0", "net_pcap1"),
        ("net_pcap1", "net_pcap0"),
    }
    j = assert_as_joined(recorded(ports("mac"), record, "--ids", 4 * FRAMES))
    assert (j["sent"], j["open"], j["made"]) == (0, 2 * FRAMES, 2 * FRAMES)
    assert any("--infer-ids" in note for note in j["notes"])
