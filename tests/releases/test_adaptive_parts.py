"""Parts of the adaptive release: merging, looks, picks, local fits, intervals and the rule."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_table import make
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError
from understudy.mechanism.look import released
from understudy.mechanism.matrix.residual_plan import Residuals
from understudy.mechanism.merged import MergedGaps, MergedStrategy
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import rho
from understudy.privacy.price import Price
from understudy.privacy.relation import Neighbours, Relation
from understudy.query.marginal import Marginal
from understudy.query.merging import Merging, rare_together, simplex
from understudy.query.workload import Workload
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.adaptive.learner import FINAL, ROUGH, Learner, final_share
from understudy.releases.adaptive.pick import (
    PRICE_POWER,
    TRIPLE_WORTH,
    Candidates,
    NoiseForecast,
    RoundSituation,
    _Greedy,
    pick,
)
from understudy.releases.adaptive.rows import AdaptiveStandIn
from understudy.releases.adaptive.rule import limits_of, rule_for, told
from understudy.releases.adaptive.shrink import (
    DIFFERENCES,
    DOUBTED,
    LEVELS,
    SCALES,
    STEPS,
    _most_likely,
    combined,
    lessons,
    moved,
    shrunk,
)
from understudy.releases.adaptive.sweep_choice import numbers_swept
from understudy.releases.agreement import agreeing_rows
from understudy.releases.evidence import Evidence, Interval, ProvedIntervals, possible_ends
from understudy.releases.residual.tables import ResidualTables
from understudy.releases.run import MarginalAnswer, Run
from understudy.standin.graphical.model import fit
from understudy.standin.measurement import Measurement

ADD, REPLACE = Relation(Neighbours.ADD_REMOVE), Relation(Neighbours.REPLACE)
TENTH = Price.of(rho=Fraction(1, 10))
SEVERAL = Relation(Neighbours.ADD_REMOVE, 3)
DOMAIN = Domain((Bins.integers("a", 0, 3), Bins.integers("b", 0, 2), Bins.integers("c", 0, 1)))
PAIR = Marginal(DOMAIN, ("a", "b"))
MERGING = Merging(
    DOMAIN,
    (np.array([0, 2]), np.array([0, 1]), np.array([0])),
    (np.array([0.25, 0.75, 0.5, 0.5]), np.array([1.0, 0.4, 0.6]), np.array([0.3, 0.7])),
)


def table(cells: int = 24):
    return st.lists(st.integers(0, 5), min_size=cells, max_size=cells)


def neighbours_of(counts: np.ndarray, relation: Relation):
    """All tables that differ by one row."""
    flat = counts.ravel()
    for i in range(flat.size):
        more = flat.copy()
        more[i] += 1
        if relation is ADD:
            yield more.reshape(counts.shape)
            continue
        for j in np.flatnonzero(flat):
            if i != j:
                moved = more.copy()
                moved[j] -= 1
                yield moved.reshape(counts.shape)


# ---------------------------------------------------------------------------------------- merging


@given(st.lists(st.integers(-5, 40), min_size=1, max_size=12), st.integers(0, 30))
def test_groups_are_runs_of_values_and_frequent_ones_stand_alone(noisy, threshold):
    counts = np.array(noisy, float)
    starts = rare_together(counts, threshold)
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    widths = np.diff(starts, append=len(noisy))
    for start, width in zip(starts, widths, strict=True):
        if width > 1:
            assert (counts[start : start + width] < threshold).all()


def test_merging_adds_up_and_expanding_is_its_right_inverse():
    counts = np.arange(12).reshape(4, 3)
    merged = MERGING.merge(("a", "b"), counts)
    assert merged.tolist() == [[0 + 3, 1 + 2 + 4 + 5], [6 + 9, 7 + 8 + 10 + 11]]
    back = MERGING.expand(("a", "b"), merged.astype(float))
    assert back.shape == counts.shape
    np.testing.assert_allclose(MERGING.merge(("a", "b"), back), merged)
    assert MERGING.coarse.shape() == (2, 2, 1)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=9), st.just(0.0) | st.floats(0.1, 100))
def test_the_simplex_projection_is_nearest(values, total):
    point = np.array(values)
    found = simplex(point, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)
    # Nearest, by its optimality conditions: equal shifts where positive, no smaller one where zero.
    shift = point - found
    if (found > 0).any():
        level = shift[found > 0]
        assert np.ptp(level) < 1e-6
        assert (shift[found == 0] <= level.max() + 1e-6).all()


# ---------------------------------------------------------------------------------------- what one person moves


@given(table(12), table(4), st.sampled_from([ADD, REPLACE]), st.integers(1, 3))
@settings(max_examples=25)
def test_cks20_theorem_14_no_neighbour_moves_gaps_by_more(cells, guess, relation, weight):
    counts, guessed = np.array(cells).reshape(4, 3), np.array(guess).reshape(2, 2)
    rest = Marginal(DOMAIN, ("a",))
    guesses = (guessed, np.array([3, 4]))
    look = MergedGaps(MERGING, (PAIR, rest), guesses, (weight, 1), TENTH, relation)

    def gaps(now):
        return np.array(
            [
                weight * np.abs(MERGING.merge(PAIR.by, now) - guessed).sum(),
                np.abs(MERGING.merge(("a",), now.sum(axis=1)) - guesses[1]).sum(),
            ]
        )

    here = gaps(counts)
    for other in neighbours_of(counts, relation):
        assert ((gaps(other) - here) ** 2).sum() <= look.mechanism.l2_squared
    if relation is ADD:  # far above the guesses a person moves every gap by 1: nothing less would do
        high = counts + 10**6
        worst = max(((gaps(other) - gaps(high)) ** 2).sum() for other in neighbours_of(high, relation))
        assert look.mechanism.l2_squared == worst == weight**2 + 1


def combinations_of(relation: Relation) -> MergedStrategy:
    residuals = Residuals.of(Workload.of(MERGING.coarse, [("a", "b")]), total=relation is ADD)
    return MergedStrategy(MERGING, residuals.strategies(residuals.precisions(), relation, Fraction(1, 10)))


@given(table(12), st.sampled_from([ADD, REPLACE]))
@settings(max_examples=25)
def test_cks20_theorem_14_no_neighbour_moves_merged_combinations_by_more(cells, relation):
    """The divergence of independent parts is the sum of squared moves, each over twice its variance."""
    counts = np.array(cells).reshape(4, 3)
    look = combinations_of(relation)
    inner = look.strategies

    def combined(now):
        merged = MERGING.merge(PAIR.by, now)
        gone = [tuple(i for i, n in enumerate(PAIR.by) if n not in part.clique) for part in inner.parts]
        return [inner.combine(p, merged.sum(axis=g)) for p, g in zip(inner.parts, gone, strict=True)]

    here = combined(counts)
    for other in neighbours_of(counts, relation):
        moves = zip(inner.parts, combined(other), here, strict=True)
        price = sum(float(p.precision) * float(((now - was) ** 2).sum()) / 2 for p, now, was in moves)
        assert price <= float(inner.rho) + 1e-12
    assert rho(look.event) == inner.rho <= Fraction(1, 10)


def test_merged_combinations_are_those_of_merged_counts():
    counts = np.arange(12).reshape(4, 3) * 1000
    residuals = Residuals.of(Workload.of(MERGING.coarse, [("a", "b")]))
    inner = residuals.strategies(residuals.precisions(), ADD, Fraction(500))
    look = MergedStrategy(MERGING, inner)
    assert [m.domain for m in look.marginals] == [DOMAIN]
    told = np.array(released(look, [counts], noise=SeededNoise(1)))
    found = ResidualTables(residuals, inner, told).table(("a", "b"))
    assert np.abs(found - MERGING.merge(("a", "b"), counts)).max() < 3


def test_rows_of_a_person_multiply_what_is_moved():
    gaps = MergedGaps(MERGING, (PAIR,), (np.zeros((2, 2), int),), (2,), TENTH, SEVERAL)
    assert gaps.mechanism.l2_squared == 36


def test_everything_in_one_cell_is_public_under_replace():
    one, none = Marginal(DOMAIN, ("c",)), np.zeros(1, int)
    moved = {
        r: MergedGaps(MERGING, (one,), (none,), (1,), TENTH, r).mechanism.l2_squared for r in (REPLACE, ADD)
    }
    assert moved == {REPLACE: 0, ADD: 1}


def test_keys_name_every_public_parameter():
    zero, one = np.zeros((2, 2), int), np.ones((2, 2), int)
    gaps = [
        MergedGaps(MERGING, (PAIR,), (guess,), (weight,), Price.of(rho=1), ADD).key
        for guess, weight in ((zero, 1), (one, 1), (zero, 2))
    ]
    gaps.append(MergedGaps(MERGING, (PAIR,), (zero,), (1,), Price.of(rho=1), ADD, rounded=True).key)
    assert len(set(gaps)) == 4
    ours = combinations_of(ADD)
    assert len({ours.key, ours.strategies.key, combinations_of(REPLACE).key}) == 3


def test_looks_refuse_what_is_not_a_whole_tables():
    with pytest.raises(ParameterError):
        MergedGaps(MERGING, (), (), (), Price.of(rho=1), ADD)
    with pytest.raises(QueryError):
        MergedGaps(MERGING, (PAIR,), (np.zeros((4, 3), int),), (1,), Price.of(rho=1), ADD)
    with pytest.raises(ParameterError):
        MergedGaps(MERGING, (PAIR,), (np.zeros((2, 2), int),), (0,), Price.of(rho=1), ADD)
    with pytest.raises(QueryError):
        MergedStrategy(Merging.none(DOMAIN), combinations_of(ADD).strategies)


# ---------------------------------------------------------------------------------------- picks


def situation(gaps: dict[tuple[str, ...], float], domain: Domain) -> RoundSituation:
    candidates = Candidates.of(Workload.all_marginals(domain, 3), triples=True)
    tables = [np.full(domain.shape(c), 10_000 / domain.size(c)) for c in candidates.cliques]
    noisy = np.array([gaps.get(c, 0.0) for c in candidates.cliques])
    return RoundSituation(candidates, domain, noisy, NoiseForecast(tables))


FIVE = Domain(tuple(Bins.integers(name, 0, 3) for name in "abcde"))


def test_what_is_wrong_is_picked_and_what_is_right_is_not():
    found = pick(situation({("a", "b"): 5000, ("c", "d"): 3000}, FIVE), 1.0, most=10)
    assert found is not None
    cliques = Candidates.of(Workload.all_marginals(FIVE, 3), triples=True).cliques
    assert {cliques[i] for i in found.which} == {("a", "b"), ("c", "d")}
    assert sum(found.share) == pytest.approx(1)


def test_nothing_is_picked_when_noise_would_do_more_harm():
    assert pick(situation({("a", "b"): 30}, FIVE), 1e-4, most=10) is None


def test_picks_of_a_round_close_no_circle():
    wrong = dict.fromkeys(combinations("abcde", 2), 4000.0)
    found = pick(situation(wrong, FIVE), 10.0, most=40)
    assert found is not None
    assert len(found.which) <= 4


@pytest.mark.parametrize("sweeps_all", [False, True])
def test_a_triple_of_connected_attributes_is_picked_for_its_own_gap_unless_a_sweep_measures_it(sweeps_all):
    """Three pairs connect a, b, c and d; of what is wrong with (a, b, c), the pair (a, b) explains 9,000."""
    path = {("a", "b"): 9000.0, ("b", "d"): 9000.0, ("c", "d"): 9000.0}
    cliques = Candidates.of(Workload.all_marginals(FIVE, 3), triples=True).cliques
    for own, is_more in ((9000.0, False), (11_000.0, True)):
        seen = replace(situation(path | {("a", "b", "c"): own}, FIVE), sweeps_all=sweeps_all)
        found = pick(seen, 1.0, most=10)
        assert found is not None
        expected = [*path, *([("a", "b", "c")] if is_more and not sweeps_all else [])]
        assert [cliques[i] for i in found.which] == expected


def picked_plainly(seen: RoundSituation, std: np.ndarray, precision: float, most: int):
    """The same greedy choice with sets and lists, and the worth of everything worked out anew for each pick."""
    candidates, pairs = seen.candidates, seen.candidates.pairs
    n, size, error = len(candidates), seen.sizes, seen.gaps.copy()
    own = seen.forecast.error(np.arange(n), std)
    apart = [{a} for a in range(len(seen.domain))]
    members = [{seen.domain.position(name) for name in c} for c in candidates.cliques]
    dead, alone, which, gain = set(np.flatnonzero(~seen.useful)), set(), [], 0.0

    def leaves(i: int, pair: int) -> float:
        return seen.forecast.error(np.array([pair]), np.array([std[i] * np.sqrt(size[i] / size[pair])]))[0]

    def inside(i: int) -> list[int]:
        return [i] if i < pairs else candidates.inside[i - pairs].tolist()

    def worth(i: int) -> float:
        found = candidates.weight[i] * (error[i] - own[i])
        if i >= pairs:
            found *= TRIPLE_WORTH
            if i not in alone:
                for pair in inside(i):
                    more = candidates.weight[pair] - candidates.weight[i]
                    found += more * max(error[pair] - leaves(i, pair), 0.0)
        return found * std[i] ** (2 * PRICE_POWER)

    while precision > 0 and len(which) < most:
        i = max((i for i in range(n) if i not in dead), key=worth, default=None)
        if i is None or worth(i) <= 0:
            break
        touched = [part for part in apart if part & members[i]]
        if std[i] ** -2 > precision * 1.001:
            dead.add(i)
        elif i not in alone and len(touched) < 2:
            (alone if i >= pairs and not seen.sweeps_all else dead).add(i)
        else:
            if i not in alone:
                apart = [part for part in apart if part not in touched] + [set().union(*touched)]
            gain += worth(i) * std[i] ** (-2 * PRICE_POWER)
            precision -= std[i] ** -2
            which.append(i)
            dead.add(i)
            if i >= pairs:
                error[i] = min(error[i], own[i])
            for pair in inside(i):
                better = max(error[pair] - (own[i] if i < pairs else leaves(i, pair)), 0.0)
                error[pair] -= better
                for t in range(pairs, n):
                    error[t] -= better if pair in inside(t) else 0.0
    return which, gain


@pytest.mark.parametrize("seed", range(6))
def test_picks_are_those_of_a_plain_greedy_choice(seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(Bins.integers(f"a{i}", 0, n - 1) for i, n in enumerate((1, 2, 3, 5, 4, 2))))
    cliques = Candidates.of(Workload.all_marginals(domain, 3), triples=True).cliques
    gaps = {c: float(rng.exponential(3000)) for c in cliques}
    seen = replace(situation(gaps, domain), sweeps_all=bool(seed % 2))
    for precision, most in ((0.01, 3), (1.0, 12)):
        std = seen.std(precision / 4)
        found = _Greedy(seen, std).run(precision, most)
        which, gain = picked_plainly(seen, std, precision, most)
        assert which
        assert found is not None
        assert list(found.which) == which
        assert found.gain == pytest.approx(gain)


def test_the_forecast_of_noise_is_what_noise_leaves():
    table = np.array([1000.0, 500.0, 0.1, 0.0])
    forecast = NoiseForecast([table])
    (little,) = forecast.error(np.array([0]), np.array([10.0]))
    assert little == pytest.approx(2 * 0.8 * 10, rel=0.05)
    (much,) = forecast.error(np.array([0]), np.array([1e6]))
    assert much == pytest.approx(2 * table.sum(), rel=0.05)


# ---------------------------------------------------------------------------------------- local fits and intervals


def test_a_measurement_outside_of_the_tree_moves_the_tables_that_hold_it():
    even = {name: np.full(DOMAIN[name].size, 240 / DOMAIN[name].size) for name in DOMAIN.names}
    model = fit(DOMAIN, [Measurement((name,), counts, 0.01) for name, counts in even.items()], total=240)
    seen = np.zeros((4, 3))
    seen[:, 0] = 60.0
    standin = AdaptiveStandIn(Merging.none(DOMAIN), model, (Measurement(("a", "b"), seen, 0.01),))
    whole, without = standin.grouped([("a", "b", "c"), ("b", "c")])
    assert whole.sum() == pytest.approx(240)
    np.testing.assert_allclose(whole.sum(axis=2)[:, 0], 60, rtol=0.05)
    np.testing.assert_allclose(without, 240 * model.project(("b", "c")))


def test_rows_agree_with_measurements_outside_of_the_tree():
    model = fit(DOMAIN, [Measurement((n,), np.full(DOMAIN[n].size, 1200 / DOMAIN[n].size), 1.0) for n in "abc"],
                total=1200)  # fmt: skip
    seen = np.array([[180.0, 60, 60], [20, 140, 140]] * 2)
    standin = AdaptiveStandIn(Merging.none(DOMAIN), model, (Measurement(("a", "b"), seen, 0.1),))
    told = standin.project(("a", "b")) * 1200
    answer = MarginalAnswer.around(("a", "b"), told, np.full(told.shape, 5.0), "measured")
    drawn = agreeing_rows(standin, [answer], 6000, np.random.default_rng(1))
    counts = np.bincount(drawn["a"] * 3 + drawn["b"], minlength=12).reshape(4, 3) / 5
    assert 0.5 * np.abs(told - seen).sum() / 1200 < 0.08
    assert 0.5 * np.abs(counts - told).sum() / 1200 < 0.001
    independent = np.full((4, 3), 100.0)
    assert np.abs(counts - seen).sum() < 0.2 * np.abs(independent - seen).sum()


def test_cells_far_from_their_measurement_are_moved_and_others_are_not():
    """A stand-in that is right but for a few cells: those follow the measurement, the rest keeps out its noise."""
    rng = np.random.default_rng(3)
    truth = [rng.uniform(0, 4000, (20, 20)) for _ in range(40)]
    guess = [t + 0.0 for t in truth]
    for g in guess:
        g[3, 4] += 900.0
        g[7, 7] -= 600.0
    told = [Measurement(("a", "b"), t + rng.normal(0, 50, t.shape), 2500.0) for t in truth]
    found = shrunk(guess, told)
    error = np.array([f - t for f, t in zip(found, truth, strict=True)])
    wrong = np.abs(error[:, [3, 7], [4, 7]])
    assert wrong.max() < 5 * 50
    assert np.abs(error).mean() < 0.1 * 50 * 0.8
    assert np.abs(error).max() < np.abs(np.array([m.counts for m in told]) - np.array(truth)).max() + 1


def test_a_stand_in_that_is_wrong_everywhere_gives_way_to_its_measurement():
    rng = np.random.default_rng(4)
    truth = [rng.uniform(1000, 4000, (30, 30)) for _ in range(8)]
    guess = [t + rng.normal(0, 400, t.shape) for t in truth]
    told = [Measurement(("a", "b"), t + rng.normal(0, 20, t.shape), 400.0) for t in truth]
    off = np.array([f - t for f, t in zip(shrunk(guess, told), truth, strict=True)])
    assert np.sqrt((off**2).mean()) < 1.05 * 20


def test_both_are_weighed_where_both_are_as_wrong():
    rng = np.random.default_rng(5)
    truth = [rng.uniform(1000, 4000, (30, 30)) for _ in range(8)]
    guess = [t + rng.normal(0, 40, t.shape) for t in truth]
    told = [Measurement(("a", "b"), t + rng.normal(0, 40, t.shape), 1600.0) for t in truth]
    off = np.array([f - t for f, t in zip(shrunk(guess, told), truth, strict=True)])
    assert np.sqrt((off**2).mean()) < 1.05 * 40 / np.sqrt(2)


def test_tables_that_share_pairs_make_each_other_better():
    """A stand-in that is wrong about a pair is wrong in every table that holds it, and their mean says so."""
    rng = np.random.default_rng(8)
    names, rows = "abcdefg", 50_000.0
    shape = (4,) * len(names)
    exact = rng.dirichlet(np.full(4 ** len(names), 0.05)).reshape(shape) * rows
    wrong = np.exp(rng.normal(0, 0.3, (len(names), len(names), 4, 4)))
    truth, guess, told = [], [], []
    for clique in combinations(range(len(names)), 3):
        t = exact.sum(axis=tuple(i for i in range(len(names)) if i not in clique))
        i, j, k = clique
        bent = t * wrong[i, j][:, :, None] * wrong[i, k][:, None, :] * wrong[j, k][None, :, :]
        truth.append(t)
        guess.append(bent * rows / bent.sum())
        noisy = t + rng.normal(0, 150, t.shape)
        told.append(Measurement(tuple(names[a] for a in clique), noisy, 150.0**2))
    found = combined(guess, told, rows)
    alone = [simplex(t, rows) for t in shrunk(guess, told)]

    def off(tables: list[np.ndarray]) -> float:
        return float(np.mean([np.abs(f - t).sum() for f, t in zip(tables, truth, strict=True)]))

    assert off(found) < 0.9 * off(alone)
    assert all(f.min() >= 0 and f.sum() == pytest.approx(rows) for f in found)


def test_pairs_have_no_pair_to_learn_from():
    rng = np.random.default_rng(9)
    guess = [rng.uniform(10, 40, (3, 4)) for _ in range(3)]
    told = [Measurement(("a", f"b{i}"), g + rng.normal(0, 5, g.shape), 25.0) for i, g in enumerate(guess)]
    found = combined(guess, told, 300.0)
    for one, alone in zip(found, shrunk(guess, told), strict=True):
        np.testing.assert_array_equal(one, simplex(alone, 300.0))


def test_small_tables_learn_their_law_of_errors_together():
    """Forty tables of twelve cells, whose counts are of all sizes: ten of them alone would say too little."""
    rng = np.random.default_rng(6)
    truth = [t * 20_000 / t.sum() for t in 2 ** rng.uniform(2, 8, (40, 3, 4))]
    guess = [simplex(t + rng.normal(0, 30, t.shape), 20_000) for t in truth]
    exact = {("a", f"b{i}"): t for i, t in enumerate(truth)}
    told = [Measurement(c, t + rng.normal(0, 20, t.shape), 400.0) for c, t in exact.items()]
    learnt = lessons(guess, told, 20_000)
    assert len(learnt) > 36
    off = np.array([m.counts - exact[m.clique] for m in learnt])
    assert np.sqrt((off**2).mean()) < 1.12 * 20 * 30 / np.hypot(20, 30)


def test_intervals_meet_and_parts_bound_from_above():
    known = ProvedIntervals()
    plain = Merging.none(DOMAIN)
    known.add(Interval.around(plain, ("a",), np.array([10.0, 20.0, 0.0, 5.0]), 2.0, "measured"))
    known.add(Interval.around(plain, ("a",), np.array([12.0, 20.0, 1.0, 5.0]), 2.0, "measured"))
    answer = known.answer(("a", "b"), np.full((4, 3), 50.0), None)
    assert answer.basis == "bounded"
    np.testing.assert_allclose(answer.counts[0], 12.0)  # what both intervals leave of the part
    np.testing.assert_allclose(answer.error[0], 12.0)  # it may also be empty
    assert (answer.counts[2] <= 2.0).all()
    own = known.answer(("a",), np.array([0.0, 20.0, 0.0, 5.0]), None)
    assert own.basis == "measured"
    np.testing.assert_allclose(own.counts[0], 10.0)
    np.testing.assert_allclose(own.error[0], 2.0)


def test_intervals_that_contradict_each_other_tell_all_of_both_and_no_error_of_nothing():
    """One of the two failed, and everybody can see that: the count is in the other one."""
    known, plain = ProvedIntervals(), Merging.none(DOMAIN)
    known.add(Interval.around(plain, ("a",), np.array([10.0, 20.0, 30.0, 5.0]), 2.0, "measured"))
    known.add(Interval.around(plain, ("a",), np.array([19.0, 20.0, 20.0, 5.0]), 1.0, "measured"))
    own = known.answer(("a",), np.array([0.0, 20.0, 25.0, 5.0]), None)
    np.testing.assert_allclose(own.counts, [8, 20, 25, 5])
    np.testing.assert_allclose(own.error, [12, 1, 7, 1])
    known.add(Interval.around(plain, ("a", "b"), np.full((4, 3), 40.0), 3.0, "measured"))
    pair = known.answer(("a", "b"), np.full((4, 3), 40.0), None)  # more than the part allows
    np.testing.assert_allclose(pair.counts, 40.0)
    np.testing.assert_allclose(pair.error, 40.0)  # of 0 to 43
    paid = Interval(("a",), np.full(4, 50.0), np.full(4, 60.0), "bounded")
    both = known.answer(("a",), np.full(4, 55.0), paid)
    np.testing.assert_allclose(both.error, 55 - np.array([8, 19, 19, 4]))


def test_a_count_that_noise_proves_to_be_impossible_has_an_error_of_more_than_nothing():
    """-9 ± 2 is no count: 0 is the nearest, and it may be off by as much as the interval's farther end is."""
    counts = np.array([-9.0, -1.0, 3.0, 19.0])
    low, high = possible_ends(counts, 2.0, most=12.0)
    np.testing.assert_allclose(low, [0, 0, 1, 3])
    np.testing.assert_allclose(high, [11, 1, 5, 12])
    low, high = possible_ends(counts, np.full(4, 2.0), least=8.0)
    np.testing.assert_allclose(low, [8, 8, 8, 17])
    np.testing.assert_allclose(high, [27, 19, 15, 21])
    around = Interval.around(Merging.none(DOMAIN), ("a",), counts, 2.0, "measured")
    assert (around.high > around.low).all()


