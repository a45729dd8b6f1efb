# SPDX-License-Identifier: BSD-3-Clause
"""The state of a recorder's clock gets from the kernel into the recording, meta.json and `hops`."""

import json
import subprocess

import pytest
from harness import pcapng
from harness.archiving import START_NS, assert_clean, call, parts
from harness.pcapng_write import File
from harness.proc import check, until
from harness.site import Recorder, Site, archive_command, frame
from ringtap_archive import clocks, decoder, layout

COMMENT, NAME, RESOLUTION = 1, 2, 9
HOUR = layout.HOUR_NS
FRAME = frame("10.0.0.1", "10.0.0.2", 1, 2)
FLOW = ("10.0.0.1", "10.0.0.2", 40000, 53, 17)
# A clock that is set when a file appears, and a kernel that answers as the test likes.
FAKE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	int ret;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	ret = real(clock, ts);
	if (clock == CLOCK_REALTIME && !access(getenv("FAKE_SET"), F_OK))
		ts->tv_sec -= 7;
	return ret;
}

int adjtimex(struct timex *t)
{
	t->status = getenv("FAKE_UNSYNCHRONIZED") ? STA_UNSYNC : 0;
	t->maxerror = 1234;
	t->esterror = 56;
	return 0;
}
"""


def of_interface(text, name=b"eth0"):
    return (1, 0, (COMMENT, text.encode()), (NAME, name), (RESOLUTION, b"\x09"))


def written(
    path, *reports, start="clock: timestamp=tsc tsc_hz=2600000000 synchronized=yes maxerror_us=100 esterror_us=10"
):
    """A packet and a report at each of these hours: (hour, text)."""
    file = File().section().interface(*of_interface(start)).interface(*of_interface(start, b"eth1"))
    for n, (hour, text) in enumerate(reports):
        at = START_NS + hour * HOUR + n * 1000
        file.packet(FRAME, at).statistics(0, at + 1, (COMMENT, b"NIC: missed=0"), (COMMENT, text.encode()))
        file.statistics(1, at + 2, (COMMENT, b"NIC: missed=0"))
    return file.write(path)


def ingested(tmp_path, path):
    archive = tmp_path / "archive"
    assert call("ingest", "-q", "-A", archive, "--recorder", "a", path) == 0
    return archive


REPORTS = [
    (0, "clock: synchronized=no maxerror_us=16000000 esterror_us=16000000"),
    (0, "clock: synchronized=yes maxerror_us=500 esterror_us=20 set_ns=-1500000000"),
    (1, "clock: synchronized=yes maxerror_us=700 esterror_us=5 later=word"),
    (1, "capture ended by: signal"),
    (1, "clock: synchronized=unknown"),
]
FIRST = {
    "reports": 3,
    "unsynchronized": 1,
    "synchronized": False,
    "max_error_ns": 16 * 10**9,
    "estimated_error_ns": 16 * 10**9,
    "set": [{"time_ns": START_NS + 1001, "by_ns": -1_500_000_000}],
    "set_beyond": 0,
}
SECOND = {
    "reports": 2,
    "unsynchronized": 0,
    "synchronized": True,
    "max_error_ns": 700_000,
    "estimated_error_ns": 5000,
    "set": [],
    "set_beyond": 0,
}


def test_reports_belong_to_their_hour(tmp_path):
    archive = ingested(tmp_path, written(tmp_path / "a.pcapng", *REPORTS))
    found = parts(archive)
    assert [part.meta["clock"] for part in found] == [FIRST, SECOND]
    for part in found:
        assert [(i["timestamp"], i["tsc_hz"]) for i in part.meta["interfaces"]] == [("tsc", 2_600_000_000)] * 2


@pytest.mark.nightly
def test_a_part_of_the_packets(tmp_path, capsys):
    """Packets that record left out on purpose are not lost: the metadata and a warning name the rule."""
    rule = "packets=3 flows=16384 inner"
    for name, text in (("first", "first: " + rule), ("sampled", "sampling: every=8"), ("all", "firstly: x")):
        (tmp_path / name).mkdir()
        archive = ingested(tmp_path / name, written(tmp_path / name / "a.pcapng", (0, "x"), start=text))
        (part,) = parts(archive)
        capsys.readouterr()
        assert call("top", "-A", archive) == 0
        err = capsys.readouterr().err
        assert [i.get("first") for i in part.meta["interfaces"]] == [rule if name == "first" else None] * 2
        assert ("record --first" in err, "record --sample" in err) == (name == "first", name == "sampled")
        assert not part.meta["losses"]


def test_recordings_of_other_programs(tmp_path):
    """Recordings of other programs have no state of a clock."""
    (part,) = parts(
        ingested(tmp_path, File().section().interface().packet(FRAME, START_NS // 1000).write(tmp_path / "a.pcapng"))
    )
    assert part.meta["clock"] is None and "timestamp" not in part.meta["interfaces"][0]
    assert clocks.of_recorders([part]) == {"a": None} and not list(clocks.notes({"a": None}))


@pytest.mark.parametrize(
    "text",
    [
        "clock: ",
        "clock:",
        "clock: =",
        "clock: synchronized",
        "clock: maxerror_us=-1 tsc_hz=x set_ns=",
        "clock: synchronized=yes" + " x=y" * 3000,
        "clock: maxerror_us=99999999999999999999 set_ns=9" + "9" * 30,
        "clock: timestamp=" + "t" * 300,
    ],
)
def test_comments_are_not_trusted(tmp_path, text):
    with decoder.open(written(tmp_path / "a.pcapng", (0, text), start=text)) as d:
        (part,) = d.parts()
        part.finish()
        clock = part.clock
        assert clock is None or (clock["max_error_ns"] is None and clock["synchronized"] in (None, True))


def test_settings_without_end(tmp_path):
    with decoder.open(written(tmp_path / "a.pcapng", *[(0, "clock: set_ns=1")] * 5000)) as d:
        (part,) = d.parts()
        part.finish()
        assert (len(part.clock["set"]), part.clock["set_beyond"]) == (4096, 904)


def test_compact_keeps_it(tmp_path):
    """The second part's file begins with interfaces again, and with their report of another hour."""
    archive = ingested(tmp_path, written(tmp_path / "a.pcapng", *REPORTS))
    other = written(tmp_path / "b.pcapng", (1, "clock: synchronized=no maxerror_us=900 esterror_us=9 set_ns=5"))
    assert call("ingest", "-q", "-A", archive, "--recorder", "a", other) == 0
    before = [part.meta["clock"] for part in parts(archive)]
    assert call("compact", "-A", archive) == 0
    first, joined = parts(archive)
    assert first.meta["clock"] == FIRST and joined.meta["clock"] == clocks.merged(before[1:])
    assert (joined.meta["clock"]["reports"], joined.meta["clock"]["synchronized"]) == (4, False)
    assert_clean(archive)


