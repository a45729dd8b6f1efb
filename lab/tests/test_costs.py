# SPDX-License-Identifier: BSD-3-Clause
"""The experiments overhead, pdump and capture compute results from programs' output, and repeat failed measurements."""

import contextlib
import json
import struct
from types import SimpleNamespace

import pytest
from fakes import lab
from ringtap_lab.report import overhead_view, pdump_view
from ringtap_lab.run import attached, overhead_ways
from ringtap_lab.run.experiment import Cell
from ringtap_lab.run.experiments import capture, overhead, pdump
from ringtap_lab.tools import process
from ringtap_lab.tools.errors import Trouble, Unavailable

# overhead


class Subject:
    """rates: of its application, in turn."""

    def __init__(self, *rates):
        self.rates, self.lab, self.app = list(rates), None, SimpleNamespace(obituary=lambda: " (ended)")

    def rate(self):
        return self.rates.pop(0)

    fastest = rate


def tool(counts=None, events=None):
    @contextlib.contextmanager
    def run(*_):
        yield SimpleNamespace(counts=lambda: counts, events=lambda: events, finish=lambda: None)

    return run


@pytest.mark.parametrize(
    "counts, captured_pps, loss",
    [
        (attached.Counts(90, 0, 10), 90.0, 0.1),
        (attached.Counts(0, 100, 0), 0.0, 0.0),
        (attached.Counts(50, 25, 25), 50.0, 1 / 3),
        (attached.Counts(0, 0, 0), 0.0, 0.0),
    ],
)
def test_captured_packets(counts, captured_pps, loss):
    v = overhead_ways.captured(tool(counts))(Subject(100.0))
    assert v == {
        "pps": 100.0,
        "seen": counts.captured + counts.filtered + counts.lost,
        "captured": counts.captured,
        "filtered": counts.filtered,
        "lost": counts.lost,
        "captured_pps": captured_pps,
        "loss": pytest.approx(loss),
    }


def test_each_burst_has_an_event(monkeypatch):
    monkeypatch.setattr(attached, "Top", tool())
    v = overhead_ways.traced(tool(events=(1000, 32000, 5)))(Subject(100e6, 50e6))
    assert v["hooks_pps"] == 100e6 and v["pps"] == 50e6
    assert (v["events"], v["lost_events"], v["per_event"]) == (1000, 5, 32)
    assert v["event_ns"] == pytest.approx((20 - 10) * 32)
    with pytest.raises(RuntimeError, match="nothing was traced"):
        overhead_ways.traced(tool(events=(0, 0, 0)))(Subject(100e6, 50e6))


def test_cost_of_a_tool():
    v = overhead.compared({"pps": 80e6, "hooks_pps": 90e6}, 100e6, drift=0.01).values
    assert v["change"] == pytest.approx(-0.2) and v["hooks_change"] == pytest.approx(-0.1)
    assert v["added_ns"] == pytest.approx(2.5) and v["untouched_pps"] == 100e6 and v["drift"] == 0.01


@pytest.fixture
def subjects(monkeypatch):
    """Applications, by turns."""
    found = []

    @contextlib.contextmanager
    def testpmd(_lab, _way):
        yield found.pop(0)

    monkeypatch.setattr(overhead, "testpmd", testpmd)
    return found


def test_tool_is_compared_with_before_and_after(subjects):
    way = overhead_ways.Way("x-on", None, lambda s: {"pps": s.fastest()})
    subjects.append(Subject(100.0, 80.0, 110.0))
    v = overhead.within(lab(), way).values
    assert (
        v["untouched_pps"] == 105.0 and v["drift"] == pytest.approx(0.1) and v["change"] == pytest.approx(80 / 105 - 1)
    )
    hurting = overhead_ways.Way("x-on", None, lambda s: {"pps": s.fastest()}, steady=False)
    subjects.append(Subject(100.0, 80.0))
    assert overhead.within(lab(), hurting).values["untouched_pps"] == 100.0


