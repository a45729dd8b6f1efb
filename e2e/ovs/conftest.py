# SPDX-License-Identifier: BSD-3-Clause
import pytest
from harness import pcap
from harness.guests import FEW, Site, is_changed


@pytest.fixture
def site(ovs, net, closing):
    return Site(ovs, net, closing)


@pytest.fixture(params=[5])
def frames(request, corpus_files, tmp_path):
    """A file with frames of every kind that an Ethernet interface takes as they are: one in this number."""
    some = [f for path in corpus_files for f in pcap.frames(path)][:: request.param]
    some = [f for f in some if 14 <= len(f) <= 1514 and not is_changed(f)]
    some = some[: len(some) // FEW * FEW]
    assert len(some) >= 200
    return some, pcap.write(tmp_path / "sent.pcap", some)
