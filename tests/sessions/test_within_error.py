"""Questions to a session within an error of their own: in people, or in the unit of sums, averages and ratios."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.errors import (
    InsufficientBudgetError,
    ParameterError,
    PriceRoseError,
    RefusedAfterChargeError,
    RefusedError,
    RequestConflictError,
)
from understudy.ledger.memory import MemoryLedger
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import UNITS
from understudy.sessions.buyer import Buyer
from understudy.sessions.session import Session
from unit_table import ROWS, declared

NAMES = ("age", "income", "hours", "sex", "place", "smoker")
LUCK = 1e-9
"""The probability with which some answer of a session may be off: a test that asserts all fails as rarely."""


@cache
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 101, ROWS),
            "income": pd.Series(rng.gamma(2.0, 12_000, ROWS).clip(0, 1e5)).mask(rng.random(ROWS) < 0.2),
            "hours": rng.integers(0, 80, ROWS),
            "sex": np.where(rng.random(ROWS) < 0.5, "F", "M"),
            "place": rng.choice(["a", "b", "c"], ROWS, p=[0.6, 0.395, 0.005]),
            "smoker": rng.random(ROWS) < 0.3,
        }
    )


def opened(
    *,
    budget: str = "{epsilon: 200, delta: 1e-9}",
    neighbours: str = "replace",
    ledger: MemoryLedger | None = None,
    drawn: SeededNoise | None = None,
    **terms: Any,
) -> Session:
    table = declared(NAMES, budget=budget, neighbours=neighbours)
    project = us.Project.frame(rows(), table, ledger=ledger, noise=drawn)
    return us.session(project, **{"alpha": 0.02, "beta": LUCK, **terms})


def spent(session: Session) -> int:
    return session.curator.ledger.spent.units


def numbers(answer: Any) -> list[tuple[float, float, float]]:
    """Each number with its ends, groups without rows left out."""
    if isinstance(answer, us.Answer):
        return [
            (float(v), float(v - e), float(v + e))
            for v, e in zip(answer.value.flat, answer.error.flat, strict=True)
        ]
    released = [i for i, column in enumerate(answer.columns) if column.kind == "value"]
    return [(c.value, c.low, c.high) for row in answer.cells for c in (row[i] for i in released)]


def women() -> pd.DataFrame:
    return rows()[rows().sex == "F"]


QUESTIONS: list[tuple[str, float, float]] = [
    ("count smoker = true", 100, rows().smoker.sum()),
    ("count smoker = true", 3000, rows().smoker.sum()),
    ("SELECT avg(age) FROM t", 0.5, rows().age.mean()),
    ("SELECT avg(income) FROM t", 800, rows().income.round().mean()),
    ("SELECT avg(age) FROM t WHERE sex = 'F'", 1.0, women().age.mean()),
    ("avg income where sex = F", 2000, women().income.round().mean()),
    ("SELECT sum(income) FROM t WHERE smoker", 1e7, rows()[rows().smoker].income.round().sum()),
    ("share smoker = true", 0.005, rows().smoker.mean()),
    (
        "SELECT count(*) FILTER (WHERE smoker) * 1.0 / count(*) FROM t WHERE sex = 'F'",
        0.02,
        women().smoker.mean(),
    ),
    ("SELECT 3 * count(*) FROM t WHERE smoker", 150, 3 * rows().smoker.sum()),
]


@pytest.mark.parametrize(("question", "error", "truth"), QUESTIONS)
def test_an_answer_is_within_its_error_and_costs_at_most_its_price(
    question: str, error: float, truth: float
) -> None:
    session = opened()
    price = session.price(question, error=error)
    assert price.units > 0
    answer = session.ask(question, error=error)
    assert 0 < spent(session) == answer.cost.units <= price.units
    ((value, low, high),) = numbers(answer)
    assert low <= truth <= high
    assert max(high - value, value - low) <= error * (1 + 1e-9)
    assert answer.source == "measured"


@pytest.mark.parametrize(("question", "error", "truth"), QUESTIONS[2:6])
def test_it_is_free_when_it_is_asked_again_or_for_less(question: str, error: float, truth: float) -> None:
    session = opened()
    first, before = session.ask(question, error=error), spent(session)
    for wider in (error, 1.5 * error):
        assert not session.price(question, error=wider).units
        again = session.ask(question, error=wider)
        assert numbers(again) == numbers(first)
        assert again.source in ("repeat", "implied")  # the number of all rows is public
        assert not again.cost.units
    assert spent(session) == before
    assert session.price(question, error=error / 3).units > 0


def test_what_is_known_already_is_free() -> None:
    session = opened()
    told = session.ask("count smoker = true")
    assert not session.price("share smoker = true", error=0.02).units
    assert session.ask("SELECT count(*) FROM t WHERE NOT smoker", error=session.width).source == "implied"
    assert spent(session) == told.cost.units


def test_a_wide_answer_is_none_of_the_session_s_own() -> None:
    """Who asks for more than the session's error pays less; whoever asks the same without one gets the promise."""
    session = opened()
    alone = session.price("count smoker = true").units
    wide = session.ask("count smoker = true", error=4 * session.width)
    assert wide.cost.units < alone / 4
    assert float(wide.error) > session.width
    own = session.ask("count smoker = true")
    assert own.source == "measured"
    assert float(own.error) <= session.width
    assert not session.ask("count smoker = true", error=4 * session.width).cost.units


