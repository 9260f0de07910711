"""SmallDB as a release: a database of a few rows that answers every query of the class within a stated error."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.domain.domain import Clique
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.mechanism.small_database.classes import DistinctQueries
from understudy.mechanism.small_database.small_database import (
    SmallDatabase,
    SmallDatabaseDesign,
    best_design,
    cover,
)
from understudy.privacy.event import Selection
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.rational import Number
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.standin.table import SmallTable

PAIR_LIMIT = 1 << 28
"""Largest number of comparisons (cells, queries, classes) when cells are sought as differences of queries."""

PLANNED_BY = ("alpha", "size")
"""The options that decide which database is drawn, beside `queries`, which may be there for one reading only."""


def smalldb(
    run: Run,
    *,
    alpha: Number | None = None,
    queries: Iterable[LinearQuery] | DistinctQueries | None = None,
    size: int | None = None,
) -> Outcome:
    """One small database for the whole price, drawn by SmallDB for every cell of the workload, or for `queries`.

    Its size is the one of least certified error that can be counted, or the fewest rows that reach `alpha`, or
    `size`.

    Privacy   ε-DP for the run's ε, or for the ε that its ρ buys of a selection (ε²/8-zCDP), under replace-one
              neighbours: `SmallDatabase`.
    Accuracy  Every query of the class, and so every certified cell, is within the stated error, jointly, except
              with probability β. [Lectures 9-10, Proposition 6] With α at its best this is Theorem 7 without the
              slack of its proof. A cell that is the difference of two queries, such as two prefixes, is within
              twice the error.
    Gap       One error holds for all queries, so that 1-way and 2-way marginals can have wider bars than direct
              questions, and those beside the workload have none: `auto` takes the method only where neither is so.
              The table shows what the queries see. Among the rows that they do not tell apart it holds the first
              one only, so attributes that no query asks about are constant in it.
    """
    look, design = smalldb_look(run, alpha=alpha, queries=queries, size=size)
    units = run.look("small database", look)
    run.tell("answering the workload", 1, 1)
    standin = SmallTable(run.domain, look.queries.codes, np.array(units, np.int64))
    scale = Fraction(look.rows, look.size)
    answers = tuple(
        _answer(
            standin, clique, float(scale), design.error * look.rows, _parts(look.queries, clique), look.rows
        )
        for clique in run.workload
    )
    return Outcome("smalldb", standin, look.rows, answers, _proof(run, look, design))


def smalldb_look(
    run: Run,
    *,
    alpha: Number | None = None,
    queries: Iterable[LinearQuery] | DistinctQueries | None = None,
    size: int | None = None,
) -> tuple[SmallDatabase, SmallDatabaseDesign]:
    """What `smalldb` would do and promise. Reads no data and costs nothing; refuses what `smalldb` would."""
    if alpha is not None and size is not None:
        raise ParameterError(
            "give alpha or the size of the small database, not both: one follows from the other"
        )
    rows = public_rows(run, "SmallDB")
    asked = _asked(run, queries)
    epsilon = selection_price(run)
    if alpha is not None:
        size = cover(asked).size(alpha)
    if size is None:
        size = best_design(asked, rows=rows, epsilon=epsilon, beta=run.beta).size
    look = SmallDatabase(asked, size, rows, epsilon)
    return look, look.design(run.beta)


def obstacle(run: Run) -> str:
    """Why `smalldb` would refuse this run's workload; empty if it would not. Reads no data and costs nothing."""
    try:
        smalldb_look(run)
    except (QueryError, RefusedError) as refusal:
        return str(refusal)
    return ""


def _asked(run: Run, queries: Iterable[LinearQuery] | DistinctQueries | None) -> DistinctQueries:
    if queries is None:
        return DistinctQueries.of_workload(run.workload)
    return queries if isinstance(queries, DistinctQueries) else DistinctQueries.of_queries(queries)


