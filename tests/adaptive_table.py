"""A small table of dependent attributes in a truth that counts its looks, for tests of adaptive releases."""

from __future__ import annotations

import numpy as np

from understudy.bins import Bins
from understudy.curator import Curator
from understudy.declaration import Declaration, SourceSpec
from understudy.domain import Domain
from understudy.ledger.memory import MemoryLedger
from understudy.noise import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.neighbours import Neighbours
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


class Rows:
    """A truth that counts its rows; what the number of rows is, it tells nobody who may not know."""

    is_file = False

    def __init__(self, domain: Domain, table: np.ndarray) -> None:
        self.domain, self.table, self.looks = domain, table, 0

    @property
    def rows(self) -> int:
        return self.table.shape[1]

    def check_unchanged(self) -> None:
        pass

    def check_size(self, marginals) -> None:
        pass

    def sums_of(self, marginals, *, resolution=1):
        assert resolution == 1
        self.looks += 1
        return [self.count(m.by) for m in marginals]

    def count(self, clique) -> np.ndarray:
        shape = self.domain.shape(clique)
        if not clique:
            return np.array(self.rows)
        where = tuple(self.table[self.domain.position(name)] for name in clique)
        flat = np.ravel_multi_index(where, shape)
        return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def make(
    *,
    epsilon=1,
    delta=1e-6,
    seed=1,
    neighbours=ADD,
    ledger=None,
    table=None,
    domain=DOMAIN,
    workload=None,
    truth=None,
    **declared,
) -> Run:
    budget = Budget.of(epsilon, delta)
    declaration = Declaration(
        name="t", source=SourceSpec("-"), domain=domain, budget=budget, neighbours=neighbours, **declared
    )
    books = MemoryLedger(budget) if ledger is None else ledger
    truth = truth or Rows(domain, codes() if table is None else table)
    curator = Curator(truth, books, declaration, noise=SeededNoise(seed))
    return Run(curator, workload or TRIPLES, budget, "r")


def mean_tvd(run: Run, outcome: Outcome) -> float:
    truth = run.curator._truth
    errors = []
    for answer in outcome.answers:
        counts = truth.count(answer.clique)
        errors.append(0.5 * np.abs(counts / counts.sum() - answer.counts / max(answer.counts.sum(), 1)).sum())
    return float(np.mean(errors))


def covered(run: Run, outcome: Outcome) -> bool:
    truth = run.curator._truth
    return all(
        bool((np.abs(answer.counts - truth.count(answer.clique)) <= answer.error + 1e-6).all())
        for answer in outcome.answers
    )


def same(one: Outcome, other: Outcome) -> bool:
    return one.rows == other.rows and all(
        np.array_equal(a.counts, b.counts) and np.array_equal(a.error, b.error)
        for a, b in zip(one.answers, other.answers, strict=True)
    )


class Killed(Exception):
    """The power went."""


class Dying(Rows):
    """Dies at a look."""

    def __init__(self, domain, table, last: int) -> None:
        super().__init__(domain, table)
        self.last = last

    def sums_of(self, marginals, *, resolution=1):
        if self.looks == self.last:
            raise Killed
        return super().sums_of(marginals, resolution=resolution)


class Recorded(Rows):
    """A truth that is never looked at: all that is asked is in the ledger already."""

    def sums_of(self, marginals, *, resolution=1):
        raise AssertionError("the run asked for something else than before")


def independent(run: Run) -> Outcome:
    """The product of exact 1-way rates."""
    truth, answers = run.curator._truth, []
    for clique in run.workload:
        table = np.ones(())
        for name in clique:
            table = np.multiply.outer(table, truth.count((name,)) / truth.rows)
        answers.append(MarginalAnswer(clique, table * truth.rows, table, "uncertified"))
    return Outcome("product", None, truth.rows, tuple(answers), {})  # type: ignore[arg-type]
