"""Privacy filters: three ways to add up what adaptively chosen events cost, all in one unit of ρ.

A budget (ε, δ) is kept by one of them, which the first charge to a ledger fixes. Each has a cap and a price
for every event, and as long as the prices add up to the cap at most, on every path, everything together is
(ε, δ)-DP: the next event may be chosen, with its parameters, after seeing every earlier answer. Prices are
told in ρ, and one ρ is always what Gaussian noise with Δ²/(2σ²) = 1 costs: normal noise has the same price in
all three, and a filter is the better the larger its cap is and the less it charges for other events.

    zcdp    ρ of zero-concentrated differential privacy. `Budget.total` has the reason.
    renyi   D/a, with D the Rényi divergence of one order a. Events that are not Gaussian cost less, in part
            far less; the cap is that of zcdp where a is the order at which that cap is attained.
    gdp     μ²/2 of Gaussian differential privacy. The cap is 5 to 15% larger, of which a part stays unspent
            as the reserve that lets other events in; these cost more.

**renyi.** Let P and Q be the laws of everything that is told under two neighbours. Some outputs may be set
aside: there is a measure P' ≤ P that is a product of steps, each of which loses the mass dᵢ at most and has ∫
P'ᵢ^a·Qᵢ^(1-a) ≤ exp((a-1)·Dᵢ), given everything before. (Of what is δ-approximately zCDP, P = (1-δ)P₁ + δP₂
and Q ≥ (1-δ)Q₁, take P' = (1-δ)P₁; then ∫ P'^a·Q^(1-a) ≤ (1-δ)·∫ P₁^a·Q₁^(1-a).) Integrating from the last
step back,

    P - P' has mass Σdᵢ ≤ δ₂ at most,    ∫ P'^a·Q^(1-a) ≤ exp((a-1)·D),    D the cap on ΣDᵢ   [FeldmanZrnic21],

if both sums keep to their caps on every path. For z = ln(P'/Q) - ε, (1 - exp(-z))₊ ≤ exp((a-1)z)·(1 - 1/a)^(a-1)/a
[CKS20, Corollary 13], so that P'[S] - exp(ε)·Q[S] ≤ ∫ P'·(1 - exp(-z))₊ is at most δ₁ if

    D = ε - (ln(1/δ₁) + (a-1)·ln(1 - 1/a) - ln a)/(a-1),

and P[S] ≤ exp(ε)·Q[S] + δ₁ + δ₂. Of a budget, δ₂ is `key_delta` and δ₁ the rest of δ. As D ≤ a·ρ for every
event that has a ρ, nothing costs more than under zcdp.

**gdp.** The proof is that of `privacy.gdp`. Set-aside mass adds to δ as above, since h ≤ 1.

Joint accounting (`joint`) rests on sums along a transcript for each pair of neighbours; all three proofs are
about one pair, so its algebra stays as it is. Set-aside mass is added up flat.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor, inf, log, log1p
from typing import Any, ClassVar, Literal

from understudy.errors import ParameterError, RefusedError
from understudy.privacy.bounded_noise import BoundedNoise
from understudy.privacy.compose import zcdp_epsilon, zcdp_rho
from understudy.privacy.cost import UNITS, rho
from understudy.privacy.event import Event, GaussianNoise, Pure, RoundedNormal, known_event
from understudy.privacy.gdp import PLAIN, gdp_cap, gdp_epsilon, is_plain
from understudy.rational import MAX_EPSILON, Number, exact, square_root

FilterName = Literal["zcdp", "renyi", "gdp"]

FILTERS: tuple[FilterName, ...] = ("zcdp", "renyi", "gdp")

RESERVE = Fraction(3, 100)
"""The part of μ² that a GDP filter keeps unspent where nothing else is declared."""

ORDER_DIGITS = 10**6
"""The order that suits a budget best is rounded to whole multiples of 1 over this."""

MAX_ORDER = 10**6
"""The largest order."""

EPSILON_DIGITS = 10**12
"""The ε of an event that is made for a price is a whole multiple of 1 over this."""


@dataclass(frozen=True, slots=True)
class ZcdpFilter:
    """Costs are the ρ of zCDP; the cap is the largest ρ for which ρ-zCDP implies (ε, δ)-DP."""

    name: ClassVar[FilterName] = "zcdp"
    reads_variance: ClassVar[bool] = False
    """Whether the price of discrete Gaussian noise depends on its variance beside its ρ."""

    def cap(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The most that all events together may cost, in ρ; `delta` is what no event is charged itself."""
        return Fraction(zcdp_rho(float(epsilon), float(delta)))

    def price(self, event: Event) -> Fraction:
        """What an event costs on its own, in ρ; RefusedError where it has no price."""
        return rho(event)

    def joins(self, noise: Event) -> bool:
        """Whether what noise costs is in proportion to the squared distance that values move by."""
        return isinstance(noise, GaussianNoise | RoundedNormal)

    def most_epsilon(self, amount: Fraction, unit: Pure) -> Fraction:
        """The largest ε of an event of the kind of `unit`, which has ε = 1, that costs no more than `amount`.

        Rounded down to twelve digits behind the point. Every such event costs ε² times what `unit` costs.
        """
        return square_root(amount / rho(unit))

    def epsilon(self, spent: Fraction, delta: Fraction) -> float:
        """The ε for which what was spent so far is (ε, δ)-DP."""
        return zcdp_epsilon(float(spent), float(delta))

    def floor(self, delta: Fraction) -> float:
        """The ε that the smallest charge comes to already, by this filter's own conversion; 0 for none."""
        return 0.0

    def concentrated(self, cap: Fraction) -> Fraction | None:
        """The ρ for which everything that the cap admits is ρ-zCDP; None where there is none."""
        return cap

    def part(self, epsilon: Fraction, delta: Fraction) -> Filter:
        """The filter by which a part of a budget is (ε, δ)-DP alone."""
        return self

    def uncapped(self) -> ZcdpFilter:
        """The same prices under a cap that nothing reaches."""
        return self

    def terms(self) -> dict[str, Any]:
        """What the first entry of a ledger records of the filter, and what names it in replies."""
        return {}

    def described(self) -> str:
        """How ρ is counted, in words."""
        return "rho of zero-concentrated differential privacy (zCDP)"

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class RenyiFilter:
    """Costs are D/a, D the Rényi divergence of the order a = `order`, of which outputs may be set aside.

    Raises ParameterError for an order that is not above 1.
    """

    order: Fraction
    name: ClassVar[FilterName] = "renyi"
    reads_variance: ClassVar[bool] = False
    """Whether the price of discrete Gaussian noise depends on its variance beside its ρ."""

    def __post_init__(self) -> None:
        if not 1 < self.order <= MAX_ORDER:
            raise ParameterError(
                f"the order of a Rényi filter is more than 1 and at most {MAX_ORDER:,}, not {self.order}"
            )

    @classmethod
    def suited(cls, epsilon: Fraction, delta: Fraction) -> RenyiFilter:
        """The filter of the order at which the cap in ρ is largest, and as large as that of zCDP."""
        return cls(_best_order(epsilon, delta))

    def cap(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The cap on ΣD over a, rounded down; ParameterError where this order has none for so small an ε."""
        found = _renyi_cap(self.order, epsilon, delta)
        if found <= 0:
            raise ParameterError(
                f"a Rényi filter of the order {float(self.order):g} has nothing to spend at epsilon "
                f"{float(epsilon):g} and delta {float(delta):g}",
                remedy=f"Declare an order near {float(_best_order(epsilon, delta)):.3g}, or leave it out",
            )
        return found

    def price(self, event: Event) -> Fraction:
        """D/a of an event on its own; RefusedError where it has no price."""
        return known_event(event).renyi_cost(self.order) / self.order

    def joins(self, noise: Event) -> bool:
        """Also bounded noise: whoever moves counts by a part of what it was made for costs at most that part."""
        return isinstance(noise, GaussianNoise | RoundedNormal | BoundedNoise)

    def most_epsilon(self, amount: Fraction, unit: Pure) -> Fraction:
        return _most_epsilon(self, amount, unit)

    def epsilon(self, spent: Fraction, delta: Fraction) -> float:
        return float(self.order * spent) + self.floor(delta) if spent else 0.0

    def floor(self, delta: Fraction) -> float:
        """What is lost between D and ε at the one order, which suits the end of the budget and not its start."""
        return _overhead(float(self.order), float(delta))

    def concentrated(self, cap: Fraction) -> Fraction | None:
        """None: one order says nothing about the others."""
        return None

    def part(self, epsilon: Fraction, delta: Fraction) -> Filter:
        """That of zCDP: no price here is larger, and one order suits one ε only."""
        return ZCDP_FILTER

    def uncapped(self) -> RenyiFilter:
        return self

    def terms(self) -> dict[str, Any]:
        return {"filter": self.name, "order": str(self.order)}

    def described(self) -> str:
        order = f"{float(self.order):.8g}"
        return f"rho is the Rényi divergence of order {order}, divided by {order}"

    def __str__(self) -> str:
        return f", kept by a Rényi filter of order {float(self.order):.8g}"


@dataclass(frozen=True, slots=True)
class GdpFilter:
    """Costs are μ²/2 of Gaussian differential privacy, under a `total` of which `reserve` is never spent.

    Both are in ρ; `share` is the part of the total that was declared as reserve.
    """

    total: Fraction
    share: Fraction = RESERVE
    reserve: Fraction = Fraction(0)
    name: ClassVar[FilterName] = "gdp"
    reads_variance: ClassVar[bool] = True
    """Whether the price of discrete Gaussian noise depends on its variance beside its ρ."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ParameterError(
                f"the reserve of a GDP filter is a part of the budget, not {float(self.share):g}"
            )
        if not self.reserve:
            object.__setattr__(self, "reserve", Fraction(floor(self.share * self.total * UNITS), UNITS))
        if self.reserve <= 0:
            raise ParameterError(
                "the reserve of a GDP filter is less than one unit of the ledger",
                remedy="Declare a larger reserve, or a larger epsilon or delta",
            )

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction, share: Fraction = RESERVE) -> GdpFilter:
        """The filter of a budget (ε, δ)."""
        return cls(gdp_cap(epsilon, delta) / 2, share)

    def cap(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The total, which `of` worked out from the same budget, without the reserve.

        And without the hair that plain discrete noise takes more than it is charged (`gdp.PLAIN`).
        """
        return (self.total - self.reserve) / (1 + PLAIN)

    def price(self, event: Event) -> Fraction:
        """μ²/2 of an event at the reserve; RefusedError where it has no price."""
        return known_event(event).gdp_cost_at(2 * self.reserve) / 2

    def joins(self, noise: Event) -> bool:
        """Discrete Gaussian noise only where its price is that of normal noise (`gdp.is_plain`)."""
        if isinstance(noise, GaussianNoise):
            return noise.l2_squared == 0 or is_plain(noise.l2_squared, noise.variance, 2 * self.reserve)
        return isinstance(noise, RoundedNormal)

    def most_epsilon(self, amount: Fraction, unit: Pure) -> Fraction:
        return _most_epsilon(self, amount, unit)

    def epsilon(self, spent: Fraction, delta: Fraction) -> float:
        return gdp_epsilon(2 * (spent + self.reserve), delta) if spent else 0.0

    def floor(self, delta: Fraction) -> float:
        """The ε of the reserve, which counts as spent with the first charge."""
        return gdp_epsilon(2 * self.reserve, delta)

    def concentrated(self, cap: Fraction) -> Fraction | None:
        """The total: μ-GDP is no worse than normal noise, which is μ²/2-zCDP. [BunSteinke16, Proposition 1.6]"""
        return self.total

    def part(self, epsilon: Fraction, delta: Fraction) -> Filter:
        """A GDP filter with the same reserve, if its cap is the larger one: else that of zCDP.

        Small events cost more here than their ρ, and larger ones are ε-DP with a smaller ε than that of the part.
        """
        total = gdp_cap(epsilon, delta) / 2
        if total - self.reserve <= ZCDP_FILTER.cap(epsilon, delta):
            return ZCDP_FILTER
        return replace(self, total=total)

    def uncapped(self) -> GdpFilter:
        return replace(self, total=self.reserve + MAX_EPSILON)

    def terms(self) -> dict[str, Any]:
        units = {"reserve_units": int(self.reserve * UNITS), "total_units": int(self.total * UNITS)}
        return {"filter": self.name, "reserve": str(self.share), **units}

    def described(self) -> str:
        return (
            f"rho is mu²/2 of Gaussian differential privacy (GDP); {100 * float(self.share):.3g}% of the whole, "
            f"rho {float(self.reserve):.4g}, is a reserve that is never spent"
        )

    def __str__(self) -> str:
        return f", kept by a GDP filter with {100 * float(self.share):.3g}% in reserve"


Filter = ZcdpFilter | RenyiFilter | GdpFilter

ZCDP_FILTER = ZcdpFilter()


def filter_of(
    name: str,
    epsilon: Fraction,
    delta: Fraction,
    *,
    order: Number | None = None,
    reserve: Number | None = None,
) -> Filter:
    """The filter of that name for a budget, of which `delta` is what no event is charged itself.

    `order` is one for `renyi`, the best for the budget where there is none; `reserve`, a part of the whole,
    one for `gdp`, 3% where there is none. Raises ParameterError for another name, and for what does not
    belong to it.
    """
    if name not in FILTERS:
        raise ParameterError(f"a filter is {', '.join(FILTERS[:-1])} or {FILTERS[-1]}, not {name!r}")
    if delta == 0 and name != "zcdp":
        raise ParameterError(
            f"a budget of pure epsilon adds up epsilons, and has no filter {name!r}",
            remedy="Leave `filter` out, or declare a delta",
        )
    if order is not None and name != "renyi":
        raise ParameterError(
            "an order belongs to the filter renyi", remedy="Write `filter: renyi`, or leave it out"
        )
    if reserve is not None and name != "gdp":
        raise ParameterError(
            "a reserve belongs to the filter gdp", remedy="Write `filter: gdp`, or leave it out"
        )
    if name == "renyi":
        found = RenyiFilter.suited(epsilon, delta) if order is None else RenyiFilter(exact(order, "order"))
        found.cap(epsilon, delta)
        return found
    if name == "gdp":
        return GdpFilter.of(epsilon, delta, RESERVE if reserve is None else exact(reserve, "reserve"))
    return ZCDP_FILTER


# ---- one order


def _overhead(order: float, delta: float) -> float:
    """What is lost between D and ε at an order, in floats: for numbers that are shown."""
    return (log(1 / delta) + (order - 1) * log1p(-1 / order) - log(order)) / (order - 1)


@lru_cache(maxsize=256)
def _renyi_cap(order: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The cap on ΣD over the order, a little below: by far more than Decimal's rounding, and less than 10⁻³⁰."""
    with localcontext(_context()):
        a = Decimal(order.numerator) / Decimal(order.denominator)
        small = Decimal(delta.numerator) / Decimal(delta.denominator)
        lost = (-small.ln() + (a - 1) * (1 - 1 / a).ln() - a.ln()) / (a - 1)
        whole = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator) - lost) / a
        return Fraction(whole - Decimal(10) ** -30)


