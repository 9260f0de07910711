from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from statistical import assert_does_not_follow, assert_follows
from understudy.domain.attribute import Boolean
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.mechanism import net
from understudy.mechanism.look import released
from understudy.mechanism.net import NetMechanism
from understudy.noise.samplers import SeededNoise
from understudy.query.marginal import Marginal
from understudy.standin.table import SmallTable
from understudy_textbook.lectures9_10 import net_error
from understudy_textbook.stability import privacy_curve, replace_neighbours

DOMAIN = Domain((Boolean(name="a"), Bins.integers("x", 0, 2)))
MARGINALS = [Marginal(DOMAIN, ("a",)), Marginal(DOMAIN, ("a", "x"))]
CELLS = [(a, x) for a in range(2) for x in range(3)]
TABLES = [
    SmallTable.of_rows(DOMAIN, rows)
    for rows in ([(0, 0), (1, 2)], [(0, 1), (0, 2), (1, 0)], [(1, 1)], [(0, 0), (0, 1), (1, 1), (1, 2)])
]


class Uniform:
    domain = DOMAIN

    def project(self, clique):
        return np.full(DOMAIN.shape(clique), 1 / DOMAIN.size(clique))


def counts_of(rows) -> list[np.ndarray]:
    table = SmallTable.of_rows(DOMAIN, rows)
    return [table.count(marginal.by) for marginal in MARGINALS]


def errors(rows, databases) -> list[Fraction]:
    """max_f |f(x) - f(y)| from the definition, in rationals."""
    n = len(rows)
    found = []
    for database in databases:
        sides = [
            (marginal.by, counts, database.count(marginal.by))
            for marginal, counts in zip(MARGINALS, counts_of(rows), strict=True)
        ]
        found.append(
            max(
                abs(Fraction(int(x), n) - Fraction(int(y), database.rows))
                for _, xs, ys in sides
                for x, y in zip(xs.ravel(), ys.ravel(), strict=True)
            )
        )
    return found


def test_scores_are_the_largest_errors_on_the_lattice():
    rows = [(0, 0), (0, 0), (1, 2), (0, 1), (1, 1), (1, 1), (1, 1)]
    look = NetMechanism.of(TABLES, MARGINALS, rows=7, epsilon=1)
    assert (look.steps, look.rounded) == (12, False)
    assert [Fraction(-int(s), 12 * 7) for s in look.values(counts_of(rows))] == errors(rows, TABLES)
    assert look.mechanism.sensitivity == 12


def test_a_projection_that_counts_no_rows_is_rounded_and_says_so():
    look = NetMechanism.of([Uniform(), TABLES[0]], MARGINALS, rows=7, epsilon=1)
    assert (look.steps, look.rounded) == (net.STEPS, True)
    exact = [Fraction(7, 2)] * 2 + [Fraction(7, 6)] * 6
    for answer, people in zip(look.answers[0].tolist(), exact, strict=True):
        assert abs(Fraction(answer, net.STEPS) - people) <= Fraction(1, 2 * net.STEPS)
    assert look.error(0.1, 0.05) == pytest.approx(net_error(7, 2, 1, 0.1, 0.05) + 1 / (7 * net.STEPS))


def law(rows, *, epsilon: float, mistake: int = 1):
    weights = [exp(-mistake * epsilon * len(rows) * float(error) / 2) for error in errors(rows, TABLES)]
    return {i: weight / sum(weights) for i, weight in enumerate(weights)}


def test_dworkroth14_theorem_3_10_for_the_net():
    """ε over all neighbours, on the law of the definition, which is the one that is drawn from."""
    look = NetMechanism.of(TABLES, MARGINALS, rows=3, epsilon=1)

    def lattice_law(rows, mistake=1):
        levels = -look.values(counts_of([CELLS[row] for row in rows]))
        weights = np.exp(-mistake * float(look.mechanism.rate) * levels)
        return dict(enumerate((weights / weights.sum()).tolist()))

    pairs = list(replace_neighbours(range(6), 3))
    for rows, _ in pairs[::40]:
        by_definition = law([CELLS[row] for row in rows], epsilon=1.0)
        assert lattice_law(rows) == pytest.approx(by_definition, rel=1e-12)
    assert privacy_curve(lattice_law, pairs).is_stable(1, 0)
    assert not privacy_curve(lambda rows: lattice_law(rows, 2), pairs).is_stable(1, 0)


def test_draws_follow_the_law():
    rows = [(0, 0), (0, 0), (1, 2), (0, 1), (1, 1), (1, 1), (1, 1)]
    look = NetMechanism.of(TABLES, MARGINALS, rows=7, epsilon=2)
    noise = SeededNoise(7)
    seen = Counter(released(look, counts_of(rows), noise=noise) for _ in range(4000))
    counts = [seen[i] for i in range(len(TABLES))]
    assert_follows(counts, list(law(rows, epsilon=2.0).values()))
    assert_does_not_follow(counts, list(law(rows, epsilon=2.0, mistake=2).values()))


@pytest.mark.parametrize("beta", [0.5, 0.05])
def test_the_error_holds_on_the_exact_law(beta):
    draw = np.random.default_rng(1)
    for _ in range(20):
        rows = [CELLS[i] for i in draw.integers(0, 6, 30)]
        found = errors(rows, TABLES)
        look = NetMechanism.of(TABLES, MARGINALS, rows=30, epsilon=4)
        alpha = min(found)
        bound = look.error(alpha, beta)
        assert bound == pytest.approx(float(alpha) + (2 / (4 * 30)) * (log(4) + log(1 / beta)))
        chances = law(rows, epsilon=4.0)
        assert sum(chances[i] for i, error in enumerate(found) if float(error) >= bound) <= beta


def test_equal_keys_ask_the_same():
    looks = [
        NetMechanism.of(TABLES, MARGINALS, rows=7, epsilon=1),
        NetMechanism.of(TABLES[:3], MARGINALS, rows=7, epsilon=1),
        NetMechanism.of(TABLES, MARGINALS[:1], rows=7, epsilon=1),
        NetMechanism.of(TABLES, MARGINALS, rows=8, epsilon=1),
    ]
    assert len({look.key for look in looks}) == 4
    assert looks[0].key == NetMechanism.of(TABLES, MARGINALS, rows=7, epsilon=1).key


def test_what_is_refused():
    other = Domain((Boolean(name="b"),))
    with pytest.raises(ParameterError):
        NetMechanism.of([], MARGINALS, rows=7, epsilon=1)
    with pytest.raises(ParameterError):
        NetMechanism.of(TABLES, MARGINALS, rows=0, epsilon=1)
    with pytest.raises(ParameterError):
        NetMechanism.of(TABLES, MARGINALS, rows=7, epsilon=0)
    with pytest.raises(QueryError, match="one domain"):
        NetMechanism.of([SmallTable.of_rows(other, [(0,)])], MARGINALS, rows=7, epsilon=1)
    with pytest.raises(RefusedError, match="smaller net"):
        NetMechanism.of([Uniform()] * 10**7, MARGINALS, rows=7, epsilon=1)

    class Broken(Uniform):
        def project(self, clique):
            return np.full(DOMAIN.shape(clique), np.nan)

    with pytest.raises(QueryError, match="share"):
        NetMechanism.of([Broken()], MARGINALS, rows=7, epsilon=1)
