"""Rows that agree with a release's answers: nearer in every order, constraints kept, nothing looked at."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from adaptive_table import DOMAIN, TRIPLES, codes, make
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.constraint import Constraint
from understudy.releases import agreement as agreement_module
from understudy.releases import row_moves
from understudy.releases.adaptive.adaptive import adaptive
from understudy.releases.agreement import (
    agreeing_rows,
    as_lines,
    is_far,
    is_long,
    meet_in_rounds,
    small_targets,
    targets,
)
from understudy.releases.pair_means import pair_means
from understudy.releases.raking import raked_rows
from understudy.releases.row_agreement import RowAgreement, look_work
from understudy.releases.run import MarginalAnswer
from understudy.releases.stored import StoredRates
from understudy.releases.synthetic import sample_codes
from understudy.releases.table_places import TablePlaces

SMALL = Domain(
    tuple(Bins.integers(name, 0, size - 1) for name, size in (("a", 3), ("b", 4), ("c", 2), ("d", 5)))
)
THREES = tuple(combinations(SMALL.names, 3))


def table(domain, clique, drawn):
    at = np.ravel_multi_index([drawn[name] for name in clique], domain.shape(clique))
    return np.bincount(at, minlength=domain.size(clique)).reshape(domain.shape(clique)).astype(float)


def told(clique, counts, error=1.0, basis="measured"):
    return MarginalAnswer.around(clique, np.asarray(counts, float), np.full(np.shape(counts), error), basis)


def people(rows, seed=0):
    """Four attributes that depend on each other, also three at a time."""
    draw = np.random.default_rng(seed)
    a, b = draw.integers(0, 3, rows), draw.integers(0, 4, rows)
    c = ((a + b + (draw.random(rows) < 0.2)) % 2).astype(np.int64)
    return {"a": a, "b": b, "c": c, "d": (a * c + b + draw.integers(0, 2, rows)) % 5}


def independent(rows, seed=1):
    draw = np.random.default_rng(seed)
    return {name: draw.integers(0, size, rows) for name, size in zip(SMALL.names, SMALL.shape(), strict=True)}


def far(domain, cliques, drawn, answers):
    """Mean over marginals of half the L1 distance, as a part of the rows."""
    found = {answer.clique: answer.counts for answer in answers}
    rows = len(next(iter(drawn.values())))
    apart = [
        np.abs(table(domain, c, drawn) / rows - found[c] / found[c].sum()).sum() / 2
        for c in cliques
        if c in found
    ]
    return float(np.mean(apart))


@pytest.mark.parametrize("rows", [300, 5000, 20_000])
def test_rows_that_know_nothing_are_moved_until_they_have_the_marginals(rows):
    """From independent rows to answers that some table has exactly: what is left is a few rows of rounding."""
    answers = [told(c, table(SMALL, c, people(5000))) for c in THREES]
    agreement = RowAgreement.of(SMALL, as_lines(SMALL, independent(rows)), answers)
    before = agreement.distance
    agreement.descend(np.random.default_rng(0))
    assert before > 0.25
    assert far(SMALL, THREES, agreement.codes, answers) == pytest.approx(agreement.distance, abs=1e-5)
    assert agreement.distance < max(0.02, 12 / rows)


def test_what_is_kept_of_the_rows_is_what_counting_them_finds():
    """`off` is kept up to date in every copy of every target through thousands of moves."""
    answers = [told(c, table(SMALL, c, people(3000))) for c in (*THREES, ("a",), ("d",))]
    moved = RowAgreement.of(SMALL, as_lines(SMALL, independent(3000)), answers)
    moved.descend(np.random.default_rng(2))
    assert moved.moved > 1000
    again = RowAgreement.of(SMALL, as_lines(SMALL, moved.codes), answers)
    np.testing.assert_allclose(moved.off, again.off, atol=1e-2)


def test_no_row_enters_a_cell_that_is_declared_to_be_empty():
    allowed = np.ones((3, 4), bool)
    allowed[1, 2] = allowed[0, 3] = False
    start = independent(4000)
    inside = ~allowed[start["a"], start["b"]]
    start = {name: np.where(inside, 0, column) for name, column in start.items()}
    answers = [told(c, table(SMALL, c, people(4000))) for c in THREES]  # they say that people are there
    agreement = RowAgreement.of(SMALL, as_lines(SMALL, start), answers, [Constraint(("a", "b"), allowed)])
    agreement.descend(np.random.default_rng(0))
    assert agreement.moved > 500
    assert allowed[agreement.codes["a"], agreement.codes["b"]].all()
    free = RowAgreement.of(SMALL, as_lines(SMALL, start), answers)
    free.descend(np.random.default_rng(0))
    assert not allowed[free.codes["a"], free.codes["b"]].all()  # else the constraint was never needed


def test_cells_without_mass_stay_empty_and_an_answer_of_0_without_error_forbids_nothing():
    """What noise proves holds with probability 1 - β: rows may be where other answers say that people are."""
    rates = np.ones(SMALL.shape())
    rates[2, 1] = 0.0
    rates[0, 0] = 1e-9  # hardly any row is drawn there
    standin = StoredRates(SMALL, rates / rates.sum())
    first = table(SMALL, ("a", "b", "c"), people(2000))
    first[0, 0, 1], error, pair = 40.0, np.ones(first.shape), table(SMALL, ("a", "b"), people(2000))
    pair[0, 0] = 0.0
    answers = [
        MarginalAnswer.around(("a", "b", "c"), first, error, "measured"),
        told(("b", "c", "d"), table(SMALL, ("b", "c", "d"), people(2000))),
        MarginalAnswer.around(("a", "b"), pair, np.where(pair > 0, 1.0, 0.0), "measured"),
    ]
    rows = agreeing_rows(standin, answers, 2000, np.random.default_rng(0))
    found = table(SMALL, SMALL.names, rows)
    assert found[2, 1].sum() == 0
    assert found.sum(axis=3)[0, 0, 1] > 10


def test_certified_answers_leave_the_rows_as_they_were_drawn():
    standin = StoredRates(SMALL, np.full(SMALL.shape(), 1 / SMALL.size()))
    answers = [told(c, table(SMALL, c, people(500)), basis="certified") for c in THREES]
    rows = agreeing_rows(standin, answers, 500, np.random.default_rng(5))
    drawn = sample_codes(standin, 500, np.random.default_rng(5))
    assert all((rows[name] == drawn[name]).all() for name in SMALL.names)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_any_number_of_rows_can_be_drawn(rows, order):
    standin = StoredRates(SMALL, np.full(SMALL.shape(), 1 / SMALL.size()))
    answers = [told(c, table(SMALL, c, people(500))) for c in combinations(SMALL.names, order)]
    drawn = agreeing_rows(standin, answers, rows, np.random.default_rng(0))
    assert all(drawn[name].shape == (rows,) for name in SMALL.names)


def test_rare_cells_are_neither_emptied_nor_filled():
    """Where cells expect a third of a row, rounding must not move the rows into the frequent ones."""
    wide = Domain(tuple(Bins.integers(name, 0, 39) for name in "abc"))
    rates = np.add.outer(np.zeros((40, 40)), np.zeros(40)) + 1.0
    rates[:4, :4, :4] = 400.0
    standin = StoredRates(wide, rates / rates.sum())
    answer = told(("a", "b", "c"), rates / rates.sum() * 40_000)
    rows = agreeing_rows(standin, [answer], 40_000, np.random.default_rng(0))
    rare = (np.stack([rows[name] for name in "abc"]) >= 4).any(axis=0).mean()
    assert rare == pytest.approx((rates < 2).sum() / rates.sum(), rel=0.02)


def test_marginals_below_larger_ones_are_left_out_except_columns():
    answers = [told(c, np.ones(SMALL.shape(c))) for c in (("a", "b", "c"), ("a", "b"), ("a", "d"), ("a",))]
    assert [answer.clique for answer in targets(answers)] == [("a", "b", "c"), ("a", "d"), ("a",)]


def test_places_of_tables_are_those_of_arrays_in_c_order():
    places = TablePlaces.of(SMALL.shape(), [[0, 1], [3, 0, 2]])
    assert places.starts.tolist() == [0, 12]
    code = np.array([2, 3, 1, 4])
    for t, members in enumerate(([0, 1], [3, 0, 2])):
        at = places.starts[t] + sum(places.strides[t, k] * code[a] for k, a in enumerate(members))
        shape = [SMALL.shape()[a] for a in members]
        assert at == places.starts[t] + np.ravel_multi_index(code[members], shape)


@pytest.mark.parametrize("epsilon", [1, 10])
def test_rows_are_at_most_a_tenth_worse_than_the_answers(epsilon):
    """Against the table, in orders 1 to 3, where rows of the stand-in alone are far behind."""
    outcome = adaptive(make(epsilon=epsilon))
    answers = (*outcome.answers, *outcome.also)
    drawn = agreeing_rows(outcome.standin, answers, round(outcome.rows), np.random.default_rng(0))
    exact = dict(zip(DOMAIN.names, codes(), strict=True))
    for order in (1, 2, 3):
        cliques = {part for c in TRIPLES for part in combinations(c, order)}
        truth = [told(c, table(DOMAIN, c, exact)) for c in cliques]
        own = {answer.clique: answer for answer in answers if answer.clique in cliques}
        apart = [
            np.abs(a.counts / a.counts.sum() - t.counts / t.counts.sum()).sum() / 2
            for t in truth
            if (a := own.get(t.clique)) is not None
        ]
        rounding = 2 / round(outcome.rows)
        assert far(DOMAIN, cliques, drawn, truth) <= 1.1 * np.mean(apart) + rounding


def test_pairs_are_told_by_the_mean_of_all_larger_tables():
    first, second = np.arange(24.0).reshape(3, 4, 2), np.ones((3, 4, 5))
    found = pair_means([(("a", "b", "c"), first), (("a", "b", "d"), second)])
    np.testing.assert_allclose(found["a", "b"], (first.sum(axis=2) + 5) / 2)
    np.testing.assert_allclose(found["b", "c"], first.sum(axis=0))
    assert set(found) == {("a", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "d")}


def uneven(clique, seed):
    """Counts of people with noise of its own, so that its sums are not those of other marginals."""
    counts = table(SMALL, clique, people(5000))
    return told(clique, np.maximum(counts + np.random.default_rng(seed).normal(0, 30, counts.shape), 0))


def test_pairs_have_the_sums_of_the_columns():
    """Columns are told more precisely than by sums of larger tables, and rows must not be torn between the two."""
    columns = [told((name,), table(SMALL, (name,), people(5000))) for name in ("a", "b", "c")]
    triples = [uneven(c, seed) for seed, c in enumerate(THREES)]
    small = {answer.clique: answer.counts for answer in small_targets([*triples, *columns])}
    assert set(small) == {*combinations(SMALL.names, 2), ("a",), ("b",), ("c",)}
    for answer in columns:
        (name,) = answer.clique
        for clique in (c for c in small if len(c) == 2 and name in c):
            sums = small[clique].sum(axis=1 - clique.index(name))
            np.testing.assert_allclose(sums, answer.counts / answer.counts.sum(), rtol=1e-6)


def test_targets_without_copies_lead_to_the_same_moves():
    answers = [told(c, table(SMALL, c, people(3000))) for c in (*THREES, ("a",), ("d",))]
    allowed = np.ones((3, 4), bool)
    allowed[1, 2] = False
    for constraints in ((), [Constraint(("a", "b"), allowed)]):
        found = []
        for copies in (True, False):
            agreement = RowAgreement.of(
                SMALL, as_lines(SMALL, independent(3000)), answers, constraints, copies=copies
            )
            for groups in (4, 3000):  # many rows at once, and one by one
                agreement.descend(np.random.default_rng(1), groups=groups)
            found.append(agreement)
        assert found[0].moved == found[1].moved > 1000
        assert all((found[0].codes[name] == found[1].codes[name]).all() for name in SMALL.names)
        assert found[1].off.size < found[0].off.size / 2


TEN = Domain(tuple(Bins.integers(f"t{i}", 0, 5) for i in range(10)))


def classes(rows):
    """Ten attributes of six values that depend on each other by eight hidden classes."""
    draw = np.random.default_rng(5)
    hidden, rates = draw.integers(0, 8, rows), draw.dirichlet(np.full(6, 0.4), (10, 8)).cumsum(axis=2)
    return {
        name: (draw.random((rows, 1)) > rates[a][hidden]).sum(axis=1).clip(0, 5)
        for a, name in enumerate(TEN.names)
    }


def permuted(exact, domain):
    """Rows with the columns of others and nothing else of them."""
    return {name: np.random.default_rng(a).permutation(exact[name]) for a, name in enumerate(domain.names)}


def as_drawn(monkeypatch, domain, drawn):
    """A stand-in of which these rows are drawn."""
    monkeypatch.setattr(agreement_module, "sample_codes", lambda *_: drawn)
    return replace(StoredRates(SMALL, np.ones(SMALL.shape())), domain=domain)


def test_long_tables_meet_large_targets_in_parts_and_columns_and_pairs_last(monkeypatch):
    """Rounds of a part each bring rows nearer in every order than one stage with all targets and as much work."""
    rows, exact = 20_000, classes(20_000)
    answers = [told(c, table(TEN, c, exact)) for order in (1, 3) for c in combinations(TEN.names, order)]
    monkeypatch.setattr(agreement_module, "AT_ONCE_WORK", 1)
    monkeypatch.setattr(agreement_module, "ROUNDS_WORK_EACH", 700)
    monkeypatch.setattr(agreement_module, "LAST_WORK", 55 * rows)
    drawn = permuted(exact, TEN)
    staged = agreeing_rows(as_drawn(monkeypatch, TEN, drawn), answers, rows, np.random.default_rng(0))
    at_once = RowAgreement.of(TEN, as_lines(TEN, drawn), answers)
    at_once.descend(np.random.default_rng(0), looks=2 * rows)
    assert at_once.work > 1_500 * rows
    for order in (1, 2, 3):
        truth = [told(c, table(TEN, c, exact)) for c in combinations(TEN.names, order)]
        cliques = [answer.clique for answer in truth]
        assert far(TEN, cliques, staged, truth) < far(TEN, cliques, at_once.codes, truth)


def test_parts_grow_when_moves_no_longer_pay_for_the_noise_they_make(monkeypatch):
    """Rows that are nearly right: small parts that moved all that gains them a little would spoil the others."""
    exact = classes(6_000)
    answers = [told(c, table(TEN, c, exact)) for c in combinations(TEN.names, 3)]
    monkeypatch.setattr(agreement_module, "ROUNDS_WORK_EACH", 3_000)
    right = permuted(exact, TEN) | {n: c for n, c in exact.items() if n not in ("t0", "t1")}
    far_off, near = as_lines(TEN, permuted(exact, TEN)), as_lines(TEN, right)
    assert meet_in_rounds(TEN, far_off, answers, (), np.random.default_rng(0))[0][:3] == [8, 8, 8]
    before = far(TEN, [a.clique for a in answers], right, answers)
    assert meet_in_rounds(TEN, near, answers, (), np.random.default_rng(0))[0][-1] < 8
    after = dict(zip(TEN.names, near, strict=True))
    assert far(TEN, [a.clique for a in answers], after, answers) < before / 2


def test_long_tables_of_few_kinds_of_rows_are_raked(monkeypatch):
    """Rows of 120 kinds: after raking, what is left is noise of the answers and a few rows of rounding."""
    rows = 20_000
    answers = [uneven(c, seed) for seed, c in enumerate(THREES)]
    answers += [told((name,), table(SMALL, (name,), people(5000))) for name in SMALL.names]
    monkeypatch.setattr(agreement_module, "AT_ONCE_WORK", 1)
    monkeypatch.setattr(agreement_module, "LAST_WORK", 5 * rows)
    standin = StoredRates(SMALL, np.full(SMALL.shape(), 1 / SMALL.size()))
    drawn = agreeing_rows(standin, answers, rows, np.random.default_rng(0))
    for cliques in (combinations(SMALL.names, 1), THREES):
        exact = {c: told(c, table(SMALL, c, people(5000))) for c in cliques}
        own = [
            np.abs(a.counts / a.counts.sum() - exact[a.clique].counts / 5000).sum() / 2
            for a in answers
            if a.clique in exact
        ]
        assert far(SMALL, list(exact), drawn, exact.values()) <= 1.1 * np.mean(own) + 5 / rows


def test_raking_makes_no_new_kind_of_row_and_meets_the_last_target_best():
    start = people(4000, seed=3)
    answers = [told(c, table(SMALL, c, people(4000))) for c in THREES]
    raked = raked_rows(SMALL, start, answers, np.random.default_rng(0))
    assert raked is not None
    before, after = (table(SMALL, SMALL.names, drawn) for drawn in (start, raked))
    assert after.sum() == 4000
    assert not (after[before == 0] > 0).any()
    assert far(SMALL, THREES, raked, answers) < far(SMALL, THREES, start, answers) / 3
    assert far(SMALL, THREES[-1:], raked, answers) < 0.01


def test_rows_of_many_kinds_are_not_raked():
    wide = Domain(tuple(Bins.integers(f"w{i}", 0, 99) for i in range(12)))
    draw = np.random.default_rng(0)
    drawn = {name: draw.integers(0, 100, 500) for name in wide.names}
    answer = told(("w0", "w1"), np.ones((100, 100)))
    assert raked_rows(wide, drawn, [answer], draw) is None
    few = {name: column[:5].repeat(100) for name, column in drawn.items()}  # keys of 80 bits, five kinds
    again = raked_rows(wide, few, [answer], draw)
    assert again is not None
    kinds = {tuple(row) for row in np.stack(list(few.values()), axis=1).tolist()}
    assert {tuple(row) for row in np.stack(list(again.values()), axis=1).tolist()} <= kinds


def test_rows_that_are_nearly_right_do_not_overshoot_where_many_could_move_at_once():
    """Cells of thousands of rows, off by tens: a group of rows that all left the same cell would make it worse."""
    rows = 60_000
    answers = [told(c, table(SMALL, c, people(rows))) for c in THREES]
    agreement = RowAgreement.of(SMALL, as_lines(SMALL, people(rows, seed=3)), answers)
    before = agreement.distance
    agreement.descend(np.random.default_rng(0), groups=8)
    assert agreement.distance < before / 4


def orders_apart(rows, exact):
    """The mean distance of rows from a table over all marginals of one, two and three attributes."""
    return [
        far(TEN, list(cliques), rows, [told(c, table(TEN, c, exact)) for c in cliques])
        for cliques in (tuple(combinations(TEN.names, order)) for order in (1, 2, 3))
    ]


def test_rows_of_a_weak_stand_in_are_met_in_rounds_at_every_size(monkeypatch):
    """No size at which rows of such a stand-in stop being near: those of a short table have rounds, too."""
    rows, exact = 12_000, classes(12_000)
    answers = [told(c, table(TEN, c, exact)) for order in (1, 3) for c in combinations(TEN.names, order)]
    drawn = permuted(exact, TEN)
    standin = as_drawn(monkeypatch, TEN, drawn)
    assert not is_long(TEN, answers, rows)
    assert is_far(RowAgreement.of(TEN, as_lines(TEN, drawn), answers))
    apart = {}
    for limit in (1e12, 1):  # a short table, and a long one
        monkeypatch.setattr(agreement_module, "AT_ONCE_WORK", limit)
        found = agreeing_rows(standin, answers, rows, np.random.default_rng(0))
        apart[limit] = orders_apart(found, exact)
    np.testing.assert_array_less(np.array(apart[1e12]), 1.1 * np.array(apart[1]) + 2 / rows)


def test_rows_near_their_targets_meet_them_all_at_once():
    """Also a few rows of a good stand-in, whose cells are off by rounding alone."""
    exact = classes(20_000)
    answers = [told(c, table(TEN, c, exact)) for c in combinations(TEN.names, 3)]
    near = {name: column[:15_000] for name, column in exact.items()}
    assert not is_far(RowAgreement.of(TEN, as_lines(TEN, near), answers))


def test_rows_whose_larger_targets_add_up_to_other_columns_meet_the_columns_at_last(monkeypatch):
    """Noisy triples that are kept positive tell too many people in rare values; the columns know better.

    Beside the triples, columns are met nearly as well as alone, and rows stay nearer to the triples.
    """
    rows, draw = 8_000, np.random.default_rng(6)
    domain = Domain(tuple(Bins.integers(f"b{i}", 0, 1) for i in range(9)))
    ill = draw.random(rows) < 0.1
    exact = {name: (draw.random(rows) < np.where(ill, 0.6, 0.02)).astype(np.int64) for name in domain.names}
    noisy = [
        told(c, np.maximum(table(domain, c, exact) + draw.normal(0, 150, domain.shape(c)), 0.0))
        for c in combinations(domain.names, 3)
    ]
    answers = [*noisy, *(told((name,), table(domain, (name,), exact)) for name in domain.names)]
    standin = as_drawn(monkeypatch, domain, exact)
    far, as_it_is = [], agreement_module.meet_beside
    # Columns are met neither beside the larger targets nor alone; alone; and beside the larger targets.
    for beside in (lambda *_, **__: True, lambda *_, **__: False, as_it_is):
        monkeypatch.setattr(agreement_module, "meet_beside", beside)
        found = agreeing_rows(standin, answers, rows, np.random.default_rng(0))
        agreement = RowAgreement.of(domain, as_lines(domain, found), answers)
        far.append((agreement.columns_distance, agreement.distance))
    (without, before), (alone, left), (columns, every) = far
    assert without > 20 / rows
    assert alone <= 2 / rows
    assert columns <= min(6 / rows, without / 4)
    assert every < left < 1.1 * before


def test_rows_that_settle_gain_more_than_rows_that_are_all_tried_with_as_much_work():
    """The nearer rows are, the fewer of them are worth trying."""
    rows, exact = 20_000, classes(20_000)
    answers = [told(c, table(TEN, c, exact)) for c in combinations(TEN.names, 3)]
    start = as_lines(TEN, classes(20_000))
    start[:3] = as_lines(TEN, permuted(exact, TEN))[:3]
    RowAgreement.of(TEN, start, answers, copies=False).descend(np.random.default_rng(0), looks=2 * rows)
    tried, settled = (RowAgreement.of(TEN, start.copy(), answers, copies=False) for _ in range(2))
    tried.descend(np.random.default_rng(1), looks=2 * rows)
    settled.settle(np.random.default_rng(1), work=tried.work - settled.work, tried=2_000)
    assert settled.work < 1.2 * tried.work
    assert settled.distance < 0.95 * tried.distance


FIVE = Domain(tuple(Bins.integers(f"f{i}", 0, size - 1) for i, size in enumerate((3, 4, 2, 5, 6))))


def contradicting():
    """All triples of five attributes of 2,000 people, with so much noise that no table is near all of them."""
    draw = np.random.default_rng(0)
    hidden = draw.random(2000)
    exact = {
        name: np.minimum(((0.7 * hidden + 0.3 * draw.random(2000)) * size).astype(int), size - 1)
        for name, size in zip(FIVE.names, FIVE.shape(), strict=True)
    }
    counts = [(c, table(FIVE, c, exact)) for c in combinations(FIVE.names, 3)]
    return exact, [told(c, found + draw.normal(0, 60, found.shape)) for c, found in counts]


def test_rows_settle_when_targets_contradict_each_other(monkeypatch):
    """Rows that meet one target leave another: two passes show that, and the rest of the work is not done."""
    exact, answers = contradicting()
    lines = as_lines(FIVE, {name: np.resize(column, 20_000) for name, column in exact.items()})
    lines = np.ascontiguousarray(lines[:, np.random.default_rng(1).permutation(20_000)])
    looks, look = [], RowAgreement._look
    monkeypatch.setattr(RowAgreement, "_look", lambda self, *given: looks.append(given) or look(self, *given))
    agreement = RowAgreement.of(FIVE, lines, answers, copies=False)
    before = agreement.distance
    agreement.settle(np.random.default_rng(2), work=1e9, groups=96)
    assert len(looks) < 25  # 1e9 nanoseconds are some 700 passes
    assert agreement.work < 1e8
    assert agreement.distance < 0.95 * before
    reached = agreement.distance
    agreement.descend(np.random.default_rng(3), looks=80_000, groups=96)
    assert agreement.distance > 0.97 * reached  # nothing was left to be had
    looks.clear()
    assert meet_in_rounds(FIVE, lines, answers, (), np.random.default_rng(4))[0][-1] == 1
    assert sum(looked for _, looked, *_ in looks) < 30 * 20_000  # the work allows 240 passes


def test_a_look_costs_something_for_each_attribute_however_few_targets_there_are():
    """Compared with one target of three attributes, a row takes 100 nanoseconds; 12 were counted."""
    assert look_work(FIVE, 1, 3 / 5) > 80
    assert look_work(FIVE, 10, 6, part=0.02) > 50
    few, many = look_work(TEN, 1, 0.3), look_work(TEN, 120, 36)
    assert few < 0.2 * many  # where there are many, they are what is paid for


def test_rows_are_looked_at_from_any_row_on_and_after_the_last_comes_the_first():
    """Every row is looked at as often as any other, wherever a look begins."""
    exact = classes(3_000)
    answers = [told(c, table(TEN, c, exact)) for c in combinations(TEN.names, 3)]
    lines = as_lines(TEN, permuted(exact, TEN))
    before = lines.copy()
    agreement = RowAgreement.of(TEN, lines, answers)
    agreement._look(2_000, 1_500, 1.0, 1024)
    moved = (lines != before).any(axis=0)
    assert moved[2_000:].mean() > 0.5
    assert moved[:500].mean() > 0.5
    assert not moved[500:2_000].any()
    again = RowAgreement.of(TEN, lines, answers)
    np.testing.assert_allclose(agreement.off, again.off, atol=1e-2)


def test_what_is_in_the_way_is_the_sum_of_the_slopes_of_all_targets_that_hold_an_attribute(monkeypatch):
    """In 16-bit numbers, with tables of more and of fewer cells than rows, in any order of the targets."""
    monkeypatch.setattr(
        "understudy.releases.row_agreement.WIDTH", 1.5
    )  # some losses are as steep as they can be
    drawn, cliques = independent(90), [("d",), ("a", "b", "c"), ("a", "b", "d"), ("b", "d"), ("b", "c", "d")]
    answers = [told(c, table(SMALL, c, people(5000))) for c in cliques]
    lines, weights = as_lines(SMALL, drawn), [2.0, 1.0, 1.0, 3.0, 1.0]
    expected = np.zeros((4, 90))
    for answer, weight in zip(answers, weights, strict=True):
        apart = table(SMALL, answer.clique, drawn) - answer.counts * 90 / 5000
        slopes = weight * np.clip((apart - 0.5) / max(1.5, np.sqrt((apart**2).mean())), -1, 1)
        for name in answer.clique:
            expected[SMALL.names.index(name)] += slopes[tuple(drawn[n] for n in answer.clique)]
    for copies in (True, False):
        found = RowAgreement.of(SMALL, lines, answers, copies=copies, weights=weights)
        push, targets = np.zeros((4, 90), np.int16), found._targets
        scale = np.float32(row_moves._scale(4, targets))
        row_moves._compare(lines, 90, targets, scale, push)
        np.testing.assert_allclose(push / scale, expected, atol=len(cliques) / scale)
        assert np.abs(push).max() > 1_000


def test_rows_that_settle_in_rounds_meet_columns_without_leaving_the_larger_targets(monkeypatch):
    """Columns that noisy triples tell less well: met beside the triples, they cost these less than met alone."""
    rows, exact, draw = 20_000, classes(20_000), np.random.default_rng(8)
    triples = [
        told(c, np.maximum(table(TEN, c, exact) + draw.normal(0, 8, TEN.shape(c)), 0.0))
        for c in combinations(TEN.names, 3)
    ]
    answers = [*triples, *(told((name,), table(TEN, (name,), exact)) for name in TEN.names)]
    monkeypatch.setattr(agreement_module, "ROUNDS_WORK_EACH", 10_000)
    lines = as_lines(
        TEN, {name: column[draw.permutation(rows)] for name, column in permuted(exact, TEN).items()}
    )
    start = as_lines(TEN, exact)
    start[:3] = lines[:3]
    together, alone = start.copy(), start.copy()
    taken, settled = meet_in_rounds(TEN, together, answers, (), np.random.default_rng(0))
    assert taken[-1] == 1
    assert settled
    monkeypatch.setattr(
        agreement_module, "small_weights", lambda every: [float(len(a.clique) > 2) for a in every]
    )
    meet_in_rounds(TEN, alone, answers, (), np.random.default_rng(0))
    small = small_targets(answers)
    RowAgreement.of(TEN, alone, small).descend(np.random.default_rng(1), looks=2 * rows)
    apart = [
        [RowAgreement.of(TEN, found, asked, copies=False).distance for asked in (answers[-10:], triples)]
        for found in (together, alone)
    ]
    assert apart[0][0] < 10 / rows
    assert apart[0][1] < apart[1][1]
