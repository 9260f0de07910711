"""Counts of a session with bounded noise: taken where they cost less, certain, and for nothing of β."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import understudy as us
from session_table import DOMAIN, TABLE, conjunction, curator
from sessions.test_durable_session import Killed, kill, plans
from understudy.declaration.declaration import SourceSpec
from understudy.declaration.file import parse
from understudy.errors import ParameterError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.budget import Budget
from understudy.privacy.event import unversioned
from understudy.privacy.joint import GROWTH
from understudy.query.marginal import Marginal
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.opening import session as session_of
from understudy.sessions.terms import Terms, described
from understudy.table.source import open_source

DECLARED = """\
understudy: 1
name: t
source: t.csv
budget: {budget}
attributes:
  age: {{type: integer, edges: [0, 10, 20, 30, 40, 50, 60, 70, 120]}}
  sex: {{type: category, values: [F, M]}}
  town: {{type: category, values: [a, b, c, d, e]}}
"""
RENYI = "{epsilon: 1, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
COINS = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "age": COINS.integers(0, 90, 40_000),
        "sex": COINS.choice(["F", "M"], 40_000),
        "town": COINS.choice(list("abcde"), 40_000, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
    }
)


def project(budget: str = RENYI, seed: int = 1) -> us.Project:
    return us.Project.frame(FRAME, parse(DECLARED.format(budget=budget)), noise=SeededNoise(seed))


def opened(p: us.Project, **terms: Any) -> us.Session:
    return us.session(p, **{"alpha": 0.05, "queries": 10_000, "mechanism": "direct", **terms})


def bought(p: us.Project) -> list[str]:
    """The kinds of noise that were charged, in their order."""
    events = [unversioned(debit.event) for debit in p.ledger.debits()]
    return [type(event).__name__ for event in events if getattr(event, "events", None) != ()]


QUESTIONS = ["count age < 30", "count by age, sex", "count town = a by sex", "count age >= 60 and sex = F"]


def test_a_purchase_takes_bounded_noise_where_that_costs_less_and_nothing_of_beta() -> None:
    p = project()
    asked = opened(p)
    left = asked._buyer.policy.beta.left
    for question in QUESTIONS:
        answer = asked.ask(question)
        exact = asked.curator._truth.sums(answer.query)
        assert (np.abs(answer.value - exact) <= asked.width).all()  # for sure, whatever the coins
        assert (answer.error <= asked.width).all()
    assert bought(p) == ["BoundedNoise"] * 4
    assert asked._buyer.policy.beta.left == left
    assert asked._buyer.policy.beta.counts_bought == 0


def test_the_price_is_told_beforehand_and_charged() -> None:
    p = project()
    asked = opened(p)
    for question in QUESTIONS:
        price = asked.price(question)
        assert asked.ask(question).cost.units <= price.units


def test_where_few_questions_are_expected_the_usual_noise_is_cheaper() -> None:
    p = project()
    opened(p, queries=10).ask("count age < 30")
    assert bought(p) == ["GaussianNoise"]


@pytest.mark.parametrize(
    "budget", ["{epsilon: 1}", "{epsilon: 1, delta: 1e-6}", "{epsilon: 1, delta: 1e-6, filter: renyi}"]
)
def test_nothing_changes_where_bounded_noise_has_no_price(budget: str) -> None:
    p = project(budget)
    opened(p).ask("count by age, sex")
    assert "BoundedNoise" not in bought(p)
    with pytest.raises(RefusedError, match="filter: renyi"):
        opened(p, noise="bounded")


def test_noise_by_name_is_kept_with_the_session() -> None:
    p = project()
    usual = opened(p, noise="gaussian", name="usual")
    usual.ask("count by age, sex")
    assert bought(p) == ["GaussianNoise"]
    again = us.session(p, name="usual")
    assert again.terms == usual.terms
    again.ask("count by age, town")
    sure = opened(p, noise="bounded", queries=10, name="sure")
    sure.ask("count age < 30")
    assert bought(p)[-1] == "BoundedNoise"
    with pytest.raises(RefusedError, match="Laplace"):
        opened(p, noise="laplace")
    with pytest.raises(ParameterError, match="noise is auto, laplace, gaussian or bounded"):
        opened(p, noise="uniform")


def test_the_text_of_terms_holds_the_noise_and_old_texts_mean_auto() -> None:
    terms = Terms.of(alpha=0.05, beta=0.05, queries=9, mechanism="direct", noise="bounded")
    text = terms.text()
    assert text == "session direct noise bounded alpha 1/20 beta 1/20 queries 9"
    assert Terms.read(text, []) == terms
    assert "noise bounded" in (described(text, "") or "")
    old = Terms.read("session alpha 1/20 beta 1/20 queries 9 @7f", [])
    assert old is not None
    assert (old.noise, old.text()) == ("auto", "session alpha 1/20 beta 1/20 queries 9")


def test_a_plan_without_a_word_for_its_noise_is_of_the_usual_one() -> None:
    asked = opened(project())
    calibrator = asked._buyer.calibrator
    marginal = Marginal(asked.curator.domain, ("sex",))
    sure = DirectPurchase.certain(calibrator, marginal)
    assert sure is not None
    plan = json.loads(json.dumps(sure.plain()))
    read = DirectPurchase.read(calibrator, plan)
    assert (read.is_certain, read.share, read.price) == (True, 0, sure.price)
    assert read.event(calibrator) == sure.event(calibrator)
    del plan["noise"]
    assert not DirectPurchase.read(calibrator, plan).is_certain


def test_sequences_never_cost_more_than_without_bounded_noise() -> None:
    """Generated questions in sessions of both mechanisms, after every question.

    Prices alone are never larger; the ledger's joint price is found anew where it grew by a twentieth (`joint`).
    """
    coins, saved = random.Random(3), 0
    wheres = [
        "",
        "age < 30",
        "age >= 60",
        "sex = F",
        "town = a",
        "town = b and sex = M",
        "age < 50 and town = a",
    ]
    bys = ["", "", "", "by sex", "by age", "by town, sex"]
    for mechanism, queries in (("auto", 10_000), ("direct", 10_000)):
        questions = [f"count {coins.choice(wheres)} {coins.choice(bys)}" for _ in range(10)]
        totals: list[list[int]] = []
        for noise in ("auto", "gaussian"):
            p = project(seed=5)
            asked = opened(p, mechanism=mechanism, queries=queries, noise=noise)
            totals.append([])
            for question in questions:
                asked.ask(question)
                totals[-1].append(p.ledger.spent.units)
        assert all(new <= old * GROWTH for new, old in zip(*totals, strict=True))
        assert totals[0][-1] <= totals[1][-1]
        saved += totals[0][-1] < totals[1][-1]
    assert saved >= 2


def test_where_the_mass_is_spent_a_session_goes_on_with_the_usual_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    p = project()
    asked = opened(p)
    asked.ask("count age < 30")
    monkeypatch.setattr(type(p.ledger), "delta_spent", property(lambda _: p.ledger.budget.key_delta))
    asked.ask("count by age, sex")
    assert bought(p) == ["BoundedNoise", "GaussianNoise"]


def test_bounded_noise_ends_claims_about_the_population_and_gaussian_noise_by_name_keeps_them() -> None:
    p = project()
    kept = opened(p, noise="gaussian", name="kept").ask("count by age, sex")
    assert kept.population_error is not None
    sure = opened(p, noise="bounded", name="sure")
    assert sure.ask("count town = a").population_error is None
    assert "bounded noise" in sure.population.reason


# ---- interrupted and resumed

COUNTS = [
    conjunction(age=np.arange(10) < 4, town=np.arange(6) < 2),
    Marginal(DOMAIN, ("sex",), conjunction(town=np.arange(6) < 3).where),
    conjunction(age=np.arange(10) < 6),
]
KEPT = Budget.of(50, 1e-6, key_delta=5e-7, filter="renyi")


def life(folder: Path, ledger: MemoryLedger, seed: int) -> tuple[us.Session, list[Any]]:
    """A process: the session as it finds it, and its answers."""
    source = open_source(SourceSpec("table.parquet"), base=folder)
    one = curator(ledger=ledger, seed=seed, source=source)
    found = session_of(one, alpha=0.05, beta=0.01, queries=500, noise="bounded", name="mine")
    return found, [found.ask_marginal(question) for question in COUNTS]


@pytest.mark.parametrize("where", ["plan", "unpaid", "debit", "answer", "kept"])
def test_a_session_that_buys_bounded_noise_is_killed_anywhere_and_goes_on(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(TABLE, tmp_path / "table.parquet")
    whole = MemoryLedger(KEPT)
    life(tmp_path, whole, 1)
    assert [type(unversioned(d.event)) for d in whole.debits()][1:] == [BoundedNoise] * 3
    ledger = MemoryLedger(KEPT)
    with monkeypatch.context() as patch:
        kill(patch, ledger, where, 1)
        with pytest.raises(Killed):
            life(tmp_path, ledger, 1)
    found, answers = life(tmp_path, ledger, 2)
    assert [debit.request for debit in ledger.debits()] == ["mine", "mine#1", "mine#2", "mine#3"]
    assert [plan["noise"] for plan in plans(found)] == ["bounded"] * 3
    assert ledger.spent == whole.spent
    assert ledger.delta_spent == whole.delta_spent
    for question, answer in zip(COUNTS, answers, strict=True):
        assert (np.abs(answer.value - found.curator._truth.sums(question)) <= found.width).all()
    again, repeated = life(tmp_path, ledger, 3)
    assert [a.value.tolist() for a in repeated] == [a.value.tolist() for a in answers]
    assert ledger.spent == whole.spent
    assert again._buyer.policy.beta.left == found._buyer.policy.beta.left