def public_rows(run: Run, method: str) -> int:
    """The number of rows, which a rate's sensitivity 1/n needs to be public."""
    if not run.curator.relation.rows_are_public:
        raise RefusedError(
            f"{method} needs the number of rows to be public, as it is under `neighbours: replace`. Nothing was "
            f"spent."
        )
    if run.curator.rows < 1:
        raise RefusedError(f"{method} has nothing to stand in for: the table has no rows. Nothing was spent.")
    return run.curator.rows


def selection_price(run: Run) -> Fraction:
    """The largest ε of one selection that costs no more than the run, as the ledger's budget is kept.

    That is the run's own ε, or sqrt(8ρ) under zCDP; in GDP a selection costs more than ε²/8.
    """
    ledger = run.curator.ledger.budget
    return ledger.epsilon_within(run.budget.whole, Selection(epsilon=Fraction(1)))


def _answer(
    standin: SmallTable, clique: Clique, scale: float, error: float, parts: int | None, rows: int
) -> MarginalAnswer:
    counts = np.asarray(standin.count(clique) * scale, dtype=np.float64)
    if parts is None:
        return MarginalAnswer.around(clique, counts, np.full(counts.shape, np.inf), "uncertified")
    return MarginalAnswer.around(clique, counts, np.full(counts.shape, min(parts * error, rows)), "certified")


def _parts(queries: DistinctQueries, clique: Clique) -> int | None:
    """Of how many queries, added and subtracted, each cell of a marginal is made: 1, 2, or None for unknown."""
    marginal = Marginal(queries.domain, clique)
    if marginal in queries.marginals and not queries.cumulative:
        return 1
    try:
        joint = DistinctQueries.of((*queries.marginals, marginal))
    except RefusedError:
        return None
    if joint.classes != queries.classes:  # some cell tells rows apart that the queries do not
        return None
    cells = np.zeros(queries.classes, np.intp)
    for name in clique:
        cells = cells * queries.domain[name].size + queries.codes[:, queries.domain.position(name)]
    rows = cells[None] == np.unique(cells)[:, None]
    known = {_up_to_complement(row) for row in (*queries.matrix, np.zeros(queries.classes, bool))}
    if all(_up_to_complement(row) in known for row in rows):
        return 1
    if rows.size * queries.queries > PAIR_LIMIT:
        return None
    return 2 if all(_is_difference(row, queries.matrix, known) for row in rows) else None


def _up_to_complement(row: NDArray[np.bool_]) -> bytes:
    return np.packbits(row ^ row[0]).tobytes()


def _is_difference(row: NDArray[np.bool_], matrix: NDArray[np.bool_], known: set[bytes]) -> bool:
    """Whether the row is f - g, f + g or their complement, for queries f and g."""
    if _up_to_complement(row) in known:
        return True
    both, neither = (matrix & row).any(axis=1), (~matrix & ~row).any(axis=1)
    only_row, only_query = (~matrix & row).any(axis=1), (matrix & ~row).any(axis=1)
    linear = ~(both & neither & only_row & only_query)
    return any(_up_to_complement(row ^ query) in known for query in matrix[linear])


def _proof(run: Run, look: SmallDatabase, design: SmallDatabaseDesign) -> dict[str, object]:
    return {
        "mechanism": "SmallDB",
        "theorem": "Lectures 9-10, Theorem 3 and Proposition 6, corrected",
        "counting": type(look.databases).__name__.lower(),
        "m": look.size,
        "n": look.rows,
        "candidates": look.databases.candidates,
        "classes": look.queries.classes,
        "queries": sum(marginal.size for marginal in look.marginals),
        "distinct_queries": look.queries.queries,
        "levels_per_unit": look.size * look.rows,
        "epsilon": float(look.epsilon),
        "alpha": design.alpha,
        "alpha_by": design.argument,
        "beta": float(run.beta),
        "error": design.error,
    }
