"""Classes that are bought at once: their strategies, their bands, and that a session uses them."""

from __future__ import annotations

from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import understudy as us
from session_table import DOMAIN, conjunction, curator
from statistical import assert_at_most
from understudy.errors import DomainError, ParameterError, QueryError
from understudy.mechanism.matrix.residuals_of_order import ResidualsOfOrder, combined
from understudy.privacy.relation import Neighbours
from understudy.query.marginal import Marginal
from understudy.query.residuals import centred, parts_of
from understudy.query.workload import marginals
from understudy.sessions import class_band, family_product, simulation
from understudy.sessions.class_band import band
from understudy.sessions.families import CellFamily
from understudy.sessions.family_product import product_of, slack
from understudy.sessions.opening import session as session_of
from understudy.sessions.simulation import SEED, extended_quantile, safe_quantile
from understudy.sessions.terms import Terms, conjunctions, pool, ranges, read_class

pytestmark = pytest.mark.usefixtures("generous")

SHAPES = [
    ((5,), ("ranges",)),
    ((4, 3), ("ranges", "subsets")),
    ((3, 4), ("ranges", "ranges")),
    ((2, 3, 2), ("subsets",) * 3),
    ((5, 2), ("prefixes", "subsets")),
    ((2, 6), ("subsets", "suffixes")),
    ((4, 3), ("cells", "prefixes")),
    ((4, 5), ("subsets", "ranges")),
    ((2, 4), ("ranges", "prefixes")),
    ((3, 3, 2), ("ranges", "ranges", "subsets")),
    ((3, 2, 4), ("ranges", "cells", "ranges")),
]


@pytest.mark.parametrize(("sizes", "kinds"), SHAPES)
def test_suprema_are_those_of_all_members(sizes, kinds):
    whole = product_of(sizes, kinds, laplace=False)
    noise = np.random.default_rng(1).normal(size=(20, *sizes))
    best = np.zeros(20)
    for sets in product(*(family.sets for family in whole.families)):
        for i, draw in enumerate(noise):
            cells = whole.cells(draw)
            for side in reversed(sets):
                cells = cells @ side
            best[i] = max(best[i], abs(float(cells)))
    assert whole.suprema(noise) == pytest.approx(best)


SAMPLES = [
    ((32, 16), ("ranges", "ranges"), False, (1.4850826677999992e-05, 2.038542112538527e-05)),
    ((12, 4), ("ranges", "subsets"), False, (6.768629946823115e-06, 1.1737298007167686e-05)),
    ((6, 5, 3), ("ranges", "ranges", "subsets"), True, (19.071350277246985, 49.61056088143457)),
    ((9, 4), ("prefixes", "cells"), False, (3.2038926891276788e-06, 6.5887923142548606e-06)),
]


