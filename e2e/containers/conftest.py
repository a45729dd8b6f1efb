# SPDX-License-Identifier: BSD-3-Clause
"""Applications and recorders in namespaces of their own."""

import pytest


@pytest.fixture(autouse=True)
def all_namespaces(monkeypatch):
    """Applications of other mount namespaces are found. Those of other test runs have other names."""
    monkeypatch.delenv("RINGTAP_CONTAINERS", raising=False)
