# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts on running applications: `ringtap doctor` examines them, so that its rules are in one place. This only
reads what it prints."""

import json
import typing

from ._explain import _output

FAULT = 4  # the exit status of a fault, which is a result


class Verdict(typing.NamedTuple):
    """One verdict. verdict: its name, see ringtap-doctor(1); grade: "fault", "note" or "ok"; where: port, thread or
    mempool, None: the application; evidence: what was measured; advice: what to do next."""

    verdict: str
    grade: str
    title: str
    where: str | None
    evidence: tuple[str, ...]
    advice: str


class Diagnosis(typing.NamedTuple):
    """The verdicts on an application, the gravest first."""

    app: str
    pid: int
    duration_ns: int
    verdicts: tuple[Verdict, ...]

    @property
    def faults(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.grade == "fault")


def _verdict(v: dict) -> Verdict:
    names = ("verdict", "grade", "title", "where", "evidence", "advice")
    return Verdict(**{name: v[name] for name in names} | {"evidence": tuple(v["evidence"])})


def doctor(*apps: str, duration: float = 5.0, program: str = "ringtap") -> list[Diagnosis]:
    """Watches applications for some seconds, and returns a Diagnosis of each.

    apps       APP or APP:PORT; without any, all applications of the host that have the probe
    duration   seconds, 1 to 3600; one more is needed for addresses of buffers
    program    the ringtap command
    Raises Error with its message, if there is no such program, or if an application cannot be examined.
    """
    argv = [program, "doctor", "--json", "--duration", f"{duration:.9f}s", "--", *apps]
    text = _output(argv, (0, FAULT))
    return [
        Diagnosis(a["name"], a["pid"], a["duration_ns"], tuple(_verdict(v) for v in a["verdicts"]))
        for a in json.loads(text)["applications"]
    ]
