"""The black-box audit: its bounds are exact, it finds what is there, and the mechanisms stand."""

from __future__ import annotations

import json
from fractions import Fraction
from math import exp, inf, log

import numpy as np
import pytest
from scipy import stats

from audit.coins import exact_choice_law, largest_ratio
from statistical import assert_at_most
from understudy.errors import ParameterError
from understudy.mechanism.exponential import ExponentialMechanism
from understudy.mechanism.laplace import LaplaceMechanism
from understudy.noise.samplers import SeededNoise
from understudy.privacy.bounded_noise import MAX_LARGEST
from understudy_audit.claim import CURVE, ConcentratedClaim, GaussianClaim, NormalClaim, PureClaim
from understudy_audit.composite import Composite
from understudy_audit.composites import composites
from understudy_audit.confidence import at_least, at_most, certified_epsilon, estimated_epsilon
from understudy_audit.events import (
    Ends,
    Everything,
    OneNumber,
    OutputEvent,
    WeightedSum,
    as_plain,
    count_all,
    from_plain,
    learn,
)
from understudy_audit.holdout import holdout_subjects
from understudy_audit.privacy import FAMILY_ERROR, Pair, Subject, audit, audit_pair, stacked
from understudy_audit.registry import EFFORTS, MOST_SUBJECTS, mechanism_subjects, named, subjects
from understudy_audit.scalar import SHIFTS, repeated
from understudy_audit.selection import score_pairs, stream_pairs

# ---- confidence


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (50, 2000)])
def test_bounds_are_the_exact_binomial_ones(hits, trials):
    """At the lower bound exactly `error` of the probability lies at or above what was seen, and likewise above."""
    low, high = at_least(hits, trials, 0.01), at_most(hits, trials, 0.01)
    assert 0 <= low <= hits / trials <= high <= 1
    if hits:
        assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(0.01, rel=1e-6)
    if hits < trials:
        assert stats.binom.cdf(hits, trials, high) == pytest.approx(0.01, rel=1e-6)


def test_a_certified_epsilon_is_too_large_no_more_often_than_promised():
    rng = np.random.default_rng(1)
    truth, error, trials = 1.0, 0.05, 4000
    share = exp(truth) / (1 + exp(truth))
    wrong = sum(
        certified_epsilon((int(rng.binomial(400, share)), int(rng.binomial(400, 1 - share))), (400, 400),
                          delta=0, error=error) > truth
        for _ in range(trials)
    )  # fmt: skip
    assert_at_most(wrong, trials, error)
    # The power: without the allowance for luck it would be wrong half of the time.
    naive = sum(
        estimated_epsilon((int(rng.binomial(400, share)), int(rng.binomial(400, 1 - share))), (400, 400), delta=0)
        > truth
        for _ in range(trials)
    )  # fmt: skip
    assert stats.binom.sf(naive - 1, trials, error) < 1e-9


def test_bounds_refuse_what_is_no_count():
    for hits, trials, error in ((1, 0, 0.1), (-1, 5, 0.1), (6, 5, 0.1), (1, 5, 0.0)):
        with pytest.raises(ParameterError):
            at_least(hits, trials, error)
    assert estimated_epsilon((5, 0), (10, 10), delta=0) == inf
    assert estimated_epsilon((0, 5), (10, 10), delta=0) == 0
    assert certified_epsilon((0, 5), (10, 10), delta=0.5, error=0.1) == 0


# ---- events


def test_an_event_is_learnt_where_the_laws_differ():
    rng = np.random.default_rng(2)
    one, two = rng.integers(0, 10, (5000, 1)), rng.integers(0, 10, (5000, 1))
    two[two == 7] = 3
    event = learn(one, two, delta=0.0, error=1e-3)
    assert isinstance(event, OutputEvent)
    assert event.count(np.array([[7]])) == 1
    assert event.count(np.array([[3]])) == 0
    assert str(event) == "number 1 at least 7 and below 8"


