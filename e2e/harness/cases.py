# SPDX-License-Identifier: BSD-3-Clause
"""Cases of tests with parameters."""

from functools import partial

import pytest

# A value of a parameter whose case does not gate: a variant of another one. `make nightly` runs it.
nightly = partial(pytest.param, marks=pytest.mark.nightly)
