# SPDX-License-Identifier: BSD-3-Clause
"""The committed report in a browser: it fetches nothing, and its plots are drawn within the page."""

import pytest
from harness import report
from harness.paths import REPO

PAGE = REPO / "docs" / "report" / "report.html"


@pytest.mark.nightly
def test_in_a_browser(browser):
    """Narrow and wide, in light and dark colours."""
    experiments = len(report.load(PAGE.parent))
    for width, colours in ((400, "dark"), (1400, "light")):
        browser.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
        browser.open(PAGE, width)
        assert report.check_drawn(browser, PAGE, width) >= experiments
        light = browser.ask("getComputedStyle(document.body).backgroundColor")
        assert (light == "rgb(255, 255, 255)") == (colours == "light")


@pytest.mark.nightly
def test_browser_reports_errors(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='missing.png'><script>nonsense()</script>")
    browser.open(bad, 400)
    assert any("nonsense" in c for c in browser.complaints)
    assert any(u.endswith("missing.png") for u in browser.requests)
