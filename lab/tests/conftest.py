# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-lab and `make bench ONLY=aims` within this process: without programs, and without facts of this machine."""

import signal
import sys
from types import SimpleNamespace

import lab_sample
import pytest
from ringtap_lab.report import plots
from ringtap_lab.run import cli, experiments
from ringtap_lab.tools import machine, process, scope

MACHINE = {
    "cpu": "a CPU",
    "cpus": "2; measured on 0 and 1",
    "kernel": "6.1.0",
    "dpdk": "22.11.5",
    "ringtap": "0.1.0",
    "commit": "0123456789ab",
    "system": "Debian",
    "load": 0.1,
    "tsc_mhz": 2000,
    "tsc_flags": "constant_tsc",
    "clocksource": "tsc",
    "governor": "performance",
    "turbo": "off",
    "hypervisor": "no",
}


def _seq(argv):
    """seq FIRST LAST, as process.run() returns it."""
    process.remember(argv)
    return 0, "".join(f"{n}\n" for n in range(int(argv[1]), int(argv[2]) + 1)), ""


@pytest.fixture
def facts(monkeypatch):
    """The result of machine.describe(): a test may change it."""
    found = dict(MACHINE)
    monkeypatch.setattr(machine, "describe", lambda *_: dict(found))
    return found


@pytest.fixture
def alone(monkeypatch, facts, tmp_path):
    """No other run, no signal handler and no abbreviation outlives a test, which runs in an empty folder."""
    monkeypatch.setenv(scope.VARIABLE, "")  # Lab sets it
    monkeypatch.setattr(scope, "remove_leftovers", lambda: [])
    monkeypatch.setattr(scope, "remove", lambda is_ours: None)
    monkeypatch.setattr(process, "abbreviations", {})
    monkeypatch.chdir(tmp_path)
    before = {number: signal.getsignal(number) for number in cli.ENDING}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def build(tmp_path):
    """A build folder with names of programs."""
    for name in (
        "cli/ringtap",
        "fwd/ringtap-fwd",
        "probe/libringtap-probe.so",
        "bench/pcap_count",
        "bench/write_modes",
        "bench/merge_bench",
    ):
        path = tmp_path / "build" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "build"


@pytest.fixture
def call(capsys):
    """call(main, argument...): exit status, standard output and error of a program of this package."""

    def run(main, *args):
        capsys.readouterr()
        try:
            status = main([str(arg) for arg in args])
        except SystemExit as e:  # argparse's
            status = e.code
        return SimpleNamespace(returncode=status, **dict(zip(("stdout", "stderr"), capsys.readouterr())))

    return run


@pytest.fixture
def lab(monkeypatch, alone, build, call):
    """lab(argument...) runs ringtap-lab with experiments of lab_sample.py, those that `samples` names."""
    monkeypatch.setattr(lab_sample, "run", _seq)
    monkeypatch.setattr(lab_sample.Sample, "_stop", lambda self, lab: (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.setattr(experiments, "load", lab_sample._load)

    def run(*args, samples="sample"):
        monkeypatch.setenv("LAB_SAMPLES", samples)
        return call(cli.main, *args, *([] if "--build" in args else ["--build", build]))

    return run


@pytest.fixture
def no_plots(monkeypatch):
    """Plots take most of the time of a page."""
    monkeypatch.setattr(plots, "svg", lambda plot, name: "")


def pytest_configure(config):
    sys.dont_write_bytecode = True  # the sources belong to another user where root runs the tests
