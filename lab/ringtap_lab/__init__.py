# SPDX-License-Identifier: BSD-3-Clause
"""Experiments and benchmarks around ringtap. Needs nothing but Debian's python3."""
