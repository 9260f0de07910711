"""A small table of dependent attributes, for tests of adaptive releases."""

from __future__ import annotations

import numpy as np

from counted import Rows
from release_runs import run_over
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.privacy.relation import Neighbours
from understudy.query.workload import Workload
from understudy.releases.run import MarginalAnswer, Outcome, Run

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
SIZES = (2, 3, 4, 5, 2, 3)
DOMAIN = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate(SIZES)))
TRIPLES = Workload.all_marginals(DOMAIN, 3)
BINARY = Domain(tuple(Bins.integers(f"b{i}", 0, 1) for i in range(5)))


def codes(rows=6000, seed=0, sizes=SIZES) -> np.ndarray:
    """Rows whose attributes all follow a hidden one."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    drawn = [(0.8 * hidden + 0.2 * rng.random(rows)) ** (1 + i % 3) * n for i, n in enumerate(sizes)]
    return np.stack(
        [np.minimum(column.astype(np.int64), n - 1) for column, n in zip(drawn, sizes, strict=True)]
    )


def make(*, table=None, domain=DOMAIN, workload=TRIPLES, truth=None, **given) -> Run:
    truth = truth or Rows(domain, codes() if table is None else table)
    return run_over(truth, workload, **{"delta": 1e-6, "neighbours": ADD, **given})


def mean_tvd(run: Run, outcome: Outcome) -> float:
    truth = run.curator._truth
    errors = []
    for answer in outcome.answers:
        counts = truth.count(answer.clique)
        errors.append(0.5 * np.abs(counts / counts.sum() - answer.counts / max(answer.counts.sum(), 1)).sum())
    return float(np.mean(errors))


def independent(run: Run) -> Outcome:
    """The product of exact 1-way rates."""
    truth, answers = run.curator._truth, []
    for clique in run.workload:
        table = np.ones(())
        for name in clique:
            table = np.multiply.outer(table, truth.count((name,)) / truth.rows)
        answers.append(MarginalAnswer.around(clique, table * truth.rows, table, "uncertified"))
    return Outcome("product", None, truth.rows, tuple(answers), {})  # type: ignore[arg-type]
