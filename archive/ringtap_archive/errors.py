# SPDX-License-Identifier: BSD-3-Clause
"""Errors that a command prints on one line before it ends with status 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class Refused(Exception):
    """An error: its text says what failed, why, and what to do."""


class Lost(Refused):
    """The data are damaged and cannot be saved."""


class Refusing:
    """A context: errors for which reason(error) has a text become Refused with that."""

    def reason(self, error: Any) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type | None, error: Any, _: Any) -> None:
        text = None if error is None or isinstance(error, Refused) else self.reason(error)
        if text:
            raise Refused(text) from None


class WrongCommandLine(Refused):
    """The same, with status 2."""