@pytest.mark.parametrize(("sizes", "kinds", "laplace", "found"), SAMPLES)
def test_simulations_are_what_they_always_were(sizes, kinds, laplace, found):
    """Sessions of version 0.1 rest on their bands: the median and the eighth largest are those that it found."""
    sample = np.sort(class_band._sample(product_of(sizes, kinds, laplace=laplace)))
    assert (sample[sample.size // 2], sample[-8]) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("laplace", [False, True])
def test_a_simulation_does_not_depend_on_its_blocks(laplace, monkeypatch):
    whole = product_of((4, 3), ("ranges", "ranges"), laplace=laplace)
    drawn = simulation.continuous((100, 4, 3), laplace=laplace)
    blocks = [block.copy() for block in simulation.continuous_blocks(100, (4, 3), 7, laplace=laplace)]
    assert (np.concatenate(blocks) == drawn).all()
    monkeypatch.setattr(class_band, "MOST_DRAWS", 100)
    monkeypatch.setattr(class_band, "DRAWS", 100)
    monkeypatch.setattr(class_band, "BLOCK", 7 * whole.at_once)
    rooms = family_product.ReusedArrays()
    apart = [whole.suprema(block, rooms) for block in np.split(drawn, [60, 61])]
    for other in (class_band._sample._function(whole), np.concatenate(apart)):
        assert other == pytest.approx(whole.suprema(drawn), rel=1e-12)


@pytest.mark.parametrize(("sizes", "kinds"), SHAPES)
def test_cells_come_back_and_norms_are_the_largest(sizes, kinds):
    whole = product_of(sizes, kinds, laplace=False)
    counts = np.random.default_rng(2).integers(0, 50, sizes)
    table = counts
    for axis, matrix in enumerate(whole.matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    assert whole.cells(table.astype(float)) == pytest.approx(counts, abs=1e-6)
    for order in (1, 2):
        largest = prod(
            max(np.linalg.norm(one @ inverse, ord=order) for one in family.sets)
            for family, inverse in zip(whole.families, whole.inverses, strict=True)
        )
        assert whole.norm(order) == pytest.approx(largest)
    assert slack(whole) == whole.norm(1)


@pytest.mark.parametrize("laplace", [False, True])
def test_a_band_covers_all_members(laplace, monkeypatch):
    """Fresh draws pass the band with probability at most beta; a band 15% narrower does not hold."""
    beta = 0.02
    whole = product_of((6, 4), ("ranges", "subsets"), laplace=laplace)
    width = band(whole, beta)
    generator = np.random.default_rng(SEED + 1)
    shape = (20_000, *(len(matrix) for matrix in whole.matrices))
    noise = generator.laplace(size=shape) if laplace else generator.normal(size=shape)
    found = whole.suprema(noise)
    assert_at_most(int((found > width).sum()), found.size, beta)
    with pytest.raises(AssertionError):
        assert_at_most(int((found > 0.85 * width).sum()), found.size, beta)


def test_too_many_laplace_draws_are_not_made():
    assert band(product_of((600,), ("subsets",), laplace=True), 1e-9) is None  # nor are sets listed


def test_extended_quantiles_are_safe_and_not_wasteful():
    """The largest of 10 normals: the bound is above the true quantile, and within a tenth of it."""
    sample = np.random.default_rng(3).normal(size=(1 << 15, 10)).max(axis=1)
    for beta in (0.05, 1e-3, 1e-5):
        true = norm.ppf((1 - beta) ** 0.1)
        assert true <= extended_quantile(sample, beta, 1.0) <= 1.12 * true
    assert extended_quantile(sample, 0.05, 1.0) <= safe_quantile(sample, 0.05) * 1.001


def test_families_hold_what_they_should():
    line = CellFamily(5, "ranges")
    assert line.members == len(line.sets) == 15
    assert line.holds(np.array([0, 1, 1, 0, 0], bool))
    assert not line.holds(np.array([1, 0, 1, 0, 0], bool))
    assert CellFamily(3, "subsets").members == 7
    assert not product_of((64, 64, 64), ("ranges",) * 3, laplace=False).is_feasible


# ---- residuals


def test_residuals_add_up_to_the_marginal():
    counts = np.random.default_rng(4).integers(0, 30, (3, 4, 2))
    total = np.full(counts.shape, counts.sum() / counts.size)
    for part in parts_of((0, 1, 2))[1:]:
        others = tuple(axis for axis in range(3) if axis not in part)
        own = counts.sum(axis=others)
        whole = combined(own, 5) / (5 * own.size)
        assert whole == pytest.approx(centred(own.astype(float)))
        rest = counts.size // own.size
        total = total + np.expand_dims(whole, others) / rest
    assert total == pytest.approx(counts)


def test_the_sensitivity_of_residuals_is_that_of_the_worst_pair_of_rows():
    parts = ResidualsOfOrder((2, 3, 4), 2)
    weights = [3, 1, 4, 1, 5, 9]
    worst = 0
    for a, b in combinations(np.ndindex(2, 3, 4), 2):
        moved = 0
        for part, weight in zip(parts.all, weights, strict=True):
            table = np.zeros([parts.sizes[i] for i in part], np.int64)
            table[tuple(a[i] for i in part)] += 1
            table[tuple(b[i] for i in part)] -= 1
            moved += int((combined(table, weight) ** 2).sum())
        worst = max(worst, moved)
    assert parts.farthest_squared(weights) == worst


def test_the_spread_of_a_marginal_is_that_of_its_cells():
    parts = ResidualsOfOrder((2, 3, 4), 2)
    weights = [3, 1, 4, 1, 5, 9]
    generator = np.random.default_rng(5)
    for place, clique in enumerate(parts.all):
        shape = [parts.sizes[i] for i in clique]
        cells = np.zeros((20_000, *shape))
        for part in parts_of(clique)[1:]:
            own = [parts.sizes[i] for i in part]
            noise = generator.normal(size=(20_000, *own)) / (weights[parts.place[part]] * prod(own))
            sizes = [parts.sizes[i] if i in part else 1 for i in clique]
            spread = centred(noise, range(1, len(own) + 1)).reshape([20_000, *sizes])
            cells = cells + spread / (prod(shape) // prod(own))
        assert cells.std(axis=0) == pytest.approx(np.full(shape, parts.spreads(weights)[place]), rel=0.05)


# ---- in a session


def within(session, one, questions):
    for question in questions:
        answer = session.ask_marginal(question)
        assert (np.abs(answer.value - one._truth.sums(question)) <= answer.error + 1e-9).all()
        assert (answer.error <= session.width + 1e-9).all()


@pytest.mark.parametrize(
    "declared",
    [{}, {"delta": 0.0}, {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": 9000}],
)
def test_announced_conjunctions_cost_nothing_more(declared):
    one = curator(**declared)
    session = session_of(
        one, alpha=0.05, beta=0.05, queries=1000, classes=[ranges("age"), conjunctions("sex", "town")]
    )
    before = one.ledger.spent
    generator = np.random.default_rng(1)
    asked = [conjunction(age=(np.arange(10) >= a) & (np.arange(10) < a + 3)) for a in range(7)]
    asked += [conjunction(sex=np.arange(3) < 1, town=generator.random(6) < 0.5) for _ in range(5)]
    asked += [Marginal(DOMAIN, ("town",)), Marginal(DOMAIN, ("sex", "town"))]
    within(session, one, [question for question in asked if question.where.largest > 0])
    assert one.ledger.spent == before


def test_announced_marginals_cost_nothing_more():
    one = curator()
    session = session_of(one, alpha=0.02, beta=0.05, queries=1000, classes=[marginals(2)])
    before = one.ledger.spent
    cliques = [*combinations(DOMAIN.names, 1), *combinations(DOMAIN.names, 2)]
    within(session, one, [Marginal(DOMAIN, clique) for clique in cliques])
    within(session, one, [conjunction(age=np.arange(10) == 3, sex=np.arange(3) == 1)])
    assert one.ledger.spent == before
    again = session_of(
        curator(ledger=one.ledger),
        alpha=0.02,
        beta=0.05,
        queries=1000,
        classes=[marginals(2)],
        name=session.name,
    )
    question = Marginal(DOMAIN, ("age", "town"))
    assert (again.ask_marginal(question).value == session.ask_marginal(question).value).all()
    assert one.ledger.spent == before


def test_many_group_bys_buy_their_class():
    one = curator()
    session = session_of(one, alpha=0.02, beta=0.05, queries=1000)
    session._buyer.policy._marginals_rental.rent = 100.0
    session._buyer.policy._marginals_rental._seen = 50
    within(session, one, [Marginal(DOMAIN, ("age", "town")), Marginal(DOMAIN, ("age", "sex"))])
    assert session._buyer.policy.record.orders == {2}


def test_a_range_asked_often_within_the_same_rows_buys_its_class():
    one = curator()
    session = session_of(one, alpha=0.02, beta=0.05, queries=300)
    questions = [
        conjunction(age=(np.arange(10) >= low) & (np.arange(10) <= high), town=np.arange(6) < 3)
        for low, high in combinations(range(10), 2)
    ]
    within(session, one, questions)
    assert session._buyer.policy._ski_rental._paid
    bought = session._known.step
    within(session, one, questions)
    assert session._known.step == bought


def test_classes_that_cannot_be_bought_are_refused_before_anything_is_spent():
    one = curator()
    for bad in (["age"], [marginals(4)], [ranges("nobody")]):
        with pytest.raises((ParameterError, QueryError, DomainError)):
            session_of(one, alpha=0.02, classes=bad)
    with pytest.raises(QueryError, match="delta"):
        session_of(curator(delta=0.0), alpha=0.05, classes=[marginals(2)])
    assert one.ledger.spent.units == 0
    assert pool([conjunction(sex=np.arange(3) < 1)]).names == ("sex",)
    with pytest.raises(QueryError, match="at least one"):
        pool([])


def test_a_simulation_is_shared_by_sessions():
    band.cache_clear()
    class_band._listed_band.begin()
    for _ in range(2):
        session_of(curator(), alpha=0.05, queries=100, classes=[ranges("age")])
    assert class_band._listed_band.times == 1


def test_ranks_are_those_of_the_binomial_law():
    from scipy.stats import beta, binom

    for draws in (200, 4096, 1 << 16):
        for share in (1e-4, 0.003, 0.05, 0.3):
            assert simulation._rank(1e-9, draws, share) == int(binom.ppf(1e-9, draws, share))
    from scipy.special import betainccinv

    assert betainccinv(8, 4089, 1e-9) == pytest.approx(beta.isf(1e-9, 8, 4089), rel=1e-9)


def test_of_members_that_can_be_listed_no_largest_errors_are_simulated():
    """Of a small domain as a whole, a first question would wait for them."""
    product = product_of((2, 2, 4, 8), ("subsets",) * 4, laplace=False)
    class_band._sample.begin()
    found = band(product, 0.0099)
    assert class_band._sample.times == 0
    assert found <= simulation.extended_quantile(class_band._sample(product), 0.0099, product.norm(2))


def test_what_is_no_class_is_named_as_such_and_buys_nothing():
    session = session_of(curator(), alpha=0.02, beta=0.05, queries=100)
    for wrong in ("ranges(age)", None, 2):
        for ask in (session.price_of_class, session.buy):
            with pytest.raises(ParameterError, match="made by ranges"):
                ask(wrong)
    with pytest.raises(QueryError, match="names no attribute"):
        session.buy(conjunctions())
    assert session.buy(ranges("age")).units > 0


UNUSUAL = ("town, country", "pay (net)", 'the "late" ones', "who expects more", "a @b", "a")


def test_a_session_goes_on_by_its_name_whatever_its_classes_are_called():
    frame = {name: [0, 1] * 500 for name in UNUSUAL}
    project = us.declare(pa.table(frame), dict.fromkeys(UNUSUAL, range(3)), epsilon=100, delta=1e-6)
    for name, other in zip(UNUSUAL, UNUSUAL[1:] + UNUSUAL[:1], strict=True):
        terms: dict[str, Any] = {
            "classes": [conjunctions(name)],
            "expected": [conjunctions(other, name), marginals(2)],
        }
        first = session_of(project, alpha=0.1, queries=10, name=name, **terms)
        again = session_of(project, name=name)
        assert (again.terms, again.purchases) == (first.terms, 1)


def test_terms_come_back_from_their_text_with_the_version_of_a_file():
    for bought, ahead in (([], []), ([("a", "town, country")], []), ([], [("a @b",)]), ([("a",)], [("a",)])):
        told: dict[str, Any] = {
            "classes": [conjunctions(*one) for one in bought],
            "expected": [conjunctions(*one) for one in ahead],
        }
        terms = Terms.of(alpha=0.1, beta=0.05, queries=9, **told)
        assert Terms.read(f"{terms.text()} @7f", UNUSUAL) == terms


def test_unusual_names_of_an_ordered_class_stand_in_double_quotes():
    quoted = '"town, country", a, "pay (net)" , "the ""late"" ones"'
    assert read_class(f"ranges({quoted})") == conjunctions(
        "town, country", "a", "pay (net)", 'the "late" ones'
    )
    assert read_class("conjunctions(home town)") == conjunctions("home town")
    for text in (
        "ranges()",
        "ranges(a,)",
        'ranges("a)',
        'ranges("")',
        'ranges("a" b)',
        "ranges(a (b))",
        "ages(a)",
    ):
        with pytest.raises(ParameterError, match="names no class"):
            read_class(text)
