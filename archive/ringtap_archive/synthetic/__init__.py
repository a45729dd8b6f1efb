# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic traffic, made with numpy in slices: conversations, their headers, pcapng blocks."""
