# SPDX-License-Identifier: BSD-3-Clause
"""The framework of ringtap-lab: order, resuming, data, page, cleanup."""
import csv
import json
import os
import signal
import statistics
import sys
from pathlib import Path

import pytest

from harness import lab, report
from harness.lab import SAMPLE, STOP
from harness.proc import check, name_of, until
from ringtap_lab.run import runner
from ringtap_lab.run.experiment import Cell
from ringtap_lab.tools import scope, stats
from ringtap_lab.tools.errors import Trouble


def sample(tmp_path, *args, **kwargs):
    return lab.run("sample", "-o", tmp_path / "out", *args, program=SAMPLE, cwd=tmp_path, **kwargs)


def journal(tmp_path):
    lines = (tmp_path / "out" / "sample.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def measured(tmp_path):
    return [(e["repetition"], e["cell"]) for e in journal(tmp_path) if e["event"] == "run"]


@pytest.mark.smoke
def test_mean_and_deviation():
    s = stats.Series()
    assert s.mean() is None and s.deviation() is None
    s.add(2.0)
    assert s.mean() == 2.0 and s.deviation() is None
    for value in (4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0):
        s.add(value)
    assert s.mean() == 5.0
    assert s.deviation() == pytest.approx((32 / 7) ** 0.5)


def test_cells_take_turns_and_can_be_chosen():
    cells = [Cell("dpdk-1"), Cell("dpdk-2"), Cell("packet-1")]
    order = [(r, c.key) for r, c in runner.alternating(cells, 2)]
    assert order == [(0, "dpdk-1"), (0, "dpdk-2"), (0, "packet-1"),
                     (1, "packet-1"), (1, "dpdk-2"), (1, "dpdk-1")]
    assert [c.key for c in runner.chosen(cells, ["dpdk"])] == ["dpdk-1", "dpdk-2"]
    assert [c.key for c in runner.chosen(cells, ["d*-1", "packet"])] == ["dpdk-1", "packet-1"]
    assert runner.chosen(cells, []) == cells
    with pytest.raises(Trouble, match="there are: dpdk-1"):
        runner.chosen(cells, ["nothing"])


def test_files_and_page_agree(tmp_path):
    done = sample(tmp_path)
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
    assert data["prepared"]["process"] > 0 and data["machine"]["kernel"] == os.uname().release
    with open(tmp_path / "out" / "sample.csv", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    assert [(r["cell"], r["first"], r["repetition"], r["bytes"]) for r in rows if r["cell"] == "one"] == [
        ("one", "1", str(n + 1), str(b)) for n, b in enumerate(bytes_of_one)]
    text = (tmp_path / "out" / "report.html").read_text()
    report.check(report.Page(text), {"sample": data}, "")
    assert "Counting &lt;bytes&gt; &amp; lines" in text
    assert "seq 1 10" in text and "ringtap-lab sample --sample-last 10" in text
    assert "gone: not available: it is gone" in text


def test_wrong_report_is_detected(tmp_path):
    """The check fails for values that differ from the data, or are not marked."""
    assert sample(tmp_path).returncode == 0
    text = (tmp_path / "out" / "report.html").read_text()
    data = report.load(tmp_path / "out")
    shown = "22.00 ± 1.00"
    assert text.count(f">{shown}<") == 1
    for wrong in ("22.10 ± 1.00", "22.00 ± 1.20", "22.00", "22.00 ± 1.00 9"):
        with pytest.raises(AssertionError):
            report.check_values(report.Page(text.replace(f">{shown}<", f">{wrong}<")), data)
    for wrong in ('<td>22.00</td>', '<td class="text">about 22</td>'):
        with pytest.raises(AssertionError):
            report.check_no_figure_is_unmarked(report.Page(text.replace("</tbody></table>", f"<tr>{wrong}</tr></tbody></table>", 1)))
    with pytest.raises(AssertionError):
        report.check_published(report.Page(text.replace("20 bytes", "21 bytes")), data, "")
    with pytest.raises(AssertionError):
        report.check_self_contained(report.Page(text.replace("</body>", "<script>1</script></body>")))
    data["sample"]["cells"][0]["runs"][0]["values"]["bytes"] += 1
    for compare in (report.check_values, report.check_downloads):
        with pytest.raises(AssertionError):
            compare(report.Page(text), data)


def test_report_from_exported_data(tmp_path):
    """Making the page again from exported results needs no journal, no tools, and no rights."""
    out = tmp_path / "out"
    assert sample(tmp_path, "--sample-fail", "two1").returncode == 1
    before = (out / "report.html").read_text(), (out / "sample.json").read_text()
    (out / "sample.jsonl").unlink()
    (out / "report.html").unlink()
    done = lab.run("report", "-o", out, program=SAMPLE, PATH="/nowhere")
    assert done.returncode == 0, done.stderr
    assert before == ((out / "report.html").read_text(), (out / "sample.json").read_text())
    nothing = lab.run("report", "-o", tmp_path / "nothing", program=SAMPLE)
    assert nothing.returncode == 2 and "has no results of experiments" in nothing.stderr
    (out / "sample.json").write_text("{}")
    broken = lab.run("report", "-o", out, program=SAMPLE)
    assert broken.returncode == 2 and "not results of ringtap-lab" in broken.stderr


def test_resumes(tmp_path):
    args = ("--sample-fail", "two1")
    first = sample(tmp_path, *args)
    assert first.returncode == 1
    assert "two, repetition 2" in first.stderr and "failed: ValueError: was told to fail" in first.stderr
    assert "two: failed: ValueError" in (tmp_path / "out" / "report.html").read_text()
    assert sorted(measured(tmp_path)) == [(0, "one"), (0, "two"), (1, "one"), (2, "one"), (2, "two")]
    prepared = next(e for e in journal(tmp_path) if e["event"] == "prepared")
    (tmp_path / "healed").touch()
    # A truncated line, as after a power failure.
    with open(tmp_path / "out" / "sample.jsonl", "a", encoding="utf-8") as f:
        f.write('{"event": "run", "cell": "two", "par')
    second = sample(tmp_path, *args)
    assert second.returncode == 0, second.stderr
    assert "[1/1] sample: two, repetition 2" in second.stderr
    events = journal(tmp_path)
    assert [e for e in events if e["event"] == "prepared"] == [prepared]
    assert measured(tmp_path).count((1, "two")) == 1
    assert "two: failed" not in (tmp_path / "out" / "report.html").read_text()
    third = sample(tmp_path, *args)
    assert third.returncode == 0 and "7 of 9" not in third.stderr and "[1/" not in third.stderr


def test_another_machine_is_reported(tmp_path):
    assert sample(tmp_path, "--only", "one", "--repetitions", "1").returncode == 0
    assert "more than one machine" not in (tmp_path / "out" / "report.html").read_text()
    path = tmp_path / "out" / "sample.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["machine"]["dpdk"] = "1.2.3"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert sample(tmp_path, "--only", "one", "--repetitions", "2").returncode == 0
    text = (tmp_path / "out" / "report.html").read_text()
    assert "Measured on more than one machine or build: dpdk &#39;1.2.3&#39; instead of" in text


def test_other_settings_are_refused(tmp_path):
    assert sample(tmp_path, "--only", "one", "--repetitions", "1").returncode == 0
    done = sample(tmp_path, "--sample-last", "12")
    assert done.returncode == 2
    assert len(lab.messages(done)) == 1 and "sample_last 10 instead of 12" in done.stderr
    assert sample(tmp_path, "--sample-last", "12", "--fresh", "--only", "one", "--repetitions", "2"
                  ).returncode == 0
    assert measured(tmp_path) == [(0, "one"), (1, "one")]


@pytest.mark.parametrize("args, complaint", [
    (["nonsense"], "no such experiment: nonsense; there are: sample"),
    (["sample", "--sample-last", "0"], "--sample-last: must be at least 1"),
    (["sample", "--build", "/nowhere"], "ringtap is neither in /nowhere/cli nor in PATH"),
    (["sample", "--only", "three"], "--only three: no such cell; there are: one two gone")])
def test_errors_are_one_line(tmp_path, args, complaint):
    done = lab.run(*args, "-o", tmp_path / "out", program=SAMPLE, PATH="/nowhere")
    assert done.returncode == 2
    assert [m.startswith("ringtap-lab: ") for m in lab.messages(done)] == [True]
    assert complaint in done.stderr


def test_not_a_journal(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sample.jsonl").write_text('{"event": "run"}\n')
    done = sample(tmp_path)
    assert done.returncode == 2 and "not a journal of ringtap-lab" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def stopped(tmp_path, closing, request):
    """A run stopped in its second cell, with namespaces, processes and files."""
    more = getattr(request, "param", [])
    p = closing(lab.start("sample", "-o", tmp_path / "out", *STOP, *more, program=SAMPLE, cwd=tmp_path))
    p.expect("everything is there")
    here = lab.remains(p.pid)
    assert sum(x.startswith("network namespace") for x in here) == 2, here
    # A process may be executing another program, and has no environment then.
    until(lambda: sum(x.startswith("process") for x in lab.remains(p.pid)) >= 2, what="both processes")
    assert any(x.startswith("/run/") for x in here), here
    return p


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_after_an_interrupt(tmp_path, stopped, number):
    stopped.send_signal(number)
    assert stopped.wait() == 130
    assert lab.remains(stopped.pid) == []
    assert measured(tmp_path) == [(0, "one")]
    assert (tmp_path / "out" / "report.html").exists()
    (tmp_path / "healed").touch()
    again = sample(tmp_path, *STOP)
    assert again.returncode == 0 and "[1/8] sample: two, repetition 1" in again.stderr
    assert sorted(measured(tmp_path)) == [(r, c) for r in range(3) for c in ("one", "two")]


@pytest.mark.parametrize("stopped", [["--sample-deaf", "yes"]], indirect=True)
def test_more_signals_do_not_interrupt_the_cleanup(stopped):
    """Cleanup waits for a process that ignores SIGTERM; further signals arrive meanwhile."""
    stopped.send_signal(signal.SIGTERM)
    until(lambda: all(int(next(line for line in Path(f"/proc/{stopped.pid}/status").read_text().splitlines()
                               if line.startswith("SigIgn")).split()[1], 16) >> (n - 1) & 1
                      for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)), what="signals ignored")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        stopped.send_signal(number)
    assert stopped.wait(60) == 130
    assert lab.remains(stopped.pid) == []


@pytest.mark.parametrize("stopped", [["--sample-deaf", "yes"]], indirect=True)
def test_next_run_removes_remains_of_a_killed_one(tmp_path, stopped):
    namespaces = [x for x in lab.remains(stopped.pid) if "namespace" in x]
    stopped.child.kill()
    stopped.child.wait()
    assert set(namespaces) <= set(lab.remains(stopped.pid))
    other = f"{scope.KIND}-{os.getpid()}-{scope._start_time(os.getpid())}-n0"
    foreign = f"notours{os.getpid()}"
    for name in (other, foreign):
        check(["ip", "netns", "add", name])
    try:
        done = sample(tmp_path, *STOP, "--sample-deaf", "yes", "--only", "one")
        assert done.returncode == 0, done.stderr
        assert all(f"removed what a run before had left: {x}" in done.stderr for x in namespaces)
        assert lab.remains(stopped.pid) == []
        assert {other, foreign} <= set(os.listdir("/run/netns"))
    finally:
        for name in (other, foreign):
            check(["ip", "netns", "del", name])


def huge_pages():
    return int(Path("/proc/sys/vm/nr_hugepages").read_text())


def set_huge_pages(count):
    Path("/proc/sys/vm/nr_hugepages").write_text(str(count))


def with_huge_pages(tmp_path, closing, name):
    """(running process that has added huge pages, number before, number now)"""
    for _ in range(20):
        before = huge_pages()
        p = closing(lab.start("sample", "-o", tmp_path / name, "--fresh", *STOP, "--sample-huge-mb", "4",
                              program=SAMPLE, cwd=tmp_path))
        p.expect("everything is there")
        note, = (x for x in lab.remains(p.pid) if scope.HUGE_PAGES in x)
        done = json.loads(Path(note).read_text())
        if done == {"before": before, "set_to": huge_pages()} and before < huge_pages():
            return p, before, huge_pages()
        p.stop(signal.SIGINT, 60)
    raise AssertionError("another process adds and takes away huge pages all the time")


@pytest.fixture
def as_many_huge_pages():
    """Restores the number of huge pages. Skips if the kernel has none."""
    before = huge_pages()
    yield before
    if huge_pages() != before:
        set_huge_pages(before)


@pytest.mark.alone
def test_next_run_frees_huge_pages_of_a_killed_one(tmp_path, closing, as_many_huge_pages):
    p, before, added = with_huge_pages(tmp_path, closing, "out")
    p.kill()
    assert huge_pages() == added > before
    done = sample(tmp_path, "--fresh", "--only", "one")
    assert done.returncode == 0 and scope.HUGE_PAGES in done.stderr, done.stderr
    assert huge_pages() == before
    assert lab.remains(p.pid) == []


@pytest.mark.alone
def test_huge_pages_of_another_process_are_kept(tmp_path, closing, as_many_huge_pages):
    p, _, added = with_huge_pages(tmp_path, closing, "out")
    p.kill()
    set_huge_pages(added + 1)
    assert sample(tmp_path, "--fresh", "--only", "one").returncode == 0
    assert huge_pages() == added + 1
    assert lab.remains(p.pid) == []


@pytest.mark.alone
def test_huge_pages_of_two_runs(tmp_path, closing, as_many_huge_pages):
    """While another run that has added pages is alive, the owner of a killed run's pages is
    unknown."""
    first, before, _ = with_huge_pages(tmp_path, closing, "first")
    second, _, both = with_huge_pages(tmp_path, closing, "second")
    first.kill()
    third = sample(tmp_path, "--only", "one")
    assert third.returncode == 0 and scope.HUGE_PAGES not in third.stderr
    assert huge_pages() == both and len(lab.remains(first.pid)) == 1
    assert second.stop(signal.SIGINT, 60) == 130
    assert before < huge_pages() < both
    assert sample(tmp_path, "--fresh", "--only", "one").returncode == 0
    assert huge_pages() == before
    assert lab.remains(first.pid) + lab.remains(second.pid) == []


def test_children_end_with_a_killed_run(stopped):
    stopped.child.kill()
    stopped.child.wait()
    until(lambda: not any("sleep" == name_of(x.split()[1]) for x in lab.remains(stopped.pid) if x.startswith("process")),
          what="end of the children")
    scope.remove(lambda name: name.startswith(f"{scope.KIND}-{stopped.pid}-"))
    assert lab.remains(stopped.pid) == []


@pytest.mark.slow
def test_installs_without_the_network(tmp_path):
    """The steps of `make lab`, in a temporary folder."""
    venv = tmp_path / "venv"
    check([sys.executable, "-m", "venv", "--system-site-packages", venv], timeout=120)
    source = tmp_path / "lab"
    check(["cp", "-r", lab.LAB, source])
    check([venv / "bin" / "pip", "install", "-q", "--no-build-isolation", "--no-index", "-e", source],
          timeout=120)
    out = check([venv / "bin" / "ringtap-lab", "--help"])
    assert "Experiments: " in out
