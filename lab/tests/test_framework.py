# SPDX-License-Identifier: BSD-3-Clause
"""The framework of ringtap-lab with one experiment: order, resuming, data, page, interrupts."""

import csv
import json
import os
import signal
import statistics

import lab_sample
import pytest
from harness import report
from ringtap_lab.run import cli, runner
from ringtap_lab.run.experiment import Cell
from ringtap_lab.run.lab import Lab
from ringtap_lab.tools import scope, stats
from ringtap_lab.tools.errors import Trouble

STOP = ("--sample-stop", "two0")


@pytest.fixture
def sample(lab, tmp_path):
    return lambda *args, **kwargs: lab("sample", "-w", tmp_path / "out", *args, **kwargs)


def journal(tmp_path):
    return [json.loads(line) for line in (tmp_path / "out" / "sample.jsonl").read_text().splitlines()]


def measured(tmp_path):
    return [(e["repetition"], e["cell"]) for e in journal(tmp_path) if e["event"] == "run"]


def test_mean_and_deviation():
    s = stats.Series()
    assert s.mean() is None and s.deviation() is None
    s.add(2.0)
    assert s.mean() == 2.0 and s.deviation() is None
    for value in (4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0):
        s.add(value)
    assert s.mean() == 5.0
    assert s.deviation() == pytest.approx((32 / 7) ** 0.5)


def test_disturbed_values_count_only_alone():
    s = stats.Series()
    for value, disturbed in ((1.0, 0.0), (5.0, stats.DISTURBED), (3.0, stats.DISTURBED / 2)):
        s.add(value, disturbed)
    assert list(s.calm()) == [1.0, 3.0] and s.calm().summary() == {"median": 2.0, "min": 1.0, "max": 3.0, "n": 2}
    noisy = stats.Series()
    noisy.add(7.0, 0.5)
    assert list(noisy.calm()) == [7.0]
    assert stats.cell(stats.Series()) == "–"
    assert stats.cell(noisy, 10, 2) == "70.00"
    assert stats.cell(s) == "3.0 (1.0–5.0)" and stats.cell(s, 10, 0) == "30 (10–50)"


def test_cells_take_turns_and_can_be_chosen():
    cells = [Cell("dpdk-1"), Cell("dpdk-2"), Cell("packet-1")]
    order = [(r, c.key) for r, c in runner.alternating(cells, 2)]
    assert order == [(0, "dpdk-1"), (0, "dpdk-2"), (0, "packet-1"), (1, "packet-1"), (1, "dpdk-2"), (1, "dpdk-1")]
    assert [c.key for c in runner.chosen(cells, ["dpdk"])] == ["dpdk-1", "dpdk-2"]
    assert [c.key for c in runner.chosen(cells, ["d*-1", "packet"])] == ["dpdk-1", "packet-1"]
    assert runner.chosen(cells, []) == cells
    with pytest.raises(Trouble, match="there are: dpdk-1"):
        runner.chosen(cells, ["nothing"])


@pytest.mark.parametrize(
    "seconds, text", [(-1, "0 s"), (0.6, "1 s"), (89.4, "89 s"), (89.6, "2 min"), (3600, "60 min")]
)
def test_durations(seconds, text):
    assert runner.duration(seconds) == text


def test_estimate_follows_what_measurements_took():
    part = runner.Part("p", [(0, Cell("a", seconds=2.0)), (0, Cell("b", seconds=4.0))], 1.0)
    assert part.expected_s() == 7.0
    part.took(2.0, 6.0)
    assert part.expected_s() == 15.0  # 5 s are left, and take three times as long
    part.forget()
    assert part.expected_s() == 0 and part.number == 0
    assert runner.Part("nothing is left", [], 1.0).expected_s() == 0


