# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap top --collectors devices` beside DPDK's own programs and telemetry, under load."""

import contextlib
import json

import pytest
from harness import dpdk
from harness.flight import Flight
from harness.ovs import Guest
from harness.paths import BUILD, RINGTAP, private_folder
from harness.play import Play
from harness.proc import Proc, check, until
from harness.view import document_of

pytestmark = pytest.mark.nightly

CRYPTO = [
    "throughput",
    "--silent",
    "--optype",
    "cipher-only",
    "--cipher-algo",
    "null",
    "--cipher-op",
    "encrypt",
    "--cipher-key-sz",
    "0",
    "--cipher-iv-sz",
    "0",
    "--total-ops",
    "400000000",
]
EVENTS = ["--test=perf_queue", "--plcores=2", "--wlcores=3", "--stlist=p", "--nb_pkts=0"]
LCORES = ["-s", "0x1", "--lcores", "0@0,1@0,2@1,3@1", "--main-lcore", "1"]  # lcore 0 schedules; in this order


class Stock:
    """A program of DPDK's, with the probe."""

    def __init__(self, plugin, program, vdev, *args, lcores="0,1", eal=()):
        self.prefix = dpdk.new_prefix("stock")
        eal = dpdk.eal_args(self.prefix, plugin, [vdev], lcores=lcores, extra=eal)
        self.proc = Proc([program, *eal, "--", *args])

    def ask(self, command):
        with contextlib.suppress(OSError):
            return next(iter(dpdk.telemetry(self.prefix, command).values()))

    def close(self):
        self.proc.close()


def devices(prefix):
    doc = json.loads(check([RINGTAP, "top", "--once", "--json", "--collectors", "devices", prefix]))
    return doc["applications"][0]["devices"]


def assert_between(shown, before, after):
    """The names are the same; values were read between the two."""
    assert set(shown) == set(before)
    for name, value in shown.items():
        low, high = sorted((before[name], after[name]))
        assert low <= value <= high, name


def test_a_crypto_device(plugin, closing):
    args = ["--ptest", *CRYPTO, "--devtype", "crypto_null"]
    app = closing(Stock(plugin, "dpdk-test-crypto-perf", "crypto_null0", *args))
    before = until(lambda: counting(app.ask("/cryptodev/stats,0"), "enqueued_count"), what="the device works")
    shown = devices(app.prefix)
    assert_between({d["name"]: d["value"] for d in shown}, before, app.ask("/cryptodev/stats,0"))
    assert {(d["kind"], d["device"], d["index"], d["part"]) for d in shown} == {("cryptodev", "crypto_null0", 0, None)}


def counting(stats, name):
    return stats if stats and stats.get(name) else None


def test_an_eventdev(plugin, closing):
    """Only counters, which never fall, are compared; levels change at any time."""
    app = closing(Stock(plugin, "dpdk-test-eventdev", "event_sw0", *EVENTS, lcores=None, eal=LCORES))
    parts = {
        None: "dev_xstats,0",
        "port 0": "port_xstats,0,0",
        "port 1": "port_xstats,0,1",
        "queue 0": "queue_xstats,0,0",
    }
    ask = {part: f"/eventdev/{command}" for part, command in parts.items()}
    until(lambda: counting(app.ask(ask[None]), "dev_rx"), what="the device works")
    before = {part: app.ask(command) for part, command in ask.items()}
    shown = devices(app.prefix)
    after = {part: app.ask(command) for part, command in ask.items()}
    for part in parts:
        mine = {d["name"]: d["value"] for d in shown if d["part"] == part}
        # DPDK's telemetry leaves out names with a hyphen.
        assert {name for name in mine if "-" not in name} == set(before[part])
        counters = [name for name in mine if name.endswith(("_rx", "_tx", "_drop", "sched_calls"))]
        assert counters
        for name in counters:
            assert before[part][name] <= mine[name] <= after[part][name], name
    assert {(d["kind"], d["index"]) for d in shown} == {("eventdev", 0)}


def test_a_dma_device(plugin, closing):
    """Its copies to a guest are counted by channel."""
    if not (BUILD / "e2e" / "rt_dma").exists():
        pytest.skip("DPDK before 22.07")
    path = private_folder() / "guest.sock"
    host = closing(Play(plugin, program="rt_dma", eal=["--vdev", "dma_skeleton0", "--", path]))
    closing(Guest(path))
    until(lambda: host.one("count"), what="the guest is connected")
    host.do("send 300")
    until(lambda: host.do("count")[3] == 300, what="all are copied")
    truth = dpdk.telemetry(host.prefix, "/dmadev/stats,0,0")["/dmadev/stats"]
    shown = devices(host.prefix)
    assert {d["name"]: d["value"] for d in shown} == {
        "submitted": truth["submitted"],
        "completed": truth["completed"],
        "errors": 0,
    }
    assert truth["submitted"] >= 300
    assert {(d["kind"], d["device"], d["part"]) for d in shown} == {("dmadev", "dma_skeleton0", "channel 0")}


def test_what_a_device_counts_makes_an_incident(plugin, closing, tmp_path):
    """Also where no packet passes a port; the page has the statistic."""
    args = ["--ptest", *CRYPTO, "--devtype", "crypto_null"]
    app = closing(Stock(plugin, "dpdk-test-crypto-perf", "crypto_null0", *args, eal=["--vdev", "net_null0"]))
    until(lambda: counting(app.ask("/cryptodev/stats,0"), "enqueued_count"), what="the device works")
    condition = "device crypto_null0 enqueued_count > 10/s"
    flight = closing(Flight(app, tmp_path / "kept", "--before", "2s", "--after", "100ms", "--on", condition))
    (incident,) = flight.incidents(1)[:1]
    document = document_of(incident.folder / "index.html")
    assert {f["name"]: f["value"] for f in document["facts"]}["condition"] == condition
    (panel,) = [p for p in document["panels"] if "enqueued_count" in p["title"] or p.get("id") == "xstat"]
    assert max(v for s in panel["series"] for v in s["values"] if v is not None) > 10
    flight.finish()
