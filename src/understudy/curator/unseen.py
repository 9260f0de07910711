"""A table that nobody has: a Curator over it prices measurements, and has nothing to look at."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.query.marginal import Marginal


class UnseenTable:
    """In place of `table.truth` for plans: the number of rows is known and nothing else, so that a look fails."""

    is_file = False
    former_version = None
    version = None

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def check_unchanged(self) -> None:
        """Nobody has it."""

    def check_size(self, marginals: Sequence[Marginal]) -> None:
        """Sizes alone decide."""
        del marginals