def test_a_narrow_sum_answers_the_session_s_own_questions() -> None:
    session = opened()
    session.ask("SELECT avg(age) FROM t", error=0.3)
    before = spent(session)
    session.ask("SELECT avg(age) FROM t")
    assert spent(session) == before


def test_an_answer_that_was_given_stays_as_it_was() -> None:
    """A narrower answer does not change what the session said before, and says again."""
    session = opened()
    first = session.ask("count smoker = true")
    session.ask("count smoker = true", error=30)
    assert session.ask("count smoker = true").value == first.value


def test_groups_keep_the_error_but_for_small_ones() -> None:
    """A group of at most three times the session's error has the bounds that it has; `other` has no rows."""
    session = opened()
    answer = session.ask("SELECT place, avg(age) FROM t GROUP BY place", error=1.5)
    told = {row[0]: row[1] for row in answer.cells}
    for place in ("a", "b"):
        truth = rows()[rows().place == place].age.mean()
        assert told[place].low <= truth <= told[place].high
        assert max(told[place].high - told[place].value, told[place].value - told[place].low) <= 1.5
    assert told["c"].high - told["c"].low > 3
    assert not session.price("SELECT place, avg(age) FROM t GROUP BY place", error=1.5).units
    rates = session.ask("rate smoker = true within place", error=0.05)
    assert rates.error[:2].max() <= 0.05
    assert rates.error[2] > 0.05


def test_the_rows_are_counted_first_and_too_few_are_refused_with_a_price() -> None:
    session = opened()
    question = "SELECT avg(age) FROM t WHERE place = 'c'"
    with pytest.raises(RefusedError, match="at most") as refusal:
        session.ask(question, error=2)
    assert "small `error`" in str(refusal.value)
    counted = spent(session)
    assert counted > 0
    with pytest.raises(RefusedError):
        session.ask(question, error=2)
    assert spent(session) == counted  # what was counted is known, and not counted again
    session.ask("SELECT count(*) FROM t WHERE place = 'c'", error=8)
    price = session.price(question, error=10)
    before = spent(session)
    ((_, low, high),) = numbers(session.ask(question, error=10))
    truth = rows()[rows().place == "c"].age.mean()
    assert low <= truth <= high <= low + 20
    assert spent(session) - before <= price.units


