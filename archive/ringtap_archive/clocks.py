# SPDX-License-Identifier: BSD-3-Clause
"""State of the recorders' clocks, from recordings: `clock` of meta.json, see docs/archive.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import show, units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .layout import Part

SETTINGS = 3  # that are printed of a recorder


def merged(states: list[dict] | Iterator) -> dict | None:
    """The clock of several parts as that of one; None if none of them has one."""
    states = [state for state in states if state]
    if not states:
        return None

    def most(key: str):
        return max((state[key] for state in states if state[key] is not None), default=None)

    said = [state["synchronized"] for state in states if state["synchronized"] is not None]
    return {
        "reports": sum(state["reports"] for state in states),
        "unsynchronized": sum(state["unsynchronized"] for state in states),
        "synchronized": all(said) if said else None,
        "max_error_ns": most("max_error_ns"),
        "estimated_error_ns": most("estimated_error_ns"),
        "set": [entry for state in states for entry in state["set"]],
        "set_beyond": sum(state["set_beyond"] for state in states),
    }


def of_recorders(parts: list[Part]) -> dict[str, dict]:
    """{recorder: clock or None}"""
    found = {}
    for part in parts:
        found.setdefault(part.recorder, []).append(part.meta.get("clock"))
    return {recorder: merged(states) for recorder, states in sorted(found.items())}


def errors(parts: list[Part]) -> dict[str, int]:
    """{recorder: largest error of its clock, ns}, for clocks that were synchronized and never set."""
    return {
        recorder: state["max_error_ns"]
        for recorder, state in of_recorders(parts).items()
        if state and state["synchronized"] and not state["set"] and state["max_error_ns"] is not None
    }


def notes(found: dict[str, dict]) -> Iterator:
    """Sentences on clocks that were not synchronized, or were set."""
    for recorder, state in found.items():
        if not state:
            continue
        if state["synchronized"] is False:
            yield (
                f"{recorder}: its clock was not synchronized, by {state['unsynchronized']:,} of {state['reports']:,} reports "
                "in its recording"
            )
        for entry in state["set"][:SETTINGS]:
            yield f"{recorder}: its clock was set by {show.duration(entry['by_ns'], True)}, before {units.moment_text(entry['time_ns'])}"
        if (more := len(state["set"]) - SETTINGS + state["set_beyond"]) > 0:
            yield f"{recorder}: and {more:,} times more"
