# SPDX-License-Identifier: BSD-3-Clause
"""Hostile peers: false applications, readers, archives and folders of incidents. A module for each."""
