# SPDX-License-Identifier: BSD-3-Clause
"""The model of the IOTLB compared with a direct implementation of its definition."""

import random
from collections import OrderedDict

import pytest
from ringtap_lab.tools import iotlb


def misses_of_a_real_cache(pages, entries, warm_up):
    cache, misses = OrderedDict(), 0
    for i, page in enumerate(pages):
        if page in cache:
            cache.move_to_end(page)
            continue
        misses += i >= warm_up
        cache[page] = True
        if len(cache) > entries:
            cache.popitem(last=False)
    return misses


@pytest.mark.parametrize("seed", range(5))
def test_model_matches_a_cache(seed):
    source = random.Random(seed)
    count = source.choice([1, 2, 3, 100, 777, 1024])
    pages = [source.randrange(source.choice([3, 50, 400])) for _ in range(count)]
    sizes = [1, 2, 16, 64, 256, 4096]
    warm_up = count // 3
    found = iotlb.miss_rates([p * 4096 + source.randrange(4096) for p in pages], 4096, sizes, warm_up)
    for entries, rate in zip(sizes, found):
        assert rate * (count - warm_up) == pytest.approx(misses_of_a_real_cache(pages, entries, warm_up))


def test_known_results():
    buffers = [i * 2048 for i in range(8192)]  # 4096 pages of 4 KiB, 8 of 2 MiB
    twice = buffers * 2
    assert iotlb.pages_touched(twice, 4096) == 4096 and iotlb.pages_touched(twice, 2 << 20) == 8
    # For cyclic accesses in order, LRU has evicted each page before it is used again, unless all
    # fit.
    assert iotlb.miss_rates(twice, 4096, [16, 4095, 4096], 8192) == [0.5, 0.5, 0.0]
    assert iotlb.miss_rates(twice, 2 << 20, [7, 8], 8192) == [8 / 8192, 0.0]
    shuffled = random.Random(1).sample(buffers, len(buffers)) * 2
    assert iotlb.miss_rates(shuffled, 4096, [16], 8192)[0] > 0.99
    assert iotlb.miss_rates(shuffled, 2 << 20, [4, 8], 8192) == [pytest.approx(0.5, abs=0.05), 0.0]


def test_no_accesses():
    assert iotlb.miss_rates([], 4096, [16]) == [0.0]
    assert iotlb.pages_touched([], 4096) == 0