def test_application_that_a_tool_ends_is_replaced(subjects):
    def measure(subject):
        if not subject.rates:
            raise OSError("gone")
        return subject.rate()

    way = overhead_ways.Way("x-on", None, None, steady=False)
    subjects += [Subject(), Subject(), Subject(7.0)]
    assert overhead.alive(lab(), way, measure) == 7.0
    subjects += [Subject()] * 3
    with pytest.raises(RuntimeError, match=r"gone \(ended\)"):
        overhead.alive(lab(), way, measure)
    subjects[:] = [Subject()]
    with pytest.raises(RuntimeError, match="gone"):  # a tool that hurts none has one attempt
        overhead.alive(lab(), overhead_ways.Way("y-on", None, None), measure)
    subjects[:] = [Subject()]
    with pytest.raises(Unavailable):
        overhead.alive(lab(), way, lambda s: (_ for _ in ()).throw(Unavailable("no such tool")))


def test_disturbed_measurement_is_repeated(subjects, monkeypatch):
    """The one with the least drift counts."""
    way = overhead_ways.Way("x-on", None, lambda s: {"pps": s.fastest()})
    monkeypatch.setattr(overhead, "WAYS", [way])
    subjects += [Subject(100.0, 80.0, 150.0), Subject(100.0, 81.0, 110.0), Subject(100.0, 82.0, 103.0)]
    assert overhead.EXPERIMENT.run(lab(), Cell("x-on"), 0).values["pps"] == 82.0
    subjects += [Subject(100.0, 80.0, 150.0), Subject(100.0, 81.0, 110.0)]
    assert overhead.EXPERIMENT.run(lab(spare_s=0.0), Cell("x-on"), 0).values["pps"] == 80.0
    assert len(subjects) == 1


def test_what_is_off_is_compared_between_processes(subjects, monkeypatch):
    """The fastest of three processes each, with and without by turns."""
    way = overhead_ways.Way("x-off", None, overhead_ways.idle, lives=True)
    subjects += [Subject(rate) for rate in (100.0, 90.0, 110.0, 95.0, 105.0, 93.0)]
    v = overhead.between(lab(), way, 0).values
    assert (v["untouched_pps"], v["pps"]) == (110.0, 95.0) and v["spread"] == pytest.approx(0.1)


def test_every_row_is_measured():
    keys = {way.key for way in overhead_ways.WAYS}
    rows = overhead_view.ROWS
    assert {key for r in rows for key in (r.off, r.on) if key} == keys
    assert len(keys) == len(overhead_ways.WAYS)


# Programs that capture


def printed(program, *texts):
    """The program as after its end, when it has printed these texts."""
    program.finish = lambda end=True: texts
    return program


def finished(kind, *texts, **attributes):
    it = kind.__new__(kind)
    it.name, it.seconds = "it", None
    for name, value in attributes.items():
        setattr(it, name, value)
    return printed(it, *texts)


SUMMARY = {"written": 5, "captured": 7, "filtered": 2, "lost_total": 1, "duration_ns": 500_000_000}


@pytest.mark.parametrize("seconds, captured", [(None, 7), (1, 5)])
def test_counts_of_ringtap_record(seconds, captured):
    counts = finished(attached.Record, json.dumps(SUMMARY), seconds=seconds).counts()
    assert counts == attached.Counts(captured, 2, 1, 0.5) and counts.seen == captured + 3


def test_counts_of_write_modes():
    text = {"captured": 7, "packets": 7, "filtered": 0, "lost": 1, "seconds": 2.0}
    assert finished(attached.WriteMode, json.dumps(text)).counts() == attached.Counts(7, 0, 1, 2.0)
    with pytest.raises(RuntimeError, match="7 packets captured, 6 handed on"):
        finished(attached.WriteMode, json.dumps({**text, "packets": 6})).counts()


DUMPCAP = "Packets received/dropped on interface 'a': 100/10 (90.9)\nPackets received/dropped on interface 'b': 50/0 (100.0)\n"


def test_counts_of_dumpcap():
    assert finished(attached.Dumpcap, "", DUMPCAP).counts() == attached.Counts(140, 0, 10)
    assert finished(attached.Dumpcap, "", DUMPCAP).counts(passes=False) == attached.Counts(0, 150, 10)
    broken = finished(attached.Dumpcap, "", "Segmentation fault")
    broken.failed = lambda how: RuntimeError(how)
    with pytest.raises(RuntimeError, match="did not print its counters"):
        broken.counts()


