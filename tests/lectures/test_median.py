"""The MedianMechanism, exact and sampled, behind GuessAndCheck and behind the sparse vector."""

from __future__ import annotations

import os
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from statistical import assert_does_not_follow, assert_follows
from understudy.curator.curator import Curator
from understudy.declaration.declaration import Declaration, Protect, SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import HandleClosedError, ParameterError, TooLargeError
from understudy.lectures import median as module
from understudy.lectures.guessers import MedianGuess, SampledMedianGuess
from understudy.lectures.median import MedianMechanism, median_update, private_median, smallest_eta
from understudy.lectures.online_terms import theorem_terms
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.standin.median.median import MedianUpdate, SurvivingSet
from understudy.standin.median.sampled import SampledMedianUpdate, SampledSurvivors
from understudy.table.source import in_memory
from understudy.table.truth import Truth
from understudy.theory.guess_and_check import gnc_failures_width

pytestmark = pytest.mark.usefixtures("forgetful")

AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))
CELLS = 4
DOMAIN = Domain((Bins.integers("x", 0, CELLS - 1),))
WIDE = Domain((Bins.integers("x", 0, 15), Bins.integers("y", 0, 3), Bins.integers("z", 0, 3)))
"""256 cells: no η below one half at which all small databases could be held."""

ROWS = [0] * 50 + [1] * 30 + [2] * 20


def curator(rows, *, protect=Protect.VALIDITY, ledger=None, domain=DOMAIN, budget=1, seed=0) -> Curator:
    declaration = Declaration(
        name="t",
        source=SourceSpec("-"),
        domain=domain,
        budget=Budget.of(budget),
        neighbours=Neighbours.REPLACE,
        protect=protect,
    )
    columns = np.asarray(rows).reshape(len(rows), -1)
    truth = Truth(in_memory(pa.table({name: columns[:, i] for i, name in enumerate(domain.names)})), domain)
    ledger = ledger or MemoryLedger(declaration.budget)
    return Curator(truth, ledger, declaration, noise=SeededNoise(seed))


def query(weights) -> LinearQuery:
    return LinearQuery.table(DOMAIN, ("x",), np.asarray(weights, float))


QUERIES = [query([bits >> i & 1 for i in range(CELLS)]) for bits in range(1, 2**CELLS - 1)]
MASKS = np.array([q.weights(("x",)) for q in QUERIES])


def adversary(generator, mechanism, rows):
    """The query on which the current guess is most wrong, by an analyst who knows the table."""
    if generator.random() < 0.2:
        return QUERIES[generator.integers(len(QUERIES))]
    truth = MASKS @ np.bincount(rows, minlength=CELLS) / len(rows)
    gaps = [abs(mechanism.guesser.guess(q) - rate) for q, rate in zip(QUERIES, truth, strict=True)]
    return QUERIES[int(np.argmax(gaps))]


