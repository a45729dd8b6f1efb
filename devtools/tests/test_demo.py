# SPDX-License-Identifier: BSD-3-Clause
"""No wait of devtools/demo.sh outlasts the program that it waits for; an error is one line; nothing remains after a signal. The
programs are replaced."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[1] / "demo.sh"
FORWARDS = 'start*) echo "noisy packet forwarding - ports=2 - cores=1" ;;'
SUMMARY = 'show*) echo "testpmd> Number of available ports: 2" ;;'
TESTPMD = "echo 'Interactive-mode selected'\nwhile read -r line; do case $line in\n%s\nesac; done\n"


@pytest.fixture
def start(tmp_path):
    """Starts it, in a session of its own, with these texts of shell as testpmd and as what `ringtap flight` does; its private
    folder is tmp_path/work."""

    def run(testpmd, flight="", **others):
        for name, text in {
            "dpdk-testpmd": testpmd,
            "ringtap": f"case $2 in top) echo '\"value\": \"3 us\"'; exit ;; esac\n[ $1 = flight ] || exit 0\n{flight}",
            "mktemp": f"mkdir {tmp_path}/work && echo {tmp_path}/work",
            **others,
        }.items():
            (tmp_path / name).write_text("#!/bin/sh\n" + text)
            (tmp_path / name).chmod(0o755)
        env = os.environ | {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "RINGTAP_DEMO_FILE": str(tmp_path / "incidents"),
        }
        (tmp_path / "incidents" / "of-the-run-before").mkdir(parents=True)
        return subprocess.Popen(
            [DEMO, "--incident", "--installed"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return run


@pytest.fixture
def demo(start, tmp_path):
    """Runs it until it ends."""

    def run(*texts, **others):
        with start(*texts, **others) as proc:
            stdout, stderr = proc.communicate()
        assert not (tmp_path / "work").exists()
        return subprocess.CompletedProcess(proc.args, proc.returncode, stdout, stderr)

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


def test_the_first_error_of_testpmd_counts(demo):
    text = "echo 'EAL: Error creating /x: Permission denied'; echo 'EAL: Unregistering with invalid parameter'; exit 1"
    assert refused(demo(text), "testpmd has ended: EAL: Error creating /x: Permission denied")


@pytest.mark.parametrize("user", ["0", "1000"])
def test_runtime_folder_of_an_ordinary_user(demo, tmp_path, user):
    """/tmp/dpdk may be another user's."""
    done = demo('echo "Error: $XDG_RUNTIME_DIR"; exit 1', id=f"echo {user}")
    assert (f"Error: {tmp_path}/work" in done.stderr) == (user != "0"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_terminals_processes(start, tmp_path, number):
    """testpmd has a session of its own: it ends after ringtap, which could not attach to it otherwise."""
    testpmd = f"trap 'touch {tmp_path}/hit' HUP TERM\n" + TESTPMD % f"{FORWARDS}\n{SUMMARY}"
    keeps = 'rm -rf "$RINGTAP_DEMO_FILE"; mkdir "$RINGTAP_DEMO_FILE"; touch "$RINGTAP_DEMO_FILE/.recorder"\n'
    with start(testpmd, f"{keeps}echo Keeping the packets\nexec sleep 1000") as proc:
        assert any("testpmd stalls" in line for line in proc.stdout)
        os.killpg(proc.pid, number)
        assert proc.wait() == 130
    assert not {"work", "hit", "incidents"} & set(os.listdir(tmp_path))


def test_output_that_is_closed(start, tmp_path):
    with start(TESTPMD % f"{FORWARDS}\n{SUMMARY}") as proc:
        assert any("unmodified" in line for line in proc.stdout)
        proc.stdout.close()
        assert proc.wait() == 130
    assert not (tmp_path / "work").exists()
