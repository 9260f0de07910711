"""How often rows that can change unnoticed, as those of a database can, are scanned: once for a question."""

from __future__ import annotations

import numpy as np
import pytest

from session_table import DOMAIN, conjunction, curator
from understudy.query.marginal import Marginal
from understudy.sessions.opening import session as session_of
from understudy.table.kept_counts import KeptCounts
from understudy.table.truth import Truth

PARTS = [
    Marginal(DOMAIN, ("sex",)),
    conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2),
    Marginal(DOMAIN, ("town",), conjunction(age=np.arange(10) < 6).where),
    conjunction(age=(np.arange(10) > 2) & (np.arange(10) < 6)),
]


@pytest.fixture
def scans(monkeypatch):
    """The cliques that each pass over the rows counts."""
    monkeypatch.setattr("understudy.sessions.ski_rental.SMALL", 0)
    found, count = [], Truth._count

    def counted(self, look, wanted):
        found.append(tuple(wanted))
        return count(self, look, wanted)

    monkeypatch.setattr(Truth, "_count", counted)
    return found


def opened():
    one = curator(seed=4)
    one._truth._is_lasting = False
    one._truth._counted = KeptCounts(DOMAIN, lasting=False)
    return session_of(one, alpha=0.02, queries=100)


def test_all_counts_of_a_question_are_of_one_scan(scans):
    session = opened()
    told = session.counts(PARTS)
    assert session.purchases >= len(PARTS)
    assert len(scans) == 1
    for part, one in zip(PARTS, told.cells, strict=True):
        assert (np.abs(one.answer.value - session.curator._truth.sums(part)) <= one.answer.error).all()


def test_all_counts_of_a_search_for_a_quantile_are_of_one_scan(scans):
    session = opened()
    session.ask("SELECT median(age), count(*) FILTER (WHERE town = 'a') AS some FROM t WHERE sex = 'F'")
    assert session.purchases > 4
    assert len(scans) == 1


def test_the_next_question_is_of_another_scan(scans):
    """Nothing is kept of rows that may have changed, also where a question failed."""
    session = opened()
    session.ask_marginal(PARTS[1])
    session.ask_marginal(PARTS[3])
    assert len(scans) == 2
    with pytest.raises(ZeroDivisionError), session.curator.one_question(PARTS):
        raise ZeroDivisionError
    session.curator._truth.count(("sex",))
    assert scans[2:] == [(("sex",),)]


def test_what_is_counted_ahead_is_charged_before_it_is_told(scans):
    """A question that cannot be paid whole buys nothing, and scans nothing."""
    session = session_of(curator(seed=4, epsilon=0.05), alpha=0.02, queries=100)
    session.curator._truth._is_lasting = False
    session.curator._truth._counted = KeptCounts(DOMAIN, lasting=False)
    told = session.counts(PARTS)
    assert scans == []
    assert all(one.answer.source == "uncertified" for one in told.cells)
    assert session.curator.ledger.spent.units == 0