def test_counts_of_pdump():
    app = SimpleNamespace(received=lambda: (1.0, 1000))
    it = finished(attached.Pdump, " packets dequeued:\t\t\t400\n packets dequeued: 100\n", "", app=app, before=300)
    assert it.counts() == attached.Counts(500, 0, 200)


def test_dumpcap_that_writes_what_its_filter_drops(tmp_path):
    path = tmp_path / "file"
    for packets in (0, 2):
        path.write_bytes(packets * (struct.pack("<II", 6, 12) + bytes(4)))
        it = finished(overhead_ways.DumpcapOfNothing, "", DUMPCAP, path=str(path))
        with pytest.raises(RuntimeError, match="wrote 2 packets") if packets else contextlib.nullcontext():
            assert it.counts() == attached.Counts(0, 150, 10)
        assert not path.exists()


def test_packets_in_a_file():
    block = struct.pack("<II", 6, 12) + bytes(4)
    other = struct.pack("<II", 1, 16) + bytes(8)
    assert attached.packets_in(other + 3 * block + other) == 3
    with pytest.raises(RuntimeError):
        attached.packets_in(struct.pack("<II", 6, 0))


def test_events_of_bpftrace():
    lines = [
        {"type": "attached_probes", "data": {"probes": 1}},
        {"type": "map", "data": {"@events": 10}},
        {"type": "map", "data": {"@packets": 320}},
        {"type": "lost_events", "data": {"events": 3}},
    ]
    it = finished(attached.Bpftrace, "listening\n" + "\n".join(map(json.dumps, lines)))
    assert it.events() == (10, 320, 3)


def test_events_of_trace_burst():
    queues = {"applications": [{"queues": [{"calls": 3, "packets": 96}, {"calls": 1, "packets": 4}]}]}
    assert finished(attached.TraceBurst, json.dumps(queues)).events() == (4, 100, 0)


def test_events_of_dpdks_tracing():
    def answers(*rows):
        found = [
            {"status": 0, **{kind: {"rx_burst": n} for kind, n in zip(("emitted", "lost", "lost_earlier"), row)}}
            for row in rows
        ]
        return SimpleNamespace(telemetry=SimpleNamespace(ask=lambda command: found.pop(0)))

    it = overhead_ways.DpdkTracing(SimpleNamespace(app=answers((5, 2, 2), (5, 2, 2), (105, 42, 10))))
    with it:
        assert it.events() == (100, 100 * overhead_ways.BURST, 32)
    failing = SimpleNamespace(telemetry=SimpleNamespace(ask=lambda command: {"status": -1, "error": "no memory"}))
    with (
        pytest.raises(RuntimeError, match="/ringtap/trace: no memory"),
        overhead_ways.DpdkTracing(SimpleNamespace(app=failing)),
    ):
        pass


def test_missing_tool_names_its_package():
    def without(name, package):
        raise Trouble(f"{name} is not installed: apt install {package}")

    with pytest.raises(Unavailable, match="dpdk-dumpcap is not installed: apt install dpdk-dev"):
        attached.installed(SimpleNamespace(tool=without), "dpdk-dumpcap", "dpdk-dev")


def test_share_of_the_time_that_a_task_waits():
    assert process.waiting_share((1.0, 0.0, 0.5), (3.0, 1.0, 1.0)) == 0.25
    for pair in ((None, (1.0, 0.0, 0.0)), ((1.0, 0.0, 0.0), None), ((1.0, 0.0, 0.0), (1.0, 0.0, 1.0))):
        assert process.waiting_share(*pair) == 0.0


# pdump


@pytest.mark.parametrize("size, pps", [(64, 2 * 14_880_952), (512, 2 * 2_349_624)])
def test_line_rate(size, pps):
    assert pdump_view.line_pps(size) == pytest.approx(pps, rel=1e-6)