def test_the_number_of_rows_has_no_error_of_nothing_where_measurements_contradict_each_other():
    evidence = Evidence(cast("Run", None))
    evidence.prove(Merging.none(DOMAIN), (), np.array(100.0), 5.0)
    evidence.prove(Merging.none(DOMAIN), ("a",), np.array([50.0, 50.0, 50.0, 50.0]), 1.0)
    evidence.bound_rows()
    assert (evidence._rows_told, evidence.rows_error) == ((95 + 204) / 2, (204 - 95) / 2)


def test_values_of_a_group_lie_between_nothing_and_the_group():
    interval = Interval.around(MERGING, ("a",), np.array([10.0, 30.0]), 4.0, "measured")
    np.testing.assert_allclose(interval.low, 0)
    np.testing.assert_allclose(interval.high, [14, 14, 34, 34])


# ---------------------------------------------------------------------------------------- the rule


@given(st.floats(1e-6, 1e3), st.floats(1, 1e7))
def test_the_rule_is_a_plan_for_every_price(precision, rows):
    rule = rule_for(FIVE, Workload.all_marginals(FIVE, 3), precision=precision, rows=rows)
    assert 0 < rule.first < 1
    assert 0 <= rule.guard < 1
    assert 0 < rule.select < 1
    assert sum(rule.round_shares()) == 1
    assert 2 <= rule.rounds <= 8
    assert rule.merge > 0


