"""Noise calibrated to a price: what a Curator can say of a measurement before it charges anything. Reads no data.

A marginal has a sensitivity under the declared neighbours, a price and a sensitivity make a mechanism, and the law
of the mechanism's noise gives the error. All three depend on public values alone: the declaration, the marginal,
the price, and, where weights are rounded, a public bound on the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import floor

from understudy.curator.prepared_measurement import Mechanism, PreparedMeasurement
from understudy.domain.domain import Domain
from understudy.domain.refinement import refines
from understudy.errors import ParameterError, QueryError, RefusedError
from understudy.mechanism.additive import Additive, error_of, noise_for
from understudy.mechanism.bounded_noise import BoundedMechanism
from understudy.mechanism.quantile import QuantileMechanism, quantile_sensitivity, shift_for
from understudy.mechanism.quantile_hierarchy import QuantileHierarchy
from understudy.privacy.bounded_noise import MAX_REACH
from understudy.privacy.budget import Budget
from understudy.privacy.calibrate import cheapest
from understudy.privacy.columns import PARTITION, CountColumns, SharedColumns, WeightColumns
from understudy.privacy.cost import UNITS
from understudy.privacy.event import Selection
from understudy.privacy.filter import RenyiFilter
from understudy.privacy.price import Currency, Price
from understudy.privacy.relation import Relation, Sensitivity
from understudy.query.disjoint import are_disjoint, are_quantiles_of_one, shares_a_unit
from understudy.query.marginal import Marginal
from understudy.query.quantile_end import QuantileEnd
from understudy.rational import Number, positive, probability

MOMENT_STEPS = 1 << 20
"""Steps of the lattice of a moment, for what one row can add at most: even, so that a half is a whole number."""


def check_counts(marginals: Iterable[Marginal]) -> None:
    """Refuse, with a `RefusedError`, marginals that bounded noise is not for: all but counts of people."""
    if any(marginal.moment is not None or not marginal.where.is_counting for marginal in marginals):
        raise RefusedError(
            "bounded noise is for counts of people, and the question needs sums or quantiles of a measure, or "
            "other weights",
            remedy="ask for it with other noise",
        )


@dataclass(frozen=True)
class Calibration:
    """Sensitivities, mechanisms, errors and prices of marginals of one declared table. Reads no data.

    `domain` is that of the table, and `relation` its neighbours. Prices are told in the currency of the `budget`
    where no other is asked for. `rows_at_most` gives a public bound on the number of rows, or None: it is asked
    for only where weights other than 0 and 1 are rounded. Prices are in epsilon or rho, errors in people.
    """

    domain: Domain
    relation: Relation
    budget: Budget
    rows_at_most: Callable[[], int | None]

    @property
    def currency(self) -> Currency:
        """What prices are told in where no other is asked for: that of the budget."""
        return self.budget.currency

    def sensitivity(self, *marginals: Marginal, resolution: int = 1) -> Sensitivity:
        """How far neighbours can move the counts of `marginals` side by side, in steps of 1/`resolution`.

        No row may count in two of them: a `QueryError` if one does. Weights other than 0 and 1 stand together
        where they add up to 1 at most in every row; else each stands alone, on the lattice of its own that its
        error is told for. So do moments, but those that add up to 1 for every row. Of one end of a quantile it is
        how far they move the losses that it is drawn by; of several, the counts that all of them follow from.
        """
        if any(marginal.moment is not None for marginal in marginals):
            return self._moment_sensitivity(marginals, resolution)
        if len(marginals) > 1 and not all(marginal.where.is_counting for marginal in marginals):
            if any(marginal.where.is_counting for marginal in marginals):
                raise QueryError(
                    "marginals that share a noise must all have weights of 0 and 1, or none of them"
                )
            return self.relation.moves(WeightColumns.of(marginals, resolution=resolution))
        if len(marginals) > 1 and not are_disjoint(tuple(marginal.where for marginal in marginals)):
            raise QueryError("marginals that share a noise must be about different rows")
        return self.relation.moves(CountColumns.stacked(marginals, resolution=resolution))

    def _moment_sensitivity(self, marginals: Sequence[Marginal], resolution: int) -> Sensitivity:
        """`sensitivity` where there are moments."""
        if len(marginals) > 1:
            if are_quantiles_of_one(marginals):
                return self.relation.moves(PARTITION)
            if not shares_a_unit(marginals):
                raise QueryError("moments that share a noise must add up to 1 for every row")
            return self.relation.moves(SharedColumns(len(marginals), resolution))
        (marginal,) = marginals
        if isinstance(marginal.moment, QuantileEnd):
            whole = not marginal.by and not marginal.where.factors
            return quantile_sensitivity(marginal.moment.level, self.relation, one_cell_of_all=whole)
        return self.relation.moves(CountColumns.of(marginal, resolution=resolution))

    def is_public(self, marginal: Marginal) -> bool:
        """Whether no row can change the counts of a `marginal`, so that noise on it would protect nobody."""
        return marginal.where.is_counting and self.sensitivity(marginal).l1 == 0

    def mechanism(
        self,
        marginal: Marginal,
        price: Price,
        *,
        beside: Sequence[Marginal] = (),
        moves: Callable[[int], Sensitivity] | None = None,
        certain: bool = False,
    ) -> tuple[Additive, int]:
        """The mechanism that would answer a `marginal` at this `price`, and its lattice resolution.

        Raises a `QueryError` where the marginal is about another domain, or a row counts in it and in one beside
        it; a `ParameterError` where the noise cannot be drawn; and a `RefusedError` where weights other than 0 and
        1 need a bound on the number of rows that is not public. With `certain` it is bounded noise, whose error is
        certain (`bounded`). Under a budget that is kept in GDP, a price in rho buys rounded normal noise, whose μ²
        is exact.

        The price is for the marginal and for those `beside` it, of which no row may count in two. `moves` is
        their sensitivity in steps of 1 over what it is given, for a caller who tries many prices.

        The lattice is the finest whose noise can still be drawn. Counting queries live on the integers. Other
        weights are rounded to 1/128 of 1/rows, so that all rows together are off by less than half a hundredth of
        a person; less finely where the noise is so large that its sampler would overflow, when the rounding is
        still far below the noise. The sum of a moment is exact, and rounded once, to a millionth of what one row
        can add or the coarser step that its noise needs.
        """
        if marginal.domain is not self.domain and not refines(marginal.domain, self.domain):
            raise QueryError("the question is about another domain")
        resolution = 1
        if certain:
            moved = moves(1) if moves else self._certain_moves((marginal, *beside))
            return self.bounded(moved, price=price), 1
        if marginal.moment is not None:
            resolution = MOMENT_STEPS
        elif not marginal.where.is_counting:
            bits = self._rows_bound().bit_length()
            resolution = 1 << min(7 + bits, 61 - bits)  # the sum of all rows stays below 2^62
        while True:
            moved = moves(resolution) if moves else self.sensitivity(marginal, *beside, resolution=resolution)
            try:
                return noise_for(price, moved, rounded=self.budget.filter.reads_variance), resolution
            except ParameterError:  # noise that cannot be drawn, or a sensitivity beyond 64 bits
                if resolution == 1:
                    raise
            resolution //= 2

    def bounded(
        self, moved: Sensitivity, *, price: Price | None = None, reach: int | None = None
    ) -> BoundedMechanism:
        """Bounded noise for counts that neighbours move by `moved`: at a `price` in rho, or of a `reach`.

        The reach, in people, is the most that a count can be off.
        Of a price it takes a part of the mass that the budget sets aside, the same as of its rho; a reach costs
        the larger of both parts. Raises a `RefusedError` where the budget is not kept at one Rényi order, or sets
        nothing aside, and where noise of that reach or at that price has no price.
        """
        kept, delta = self.check_certain(), self.budget.key_delta
        divergence = kept.order * Fraction(self.budget.cap.units, UNITS)
        if moved.l1 == 0:  # no noise, whatever its reach would be
            return BoundedMechanism(reach=1, l1=0, largest=1, set_aside=1, order=kept.order)
        if price is None:
            assert reach is not None
            return BoundedMechanism.balanced(
                reach, moved, order=kept.order, divergence=divergence, delta=delta
            )
        share = min(kept.order * price.amount / divergence, Fraction(1))
        return BoundedMechanism.for_price(divergence * share, moved, order=kept.order, delta=delta * share)

    def check_certain(self) -> RenyiFilter:
        """The filter by which bounded noise has a price here; a `RefusedError` where it has none."""
        kept = self.budget.filter
        if isinstance(kept, RenyiFilter) and self.budget.key_delta:
            return kept
        raise RefusedError(
            "bounded noise needs a budget that is kept at one Rényi order, with a part of delta set aside",
            remedy="declare such a budget before the first question is paid for, for example "
            "`budget: {epsilon: 1, delta: 1e-6, key_delta: 1e-7, filter: renyi}`, or ask for other noise",
        )

    def _certain_moves(self, marginals: Sequence[Marginal]) -> Sensitivity:
        """How far neighbours move counts that get bounded noise; RefusedError for what is no count of people."""
        check_counts(marginals)
        return self.sensitivity(*marginals)

    def _rows_bound(self) -> int:
        bound = self.rows_at_most()
        if bound is None:
            raise RefusedError(
                "weights other than 0 and 1 are rounded, and the error of that needs a public "
                "bound on the number of rows",
                remedy="declare `rows: {at_most: …}`",
            )
        return max(bound, 1)

    def quantile(
        self, marginal: Marginal, price: Price, *, beta: Number = 0.05
    ) -> tuple[QuantileMechanism, int]:
        """The mechanism that would draw quantiles, or their ends, at this `price`, and the steps of their measure.

        `marginal` has a `QuantileEnd` for its moment. All cells' ends are on their sides of the quantiles, except
        with probability `beta`. Raises a `ParameterError` where the draw cannot be made at the price.
        """
        end, steps = self._quantile_end(marginal)
        moved = self.sensitivity(marginal).l1
        epsilon = self.budget.epsilon_within(price, Selection(epsilon=Fraction(1)))
        share = probability(beta)
        shift = 0
        if end.side != "point":
            shift = shift_for(epsilon, moved, end.level, steps=steps, cells=marginal.size, beta=share)
        drawn = QuantileMechanism(
            epsilon=epsilon, sensitivity=moved, level=end.level, side=end.side, steps=steps, shift=shift
        )
        return drawn, steps

    def quantiles(
        self, marginals: Sequence[Marginal], price: Price, *, beta: Number = 0.05
    ) -> tuple[QuantileHierarchy, int]:
        """The mechanism that would find several ends of quantiles together at this `price`, and their steps.

        `marginals` have them for their moments. They are of one measure over the same rows, two at least: a
        `QueryError` if not. The ends of all cells are on their sides of the quantiles, except with probability
        `beta`.
        """
        ends = [self._quantile_end(marginal) for marginal in marginals]
        steps = ends[0][1]
        found = QuantileHierarchy.made(
            price,
            self.sensitivity(*marginals),
            levels=[end.level for end, _ in ends],
            steps=steps,
            beta=probability(beta) / marginals[0].size,
            rounded=self.budget.filter.reads_variance,
        )
        return found, steps

    def _quantile_end(self, marginal: Marginal) -> tuple[QuantileEnd, int]:
        """The end that a marginal asks for, and the steps of its measure."""
        end = marginal.moment
        assert isinstance(end, QuantileEnd)
        if not refines(marginal.domain, self.domain):
            raise QueryError("the question is about another domain")
        return end, end.measures(self.domain)[0].steps

    def expected_ranks(self, marginal: Marginal, mechanism: QuantileMechanism | QuantileHierarchy) -> float:
        """How many ranks the end that a `marginal` asks for is expected to lie beyond its quantile.

        `mechanism` draws it; the values are taken to be dense.
        """
        if isinstance(mechanism, QuantileMechanism):
            return float(mechanism.shift)
        assert isinstance(marginal.moment, QuantileEnd)
        return mechanism.ranks(marginal.moment.level)

    def error(self, marginal: Marginal, mechanism: Mechanism, resolution: int, beta: Number) -> float:
        """The half-width in people within which all cells of a measured marginal are, with probability 1 - `beta`.

        `mechanism` and `resolution` are what `mechanism` returned for the `marginal`. It is made of the noise that
        the mechanism adds and of the rounding of weights other than 0 and 1. Of an end of a quantile it is how
        many ranks the end is expected to lie beyond it.
        """
        if isinstance(mechanism, QuantileMechanism | QuantileHierarchy):
            return self.expected_ranks(marginal, mechanism)
        noise = error_of(mechanism, beta, marginal.size) / resolution
        if marginal.moment is not None:
            return noise + 1 / (2 * resolution)
        return noise if resolution == 1 else noise + self._rows_bound() / (2 * resolution)

    def price_of(
        self,
        marginal: Marginal,
        *,
        error: Number,
        beta: Number = 0.05,
        currency: Currency | None = None,
        beside: Sequence[Marginal] = (),
        certain: bool = False,
    ) -> Price:
        """The smallest price, in `currency` or the usual one, at which all cells are within `error` people.

        They are so together, with probability 1 - `beta`, or, where they are to be `certain`, always. The price is
        for the `marginal` and for those `beside` it, of which no row may count in two, or which follow from the
        same counts. Raises a `ParameterError` for an
        error that is not positive, or is to be certain and is less than one person, and a `RefusedError` where no
        price keeps it.
        """
        target = positive(error, "error")
        paid_in = self.currency if currency is None else currency
        if certain:
            if target < 1:
                raise ParameterError("an error that is certain is at least one person")
            reach = min(floor(target), MAX_REACH)
            event = self.bounded(self._certain_moves((marginal, *beside)), reach=reach).event
            of_delta = event.delta / self.budget.key_delta * Fraction(self.budget.cap.units, UNITS)
            return Price("rho", max(event.divergence / event.order, of_delta))

        @cache  # it is the same at every price
        def moves(steps: int) -> Sensitivity:
            return self.sensitivity(marginal, *beside, resolution=steps)

        def suffices(amount: Fraction) -> bool:
            if isinstance(marginal.moment, QuantileEnd):  # the point is drawn as well as an end would be
                end = replace(marginal, moment=replace(marginal.moment, side="low"))
                asked, price = [end, *beside], Price(paid_in, amount)
                try:
                    made = (
                        self.quantiles(asked, price, beta=beta)
                        if beside
                        else self.quantile(end, price, beta=beta)
                    )
                    return max(self.expected_ranks(one, made[0]) for one in asked) <= target
                except ParameterError:  # noise too large to draw, or ends beyond all rows
                    return False
            try:
                mechanism, resolution = self.mechanism(marginal, Price(paid_in, amount), moves=moves)
                return self.error(marginal, mechanism, resolution, beta) <= target
            except ParameterError:  # noise too large to draw
                return False

        probability(beta)
        return Price(paid_in, cheapest(suffices))

    def prepare(
        self,
        marginals: Sequence[Marginal],
        price: Price | Sequence[Price],
        *,
        beta: Number = 0.05,
        stacks: Sequence[Sequence[int]] | None = None,
        certain: bool = False,
    ) -> PreparedMeasurement:
        """What a Curator's `perform` will charge and do for `marginals`, each at the given `price` or its own.

        With `certain` all counts get bounded noise, and are within their errors always: `beta` of what comes back
        is 0.

        `stacks` are the places of marginals that are measured as one vector, at the one price of the first of
        them, where no row counts in two (`query.disjoint.disjoint_stacks`); each is alone without. Raises a
        `QueryError` where a row could, and otherwise as `mechanism`, `quantile` and `quantiles` do.
        """
        prices = [price] * len(marginals) if isinstance(price, Price) else price
        alone = tuple((place,) for place in range(len(prices)))
        placed = alone if stacks is None else tuple(map(tuple, stacks))
        built: dict[int, tuple[Mechanism, int]] = {}
        for first, *others in placed:
            if isinstance(marginals[first].moment, QuantileEnd) and not certain:
                stack = [marginals[i] for i in (first, *others)]
                if not others:
                    built[first] = self.quantile(stack[0], prices[first], beta=beta)
                else:
                    together = self.quantiles(stack, prices[first], beta=probability(beta) * len(stack))
                    built.update(dict.fromkeys((first, *others), together))
                continue
            beside = [marginals[i] for i in others]
            found = self.mechanism(marginals[first], prices[first], beside=beside, certain=certain)
            built.update(dict.fromkeys((first, *others), found))
        mechanisms = tuple(built[place] for place in range(len(prices)))
        errors = (self.error(m, *parts, beta) for m, parts in zip(marginals, mechanisms, strict=True))
        failure = Fraction(0) if certain else beta
        weighted = not all(marginal.where.is_counting for marginal in marginals)
        rows = self._rows_bound() if weighted else 0
        return PreparedMeasurement(tuple(marginals), mechanisms, tuple(errors), failure, placed, rows)
