# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the statistics' tests."""

import pytest
from harness.monitor import Monitor


@pytest.fixture
def monitor(closing):
    return lambda app, *args, **kwargs: closing(Monitor(app, *args, **kwargs))
