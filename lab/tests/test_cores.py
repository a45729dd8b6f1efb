# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the experiments memory and cores that need neither a GPU nor many CPUs."""

import numpy
import pytest
from ringtap_lab.run import gpu_headers
from ringtap_lab.run.experiments import cores
from ringtap_lab.tools import topology


@pytest.mark.parametrize(
    "siblings,expected",
    [
        ({0: "0", 1: "1", 2: "2", 3: "3"}, [0, 1, 2, 3]),
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, [0, 2, 1, 3]),
        ({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, [0, 1, 2, 3]),
    ],
)
def test_each_core_is_used_once_before_its_other_half(siblings, expected):
    assert topology.spread([3, 1, 2, 0], siblings.get) == expected
    assert topology.cores([0, 1, 2, 3], siblings.get) == len(set(siblings.values()))


@pytest.mark.parametrize(
    "ports,recorders,expected", [(1, 1, [[0]]), (6, 2, [[0, 1, 2], [3, 4, 5]]), (3, 2, [[0], [1, 2]])]
)
def test_recorders_share_all_ports(ports, recorders, expected):
    assert [list(part) for part in cores._halves(ports, recorders)] == expected


def test_words_of_headers_depend_on_each_byte():
    """The expected result of the kernel on the GPU."""
    header = numpy.random.default_rng(1).integers(0, 256, (1, 64), numpy.uint8)
    words = set()
    for i in range(64):
        changed = header.copy()
        changed[0, i] ^= 1 << i // 8
        words.add(int(gpu_headers.expected(changed)[0]))
    assert len(words) == gpu_headers.HEADER + 1  # the bytes behind it change nothing
