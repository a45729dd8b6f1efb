# SPDX-License-Identifier: BSD-3-Clause
"""The commands of README.md run, and print output of the shown form."""

import re
import shlex

import pytest
from harness.paths import REPO, RINGTAP
from harness.proc import Proc, check
from harness.two_hosts import SERVER, TwoHosts


def shown():
    """{command: lines of its output} of the README's code blocks that begin with a prompt."""
    commands, lines = {}, None
    for line in (REPO / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("    $ "):
            lines = commands.setdefault(line[6:], [])
        elif line and not line.startswith("    "):
            lines = None
        elif lines is not None and line.strip():
            lines.append(line.strip())
    return commands


def form(line):
    """Removes what differs between runs: numbers, their units and widths."""
    line = re.sub(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b", "MAC", line)
    line = re.sub(r"\+[0-9a-f]{12}\b", "", line)  # the commit
    line = re.sub(r"\*(?= |$)", "", line)  # a mark: of few packets
    line = re.sub(r"\d[\d,.]*", "N", line)
    line = re.sub(r"N ?(?:[KMGT]i)?B\b", "SIZE", line)
    line = re.sub(r"N ([kMG] )?packets/s", "RATE", line)
    line = re.sub(r"N [num]?s(?= |$)", "TIME", line)
    line = re.sub(r"N [kMG](?= |$)", "N", line)  # as in a cell of a table
    return " ".join(line.split())


def lines_of(output):
    """Without live counts, which a slow machine may print."""
    found = [line.split("\r")[-1].strip() for line in output.splitlines()]
    return [line for line in found if line and not line.startswith("packets: ")]


@pytest.fixture
def hosts(plugin, closing, tmp_path):
    (tmp_path / "pages").mkdir()
    return closing(TwoHosts(plugin, tmp_path / "pages"))


def assert_recorded(path):
    """The file matches the summary."""
    rows = check(
        [
            "tshark",
            "-r",
            path,
            "-Y",
            "tcp.port == 80",
            "-T",
            "fields",
            "-e",
            "frame.interface_name",
            "-e",
            "frame.packet_flags_direction",
        ]
    ).splitlines()
    assert len(rows) == 20
    assert len(set(rows)) == 4  # two ports, each both directions


def assert_as_shown(hosts, tmp_path, closing, name):
    command, expected = next((c, lines) for c, lines in shown().items() if c.split()[1] == name)
    argv = shlex.split(command)
    assert argv[0] == "ringtap" and expected
    if name == "latency":  # there is traffic whenever it measures
        closing(hosts.client.start(["ping", "-q", "-f", "-w", "60", SERVER]))
    proc = Proc([RINGTAP, *argv[1:]], cwd=tmp_path)
    try:
        if name == "record":
            proc.expect("^Capturing on")
            hosts.fetch()
        assert proc.wait() == 0, proc.output
    finally:
        proc.close()
    got = [form(line) for line in lines_of(proc.output)]
    # The README omits the other direction of the latencies.
    assert got[: len(expected)] == [form(line) for line in expected], proc.output
    if name == "record":
        assert_recorded(tmp_path / "http.pcapng")


@pytest.mark.smoke
def test_commands(hosts, tmp_path, closing):
    for name in "list", "record", "latency":
        assert_as_shown(hosts, tmp_path, closing, name)
