# SPDX-License-Identifier: BSD-3-Clause
"""Errors that end a run, or a cell, with a message for the user."""


class Trouble(Exception):
    """Nothing can be measured here: one line with the reason and what to do. Ends the program."""


class Unavailable(Exception):
    """This cell cannot be measured on this machine, and why. Reported as such; not an error."""
