# SPDX-License-Identifier: BSD-3-Clause
"""No wait of devtools/demo.sh outlasts the program that it waits for; an error is one line. The programs are replaced."""

import os
import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[1] / "demo.sh"
FORWARDS = 'start*) echo "noisy packet forwarding - ports=2 - cores=1" ;;'
SUMMARY = 'show*) echo "testpmd> Number of available ports: 2" ;;'
TESTPMD = "echo 'Interactive-mode selected'\nwhile read -r line; do case $line in\n%s\nesac; done\n"


@pytest.fixture
def demo(tmp_path):
    """Runs it with these texts of shell as testpmd and as what `ringtap flight` does."""

    def run(testpmd, flight=""):
        for name, text in {
            "dpdk-testpmd": testpmd,
            "ringtap": f"case $2 in top) echo '\"value\": \"3 us\"'; exit ;; esac\n[ $1 = flight ] || exit 0\n{flight}",
        }.items():
            (tmp_path / name).write_text("#!/bin/sh\n" + text)
            (tmp_path / name).chmod(0o755)
        env = os.environ | {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "RINGTAP_DEMO_FILE": str(tmp_path / "incidents"),
        }
        (tmp_path / "incidents" / "of-the-run-before").mkdir(parents=True)
        return subprocess.run([DEMO, "--incident", "--installed"], env=env, capture_output=True, text=True)

    return run


def refused(done, *words):
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and done.stderr.startswith("demo: "), done
    assert all(word in done.stderr for word in words), done.stderr
    return True


def test_testpmd_that_ends_at_once(demo):
    assert refused(demo("echo 'EAL: no memory'; exit 1"), "testpmd has ended: EAL: no memory")


def test_testpmd_that_does_not_forward(demo):
    refuses = TESTPMD % f'start*) printf "testpmd> Not all ports were started\\n\\n" ;;\n{SUMMARY}'
    assert refused(demo(refuses), "does not forward: ", "Not all ports were started")


def test_recorder_that_cannot_attach(demo):
    done = demo(TESTPMD % f"{FORWARDS}\n{SUMMARY}", "echo 'flight: cannot attach' >&2; exit 1")
    assert refused(done, "flight has ended", "cannot attach")


def test_stall_that_makes_no_incident(demo):
    """The recorder ends after its time."""
    flight = "printf 'Keeping the packets\\nIncidents: 0\\n' >&2"
    done = demo(TESTPMD % f"{FORWARDS}\n{SUMMARY}", flight)
    assert refused(done, "without an incident: Incidents: 0") and "stalls for 400 ms" in done.stdout


def test_recorder_that_fails_at_its_end(demo):
    flight = "printf 'Keeping the packets\\nIncident 2026-gap: gap > 300ms\\nflight: no space\\n' >&2; exit 1"
    assert refused(demo(TESTPMD % f"{FORWARDS}\n{SUMMARY}", flight), "flight failed: flight: no space")
