# SPDX-License-Identifier: BSD-3-Clause
"""The command line of `ringtap archive`. A command is a module with arguments(parser) and run(args),
which is imported only when it is called: what it needs takes a second to load."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import signal
import sys
from typing import TYPE_CHECKING

from . import options, show
from .errors import Refused, WrongCommandLine

if TYPE_CHECKING:
    from typing import Any

PROGRAM = "ringtap archive"
COMMANDS = {
    "ingest": "add recordings to an archive",
    "query": "answer an SQL query",
    "fetch": "write packets of an archive to a pcapng file",
    "hops": "follow packets from recorder to recorder: delay, loss, order",
    "top": "list talkers, conversations, protocols",
    "report": "write a page about a window of time",
    "prune": "remove the oldest parts",
    "verify": "check an archive, and repair it",
    "compact": "join small parts of an hour",
    "generate": "write synthetic recordings",
    "bench": "measure archives",
}


class Parser(argparse.ArgumentParser):
    """One line for each error, as the other commands of ringtap print them."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"-\d")  # "--from -2h" is a value; argparse takes bare numbers only

    def error(self, message: str) -> None:
        see = f"see '{self.prog} --help'"
        choice = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        unknown = re.match(r"unrecognized arguments: (--[^ =]+)", message)
        stray = re.match(r"unrecognized arguments: (\S+)", message)
        missing = re.fullmatch(r"the following arguments are required: (.*)", message)
        value = re.fullmatch(r"argument (\S+): (.*)", message)
        if choice:
            names = re.findall(r"'([^']+)'", choice[3])
            message = (
                f"{long_name(choice[1])} {choice[2]}: unknown; {advice(choice[2], names, f'choose from {choice[3]}')}"
            )
        elif unknown:
            names = [word for action in self._actions for word in action.option_strings]
            message = f"{unknown[1]}: unknown option; {advice(unknown[1], names, see)}"
        elif stray:
            message = f"{stray[1]}: one word too many; {see}"
        elif missing:
            names = [long_name(name) for name in missing[1].split(", ")]
            message = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing; {see}"
        elif value and (invalid := re.fullmatch(r"invalid \w+ value: '(.*)'", value[2])):
            message = f"{long_name(value[1])} {invalid[1]}: not a number; {see}"
        elif value and value[2].startswith("expected "):
            message = f"{long_name(value[1])}: needs a value; {see}"
        elif value:
            message = long_name(value[1]) + (": " if value[2].startswith("'") else " ") + value[2]
        else:
            message = f"{message}; {see}"
        raise WrongCommandLine(message)

    def exit(self, status: Any = 0, message: Any = None) -> None:
        sys.stdout.flush()  # here, a closed output is noticed
        super().exit(status, message)


def long_name(name: str) -> str:
    """The --packets of "-c/--packets"."""
    return name.split("/")[-1]


def advice(word: str, names: dict[str, str] | list[str], otherwise: str) -> str:
    """As base/nearest.c has it for the other commands."""
    near = difflib.get_close_matches(word.lower(), names, 1, 0.75)
    return f"did you mean '{near[0]}'?" if near else otherwise


def overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {text}" for name, text in COMMANDS.items()]
    return (
        f"Usage: {PROGRAM} COMMAND -A ARCHIVE [options]\n\nCommands:\n"
        + "\n".join(lines)
        + f"\n\n'{PROGRAM} COMMAND --help' lists the options of a command."
    )


def parser_of(name: str) -> tuple:
    module = importlib.import_module(f".{name}", __package__)
    parser = Parser(
        prog=f"{PROGRAM} {name}",
        description=f"{name}: {COMMANDS[name]}.",
        allow_abbrev=False,
        formatter_class=options.Help,
    )
    module.arguments(parser)
    return module, parser


def call(name: str, words: list[str]) -> int:
    if name.startswith("-"):
        raise WrongCommandLine(f"{name}: no option stands before the command; see '{PROGRAM} --help'")
    if name not in COMMANDS:
        see = f"see '{PROGRAM} --help'"
        raise WrongCommandLine(f"{name}: unknown command; {advice(name, COMMANDS, see)}")
    try:
        module, parser = parser_of(name)
    except ImportError as e:
        raise Refused(f"{name}: {e}; run 'make archive' in ringtap's source tree") from e
    return module.run(parser.parse_args(words)) or 0


def discard_output() -> None:
    """The reader of standard output has ended: no error, and no message at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names of files may be of any bytes
            stream.reconfigure(errors="backslashreplace")
    try:
        if words[:1] in (["-h"], ["--help"]):
            print(overview(), flush=True)
            return 0
        if not words:
            raise WrongCommandLine(f"no command is given; see '{PROGRAM} --help'")
        status = call(words[0], words[1:])
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        discard_output()
        return 0
    except Refused as e:
        show.warn(e)
        return 2 if isinstance(e, WrongCommandLine) else 1
    except OSError as e:
        show.warn(f"{words[0]}: {f'{e.filename}: ' if e.filename else ''}{e.strerror or e}")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
