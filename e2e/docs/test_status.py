# SPDX-License-Identifier: BSD-3-Clause
"""Exit statuses of all commands, which ringtap(1) lists. FAILED and USAGE are those of an error, which is one line."""

import json
import os
import subprocess
import tempfile

from harness.paths import RINGTAP
from harness.proc import HANG, check, run, together
from harness.ringtap import FAILED, OK, USAGE

NOWHERE = "no-such-application"

# APP is an application, FILE a recording of it, DIR an empty folder of the line, INCIDENTS one with an incident.
STATUSES = [
    ("list", OK),
    (f"list {NOWHERE}", FAILED),
    ("list --nonsense", USAGE),
    ("detach APP", OK),
    ("attach APP", OK),
    (f"attach {NOWHERE}", FAILED),
    ("attach 1", FAILED),
    ("attach", USAGE),
    (f"detach {NOWHERE}", FAILED),
    ("detach", USAGE),
    ("record -i APP -a packets:0 -w DIR/x", USAGE),
    ("record -i APP -a duration:1 -w DIR/x", OK),
    ("record -i APP -a duration:1 -w DIR/none/x", FAILED),
    (f"record -i {NOWHERE} -w DIR/x", FAILED),
    ("record -D", OK),
    ("explain FILE", FAILED),  # without ids
    ("explain DIR/none", FAILED),
    ("explain", USAGE),
    ("anonymize FILE -w DIR/anonymous", OK),
    ("anonymize DIR/none -w DIR/anonymous", FAILED),
    ("anonymize FILE", USAGE),
    ("archive", USAGE),
    ("archive moon", USAGE),
    ("archive --help", OK),
    (f"flight {NOWHERE}", FAILED),
    ("flight --on moon", USAGE),
    ("flight list --folder DIR", OK),
    ("flight list --folder DIR/none", FAILED),
    ("flight show --folder DIR x", FAILED),
    ("flight extract --folder DIR -w DIR/x x", FAILED),
    ("flight extract", FAILED),
    ("flight top --once APP", FAILED),
    ("flight trigger --folder DIR", FAILED),
    ("flight prune --folder DIR --max-incidents 1", OK),
    ("flight prune", USAGE),
    ("run true", OK),
    ("run false", 1),
    ("run no-such-program", 127),
    ("run /", 126),
    ("run", USAGE),
    ("host no-such-device", FAILED),
    ("host", USAGE),
    ("top --once APP", OK),
    (f"top --once {NOWHERE}", FAILED),
    ("top --view moon", USAGE),
    ("doctor --duration 1s APP", OK),
    (f"doctor --duration 1s {NOWHERE}", FAILED),
    ("doctor --duration 0", USAGE),
    ("latency --duration 1s APP", OK),
    (f"latency {NOWHERE}", FAILED),
    ("latency --duration 0", USAGE),
    ("drops --once APP", OK),
    (f"drops {NOWHERE}", FAILED),
    ("drops --duration x", USAGE),
    ("held --once APP", OK),
    (f"held {NOWHERE}", FAILED),
    ("held --older x", USAGE),
    ("memory --duration 1s APP", OK),
    (f"memory {NOWHERE}", FAILED),
    ("memory --duration x", USAGE),
    ("bug-report --duration 1s APP", OK),
    (f"bug-report {NOWHERE}", OK),  # that no application has the name is what the report says
    ("bug-report --duration x", USAGE),
    ("web --nonsense", USAGE),
    ("flows --nonsense", USAGE),
    ("export --listen 127.0.0.1:1 --nonsense", USAGE),
    ("export --listen 192.0.2.1:9", FAILED),
    ("trace list APP", OK),
    (f"trace list {NOWHERE}", FAILED),
    ("trace", USAGE),
    ("--help", OK),
    ("help", OK),
    ("help flight top", OK),
    ("help help", OK),
    ("help moon", USAGE),
    ("--version", OK),
    ("moon", USAGE),
    ("", USAGE),
]

