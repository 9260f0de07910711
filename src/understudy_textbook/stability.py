"""Is this mechanism stable, and at what (ε, δ)? The exact answer, for mechanisms small enough to write down.

For students and teachers of Lecture 4, who can check every theorem on an example and read a counterexample
where a claim is false; for auditors and authors of mechanisms, who can hold a small instance of the real code
to its claim. `interactive_stability` does the same for mechanisms that answer questions.

[Lecture 4, Definition 3]  M is (ε, δ)-DP-stable if Pr[M(S) ∈ H] ≤ e^ε·Pr[M(S′) ∈ H] + δ for all neighbours
S, S′ and every set H of outcomes.

A finite mechanism is a function from a database (a tuple of rows) to its law (outcome → probability). Write
t = e^ε. Each (S, S′, H) gives a straight line Pr[M(S) ∈ H] − t·Pr[M(S′) ∈ H], and the privacy curve δ(t) is
the upper envelope of them all: convex, non-increasing and piecewise linear in e^ε. For one pair, the lines
that matter are those of H = {outcomes more than t times likelier under S}, so that it is enough to sort
outcomes by likelihood ratio. Arithmetic is rational, hence exact; a float probability counts at its exact
binary value.

Gap  A float law knows each probability only up to rounding, and its 0.0 may be an underflow. Write laws with
     Fractions where the verdict matters at that scale.

>>> response = {"yes": {"yes": Fraction(3, 4), "no": Fraction(1, 4)},
...             "no": {"yes": Fraction(1, 4), "no": Fraction(3, 4)}}
>>> curve = privacy_curve(lambda rows: response[rows[0]], replace_neighbours(("yes", "no"), 1))
>>> curve.ratio(0), curve.delta_at(2)
(Fraction(3, 1), Fraction(1, 4))
>>> curve.is_stable(log(3), 0), curve.is_stable(1, 0)
(True, False)
>>> print(curve.worst(1))
S  = ('yes',)
S′ = ('no',)
H  = {'yes'}
Pr[M(S) ∈ H] = 0.75, Pr[M(S′) ∈ H] = 0.25
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from math import inf, lcm, log, log1p
from typing import Any

from understudy.errors import ParameterError
from understudy.rational import MAX_EPSILON, Number, exact

Probability = int | float | Fraction
Database = tuple[Any, ...]
Law = Mapping[Any, Probability]
Mechanism = Callable[[Database], Law]
Pairs = Iterable[tuple[Database, Database]]
Ratio = Fraction | float
"""e^ε: a rational number, or `inf`."""

ROUNDING = Fraction(1, 10**12)
"""The relative error granted to every probability of a law that has floats in it; exact laws get none."""

FLOAT_SLACK = Fraction(1, 2**50)
"""The relative error granted to an ε or δ given as a float, since ln 3 is not one; Fractions get none."""


@dataclass(frozen=True, slots=True)
class TradeOff:
    """The largest p = Pr[M(S) ∈ H] for each q = Pr[M(S′) ∈ H]: a concave chain of corners (q, p) from q = 0.

    Only slopes above 1 are kept, because e^ε ≥ 1. The form is canonical: equal curves have equal corners.
    `total` and `best` are the sum and the maximum of curves; neither has more corners than went into it.
    """

    corners: tuple[tuple[Fraction, Fraction], ...]

    @classmethod
    def outcome(cls, probability: Fraction, neighbour_probability: Fraction) -> TradeOff:
        """The curve (p − tq)₊ of a single outcome."""
        return cls.of_events([(Fraction(0), Fraction(0)), (neighbour_probability, probability)])

    @classmethod
    def of_events(cls, events: Iterable[tuple[Fraction, Fraction]]) -> TradeOff:
        """The upper envelope of the lines p − tq over t ≥ 1, from points (q, p)."""
        chain: list[tuple[Fraction, Fraction]] = []
        for q, p in sorted(events, key=lambda event: (event[0], -event[1])):
            # A slope of at most 1 from the last corner: below it for every t ≥ 1.
            if chain and p - chain[-1][1] <= q - chain[-1][0]:
                continue
            while len(chain) > 1:
                (q0, p0), (q1, p1) = chain[-2:]
                if (p1 - p0) * (q - q1) > (p - p1) * (q1 - q0):
                    break
                chain.pop()
            chain.append((q, p))
        return cls(tuple(chain))

    @classmethod
    def total(cls, parts: Iterable[TradeOff]) -> TradeOff:
        """The sum of curves: parts are disjoint sets of outcomes, and H is chosen in each of them."""
        certain = Fraction(0)
        edges: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for part in parts:
            certain += part.corners[0][1]
            for (q0, p0), (q1, p1) in pairwise(part.corners):
                edges[(p1 - p0) / (q1 - q0)] += q1 - q0
        corners = [(Fraction(0), certain)]
        for slope in sorted(edges, reverse=True):
            q, p = corners[-1]
            corners.append((q + edges[slope], p + slope * edges[slope]))
        return cls(tuple(corners))

    @classmethod
    def best(cls, options: Iterable[TradeOff]) -> TradeOff:
        """The maximum of curves."""
        return cls.of_events(corner for option in options for corner in option.corners)

    def active(self, ratio: Ratio) -> int:
        """The index of the corner whose line is the curve at t = `ratio`."""

        def falling(index: int) -> Fraction:
            (q0, p0), (q1, p1) = self.corners[index : index + 2]
            return (p0 - p1) / (q1 - q0)

        return bisect_left(range(len(self.corners) - 1), -ratio, key=falling)

    def delta_at(self, ratio: Ratio) -> Fraction:
        q, p = self.corners[self.active(ratio)]
        return p - Fraction(ratio) * q if q else p

    def ratio(self, delta: Fraction) -> Ratio:
        """The smallest t ≥ 1 at which the curve is at most `delta`."""
        if self.corners[0][1] > delta:
            return inf
        return max([Fraction(1), *((p - delta) / q for q, p in self.corners if q)])


@dataclass(frozen=True, slots=True)
class StabilityWitness:
    """Neighbours S, S′ and the event H that is hardest on a claim; if M is interactive, the analyst too.

    H is empty when no event is more than e^ε times likelier under S than under S′. `analyst` maps the
    transcript so far to the next query; where it has no entry, the analyst stops.
    """

    database: Database
    neighbour: Database
    event: tuple[Hashable, ...]
    probability: Fraction
    neighbour_probability: Fraction
    analyst: Mapping[Any, Any] | None = field(default=None, hash=False)

    def __str__(self) -> str:
        outcomes = ", ".join(repr(outcome) for outcome in self.event)
        return (
            f"S  = {self.database!r}\nS′ = {self.neighbour!r}\nH  = {{{outcomes}}}\n"
            f"Pr[M(S) ∈ H] = {float(self.probability):.6g}, "
            f"Pr[M(S′) ∈ H] = {float(self.neighbour_probability):.6g}"
        )


Explanation = Callable[[Ratio], StabilityWitness]


@dataclass(frozen=True, slots=True)
class PrivacyCurve:
    """δ as a function of ε: M is (ε, δ)-DP-stable if and only if δ ≥ delta(ε). [Lecture 4, Definition 3]

    Two curves are equal if they are so at every ε. `delta_at` and `ratio` are exact and speak of e^ε; `delta`
    and `epsilon` are the same in floats. ε may be `inf`.
    """

    trade_off: TradeOff
    rounding: Fraction = field(compare=False)
    explanations: tuple[Explanation, ...] = field(compare=False, repr=False)

    @classmethod
    def worst_case(
        cls, cases: Iterable[tuple[TradeOff, Sequence[Explanation]]], *, rounding: Fraction
    ) -> PrivacyCurve:
        """The maximum over `cases`; a case has one explanation for each of its corners."""
        sources: dict[tuple[Fraction, Fraction], Explanation] = {}
        for trade_off, explanations in cases:
            for corner, explanation in zip(trade_off.corners, explanations, strict=True):
                sources.setdefault(corner, explanation)
        if not sources:
            raise ParameterError("there are no neighbours to compare, and a check of nothing shows nothing")
        envelope = TradeOff.of_events(sources)
        return cls(envelope, rounding, tuple(sources[corner] for corner in envelope.corners))

    def delta_at(self, ratio: Ratio) -> Fraction:
        """The smallest δ at e^ε = `ratio`, exactly."""
        if not ratio >= 1:
            raise ParameterError(f"the ratio e^epsilon must be at least 1, not {ratio}")
        return self.trade_off.delta_at(ratio)

    def ratio(self, delta: Number) -> Ratio:
        """The smallest e^ε at `delta`, exactly; `inf` when no ε is enough, as for disjoint supports.

        At δ = 0 it is the largest ratio of the probabilities of one outcome, by the note that follows the
        definition. [Lecture 4, Definition 3]
        """
        return self.trade_off.ratio(_non_negative(delta, "delta"))

    def delta(self, epsilon: Number) -> float:
        return float(self.delta_at(_power_of_e(_epsilon(epsilon))))

    def epsilon(self, delta: Number) -> float:
        return _logarithm(self.ratio(delta))

    def is_stable(self, epsilon: Number, delta: Number) -> bool:
        """Whether M is (ε, δ)-DP-stable.

        Decided with e^ε right to 50 digits. An ε or δ given as a float is read with FLOAT_SLACK. A law that
        has floats in it is unstable only if it stays so with each probability moved by ROUNDING in its favour.
        """
        ratio = _power_of_e(_epsilon(epsilon) * _slack(epsilon))
        allowed = _non_negative(delta, "delta") * _slack(delta)
        kindly = ratio * (1 + self.rounding) / (1 - self.rounding)
        return self.delta_at(kindly) * (1 - self.rounding) <= allowed

    def within(self, other: PrivacyCurve) -> bool:
        """Whether this curve is at or below `other` at every ε, exactly."""
        return TradeOff.best((self.trade_off, other.trade_off)) == other.trade_off

    def worst(self, epsilon: Number) -> StabilityWitness:
        """The neighbours and the event that attain delta(ε): a counterexample to every smaller δ."""
        ratio = _power_of_e(_epsilon(epsilon))
        return self.explanations[self.trade_off.active(ratio)](ratio)


def privacy_curve(mechanism: Mechanism, pairs: Pairs) -> PrivacyCurve:
    """The privacy curve over the given neighbours, each pair in both orders. [Lecture 4, Definition 3]

    Complexity  O(m log m) rational operations for each pair, where m is the number of outcomes. Pairs with
                the same curve are kept once.
    """
    laws: dict[Database, ExactLaw] = {}
    cases: dict[TradeOff, Explanation] = {}
    for database, neighbour in both_orders(pairs):
        for rows in (database, neighbour):
            if rows not in laws:
                laws[rows] = ExactLaw.of(mechanism(rows))
        law, other = laws[database], laws[neighbour]
        trade_off = TradeOff.total(
            TradeOff.outcome(law.probability(outcome), other.probability(outcome))
            for outcome in law.numerators
        )
        cases.setdefault(trade_off, partial(_likelier, database, neighbour, law, other))
    return PrivacyCurve.worst_case(
        ((trade_off, [why] * len(trade_off.corners)) for trade_off, why in cases.items()),
        rounding=max((law.rounding for law in laws.values()), default=Fraction(0)),
    )


def worst_of(curves: Iterable[PrivacyCurve]) -> PrivacyCurve:
    """The maximum of curves: M(S, p) must be stable for every parameter p. [Lecture 4, Definition 3]"""
    given = tuple(curves)
    return PrivacyCurve.worst_case(
        ((curve.trade_off, curve.explanations) for curve in given),
        rounding=max((curve.rounding for curve in given), default=Fraction(0)),
    )


def replace_neighbours(universe: Sequence[Any], n: int) -> Iterator[tuple[Database, Database]]:
    """Each pair of databases of n rows that differ in exactly one row, once. [Lecture 4, Definition 3]"""
    for rows in product(universe, repeat=n):
        for i, row in enumerate(rows):
            for other in universe[universe.index(row) + 1 :]:
                yield rows, (*rows[:i], other, *rows[i + 1 :])


def add_remove_neighbours(universe: Sequence[Any], n: int) -> Iterator[tuple[Database, Database]]:
    """Each pair of databases of at most n rows of which one is the other with a row removed, once."""
    for size in range(1, n + 1):
        for rows in product(universe, repeat=size):
            for shorter in dict.fromkeys((*rows[:i], *rows[i + 1 :]) for i in range(size)):
                yield rows, shorter


def deterministic(function: Callable[..., Any]) -> Callable[..., Law]:
    """`function` as a mechanism, or as a way to post-process, that uses no randomness."""
    return lambda *arguments: {function(*arguments): 1}


def post_process(mechanism: Mechanism, process: Callable[[Any], Law]) -> Mechanism:
    """A(M(S)), with A from an outcome to a law (`deterministic` for a plain function).

    Privacy  Never above the curve of M, at any ε. [Lecture 4, Theorem 4]
    """
    return then(mechanism, lambda _, outcome: process(outcome))


def pair(first: Mechanism, second: Mechanism) -> Mechanism:
    """(M₁(S), M₂(S)) with independent coins.

    Privacy  (ε₁ + ε₂, δ₁ + δ₂) if Mᵢ is (εᵢ, δᵢ)-DP-stable. [Lecture 4, Theorem 7]
    """
    return then_both(first, lambda database, _: second(database))


def then(first: Mechanism, second: Callable[[Database, Any], Law]) -> Mechanism:
    """M₂(S, M₁(S)); what M₁ said is not released.

    Privacy  (ε₁ + ε₂, δ₁ + δ₂) if M₂(·, p) is (ε₂, δ₂)-DP-stable for every p. [Lecture 4, Theorem 8]
    """

    def law(database: Database) -> Law:
        total: defaultdict[Any, Probability] = defaultdict(int)
        for parameter, probability in first(database).items():
            for outcome, conditional in second(database, parameter).items():
                total[outcome] += probability * conditional
        return total

    return law


def then_both(first: Mechanism, second: Callable[[Database, Any], Law]) -> Mechanism:
    """(p, M₂(S, p)) with p = M₁(S): `then` with an M₂ that repeats its parameter, at the same price."""

    def repeating(database: Database, parameter: Any) -> Law:
        law = second(database, parameter)
        return {(parameter, outcome): probability for outcome, probability in law.items()}

    return then(first, repeating)


@dataclass(frozen=True, slots=True)
class ExactLaw:
    """A law over a common denominator, without outcomes of probability 0; `rounding` as it was given."""

    numerators: dict[Any, int]
    denominator: int
    rounding: Fraction

    @classmethod
    def of(cls, law: Law) -> ExactLaw:
        """`law`, refused unless it is a probability law (up to ROUNDING where it has floats)."""
        weights: dict[Any, Fraction] = {}
        rounding = Fraction(0)
        for outcome, probability in law.items():
            if not isinstance(probability, int | float | Fraction) or not 0 <= probability < inf:
                raise ParameterError("a probability must be a non-negative int, float or Fraction")
            if isinstance(probability, float):
                rounding = ROUNDING
            if probability:
                weights[outcome] = Fraction(probability)
        denominator = lcm(*(weight.denominator for weight in weights.values()))
        numerators = {
            o: weight.numerator * (denominator // weight.denominator) for o, weight in weights.items()
        }
        if abs(sum(numerators.values()) - denominator) > rounding * denominator:
            raise ParameterError("the probabilities of a law must sum to 1")
        return cls(numerators, denominator, rounding)

    def probability(self, outcome: Any) -> Fraction:
        return Fraction(self.numerators.get(outcome, 0), self.denominator)


def both_orders(pairs: Pairs) -> Iterator[tuple[Database, Database]]:
    """Each pair in both orders, once however often and in whatever order it was given."""
    seen: set[tuple[Database, Database]] = set()
    for database, neighbour in pairs:
        for ordered in ((database, neighbour), (neighbour, database)):
            if ordered not in seen:
                seen.add(ordered)
                yield ordered


def exceeds(probability: Fraction, neighbour_probability: Fraction, ratio: Ratio) -> bool:
    """Whether p > tq, with t = inf understood as a limit."""
    return probability > (neighbour_probability * ratio if neighbour_probability else 0)


def _likelier(
    database: Database, neighbour: Database, law: ExactLaw, other: ExactLaw, ratio: Ratio
) -> StabilityWitness:
    event = [o for o in law.numerators if exceeds(law.probability(o), other.probability(o), ratio)]
    return StabilityWitness(
        database,
        neighbour,
        tuple(event),
        sum(map(law.probability, event), Fraction(0)),
        sum(map(other.probability, event), Fraction(0)),
    )


def _non_negative(value: Number, name: str) -> Fraction:
    number = exact(value, name)
    if number < 0:
        raise ParameterError(f"{name} must not be negative: {value}")
    return number


def _epsilon(epsilon: Number) -> Ratio:
    if epsilon == inf:
        return inf
    number = _non_negative(epsilon, "epsilon")
    if number > MAX_EPSILON:
        raise ParameterError(f"epsilon must be at most {MAX_EPSILON} or infinite, not {epsilon}")
    return number


def _slack(value: Number) -> Fraction:
    return 1 + FLOAT_SLACK if isinstance(value, float) else Fraction(1)


def _power_of_e(epsilon: Ratio) -> Ratio:
    if not isinstance(epsilon, Fraction):
        return inf
    # Sixty digits: an error of the last one, multiplied by at most MAX_EPSILON, leaves more than fifty.
    digits = Context(prec=60)
    return Fraction(digits.exp(digits.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))


def _logarithm(ratio: Ratio) -> float:
    if not isinstance(ratio, Fraction):
        return inf
    if ratio < 2:
        return log1p(ratio - 1)
    # A ratio of integers may be far beyond the largest float; its logarithm is not.
    return log(ratio) if ratio < 2**1000 else log(ratio.numerator) - log(ratio.denominator)
