"""Totals against what they must not be below: the worst pair of rows, and privacy-loss distributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from itertools import product
from math import exp, log1p, sqrt
from typing import Any

from audit.replay import Difference
from understudy.privacy.compose import zcdp_epsilon
from understudy.privacy.cost import UNITS, Cost, epsilon, rho
from understudy.privacy.event import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    Located,
    Pure,
    RoundedNormal,
    Selection,
    SparseVector,
)

Row = dict[str, int]


def worst_pair(events: Sequence[Located], *, pure: bool) -> Fraction:
    """max over pairs of rows (a, b) of Σ what each event costs for that pair, by trying them all.

    For rows that are replaced: a single count costs its price where one of the rows is in its region and the other
    is not; a split marginal costs half of its price (in ρ and in ε alike) for each row inside, since each moves
    one cell by half of what the price was made for.
    """
    rows = _universe(events)
    return max(
        (
            sum((_pair_cost(event, a, b, pure=pure) for event in events), Fraction(0))
            for a in rows
            for b in rows
        ),
        default=Fraction(0),
    )


def _pair_cost(event: Located, a: Row, b: Row, *, pure: bool) -> Fraction:
    price = epsilon(event.noise) if pure else rho(event.noise)
    inside = _inside(event, a) + _inside(event, b)
    if event.split:
        return price * inside / 2
    return price if inside == 1 else Fraction(0)


def _inside(event: Located, row: Row) -> int:
    return int(all(span.mask >> row[span.attribute] & 1 for span in event.region))


def _universe(events: Iterable[Located]) -> list[Row]:
    sizes = {span.attribute: span.size for event in events for span in event.region}
    names = sorted(sizes)
    return [
        dict(zip(names, codes, strict=True)) for codes in product(*(range(sizes[name]) for name in names))
    ]


def joint_is_enough(cost: Cost, events: Sequence[Located], *, pure: bool) -> list[Difference]:
    """Whether a joint total covers the worst pair of neighbours."""
    needed = worst_pair(events, pure=pure)
    if Fraction(cost.units, UNITS) >= needed:
        return []
    return [Difference("joint", f"{cost.amount:.6g} charged, {float(needed):.6g} lost by the worst pair")]


def exact_total(events: Sequence[Event], *, pure: bool) -> Fraction:
    """The plain sum, in rationals."""
    return sum((epsilon(event) if pure else rho(event) for event in events), Fraction(0))


@dataclass(frozen=True)
class SecondOpinion:
    """An epsilon of ours, and between which two numbers privacy-loss distributions put it."""

    ours: float
    low: float
    high: float


def against_distributions(
    events: Sequence[Event], total: Cost, delta: float, *, interval: float = 1e-5
) -> SecondOpinion:
    """A total as an epsilon at `delta`, beside that of dp-accounting: losses rounded down, and rounded up.

    Pure events, and each run of a sparse vector, are taken as randomised response, selections as two outcomes
    whose losses lie ε apart around 0, Gaussian noise as the continuous law: pairs that dominate what they stand
    for.
    """
    library = import_module("dp_accounting.pld.privacy_loss_distribution")
    ours = total.amount if total.currency == "epsilon" else zcdp_epsilon(total.amount, delta)
    ends = []
    for pessimistic in (False, True):
        whole = None
        for event, times in Counter(events).items():
            one = _distribution(library, event, interval=interval, pessimistic=pessimistic)
            part = one.self_compose(times)
            whole = part if whole is None else whole.compose(part)
        ends.append(0.0 if whole is None else float(whole.get_epsilon_for_delta(delta)))
    return SecondOpinion(ours, *ends)


def _distribution(library: Any, event: Event, *, interval: float, pessimistic: bool) -> Any:
    if isinstance(event, GaussianNoise | RoundedNormal):
        return library.from_gaussian_mechanism(
            sqrt(event.variance / event.l2_squared),
            value_discretization_interval=interval,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
    if isinstance(event, SparseVector):  # its runs, and what each of them tells
        shares = [share * event.epsilon / event.hits for share in (1 - event.told, event.told) if share]
        parts = [Pure(epsilon=share) for share in shares]
        first, *rest = (
            _distribution(library, part, interval=interval, pessimistic=pessimistic).self_compose(event.hits)
            for part in parts
        )
        return first.compose(rest[0]) if rest else first
    half = float(epsilon(event)) / (2 if isinstance(event, Selection) else 1)
    likely = -log1p(exp(-half))
    return library.from_two_probability_mass_functions(
        log_probability_mass_function_lower={0: likely - half, 1: likely},
        log_probability_mass_function_upper={0: likely, 1: likely - half},
        pessimistic_estimate=pessimistic,
        value_discretization_interval=interval,
    )


def table_of_events(*, times: int = 1000) -> list[Event]:
    """Noise and selections as a long life of a table has them: 0.01 of each, many times."""
    each: list[Event] = [
        LaplaceNoise(l1=Fraction(1), scale=Fraction(100)),
        Selection(epsilon=Fraction(1, 100)),
        GaussianNoise(l2_squared=Fraction(1), variance=Fraction(100**2)),
    ]
    return [event for event in each for _ in range(times)]
