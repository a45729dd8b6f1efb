# SPDX-License-Identifier: BSD-3-Clause
import pytest
from harness import dpdk
from harness.pair import Part, Pmd


@pytest.fixture(scope="module")
def primary(plugin):
    """An rt_pair without secondaries."""
    if dpdk.HugePages.free_mb() < 192:
        pytest.skip("needs 192 MB of free huge pages")
    app = Part(plugin, 0)
    yield app
    app.close()


@pytest.fixture
def secondary(primary, closing):
    """Starts a secondary of it."""
    return lambda plugin=None, queue=1, of=None: closing(Part(plugin, queue, of or primary))


@pytest.fixture(scope="module")
def pmds(plugin):
    """Two dpdk-testpmd with the plugin."""
    if dpdk.HugePages.free_mb() < 256:
        pytest.skip("needs 256 MB of free huge pages")
    first = Pmd(plugin)
    try:
        second = Pmd(plugin, first)
        yield first, second
        second.close()
    finally:
        first.close()
