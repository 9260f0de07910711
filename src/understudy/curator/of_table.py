"""The Curator of whatever a door was given as its table."""

from __future__ import annotations

from understudy.curator.curator import Curator
from understudy.errors import ParameterError

OPEN_ONE = (
    "open one with us.open('understudy.yml'), or declare a frame with us.declare(frame, {…}, epsilon=1)"
)
"""What to do for who has given something else than a project."""


def curator_of(table: object) -> Curator:
    """The Curator of a project, or the Curator itself, as `table`.

    Raises a `ParameterError` for anything else, such as the frame or the file of a table that was not declared.
    """
    found = getattr(table, "curator", table)
    if not isinstance(found, Curator):
        raise ParameterError(f"the table is a project, not a {type(table).__name__}", remedy=OPEN_ONE)
    return found
