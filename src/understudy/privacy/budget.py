"""A budget: one total that everything spent on a table must stay under."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any

from understudy.errors import InsufficientBudgetError, ParameterError, RefusedError
from understudy.pages import notebook
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.cost import (
    DELTA_UNITS,
    UNITS,
    ZCDP,
    Cost,
    PureDP,
    delta_units,
    pure,
    rounded_up,
)
from understudy.privacy.event import Event, LaplaceNoise, Pure
from understudy.privacy.filter import ZCDP_FILTER, Filter, filter_of
from understudy.privacy.price import Currency, Price
from understudy.rational import MAX_EPSILON, Number, exact, privacy_parameter


@dataclass(frozen=True, repr=False)
class Budget:
    """The total that everything spent on a table must stay under, for ever: an ε, or an ε with a δ.

    Where δ is 0, costs are in ε and add up to ε at most. Else they are in ρ, what Gaussian noise of Δ²/(2σ²)
    = ρ costs, and a `filter` says what other events cost and how much there is in all: with `zcdp`, the usual
    one, costs are the ρ of zero-concentrated differential privacy and add up to the largest ρ for which
    ρ-zCDP implies (ε, δ)-DP; `privacy.filter` has the others. `Budget.of` makes one from numbers as people
    write them.

    `epsilon` and `delta` are the ε and the δ, as exact fractions. `key_delta` is the part of δ that events may be
    charged themselves: those of key selection and of bounded noise, which can fail with a small probability
    (`event.Event.delta_cost`). Only the rest turns ρ into ε, so that ρ stays under a somewhat smaller cap. Both
    caps are fixed beforehand, and then all events together are (ε, δ)-DP, however the next one is chosen. Each
    fails with probability δᵢ at most, whatever was said before, so that one of them does with probability δ' = Σδᵢ
    at most; on either of two neighbours there is an event E of probability 1 - δ', and given that, all that was
    said is Σρᵢ-zCDP, hence (ε, δ'')-DP. So P[S] ≤ (1 - δ')·P[S | E] + δ' is at most (1 - δ')(e^ε·P'[S | E'] + δ'')
    + δ' ≤ e^ε·P'[S] + δ' + δ''. (Bun and Steinke 2016, section 8.)

    >>> Budget.of(1).cap.amount, round(Budget.of(1, 1e-6).cap.amount, 4)
    (1.0, 0.0244)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    key_delta: Fraction = Fraction(0)
    filter: Filter = ZCDP_FILTER

    @classmethod
    def of(
        cls,
        epsilon: Number,
        delta: Number = 0,
        *,
        key_delta: Number = 0,
        filter: str = "zcdp",  # the word of the declaration, and of the literature
        order: Number | None = None,
        reserve: Number | None = None,
    ) -> Budget:
        """A budget of `epsilon` and `delta`, kept as exact fractions of the numbers as they are written.

        A `delta` of 0 is pure ε-DP. `key_delta` is a part of `delta`, and less than all of it. `filter` is `zcdp`,
        `renyi` or `gdp` (`privacy.filter`); `order` is the Rényi order of the second, and `reserve` the part of
        the third that is never spent: without them it is the best order for the budget, and 3%. Raises a
        `ParameterError` where a number is out of range, or is given for a filter that has none such.
        """
        small, keys = exact(delta, "delta"), exact(key_delta, "key_delta")
        if not 0 <= small < 1:
            raise ParameterError(f"delta must be at least 0 and below 1, not {delta}")
        if keys and not 0 < keys < small:
            raise ParameterError(
                f"key_delta is a part of delta, more than 0 and less than {delta}, not {key_delta}",
                remedy="Leave some of delta for noise: half of it, for example",
            )
        whole = privacy_parameter(epsilon)
        return cls(whole, small, keys, filter_of(filter, whole, small - keys, order=order, reserve=reserve))

    @property
    def conversion_delta(self) -> Fraction:
        """The part of δ that turns ρ into ε: all of it but what events may be charged themselves."""
        return self.delta - self.key_delta

    def check_delta(self, event: Event, spent: int) -> int:
        """The units of δ, of 10⁻³⁰ each, that an `event` is charged itself, beside `spent` of them before.

        Raises a `RefusedError` where this budget has none for it, and an `InsufficientBudgetError` where too
        little of it is left.
        """
        units = delta_units(event)
        if units and not self.key_delta:
            raise RefusedError(
                "this can fail with a small probability, a delta of its own, and the budget has none for it: "
                + ("it has no delta" if self.is_pure else "all of its delta turns rho into epsilon"),
                remedy="Declare a part of delta for it before the first question is paid for: "
                "`budget: {epsilon: 1, delta: 1e-9, key_delta: 5e-10}`. Nothing was spent",
            )
        left = self.delta_cap - spent
        if units > left:
            raise InsufficientBudgetError(
                requested=units / DELTA_UNITS,
                remaining=max(left, 0) / DELTA_UNITS,
                currency="delta",
                remedy="Ask with a smaller delta",
            )
        return units

    @cached_property
    def delta_cap(self) -> int:
        """`key_delta` in whole units, rounded down: what all events together may be charged of δ themselves."""
        return floor(self.key_delta * DELTA_UNITS)

    @cached_property
    def is_pure(self) -> bool:
        """Whether delta is 0: then costs are in ε, else in ρ."""
        return self.delta == 0

    @cached_property
    def cap(self) -> Cost:
        """The total as a cost, in ε or in ρ, rounded down to the whole units in which costs are counted."""
        if self.is_pure:
            return PureDP(floor(self.epsilon * UNITS))
        return ZCDP(floor(self.filter.cap(self.epsilon, self.conversion_delta) * UNITS))

    @property
    def concentrated(self) -> float | None:
        """The ρ for which all that this budget ever pays for is ρ-zCDP, but for `key_delta`; None where unknown.

        That is the cap of `zcdp`, and the whole of `gdp`. One Rényi order says nothing about the others, and
        a pure ε says more.
        """
        found = None if self.is_pure else self.filter.concentrated(Fraction(self.cap.units, UNITS))
        return None if found is None else float(found)

    def uncapped(self) -> Budget:
        """A budget with the same prices and a cap so high that no list of events reaches it: for pricing alone."""
        return replace(self, epsilon=Fraction(MAX_EPSILON), filter=self.filter.uncapped())

    @property
    def currency(self) -> Currency:
        """The currency of everything that this budget pays for: `epsilon` or `rho`."""
        return self.cap.currency

    @property
    def whole(self) -> Price:
        """The whole budget as a price, in its currency."""
        return Price.of_cost(self.cap)

    def alone(self, epsilon: Number, delta: Number | None = None) -> Budget:
        """A budget for something that alone is (ε, δ)-DP; without a `delta`, the δ is this budget's own.

        Raises a `ParameterError` where `epsilon` or `delta` is out of range. Pure, its whole is ε. With a δ it is
        the largest ρ, in whole units, for which ρ-zCDP implies (ε, δ)-DP, or where this budget is kept in GDP,
        what that implies if it is more. What events may be charged of δ themselves is not part of that δ.
        """
        alone = Budget.of(epsilon, self.conversion_delta if delta is None else delta)
        if alone.is_pure or self.is_pure:
            return alone
        return replace(alone, filter=self.filter.part(alone.epsilon, alone.delta))

    def part(self, epsilon: Number) -> Price:
        """The price of something that alone is (`epsilon`, δ)-DP: the whole of the budget that `alone` gives.

        It is no more than all of this budget, unless `epsilon` is more than that of this budget: then a ledger
        refuses it. Raises a `ParameterError` where `epsilon` is out of range.
        """
        part = self.alone(epsilon)
        fits = part.epsilon <= self.epsilon
        return Price.of_cost(min(part.cap, self.cap, key=lambda cost: cost.units) if fits else part.cap)

    def share(self, cost: Cost) -> float:
        """The part of the whole budget that a `cost` is: 0 for nothing, 1 for all of it."""
        return cost.units / self.cap.units if self.cap.units else 1.0

    def epsilon_of(self, cost: Cost) -> float:
        """The ε that a `cost` alone amounts to, beside this budget's own δ; never more than the whole budget's.

        With a δ, that is the ε of Gaussian noise that costs as much. What was spent, of whatever kind, is told by
        `spent_epsilon`.
        """
        if self.is_pure:
            return cost.amount
        return min(zcdp_epsilon(cost.amount, float(self.conversion_delta)), float(self.epsilon))

    def spent_epsilon(self, cost: Cost) -> float:
        """The ε for which all events that have cost `cost` together are (ε, δ)-DP, with this budget's own δ.

        It is never more than the whole budget's.
        """
        if self.is_pure:
            return cost.amount
        spent = Fraction(cost.units, UNITS)
        return min(self.filter.epsilon(spent, self.conversion_delta), float(self.epsilon))

    def floor_told(self) -> str:
        """Why the ε of what was spent starts high, in words; empty where it starts at 0.

        The part of the budget that was spent tells more: it grows with every charge by what the charge takes.
        """
        least = 0.0 if self.is_pure else self.filter.floor(self.conversion_delta)
        if not least:
            return ""
        why = "one Rényi order" if self.filter.name == "renyi" else "the reserve"
        return f"by {why} even the first charge comes to epsilon {least:.3g}: go by the part that is spent"

    def epsilon_within(self, price: Price, unit: Pure) -> Fraction:
        """The largest ε of an event of the kind of `unit`, which has ε = 1, that costs no more than `price` here.

        In epsilon that is the amount. In rho the filter says what such events cost, and ε is rounded down to
        twelve digits behind the point. Whoever makes an event for a price asks here, so that a plan in ρ is
        kept under every filter. Raises a `ParameterError` where `unit` has another ε.
        """
        if unit.epsilon != 1:
            raise ParameterError("the unit of a price is an event of epsilon 1")
        return price.amount if price.currency == "epsilon" else self.filter.most_epsilon(price.amount, unit)

    def most(self, price: Price) -> Cost:
        """The most that something costs here which keeps to a `price`; of ε-DP, what the worst of that kind costs.

        Raises a `RefusedError` where the price is in rho and the budget has no delta.
        """
        if price.currency == "epsilon":
            return self.price(Pure(epsilon=price.amount))
        if self.is_pure:
            raise RefusedError("a budget of pure epsilon pays for nothing that is priced in rho")
        return ZCDP(rounded_up(price.amount))

    def price(self, event: Event) -> Cost:
        """What one `event` costs on its own, in this budget's currency, rounded up to whole units.

        Raises a `RefusedError` where it has no price in that currency: normal noise under a budget of pure ε.
        """
        return pure(event) if self.is_pure else ZCDP(rounded_up(self.filter.price(event)))

    def joins(self, noise: Event) -> bool:
        """Whether `noise` on counts is priced jointly with other such noise (`privacy.joint`).

        Its price has to be the currency's own: in proportion to how far counts move in ε, to the square of
        that in ρ.
        """
        return isinstance(noise, LaplaceNoise) if self.is_pure else self.filter.joins(noise)

    def described(self) -> dict[str, Any]:
        """The filter, as replies tell it: its name, what it was declared with, and what a ρ means in words."""
        if self.is_pure:
            return {}
        declared = {key: value for key, value in self.filter.terms().items() if not key.endswith("_units")}
        return {"filter": self.filter.name, **declared, "meaning": self.filter.described()}

    def total(self, events: Iterable[Event]) -> Cost:
        """What a list of `events` costs together: a deterministic function of the list.

        Sums are a valid *filter*: the next event may be chosen, with its parameters, after seeing every earlier
        answer, as long as the running sum never passes the cap. Pure: on every transcript the likelihood ratio is
        at most the product of e^εᵢ. zCDP: exp((α-1)L - α(α-1)Σρᵢ) is a supermartingale for each order α.
        [FeldmanZrnic21] The other filters: `privacy.filter`. Raises a `RefusedError` where an event has no price
        in the budget's currency.
        """
        units = sum(self.price(event).units for event in events)
        return PureDP(units) if self.is_pure else ZCDP(units)

    def __repr__(self) -> str:
        return f"Budget({self})"

    def _repr_html_(self) -> str:
        """The budget in words; nothing here knows what was spent of it, which the ledger does."""
        cap = self.cap
        kept = f"{cap.currency} {cap.amount:.6g}"
        known = {"epsilon": f"{float(self.epsilon):g}", "delta": f"{float(self.delta):g}", "kept as": kept}
        if self.filter != ZCDP_FILTER:
            known["filter"] = self.filter.described()
        if self.key_delta:
            known["of delta, for keys"] = f"{float(self.key_delta):g}"
        note = "The total for a table, for ever. What was spent of it is in the project's ledger."
        return notebook.panel("Budget", notebook.facts(known), note=note)

    def __str__(self) -> str:
        pure_part = f"epsilon {float(self.epsilon):g}"
        if self.is_pure:
            return pure_part
        keys = f" ({float(self.key_delta):g} of it for keys)" if self.key_delta else ""
        return f"{pure_part}, delta {float(self.delta):g}{keys}{self.filter}"