def test_share_of_the_line():
    counts = attached.Counts(75, 0, 25)
    v = {**pdump.captured(counts, 1e6, 64), **pdump.forwarded(2e6, 64)}
    assert v["captured_pps"] == pytest.approx(0.75e6) and v["loss"] == 0.25
    for what in ("captured", "forwarded"):
        assert v[f"{what}_bps"] == pytest.approx(v[f"{what}_pps"] * 84 * 8)
        assert v[f"{what}_line"] == pytest.approx(v[f"{what}_pps"] / pdump_view.line_pps(64))


@pytest.mark.parametrize("way, directions", [("dumpcap", 2), ("batch", 1)])
def test_dumpcap_captures_both_directions(monkeypatch, way, directions):
    monkeypatch.setattr(pdump, "tool", lambda *_: tool(attached.Counts(80, 0, 20))())
    rates = [10e6, 8e6]
    app = SimpleNamespace(rate_of_own_time=lambda seconds: rates.pop(0), polling_times=lambda: None)
    v = pdump.at_the_limit(lab(pdump_seconds=None), app, way, 64).values
    assert v["captured_pps"] == pytest.approx(directions * 8e6 * 0.8)
    assert v["of_untouched"] == pytest.approx(0.8) and v["untouched_pps"] == 10e6
    rates.append(10e6)
    assert set(pdump.at_the_limit(lab(pdump_seconds=None), app, "untouched", 64).values) == {
        "forwarded_pps",
        "forwarded_bps",
        "forwarded_line",
    }


@pytest.mark.parametrize("way, attempts", [("dumpcap", pdump.ATTEMPTS), ("batch", 1)])
def test_dumpcap_may_end_the_application(monkeypatch, way, attempts):
    started = []
    app = SimpleNamespace(obituary=lambda: " (ended)", stop=lambda: None)
    monkeypatch.setattr(pdump, "TestPmd", lambda *_: started.append(1) or app)
    monkeypatch.setattr(pdump, "at_the_limit", lambda *_: (_ for _ in ()).throw(OSError("gone")))
    it = lab()
    it.plugin, it.unique = lambda: "probe", lambda kind: kind
    with pytest.raises(RuntimeError, match=r"gone \(ended\)"):
        pdump.EXPERIMENT.run(it, Cell("x", {"way": way, "size": 64, "paced": 0}), 0)
    assert len(started) == attempts


# capture


@pytest.mark.parametrize(
    "driver, message, error",
    [
        ("af_xdp", "cannot make a DPDK port of eth0", Unavailable),
        ("af_xdp", "no such interface", RuntimeError),
        ("af_packet", "cannot make a DPDK port of eth0", RuntimeError),
    ],
)
def test_kernel_without_af_xdp(monkeypatch, driver, message, error):
    monkeypatch.setattr(process.Program, "__enter__", lambda self: (_ for _ in ()).throw(RuntimeError(message)))
    it = lab()
    it.program, it.unique = lambda name: name, lambda kind: kind
    with pytest.raises(error) as found:
        attached.KernelPort(it, SimpleNamespace(prefix=[]), driver).__enter__()
    assert type(found.value) is error


def test_loss_is_what_was_sent_and_not_counted():
    report = SimpleNamespace(role=lambda kind: {"total": {"tx_packets": 1000}})
    counts = {"packets": 990, "dropped": 8, "ifdropped": 1, "user": 0.1, "system": 0.2}
    v = capture.result(report, 2.0, {"system": 0.5}, counts).values
    assert v == {
        "pps": 500.0,
        "system": 0.5,
        "sent": 1000,
        "loss": 0.01,
        "counted": 990,
        "dropped": 8,
        "ifdropped": 1,
        "user_s": 0.1,
        "system_s": 0.2,
    }
    assert "loss" not in capture.result(report, 2.0, {}, None).values
    assert capture.share((10, 100), (30, 180)) == 0.25 and capture.share((0, 5), (0, 5)) == 0


def test_program_that_begins_late_has_another_attempt(monkeypatch):
    attempts = []

    def through_port(lab_, rate, attach_s):
        attempts.append(attach_s)
        if len(attempts) == 1:
            raise capture.Late("late")
        return "found"

    monkeypatch.setattr(capture, "through_port", through_port)
    assert capture.attached_in_time(lab(), 1) == "found" and attempts == [capture.ATTACH_S, 4 * capture.ATTACH_S]
