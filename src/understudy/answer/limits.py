"""How large a question may be: decided on public sizes, before anything is charged."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.errors import ParameterError, TooLargeError
from understudy.memory import as_text, default_limit
from understudy.query.marginal import Marginal

MAX_CELLS = 1_000_000
"""Cells that one question may have unless its asker says otherwise: noise for a second or two."""

BYTES_PER_CELL = 400
"""Memory that a question takes for each of its cells: counts, noise, the released numbers as the ledger keeps
them, and the answer's four arrays."""


def check_cells(marginals: Sequence[Marginal], most: int = MAX_CELLS) -> None:
    """Refuse a question whose marginals have more cells than `most`, or than fit into memory.

    Raises a `TooLargeError`, which is a `QueryError`, and a `ParameterError` where `most` is no number of cells.
    """
    if isinstance(most, bool) or most < 1:
        raise ParameterError(f"max_cells is a whole number of at least 1, not {most}")
    cells = sum(marginal.size for marginal in marginals)
    if cells > most:
        raise TooLargeError(
            "this question",
            cells=cells,
            limit=most,
            why="are answered by one question",
            remedy="Nothing was spent. Ask about fewer attributes or fewer of their values, declare coarser bins, "
            f"or raise the limit: `max_cells={cells}`",
        )
    if cells > MAX_CELLS and cells * BYTES_PER_CELL > (room := default_limit()):
        raise TooLargeError(
            "this question",
            cells=cells,
            limit=room // BYTES_PER_CELL,
            why=f"fit into {as_text(room)}, half of this machine's memory",
            remedy="Nothing was spent. Ask about fewer attributes or declare coarser bins",
        )
