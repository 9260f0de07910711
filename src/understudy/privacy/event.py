"""What was done, as frozen records: each kind of event knows its name, its numbers and what it costs.

A kind of event is one class. Its fields are what a ledger records; each method that ends in `_cost` is its price
in one currency, with the statement that proves it; `privacy_losses` is how a privacy-loss-distribution accountant
sees it. `recording` writes the kinds into ledgers, under names that never change. `cost` rounds prices to
whole units, and `ledger.verifier` repeats all of this on purpose, in code of its own.

    pure_cost     ε of pure differential privacy                                     exactly
    zcdp_cost     ρ of zero-concentrated differential privacy                        exactly
    gdp_cost      μ² of Gaussian differential privacy, for events that have one      exactly
    renyi_cost    the Rényi divergence of one order, outside a part of the outputs   never too small
    delta_cost    how likely that part is, at most; 0 for most                       never too small
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Literal, NamedTuple

from understudy.errors import ParameterError, RefusedError
from understudy.privacy import gdp
from understudy.privacy.renyi import checked_order, pure_divergence, selection_divergence

_NOTHING = Fraction(0)


class PrivacyLoss(NamedTuple):
    """`times` independent runs of a mechanism whose privacy loss a law dominates.

    pure            ε-DP, ε the parameter: randomised response is the worst.
    bounded range   log-ratios within an interval of length ε, the parameter.
    gaussian        normal noise, the parameter its deviation in units of the sensitivity.
    failure         everything is told with a probability of the parameter, and else nothing.
    bounded noise   that of `bounded_noise`, its reach the parameter, on a number that moves by `moved`.
    """

    law: Literal["pure", "bounded range", "gaussian", "failure", "bounded noise"]
    parameter: float
    times: int = 1
    moved: int = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done to the people of a table, and what is known of its privacy.

    A kind of event states its pure price; unless it knows better, the rest follows from that.
    """

    def pure_cost(self) -> Fraction:
        """The ε of pure differential privacy; RefusedError where there is none."""
        raise ParameterError(f"no pure cost is known for {type(self).__name__}")

    def zcdp_cost(self) -> Fraction:
        """The ρ of zCDP: ε-DP implies ε²/2-zCDP. [BunSteinke16, Proposition 1.4]"""
        return self.pure_cost() ** 2 / 2

    def gdp_cost(self) -> Fraction | None:
        """The μ² of Gaussian differential privacy (GDP), exactly; None where the event has none.

        Given one, telling two neighbours apart by what is told is no easier than telling N(0, 1) from N(μ, 1).
        Over adaptive steps, each with a μ² that is fixed before its draw, these add up: as long as their sum stays
        under μ² on every path, all of it is μ-GDP. [SmithThakurta22]
        """
        return None

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        """At least the μ² that it takes of a GDP filter which keeps `reserve` of μ² unspent (`privacy.gdp`).

        That is its own μ² where it has one. Raises RefusedError where nothing was proved about it.
        """
        exact = self.gdp_cost()
        return gdp.pure_cost(self.pure_cost(), reserve) if exact is None else exact

    def renyi_cost(self, order: Fraction) -> Fraction:
        """At least the Rényi divergence of this order between what neighbours tell, either way.

        Outputs of a mass of at most `delta_cost` may be set aside first, in each direction others: then it bounds
        ln(Σ P^a·Q^(1-a))/(a - 1) over the rest, a the order. It is never more than a·ρ where the event has a ρ.
        Raises ParameterError for an order that is not above 1.
        """
        return pure_divergence(self.pure_cost(), order)

    def delta_cost(self) -> Fraction:
        """The δ for which it is δ-approximately `zcdp_cost`-zCDP; 0 for most.

        That is: for either of two neighbours there is an event of probability 1 - δ at least, and given these the
        two laws of what is told are as far apart as zCDP allows. (Bun and Steinke 2016, Definition 8.1.) The same
        δ is the mass that `renyi_cost` sets aside.
        """
        return _NOTHING

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        """Runs that dominate it, all fixed beforehand; none where nobody can be affected."""
        cost = self.pure_cost()
        return (PrivacyLoss("pure", float(cost)),) if cost else ()


