# SPDX-License-Identifier: BSD-3-Clause
"""The HTML report (page), its parts (blocks, plots), and a view of each experiment."""