def test_a_price_that_rows_turn_out_to_be_too_few_for_is_not_exceeded() -> None:
    """`place = b or smoker` is expected to be large; where it is not, what is told is spent, and no more."""
    session = opened()
    question = "SELECT avg(income) FROM t WHERE place = 'c' OR (smoker AND age < 20)"
    price = session.price(question, error=3000)
    try:
        session.ask(question, error=3000)
    except RefusedError:
        now = session.price(question, error=3000)
        assert now.units > 0
        session.ask(question, error=3000)
    else:
        assert spent(session) <= price.units


def test_bins_and_bounds_that_no_noise_keeps_are_refused() -> None:
    session = opened()
    with pytest.raises(
        RefusedError, match=r"no precision .* the bins alone can put the answer off by 20,"
    ) as refusal:
        session.price("SELECT avg(hours) FROM t", error=0.1)
    assert "`error` above 20," in refusal.value.remedy
    assert "`resolution`" in refusal.value.remedy
    with pytest.raises(ParameterError):
        session.price("count smoker = true", error=0)
    assert not spent(session)


def test_bins_that_may_be_wide_are_named_and_not_the_rows() -> None:
    """Of a few wide bins it is not known who is in them: asked without an error first, the answer can keep it."""
    table = parse(
        """
        understudy: 1
        name: t
        source: t.csv
        budget: {epsilon: 200, delta: 1e-9}
        attributes:
          hours: {type: integer, edges: [0, 2, 4, 6, 8, 10, 12, 40, 80]}
          sex: {type: category, values: [F, M]}
        """
    )
    people = pd.DataFrame({"hours": np.arange(ROWS) % 8, "sex": np.where(np.arange(ROWS) // 8 % 2, "F", "M")})
    for question in ("SELECT avg(hours) FROM t", "SELECT sex, avg(hours) FROM t GROUP BY sex"):
        session = us.session(us.Project.frame(people, table), alpha=0.005, beta=LUCK)
        with pytest.raises(RefusedError, match="the bins alone can put the answer off by 20,") as refusal:
            session.ask(question, error=3)
        assert "rows" not in refusal.value.problem
        assert "without `error` first" in refusal.value.remedy
        session.ask(question)
        session.ask(question, error=3)


def test_groups_of_an_expression_and_what_is_divided_by_are_named() -> None:
    session = opened()
    with pytest.raises(RefusedError, match="one of its groups may have no rows") as refusal:
        session.ask("SELECT upper(place), avg(age) FROM t GROUP BY 1", error=1.5)
    assert "WHERE" in refusal.value.remedy
    with pytest.raises(RefusedError, match="the number that it divides by may be 0"):
        session.ask("SELECT sum(age) / sum(income) FROM t", error=1)
    with pytest.raises(RefusedError, match="it is about no rows"):
        session.ask("SELECT avg(age) FROM t WHERE age > 1000", error=1)
    case = "CASE WHEN age < 20 THEN 'young' WHEN place = 'c' AND smoker THEN 'few' ELSE 'old' END"
    with pytest.raises(
        RefusedError, match=r"of the rows of one of its groups there are at most .* perhaps none"
    ):
        session.ask(f"SELECT {case} AS years, avg(age) FROM t GROUP BY years", error=1)


def test_an_error_below_the_least_precision_says_so() -> None:
    session = opened()
    question = "SELECT avg(age) FROM t WHERE sex = 'F'"
    with pytest.raises(RefusedError, match="within 1/16 of a person at the closest") as refusal:
        session.price(question, error=1e-5)
    assert "wider `error`" in refusal.value.remedy
    with pytest.raises(RefusedError, match="within 1/16 of a person"):
        session.price("count smoker = true", error=0.01)


def test_who_cannot_pay_once_the_rows_were_counted_is_not_told_to_ask_again() -> None:
    """Groups of which fewer rows may be there than the price went by: dearer, and beyond the budget as well."""
    question = "SELECT hours, avg(age) FROM t WHERE place = 'b' GROUP BY hours"
    rich = opened(drawn=SeededNoise(1), beta=0.05)
    price = rich.price(question, error=2)
    poor = next(
        session
        for session in (
            opened(budget=f"{{epsilon: {1.05**i:.3f}, delta: 1e-9}}", beta=0.05) for i in range(110)
        )
        if session.remaining.units >= price.units
    )
    with pytest.raises(RefusedError, match="remains") as refusal:
        poor.ask(question, error=2)
    assert "ask again" not in str(refusal.value)
    rich = opened(beta=0.05)
    with pytest.raises(
        RefusedError, match=r"may be as few as [0-9,]+, where the price that was told went by"
    ):
        rich.ask(question, error=2)
    rich.ask(question, error=2)


DEAR = "SELECT sex, avg(age) FROM t WHERE smoker GROUP BY sex"
"""An average whose rows are not known: its price goes by half of those that are expected."""


@pytest.mark.parametrize("terms", [{}, {"neighbours": "add-remove"}, {"mechanism": "direct"}])
def test_nothing_is_counted_for_a_price_that_cannot_be_paid(terms: dict[str, str]) -> None:
    session = opened(budget="{epsilon: 1, delta: 1e-9}", beta=0.05, **terms)  # type: ignore[arg-type]
    price = session.price(DEAR, error=1)
    assert price.units > session.remaining.units
    for ask in (
        lambda: session.ask(DEAR, error=1),
        lambda: session.ask(DEAR, error=1, request="r"),
        lambda: session.ask(DEAR, error=1, most=price),
        lambda: list(session.several([DEAR], error=1).ask()),
        lambda: list(session.several([DEAR, "count smoker = true"], error=1).ask()),
    ):
        with pytest.raises(InsufficientBudgetError) as refusal:
            ask()
        assert refusal.value.requested == price.amount
        assert "ask without `error` first" in refusal.value.remedy
        assert not spent(session)
    with pytest.raises(PriceRoseError):
        session.ask(DEAR, error=1, most=session.remaining)
    assert not spent(session)
    counted = session.price(DEAR)  # what the remedy says: the rows are counted at a price of their own
    assert counted.units < session.remaining.units
    session.ask(DEAR)
    assert spent(session) <= counted.units
    assert session.price(DEAR, error=1).units < price.units / 4


def test_the_remedy_of_a_price_that_cannot_be_paid_is_one() -> None:
    """Counting first is no help where that cannot be paid either, or where the rows have no part in the price."""
    poor = opened(budget="{epsilon: 0.05, delta: 1e-9}", beta=0.05)
    for question, error in ((DEAR, 1.0), ("count smoker = true", 5.0)):
        with pytest.raises(InsufficientBudgetError) as refusal:
            poor.ask(question, error=error)
        assert "first" not in refusal.value.remedy
    assert not spent(poor)


@pytest.mark.parametrize("request_id", [None, "r"])
def test_a_refusal_after_a_charge_says_what_was_charged_and_what_is_left(request_id: str | None) -> None:
    session, question = opened(), "SELECT avg(age) FROM t WHERE place = 'c'"
    with pytest.raises(RefusedAfterChargeError, match=r"stays known; rho .* remains") as refusal:
        session.ask(question, error=2, request=request_id)
    told, budget = refusal.value, session.curator.ledger.budget
    assert told.charged == session.curator.ledger.spent.amount > 0
    assert told.share == budget.share(session.curator.ledger.spent)
    assert (told.remaining, told.currency) == (session.remaining.amount, "rho")
    assert f"rho {told.charged:.4g} was charged for that" in told.problem
    assert f"rho {told.remaining:.4g} remains" in told.problem
    assert session.charged_under("r").amount == (told.charged if request_id else 0)
    with pytest.raises(RefusedError) as again:
        session.ask(question, error=2, request=request_id)
    assert type(again.value) is RefusedError
    assert session.charged_under("r").amount == (told.charged if request_id else 0)


def test_what_was_counted_before_counting_failed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others can spend what the second of two counts needs."""
    session, made = opened(), Buyer.make

    def fails_once(self: Buyer, purchase: Any, asking: Any) -> Any:
        if asking.spent:
            raise InsufficientBudgetError(requested=2.0, remaining=1.0, currency="rho")
        return made(self, purchase, asking)

    monkeypatch.setattr(Buyer, "make", fails_once)
    with pytest.raises(RefusedAfterChargeError) as refusal:
        session.ask("SELECT avg(age) FROM t WHERE sex = 'F'", error=1)
    assert refusal.value.charged == session.curator.ledger.spent.amount > 0
    before = session.curator.ledger.spent.amount
    with pytest.raises(RefusedAfterChargeError) as refusal:
        session.ask("SELECT smoker, count(*), sum(age) FROM t GROUP BY smoker", uncertified=False)
    assert refusal.value.charged == pytest.approx(session.curator.ledger.spent.amount - before)


def test_what_cannot_be_paid_is_refused() -> None:
    session = opened(budget="{epsilon: 0.5, delta: 1e-9}", beta=0.05)
    with pytest.raises(InsufficientBudgetError):
        session.ask("count smoker = true", error=5)
    assert not spent(session)


@pytest.mark.parametrize(
    "terms", [{"mechanism": "direct"}, {"budget": "{epsilon: 900}"}, {"neighbours": "add-remove"}]
)
def test_other_sessions_keep_it_too(terms: dict[str, str]) -> None:
    session = opened(**terms)  # type: ignore[arg-type]
    for question, error, truth in (QUESTIONS[0], QUESTIONS[4]):
        price, before = session.price(question, error=error), spent(session)
        ((value, low, high),) = numbers(session.ask(question, error=error))
        assert low <= truth <= high
        assert max(high - value, value - low) <= error * (1 + 1e-9)
        assert spent(session) - before <= price.units


def test_a_share_of_a_private_number_of_rows_counts_them_first() -> None:
    session = opened(neighbours="add-remove")
    session.ask("count smoker = true", error=300)  # after which the number of all rows is not known
    price, before = session.price("share smoker = true", error=0.05), spent(session)
    answer = session.ask("share smoker = true", error=0.05)
    assert abs(float(answer.value) - rows().smoker.mean()) <= float(answer.error) <= 0.05
    assert 0 < spent(session) - before <= price.units


def test_noise_that_is_certain() -> None:
    budget = "{epsilon: 4, delta: 1e-6, key_delta: 1e-7, filter: renyi}"
    session = opened(budget=budget, noise="bounded", beta=0.05)
    answer = session.ask("count smoker = true", error=900)
    assert answer.noise == "bounded"
    assert abs(float(answer.value) - rows().smoker.sum()) <= float(answer.error) <= 900


def test_another_process_goes_on_with_it() -> None:
    """What was bought is read back: the same request costs nothing more, and the same question neither."""
    table = declared(NAMES, budget="{epsilon: 200, delta: 1e-9}")
    ledger = MemoryLedger(table.budget)
    question = "SELECT avg(age) FROM t WHERE sex = 'F'"
    first = opened(ledger=ledger, name="s").ask(question, error=1, request="r")
    before = ledger.spent
    again = opened(ledger=ledger, name="s")
    told = again.ask(question, error=1, request="r")
    assert numbers(told) == numbers(first)
    assert told.cost == first.cost
    assert ledger.spent == before
    assert not again.price(question, error=1).units
    with pytest.raises(RequestConflictError):
        again.ask(question, error=0.7, request="r")


def test_competitive_ratio_with_errors_of_their_own() -> None:
    """At every moment at most 3/2 of direct answers to the same questions, and three single counts."""
    session, direct = opened(beta=0.05, queries=500), opened(beta=0.05, queries=500, mechanism="direct")
    unit = session._buyer.policy._single_price * UNITS
    rng = np.random.default_rng(7)
    for i in range(40):
        low = int(rng.integers(0, 4)) * 20
        question = f"count age >= {low} and age < {low + 20} and sex = {'FM'[i % 2]}"
        error = None if i % 3 else float(rng.choice([100, 200, 900]))
        for one in (session, direct):
            price, before = one.price(question, error=error), spent(one)
            one.ask(question, error=error)
            assert spent(one) - before <= price.units
        assert spent(session) <= 1.5 * spent(direct) + 3 * unit


def test_a_repeated_request_with_an_error_pays_once_and_is_told_from_all_that_is_known_then() -> None:
    """What `ask` says of requests: own counts stay the same, and an answer with an error may come back closer."""
    session = opened()
    question, own = "SELECT avg(age) FROM t WHERE sex = 'F'", "count sex = F and place = b"
    first, counted = session.ask(question, error=4, request="x"), session.ask(own, request="own")
    session.ask(question, error=1, request="y")
    session.ask(own, error=40, request="z")
    before = spent(session)
    again, recounted = session.ask(question, error=4, request="x"), session.ask(own, request="own")
    assert spent(session) == before
    assert again.cost == first.cost
    assert again.cost.units > 0
    [(_, low, high)], [(value, closer_low, closer_high)] = numbers(first), numbers(again)
    assert low <= closer_low <= value <= closer_high <= high
    assert closer_high - closer_low <= 2.0 + 1e-6 < high - low
    assert numbers(recounted) == numbers(counted)
    assert recounted.cost == counted.cost


SPREADS: dict[str, Any] = {
    "even": lambda rng: rng.uniform(0, 1e5, ROWS),
    "skew": lambda rng: rng.gamma(2, 9_000, ROWS).clip(0, 1e5),
    "high": lambda rng: rng.normal(8.5e4, 1e4, ROWS).clip(0, 1e5),
    "none": lambda _: np.full(ROWS, 5e4),
}


def incomes(kind: str) -> tuple[Session, pd.DataFrame]:
    """A session over incomes of which the standard deviation is up to a third of their range, or 0."""
    rng = np.random.default_rng(5)
    people = pd.DataFrame({"income": np.round(SPREADS[kind](rng)), "sex": rng.choice(["F", "M"], ROWS)})
    table = declared(("income", "sex"), budget="{epsilon: 1000, delta: 1e-9}")
    project = us.Project.frame(people, table, noise=SeededNoise(4))
    return us.session(project, alpha=0.02, beta=LUCK), people


def likely(session: Session, values: pd.Series, what: str, error: float) -> float:
    """What the sums of an answer cost by the delta method, if what they are about were known: three counts."""
    places = values / 1e5
    mean, deviation = places.mean(), places.std(ddof=0)
    off = 2 * deviation * error / 1e5 if what == "stddev_pop" else error / 1e10
    width = off * len(places) / (1 + 2 * mean + abs(mean**2 - deviation**2))
    return 3 * session.price("count sex = M", error=width).units


@pytest.mark.parametrize(
    ("kind", "what", "part", "where"),
    [
        ("even", "stddev_pop", 0.4, " WHERE sex = 'F'"),
        ("skew", "stddev_pop", 0.4, ""),
        ("high", "var_pop", 0.3, ""),
        ("none", "stddev_pop", 2.5, ""),
    ],
)
def test_deviations_keep_their_error_for_about_what_it_must_cost(
    kind: str, what: str, part: float, where: str
) -> None:
    """Fresh, and once the average is known: within its error, its price and a few times the estimate."""
    prices: list[int] = []
    for known in range(2):
        session, people = incomes(kind)
        values = people[people.sex == "F"].income if where else people.income
        truth = values.std(ddof=0) if what == "stddev_pop" else values.var(ddof=0)
        error, question = part * (truth or 3_000), f"SELECT {what}(income) FROM t{where}"
        if known > 0:
            session.ask(f"SELECT avg(income) FROM t{where}", error=1_000)
        price, before = session.price(question, error=error).units, spent(session)
        ((value, low, high),) = numbers(session.ask(question, error=error))
        prices.append(price)
        assert low <= truth <= high
        assert max(high - value, value - low) <= error * (1 + 1e-9)
        assert spent(session) - before <= price
        if truth:
            assert spent(session) - before <= 4 * likely(session, values, what, error)
        assert not session.price(question, error=error).units
    assert prices[1] <= 1.05 * prices[0]


def test_a_deviation_is_answered_for_its_price_whatever_is_known() -> None:
    """It was charged for and refused where the sum of the values was known, and that of their squares was not."""
    session, people = incomes("skew")
    session.ask("SELECT avg(income) FROM t WHERE sex = 'F'", error=500)
    for sql, error in (
        ("SELECT stddev(income) FROM t WHERE sex = 'F'", 2_000.0),
        ("SELECT stddev(income) FROM t", 1_500.0),
        ("SELECT sex, stddev(income) FROM t GROUP BY sex", 4_000.0),
    ):
        price, before = session.price(sql, error=error).units, spent(session)
        for value, low, high in numbers(session.ask(sql, error=error))[:2]:  # a third group has no rows
            assert max(high - value, value - low) <= error * (1 + 1e-9)
            assert low <= people.income.std() * 1.02
            assert people.income.std() <= high * 1.02
        assert spent(session) - before <= price


def test_what_cannot_be_paid_by_the_worst_case_may_be_after_a_wider_error() -> None:
    session, people = incomes("high")
    question, truth = "SELECT stddev_pop(income) FROM t", people.income.std(ddof=0)
    with pytest.raises(RefusedError) as refusal:
        session.ask(question, error=0.05 * truth)
    assert "wider" in str(refusal.value)
    assert not spent(session)
    for part in (0.6, 0.2, 0.05):
        price, before = session.price(question, error=part * truth), spent(session)
        session.ask(question, error=part * truth)
        assert spent(session) - before <= price.units


def test_a_share_of_a_private_number_of_rows_keeps_its_error():
    """It is the most off where its interval ends at the fewest rows, which is no end of what is known of it."""
    session = opened(neighbours="add-remove", beta=0.05)
    session.ask("share smoker = true")  # with the number of rows
    for question, error in (("share place = a", 0.01), ("share sex = F", 0.01), ("share place = a", 0.004)):
        price, before = session.price(question, error=error).units, spent(session)
        answer = session.ask(question, error=error)
        assert float(answer.error.max()) <= error * (1 + 1e-9)
        assert spent(session) - before <= price


def test_several_shares_tell_the_price_of_the_number_of_rows_once():
    session = opened(neighbours="add-remove", beta=0.05)
    shares = ["share smoker = true", "share sex = F", "share place = a"]
    alone = session.price(shares[0], error=0.01).units
    assert session.several(shares, error=0.01).price.units < 1.5 * alone


def test_noise_that_is_surely_bounded_refuses_an_error_that_is_too_small_in_words():
    budget = "{epsilon: 1000, delta: 1e-2, key_delta: 5e-3, filter: renyi}"
    session = opened(budget=budget, noise="bounded", alpha=0.001, beta=0.05)
    with pytest.raises(RefusedError, match="no noise of this session keeps an error of 2"):
        session.price("SELECT stddev(age) FROM t WHERE smoker", error=2)
    assert spent(session) == 0
    with pytest.raises(RefusedAfterChargeError, match="no noise of this session keeps an error"):
        session.ask("SELECT avg(age) FROM t WHERE place = 'c'", error=1.2)


def test_a_wider_error_is_advised_first_only_where_it_tells_more():
    session = opened(budget="{epsilon: 1, delta: 1e-9}", beta=0.05)
    for question, error in (("SELECT median(age) FROM t WHERE smoker", 5), ("count smoker = true", 0.2)):
        with pytest.raises(InsufficientBudgetError) as refused:
            session.ask(question, error=error)
        assert "tells how large the number is" not in str(refused.value)