def test_noise_asks_for_more_first_marginals_and_fewer_rounds():
    workload = Workload.all_marginals(FIVE, 3)
    hopeless = rule_for(FIVE, workload, precision=1e-9, rows=10_000)
    assert hopeless.first == Fraction(3, 4)  # a release of such noise is about single attributes
    poor, rich, quiet = (rule_for(FIVE, workload, precision=p, rows=10_000) for p in (1e-5, 1.0, 10.0))
    assert poor.first * (1 - poor.guard) > rich.first * (1 - rich.guard)
    assert poor.rounds < rich.rounds
    assert poor.merge > rich.merge
    assert quiet.rounds == 2  # the last sweep has next to no noise


@pytest.mark.parametrize("order", [2, 3])
def test_single_attributes_get_no_less_than_direct_questions(order):
    """Values that are merged have no other measurement than that of their 1-way marginal."""
    workload = Workload.all_marginals(FIVE, order)
    asked = {2: 15, 3: 25}[order]
    assert told(FIVE, workload) == asked
    rule = rule_for(FIVE, workload, precision=1.0, rows=10_000)
    assert rule.first == Fraction(2, 5) or rule.first * (1 - rule.guard) >= Fraction(5, asked) - Fraction(
        1, 1000
    )


SIXTEEN = Domain(tuple(Bins.integers(f"a{i}", 0, 16 + i % 2) for i in range(16)))


