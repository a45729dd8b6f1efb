# SPDX-License-Identifier: BSD-3-Clause
"""The folder of incidents belongs to another user, who has prepared it."""

import json

from harness.hostile import incidents
from harness.paths import RINGTAP
from harness.proc import check


def flight(command, folder, *args):
    return check([RINGTAP, "flight", command, "--folder", folder, *args])


def assert_harmless(text):
    assert not [c for c in text if c not in "\n\t" and (c < " " or "\x7f" <= c < "\xa0")]
    assert "owned" in text and "\nforged" not in text


def test_control_sequences_stay_in_the_files(tmp_path):
    made = incidents.incident(tmp_path, 1)
    incidents.incident(tmp_path, 2, name="exit" + incidents.SEQUENCES)
    listed = flight("list", tmp_path)
    assert_harmless(listed)
    assert listed.startswith(made.name) and listed.count("\n") == 1
    assert_harmless(flight("show", tmp_path, made.name))
    # A forged file does not follow the schema.
    assert (
        json.JSONDecoder()
        .decode(flight("list", tmp_path, "--json"))["incidents"][0]["trigger"]["condition"]
        .startswith("condition")
    )
