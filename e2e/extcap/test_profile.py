# SPDX-License-Identifier: BSD-3-Clause
"""Wireshark's profile 'ringtap', which is installed beside the extcap program: columns and colours."""

import re
import shutil

import pytest
from harness.paths import REPO
from harness.proc import run
from harness.traced import Plan, Writer

PROFILE = REPO / "extcap" / "profile"
pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")


@pytest.fixture
def tshark(tmp_path):
    """tshark(argument...): its lines, with the profile as one of the user's: tshark does not take global ones."""
    plugin = REPO / "extcap" / "ringtap.lua"
    shutil.copytree(PROFILE, tmp_path / "wireshark/profiles/ringtap")
    path = Plan(7, packets=50).write(Writer()).write(tmp_path / "trace.pcapng")

    def lines(*args):
        command = ["tshark", "-C", "ringtap", "-X", f"lua_script:{plugin}", "-r", path, "-2", "-Y", "frame", *args]
        done = run(command, env={"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)})
        assert done.returncode == 0 and "rror" not in done.stderr, done.stderr
        return done.stdout.splitlines()

    return lines


def test_columns(tshark):
    columns = re.findall(r'^\t"([^"]+)"', (PROFILE / "preferences").read_text(), re.M)
    assert {"Port", "Direction", "Queue", "Id", "Latency", "Fate"} < set(columns)
    options = [word for name in columns for word in ("-e", f"_ws.col.{name}")]
    rows = [dict(zip(columns, line.split("\t"), strict=True)) for line in tshark("-T", "fields", *options)]
    assert all(row["Port"] and row["Direction"] for row in rows) and any(row["Id"] for row in rows)
    assert any(row["Latency"] and row["Fate"].startswith("sent") for row in rows)


def test_colours(tshark):
    found = set(
        tshark("--color", "-T", "fields", "-e", "frame.packet_flags_direction", "-e", "frame.coloring_rule.name")
    )
    assert {line.split("\t")[1] for line in found if line[-1:].isalpha()} <= {"Sent", "Received", "Not offered"}
    assert len({line.split("\t")[0] for line in found}) == len(found) == 2


def test_installed(installation):
    (folder,) = installation.rglob("wireshark/profiles/ringtap")
    assert {p.name: p.read_text() for p in folder.iterdir()} == {p.name: p.read_text() for p in PROFILE.iterdir()}
