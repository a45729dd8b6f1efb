# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of ringtap-lab's tests."""
import pytest

from harness import browser as browser_module


@pytest.fixture
def browser(tmp_path, closing):
    reason = browser_module.missing()
    if reason:
        pytest.skip(reason)
    return closing(browser_module.Browser(tmp_path / "profile"))
