# SPDX-License-Identifier: BSD-3-Clause
"""Starts, drives and checks the real programs that the tests are made of."""
