"""What sessions buy ahead at length: histograms that are expected to pay off, and parts of β for classes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from session_table import DOMAIN, conjunction, curator
from understudy.query.marginal import Marginal
from understudy.sessions import ski_rental
from understudy.sessions.allowance import Allowance
from understudy.sessions.beta_spending import OTHERS, part_of_class
from understudy.sessions.calibrator import rounded
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.session import session as session_of
from understudy.sessions.terms import conjunctions
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
    policy._counts_paid = 100.0 * (1 + beside)
    left = policy.left
    session.ask_marginal(Marginal(DOMAIN, ("age", "town")))
    step = next(step for step in session._buyer.journal.all() if step["kind"] == "marginals")
    assert step["share"] == pytest.approx(rounded(left * part), rel=0.01)


def test_a_class_of_ranges_takes_little_of_beta_where_others_will_need_it():
    """Half of what is left where nothing else was paid for, else as its price is beside the others'."""
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    rental = session._buyer.policy._ski_rental
    where = conjunction().where
    alone = rental._offer(("age",), where, ("ranges",), 0.04, 0.0)
    price = float(alone.price.amount)
    beside = rental._offer(("age",), where, ("ranges",), 0.04, 10 * price)
    assert 0.014 < alone.share <= 0.02
    assert 0.7 * 0.04 / (1 + 10 * OTHERS) <= beside.share <= 0.04 / (1 + 10 * OTHERS)
    assert price < float(beside.price.amount) < 2 * price


def test_after_the_class_of_all_conjunctions_counts_get_even_shares_in_one_look():
    """Hardly any are bought then, so that the dearest of them, which the allowance reckons with, decides."""
    found = {}
    for classes in ((), (conjunctions("age", "sex", "town"),)):
        session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000, classes=classes)
        policy, known = session._buyer.policy, session._buyer.known.knowledge
        count = conjunction(sex=np.arange(DOMAIN["sex"].size) == 0)
        found[bool(classes)] = policy.left, policy.counts(known, count, asked=1)
    left, usual = found[False]
    assert usual.share > 4 * left / 1000
    left, even = found[True]
    assert isinstance(even, DirectPurchase)
    assert even.share == pytest.approx(left / 1001, rel=0.01)


def test_the_allowance_reckons_with_even_shares_after_the_class_of_all_conjunctions(monkeypatch):
    """So it is bought earlier than a class after which counts get less than an even share."""
    seen = []
    monkeypatch.setattr(Allowance, "permits", lambda self, events, **given: seen.append(given))
    session = session_of(curator(**ABUNDANT), alpha=0.02, beta=0.05, queries=1000)
    policy, where = session._buyer.policy, conjunction().where
    for by, kinds in ((DOMAIN.names, ("ranges", "subsets", "subsets")), (("age",), ("ranges",))):
        offer = policy._ski_rental._offer(by, where, kinds, policy.left, 0.0)
        policy._permits([offer], asked=1)
        assert (seen[-1]["least_share"] == (policy.left - offer.share) / 1001) == (len(by) == 3)
    assert seen[0]["dearer"] == 1 < seen[1]["dearer"]
