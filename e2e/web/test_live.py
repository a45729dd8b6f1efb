# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap web`: what the page shows while applications run."""

import pytest
from harness.live import LiveView, Web
from harness.proc import until

RATE = 2000


@pytest.fixture
def web(closing):
    return lambda *apps, args=(): closing(Web(*apps, args=args))


@pytest.fixture
def steady(fwd):
    """An application that sends and receives a known number of packets a second."""
    return fwd("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", RATE).running()


def overview(shown, app):
    return next((row for row in shown.table("applications") if row["application"] == app.prefix), None)


@pytest.mark.smoke
def test_the_overview_has_the_rate(browser, steady, web):
    shown = LiveView(browser, web())
    rate = until(lambda: (overview(shown, steady) or {}).get("received"))
    shown.updates(3)
    row = overview(shown, steady)
    assert rate == pytest.approx(RATE, rel=0.2) and row["received"] == pytest.approx(RATE, rel=0.2)
    assert row["sent"] == pytest.approx(RATE, rel=0.2) and row["lost"] == 0
    shown.check()