@pytest.mark.parametrize("lost", ["flows", "meta_path"])
def test_repair_keeps_it(tmp_path, lost):
    """Without a meta.json, the report with which its file's interfaces begin counts for each hour."""
    archive = ingested(tmp_path, written(tmp_path / "a.pcapng", *REPORTS))
    getattr(parts(archive)[1], lost).unlink()
    assert call("verify", "-A", archive, "--repair") == 0
    after = [part.meta["clock"] for part in parts(archive)]
    assert after == [FIRST, SECOND if lost == "flows" else {**SECOND, "reports": 3, "estimated_error_ns": 10_000}]


def test_hops_says_it(tmp_path):
    site = Site(tmp_path, Recorder("a"), Recorder("b"))
    for n in range(100):
        site.send("ab", FLOW, START_NS + n * 10**6, delay=lambda a, b: 1000)
    site.ingest()
    for part, clock in zip(
        sorted(parts(site.archive), key=lambda part: part.recorder),
        (FIRST | {"set": FIRST["set"] * 5}, SECOND | {"set": []}),
    ):
        part.meta_path.write_text(json.dumps(part.meta | {"clock": clock}))
    status, text, errors = archive_command("hops", "-A", site.archive)
    assert status == 0, errors
    assert "a: its clock was not synchronized, by 1 of 3 reports in its recording" in text
    assert (
        text.count("a: its clock was set by -1.50 s, before 2026-03-01T10:00:00") == 3 and "a: and 2 times more" in text
    )
    assert "b: its clock" not in text
    assert site.json("hops")["recorder_clocks"]["b"] == SECOND


# ---- what ringtap record writes


@pytest.fixture
def fake(tmp_path):
    """An environment with a fake clock, and the file that sets it back by 7 seconds."""
    source, library, at = tmp_path / "fake.c", tmp_path / "fake.so", tmp_path / "set"
    source.write_text(FAKE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "FAKE_SET": str(at)}, at


def comments(options):
    return [text.decode() for text in options.get(COMMENT, [])]


def test_ringtap_record(busy, record, tmp_path):
    """ringtap record writes the state of this kernel's clock, and other programs read it."""
    recorder = record(busy, "-c", "1000")
    recorder.done()
    said = [text for interface in recorder.file().interfaces for text in comments(interface.options)]
    assert all(text.startswith("clock: timestamp=tsc tsc_hz=") and " synchronized=" in text for text in said) and said
    assert "clock: timestamp=tsc" in check(["tshark", "-r", recorder.out, "-Y", "frame.number == 1", "-V"]) + check(
        ["capinfos", recorder.out]
    )
    (part,) = parts(ingested(tmp_path, recorder.out))
    clock, (interface, *_) = part.meta["clock"], part.meta["interfaces"]
    assert clock["reports"] == 2 and clock["synchronized"] in (True, False) and clock["set"] == []
    assert interface["timestamp"] == "tsc"
    # Measured in a moment: the bounds are those of any machine.
    assert 0.5e9 < interface["tsc_hz"] < 10e9


def test_recording_whose_clock_is_set(busy, record, fake, tmp_path):
    env, at = fake
    out = tmp_path / "out.pcapng"
    with open(out, "wb") as stdout:
        recorder = record(busy, "-f", "len < 10", out="-", stdout=stdout, env=env)
        at.touch()
        # In statistics of their own: the next ones would come after seconds.
        until(lambda: b"set_ns=" in out.read_bytes(), what="the setting in the file")
        recorder.finish()
    file = pcapng.read(out)
    found = [text for options in file.interfaces[0].stats for text in comments(options) if text.startswith("clock: ")]
    assert [text.partition(" set_ns=")[0] for text in found] == [
        "clock: synchronized=yes maxerror_us=1234 esterror_us=56"
    ] * len(found)
    (setting,) = [int(text.partition(" set_ns=")[2]) for text in found if "set_ns" in text]
    assert abs(setting + 7 * 10**9) < 10**6 and "set_ns" not in found[-1]
    assert not any(
        text.startswith("clock: ") for i in file.interfaces[1:] for options in i.stats for text in comments(options)
    )


def test_recorder_without_synchronization(busy, record, fake, tmp_path):
    env, _ = fake
    recorder = record(busy, "-c", "1000", env=env | {"FAKE_UNSYNCHRONIZED": "1"})
    recorder.done()
    (part,) = parts(ingested(tmp_path, recorder.out))
    clock = part.meta["clock"]
    assert (clock["synchronized"], clock["max_error_ns"], clock["estimated_error_ns"]) == (False, 1_234_000, 56_000)
