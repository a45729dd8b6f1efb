# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have, so that they are spelled the same."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from . import units

if TYPE_CHECKING:
    from argparse import Namespace

    from .engine import DuckEngine
    from .main import Parser


class Help(argparse.HelpFormatter):
    """Help for a terminal of 80 columns, as of the other commands."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=30, width=min(80, shutil.get_terminal_size().columns))


class Page(Help, argparse.RawDescriptionHelpFormatter):
    """With an epilog of lines."""


def archive(parser: Parser) -> None:
    parser.add_argument("-A", "--archive", required=True, type=Path, metavar="DIR", help="the archive's folder")


def window(parser: Parser) -> None:
    """since and until: nanoseconds, or None."""
    parser.add_argument(
        "--from",
        dest="since",
        type=units.moment,
        metavar="TIME",
        help="from this time on: 2026-11-24T10:00:00 (UTC), @SECONDS since 1970, or -2h (before now)",
    )
    parser.add_argument("--to", dest="until", type=units.moment, metavar="TIME", help="up to this time, without it")


def recorders(parser: Parser) -> None:
    """recorders: list of names, or None."""
    parser.add_argument(
        "--recorder",
        dest="recorders",
        action="append",
        metavar="NAME",
        help="of this recorder only; may be given several times",
    )


def group(parser: Parser, text: str = "let the group read the file") -> None:
    parser.add_argument("-g", "--group", action="store_true", help=f"{text} (mode 0640 instead of 0600)")


def shared(parser: Parser) -> None:
    parser.add_argument(
        "--shared",
        action="store_true",
        help="change an archive that belongs to another user, or that others write, too; they are trusted",
    )


def as_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def engine(parser: Parser) -> None:
    """Options engine and master."""
    parser.add_argument(
        "--engine", choices=("duckdb", "spark"), default="duckdb", help="what computes (default: duckdb)"
    )
    parser.add_argument(
        "--master", metavar="URL", help="Spark's cluster, for example spark://HOST:7077 (default: local)"
    )


def connect(args: Namespace) -> DuckEngine | None:
    """The engine with the views of the window."""
    from . import engine as engines

    more = {"master": args.master} if args.engine == "spark" and args.master else {}
    return engines.open(args.archive, args.engine, args.since, args.until, args.recorders, **more)
