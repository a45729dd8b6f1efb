# SPDX-License-Identifier: BSD-3-Clause
"""What is shown: the HTML report (page), what it is made of (blocks, plots), a view of each experiment."""
