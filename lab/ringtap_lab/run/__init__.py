# SPDX-License-Identifier: BSD-3-Clause
"""What runs: applications, experiments and benchmarks, and the two programs (cli, bench)."""
