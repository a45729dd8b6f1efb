# SPDX-License-Identifier: BSD-3-Clause
"""What both use: statistics, results on disk, processes, huge pages, namespaces, the machine."""
