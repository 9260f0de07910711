"""Searching for quantiles by counts: what is asked next, how often, and that the quantile is in what is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import understudy as us
from session_table import DOMAIN
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.query.box import Box
from understudy.query.marginal import Marginal
from understudy.query.quantiles_of_bins import QuantilesOfBins, can_hold
from understudy.sessions.quantile_search import QuantileSearch
from unit_table import declared


def search_of(bins: int, levels: tuple[float, ...], width: float) -> QuantileSearch:
    domain = Domain((Bins.integers("x", 0, bins - 1),))
    marginal = Marginal(domain, ("x",))
    return QuantileSearch(marginal, QuantilesOfBins("x", levels, bins), Box(domain, {}), width)


def searched(search: QuantileSearch, through: np.ndarray, draw: np.random.Generator) -> tuple:
    """The ends that a search comes to, and how often it asked, where counts are off by up to the width."""
    bins = search.need.bins
    low, high = np.zeros(bins), np.full(bins, 10.0 * through[-1])
    seen, asked = np.zeros(bins, bool), 0
    while (cut := search._next(low, high, seen)) is not None:
        assert not seen[cut]
        told = max(through[cut] + draw.uniform(-search.width, search.width), 0.0)
        low[cut:] = np.maximum(low[cut:], told - search.width)
        high[: cut + 1] = np.minimum(high[: cut + 1], told + search.width)
        seen[cut], asked = True, asked + 1
    return low, high, asked


@pytest.mark.parametrize("bins", [2, 3, 10, 21, 100])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
def test_a_search_tells_the_quantile_in_few_counts(bins, level):
    draw, asked, wide = np.random.default_rng(bins), [], 0
    for _ in range(40):
        counts = draw.multinomial(10_000, draw.dirichlet(np.full(bins, draw.choice([0.3, 1.0, 10.0]))))
        through, search = np.cumsum(counts), search_of(bins, (level,), 200.0)
        low, high, count = searched(search, through.astype(float), draw)
        begins, ends = can_hold(low, high, level)
        first, last = int(begins.argmax()), int(np.flatnonzero(ends)[-1])
        true = int(np.searchsorted(through, level * (through[-1] - 1), side="right"))
        assert first <= true <= last
        asked.append(count)
        inside = through[first:last] - level * through[-1]
        wide += bool(inside.size) and float(np.abs(inside).max()) > (2 + 2 * level) * search.width
    assert np.quantile(asked, 0.9) <= search.most + 1
    assert max(asked) <= bins
    assert wide <= 4 or level == 0.05  # so near to the first bins no count below the quantile can be clear


def test_few_people_are_counted_once():
    """Half of them are fewer than the error of a count and of their number: no count can be clear."""
    _, _, asked = searched(search_of(10, (0.5,), 200.0), np.arange(1, 11) * 30.0, np.random.default_rng(1))
    assert asked == 1


def test_several_levels_share_what_they_ask():
    through = np.cumsum(np.full(20, 500.0))
    alone = sum(
        searched(search_of(20, (level,), 100.0), through, np.random.default_rng(2))[2]
        for level in (0.25, 0.5, 0.75)
    )
    together = searched(search_of(20, (0.25, 0.5, 0.75), 100.0), through, np.random.default_rng(2))[2]
    assert together < alone
    assert together <= search_of(20, (0.25, 0.5, 0.75), 100.0).most


def test_the_count_up_to_an_edge_is_the_question_that_anybody_asks():
    """So that it is bought once, whoever asks for it."""
    marginal = Marginal(DOMAIN, ("age", "sex"))
    search = QuantileSearch(marginal, QuantilesOfBins("age", (0.5,), 10), Box(DOMAIN, {}), 80.0)
    assert search.groups == [(0,), (1,), (2,)]
    count = search.upto((1,), 3)
    assert count.by == ()
    assert {f.clique[0]: f.weights.tolist() for f in count.where.factors} == {
        "age": [1.0] * 4 + [0.0] * 6,
        "sex": [0.0, 1.0, 0.0],
    }
    assert search.upto((1,), 9).clique == ("sex",)


@pytest.mark.parametrize(
    ("asked", "statement"),
    [
        ("median income", "SELECT median(income) FROM t"),
        ("quantile 0.9 income", "SELECT quantile_cont(income, 0.9) FROM t"),
        ("quantile 0.9 income by sex", "SELECT sex, quantile_cont(income, 0.9) FROM t GROUP BY sex"),
    ],
)
def test_a_quantile_in_the_small_language_is_told_its_own_statement(asked: str, statement: str) -> None:
    table = declared(("income", "sex"), budget="{epsilon: 200, delta: 1e-9}", neighbours="replace")
    people = pd.DataFrame({"income": np.arange(5_000.0), "sex": ["F", "M"] * 2_500})
    session = us.session(us.Project.frame(people, table), alpha=0.02)
    with pytest.raises(QueryError) as refusal:
        session.ask(asked)
    assert statement.replace(" FROM t", " FROM … (the name of the table)") in refusal.value.remedy
    assert session.price(statement).units > 0