def test_an_event_may_need_several_numbers_at_once():
    """Two numbers that are each alike under both laws, and whose sum is not."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, (4000, 1))
    one, two = np.hstack([a, a]), np.hstack([a, 1 - a])
    event = learn(one, two, delta=0.0, error=1e-3)
    assert event.count(one) == 4000
    assert event.count(two) == 0


def test_many_values_are_cut_at_quantiles():
    rng = np.random.default_rng(4)
    one, two = rng.integers(0, 10**9, (20_000, 1)), rng.integers(10**8, 10**9, (20_000, 1))
    event = learn(one, two, delta=0.0, error=1e-3)
    assert event.count(one) > 1500
    assert event.count(two) == 0


def test_events_are_counted_together_as_one_by_one():
    """Those that share bins, those that share only the statistic, and one by itself."""
    draws = np.random.default_rng(7).integers(-9, 9, (500, 2))
    one, edges = OneNumber(1), np.array([-4, 0, 3])
    events = [
        OutputEvent(one, edges, np.array([True, False, False, True])),
        OutputEvent(one, edges, np.array([False, True, False, False])),
        OutputEvent(one, np.array([-4, 0, 5]), np.array([True, False, False, True])),
        OutputEvent(Ends(0), np.array([3]), np.array([False, True])),
    ]
    counted = count_all(events, draws)
    assert counted == [event.count(draws) for event in events]
    assert counted[0] == int(((draws[:, 1] < -4) | (draws[:, 1] >= 3)).sum())
    assert counted[1] == int(((draws[:, 1] >= -4) & (draws[:, 1] < 0)).sum())
    assert len(set(counted)) == 4


def test_least_and_largest_numbers_are_cut_like_others():
    """Patterns of floats are numbers up to the ends of 64 bits: minus zero is the least of all."""
    ends = np.array([-(2**63), 2**63 - 1])
    event = learn(
        np.repeat(ends, [900, 100])[:, None], np.repeat(ends, [100, 900])[:, None], delta=0.0, error=1e-3
    )
    assert event.count(ends[:1, None]) == 1
    assert event.count(ends[1:, None]) == 0


def test_an_event_is_not_chosen_for_its_luck():
    """Under one law every event is luck: what is learnt promises nothing on other draws."""
    rng = np.random.default_rng(5)
    one, two = rng.integers(0, 1500, (2, 20_000, 1))
    event = learn(one, two, delta=0.0, error=1e-3)
    fresh = [event.count(rng.integers(0, 1500, (20_000, 1))) / 20_000 for _ in range(2)]
    assert fresh[0] > 0.3  # a rare one with a large ratio would have been picked by luck
    assert abs(log(fresh[0] / fresh[1])) < 0.05


@pytest.mark.parametrize(
    "statistic",
    [
        OneNumber(1),
        Ends(0),
        Everything(np.array([0, -3]), np.array([5, 9])),
        WeightedSum(np.array([0.1, -2 / 3]), np.array([-1, 0])),
    ],
    ids=lambda statistic: type(statistic).__name__,
)
def test_an_event_that_was_kept_is_the_same_event(statistic):
    event = OutputEvent(statistic, np.array([-4, 0, 3]), np.array([True, False, False, True]))
    again = from_plain(json.loads(json.dumps(as_plain(event))))
    draws = np.random.default_rng(6).integers(-9, 9, (500, 2))
    assert str(again) == str(event)
    assert again.count(draws) == event.count(draws)


def test_runs_of_different_length_are_told_apart():
    table = stacked([[1], [1, 2, 3]], 2)
    assert table[0, 0] == table[1, 0] == table[1, 1] - 1
    assert table[0, 1] < -(2**30)


# ---- claims


def test_the_gaussian_curve_is_the_one_of_its_law():
    """At the ε that it gives, the best event's δ is the one that was asked for; and ρ's curve is above it."""
    claim, wide = GaussianClaim(1, Fraction(4)), ConcentratedClaim(Fraction(1, 8))
    outputs = np.arange(-200, 201)
    p = np.exp(-(outputs**2) / 8.0)
    q = np.exp(-((outputs - 1) ** 2) / 8.0)
    p, q = p / p.sum(), q / q.sum()
    for delta in CURVE:
        spent = np.maximum(p - exp(claim.epsilon(delta)) * q, 0).sum()
        assert spent == pytest.approx(min(delta, np.maximum(p - q, 0).sum()), rel=1e-6)
        assert claim.epsilon(delta) <= wide.epsilon(delta)
    assert PureClaim(Fraction(3, 2)).epsilon(0.1) == 1.5


def test_the_normal_curve_is_the_one_of_its_law():
    for shift in (0.2, 1.0, 3.0):
        claim = NormalClaim(shift)
        grid = np.linspace(-12, 12, 200_001)
        p, q = stats.norm.pdf(grid), stats.norm.pdf(grid - shift)
        for delta in CURVE:
            spent = np.maximum(p - exp(claim.epsilon(delta)) * q, 0).sum() * (grid[1] - grid[0])
            assert spent == pytest.approx(min(delta, 2 * stats.norm.cdf(shift / 2) - 1), rel=1e-3)


# ---- audits


def test_a_pair_that_is_randomised_response_is_certified_up_to_its_margin():
    mechanism = LaplaceMechanism(epsilon=Fraction(1), l1=1)
    pair = Pair("p", repeated(mechanism, (0,)), repeated(mechanism, (1,)), PureClaim(Fraction(1)))
    found = audit_pair(pair, samples=100_000, error=1e-6, noise=SeededNoise(1))
    assert all(not finding.excess for finding in found)
    assert all(0.9 < finding.certified < 1 for finding in found)
    assert all(1 < finding.detectable < 1.1 for finding in found)
    lower = Pair("p", pair.first, pair.second, PureClaim(Fraction(9, 10)))
    assert all(f.excess for f in audit_pair(lower, samples=100_000, error=1e-6, noise=SeededNoise(1)))


def test_what_would_be_seen_shrinks_with_draws():
    mechanism = LaplaceMechanism(epsilon=Fraction(1), l1=1)
    pair = Pair("p", repeated(mechanism, (0,)), repeated(mechanism, (1,)), PureClaim(Fraction(1)))
    seen = [
        audit_pair(pair, samples=n, error=1e-6, noise=SeededNoise(1))[0].detectable
        for n in (10, 1000, 10_000)
    ]
    assert seen[0] > seen[1] > seen[2] > 1


def test_the_pilot_finds_the_worst_pair():
    mechanism = LaplaceMechanism(epsilon=Fraction(1), l1=1)
    claim = PureClaim(Fraction(1))
    pairs = [
        Pair(str(shift), repeated(mechanism, (0,)), repeated(mechanism, (shift,)), claim)
        for shift in (0, 0, 1, 0, 0)
    ]
    subject = Subject("s", "here", "vector", lambda: pairs)
    verdict = audit(subject, samples=1000, noise=SeededNoise(1), keep=1, pilot=1000)
    assert {finding.pair for finding in verdict.findings} == {"1"}
    assert (verdict.candidates, verdict.sound) == (5, True)
    with pytest.raises(ParameterError):
        audit(subject, samples=2, noise=SeededNoise(1))


def test_there_are_twenty_pairs_for_every_scalar_and_every_pair_is_of_neighbours():
    assert len(SHIFTS) == 20
    for _, moved, one, two in SHIFTS:
        assert sum(abs(a - b) for a, b in zip(one, two, strict=True)) <= moved
    for name, one, two in score_pairs(2):
        assert max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 2, name
    for name, one, two in stream_pairs(2):
        assert max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 2, name
    told = {subject.name: len(subject.pairs()) for subject in mechanism_subjects()}
    assert {name for name, count in told.items() if count != 20} == {
        "truncated-geometric-keys",
        "gaussian-keys",
        "bounded",
    }
    assert told["bounded"] == sum(moved <= MAX_LARGEST for _, moved, _, _ in SHIFTS) == 17


# The slice that every run of the tests takes; `understudy audit privacy --effort full` takes all of it.

VECTORS = mechanism_subjects()


@pytest.mark.parametrize("subject", VECTORS, ids=lambda subject: subject.name)
def test_no_excess_over_the_promise_of_a_mechanism(subject):
    assert audit(subject, noise=SeededNoise(1), samples=200_000, keep=4, pilot=5_000).sound


SLOW = {
    "mwem": 300, "adaptive": 200, "online": 800, "ic": 1_500, "holdout-thresholdout": 2_000,
    "mwem-begun": 2_000, "adaptive-begun": 2_000, "holdout-gaussian": 3_000,
}  # fmt: skip
"""Runs of the slice on each table, where 6,000 would take more than a few seconds.

