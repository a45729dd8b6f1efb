# SPDX-License-Identifier: BSD-3-Clause
"""Prints what is wrong with the register of flaky tests: too many entries, no cause after 14 days, tests that do not exist.
Run by devtools/lint.sh; exit status 1 if anything is printed."""

import sys
import tomllib
from datetime import date, timedelta
from pathlib import Path

REGISTER = Path("e2e/flaky.toml")
ENTRIES_MAX = 8
WITHOUT_CAUSE = timedelta(days=14)


def faults(entries, today):
    if len(entries) > ENTRIES_MAX:
        yield f"{len(entries)} entries; at most {ENTRIES_MAX} are allowed"
    for one in entries:
        test, since, cause = (one.get(key) for key in ("test", "date", "cause"))
        if set(one) != {"test", "date", "cause"} or not isinstance(since, date):
            yield f"an entry has test, date and cause: {one}"
        elif "/" in test and not Path(test.split("::")[0]).is_file():
            yield f"no such test: {test}"
        elif not cause and today > since + WITHOUT_CAUSE:
            yield f"no cause after {WITHOUT_CAUSE.days} days: {test}"


def main():
    if not REGISTER.exists():
        return 0
    found = list(faults(tomllib.loads(REGISTER.read_text(encoding="utf-8")).get("flaky", []), date.today()))
    for fault in found:
        print(f"{REGISTER}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
