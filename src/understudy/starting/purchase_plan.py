"""What questions, keys and column profiles would cost and how far off they would be, before a table is opened.

Everything is priced by the code that will charge for it: a question by a project over a table that nobody has,
keys and profiles by the terms of their purchases. Where an error is wanted, the least epsilon is searched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, inf, log10, sqrt

from understudy.answer.answer import Answer
from understudy.answer.sql_answer import SqlAnswer
from understudy.curator.curator import Curator
from understudy.curator.key_terms import KeyTerms, key_terms, key_terms_of_people
from understudy.curator.prepared_question import PreparedQuestion
from understudy.curator.unseen import UnseenTable
from understudy.declaration.declaration import Declaration
from understudy.errors import ParameterError, RefusedError
from understudy.ledger.memory import MemoryLedger
from understudy.mechanism.additive import error_of
from understudy.mechanism.column_profile.profile import FINAL, ColumnProfiling
from understudy.mechanism.key_selection import certain_at
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Cost, delta_units
from understudy.privacy.event import Event
from understudy.privacy.noise_name import Noise
from understudy.privacy.relation import Relation
from understudy.project import Project
from understudy.rational import Number, exact, positive, probability
from understudy.starting.find_keys import USUAL_PART, no_delta_for_keys
from understudy.starting.means import DELTA_SPENT
from understudy.starting.start import LEAST_PEOPLE, PART, budget_of

SMALLEST = 2.0**-30
"""The part of the largest epsilon below which none is tried."""

DIGITS = 4
"""Digits of an epsilon that was searched for; it is rounded up."""


@dataclass(frozen=True, slots=True)
class PlannedError:
    """How far off one number would be: `what` it is, the half-width `error`, and its `unit`.

    The error is None where none can be known beforehand.
    """

    what: str
    error: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class PurchasePlan:
    """What one purchase would cost and how far off it would be.

    what      the question, or what else is bought
    epsilon   the price as it is given to `ask`, `keys` or `start`; for `start` it is the whole budget's
    cost      what the ledger would charge, if the purchase shared nothing with earlier ones
    delta     what it would be charged of the budget's delta for keys
    share     the part of the whole budget that `cost` is
    errors    how far off the numbers would be; the first one is the one that a wanted error is about
    noise     of a question, which noise it would get: errors with `bounded` are certain; None where it is public
    like_it   of a question, how many such the whole budget pays for, one by one; None where it costs nothing
    reached   False where the whole budget is too little for the wanted error: the plan is then that of the whole
    """

    what: str
    epsilon: float
    cost: Cost
    delta: Fraction
    share: float
    errors: tuple[PlannedError, ...]
    reached: bool = True
    noise: str | None = ""
    like_it: int | None = None

    @property
    def worst(self) -> float:
        """The error that a wanted one is compared with."""
        first = self.errors[0].error
        return inf if first is None else first


def plan_question(
    declaration: Declaration,
    question: str,
    *,
    rows: int,
    epsilon: Number | None = None,
    error: Number | None = None,
    beta: Number = 0.05,
    noise: Noise = "auto",
) -> PurchasePlan:
    """What a question would cost and how far off its answer would be, for an `epsilon`, or for the least price.

    An `error` of counts is priced as `ask` prices it; for one in another unit the least price is searched. `noise`
    is that of `ask`.

    `error` is in the unit of the answer's released column (years for ``avg(age)``), in people for plain counts, in
    ranks for quantiles of measures. Errors of shares, rates and averages are those of a table of so many `rows` in
    which all declared cells are equally frequent. Raises a ParameterError unless one of the two is given, or where
    an error is wanted of a question with several released columns; a QueryError where it is not understood.
    """
    told = replace(declaration, rows_at_least=rows) if _lacks_rows(declaration) else declaration
    ledger = MemoryLedger(declaration.budget)
    project = Project(told, Curator(UnseenTable(rows), ledger, told))  # type: ignore[arg-type]  # nothing is looked at

    def planned(prepared: PreparedQuestion[Answer | SqlAnswer], price: Number | None = None) -> PurchasePlan:
        quote, columns = prepared.quote, prepared.forecast()
        if error is not None and len(columns) > 1:
            raise ParameterError(
                f"the answer has {len(columns)} released columns, each with an error of its own",
                remedy="Plan for an error with one of them in the question, or give an epsilon",
            )
        found = [PlannedError(one.column or "the answer", one.error, one.unit) for one in columns]
        if not found:
            unit = "ranks" if quote.noise == "exponential" else "people"
            found = [PlannedError("each quantile" if unit == "ranks" else "each count", quote.error, unit)]
        event = prepared.event
        return PurchasePlan(
            question,
            quote.epsilon if price is None else float(price),
            quote.cost,
            event.delta_cost(),
            quote.share,
            tuple(found),
            noise=quote.noise,
            like_it=_like_it(declaration.budget, event),
        )

    def at(price: Number) -> PurchasePlan:
        return planned(project.prepare(question, epsilon=price, beta=beta, noise=noise), price)

    def at_part(part: Number) -> PurchasePlan:
        rho = declaration.budget.whole.amount * exact(part, "part")
        return planned(project.prepare(question, rho=rho, beta=beta, noise=noise))

    if error is not None and epsilon is None:
        if not project.forecast(question, epsilon=declaration.budget.epsilon, beta=beta):
            # In people, or in ranks: `ask` finds the price itself.
            found = planned(project.prepare(question, error=error, beta=beta, noise=noise))
            if found.share <= 1:
                return found
            most = at_part(1) if noise == "bounded" else at(declaration.budget.epsilon)
            return replace(most, reached=False)
        if noise == "bounded":  # which has no epsilon of its own
            return _planned(at_part, None, error, most=1)
    return _planned(at, epsilon, error, most=declaration.budget.epsilon)


def _like_it(budget: Budget, event: Event) -> int | None:
    """How many such questions the whole budget pays for, one by one; None where one costs nothing."""
    cost, mass = budget.price(event).units, delta_units(event)
    if not cost:
        return None
    return min(budget.cap.units // cost, budget.delta_cap // mass if mass else budget.cap.units)


def plan_keys(
    declaration: Declaration,
    *,
    epsilon: Number | None = None,
    error: Number | None = None,
    delta: Number | None = None,
    at_least: int = 10,
) -> PurchasePlan:
    """What the keys of one column would cost (`understudy keys`), and from how many people on a value is told.

    `error` is that number of people: a value that so many hold is told with probability 19/20. Raises a
    RefusedError where the budget has no delta for keys.
    """
    budget, unit = declaration.budget, declaration.unit
    if not budget.key_delta:
        raise no_delta_for_keys()
    own = budget.key_delta * USUAL_PART if delta is None else probability(delta, "delta")
    relation = Relation(declaration.neighbours)  # of people, whatever rows they have

    def at(price: Number) -> PurchasePlan:
        paid = budget.part(price)
        terms = (
            key_terms(1, paid, own, at_least, relation, kept=budget.filter)
            if unit is None
            else key_terms_of_people(unit.max_rows, paid, own, at_least, relation, kept=budget.filter)
        )
        cost = budget.price(terms.event)
        errors = _of_keys(terms, "rows" if unit is None else "people")
        return PurchasePlan(
            "keys of one column", float(price), cost, terms.event.delta_cost(), budget.share(cost), errors
        )

    return _planned(at, epsilon, error, most=budget.epsilon)


def plan_start(
    columns: int,
    *,
    relation: Relation,
    delta: Number,
    epsilon: Number | None = None,
    error: Number | None = None,
    rows: int | None = None,
    most: Number = 100,
    beta: Number = 0.05,
) -> PurchasePlan:
    """What `understudy start` buys of so many columns, for the `epsilon` of a whole budget, or for the least one.

    `error` is that of the count of one bin, in rows, if all columns held numbers. The rank of a cut is what
    noise alone usually moves it by in the middle of a column of so many `rows`: one deviation of the counts below.
    """

    def at(whole: Number) -> PurchasePlan:
        budget = budget_of(whole, delta)
        price = (budget.whole * PART).whole_units
        profiling = ColumnProfiling(columns=columns, price=price, relation=relation)
        last = profiling.rounds[-1]
        errors = [PlannedError("the count of a bin", float(error_of(last, beta, 1)), "rows")]
        if rows:
            moved = sqrt(float(last.variance) * FINAL) / 2 / rows
            errors.append(PlannedError("the rank of a cut, usually", moved, "of all rows"))
        if budget.key_delta:
            own = budget.key_delta * DELTA_SPENT
            terms = key_terms(columns, price, own, LEAST_PEOPLE, relation, kept=budget.filter)
            errors += _of_keys(terms, "rows")
        cost = budget.price(profiling.event)
        return PurchasePlan(
            f"a start with {columns:,} columns",
            float(whole),
            cost,
            Fraction(0),
            budget.share(cost),
            tuple(errors),
        )

    return _planned(at, epsilon, error, most=most)


def _lacks_rows(declaration: Declaration) -> bool:
    return declaration.rows_at_least is None and not declaration.relation.rows_are_public


def _of_keys(terms: KeyTerms, who: str) -> tuple[PlannedError, ...]:
    off = terms.selection.error(0.05)
    return (
        PlannedError("a value is told, nearly certainly, from", float(certain_at(terms.selection, off)), who),
        PlannedError("its count", float(off), who),
    )


def _planned(
    at: Callable[[Number], PurchasePlan], epsilon: Number | None, error: Number | None, *, most: Number
) -> PurchasePlan:
    """The plan at a price, or at the least price whose error is small enough."""
    if (epsilon is None) == (error is None):
        raise ParameterError("give an epsilon, to learn the error, or an error, to learn the epsilon")
    if epsilon is not None:
        return at(epsilon)
    assert error is not None
    wanted, high = float(positive(error, "error")), float(exact(most, "epsilon"))

    def reaches(price: float) -> bool:
        try:
            return at(price).worst <= wanted
        except RefusedError:
            raise
        except ParameterError:  # noise that is too large to be drawn
            return False

    best = at(most)
    if best.worst > wanted:
        return replace(best, reached=False)
    low = high * SMALLEST
    while high / low > 1 + 1e-4:
        middle = sqrt(low * high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return at(min(_rounded_up(high), float(exact(most, "epsilon"))))


def _rounded_up(number: float) -> float:
    """The number in few digits, and not less.

    >>> _rounded_up(0.0123456), _rounded_up(2.0)
    (0.01235, 2.0)
    """
    scale = 10.0 ** (DIGITS - 1 - floor(log10(number)))
    return float(f"{ceil(number * scale - 1e-9) / scale:.{DIGITS}g}")
