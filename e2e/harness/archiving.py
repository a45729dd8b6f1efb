# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive` in this process and in children that can be killed, and what an archive must hold.
An interpreter with its libraries takes half a second to start: children are forked."""

import hashlib
import itertools
import os
import re
import select
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
from ringtap_archive import decoder, frames, generate, layout, main, store

# Before children are forked: what the commands import when they are called.
for name in ("ingest", "compact", "prune", "verify"):
    main.parser_of(name)

START_NS = generate.parse_time("2026-03-01T10:00:00Z")


def decode(path, **options):
    """Rows and flows of a recording, as the decoder has them."""
    with decoder.open(path, **options) as d:
        rows, flows = [], []
        for part in d.parts():
            for batch in part.batches():
                rows += batch.to_pylist()
            flows.append(part.flows().to_pylist())
    assert d.torn is None
    return rows, list(itertools.chain(*flows))


def recording(path, packets=3000, seed=1, rate=1_000_000, start_ns=START_NS, **options):
    generate.write(path, packets=packets, seed=seed, rate=rate, start_ns=start_ns, flows=200, **options)
    return path


def of_hours(path, hours, seed=1, each=800):
    """A recording with packets of N hours: a section for each, as concatenated files have them."""
    data = b""
    for hour in range(hours):
        piece = path.with_name(f"{path.name}.{hour}")
        recording(piece, each, seed * 100 + hour, start_ns=START_NS + hour * layout.HOUR_NS)
        data += piece.read_bytes()
        piece.unlink()
    path.write_bytes(data)
    return path


def call(*words):
    return main.main([str(word) for word in words])


def end_of(pid):
    """(exit status or None, signal or None)"""
    _, status = os.waitpid(pid, 0)
    return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)


def kill_after(pid, seconds, number):
    """Sends the signal after this time, unless the process has ended."""
    fd = os.pidfd_open(pid)
    try:
        if not select.select([fd], [], [], seconds)[0]:
            os.kill(pid, number)
    finally:
        os.close(fd)


def seconds_of(function, *args):
    begin = time.monotonic()
    function(*args)
    return time.monotonic() - begin


def parts(archive, **window):
    return store.Archive(archive).parts(**window)


def content(part):
    """The part's pcapng, uncompressed by our reader."""
    with frames.open_file(part.pcapng) as file:
        return b"".join(data for _, data in file.pieces())


def by_zstd(path):
    return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout


def packets_in(data):
    """As capinfos counts them."""
    out = subprocess.run(["capinfos", "-Mc", "-"], input=data, capture_output=True, check=True).stdout
    return int(re.search(rb"Number of packets: *(\d+)", out)[1])


def sources(archive):
    """{sha256: [part numbers]} of all sources."""
    found = {}
    for part in parts(archive):
        for source in part.sources:
            found.setdefault(source["sha256"], []).append((source["part"], source["parts"]))
    return found


def assert_whole(archive, *files):
    """Each of the files is there once and wholly, and nothing else is."""
    expected = {hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files}
    found = sources(archive)
    assert set(found) == expected
    for numbers in found.values():
        assert sorted(number for number, _ in numbers) == list(range(numbers[0][1]))


def assert_all_or_nothing(archive):
    for numbers in sources(archive).values():
        assert sorted(number for number, _ in numbers) == list(range(numbers[0][1]))


def assert_clean(archive):
    """Nothing is left of processes that were killed."""
    assert not list((Path(archive) / ".tmp").glob("*"))
    assert not (Path(archive) / store.JOURNAL).exists()
    known = {path for part in parts(archive) for path in part.files()}
    assert set(Path(archive).glob("recorder=*/date=*/hour=*/*")) == known


def rows(archive):
    return sum(pq.read_metadata(part.packets).num_rows for part in parts(archive))
