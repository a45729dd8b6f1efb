# SPDX-License-Identifier: BSD-3-Clause
"""False archives: what a user puts into an archive of its own so that a command of another user does harm."""

import json
import os
import struct

import zstandard
from ringtap_archive import frames, layout, store

# Processes of ringtap write none of these. {outside}: a path out of the archive.
JOURNALS = [
    {"rename": [["{outside}", "recorder=a/date=2026-03-01/hour=10/000009.pcapng"]], "remove": []},
    {"rename": [["recorder=a/date=2026-03-01/hour=10/000001.flows.parquet", "{outside}"]], "remove": []},
    {"rename": [[".tmp/1-0123456789ab/../../../outside", ".damaged/x"]], "remove": []},
    {"rename": [], "remove": ["{outside}"]},
    {"rename": [], "remove": ["../outside"]},
    {"rename": [], "remove": ["recorder=a/date=2026-03-01/hour=10/../../../../outside"]},
    {"rename": [], "remove": ["recorder=../date=2026-03-01/hour=10/000001.pcapng"]},
    {"rename": [], "remove": [".lock"]},
    {"rename": [], "remove": 5},
    {"rename": [["x"]], "remove": []},
    {},
    [],
    None,
]


def journal(archive, content):
    (archive / store.JOURNAL).write_text(json.dumps(content))


def link(path, target):
    """Instead of a folder or file, which goes to NAME.old."""
    if os.path.lexists(path):
        path.rename(path.with_name(f"old-{path.name}"))
    path.symlink_to(target)


def claim(pcapng, size):
    """A frame, and the seek table, claim this size: zeros compress well."""
    out = zstandard.ZstdCompressor(level=1).compressobj(size=size)
    zeros = bytes(1 << 20)
    packed = b"".join([*(out.compress(zeros) for _ in range(size >> 20)), out.flush()])
    table = frames.ENTRY.pack(len(packed), size) + frames.FOOT.pack(1, 0, frames.MAGIC)
    pcapng.write_bytes(packed + struct.pack("<II", frames.SKIPPABLE, len(table)) + table)


def meta(archive, change):
    """Writes meta.json of the only part again, as change(meta) leaves it."""
    (path,) = archive.glob(f"recorder=*/date=*/hour=*/*{layout.META}")
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
