# SPDX-License-Identifier: BSD-3-Clause
"""Tools of both packages: statistics, results on disk, processes, huge pages, namespaces, the machine."""
