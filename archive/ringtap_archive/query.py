# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap archive query`: SQL on the views of an archive."""

from __future__ import annotations

import decimal
import itertools
import os
import sys
from typing import TYPE_CHECKING

from . import addresses, document, options, private, show
from .errors import Refused, WrongCommandLine

if TYPE_CHECKING:
    from argparse import Namespace
    from datetime import date
    from typing import Any

    from .engine import Result
    from .main import Parser

WIDTH_ROWS = 1000  # the first rows of a table decide how wide its columns are
KNOWN_MAX = 100_000
FORMULA = ("=", "+", "-", "@")

PAGE = """Views: packets, flows, losses, interfaces; each has recorder, date, hour and part.
ip('10.0.0.1') is an address, ip_text(src) its text; addresses are printed as text.

Examples:
  ringtap archive query -A /archive "SELECT src, count(*) AS packets FROM packets GROUP BY src"
  ringtap archive query -A /archive --from -1h "SELECT * FROM flows WHERE dst = ip('10.0.0.1')"
  ringtap archive query -A /archive --json "SELECT recorder, sum(packets) AS lost FROM losses GROUP BY recorder\""""


def arguments(parser: Parser) -> None:
    options.archive(parser)
    parser.add_argument("sql", metavar="SQL", help="SELECT ...; -: of standard input")
    options.window(parser)
    options.recorders(parser)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--csv", action="store_true", help="print CSV")
    options.as_json(output)
    output.add_argument("--arrow", metavar="FILE", help="write an Arrow file; -: an Arrow stream to standard output")
    options.group(parser)
    options.engine(parser)
    parser.formatter_class, parser.epilog = options.Page, PAGE


def _rows(result: Any):
    """Rows with addresses as text."""
    known = {}  # they come often
    for batch in result.batches():
        for column in result.addresses:
            for value in {row[column] for row in batch} - known.keys():
                known[value] = value if value is None else addresses.text(value)
        if result.addresses:
            batch = [list(row) for row in batch]
            for row in batch:
                for column in result.addresses:
                    row[column] = known[row[column]]
        if len(known) > KNOWN_MAX:
            known.clear()
        yield from batch


def _is_number(value: date | float | str | None):
    return isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)


def _text(value: int | str | None):
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else show.printable(value)


def print_table(result: Result, out: Any) -> None:
    """Numbers to the right. Column widths are those of the first rows."""
    rows = _rows(result)
    first = list(itertools.islice(rows, WIDTH_ROWS))
    lines = [list(map(show.printable, result.columns)), *(list(map(_text, row)) for row in first)]
    wide = [max(map(len, column)) for column in zip(*lines)]
    right = [any(map(_is_number, column)) for column in zip(*first)] or [False] * len(wide)
    pad = [str.rjust if number else str.ljust for number in right]
    for line in itertools.chain(lines, (map(_text, row) for row in rows)):
        out.write("  ".join(p(value, w) for p, value, w in zip(pad, line, wide)).rstrip() + "\n")


def _cell(value: float | str | None):
    """A cell that no spreadsheet computes as a formula. Numbers are not text of others."""
    if value is None or _is_number(value):
        return value
    text = show.printable(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def print_csv(result: Result, out: Any) -> None:
    import csv

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_cell, result.columns))
    writer.writerows(map(_cell, row) for row in _rows(result))


def _json_value(value: Any):
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def print_json(result: Result, out: Any) -> None:
    """The rows are objects, one a line."""
    import json

    if twice := sorted({name for name in result.columns if result.columns.count(name) > 1}):
        raise Refused(f"--json: two columns are called '{show.printable(twice[0])}'; rename one of them by AS")
    head = json.dumps(document.make("query", {"columns": list(result.columns)}))
    separator = head[:-1] + ', "rows": ['
    for row in _rows(result):
        values = {
            n: document.plain(_json_value(v) if isinstance(v, decimal.Decimal) else v)
            for n, v in zip(result.columns, row)
        }
        out.write(separator + "\n" + json.dumps(values, default=_json_value, allow_nan=False))
        separator = ","
    out.write("\n]}\n" if separator == "," else separator + "]}\n")


def write_arrow(result: Result, name: str, group: bool) -> None:
    """Writes values unchanged: addresses have 16 bytes."""
    import pyarrow

    reader = result.reader()
    try:
        if name == "-":
            with pyarrow.ipc.new_stream(sys.stdout.buffer, reader.schema) as out:
                for batch in reader:
                    out.write_batch(batch)
            return
        with os.fdopen(private.create(name, group), "wb") as file, pyarrow.ipc.new_file(file, reader.schema) as out:
            for batch in reader:
                out.write_batch(batch)
    except OSError as error:
        raise Refused(f"cannot write '{name}': {error.strerror or error}") from None


def run(args: Namespace) -> Any:
    if args.master and args.engine != "spark":
        raise WrongCommandLine("query: --master is for --engine spark")
    sql = sys.stdin.read() if args.sql == "-" else args.sql
    with options.connect(args) as con:
        result = con.sql(sql)
        if not result.columns:
            return 0
        if args.arrow:
            write_arrow(result, args.arrow, args.group)
        else:
            (print_csv if args.csv else print_json if args.json else print_table)(result, sys.stdout)
    return 0
