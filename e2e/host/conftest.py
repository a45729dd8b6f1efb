# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of ringtap-host's tests."""

import pytest
from harness.host import Host


@pytest.fixture
def host(closing):
    def start(namespace, *ifaces, **kwargs):
        return closing(Host(namespace, *ifaces, **kwargs))

    return start