Of mwem and adaptive releases with a beginning that is given, `mutants/runs.py` runs 6,000 on another pair.
"""

RUNS = [*composites(), *holdout_subjects()]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_no_excess_over_the_promise_of_a_run(run):
    pair = run.pair(0) if isinstance(run, Composite) else run.pairs()[0]
    first = Subject(run.name, run.path, run.size, lambda: [pair])
    assert audit(first, noise=SeededNoise(1), samples=SLOW.get(run.name, 6_000)).sound


@pytest.mark.parametrize("sensitivity", [1, 2, 256])
def test_the_law_of_a_selection_keeps_its_promise_exactly(sensitivity):
    """Through the shipped sampler, by bisection of its coin: no luck is involved."""
    mechanism = ExponentialMechanism(epsilon=Fraction(1), sensitivity=sensitivity)
    worst = 0.0
    for _, one, two in score_pairs(sensitivity):
        laws = []
        for scores in (np.array(one), np.array(two)):
            law = exact_choice_law(lambda noise, s=scores: mechanism.choose(s, noise=noise), scores.size)
            assert law == pytest.approx(np.exp(mechanism.log_law(scores)), abs=1e-15)
            laws.append(law)
        worst = max(worst, largest_ratio(*laws))
    assert 0.9 < worst <= 1 + 1e-9


def test_every_subject_has_an_effort_and_a_name():
    known = subjects()
    assert {subject.size for subject in known.values()} == set(EFFORTS["full"])
    assert (EFFORTS["full"]["vector"].samples, EFFORTS["full"]["vector"].pairs) == (4_000_000, 20)
    assert (EFFORTS["full"]["run"].samples, EFFORTS["full"]["run"].pairs) == (100_000, 10)
    assert {subject.name for subject in (*VECTORS, *RUNS)} == set(known)
    assert len(known) <= MOST_SUBJECTS
    assert [subject.name for subject in named(["net", "laplace"])] == ["net", "laplace"]
    with pytest.raises(ParameterError, match=r"there are: .*laplace"):
        named(["lapace"])


def test_everything_that_makes_a_promise_is_audited():
    """What the documents promise, by the names of the subjects that run it."""
    wanted = {
        "laplace", "gaussian", "exponential", "randomized-response", "above-threshold", "numeric-sparse",
        "noisy-max", "smalldb-chain", "smalldb-tree", "smalldb-enumeration", "ic", "mwem", "mwem-gaussian",
        "adaptive", "residual", "online", "session", "session-gaussian", "holdout-gaussian",
        "holdout-thresholdout", "truncated-geometric-keys", "gaussian-keys",
    }  # fmt: skip
    assert wanted <= set(subjects())


def test_the_family_error_is_one_in_a_million():
    assert pytest.approx(-6) == log(FAMILY_ERROR, 10)
