# SPDX-License-Identifier: BSD-3-Clause
"""Fates of the packets of a recording: `ringtap explain` joins them, so that there is one join and one
definition of its terms. This only reads what it prints."""

from __future__ import annotations

import csv
import errno
import json
import os
import subprocess
import tempfile
import typing
from typing import TYPE_CHECKING

from ._apps import Error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import Popen
    from typing import BinaryIO


class Outcome(typing.NamedTuple):
    """A sending of a packet, or a received packet that was not sent.

    fate       "sent", "not_sent", "open", "let_go", "made" or "unknown"; of recordings with fates (`ringtap record
               --fates`) "offered", "not_offered", "likely_offered" or "undecided" instead of "not_sent": see
               ringtap-explain(1)
    id         of the packet; None if the application made it
    rx_…       frame number, time, port, queue and length as received; None for "made" and "unknown"
    tx_…       the same as sent; None for "not_sent", "open" and "let_go"
    latency_ns, copy, reordered, changes, flow
               of "sent": copy is 0 for the first sending of a packet; changes are names as in --json
    noticed_ns when the recorder learned the fate; None if the file does not say
    reason     of "not_offered": the one that the application gave by ringtap_reason(), or None
    """

    fate: str
    id: int | None
    rx_frame: int | None
    rx_ns: int | None
    rx_port: str | None
    rx_queue: int | None
    rx_length: int | None
    tx_frame: int | None
    tx_ns: int | None
    tx_port: str | None
    tx_queue: int | None
    tx_length: int | None
    latency_ns: int | None
    copy: int | None
    reordered: bool
    changes: tuple[str, ...]
    flow: str | None
    noticed_ns: int | None = None
    reason: str | None = None


_TEXTS = {"fate", "rx_port", "tx_port", "flow", "reason"}


def _value(name: str, text: str):
    if name == "reordered":
        return text == "1"
    if name == "changes":
        return tuple(text.split())
    if name in _TEXTS:
        return text or None
    return int(text) if text else None


def _command(files: str | list[str], timeout: float | None, memory: int | None, program: str, output: str):
    files = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not files:
        raise ValueError("no file to explain: the list is empty")
    argv = [program, "explain", output]
    argv += ["--timeout", f"{timeout:.9f}s"] if timeout is not None else []
    argv += ["--buffer", f"{memory}B"] if memory is not None else []
    return [*argv, "--", *map(os.fspath, files)]


def _start(argv: list[str], err: BinaryIO):
    try:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, text=True, errors="replace"
        )
    except FileNotFoundError:
        raise Error(errno.ENOENT, f"no program {argv[0]!r}; install ringtap, or name its path by program=") from None


def _check(process: Popen, err: BinaryIO, fine: tuple[int, ...] = (0,)):
    """Raises Error with the program's message if it has failed."""
    if process.wait() not in fine:
        err.seek(0)
        message = err.read().decode(errors="replace").strip() or f"it ended with status {process.returncode}"
        raise Error(errno.EINVAL, message)


def _output(argv: list[str], fine: tuple[int, ...] = (0,)) -> str:
    """Output of a program; fine: its statuses of success."""
    with tempfile.TemporaryFile() as err:
        process = _start(argv, err)
        with process.stdout:
            text = process.stdout.read()
        _check(process, err, fine)
    return text


def explain(
    files: str | list[str], *, timeout: float | None = None, memory: int | None = None, program: str = "ringtap"
) -> Iterator:
    """Iterates over the packets of a recording, or of several files of one: an Outcome for each sending, and
    for each received packet that was not sent, in the order in which that becomes known.

    files      a path, or a list of paths
    timeout    seconds after which a packet counts as not sent; None: the program's default
    memory     bytes for packets that may still be sent; None: the program's default
    program    the ringtap command
    Raises Error if there is no such program, after what could be read of a damaged file, or if packets have
    no ids: record them with `ringtap record --ids`.
    """
    with tempfile.TemporaryFile() as err:
        process = _start(_command(files, timeout, memory, program, "--csv"), err)
        try:
            lines = csv.reader(process.stdout)
            names = next(lines, [])
            for line in lines:
                yield Outcome(**{name: _value(name, text) for name, text in zip(names, line)})
            _check(process, err)
        finally:  # also when the caller stops early
            process.stdout.close()
            process.kill()
            process.wait()


def explain_summary(
    files: str | list[str], *, timeout: float | None = None, memory: int | None = None, program: str = "ringtap"
) -> dict | None:
    """The sums, percentiles, flows and changes of a recording: what `ringtap explain --json` prints. Arguments
    and errors are those of explain()."""
    return json.loads(_output(_command(files, timeout, memory, program, "--json")))