@lru_cache(maxsize=256)
def _best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order at which the cap in ρ is largest, to six digits behind the point.

    The cap rises with the order, and then falls. The arithmetic is Decimal's, so that every machine finds the
    same.
    """
    low, high = ORDER_DIGITS + 1, MAX_ORDER * ORDER_DIGITS
    while high - low > 2:
        left = low + (high - low) // 3
        right = high - (high - low) // 3
        caps = [_renyi_cap(Fraction(at, ORDER_DIGITS), epsilon, delta) for at in (left, right)]
        low, high = (low, right) if caps[0] >= caps[1] else (left, high)
    return max(
        (Fraction(at, ORDER_DIGITS) for at in range(low, high + 1)),
        key=lambda order: _renyi_cap(order, epsilon, delta),
    )


def _context() -> Context:
    return Context(prec=60, rounding=ROUND_FLOOR)


# ---- an ε for a price


@lru_cache(maxsize=1024)
def _most_epsilon(kept: RenyiFilter | GdpFilter, amount: Fraction, unit: Pure) -> Fraction:
    """`most_epsilon` by bisection: prices grow with ε."""

    def costs(steps: int) -> Fraction | float:
        try:
            return kept.price(replace(unit, epsilon=Fraction(steps, EPSILON_DIGITS)))
        except RefusedError:  # no price at all
            return inf

    guess = floor(square_root(amount / rho(unit)) * EPSILON_DIGITS)
    low, high = 0, max(guess, 1)
    while costs(high) <= amount:
        low, high = high, 2 * high
        if high > MAX_EPSILON * EPSILON_DIGITS:
            return Fraction(MAX_EPSILON)
    if low == 0 and costs(near := high * 3 // 5) <= amount:
        low = near
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if costs(middle) <= amount else (low, middle)
    return Fraction(low, EPSILON_DIGITS)
