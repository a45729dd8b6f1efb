# SPDX-License-Identifier: BSD-3-Clause
"""Starts, controls and checks the programs of the tests."""
