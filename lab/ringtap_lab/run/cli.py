# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap-lab`: runs experiments, and writes their results and a report into a folder."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import signal
import sys
from typing import TYPE_CHECKING

from ..report import page
from ..tools import machine, results, scope
from ..tools.errors import Trouble
from ..tools.niceness import Niceness
from ..tools.results import Journal, OtherSettings
from . import experiments
from .lab import Lab
from .runner import Part, Progress, Run, any_chosen, duration, plan

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path
    from typing import Any

    from .experiment import Experiment
    from .experiments.latency import Latency

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
ONLY_REPORT = "report"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 128 + signal.SIGINT


def _parser(known: dict):
    build = os.environ.get("RINGTAP_BUILD", str(REPOSITORY / "build"))
    p = argparse.ArgumentParser(
        prog="ringtap-lab",
        description="Runs experiments; writes JSON, CSV and an HTML report.",
        epilog="Experiments: " + "; ".join(f"{e.name}: {e.title}" for e in known.values()) + ".",
    )
    p.add_argument(
        "experiments",
        nargs="+",
        metavar="EXPERIMENT",
        help=f"{', '.join(known)}; all; or {ONLY_REPORT}: only write it, from what is in the folder",
    )
    p.add_argument(
        "-w",
        "--write",
        dest="out",
        metavar="DIR",
        default="lab-results",
        type=pathlib.Path,
        help="folder for results (lab-results); what is there is not measured again",
    )
    p.add_argument("--fresh", action="store_true", help="delete the folder's results first")
    p.add_argument("--quick", action="store_true", help="shorter and fewer runs, less exact")
    p.add_argument("--repetitions", type=_positive, metavar="N", help="measurements of each cell")
    p.add_argument(
        "--only", type=_list, metavar="CELLS", default=[], help="comma list of (parts of) names of cells, with * and ?"
    )
    p.add_argument("--list", action="store_true", help="print the names of the cells, measure nothing")
    p.add_argument(
        "--cpus", type=_cpus, default=sorted(os.sched_getaffinity(0))[:2], metavar="A,B", help="CPUs to measure on"
    )
    p.add_argument(
        "--nice", type=int, default=0, help="niceness of all that is measured, for machines that others use too (0)"
    )
    p.add_argument("--build", default=build, type=pathlib.Path, help="build folder")
    for e in known.values():
        e.add_options(p.add_argument_group(e.name))
    return p


def _positive(text: str):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _list(text: str):
    return [part for part in text.split(",") if part]


def _cpus(text: str):
    return [int(c) for c in text.split(",")]


def _selected(options: Namespace, known: dict):
    """The experiments that are named; of several those that have the cells that are named."""
    names = list(known) if "all" in options.experiments else options.experiments
    if unknown := [n for n in names if n not in known]:
        raise Trouble(f"no such experiment: {', '.join(unknown)}; there are: {', '.join(known)}")
    selected = [known[n] for n in known if n in names]
    if not options.only or len(selected) == 1:
        return selected
    found = [e for e in selected if any_chosen(e.cells(Lab(options)), options.only)]
    if not found:
        raise Trouble(f"--only {','.join(options.only)}: no such cell in any of them; --list prints all")
    return found


def _settings(options: Namespace, experiment: Experiment):
    """Options that change the results: the experiment's own, and --quick."""
    own = {k: v for k, v in vars(options).items() if k.startswith(f"{experiment.name}_")}
    return {"quick": options.quick, **own}


def _write_report(folder: Path, known: dict):
    """Writes the report of all experiments that the folder has results of. False if there are none."""
    found = [(e, r) for e in known.values() if (r := results.found(folder, e))]
    if found:
        path = folder / "report.html"
        path.write_text(page.render(found), encoding="utf-8")
        print(path)
    return bool(found)


def _part(experiment: Experiment, options: Namespace):
    """The remaining work of an experiment, as far as known before it begins."""
    try:
        journal = Journal(options.out, experiment)
        journal.expect(_settings(options, experiment))
        _, todo = plan(experiment, Lab(options), journal.results, options.only)
        complete = bool(journal.results.ended) and not todo
    except (Trouble, OSError):
        todo, complete = [], False  # reported when its turn comes
    return Part(experiment.name, todo, experiment.prepare_s, complete)


def _measure(experiment: Experiment, options: Namespace, progress: Progress, part: Part):
    """Number of cells that failed."""
    lab, journal = Lab(options), None
    try:
        experiment.check(lab)
        journal = Journal(options.out, experiment)
        journal.begin(_settings(options, experiment), machine.describe(lab.program("ringtap"), options.cpus))
        run = Run(experiment, lab, journal, progress, part)
        run.execute()
        return run.failed
    finally:
        # Another signal must not interrupt the clean-up, which takes seconds at most.
        before = {n: signal.signal(n, signal.SIG_IGN) for n in ENDING}
        lab.close()
        if journal:
            journal.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(options: Namespace, known: dict):
    options.build = options.build.resolve()
    if options.experiments == [ONLY_REPORT]:
        if not _write_report(options.out, known):
            raise Trouble(f"{options.out} has no results of experiments")
        return 0
    selected = _selected(options, known)
    if options.list:
        for e in selected:
            for cell in e.cells(Lab(options)):
                print(f"{e.name} {cell.key}")
        return 0
    for left in scope.remove_leftovers():
        print(f"removed what a run before had left: {left}", file=sys.stderr)
    for e in selected if options.fresh else ():
        for suffix in ("jsonl", "json", "csv"):
            (options.out / f"{e.name}.{suffix}").unlink(missing_ok=True)
    niceness = Niceness(options.nice)
    try:
        return _measure_all(selected, options)
    finally:
        niceness.release()
        if os.path.exists(options.out):
            _write_report(options.out, known)


def _measure_all(selected: list[Latency], options: Namespace):
    """Exit status: the worst one's."""
    progress = Progress([_part(e, options) for e in selected])
    if len(selected) > 1:
        print(
            f"{len(selected)} experiments: {', '.join(e.name for e in selected)}; about {duration(progress.expected_s())}",
            file=sys.stderr,
        )
    status = 0
    for experiment, part in zip(selected, progress.parts):
        status = max(status, _measured(experiment, options, progress, part))
        part.forget()
    return status


def _measured(experiment: Experiment, options: Namespace, progress: Progress, part: Part):
    """Exit status. An experiment that cannot be made does not stop the others."""
    if part.complete:
        print(f"{experiment.name}: all of it is in {options.out} already; --fresh measures again", file=sys.stderr)
        return 0
    try:
        failed = _measure(experiment, options, progress, part)
    except Trouble as e:
        print(f"ringtap-lab: {e}", file=sys.stderr)
        if len(progress.parts) > 1 and not isinstance(e, OtherSettings):
            # For the report; where there is no journal, nothing can be written.
            with contextlib.suppress(Trouble, OSError), contextlib.closing(Journal(options.out, experiment)) as journal:
                journal.trouble(str(e))
        return 2
    if failed:
        print(
            f"ringtap-lab: {experiment.name}: {failed} measurements failed; the same command tries those again",
            file=sys.stderr,
        )
    return 1 if failed else 0


def _interrupt(number: int, frame: Any):
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    known = experiments.load()
    options = _parser(known).parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return _run(options, known)
    except (Trouble, OSError) as e:
        print(f"ringtap-lab: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("ringtap-lab: interrupted; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
