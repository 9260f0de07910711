"""What sessions buy ahead at length: histograms that are expected to pay off, and parts of β for classes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counted import curator_of
from session_analysts import attributes, table_of
from session_table import DOMAIN, conjunction, curator
from understudy.privacy.price import Price
from understudy.query.box import Box
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions import ski_rental
from understudy.sessions.allowance import Allowance
from understudy.sessions.beta_spending import OTHERS, part_of_class
from understudy.sessions.calibrator import rounded
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.looks import LookPurchase
from understudy.sessions.marginals_rental import EVIDENCE_CELLS, EVIDENCE_GROUP_BYS, MarginalsSkiRental
from understudy.sessions.opening import session as session_of
from understudy.theory.normal_law import ndtri

ABUNDANT = {"epsilon": 1000.0, "delta": 1e-6}


def bought(session) -> list[str]:
    return [step["kind"] for step in session._buyer.journal.all()]


def test_conditions_on_one_attribute_that_are_expected_lead_to_its_histogram(monkeypatch):
    """The histogram answers all of them: a long session buys it after a few, and a short one later."""
    monkeypatch.setattr(ski_rental, "SMALL", 0)
    towns = np.random.default_rng(0).permutation(np.arange(1, 31))[:16]
    found = {}
    for queries in (100, 10_000):
        session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=queries)
        for code in towns:
            session.ask_marginal(conjunction(town=code >> np.arange(DOMAIN["town"].size) & 1 == 1))
        found[queries] = bought(session)
    assert found[100][-1] == found[10_000][-1] == "histogram"
    assert len(found[10_000]) <= 4 < len(found[100])


def test_conditions_on_several_attributes_do_not_lead_to_a_histogram_so_early(monkeypatch):
    """Of these it spares a part: they count for that, and are not forecast."""
    monkeypatch.setattr(ski_rental, "SMALL", 0)
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=10_000)
    for code, sex in product(np.random.default_rng(0).permutation(np.arange(1, 31))[:12], range(2)):
        towns = code >> np.arange(DOMAIN["town"].size) & 1 == 1
        session.ask_marginal(conjunction(town=towns, sex=np.arange(DOMAIN["sex"].size) == sex))
    assert "histogram" not in bought(session)


@pytest.mark.parametrize(("price", "others"), [(1.0, 1.0), (20.0, 10.0), (3.0, 200.0)])
def test_parts_of_beta_as_the_prices_cost_least_together(price, others):
    """Prices are as the squares of the tails: another part of β for the class makes both together dearer."""
    others *= OTHERS

    def together(part: float) -> float:
        own, rest = (float(ndtri(1e-6 * each) ** 2) for each in (part, 1 - part))
        return (price * own + others * rest) / float(ndtri(1e-6) ** 2)

    best = together(part_of_class(price, others / OTHERS))
    assert all(together(part) > best * (1 - 1e-3) for part in np.linspace(0.001, 0.999, 200))


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize(
    ("beside", "part"), [(0.0, 0.75), (1.0, 1 / (1 + OTHERS)), (9.0, 1 / (1 + 9 * OTHERS))]
)
def test_a_class_of_marginals_gets_the_part_of_beta_that_its_questions_have_of_what_was_paid(beside, part):
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    policy = session._buyer.policy
    policy._marginals_rental.rent, policy._marginals_rental._seen = 100.0, 50
    policy.record.paid = 100.0 * (1 + beside)
    left = policy.beta.left
    session.ask_marginal(Marginal(DOMAIN, ("age", "town")))
    step = next(step for step in session._buyer.journal.all() if step["kind"] == "marginals")
    assert step["share"] == pytest.approx(rounded(left * part), rel=0.01)


def test_a_class_of_ranges_takes_little_of_beta_where_others_will_need_it():
    """Three quarters of what is left where nothing else was paid for, else as its price is beside the others'."""
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    rental = session._buyer.policy._ski_rental
    where = conjunction().where
    alone = rental._offer(("age",), where, ("ranges",), 0.04, 0.0)
    price = float(alone.price.amount)
    beside = rental._offer(("age",), where, ("ranges",), 0.04, 10 * price)
    assert 0.02 < alone.share <= 0.03
    assert 0.8 * 0.04 / (1 + 10 * OTHERS) <= beside.share <= 0.04 / (1 + 10 * OTHERS)
    assert price < float(beside.price.amount) < 2 * price


@pytest.mark.parametrize("others", [0.0, 1e6], ids=["main", "small"])
def test_the_allowance_reckons_with_even_shares_after_a_main_class(others, monkeypatch):
    """So a class of most that was asked for is bought earlier than one after which counts get falling shares."""
    seen = []
    monkeypatch.setattr(Allowance, "permits", lambda self, events, **given: seen.append(given["least_share"]))
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    policy = session._buyer.policy
    offer = policy._ski_rental._offer(("age",), conjunction().where, ("ranges",), policy.beta.left, others)
    assert not policy._permission.permits([offer], asked=1)
    even = (policy.beta.left - offer.share) / 1001
    assert seen[0] < even
    assert seen[1:] == ([] if others else [even])


