# SPDX-License-Identifier: BSD-3-Clause
"""The report that is under version control: its values are those of the data beside it, and its layout is sound."""
import pytest

from harness import lab, report
from harness.paths import REPO
from ringtap_lab.run import experiments

FOLDER = REPO / "docs" / "report"
PAGE = FOLDER / "report.html"
LARGEST = 3_000_000  # bytes


@pytest.fixture(scope="module")
def data():
    return report.load(FOLDER)


@pytest.fixture(scope="module")
def page():
    return report.Page(PAGE.read_text())


def test_every_figure_is_that_of_the_data(page, data):
    documents = "".join(p.read_text() for p in (REPO / "docs").glob("*.md"))
    report.check(page, data, documents)
    assert PAGE.stat().st_size < LARGEST


@pytest.mark.smoke
def test_every_experiment_is_in_it(page, data):
    """With a verdict on published results, values, a plot, and the published values beside them."""
    known = experiments.load()
    assert list(page.experiments()) == list(known)
    claims = page.root.classed("claim")
    for name, section in page.experiments().items():
        assert data[name]["trouble"] is None and data[name]["ended"], name
        assert section.tagged("svg") and section.classed("value"), name
        assert section.classed("published"), name
        assert known[name].question in section.text()
    assert len(claims) >= 2 * len(known)
    words = [c.classed("chip")[0].text() for c in claims]
    for element in page.root.all(lambda e: "data-tally" in e.attributes):
        assert int(element.text()) == words.count(element.attributes["data-tally"])


def test_a_quick_run_is_marked(page, data):
    quick = [name for name, d in data.items() if d["settings"]["quick"]]
    assert bool(page.root.classed("quick")) == bool(quick)


def test_the_machine_is_described(page, data):
    machine = page.root.tagged("section")[-1]
    for wanted in ("CPU", "kernel", "DPDK", "ringtap", "its commit", "memory", "huge pages", "TSC flags", "clock source",
                   "frequency governor", "virtual machine", "CPUs kept from other work", "hypervisor"):
        assert wanted in machine.text(), wanted
    for d in data.values():
        assert d["machine"]["kernel"] in machine.text() and d["machine"]["dpdk"] in machine.text()


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_in_a_browser(browser, data, width, colours):
    browser.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    browser.open(PAGE, width)
    assert report.check_drawn(browser, PAGE, width) >= len(data)
    light = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert (light == "rgb(255, 255, 255)") == (colours == "light")


def test_the_page_can_be_made_again(tmp_path):
    """Of the data beside it alone, as `make report` does: with this version's code."""
    for path in FOLDER.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    done = lab.run("report", "-o", tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    again = report.Page((tmp_path / "report.html").read_text())
    report.check_values(again, report.load(tmp_path))
    assert not again.root.classed("broken")