def test_a_sweep_is_cut_off_by_time_and_memory_and_by_no_constant():
    """16 attributes of 17 and 18 values: 560 triples of 3,000,000 cells, which a million people fill quietly."""
    workload = Workload.all_marginals(SIXTEEN, 3)

    def order(**limits):
        rule = rule_for(SIXTEEN, workload, precision=0.03, rows=1e6, **limits)
        return rule.guard_order if rule.guard else None

    assert numbers_swept(SIXTEEN, workload.cliques) > 2**22
    assert order() == 0  # the workload
    assert order(seconds=0.5) == 2  # pairs
    assert order(memory=40 * workload.queries + 10**7) == 2
    assert order(memory=40 * workload.queries + 10**9) == 0


def test_more_time_makes_a_larger_tree_and_less_memory_a_smaller_one():
    workload = Workload.all_marginals(FIVE, 3)
    usual = limits_of(workload, None, None)
    assert (usual.cells, usual.cells_beside) == (10**6, 400_000)
    assert limits_of(workload, None, 20.0).cells_beside == 2 * 10**6
    many = Domain(tuple(Bins.integers(f"m{i}", 0, 1) for i in range(100)))
    assert limits_of(Workload.all_marginals(many, 2), None, None).cells == int(4 * 250_000 * 2000 / 4950)
    assert limits_of(workload, None, 20.0).swept == 5 * usual.swept
    tight = limits_of(workload, 40 * workload.queries + 4 * 10**6, 20.0)
    assert tight.cells == tight.cells_beside == 2 * 10**6 // 400
    few, many = (rule_for(FIVE, workload, precision=p, rows=10_000) for p in (1e-3, 10.0))
    assert few.for_bars
    assert (many.guard > 0, many.guard_order) == (True, 0)  # the workload is swept
    assert (few.cells, many.cells) == (10**6, 400_000)
    assert tight.swept < usual.swept


