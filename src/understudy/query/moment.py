"""What a row adds to a sum over measured attributes: a polynomial in the places of its values between their
bounds.

A measure x with bounds a and b has the place t = (x - a)/(b - a) between 0 and 1, a whole number of steps over
`Bins.steps`. Sums of x, of x², of x·y follow from the number of rows and from sums of polynomials in places, which
this module names. There are three families, for three ways of paying:

    positions   t, t², t·s: between 0 and 1, as the weights of a linear query are.
    centred     t - 1/2, 4t² - 4t + 1/2, 2(t - 1/2)(s - 1/2): between -1/2 and 1/2, so that one person who is added
                or removed moves them by half as much. For noise that is paid by squares (Gaussian).
    shares      polynomials that are nowhere negative and add up to 1 (Bernstein's): each row gives one unit, parts
                of it to each of them, so that side by side they move no further than one count does. For noise
                that is paid by distances (Laplace).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

import numpy as np
from numpy.typing import NDArray

from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError

Exponents = tuple[int, ...]
Polynomial = dict[Exponents, Fraction]

_HALF = Fraction(1, 2)

POLYNOMIALS: dict[str, Polynomial] = {
    "position": {(1,): Fraction(1)},
    "square": {(2,): Fraction(1)},
    "product": {(1, 1): Fraction(1)},
    "centred": {(1,): Fraction(1), (0,): -_HALF},
    "centred square": {(2,): Fraction(4), (1,): Fraction(-4), (0,): _HALF},
    "centred product": {(1, 1): Fraction(2), (1, 0): Fraction(-1), (0, 1): Fraction(-1), (0, 0): _HALF},
    "share low": {(0,): Fraction(1), (1,): Fraction(-1)},
    "share high": {(1,): Fraction(1)},
    "share 0 of 2": {(0,): Fraction(1), (1,): Fraction(-2), (2,): Fraction(1)},
    "share 1 of 2": {(1,): Fraction(2), (2,): Fraction(-2)},
    "share 2 of 2": {(2,): Fraction(1)},
    "share low, low": {(0, 0): Fraction(1), (1, 0): Fraction(-1), (0, 1): Fraction(-1), (1, 1): Fraction(1)},
    "share low, high": {(0, 1): Fraction(1), (1, 1): Fraction(-1)},
    "share high, low": {(1, 0): Fraction(1), (1, 1): Fraction(-1)},
    "share high, high": {(1, 1): Fraction(1)},
}
"""The polynomials by name: the exponents of the places, and their coefficients. The names stand in ledgers."""

UNITS = (
    ("share low", "share high"),
    ("share 0 of 2", "share 1 of 2", "share 2 of 2"),
    ("share low, low", "share low, high", "share high, low", "share high, high"),
)
"""Polynomials that add up to 1, and are nowhere negative."""

RISING = ("position", "square", "product")
"""Those that rise with every place."""


@dataclass(frozen=True)
class Moment:
    """One of the `POLYNOMIALS`, of the places of the named measures.

    Raises a `QueryError` where the polynomial is unknown, or is one of another number of measures.
    """

    kind: str
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in POLYNOMIALS or len(self.names) != len(next(iter(self.polynomial))):
            raise QueryError(f"there is no moment {self.kind!r} of {len(self.names)} measures")

    @property
    def polynomial(self) -> Polynomial:
        """The exponents of the places and their coefficients."""
        return POLYNOMIALS[self.kind]

    @property
    def low(self) -> Fraction:
        """The least that a row adds."""
        return -_HALF if self.kind.startswith("centred") else Fraction(0)

    @property
    def high(self) -> Fraction:
        """The most that a row adds."""
        return _HALF if self.kind.startswith("centred") else Fraction(1)

    @property
    def unit(self) -> tuple[str, ...]:
        """The polynomials that add up to 1 with this one, itself among them; nothing where it is no share."""
        return next((unit for unit in UNITS if self.kind in unit), ())

    def measures(self, domain: Domain) -> tuple[Bins, ...]:
        """The attributes; raises a `QueryError` where one is not declared with a resolution."""
        return tuple(measure(domain, name) for name in self.names)

    def key(self, domain: Domain) -> str:
        """A name for what a row adds: other bounds or another resolution make another one."""
        read = ", ".join(
            f"{a.identity} {a.lower_bound}..{a.upper_bound}/{a.resolution}" for a in self.measures(domain)
        )
        return f"{self.kind} of {read}"

    def describe(self) -> str:
        """The moment in words, for people who read a ledger."""
        return f"{self.kind} of {', '.join(self.names)}"

    def monomials(self) -> tuple[Exponents, ...]:
        """The products of steps whose sums are needed, the number of rows apart."""
        return tuple(exponents for exponents in self.polynomial if any(exponents))

    def steps(self, domain: Domain, sums: Mapping[Exponents, Sequence[int]], resolution: int) -> list[int]:
        """The sum of what rows add, in steps of 1/`resolution`, from exact sums of products of whole steps.

        It is rounded once, to the nearest. Rounding takes numbers that are at most d apart, d whole, to whole
        numbers that are at most d apart.
        """
        sizes = [attribute.steps for attribute in self.measures(domain)]
        below = {e: prod(size**power for size, power in zip(sizes, e, strict=True)) for e in self.polynomial}
        whole = lcm(*(c.denominator * below[e] for e, c in self.polynomial.items()))
        factors = [(sums[e], int(c * whole / below[e])) for e, c in self.polynomial.items()]
        cells = len(next(iter(sums.values())))
        found: list[int] = []
        for cell in range(cells):
            exact = sum(int(column[cell]) * factor for column, factor in factors)
            found.append((2 * exact * resolution + whole) // (2 * whole))
        return found

    def value(self, places: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """What rows at the given places add: for estimates that nobody vouches for, and for tests."""
        total: NDArray[np.float64] = np.zeros(1)
        for exponents, coefficient in self.polynomial.items():
            term: NDArray[np.float64] = np.ones(1)
            for place, power in zip(places, exponents, strict=True):
                term = term * place**power
            total = total + float(coefficient) * term
        return total


def measure(domain: Domain, name: str) -> Bins:
    """The attribute of that name, if it is declared with a resolution; else a `QueryError` that says so."""
    attribute = domain[name]
    if not isinstance(attribute, Bins) or attribute.resolution is None:
        raise QueryError(
            f"{name} is not declared as a measure",
            remedy=f"its custodian can add a `resolution` to the bounds of {name}",
        )
    return attribute