@pytest.mark.parametrize("permitted", [False, True])
def test_after_a_main_class_counts_get_even_shares_in_one_look_until_the_allowance_permits_more(
    permitted, monkeypatch
):
    monkeypatch.setattr(Allowance, "permits", lambda self, events, **given: permitted)
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    policy, known = session._buyer.policy, session._buyer.known.knowledge
    ranges = policy._ski_rental._offer(("age",), conjunction().where, ("ranges",), policy.beta.left, 0.0)
    policy.record.note(ranges)
    count = conjunction(
        age=np.arange(10) < 1,
        sex=np.arange(DOMAIN["sex"].size) == 0,
        town=np.arange(DOMAIN["town"].size) == 0,
    )
    plan = policy.counts(known, count, asked=1)
    assert isinstance(plan, LookPurchase if permitted else DirectPurchase)
    assert (plan.share > 4 * policy.beta.left / 1001) == permitted
    assert permitted or plan.share == pytest.approx(policy.beta.left / 1001, rel=0.01)


def test_a_class_gets_the_part_of_beta_of_the_classes_that_it_contains():
    """What they were paid for it answers as well, so that it is not paid for beside it."""
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    policy, where = session._buyer.policy, conjunction().where
    rental, by = policy._ski_rental, ("age", "sex")
    for one, kind in (("age", "ranges"), ("town", "subsets")):
        rental.bought(rental._offer((one,), where, (kind,), policy.beta.left, 0.0))
    assert rental._paid_inside((by, ())) == rental._spent[("age",), ()] > 0
    assert rental._paid_inside((by, (("town", b"x"),))) == 0


@pytest.mark.parametrize(("of_cells", "evidence"), [(False, EVIDENCE_GROUP_BYS), (True, EVIDENCE_CELLS)])
def test_counts_of_single_cells_have_to_cost_more_before_they_lead_to_all_marginals(of_cells, evidence):
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=10_000)
    rental = MarginalsSkiRental(of_cells=of_cells)
    for _ in range(3):
        rental.pay(Marginal(DOMAIN, ("age",)), 1)
        rental.pay(Marginal(DOMAIN, ("age", "town")), 1)
    assert rental.due(
        session._buyer.calibrator, Marginal(DOMAIN, ("age", "town")), 0.1, asked=7, ahead=10_000
    )
    assert rental._worth <= rental.rent / evidence * 1.1
    assert EVIDENCE_CELLS > 4 * EVIDENCE_GROUP_BYS


def test_a_class_whose_members_were_nearly_all_asked_for_is_not_bought(monkeypatch):
    """Of two sexes in many groups of rows: the second costs a count by itself, and a class of both nearly two."""
    town = table_of(attributes({"age": 6, "hours": 4}, {"sex": 2, "town": 4, "job": 3}), 30_000, 5)
    found = []
    for _ in range(2):  # the second time without the rule
        session = session_of(curator_of(town, **ABUNDANT, seed=1), alpha=0.02, beta=1e-6, queries=1000)
        for without, sex in product(range(3), range(2)):
            rows = {
                "town": np.arange(4) != without,
                "job": np.arange(3) != without,
                "sex": np.arange(2) == sex,
            }
            session.ask_marginal(Marginal.of(LinearQuery.conjunction(town.domain, rows)))
        found.append("grids" in bought(session))
        monkeypatch.setattr(ski_rental.SkiRental, "_varied", lambda self, by, members: True)
        monkeypatch.setattr(ski_rental, "_different", lambda members: set())
    assert found == [False, True]


@pytest.mark.parametrize("of_cells", [False, True])
def test_all_marginals_are_not_bought_where_nearly_all_of_them_were_asked_for(of_cells):
    """Of six marginals five have cost 20 each, and the class costs 50: it would spare one. Of their cells most
    would still have to be bought.
    """
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=10_000)
    rental = MarginalsSkiRental(of_cells=of_cells)
    for by in (("age",), ("sex",), ("town",), ("age", "sex"), ("age", "town")):
        rental.pay(Marginal(DOMAIN, by), 20)
    last = Marginal(DOMAIN, ("sex", "town"))
    assert rental.due(session._buyer.calibrator, last, 1, asked=6, ahead=10_000) == 2
    assert rental._worth > 100
    assert rental.is_worth(Price("rho", Fraction(50))) is of_cells


def test_what_was_paid_for_the_questions_of_a_smaller_class_counts_as_answered_by_a_larger_one():
    """Else a class of two attributes would get less of β the more was paid for each of them before."""
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    policy = session._buyer.policy
    rental, everyone = policy._ski_rental, conjunction().where
    for cut in range(1, 4):
        box = Box.of(conjunction(age=np.arange(10) < cut).where)
        assert box is not None
        rental.pay(box, Price("rho", Fraction(cut)), float(cut))
    offer = rental._offer(("age",), everyone, ("ranges",), policy.beta.left, 0.0)
    assert offer is not None
    rental.bought(offer)
    assert rental._paid_inside((("age", "sex"), ())) == pytest.approx(6 + float(offer.price.amount))
    assert rental._paid_inside((("sex", "town"), ())) == 0
