# SPDX-License-Identifier: BSD-3-Clause
"""What a command prints on one line before it ends with status 1."""


class Refused(Exception):
    """What failed, why, and what to do."""


class Lost(Refused):
    """The data themselves are bad: nothing of them can be saved."""


class Refusing:
    """A context: errors for which reason(error) has a text become Refused with that."""

    def reason(self, error):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        text = None if error is None or isinstance(error, Refused) else self.reason(error)
        if text:
            raise Refused(text) from None


class WrongCommandLine(Refused):
    """The same, with status 2."""
