# SPDX-License-Identifier: BSD-3-Clause
"""Applications, experiments and benchmarks, and the two programs (cli, bench)."""
