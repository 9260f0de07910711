"""What a release will need, worked out before the first debit: sizes and memory, from public numbers alone.

A release buys several things one after the other, and what it has bought is spent. So all that could stop it
later and can be known is compared here first: how large the workload's tables are, how many cells a look
counts at once, and how much memory the stand-in, the answers and the synthetic rows take. The limit of memory
is half of this machine's, or what the caller says; it decides whether a release is begun and never how it
goes on, so that a stopped run can be resumed on another machine. What is too large for an exact table after
that is answered from rows of the stand-in (`projected`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Protocol

from understudy.domain.domain import CELL_LIMIT, Clique, Domain
from understudy.errors import TooLargeError
from understudy.mechanism.small_database.classes import MATRIX_LIMIT
from understudy.memory import as_text, default_limit
from understudy.query.marginal import Marginal
from understudy.query.residuals import parts_of
from understudy.releases.adaptive.pick import Candidates
from understudy.releases.adaptive.rule import (
    BYTES_PER_CELL,
    BYTES_PER_SWEPT,
    LEAST_CELLS,
    limits_of,
    triples_are_few,
)
from understudy.releases.adaptive.sweep_choice import numbers_swept
from understudy.releases.aim import MODEL_BYTES, ORDER
from understudy.releases.method_options import Options
from understudy.releases.run import Run
from understudy.standin.from_interactions import NEWTON_CELLS, TREE_CELLS
from understudy.standin.graphical.model import model_cells
from understudy.standin.maximum_entropy import NEWTON_LIMIT

ANSWER_BYTES, LABEL_BYTES = 250, 30
"""For each cell of the workload: its value, its error, the numbers that they are made of, what the ledger keeps,
and a row of `answers.parquet`; and for each attribute of that cell its label there."""

MARGINAL_BYTES = 4000
"""For each marginal of the workload, whatever its size."""

ROW_BYTES, VALUE_BYTES = 100, 60
"""For each synthetic row, and for each of its values: codes, values, the order in which rows are dealt."""

HISTOGRAM_BYTES = 200
"""For each cell of a universe whose histogram is fitted."""

FIT_BYTES = 700
"""For each cell of the workload, where a histogram is fitted to all of it: potentials and gradients."""

WEIGHT_BYTES = 24
"""For each cell of a universe that has a weight: the weight, and what a projection or a draw makes of it."""

KIND_BYTES = 10
"""For each kind of row and each query that tells kinds apart: a byte, and its copies when kinds are sorted."""

NEWTON_BYTES = 56
"""For each pair of coordinates, where second derivatives are held and solved for."""

COUNT_BYTES = 24
"""For each cell that a look counts at once."""


@dataclass(frozen=True)
class Demand:
    """Bytes of memory that a release takes, roughly, by what takes them; a few megabytes come on top of all of it.

    The numbers were measured on releases of several sizes, and `tests/releases/test_nothing_in_vain.py` holds them
    to what is allocated.
    """

    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def __str__(self) -> str:
        largest = sorted(self.parts.items(), key=lambda part: -part[1])[:2]
        listed = ", ".join(f"{name} {as_text(amount)}" for name, amount in largest if amount)
        return f"about {as_text(self.total)} of memory ({listed})"


# ---- whatever the method


def limit_of(run: Run) -> int:
    """Bytes that the run may take."""
    return default_limit() if run.memory is None else run.memory


def common(run: Run) -> Demand:
    """What every method needs: the answers, and the synthetic rows where their number is known beforehand."""
    workload, width = run.workload, max(map(len, run.workload.cliques), default=0)
    rows = run.synthetic if run.synthetic is not None else run.curator.rows_at_most
    return Demand(
        {
            "answers": workload.queries * (ANSWER_BYTES + LABEL_BYTES * width)
            + len(workload) * MARGINAL_BYTES,
            "synthetic rows": 0 if rows is None else row_bytes(run.domain) * rows,
        }
    )


def row_bytes(domain: Domain) -> int:
    """Bytes that a synthetic row takes while it is drawn and written."""
    return ROW_BYTES + VALUE_BYTES * len(domain)


def need_of(run: Run, method: Needs, options: Options) -> Demand:
    """What a release by a method needs in all."""
    return Demand({**common(run).parts, **stand_in(run, method, options).parts})


def check_common(run: Run, advice: Callable[[Run], str]) -> None:
    """Refuse, with a `TooLargeError`, a workload or synthetic rows that no method could hold.

    `advice` says what would help where the memory that is allowed is too little.
    """
    largest = max(run.workload, key=run.domain.size)
    if (cells := run.domain.size(largest)) > CELL_LIMIT:
        raise TooLargeError(
            f"the marginal over {', '.join(largest)}",
            cells=cells,
            limit=CELL_LIMIT,
            remedy="Nothing was spent. Leave such marginals out with `max_cells`, or declare coarser bins",
        )
    need, limit = common(run), limit_of(run)
    if need.total > limit:
        answers = need.parts["answers"]
        raise TooLargeError(
            "its workload",
            cells=run.workload.queries,
            limit=limit // max(answers // max(run.workload.queries, 1), 1),
            problem=f"this release takes {need}, and {as_text(limit)} is allowed",
            remedy=f"Nothing was spent. {advice(run)}",
        )


# ---- method by method


class Needs(Protocol):
    """What a method says of its size: bytes held beside the answers, and the cliques of its largest look."""

    def held(self, run: Run, options: Options, /) -> int: ...
    def looked_at(self, run: Run, /) -> Sequence[Clique]: ...


def stand_in(run: Run, method: Needs, options: Options) -> Demand:
    """What a method needs beside the answers: its stand-in, and the counts of its largest look."""
    counts = _counted_at_once(run, method.looked_at(run))
    return Demand({"the stand-in": method.held(run, options), "counts": counts})


def _counted_at_once(run: Run, cliques: Sequence[Clique]) -> int:
    """Bytes of the counts of a look."""
    return COUNT_BYTES * sum(map(run.domain.size, cliques))


def obstacle(run: Run, method: Needs, options: Options) -> str:
    """Why a method's looks or its stand-in are too large for this run; empty if they are not. Reads no data."""
    cliques = method.looked_at(run)
    if (cells := sum(run.domain.size(clique) for clique in cliques)) > CELL_LIMIT:
        return f"it counts {cells:,} cells at once, and at most {CELL_LIMIT:,} are counted"
    try:
        run.curator.check_size([Marginal(run.domain, clique) for clique in cliques])
    except TooLargeError as error:
        return str(error).split(". ")[0]
    need, limit = need_of(run, method, options), limit_of(run)
    if need.total > limit:
        return f"it takes {need}, and {as_text(limit)} is allowed (`memory`)"
    return ""


