# SPDX-License-Identifier: BSD-3-Clause
"""The commands take the options that `ringtap archive --help` and its man page list."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from harness.paths import BUILD, RINGTAP
from harness.proc import check, run
from ringtap_archive import main


def described():
    (command,) = (c for c in json.loads(check([RINGTAP, "--describe"])) if c["name"] == "archive")
    return command


def names(parser):
    return {word for action in parser._actions for word in action.option_strings} - {"-h", "--help"}


def test_the_tables_are_what_commands_take():
    assert [c["name"] for c in described()["commands"]] == [f"archive {name}" for name in main.COMMANDS]
    for name, command in zip(main.COMMANDS, described()["commands"]):
        parser = main.parser_of(name)[1]
        table = {f"--{o['name']}" for o in command["options"] if o["name"]}
        table |= {f"-{o['letter']}" for o in command["options"] if o["letter"]}
        assert table == names(parser)
        taken = {o["name"] or "" for o in command["options"] if o["kind"] == "flag"}
        assert taken == {a.option_strings[-1][2:] for a in parser._actions if a.option_strings and a.nargs == 0} - {
            "help"
        }
        assert bool(command["operands"]) == any(not a.option_strings for a in parser._actions)


def test_times_before_now():
    """'-2h' is not an option."""
    for name in ("query", "hops", "fetch"):
        parser = main.parser_of(name)[1]
        words = ["-A", "a", "--from", "-2h", *(["SELECT 1"] if name == "query" else [])]
        assert parser.parse_args(words)


@pytest.mark.parametrize("keep", ["7", "90m"])
def test_a_forgotten_unit_removes_nothing(keep, capsys):
    assert main.main(["prune", "-A", "/none", "--keep", keep]) == 2
    assert "which unit" in capsys.readouterr().err


def test_only_what_runs_until_it_is_stopped_has_a_duration(capsys):
    assert main.main(["ingest", "-A", "/none", "--duration", "1s", "a.pcapng"]) == 2
    assert "--duration: it ends --watch and --follow" in capsys.readouterr().err


def test_help_fits(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in main.COMMANDS:
        parser = main.parser_of(name)[1]
        parser.epilog = None  # examples
        text = parser.format_help()
        assert max(map(len, text.splitlines())) <= 80 and text.startswith(f"usage: ringtap archive {name} ")
    assert max(map(len, main.overview().splitlines())) <= 80


def test_a_mistyped_word_is_answered_with_the_nearest(capsys):
    for words, near in (
        (["query", "-A", "a", "--jsno", "SELECT 1"], "--jsno: unknown option; did you mean '--json'?"),
        (["query", "-A", "a", "--engine", "Spark", "SELECT 1"], "did you mean 'spark'?"),
        (["qeury"], "qeury: unknown command; did you mean 'query'?"),
        (["query", "-A", "a", "--moon", "SELECT 1"], "--moon: unknown option; see 'ringtap archive query --help'"),
    ):
        assert main.main(words) == 2
        assert near in capsys.readouterr().err


def test_sentences_are_those_of_the_other_commands(capsys):
    """Not argparse's."""
    for line, sentence in (
        ("top -A a --limit x", "--limit x: not a number; give decimal digits, or some with k, M or G"),
        ("top -A a --limit -1", "--limit -1: not a number; give decimal digits, or some with k, M or G"),
        ("top -A a --limit", "--limit: needs a value; see 'ringtap archive top --help'"),
        ("top", "--archive is missing; see 'ringtap archive top --help'"),
        ("top -A a extra", "extra: one word too many; see 'ringtap archive top --help'"),
        ("fetch -A a -w b -c 0", "--packets 0: out of range; give 1 or more"),
        ("prune -A a --keep 7q", "--keep 7q: neither an age nor a size; give 7d or 2T"),
        ("hops -A a --apart 5", "--apart: '5' has no unit; 5s or 5ms?"),
        ("generate -w a --queues x", "--queues x: not a number; see 'ringtap archive generate --help'"),
    ):
        assert main.main(line.split()) == 2
        assert capsys.readouterr().err == f"ringtap: archive: {sentence}\n"


@pytest.mark.parametrize("words", [["--help"], ["generate", "--help"]])
def test_a_reader_that_has_closed_the_output(words):
    """A closed output is not an error, also for argparse's help, which is buffered until the end."""
    read, write = os.pipe()
    os.close(read)
    program = [sys.executable, "-m", "ringtap_archive.main", *words]
    done = subprocess.run(program, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def bare(tmp_path):
    """ringtap where no environment of the archive is: its program alone, and no such PATH."""
    for part in ("cli", "reader"):
        (tmp_path / "build" / part).mkdir(parents=True)
    shutil.copy(RINGTAP, tmp_path / "build" / "cli")
    env = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(BUILD / "reader")}

    def call(*words, **more):
        return run([tmp_path / "build" / "cli" / "ringtap", "archive", *words], env={**env, **more})

    return call


def test_without_the_environment(bare, tmp_path):
    done = bare("verify", "-A", tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert "environment is missing; run 'make archive'" in done.stderr and done.stderr.count("\n") == 1
    done = bare("verify", RINGTAP_ARCHIVE="/nothing/here")
    assert done.returncode == 1 and "cannot start '/nothing/here'" in done.stderr and done.stderr.count("\n") == 1
    done = bare("--help")
    assert done.returncode == 0 and "verify" in done.stdout
    done = bare("ingest", "--help")
    assert done.returncode == 0 and "--no-compress" in done.stdout
    done = bare()
    assert done.returncode == 2 and "no command is given" in done.stderr


def test_runs_the_program_with_its_paths(bare, tmp_path):
    """The words are passed on as they are; the decoder and ringtap are those of this build."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$# $1 $3"\necho "$RINGTAP_PROGRAM"\necho "$RINGTAP_ARCHIVE_DECODER"\nexit 7\n')
    program.chmod(0o755)
    decoder = tmp_path / "build" / "archive" / "decoder" / "libringtap-archive.so"
    decoder.parent.mkdir(parents=True)
    decoder.touch()
    done = bare("query", "-A", "a b", "--json", "SELECT 1", RINGTAP_ARCHIVE=str(program))
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["5 query a b", str(tmp_path / "build" / "cli" / "ringtap"), str(decoder)]
    # That of a source tree is found beside the build folder.
    beside = tmp_path / ".venv-archive" / "bin" / "ringtap-archive"
    beside.parent.mkdir(parents=True)
    os.rename(program, beside)
    assert bare("query").returncode == 7


def test_the_environment_has_no_packages_of_the_system():
    """numpy of Debian does not fit pyarrow of PyPI, and Debian's pandas does not fit numpy of PyPI."""
    assert not [folder for folder in sys.path if "dist-packages" in folder]
