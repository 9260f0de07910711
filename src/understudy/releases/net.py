"""The net mechanism as a release: the best of the databases that the caller brings, chosen privately."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.mechanism.net import NetMechanism
from understudy.query.marginal import Marginal
from understudy.query.projection import Projection
from understudy.rational import Number
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.releases.smalldb import public_rows, selection_price


def net(run: Run, *, databases: Sequence[Projection], alpha: Number | None = None) -> Outcome:
    """One of `databases`, for the whole price, by its largest error over the cells of the workload.

    The databases must be public: made without the table, or from what was bought about it.

    Privacy   ε-DP for the run's ε, or for the ε that its ρ buys of a selection (ε²/8-zCDP), under replace-one
              neighbours: `NetMechanism`.
    Accuracy  α + (2/(εn))(ln|N| + ln(1/β)) jointly over the workload, if one database of the net is within `alpha`
              of every table that is possible. Without `alpha` nothing is known about the net and nothing is
              certified.
    Gap       One error holds for the whole workload, so that 1-way and 2-way marginals can have wider bars than
              direct questions, and those beside the workload have none.
    """
    rows, epsilon = public_rows(run, "the net mechanism"), selection_price(run)
    marginals = [Marginal(run.domain, clique) for clique in run.workload]
    look = NetMechanism.of(databases, marginals, rows=rows, epsilon=epsilon)
    error = None if alpha is None else look.error(alpha, run.beta)
    chosen = run.look("net", look)
    run.tell("answering the workload", 1, 1)
    answers = tuple(_answer(databases[chosen], marginal, rows, error) for marginal in marginals)
    proof = {
        "mechanism": "net",
        "theorem": "Lecture 18, Theorem 0.1",
        "databases": len(databases),
        "chosen": chosen,
        "n": rows,
        "levels_per_unit": look.steps * rows,
        "epsilon": float(epsilon),
        "alpha": None if alpha is None else float(alpha),
        "beta": float(run.beta),
        "error": error,
    }
    return Outcome("net", databases[chosen], rows, answers, proof)


def _answer(database: Projection, marginal: Marginal, rows: int, error: float | None) -> MarginalAnswer:
    counts = np.asarray(marginal.answer(database) * rows)
    if error is None:
        return MarginalAnswer.around(marginal.by, counts, np.full(counts.shape, np.inf), "uncertified")
    return MarginalAnswer.around(
        marginal.by, counts, np.full(counts.shape, min(error, 1.0) * rows), "certified"
    )