# ---- the cliques of a method's largest look: all of them are counted at once


def the_workload(run: Run) -> Sequence[Clique]:
    """All that is asked for."""
    return tuple(run.workload)


def candidates(run: Run) -> Sequence[Clique]:
    """What a round of the adaptive method compares; its last sweep counts the workload, as the answers do."""
    return Candidates.of(run.workload, triples=triples_are_few(run.workload)).cliques


def parts_of_the_workload(run: Run) -> Sequence[Clique]:
    """What a round of AIM compares: the parts of its order."""
    return sorted({part for c in run.workload for part in combinations(c, min(ORDER, len(c)))})


# ---- the bytes that a method holds beside the answers


def _tree(run: Run, most: int) -> int:
    """Bytes of a junction tree of at most so many cells; what must be in it may have more."""
    fixed = [*((name,) for name in run.domain.names), *(c.clique for c in run.constraints)]
    return BYTES_PER_CELL * max(model_cells(run.domain, fixed), most)


def of_adaptive(run: Run, options: Options) -> int:
    """The tree, and the last sweep where it may be made; with a limit, the rule fits both into what is left.

    Where less is left than the least tree takes, that is told: the release is refused then.
    """
    least = _tree(run, LEAST_CELLS)
    beside = common(run).total + _counted_at_once(run, candidates(run))
    left = None if run.memory is None else run.memory - beside
    if left is not None and left <= least:
        return least
    limits = limits_of(run.workload, run.memory, options.get("seconds"))
    numbers = numbers_swept(run.domain, run.workload.cliques)
    taken = _tree(run, limits.cells) + BYTES_PER_SWEPT * (numbers if numbers <= limits.swept else 0)
    return taken if left is None else min(taken, left)


def of_aim(run: Run, options: Options) -> int:
    """The tree, which grows up to the size that the caller allows."""
    return _tree(run, int(options.get("model_bytes", MODEL_BYTES)) // 8)


def of_residual(run: Run, options: Options) -> int:
    """A histogram fitted with second derivatives where they fit, else a tree."""
    del options
    cells = run.domain.size()
    if run.constraints or cells > NEWTON_CELLS:
        return _tree(run, TREE_CELLS)
    below = {part for clique in run.workload for part in parts_of(clique) if part}
    coordinates = sum(prod(size - 1 for size in run.domain.shape(part)) for part in below)
    newton = NEWTON_BYTES * coordinates**2 if coordinates <= NEWTON_LIMIT else 0
    return HISTOGRAM_BYTES * cells + FIT_BYTES * run.workload.queries + newton


def of_histogram(run: Run, options: Options) -> int:
    """A number for every cell of the universe, fitted to all of the workload."""
    del options
    return HISTOGRAM_BYTES * run.domain.size() + FIT_BYTES * run.workload.queries


def of_weights(run: Run, options: Options) -> int:
    """A weight for every cell of the universe; none where the caller's own `update` keeps the hypothesis."""
    return WEIGHT_BYTES * run.domain.size() if options.get("update") is None else 0


def of_kinds_of_rows(run: Run, options: Options) -> int:
    """The matrix of the kinds of rows by the queries that tell them apart, which SmallDB bounds itself.

    The caller's own `queries` may be there for one reading only: they are not counted here, and SmallDB refuses a
    matrix above its bound before the first debit.
    """
    if options.get("queries") is not None:
        return 0
    kinds = run.domain.size({name for clique in run.workload for name in clique})
    return KIND_BYTES * min(kinds * run.workload.queries, MATRIX_LIMIT)


def of_the_caller(run: Run, options: Options) -> int:
    """Nothing: the databases are there already, in the caller's memory."""
    del run, options
    return 0