def test_files_and_page_agree(tmp_path, sample):
    done = sample()
    assert done.returncode == 0, done.stderr
    assert "[1/9] sample: one, repetition 1; about 9 s left" in done.stderr
    assert "not available: it is gone" in done.stderr
    data = json.loads((tmp_path / "out" / "sample.json").read_text())
    cells = {c["cell"]: c for c in data["cells"]}
    assert cells["gone"]["unavailable"] == "it is gone" and not cells["gone"]["runs"]
    bytes_of_one = [21, 22, 23]
    assert cells["one"]["statistics"]["bytes"]["mean"] == statistics.fmean(bytes_of_one)
    assert cells["one"]["statistics"]["bytes"]["deviation"] == statistics.stdev(bytes_of_one)
    assert cells["one"]["commands"] == ["seq 1 10"]
    assert data["prepared"]["process"] == os.getpid() and data["machine"]["kernel"] == "6.1.0"
    with open(tmp_path / "out" / "sample.csv", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert [(r["cell"], r["first"], r["repetition"], r["bytes"]) for r in rows if r["cell"] == "one"] == [
        ("one", "1", str(n + 1), str(b)) for n, b in enumerate(bytes_of_one)
    ]
    text = (tmp_path / "out" / "report.html").read_text()
    report.check(report.Page(text), {"sample": data}, "")
    assert "Counting &lt;bytes&gt; &amp; lines" in text
    assert "seq 1 10" in text and "ringtap-lab sample --sample-last 10" in text
    assert "gone: not available: it is gone" in text


def test_wrong_report_is_detected(tmp_path, sample, no_plots):
    """The check fails for values that differ from the data, or are not marked."""
    assert sample().returncode == 0
    text = (tmp_path / "out" / "report.html").read_text()
    data = report.load(tmp_path / "out")
    shown = "22.00 ± 1.00"
    assert text.count(f">{shown}<") == 1
    for wrong in ("22.10 ± 1.00", "22.00 ± 1.20", "22.00", "22.00 ± 1.00 9"):
        with pytest.raises(AssertionError):
            report.check_values(report.Page(text.replace(f">{shown}<", f">{wrong}<")), data)
    for wrong in ('<td>22.00</td>', '<td class="text">about 22</td>'):
        with pytest.raises(AssertionError):
            report.check_no_figure_is_unmarked(
                report.Page(text.replace("</tbody></table>", f"<tr>{wrong}</tr></tbody></table>", 1))
            )
    with pytest.raises(AssertionError):
        report.check_published(report.Page(text.replace("20 bytes", "21 bytes")), data, "")
    with pytest.raises(AssertionError):
        report.check_self_contained(report.Page(text.replace("</body>", "<script>1</script></body>")))
    data["sample"]["cells"][0]["runs"][0]["values"]["bytes"] += 1
    for compare in (report.check_values, report.check_downloads):
        with pytest.raises(AssertionError):
            compare(report.Page(text), data)


def test_report_from_exported_data(tmp_path, lab, sample):
    """Making the page again from exported results needs no journal, no tools, and no rights."""
    out = tmp_path / "out"
    assert sample("--sample-fail", "two1").returncode == 1
    before = (out / "report.html").read_text(), (out / "sample.json").read_text()
    (out / "sample.jsonl").unlink()
    (out / "report.html").unlink()
    done = lab("report", "-w", out)
    assert done.returncode == 0 and done.stdout == f"{out}/report.html\n", done.stderr
    assert before == ((out / "report.html").read_text(), (out / "sample.json").read_text())
    nothing = lab("report", "-w", tmp_path / "nothing")
    assert nothing.returncode == 2 and "has no results of experiments" in nothing.stderr
    (out / "sample.json").write_text("{}")
    broken = lab("report", "-w", out)
    assert broken.returncode == 2 and "not results of ringtap-lab" in broken.stderr


def test_resumes(tmp_path, sample, no_plots):
    args = ("--sample-fail", "two1")
    first = sample(*args)
    assert first.returncode == 1
    assert "two, repetition 2" in first.stderr and "failed: ValueError: was told to fail" in first.stderr
    assert "two: failed: ValueError" in (tmp_path / "out" / "report.html").read_text()
    assert sorted(measured(tmp_path)) == [(0, "one"), (0, "two"), (1, "one"), (2, "one"), (2, "two")]
    prepared = next(e for e in journal(tmp_path) if e["event"] == "prepared")
    assert not any(e["event"] == "end" for e in journal(tmp_path))
    (tmp_path / "healed").touch()
    # A truncated line, as after a power failure.
    with open(tmp_path / "out" / "sample.jsonl", "a", encoding="utf-8") as f:
        f.write('{"event": "run", "cell": "two", "par')
    second = sample(*args)
    assert second.returncode == 0, second.stderr
    assert "[1/1] sample: two, repetition 2" in second.stderr
    events = journal(tmp_path)
    assert [e for e in events if e["event"] == "prepared"] == [prepared]
    assert measured(tmp_path).count((1, "two")) == 1
    assert "two: failed" not in (tmp_path / "out" / "report.html").read_text()
    third = sample(*args)
    assert third.returncode == 0 and "7 of 9" not in third.stderr and "[1/" not in third.stderr
    assert "sample: all of it is in" in third.stderr and "--fresh measures again" in third.stderr


def test_another_machine_is_reported(tmp_path, sample, facts, no_plots):
    assert sample("--only", "one", "--repetitions", "1").returncode == 0
    assert "more than one machine" not in (tmp_path / "out" / "report.html").read_text()
    facts.update(dpdk="23.11.0", load=7.0)  # the load is not the machine
    assert sample("--only", "one", "--repetitions", "2").returncode == 0
    text = (tmp_path / "out" / "report.html").read_text()
    assert "Measured on more than one machine or build: dpdk &#39;22.11.5&#39; instead of &#39;23.11.0&#39;" in text, (
        text
    )
    assert "load" not in text[text.index("more than one machine") :][:200]


def test_other_settings_are_refused(tmp_path, sample, no_plots):
    assert sample("--only", "one", "--repetitions", "1").returncode == 0
    done = sample("--sample-last", "12")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "sample_last 10 instead of 12" in done.stderr
    assert sample("--sample-last", "12", "--fresh", "--only", "one", "--repetitions", "2").returncode == 0
    assert measured(tmp_path) == [(0, "one"), (1, "one")]


@pytest.mark.parametrize(
    "args, complaint",
    [
        (["nonsense"], "no such experiment: nonsense; there are: sample"),
        (["sample", "--sample-last", "0"], "--sample-last: must be at least 1"),
        (["sample", "--build", "/nowhere"], "ringtap is neither in /nowhere/cli nor in PATH"),
        (["sample", "--only", "three"], "--only three: no such cell; there are: one two gone"),
    ],
)
def test_errors_are_one_line(tmp_path, lab, monkeypatch, args, complaint):
    monkeypatch.setenv("PATH", "/nowhere")
    done = lab(*args, "-w", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr.startswith("ringtap-lab: ") and done.stderr.count("\n") == 1
    assert complaint in done.stderr


@pytest.mark.parametrize("args", [["--repetitions", "0"], ["--repetitions", "x"], ["--cpus", "a"], []])
def test_invalid_options(lab, args):
    done = lab(*(["sample", *args] if args else []))
    assert done.returncode == 2 and "usage: ringtap-lab" in done.stderr


@pytest.mark.parametrize("text", ['{"event": "run"}\n', "no JSON\n", "[]\n"])
def test_not_a_journal(tmp_path, sample, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sample.jsonl").write_text(text)
    done = sample()
    assert done.returncode == 2 and "not a journal of ringtap-lab" in done.stderr


def test_two_runs_do_not_write_into_one_journal(tmp_path, sample, monkeypatch):
    inner = []
    monkeypatch.setattr(lab_sample.Sample, "prepare", lambda self, lab: inner.append(sample()) or {})
    assert sample("--only", "one", "--repetitions", "1").returncode == 0
    assert inner[0].returncode == 2 and "another run writes into it" in inner[0].stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_goes_on_after_an_interrupt(tmp_path, sample, monkeypatch, no_plots, number):
    monkeypatch.setattr(lab_sample.Sample, "_stop", lambda self, lab: signal.raise_signal(number))
    done = sample(*STOP)
    assert done.returncode == 130 and "ringtap-lab: interrupted" in done.stderr
    assert measured(tmp_path) == [(0, "one")]
    assert (tmp_path / "out" / "report.html").exists()
    (tmp_path / "healed").touch()
    again = sample(*STOP)
    assert again.returncode == 0 and "[1/8] sample: two, repetition 1" in again.stderr
    assert sorted(measured(tmp_path)) == [(r, c) for r in range(3) for c in ("one", "two")]


def test_more_signals_do_not_interrupt_the_cleanup(sample, monkeypatch):
    closed = []

    def close(lab):
        for number in cli.ENDING:
            signal.raise_signal(number)
        closed.append(lab)

    monkeypatch.setattr(Lab, "close", close)
    assert sample(*STOP).returncode == 130
    assert closed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGHUP) is cli._interrupt


def test_things_of_a_run_are_removed_however_it_ends(sample, monkeypatch):
    removed = []
    monkeypatch.setattr(
        scope, "remove", lambda is_ours: removed.append((is_ours(scope.own_name()), is_ours(f"{scope.KIND}-1-1")))
    )
    monkeypatch.setattr(scope, "remove_leftovers", lambda: ["network namespace x"])
    done = sample(*STOP)
    assert removed == [(True, False)]
    assert "removed what a run before had left: network namespace x\n" in done.stderr