# All that print to standard output, and live commands without an end of their own.
PRINTS = [
    "--help",
    "help record",
    "--version",
    "list",
    "list --json",
    "list --names",
    "detach APP",
    "attach APP",
    "record -D",
    "record -d -f tcp",
    "record -i APP -S",
    "record -i APP -w -",
    "anonymize FILE -w -",
    "record -i APP -w - --compress zstd",
    "record -i APP -c 99 --json -w DIR/x",
    "explain FILE.ids",
    "explain --json FILE.ids",
    "explain --csv FILE.ids",
    "archive --help",
    "flight --help",
    "flight list --folder INCIDENTS",
    "flight list --json --folder INCIDENTS",
    "flight prune --max-incidents 9 --folder INCIDENTS",
    "run --help",
    "run cat /proc/self/stat",
    "host --help",
    "top APP",
    "top --once APP",
    "top --json APP",
    "doctor --duration 1s APP",
    "doctor --duration 1s --json APP",
    "latency --duration 1s APP",
    "latency --duration 1s --json APP",
    "drops APP",
    "drops --json APP",
    "held --once APP",
    "held --json APP",
    "memory --duration 1s APP",
    "memory --duration 1s --json APP",
    "export --help",
    "trace list APP",
    "trace list --json APP",
    "bug-report --duration 1s APP",
    "bug-report --duration 1s --json APP",
    "web --help",
    "flows --help",
]
SIGPIPE = -13


def words_of(app, tmp_path, *stop):
    """f(line): its words, with what they stand for. stop: ends a recording."""
    incident = tmp_path / "incidents" / "20260102T030405.678901-missed"
    incident.mkdir(parents=True)
    file = tmp_path / "file"
    for name, options in ((file, []), (f"{file}.ids", ["--ids"])):
        check([RINGTAP, "record", "-q", "-i", app.prefix, *stop, "-w", name, *options])
    common = {"APP": app.prefix, "FILE": str(file), "INCIDENTS": str(incident.parent)}

    def replaced(word, meant):
        for name, value in sorted(meant.items(), reverse=True):
            if word == name or word.startswith((f"{name}/", f"{name}.")):
                return value + word[len(name) :]
        return word

    def words(line):
        meant = common | {"DIR": tempfile.mkdtemp(dir=tmp_path)}
        return [replaced(word, meant) for word in line.split()]

    return words


def outcomes(run_line, lines):
    """Result of run_line for each line. Most commands wait for the end of an interval, several at a time; the first
    ones load the probe and make it sleep."""
    first = [line for line in lines if line.startswith(("attach", "detach"))]
    done = {line: run_line(line) for line in first}
    rest = [line for line in lines if line not in done]
    return done | dict(zip(rest, together(run_line, rest), strict=True))


def test_every_command_is_in_the_tables():
    names = {c["name"] for c in json.loads(check([RINGTAP, "--describe"]))}
    assert names <= {line.split(" ")[0] for line, _ in STATUSES} and names <= {line.split(" ")[0] for line in PRINTS}


def test_statuses(app, tmp_path):
    words = words_of(app, tmp_path, "-a", "duration:1")
    wrong = []
    expected = dict(STATUSES)
    for line, done in outcomes(lambda line: run([RINGTAP, *words(line)], cwd=tmp_path), expected).items():
        status = expected[line]
        one_line = done.stderr.startswith("ringtap: ") and done.stderr.count("\n") == 1
        if done.returncode != status or (status in (FAILED, USAGE) and not one_line and line not in ("", "run false")):
            wrong.append(f"'{line}' ended with {done.returncode}, not {status}: {done.stderr}")
    assert not wrong, "\n".join(wrong)


def test_an_empty_list(tmp_path):
    """Where no process and no folder of an application is seen."""
    alone = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-c",
        'mount -t tmpfs x /run && exec "$@"',
        "sh",
    ]
    done = run([*alone, RINGTAP, "list"])
    assert done.returncode == OK and not done.stdout
    assert "no running DPDK application found" in done.stderr and done.stderr.count("\n") == 1
    assert json.loads(check([*alone, RINGTAP, "list", "--json"]))["applications"] == []


def test_a_reader_that_has_closed_the_output(busy, tmp_path):
    """It is not an error of the command: nothing is said about it."""
    words = words_of(busy, tmp_path, "-c", "99")
    read, write = os.pipe()
    os.close(read)

    def run_line(line):
        return subprocess.run(
            [RINGTAP, *words(line)],
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG,
            cwd=tmp_path,
        )

    wrong = []
    done_lines = outcomes(run_line, PRINTS)
    os.close(write)
    for line, done in done_lines.items():
        expected = SIGPIPE if line.startswith("run cat") else OK  # it has the signal's default action
        said = [text for text in ("standard output", "Broken pipe", "cannot write") if text in done.stderr]
        if done.returncode != expected or (said and expected == OK):
            wrong.append(f"'{line}' ended with {done.returncode}: {done.stderr}")
    assert not wrong, "\n".join(wrong)
