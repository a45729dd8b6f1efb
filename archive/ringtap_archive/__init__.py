# SPDX-License-Identifier: BSD-3-Clause
"""An archive of recordings: pcapng is the data, Parquet the index; see docs/archive.md."""
