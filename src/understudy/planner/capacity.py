"""How many counts a budget pays for that are all within a stated number of people, by each privacy filter.

Two promises are compared. With Gaussian noise all counts are within the error together with probability 1 - β: of
k counts each gets the part β/k, so that more of them are dearer each. With bounded noise every count is within
the error for sure, whatever their number; only the filter `renyi` has a price for that, of its ρ and of the δ that
it sets aside. How much it sets aside and at which order it is kept are chosen for the error: small errors, whose
noise has heavy ends, need more of δ.

One person moves each count by one at most. Counts are added up one by one: those about different people cost less
together (`privacy.joint`). No data is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import ceil, floor
from typing import Any

from understudy.errors import ParameterError, RefusedError
from understudy.mechanism.additive import noise_for
from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.privacy.bounded_noise import MAX_REACH
from understudy.privacy.budget import Budget
from understudy.privacy.calibrate import cheapest
from understudy.privacy.cost import UNITS, delta_units
from understudy.privacy.filter import FILTERS, FilterName, RenyiFilter
from understudy.privacy.price import Price
from understudy.privacy.relation import Sensitivity
from understudy.rational import Number, exact, positive, probability

ONE = Sensitivity(1, 1)
"""How far one person moves a count."""

SET_ASIDE = (Fraction(1, 100), Fraction(1, 30), Fraction(1, 10), Fraction(3, 10), Fraction(1, 2))
"""Parts of δ to set aside that are tried where none is given."""

ORDERS = (0.6, 1.7)
"""Whole orders are tried from and to so many times the one that suits the budget best; `STEPS` of them at most."""

STEPS = 24

WIDE = 8192
"""Above this error orders are searched, not all compared: a price is a sum over all outcomes of the noise."""

SMALLER = (Fraction(1, 10_000), Fraction(1, 1_000), Fraction(1, 300))
"""Parts of δ that are tried besides above `WIDE`: ends of noise that far out weigh little."""

SEARCHED = 2
"""With how many of the parts of δ, those that pay for the most counts at the usual order, others are searched."""

MOST_COUNTS = 10**12
"""The most counts that are looked for."""


@dataclass(frozen=True)
class FilterCapacity:
    """What a budget pays for under one filter.

    filter    its name
    budget    the budget, with what the filter is declared with
    likely    how many counts are within the error, all together with probability 1 - β, with Gaussian noise
    sure      how many are within it for sure, with bounded noise; 0 where that has no price
    """

    filter: FilterName
    budget: Budget
    likely: int
    sure: int

    @cached_property
    def declared(self) -> str:
        """The line of the declaration."""
        return declared_budget(self.budget)


@dataclass(frozen=True)
class CountCapacity:
    """How many counts within `error` people each filter pays for; `beta` is that of the likely ones.

    `fixed` is the filter of a ledger that was charged already, which no declaration changes; empty without one.
    """

    error: int
    beta: float
    filters: tuple[FilterCapacity, ...]
    fixed: str = ""

    @property
    def recommended(self) -> FilterCapacity | None:
        """The filter that pays for the most counts, the first of those that do; None where none pays for one.

        Where a ledger has fixed one, it is that one or None.
        """
        found = [one for one in self.filters if self.fixed in ("", one.filter) and max(one.likely, one.sure)]
        return max(found, key=lambda one: max(one.likely, one.sure), default=None)

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """The rows of a table: the filter, and how many counts hold by either promise."""
        yield "filter", f"all with probability {1 - self.beta:g}", "all for sure"
        for one in self.filters:
            yield one.filter, f"{one.likely:,}", f"{one.sure:,}" if one.sure else "no price"

    def verdict(self) -> str:
        """The recommendation in words."""
        best = self.recommended
        if best is None and self.fixed:
            return (
                f"filter: {self.fixed}, which the first charge to the ledger has fixed, answers not even one "
                f"count within {self.error:,} people: allow a wider error"
            )
        if best is None:
            return (
                f"no filter answers even one count within {self.error:,} people: allow a wider error, or declare "
                f"a larger epsilon or delta"
            )
        how = "for sure" if best.sure >= best.likely else f"with probability {1 - self.beta:g}"
        many = max(best.sure, best.likely)
        if self.fixed:
            return (
                f"filter: {self.fixed}, which the first charge to the ledger has fixed: the whole budget pays for "
                f"{many:,} counts within {self.error:,} people {how}"
            )
        return (
            f"recommended: {best.filter}, {many:,} counts within {self.error:,} people {how}: {best.declared}"
        )

    def as_dict(self) -> dict[str, Any]:
        """The numbers in plain values."""
        return {
            "error": self.error,
            "beta": self.beta,
            "filters": [
                {"filter": one.filter, "likely": one.likely, "sure": one.sure, "declare": one.declared}
                for one in self.filters
            ],
            "recommended": None if self.recommended is None else self.recommended.filter,
            **({"fixed": self.fixed} if self.fixed else {}),
        }


def count_capacity(
    epsilon: Number,
    delta: Number,
    error: Number,
    *,
    beta: Number = 0.05,
    key_delta: Number = 0,
    fixed: Budget | None = None,
) -> CountCapacity:
    """How many counts within `error` people a budget (ε, δ) pays for, under each filter.

    `key_delta` is the part of δ that is set aside; where it is 0, `renyi` sets aside what pays for the most
    counts, and the others nothing. `fixed` is the budget of a ledger that was charged already: of its filter it is
    told what that budget pays for as a whole, and no other is recommended. Raises a ParameterError
    without a δ, and for an error below one person.

    >>> found = count_capacity(1, 1e-6, 2000, key_delta=1e-7)
    >>> [(one.filter, one.likely, one.sure) for one in found.filters]
    [('zcdp', 9327, 0), ('renyi', 9326, 15867), ('gdp', 10302, 0)]
    >>> found.recommended.declared
    'budget: {epsilon: 1, delta: 1e-06, key_delta: 1e-07, filter: renyi, order: 22}'
    """
    if not exact(delta, "delta"):
        raise ParameterError("filters keep a budget with a delta", remedy="give a delta, such as 1e-6")
    within, failure = floor(positive(error, "error")), probability(beta)
    if within < 1:
        raise ParameterError("the error of a count is at least one person")
    found: list[FilterCapacity] = []
    for name in FILTERS:
        if fixed is not None and name == fixed.filter.name:
            sure, budget = certain_counts(fixed, within), fixed
        elif name == "renyi":
            sure, budget = best_certain(epsilon, delta, within, key_delta=key_delta)
        else:
            sure, budget = 0, Budget.of(epsilon, delta, key_delta=key_delta, filter=name)
        found.append(FilterCapacity(name, budget, _likely(budget, within, failure), sure))
    kept = "" if fixed is None else fixed.filter.name
    return CountCapacity(within, float(failure), tuple(found), kept)


@dataclass(frozen=True)
class SureCounts:
    """How many counts surely within `error` people a budget pays for, where it is kept for that; 0 for none."""

    error: int
    counts: int
    budget: Budget

    def line(self) -> str:
        """The number in words."""
        if not self.counts:
            return f"for sure, with bounded noise: no count within {self.error:,} people, whose noise has no price"
        told = f"for sure, with bounded noise: {self.counts:,} counts within {self.error:,} people"
        return f"{told} under filter renyi alone, {declared_budget(self.budget)}"

    def as_dict(self) -> dict[str, Any]:
        """The number in plain values."""
        declared = {"declare": declared_budget(self.budget)} if self.counts else {}
        return {"error": self.error, "counts": self.counts, **declared}


def sure_counts(budget: Budget, error: int) -> SureCounts:
    """The most counts surely within `error` people that the ε and δ of a budget pay for under some filter."""
    counts, kept = best_certain(budget.epsilon, budget.delta, error, key_delta=budget.key_delta)
    return SureCounts(error, counts, kept)


def best_certain(epsilon: Number, delta: Number, error: int, *, key_delta: Number = 0) -> tuple[int, Budget]:
    """The most counts that are surely within `error` people, and the budget under `renyi` that pays for them.

    0 and the budget of the usual order where no such noise has a price. Whole orders and parts of δ are tried
    (`ORDERS`, `SET_ASIDE`): others could pay for a little more. For wide errors the best order is searched for,
    which finds it if more counts are paid for the nearer an order is to the best one.
    """
    usual = Budget.of(epsilon, delta, key_delta=key_delta, filter="renyi")
    aside = SET_ASIDE if error <= WIDE else (*SMALLER, *SET_ASIDE)
    parts = [exact(key_delta, "key_delta")] if key_delta else [exact(delta, "delta") * p for p in aside]

    @cache
    def counts(budget: Budget) -> int:
        return certain_counts(budget, error)

    kept = [Budget.of(epsilon, delta, key_delta=part, filter="renyi") for part in parts]
    if error > WIDE:
        kept = sorted(kept, key=counts, reverse=True)[:SEARCHED]
        tried = [*kept, *(_searched(list(_orders(one, epsilon, delta)), counts) for one in kept)]
    else:
        tried = [budget for one in kept for budget in (one, *_orders(one, epsilon, delta))]
    best = max(tried, key=counts, default=usual)
    many = counts(best)
    return (many, best) if many else (0, usual)


def _orders(usual: Budget, epsilon: Number, delta: Number) -> Iterator[Budget]:
    """The budget at whole orders near the one that suits it."""
    assert isinstance(usual.filter, RenyiFilter)
    least, most = (float(usual.filter.order) * times for times in ORDERS)
    step = max(ceil((most - least) / STEPS), 1)
    for order in range(max(ceil(least), 2), floor(most) + 1, step):
        try:
            yield Budget.of(epsilon, delta, key_delta=usual.key_delta, filter="renyi", order=order)
        except ParameterError:  # nothing to spend at this order
            continue


def _searched(budgets: list[Budget], counts: Callable[[Budget], int]) -> Budget:
    """The budget that pays for the most counts, where their number rises up to it and falls from it on."""
    first, last = 0, len(budgets) - 1
    while last - first > 2:
        third = (last - first) // 3
        one, other = first + third, last - third
        if counts(budgets[one]) < counts(budgets[other]):
            first = one + 1
        else:
            last = other
    return max(budgets[first : last + 1], key=counts)


def certain_counts(budget: Budget, error: int) -> int:
    """How many counts that are surely within `error` people a budget pays for; 0 where they have no price."""
    kept, delta = budget.filter, budget.key_delta
    if not isinstance(kept, RenyiFilter) or not delta:
        return 0
    whole = kept.order * Fraction(budget.cap.units, UNITS)
    try:
        noise = BoundedMechanism.balanced(
            min(error, MAX_REACH), ONE, order=kept.order, divergence=whole, delta=delta
        )
    except (ParameterError, RefusedError):
        return 0
    of_rho = budget.cap.units // max(budget.price(noise.event).units, 1)
    return min(of_rho, budget.delta_cap // max(delta_units(noise.event), 1))


def _likely(budget: Budget, error: int, beta: Fraction) -> int:
    """The largest k for which k counts with Gaussian noise are all within the error except with probability β."""

    def is_paid(counts: int) -> bool:
        def suffices(amount: Fraction) -> bool:
            try:
                drawn = noise_for(Price("rho", amount), ONE, rounded=budget.filter.reads_variance)
            except ParameterError:  # noise too large to draw
                return False
            return drawn.error(beta / counts) <= error

        price = noise_for(Price("rho", cheapest(suffices)), ONE, rounded=budget.filter.reads_variance)
        return counts * budget.price(price.event).units <= budget.cap.units

    if not is_paid(1):
        return 0
    few, many = 1, 2
    while many < MOST_COUNTS and is_paid(many):
        few, many = many, 4 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if is_paid(middle) else (few, middle)
    return few


def declared_budget(budget: Budget) -> str:
    """The line of a declaration that says this budget.

    >>> declared_budget(Budget.of(1, 1e-6, key_delta=1e-7, filter="renyi", order=22))
    'budget: {epsilon: 1, delta: 1e-06, key_delta: 1e-07, filter: renyi, order: 22}'
    """
    parts = {"epsilon": budget.epsilon, "delta": budget.delta, "key_delta": budget.key_delta}
    said = [f"{name}: {float(value):g}" for name, value in parts.items() if value]
    kept = budget.filter
    if kept.name != "zcdp":
        said.append(f"filter: {kept.name}")
    if isinstance(kept, RenyiFilter) and kept != RenyiFilter.suited(budget.epsilon, budget.conversion_delta):
        said.append(f"order: {float(kept.order):g}")
    return f"budget: {{{', '.join(said)}}}"
