"""Answers after the budget: from a stand-in of everything released, uncertified, free, and without the table."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from session_table import DOMAIN, ROWS, conjunction, curator
from understudy.errors import RefusedError
from understudy.privacy.relation import Neighbours
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.sessions.fitted_standin import FittedStandin
from understudy.sessions.opening import session as session_of

AGE, SEX, TOWN = np.arange(10), np.arange(3), np.arange(6)


class Closed:
    """A table that may no longer be looked at."""

    rows = ROWS
    version = "0"
    is_file = False
    former_version = None

    def check_unchanged(self) -> None: ...

    def check_size(self, marginals) -> None: ...

    def one_question(self, cliques):
        """It is told what may be counted together; nothing is counted before a look is paid."""
        return nullcontext()

    def __getattr__(self, name):
        raise AssertionError(f"the table was looked at: {name}")


def spent(session):
    """The same session with nothing left to spend, and its table closed."""
    session.curator._truth = Closed()
    ledger = session.curator.ledger
    ledger._books.cap = ledger.spent
    return session


def exact(question):
    return curator()._truth.sums(question)


def product(question):
    """The answer of independent attributes, from exact histograms."""
    one = curator()._truth
    shares = {name: one.count((name,)) / ROWS for name in DOMAIN.names}
    table = shares["age"][:, None, None] * shares["sex"][None, :, None] * shares["town"]
    weights = question.where.weights(DOMAIN.names)
    gone = tuple(i for i, name in enumerate(DOMAIN.names) if name not in question.by)
    return ROWS * (table * weights).sum(axis=gone)


def asked(session, question):
    before = session.curator.ledger.spent
    answer = session.ask_marginal(question)
    assert answer.source == "uncertified"
    assert answer.cost.units == 0
    assert session.curator.ledger.spent == before
    assert np.isinf(answer.error).all()
    assert answer.population_error is None
    return answer.value


OLD_WOMEN = conjunction(age=AGE >= 6, sex=SEX == 0)


def test_a_released_marginal_answers_what_is_asked_of_it_later():
    session = session_of(curator(), alpha=0.01, queries=100, mechanism="direct")
    session.ask_marginal(Marginal(DOMAIN, ("age", "sex")))
    value = asked(spent(session), OLD_WOMEN)
    assert abs(value - exact(OLD_WOMEN)) < abs(product(OLD_WOMEN) - exact(OLD_WOMEN)) / 3
    women_in_a = conjunction(age=AGE >= 6, sex=SEX == 0, town=TOWN == 0)
    assert abs(asked(session, women_in_a) - exact(women_in_a)) < abs(product(women_in_a) - exact(women_in_a))


def test_released_conjunctions_and_conditional_marginals_tell_of_their_parts():
    session = session_of(curator(), alpha=0.01, queries=100, mechanism="direct")
    session.ask_marginal(OLD_WOMEN)
    session.ask_marginal(Marginal(DOMAIN, ("sex",), conjunction(age=AGE < 2).where))
    spent(session)
    young_women = conjunction(age=AGE < 2, sex=SEX == 0, town=TOWN < 3)
    table = asked(session, Marginal(DOMAIN, ("age", "sex")))
    true = exact(Marginal(DOMAIN, ("age", "sex")))
    assert abs(table[6:, 0].sum() - true[6:, 0].sum()) < 0.02 * ROWS
    assert abs(asked(session, young_women) - exact(young_women)) < abs(
        product(young_women) - exact(young_women)
    )


@pytest.mark.parametrize("classes", [[marginals(2)], []])
def test_residuals_and_histograms_are_fitted(classes):
    session = session_of(curator(), alpha=0.01, queries=100, classes=classes)
    if not classes:
        session.ask_marginal(conjunction(age=AGE < 3, town=TOWN < 2))
    spent(session)
    off = abs(asked(session, OLD_WOMEN) - exact(OLD_WOMEN))
    if classes:
        assert off < abs(product(OLD_WOMEN) - exact(OLD_WOMEN)) / 3
    else:
        assert off < 0.05 * ROWS


def test_the_stand_in_is_fitted_once_for_each_state_of_the_session(monkeypatch):
    session = session_of(curator(), alpha=0.01, queries=100, mechanism="direct")
    session.ask_marginal(Marginal(DOMAIN, ("age", "sex")))
    spent(session)
    fits = []
    of = FittedStandin.of
    monkeypatch.setattr(FittedStandin, "of", lambda *args, **kwargs: fits.append(1) or of(*args, **kwargs))
    for _ in range(3):
        asked(session, OLD_WOMEN)
    assert len(fits) == 1


def test_a_tree_that_would_be_too_large_leaves_marginals_beside_the_model(monkeypatch):
    session = session_of(curator(), alpha=0.01, queries=100, mechanism="direct")
    for by in (("age", "sex"), ("sex", "town"), ("age", "town")):
        session.ask_marginal(Marginal(DOMAIN, by))
    whole = FittedStandin.of(session._known.knowledge)
    assert not whole.beside
    monkeypatch.setattr("understudy.sessions.fitted_standin.MOST_SCALED_CELLS", 60)
    small = FittedStandin.of(session._known.knowledge)
    assert small.beside
    assert small.model.cells <= 60
    monkeypatch.undo()
    found = small.counts(session._known.knowledge, OLD_WOMEN)
    assert abs(found - exact(OLD_WOMEN)) < abs(product(OLD_WOMEN) - exact(OLD_WOMEN)) / 3


def test_questions_whose_cells_cannot_be_listed_are_answered(monkeypatch):
    session = session_of(curator(), alpha=0.01, queries=100, mechanism="direct")
    session.ask_marginal(Marginal(DOMAIN, ("age", "sex")))
    model = FittedStandin.of(session._known.knowledge)
    expected = model.counts(session._known.knowledge, OLD_WOMEN)
    monkeypatch.setattr("understudy.sessions.fitted_standin.MOST_SCALED_CELLS", 1)
    assert model.counts(session._known.knowledge, OLD_WOMEN) == pytest.approx(expected, rel=1e-6)
    table = model.counts(
        session._known.knowledge, Marginal(DOMAIN, ("sex",), conjunction(age=AGE >= 6).where)
    )
    assert table.shape == (3,)
    assert table.sum() == pytest.approx(float(exact(conjunction(age=AGE >= 6))), abs=0.05 * ROWS)


@pytest.mark.parametrize("most", [9000, None])
def test_nothing_released_at_all(most):
    """Not even the number of rows: the least there can be stands for it, or the middle."""
    declared = {"neighbours": Neighbours.ADD_REMOVE, "rows_at_least": 3000, "rows_at_most": most}
    session = session_of(curator(epsilon=1e-6, **declared), alpha=0.01, queries=100)
    rows = 3000 if most is None else 6000
    assert asked(session, conjunction(sex=SEX == 0)) == pytest.approx(rows / 3)
    assert asked(session, Marginal(DOMAIN, ())) == pytest.approx(rows)
    weights = Marginal.of(LinearQuery.conjunction(DOMAIN, {"age": np.linspace(0, 1, 10)}))
    if most is None:
        with pytest.raises(RefusedError, match="at_most"):
            session.ask_marginal(weights)
    else:
        assert asked(session, weights) == pytest.approx(rows / 2)