def test_weights_of_a_law_of_errors_are_those_of_expectation_and_maximisation():
    """Against the same steps written with tables of all posterior shares."""
    rng = np.random.default_rng(0)
    likely, often = rng.random((7, 3)) + 0.01, rng.integers(1, 50, 7).astype(np.float64)
    imagined, weight = np.array([2.0, 0.0, 0.0]), np.array([0.8, 0.1, 0.1])
    wanted = weight
    for _ in range(40):
        share = likely * wanted
        wanted = often @ (share / share.sum(axis=1, keepdims=True)) + imagined
        wanted = wanted / wanted.sum()
    np.testing.assert_allclose(_most_likely(often, likely, weight, imagined, 40), wanted, rtol=1e-10)
    np.testing.assert_array_equal(weight, [0.8, 0.1, 0.1])


@pytest.mark.parametrize("cells", [0, 1, 2000])
def test_cells_move_by_what_the_law_of_their_level_expects(cells):
    """Against histograms and interpolation of numpy, also at the ends of intervals and beyond the last one."""
    rng = np.random.default_rng(cells)
    counts, apart = (
        np.exp(3 * rng.normal(size=cells)),
        rng.normal(size=cells) * np.exp(rng.normal(size=cells)),
    )
    edges = [0.0, 0.1, -0.7, 8.0, -60.0, 1000.0]
    apart[: len(edges)] = edges[:cells]
    counts[: LEVELS.size] = LEVELS[:cells]
    level, wanted = np.searchsorted(LEVELS, counts), np.zeros(cells)
    middle, spread = (DIFFERENCES[1:] + DIFFERENCES[:-1]) / 2, 1 + SCALES**2
    law = np.maximum(np.exp(-(middle[:, None] ** 2) / 2 / spread) / np.sqrt(spread), 1e-300)
    right = (SCALES == 0).astype(np.float64)
    for k in set(level.tolist()):
        size = np.abs(apart[level == k])
        seen, _ = np.histogram(np.minimum(size, DIFFERENCES[-1]), DIFFERENCES)
        weight = _most_likely(
            seen[seen > 0].astype(np.float64),
            law[seen > 0],
            0.9 * right + 0.1 / SCALES.size,
            DOUBTED * right,
            STEPS,
        )
        shares = (law * weight) @ (SCALES**2 / spread) / (law @ weight)
        wanted[level == k] = apart[level == k] * np.interp(size, middle, shares)
    np.testing.assert_allclose(moved(counts, apart), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("price", "sweeps"), [(0.1, False), (20.0, True)])
def test_every_fit_of_a_release_but_the_last_is_a_rough_one(monkeypatch, price, sweeps):
    """And after the last round there is none where a sweep follows, from which the stand-in learns."""
    asked, swept = [], []
    as_it_is, learn = Learner.refit, Learner.learn
    monkeypatch.setattr(Learner, "refit", lambda self, how: (asked.append(how), as_it_is(self, how))[1])
    monkeypatch.setattr(
        Learner, "learn", lambda self, sweep, **how: (swept.append(len(asked)), learn(self, sweep, **how))[1]
    )
    outcome = adaptive(make(epsilon=price))
    share = final_share(outcome.standin.merging.coarse)
    assert asked[-1] == replace(FINAL, slack_share=share, by_strength=not sweeps)
    assert all(how is ROUGH for how in asked[:-1])
    rounds = outcome.proof["rounds"]
    # The fit of the columns, and one after each round; after the last only where no sweep follows.
    assert bool(swept) == sweeps
    assert (swept[0] if swept else len(asked)) == (rounds if sweeps else 1 + rounds)
