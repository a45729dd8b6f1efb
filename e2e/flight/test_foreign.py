# SPDX-License-Identifier: BSD-3-Clause
"""The folder of incidents belongs to another user, who has prepared it."""
import json

import pytest

from harness.hostile import incidents
from harness.paths import RINGTAP
from harness.proc import check, run
from harness.ringtap import FAILED


def flight(command, folder, *args):
    return check([RINGTAP, "flight", command, "-w", folder, *args], timeout=20)


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
    assert json.loads(flight("list", tmp_path, "--json"))["incidents"][0]["trigger"]["condition"].startswith("condition")


@pytest.mark.parametrize("what", ["fifo", "large", "device", "link", "lease"])
def test_other_files_in_place_of_those_of_an_incident(tmp_path, closing, what):
    """Nothing waits for them, and nothing is printed of them."""
    good, bad = incidents.incident(tmp_path, 1), incidents.incident(tmp_path, 2)
    if what == "lease":
        closing(incidents.Lease(bad / "incident.json"))
    else:
        incidents.in_place_of(bad / "incident.json", what)
        incidents.in_place_of(good / "doctor.txt", what)
    first, second = flight("list", tmp_path).splitlines()
    assert first.startswith(good.name) and " 1 packets" in first
    assert second.split() == [bad.name, "incomplete"]
    assert "root:" not in flight("show", tmp_path, good.name)
    show = run([RINGTAP, "flight", "show", "-w", tmp_path, bad.name], timeout=20)
    assert show.returncode == FAILED and "no complete incident" in show.stderr
    incidents.in_place_of(bad / "packets.pcapng", "fifo")
    extract = run([RINGTAP, "flight", "extract", "-w", tmp_path, bad.name, "-o", tmp_path / "out"], timeout=20)
    assert extract.returncode == FAILED and not (tmp_path / "out").exists()


def test_pruning_stays_in_the_folder(tmp_path):
    """An incident that is a link to another folder is none."""
    folder, elsewhere = tmp_path / "incidents", tmp_path / "elsewhere"
    folder.mkdir()
    kept = incidents.incident(tmp_path, 3)
    kept.rename(elsewhere)
    (folder / incidents.name_of(1)).symlink_to(elsewhere)
    incidents.incident(folder, 2)
    incidents.incident(folder, 3)
    assert flight("prune", folder, "--max-incidents", "1") == "1 incidents removed\n"
    assert sorted(p.name for p in elsewhere.iterdir()) == ["doctor.txt", "incident.json"]