def known_event(event: object) -> Event:
    """The event itself; what is no event has no price and is refused, never guessed."""
    if not isinstance(event, Event):
        raise ParameterError(f"no cost is known for {type(event).__name__}")
    return event


class AdditiveNoise(Event):
    """Noise that was added to whole numbers: what a region can be given to (`Located`)."""

    __slots__ = ()

    @property
    def moves_nobody(self) -> bool:
        """Whether no person can move the numbers at all, so that the noise protects nobody and costs nothing."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceNoise(AdditiveNoise):
    """Discrete Laplace noise of `scale` on integers that one person moves by at most `l1` in total."""

    l1: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        if self.l1 < 0 or self.scale <= 0:
            raise ParameterError("Laplace noise needs a sensitivity of at least 0 and a positive scale")

    @property
    def moves_nobody(self) -> bool:
        return self.l1 == 0

    def pure_cost(self) -> Fraction:
        """Δ₁/b. [Lecture 4, Theorem 5]"""
        return self.l1 / self.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class _NormalNoise(AdditiveNoise):
    """What the two kinds of normal noise on integers share: `variance`, and how far one person moves them."""

    l2_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        if self.l2_squared < 0 or self.variance <= 0:
            raise ParameterError("Gaussian noise needs a sensitivity of at least 0 and a positive variance")

    @property
    def moves_nobody(self) -> bool:
        return self.l2_squared == 0

    def pure_cost(self) -> Fraction:
        if self.l2_squared == 0:
            return Fraction(0)
        raise RefusedError(
            "Gaussian noise gives no pure epsilon",
            remedy="declare a budget with a delta, or ask for Laplace noise",
        )

    def zcdp_cost(self) -> Fraction:
        """Δ²/(2σ²): of discrete Gaussian noise by [CKS20, Theorem 14], of rounded normal noise since the normal
        law's divergence of order a is a·Δ²/(2σ²), and rounding cannot increase it.
        """
        return self.l2_squared / (2 * self.variance)

    def renyi_cost(self, order: Fraction) -> Fraction:
        """a·ρ: what zCDP says of order a."""
        return checked_order(order) * self.zcdp_cost()

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        """The normal law of the same variance: it dominates its rounding, and the discrete law is close to it."""
        if self.l2_squared == 0:
            return ()
        return (PrivacyLoss("gaussian", sqrt(self.variance / self.l2_squared)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianNoise(_NormalNoise):
    """Discrete Gaussian noise on integers that one person moves by at most sqrt(l2_squared)."""

    def gdp_cost(self) -> Fraction | None:
        """None: the discrete law is no rounding of the normal one, unless nobody can move the integers."""
        return Fraction(0) if self.l2_squared == 0 else None

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        """Δ²/σ², and a surcharge that is below any unit unless σ is a few steps only."""
        return gdp.discrete_gaussian_cost(self.l2_squared, self.variance, reserve)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedNormal(_NormalNoise):
    """Noise round(N(0, `variance`)) on integers that one person moves by at most sqrt(l2_squared).

    For a whole number x, x + round(N) is the rounding of x + N. So it is a function of an answer with normal
    noise, and keeps every promise of that.
    """

    def gdp_cost(self) -> Fraction | None:
        """μ² = Δ²/σ² exactly: that of normal noise, of which this is a function. [DRS22]"""
        return self.l2_squared / self.variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(Event):
    """Something that is known by its pure parameter `epsilon` alone."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ParameterError("nothing can earn budget: epsilon must not be negative")

    def pure_cost(self) -> Fraction:
        return self.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Pure):
    """One run of the exponential mechanism."""

    def zcdp_cost(self) -> Fraction:
        """The exponential mechanism is ε²/8-zCDP. [CesarRogers21]

        Its log-likelihood ratio between neighbours lies in an interval of length ε (the scores move by ±Δ and the
        normaliser is the same for all candidates), so Hoeffding's lemma bounds the Rényi divergence of order α by
        α·ε²/8.
        """
        return self.epsilon**2 / 8

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        return gdp.selection_cost(self.epsilon, reserve)

    def renyi_cost(self, order: Fraction) -> Fraction:
        """The largest over the pairs of losses t and t - ε: the log-ratios lie in an interval of length ε."""
        return selection_divergence(self.epsilon, order)

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        return (PrivacyLoss("bounded range", float(self.epsilon)),) if self.epsilon else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMaximum(Pure):
    """One run of report noisy max."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(Pure):
    """A sparse vector was opened: everything that it will ever say is paid for.

    It is `hits` runs one after the other, each with fresh noise and epsilon/`hits`; of this the part `told` buys
    the noisy value at the end of a run. One that was recorded without them (version 0.1) is one run of all of
    epsilon.
    """

    hits: int = 1
    told: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        Pure.__post_init__(self)
        if self.hits < 1 or int(self.hits) != self.hits or not 0 <= self.told <= 1:
            raise ParameterError(
                "a sparse vector has a whole number of hits, and tells for a part of its epsilon"
            )
        object.__setattr__(self, "hits", int(self.hits))

    def zcdp_cost(self) -> Fraction:
        """c runs, of which each is (1 - t)ε/c-DP for comparing and tε/c-DP for telling: ((1 - t)² + t²)·ε²/(2c).

        Runs are adaptively composed: each draws all its noise anew and starts when the one before has ended, so
        what it says is ε/c-DP given everything that was said before, whatever is asked. Pure ε'-DP is ε'²/2-zCDP
        [BunSteinke16, Proposition 1.4], and zCDP adds up [BunSteinke16, Lemma 1.7]. Other questions may be asked
        while a run is under way: an interactive ε'-DP mechanism is an interactive post-processing of one
        randomised response with ε', drawn when it starts [VadhanWang21], which is ε'²/2-zCDP.
        """
        return ((1 - self.told) ** 2 + self.told**2) * self.epsilon**2 / (2 * self.hits)

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        """Of the same runs, each of which is two pure steps."""
        return self.hits * sum((gdp.pure_cost(share, reserve) for share in self._shares()), Fraction(0))

    def renyi_cost(self, order: Fraction) -> Fraction:
        """Of the same runs, each of which is two pure steps: divergences of one order add up as ρ does."""
        return self.hits * sum((pure_divergence(share, order) for share in self._shares()), Fraction(0))

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        return tuple(PrivacyLoss("pure", float(share), self.hits) for share in self._shares())

    def _shares(self) -> tuple[Fraction, ...]:
        """The ε of the steps of one run: comparing, and telling where it tells."""
        shares = (part * self.epsilon / self.hits for part in (1 - self.told, self.told))
        return tuple(share for share in shares if share)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedReport(Pure):
    """Every row reported its value through randomised response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentBefore(Pure):
    """What was spent on the table before its ledger was opened."""


