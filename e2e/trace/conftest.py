# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tracing tests."""

import pytest
from harness.monitor import Monitor
from harness.paths import LTTNG_PROVIDER
from harness.tracers import Lttng, lttng_missing


@pytest.fixture
def monitor(closing):
    return lambda app, *args, **kwargs: closing(Monitor(app, *args, **kwargs))


@pytest.fixture
def lttng(closing, tmp_path):
    """A session daemon in a separate namespace and folder."""
    reason = lttng_missing()
    if not LTTNG_PROVIDER.exists():
        reason = "built without LTTng"
    if reason:
        pytest.skip(reason)
    return closing(Lttng(tmp_path))
