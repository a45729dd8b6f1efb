# SPDX-License-Identifier: BSD-3-Clause
import pytest
from harness import pcap
from harness.guests import FEW, Site, is_changed


@pytest.fixture
def site(ovs, net, closing):
    return Site(ovs, net, closing)


@pytest.fixture
def frames(corpus_files, tmp_path):
    """A file with frames of every kind that an Ethernet interface takes as they are."""
    some = [f for path in corpus_files for f in pcap.frames(path)][::5]
    some = [f for f in some if 14 <= len(f) <= 1514 and not is_changed(f)]
    some = some[: len(some) // FEW * FEW]
    assert len(some) >= 200
    return some, pcap.write(tmp_path / "sent.pcap", some)
