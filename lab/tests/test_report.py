# SPDX-License-Identifier: BSD-3-Clause
"""The committed report: its values are those of its data files, and its layout is correct."""

import re
from pathlib import Path

import pytest
from harness import report
from ringtap_lab.report import blocks, plots
from ringtap_lab.run import cli, experiments
from ringtap_lab.tools.results import Results

REPO = Path(__file__).resolve().parents[2]
FOLDER = REPO / "docs" / "report"
PAGE = FOLDER / "report.html"
LARGEST = 3_000_000  # bytes


@pytest.fixture(scope="module")
def data():
    return report.load(FOLDER)


@pytest.fixture(scope="module")
def page():
    return report.Page(PAGE.read_text())


def test_values_are_those_of_the_data(page, data):
    documents = "".join(p.read_text() for p in (REPO / "docs").glob("*.md"))
    report.check(page, data, documents)
    assert PAGE.stat().st_size < LARGEST


def test_report_has_every_experiment(page, data):
    """Each has values and a plot; each about which something is published has an answer for each claim, and published values."""
    known = experiments.load()
    assert list(page.experiments()) == list(known)
    claims = page.root.classed("claim")
    for name, section in page.experiments().items():
        assert data[name]["trouble"] is None and data[name]["ended"], name
        assert section.tagged("svg") and section.classed("value"), name
        assert bool(section.classed("published")) == bool(known[name].published), name
        assert known[name].question in section.text()
    assert len(claims) >= 2 * len([e for e in known.values() if e.published])
    words = [c.classed("chip")[0].text() for c in claims]
    for element in page.root.all(lambda e: "data-tally" in e.attributes):
        assert int(element.text()) == words.count(element.attributes["data-tally"])


def test_sources_are_named(page, data):
    """Author, title, year and link, below the published values."""
    for name, section in page.experiments().items():
        links = {link.text(): link.attributes["href"] for link in section.classed("source")}
        assert links == {p["source"]: p["link"] for p in data[name]["published"]}
        assert links or name == "cores"
        for source, link in links.items():
            assert re.match(r"[^:]+: .+, .*\b20\d\d\b", source) and link.startswith("https://")


def test_last_column_answers_a_question(page):
    summary = page.root.classed("summary")[0]
    assert summary.tagged("th")[3].text().endswith("?")
    for claim in summary.classed("claim"):
        assert claim.classed("chip")[0].text() in blocks.WORDS


def test_axes(data):
    """At least three numbers on each axis, and nothing is truncated (except error bars below 0)."""
    drawn = 0
    for name, experiment in experiments.load().items():
        for plot in experiment.blocks(Results(data[name])):
            if not isinstance(plot, blocks.Plot):
                continue
            with plots.figure(plot) as figure:
                for axes in figure.axes:
                    drawn += 1
                    for axis, lowest, highest in (
                        (axes.xaxis, axes.dataLim.x0, axes.dataLim.x1),
                        (axes.yaxis, axes.dataLim.y0, axes.dataLim.y1),
                    ):
                        low, high = sorted(axis.get_view_interval())
                        assert len(plots.ticks(axis)) >= 3, (plot.title, axis)
                        assert (low <= lowest or low == 0) and highest <= high, (plot.title, axis)
                    assert max(axes.get_ylim()) > axes.dataLim.y1, plot.title
    assert drawn >= 10


def test_a_quick_run_is_marked(page, data):
    quick = [name for name, d in data.items() if d["settings"]["quick"]]
    assert bool(page.root.classed("quick")) == bool(quick)


def test_the_machine_is_described(page, data):
    machine = page.root.tagged("section")[-1]
    for wanted in (
        "CPU",
        "kernel",
        "DPDK",
        "ringtap",
        "its commit",
        "memory",
        "huge pages",
        "TSC flags",
        "clock source",
        "frequency governor",
        "virtual machine",
        "CPUs kept from other work",
        "hypervisor",
    ):
        assert wanted in machine.text(), wanted
    for d in data.values():
        assert d["machine"]["kernel"] in machine.text() and d["machine"]["dpdk"] in machine.text()


def test_page_can_be_made_again(tmp_path, call, no_plots):
    """From its data files only, as `make report` does, with the code of this version."""
    for path in FOLDER.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    done = call(cli.main, "report", "-w", tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    again = report.Page((tmp_path / "report.html").read_text())
    report.check_values(again, report.load(tmp_path))
    assert not again.root.classed("broken")