def wide_table(seed, rows=2000):
    """Attributes that depend on each other, far from uniform."""
    draw = np.random.default_rng(seed)
    x = np.minimum(draw.geometric(0.3, rows) - 1, 15)
    y = np.minimum(x // 2 + draw.integers(0, 2, rows), 3)
    return np.stack([x, y, (x + y) % 4 * draw.integers(0, 2, rows)], axis=1)


def wide_query(draw) -> LinearQuery:
    names = draw.choice(WIDE.names, draw.integers(1, 3), replace=False)
    return LinearQuery.conjunction(WIDE, {str(name): draw.random(WIDE[name].size) < 0.5 for name in names})


def rate(asked, rows):
    return float(np.mean(asked.weights(WIDE.names)[tuple(np.asarray(rows).T)]))


# ---- exact: the theorem


def most_rejections_met(runs):
    """In any of so many runs, each on another table, with an adversary that knows it."""
    used = 0
    for seed in range(runs):
        generator = np.random.default_rng(seed)
        rows = generator.choice(CELLS, 60, p=generator.dirichlet(np.full(CELLS, 0.3)))
        mechanism = MedianMechanism(curator(rows), queries=8, eta=Fraction(1, 2))
        for _ in range(8):
            asked = adversary(generator, mechanism, rows)
            found = mechanism.ask(asked)
            assert abs(found.value - np.mean(asked.weights(("x",))[rows])) <= found.error + 1e-12
        assert mechanism.mode == "exact"
        assert mechanism.checker.failures <= mechanism.most_rejections
        used = max(used, mechanism.checker.failures)
    return used


def test_lecture4_theorem_2_rejections_never_exceed_the_bound_and_answers_hold():
    """The mechanism never halts, and every answer is within η."""
    assert most_rejections_met(1000 if AUDIT else 12) > 0


def test_lecture4_auxiliary_claim_every_rejection_halves_the_set():
    generator = np.random.default_rng(1)
    rows = [3] * 60
    mechanism = MedianMechanism(curator(rows), queries=20, eta=Fraction(1, 4))
    for _ in range(20):
        before, failures = len(mechanism.guesser.survivors), mechanism.checker.failures
        mechanism.ask(adversary(generator, mechanism, np.array(rows)))
        if mechanism.checker.failures > failures:
            assert 2 * len(mechanism.guesser.survivors) <= before
    assert mechanism.checker.failures > 0


def test_lecture4_medianmechanism_by_brute_force():
    """A guess is the median of the databases left; a wrong one drops those more than η/2 from the answer."""
    generator = np.random.default_rng(2)
    rows = np.array([3] * 50 + [0] * 10)
    mechanism = MedianMechanism(curator(rows), queries=8, eta=Fraction(1, 2))
    bars = combinations(range(mechanism.size + CELLS - 1), CELLS - 1)
    ends = np.array([(-1, *at, mechanism.size + CELLS - 1) for at in bars])
    left = np.diff(ends, axis=1) - 1  # every multiset of n' rows, as counts
    assert len(left) == len(mechanism.guesser.survivors)
    for _ in range(8):
        asked, before = adversary(generator, mechanism, rows), mechanism.checker.failures
        answers = left @ asked.weights(("x",)) / mechanism.size
        assert mechanism.guesser.guess(asked) == pytest.approx(np.sort(answers)[(len(left) - 1) // 2])
        found = mechanism.ask(asked)
        if mechanism.checker.failures > before:
            left = left[np.abs(answers - float(found.value)) <= 1 / 4 + 1e-9]
        assert {*map(tuple, mechanism.guesser.survivors.databases())} == {*map(tuple, left)}
    assert mechanism.checker.failures > 0


def test_lecture4_claim_1_a_small_database_survives():
    """Resampling finds one within η/4 on all queries; it is never dropped."""
    rows = np.array(ROWS)
    mechanism = MedianMechanism(curator(rows), queries=14, eta=Fraction(2, 5))
    truth = MASKS @ np.bincount(rows, minlength=CELLS) / len(rows)

    def near(candidates):
        answers = candidates / mechanism.size @ MASKS.T
        return (np.abs(answers - truth) <= float(mechanism.eta) / 4).all(axis=1)

    good = int(near(mechanism.guesser.survivors.databases()).sum())
    assert good > 0
    for asked in QUERIES:
        mechanism.ask(asked)
    assert int(near(mechanism.guesser.survivors.databases()).sum()) == good


@pytest.mark.parametrize("eta", [Fraction(1, 4), Fraction(1, 50)], ids=["exact", "sampled"])
def test_the_median_mechanism_goes_on_where_it_stopped(eta):
    """In another process it has the same survivors, or the same particles: their coins come from its name."""
    ledger = MemoryLedger(Budget.of(1))
    first = MedianMechanism(curator([3] * 60, ledger=ledger), queries=20, eta=eta, name="mine")
    for cell in (3, 0, 1):
        first.ask(query(np.arange(CELLS) == cell))
    again = MedianMechanism(curator([3] * 60, ledger=ledger), queries=20, eta=eta, name="mine")
    assert again.checker.failures == first.checker.failures > 0
    assert [again.guesser.guess(q) for q in QUERIES] == [first.guesser.guess(q) for q in QUERIES]
    # Both go on, in turns: what one is told, the other learns before it guesses again.
    for turn, asked in enumerate(QUERIES):
        (first, again)[turn % 2].ask(asked)
    for mechanism in (first, again):
        mechanism.ask(QUERIES[0])
    assert [again.guesser.guess(q) for q in QUERIES] == [first.guesser.guess(q) for q in QUERIES]


# ---- which of the two


def test_the_mode_follows_from_public_numbers():
    small = MedianMechanism(curator(ROWS), queries=20, eta=Fraction(1, 4))
    assert (small.mode, type(small.guesser)) == ("exact", MedianGuess)
    fine = MedianMechanism(curator(ROWS), queries=1000, eta=Fraction(1, 1000))
    assert (fine.mode, fine.most_rejections, type(fine.guesser)) == ("sampled", None, SampledMedianGuess)
    assert smallest_eta(3, 10) < smallest_eta(5, 10)
    assert MedianMechanism(curator(ROWS), queries=20).mode == "exact"
    wide = MedianMechanism(curator(wide_table(0), domain=WIDE), queries=20)
    assert wide.mode == "sampled"
    assert float(wide.eta) == pytest.approx((np.log(80) / 4000) ** 0.25, rel=1e-2)
    with pytest.raises(TooLargeError):
        smallest_eta(1000, 10**6)


def test_a_universe_that_is_too_large_for_a_sample_is_refused_before_anything_is_written():
    huge = Domain(tuple(Bins.integers(f"a{i}", 0, 9) for i in range(6)))
    ledger = MemoryLedger(Budget.of(1))
    with pytest.raises(TooLargeError, match="sample of 200 histograms"):
        MedianMechanism(curator(np.zeros((10, 6), int), domain=huge, ledger=ledger), queries=5)
    assert ledger.debits() == []


# ---- sampled against exact


def cut_alike(exact, sampled):
    """The same three rejections, told to both."""
    for weights, low, high in (([1, 0, 0], 0.3, 0.6), ([0, 1, 1], 0.45, 0.62), ([0, 1, 0], 0.1, 0.4)):
        asked = LinearQuery.table(exact.domain, ("x",), np.array(weights, float))
        assert exact.cut_by_distance(asked, (low + high) / 2, (high - low) / 2)
        if sampled is not None:
            assert sampled.keep_between(asked, low, high)


def test_particles_follow_the_exact_survivors():
    """All databases of 240 rows over three cells, against 4,000 particles: four bins of two queries' answers."""
    domain = Domain((Bins.integers("x", 0, 2),))
    exact, unlike = SurvivingSet(domain, 240), SurvivingSet(domain, 240, "sequences")
    sampled = SampledSurvivors(domain, particles=4000, rounds=150, generator=np.random.default_rng(71))
    cut_alike(exact, sampled)
    for weights in ([1, 0, 0], [0, 1, 0]):
        asked = LinearQuery.table(domain, ("x",), np.array(weights, float))
        answers = np.sort(exact.databases() @ np.array(weights)) / 240
        edges = [-1, *np.quantile(answers, [0.25, 0.5, 0.75]), 2]
        law = np.diff([np.searchsorted(answers, edge, "right") for edge in edges]) / len(answers)
        # The databases lie on a lattice: half a step of it belongs to each side.
        seen = np.histogram(sampled.particles() @ np.array(weights), np.array(edges) + 0.5 / 240)[0]
        assert_follows(seen, law)
        assert abs(sampled.answer(asked) - exact.answer(asked)) < 0.02
        # The mutant: sequences in the place of multisets, which gather about the middle.
        cells = np.arange(241)
        masses = np.zeros(241)
        np.add.at(masses, (unlike.databases() @ np.array(weights)), unlike._masses)
        at = np.searchsorted(np.array(edges) * 240 + 0.5, cells) - 1
        wrong = np.bincount(np.clip(at, 0, 3), weights=masses, minlength=4)
        assert_does_not_follow(seen, wrong / wrong.sum())


@pytest.mark.parametrize("seed", range(3))
def test_the_sampled_mechanism_answers_as_the_exact_one(seed, monkeypatch):
    """Both are within η of the sample, and reject about as often."""
    generator = np.random.default_rng(seed)
    rows = generator.choice(CELLS, 200, p=generator.dirichlet(np.full(CELLS, 0.3)))
    asked = [QUERIES[i] for i in generator.integers(0, len(QUERIES), 25)]
    truth = [float(np.mean(q.weights(("x",))[rows])) for q in asked]
    one = MedianMechanism(curator(rows), queries=25, eta=Fraction(1, 4))
    monkeypatch.setattr(module, "can_be_held", lambda cells, size: False)
    other = MedianMechanism(curator(rows), queries=25, eta=Fraction(1, 4), name="mine")
    assert (one.mode, other.mode) == ("exact", "sampled")
    for mechanism in (one, other):
        for q, value in zip(asked, truth, strict=True):
            found = mechanism.ask(q)
            assert abs(found.value - value) <= found.error + 1e-12 <= 0.25 + 1e-12
    assert abs(other.checker.failures - one.checker.failures) <= 3
    assert other.checker.failures <= one.most_rejections


def test_a_large_universe_is_served_within_eta_and_with_an_honest_width():
    rows, draw = wide_table(3), np.random.default_rng(4)
    mechanism = MedianMechanism(curator(rows, domain=WIDE), queries=45, eta=Fraction(1, 8), name="mine")
    assert mechanism.mode == "sampled"
    fresh = [wide_query(draw) for _ in range(40)]
    first, wrong = [mechanism.guesser.guess(q) for q in fresh], []
    for _ in range(45):
        asked = wide_query(draw)
        found = mechanism.ask(asked)
        wrong.append(not found.accepted)
        assert abs(found.value - rate(asked, rows)) <= found.error + 1e-9
        assert found.population_error == gnc_failures_width(
            len(rows), 45, mechanism.checker.failures, Fraction(1, 8), Fraction(1, 20)
        )
    truth = [rate(q, rows) for q in fresh]
    last = [mechanism.guesser.guess(q) for q in fresh]
    # It learns, also about what was never asked: an observation, not a theorem.
    assert np.abs(np.subtract(last, truth)).mean() < 0.8 * np.abs(np.subtract(first, truth)).mean()
    kept = mechanism.guesser.survivors
    assert kept.cuts == mechanism.checker.failures == sum(wrong)
    histogram = np.zeros(WIDE.shape())
    np.add.at(histogram, tuple(rows.T), 1 / len(rows))
    answers = kept._queries @ histogram.ravel()  # the sample itself was never cut off
    assert (answers >= kept._bounds[:, 0] - 1e-9).all()
    assert (answers <= kept._bounds[:, 1] + 1e-9).all()
    with pytest.raises(HandleClosedError):
        mechanism.ask(wide_query(draw))


# ---- behind the sparse vector


def test_the_update_algorithm_follows_from_public_numbers_too():
    held = median_update(DOMAIN, queries=14, alpha=Fraction(1, 5), cap=9, name="mine")
    assert isinstance(held, MedianUpdate)
    sampled = median_update(WIDE, queries=100, alpha=Fraction(1, 20), cap=9, name="mine")
    assert isinstance(sampled, SampledMedianUpdate)
    assert sampled.most_updates(0.05) == 9
    with pytest.raises(ParameterError, match="practical"):
        theorem_terms(
            curator(wide_table(0), protect=Protect.PRIVACY, domain=WIDE),
            lambda _: sampled,
            queries=9,
            epsilon=1,
        )


def most_updates_made(runs):
    """In any of so many runs, each on another table, with an adversary that knows it."""
    used = 0
    for seed in range(runs):
        generator = np.random.default_rng(seed)
        rows = generator.choice(CELLS, 5000, p=generator.dirichlet(np.full(CELLS, 0.2)))
        one = curator(rows, protect=Protect.PRIVACY, budget=1000, seed=seed)
        mechanism = private_median(one, alpha=0.5, queries=40, updates=20, beta=1e-9)
        assert mechanism.terms.is_bounded
        counts = MASKS @ np.bincount(rows, minlength=CELLS)
        for _ in range(10):
            gaps = np.array([mechanism.hypothesis.answer(q) for q in QUERIES]) * 5000 - counts
            at = int(np.argmax(np.abs(gaps)))
            answer = mechanism.ask(QUERIES[at])
            assert abs(float(answer.value) - counts[at]) <= float(answer.error) <= 2500
        assert mechanism.updates <= mechanism.update.most_updates(Fraction(mechanism.terms.gap, 5000)) <= 20
        used = max(used, mechanism.updates)
    return used


def test_lecture7_definition_2_a_private_median_never_runs_out_where_the_set_is_held():
    assert most_updates_made(1000 if AUDIT else 8) > 0


def test_a_private_median_on_a_large_universe_is_certified_until_its_cap():
    rows, draw = wide_table(5, rows=20_000), np.random.default_rng(6)
    one = curator(rows, protect=Protect.PRIVACY, domain=WIDE, budget=1000)
    mechanism = private_median(one, alpha=0.1, queries=200, updates=5, beta=1e-6, name="mine")
    assert isinstance(mechanism.update, SampledMedianUpdate)
    assert not mechanism.terms.is_bounded
    sources = set()
    for _ in range(60):
        asked = wide_query(draw)
        answer = mechanism.ask(asked)
        sources.add(answer.source)
        if answer.source != "uncertified":
            assert abs(float(answer.value) / 20_000 - rate(asked, rows)) <= 0.1
            assert float(answer.error) <= 2000
    assert mechanism.updates == 5
    assert sources == {"checked", "measured", "uncertified"}
    again = private_median(one, alpha=0.1, queries=200, updates=5, beta=1e-6, name="mine")
    assert (again.updates, again.asked) == (5, 60)
    np.testing.assert_array_equal(again.hypothesis.particles(), mechanism.hypothesis.particles())
