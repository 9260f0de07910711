"""Every value that met noise, on generated pairs of neighbours, against the bound that its mechanism declared.

A hundred thousand pairs with UNDERSTUDY_AUDIT, a slice without: random domains, tables, questions, weights,
guesses and matrices, through the Curator. `test_replay` has the families that adapt to what was released.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from audit.taps import Taps, compared, tapped
from counted import Cells, Rows
from understudy.curator.calibration import Calibration
from understudy.curator.candidates import Candidate
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import UnderstudyError
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.gap import Guess, NoisyGaps, WorstGuess
from understudy.mechanism.matrix.many_marginals import Centred, JointStrategy, StrategyPart
from understudy.mechanism.matrix.one_marginal import Strategy
from understudy.mechanism.merged import MergedGaps, MergedStrategy
from understudy.mechanism.worst_query import QueryClass, WorstQuery
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import LaplaceNoise, Selection
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation, Sensitivity
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging
from understudy.table.source import in_memory
from understudy.table.truth import Truth

FULL = bool(os.environ.get("UNDERSTUDY_AUDIT"))
PAIRS, PARTS = (100_000, 8) if FULL else (600, 2)
PURE, BOTH = Budget.of(8), Budget.of(8, 1e-6)
ONE = Fraction(1)
Draw = np.random.Generator


DOMAINS = [
    Domain(tuple(Bins.integers(f"x{i}", 0, size - 1) for i, size in enumerate(sizes)))
    for sizes in ((2, 3), (2, 2, 2), (4, 3, 2), (7,), (1, 5), (2, 2, 3, 2))
]


def random_clique(domain: Domain, draw: Draw, *, least: int = 0) -> tuple[str, ...]:
    wanted = draw.random(len(domain.names)) < 0.5
    if wanted.sum() < least:
        wanted[draw.integers(wanted.size)] = True
    return tuple(name for name, keep in zip(domain.names, wanted, strict=True) if keep)


def random_marginal(domain: Domain, draw: Draw, *, counting: bool = False, least: int = 0) -> Marginal:
    by = random_clique(domain, draw, least=least)
    kinds = [0.0, 1.0, 1.0] if counting else [0.0, 1.0, 1.0, draw.random(), 1e-9]
    where = {
        name: draw.choice(kinds, domain[name].size)
        for name in domain.names
        if name not in by and draw.random() < 0.6
    }
    return Marginal(domain, by, LinearQuery.conjunction(domain, where))


def random_guess(domain: Domain, draw: Draw) -> Guess:
    marginal = random_marginal(domain, draw, counting=True)
    weight = Fraction(int(draw.integers(1, 9)), int(draw.integers(1, 9)))
    return Guess(
        marginal, draw.integers(0, 9, marginal.shape), weight=weight, offset=int(draw.integers(0, 4))
    )


def random_merging(domain: Domain, draw: Draw) -> Merging:
    counts = [draw.integers(0, 20, attribute.size).astype(np.float64) for attribute in domain]
    return Merging.of(domain, counts, float(draw.choice([0, 5, 15, 1e6])), counts)


def plain(domain: Domain, draw: Draw) -> list[Marginal]:
    return [Marginal(domain, random_clique(domain, draw)) for _ in range(int(draw.integers(1, 4)))]


def _price(curator: Curator) -> Price:
    """Laplace noise, or Gaussian where the budget has a delta."""
    return Price.of(epsilon=1) if curator.ledger.budget.is_pure else Price.of(rho=Fraction(1, 9))


def measure(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    marginals = [random_marginal(domain, draw) for _ in range(int(draw.integers(1, 4)))]
    return lambda c: c.measure_all(marginals, Price.of(epsilon=Fraction(1, 3)))


def measure_gaussian(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    marginals = [random_marginal(domain, draw) for _ in range(int(draw.integers(1, 4)))]
    return lambda c: c.measure_all(marginals, Price.of(rho=Fraction(1, 20)))


def combine(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    marginal = random_marginal(domain, draw, counting=True, least=1)
    shapes = [(int(draw.integers(1, 4)), domain[name].size) for name in marginal.by]
    matrices = tuple(draw.integers(-3, 4, shape) for shape in shapes)
    return lambda c: c._buy(Strategy(marginal, matrices, c.relation, _price(c)))


def gaps(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    guesses = tuple(random_guess(domain, draw) for _ in range(int(draw.integers(1, 4))))
    if draw.random() < 0.5:
        return lambda c: c._buy(NoisyGaps(guesses, c.relation, _price(c)))
    return lambda c: c._buy(WorstGuess(guesses, ONE, c.relation))


def worst(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    marginals = tuple({m.key: m for m in plain(domain, draw)}.values())
    queries = QueryClass(domain, marginals)
    guesses = draw.integers(0, 9, sum(m.size for m in marginals)).astype(np.float64)
    law = "exponential" if draw.random() < 0.5 else "noisy-max"
    return lambda c: c._buy(WorstQuery(queries, guesses, ONE, c.relation, law=law))


def choose(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    wheres = [random_marginal(domain, draw, counting=True).where for _ in range(3)]
    candidates = [Candidate(where, Fraction(int(draw.integers(0, 9)))) for where in wheres]
    return lambda c: c.choose(candidates, epsilon=1)


def sparse(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    wheres = [random_marginal(domain, draw, counting=True).where for _ in range(3)]
    asked = [(where, int(draw.integers(0, 9))) for where in wheres]

    def act(curator: Curator) -> None:
        handle = curator.sparse(threshold=10**6, epsilon=1, numeric=bool(asked[0][1] % 2))
        for where, guess in asked:
            handle.ask(where, guess=guess)

    return act


def merged(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    merging, marginals = random_merging(domain, draw), tuple(plain(domain, draw))
    guesses = tuple(draw.integers(0, 9, merging.coarse.shape(m.by)) for m in marginals)
    weights = tuple(int(draw.integers(1, 9)) for _ in marginals)
    return lambda c: c._buy(MergedGaps(merging, marginals, guesses, weights, _price(c), c.relation))


def merged_combinations(draw: Draw, domain: Domain, kind: Neighbours) -> Callable[[Curator], Any]:
    merging = random_merging(domain, draw)
    coarse = merging.coarse
    cliques = {
        tuple(name for name in coarse.names if draw.random() < 0.6) for _ in range(int(draw.integers(1, 4)))
    }
    parts = tuple(StrategyPart(clique, Fraction(int(draw.integers(1, 9)), 100)) for clique in sorted(cliques))
    factors = {name: Centred(coarse[name].size) for name in coarse.names}
    look = MergedStrategy(merging, JointStrategy(coarse, factors, parts, Relation(kind)))
    return lambda c: c._buy(look)


ACTS = {
    PURE: (measure, measure, combine, gaps, worst, choose, sparse),
    BOTH: (
        measure_gaussian,
        measure_gaussian,
        combine,
        gaps,
        worst,
        merged,
        merged,
        merged_combinations,
        sparse,
    ),
}
DECLARED = {
    (budget, kind, domain): Declaration(
        name="generated", source=SourceSpec("-"), domain=domain, budget=budget, neighbours=kind, rows_at_least=1,
        rows_at_most=4096,
    )
    for budget in ACTS for kind in Neighbours for domain in DOMAINS
}  # fmt: skip


def random_pair(draw: Draw, domain: Domain, kind: Neighbours) -> tuple[np.ndarray, np.ndarray]:
    """Two tables that differ in one row: replaced, or taken away."""
    codes = draw.integers(0, domain.shape(), (int(draw.integers(1, 12)), len(domain.names)))
    if kind is Neighbours.ADD_REMOVE:
        return codes, codes[1:]
    other = codes.copy()
    other[0] = draw.integers(0, domain.shape())
    return codes, other


def once(act: Callable[[Curator], Any], curator: Curator) -> tuple[Taps, str]:
    """One run: what met noise, and the refusal that ended it."""
    with tapped() as taps:
        try:
            act(curator)
        except UnderstudyError as refusal:
            return taps, str(refusal)
    return taps, ""


def generated(seed: int, pairs: int) -> tuple[int, set[str]]:
    """So many pairs that were compared; how many values these were, and of which acts.

    What is refused before it is charged, as a choice that nobody can move, is refused on both and does not count.
    """
    draw, values, used, done = np.random.default_rng(seed), 0, set(), 0
    keys = list(DECLARED)
    while done < pairs:
        key = budget, kind, domain = keys[int(draw.integers(len(keys)))]
        made = ACTS[budget][int(draw.integers(len(ACTS[budget])))]
        act, runs = made(draw, domain, kind), []
        for codes in random_pair(draw, domain, kind):
            truth: Any = Rows(domain, codes.T)
            curator = Curator(truth, MemoryLedger(budget), DECLARED[key], noise=SeededNoise(done))
            runs.append(once(act, curator))
        (first, ended), (second, other) = runs
        assert ended == other
        found, count = compared(first, second, budget)
        assert found == [], (made.__name__, kind, domain.shape())
        assert bool(first.settled) == (not ended)
        done, values, used = done + (not ended), values + count, used | {made.__name__}
    return values, used


@pytest.mark.parametrize("seed", range(PARTS))
def test_every_value_that_meets_noise_is_within_its_declared_sensitivity(seed):
    values, used = generated(seed, PAIRS // PARTS)
    assert values > 2 * PAIRS // PARTS
    assert used == {act.__name__ for acts in ACTS.values() for act in acts}


def test_the_taps_have_power():
    """A marginal whose noise is made for half of what moves, and one whose debit says less than it does."""

    class HalfCalibration(Calibration):
        def sensitivity(self, *marginals, resolution=1):
            whole = super().sensitivity(*marginals, resolution=resolution)
            return Sensitivity(-(-whole.l1 // 2), -(-whole.l2_squared // 2))

    class HalfSensitive(Curator):
        def __init__(self, truth, ledger, declaration, *, noise):
            super().__init__(truth, ledger, declaration, noise=noise)
            sound = self.calibration
            self.calibration = HalfCalibration(sound.domain, sound.relation, sound.budget, sound.rows_at_most)

    class Cheap(Curator):
        def _paid(self, event, question, terms, look):
            return super()._paid(Selection(epsilon=Fraction(1, 10)), question, terms, look)

    domain = DOMAINS[0]
    declared = DECLARED[PURE, Neighbours.REPLACE, domain]
    codes = np.array([[0, 0], [1, 2]])
    for kind, fault in ((HalfSensitive, "sensitivity"), (Cheap, "price")):
        runs = []
        for table in (codes, codes[[1, 1]]):
            truth: Any = Rows(domain, table.T)
            curator = kind(truth, MemoryLedger(PURE), declared, noise=SeededNoise(1))
            runs.append(once(lambda c: c.measure(Marginal(domain, ("x0", "x1")), epsilon=1), curator)[0])
        assert fault in {difference.kind for difference in compared(*runs, PURE)[0]}


def test_counted_tables_are_what_the_engine_finds():
    draw = np.random.default_rng(3)
    for domain in DOMAINS:
        codes = draw.integers(0, domain.shape(), (9, len(domain.names)))
        columns = {name: pa.array(codes[:, i]) for i, name in enumerate(domain.names)}
        truth = Truth(in_memory(pa.table(columns)), domain)
        marginals = [random_marginal(domain, draw) for _ in range(6)]
        rows = Rows(domain, codes.T)
        for counted in (rows, Cells(domain, rows.count(domain.names))):
            assert counted.rows == truth.rows
            found = counted.sums_of(marginals, resolution=64)
            for one, two in zip(truth.sums_of(marginals, resolution=64), found, strict=True):
                assert (one == two).all()


def test_a_condition_that_nobody_meets_has_no_region():
    domain = DOMAINS[0]
    nobody = Marginal(domain, ("x0",), LinearQuery.conjunction(domain, {"x1": np.zeros(3)}))
    look = Strategy(nobody, (np.eye(2, dtype=np.int64),), Relation(Neighbours.REPLACE), Price.of(epsilon=1))
    assert isinstance(look.event, LaplaceNoise)