RELATION = re.compile(r"(replace|add-remove (?P<rows>[1-9][0-9]{0,99}))( @[0-9a-f]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """Cells of one attribute: bit i of `mask` is cell i of `size`.

    `attribute` names the attribute and its cells: attributes that are cut otherwise have another name.
    """

    attribute: str
    size: int
    mask: int

    def __post_init__(self) -> None:
        if not (self.mask > 0 and self.mask.bit_length() <= self.size):
            raise ParameterError("a span holds at least one cell of its attribute, and no cell beyond")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located(Event):
    """Noise on counts that only the rows of a `region`, a product of spans, can move.

    `relation` is the neighbour relation, ``replace`` or ``add-remove m`` with m rows to a person, and behind an
    @ what names the rows and how they are cut: only events of one relation are about the same rows. Under
    `replace` a region that is not `split` is one count, to which each of its rows adds 1; where it is split,
    one row moves the counts by at most half of the sensitivity that the noise was made for (its square, for
    Gaussian noise), and two rows by all of it. On its own it costs what its noise costs; several cost less than
    their sum (`joint`).
    """

    noise: AdditiveNoise
    region: tuple[Span, ...]
    relation: str
    split: bool

    def __post_init__(self) -> None:
        names = [span.attribute for span in self.region]
        if names != sorted(set(names)) or not names:
            raise ParameterError("a region is a product of spans of different attributes, in order")
        if not RELATION.fullmatch(self.relation):
            raise ParameterError("a located event needs a neighbour relation")

    @property
    def rows(self) -> int | None:
        """The rows of a person under add-remove; None under `replace`."""
        found = RELATION.fullmatch(self.relation)
        return None if found is None or found["rows"] is None else int(found["rows"])

    def pure_cost(self) -> Fraction:
        return self.noise.pure_cost()

    def zcdp_cost(self) -> Fraction:
        return self.noise.zcdp_cost()

    def gdp_cost(self) -> Fraction | None:
        return self.noise.gdp_cost()

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        return self.noise.gdp_cost_at(reserve)

    def renyi_cost(self, order: Fraction) -> Fraction:
        return self.noise.renyi_cost(order)

    def delta_cost(self) -> Fraction:
        return self.noise.delta_cost()

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        return self.noise.privacy_losses()


@dataclass(frozen=True, slots=True)
class Together(Event):
    """Several things done one after the other, each possibly chosen after seeing the ones before."""

    events: tuple[Event, ...]

    def pure_cost(self) -> Fraction:
        """Composition adds up, also when later mechanisms are chosen after seeing earlier answers.
        [Lecture 4, Theorem 8]
        """
        return sum((known_event(part).pure_cost() for part in self.events), Fraction(0))

    def zcdp_cost(self) -> Fraction:
        """[BunSteinke16, Lemma 1.7] adds it up over adaptive composition."""
        return sum((known_event(part).zcdp_cost() for part in self.events), Fraction(0))

    def gdp_cost(self) -> Fraction | None:
        """The sum, where each has one. [SmithThakurta22]"""
        costs = [known_event(part).gdp_cost() for part in self.events]
        return None if None in costs else sum((cost for cost in costs if cost), Fraction(0))

    def gdp_cost_at(self, reserve: Fraction) -> Fraction:
        """What is taken adds up over adaptive composition, at one reserve."""
        return sum((known_event(part).gdp_cost_at(reserve) for part in self.events), Fraction(0))

    def renyi_cost(self, order: Fraction) -> Fraction:
        """Divergences of one order add up over adaptive composition, as ρ does. [FeldmanZrnic21]"""
        return sum((known_event(part).renyi_cost(order) for part in self.events), Fraction(0))

    def delta_cost(self) -> Fraction:
        """One of several fails with probability at most the sum, whatever the ones before it said."""
        return sum((known_event(part).delta_cost() for part in self.events), Fraction(0))

    def privacy_losses(self) -> tuple[PrivacyLoss, ...]:
        return tuple(loss for part in self.events for loss in known_event(part).privacy_losses())


def is_immovable(event: Event) -> bool:
    """Whether an event is noise on values that no person can move, and nothing else."""
    if isinstance(event, Together):
        return bool(event.events) and all(is_immovable(part) for part in event.events)
    noise = event.noise if isinstance(event, Located) else event
    return isinstance(noise, AdditiveNoise) and noise.moves_nobody


def unversioned(event: Event) -> Event:
    """What was done, whatever version of the table it was done to: where it was located is left out."""
    if isinstance(event, Together):
        return Together(tuple(unversioned(part) for part in event.events))
    return event.noise if isinstance(event, Located) else event
