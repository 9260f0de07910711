"""Every kind of purchase keeps its share of β against an analyst who takes the worst of what it released."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from math import inf
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from counted import ROUNDING
from session_analysts import WIDE, conjunction, curator, worst_of_class, worst_of_histogram
from statistical import assert_at_most, assert_covers
from understudy.privacy.budget import Budget
from understudy.privacy.relation import Neighbours
from understudy.query.box import Box, Grid
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.sessions import histogram, marginals_class, planned_sums, product_class
from understudy.sessions.answer_memory import identity
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.class_band import band
from understudy.sessions.completing import CompletingPurchase
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.family_product import product_of
from understudy.sessions.histogram import HistogramPurchase
from understudy.sessions.knowledge import Knowledge
from understudy.sessions.looks import FirstLook, LookPurchase
from understudy.sessions.marginals_class import MarginalsPurchase
from understudy.sessions.number_of_rows import RowCountPurchase
from understudy.sessions.product_class import ProductPurchase, ReleasedProduct
from understudy.sessions.purchase import Purchase, PurchaseRequest

SHARE = 0.2
AUDIT = bool(os.environ.get("UNDERSTUDY_AUDIT"))
TRIALS = 4000 if AUDIT else 60
EACH = 2000
DOMAIN = WIDE.domain
NARROWER = 0.85
GAUSSIAN, LAPLACE = {}, {"delta": 0.0}
PRIVATE = {"neighbours": Neighbours.ADD_REMOVE}

Plan = Callable[[Calibrator, Knowledge], Purchase]


def calibrator_of(declared: dict, seed: int = 7) -> Calibrator:
    return Calibrator(curator(seed=seed, **declared), 90)


def nothing_known(calibrator: Calibrator) -> Knowledge:
    rows = float(WIDE.rows)
    return Knowledge(
        Grid(DOMAIN), (rows, rows) if calibrator.relation.rows_are_public else (rows / 2, rows * 2)
    )


def furthest(calibrator: Calibrator, plan: Plan, request: str) -> float:
    """Make a purchase, and say how far off the worst is that follows from it, in parts of its band."""
    knowledge = nothing_known(calibrator)
    purchase = plan(calibrator, knowledge)
    result = purchase.make(calibrator, knowledge, PurchaseRequest(request, ""))
    if isinstance(purchase, RowCountPurchase):
        return part_of(*knowledge.total, WIDE.rows)
    if isinstance(purchase, HistogramPurchase):
        known = knowledge.one_ways[purchase.name]
        off = known.counts - WIDE.count((purchase.name,))
        cells = worst_of_histogram(known, off)
        width = known._width(cells)
        return part_of(-width, width, off[cells].sum())
    if isinstance(purchase, ProductPurchase):
        [known] = knowledge._grids[purchase.by].values()
        assert isinstance(known, ReleasedProduct)
        inside = WIDE.sums(Marginal(DOMAIN, purchase.by, purchase.where))
        box = Box(DOMAIN, worst_of_class(known, known.counts - inside))
        where = purchase.where & box.query
        return part_of(*(known.interval(box) or (0.0, 0.0)), WIDE.sums(Marginal.of(where)))
    if isinstance(purchase, MarginalsPurchase):
        return worst_cell(knowledge, purchase.order)
    if isinstance(purchase, LookPurchase):
        return max(after_looks(calibrator, knowledge, purchase, request))
    assert result.answer is not None
    if isinstance(purchase, CompletingPurchase):  # the sum itself, whatever else is known of the count
        return float(np.abs(result.answer.noisy - WIDE.exact(purchase.marginal)).max()) / calibrator.width
    value, error = result.answer.value, result.answer.error
    return part_of(value - error, value + error, WIDE.exact(result.answer.query))


def after_looks(
    calibrator: Calibrator, knowledge: Knowledge, first: LookPurchase, request: str
) -> Iterator[float]:
    """How far off what is known is after the first look, and, by itself, after each of the later ones."""
    box = Box.of(first.marginal.where)
    assert box is not None
    yield part_of(*knowledge.interval(box), WIDE.exact(first.marginal))
    seen, before = knowledge.released[-1].counts, first
    for look in first.later:
        alone = nothing_known(calibrator)
        alone.first_looks[identity(first.marginal)] = FirstLook(before, seen)
        look.make(calibrator, alone, PurchaseRequest(f"{request}, look {look.upto}", ""))
        yield part_of(*alone.interval(box), WIDE.exact(first.marginal))
        seen, before = alone.released[-1].counts, look


def part_of(low: Any, high: Any, true: Any) -> float:
    """How far the truth is from the middle of an interval, in parts of the way to its ends: above 1 outside."""
    low, high, true = (np.asarray(one, float) for one in (low, high, true))
    if ((true < low - ROUNDING) | (true > high + ROUNDING)).any():
        return inf
    bounded = np.isfinite(high - low) & (high > low)
    if not bounded.any():
        return 0.0
    return min(float((np.abs(2 * true - low - high)[bounded] / (high - low)[bounded]).max()), 1.0)


def worst_cell(knowledge: Knowledge, order: int) -> float:
    [known] = knowledge.marginals
    worst = 0.0
    for part in known.parts.all:  # type: ignore[attr-defined]
        if len(part) <= order:
            by = tuple(DOMAIN.names[i] for i in part)
            table = known.table(by, Box(DOMAIN, {}))
            assert table is not None
            worst = max(worst, part_of(table.low, table.high, WIDE.count(by)))
    return worst


def ratios(declared: dict, plan: Plan, trials: int = TRIALS) -> list[float]:
    """What trials come to; after so many there is another ledger, since a budget pays for no more of some."""
    found: list[float] = []
    for start in range(0, trials, EACH):
        calibrator = calibrator_of(declared, seed=7 + start // EACH)
        found += [furthest(calibrator, plan, f"trial {i}") for i in range(start, min(start + EACH, trials))]
    return found


def histogram_of(name: str) -> Plan:
    return lambda calibrator, knowledge: HistogramPurchase.of(calibrator, name, SHARE, 1e9)


def cells_of(name: str) -> Plan:
    return lambda calibrator, knowledge: HistogramPurchase.cells(calibrator, name, SHARE, 1e-4)


def class_of(*by: str, kinds: tuple[Any, ...] = (), **sides: Any) -> Plan:
    where = LinearQuery.conjunction(DOMAIN, sides)
    return lambda calibrator, knowledge: ProductPurchase.of(calibrator, by, where, SHARE, kinds)


def marginals_of(order: int) -> Plan:
    return lambda calibrator, knowledge: MarginalsPurchase.of(calibrator, knowledge, order, SHARE)  # type: ignore[return-value]


def fresh(marginal: Marginal) -> Plan:
    return lambda calibrator, knowledge: DirectPurchase.of(calibrator, knowledge, marginal, SHARE)


def in_looks(marginal: Marginal, *parts: float) -> Plan:
    def plan(calibrator: Calibrator, knowledge: Knowledge) -> Purchase:
        direct = DirectPurchase.of(calibrator, knowledge, marginal, SHARE)
        return LookPurchase.split(calibrator, direct, *parts)

    return plan


def completing(first: Marginal, second: Marginal, third: Marginal) -> Plan:
    """The third of three boxes, with the sum that was planned before the first two were drawn."""
    numbers = count()

    def plan(calibrator: Calibrator, knowledge: Knowledge) -> Purchase:
        request = f"terms {next(numbers)}"
        begun = DirectPurchase.of(calibrator, knowledge, first, 2 * SHARE, of_sum=SHARE)
        begun.make(calibrator, knowledge, PurchaseRequest(f"{request}, first", ""))
        beside = DirectPurchase.of(calibrator, knowledge, second, SHARE)
        beside.make(calibrator, knowledge, PurchaseRequest(f"{request}, second", ""))
        found = CompletingPurchase.of(calibrator, knowledge, third)
        assert found is not None
        assert found.price.amount < DirectPurchase.of(calibrator, knowledge, third, SHARE).price.amount
        return found

    return plan


def certain(marginal: Marginal) -> Plan:
    return lambda calibrator, knowledge: DirectPurchase.certain(calibrator, marginal)  # type: ignore[return-value]


RANGES: dict[str, Any] = {"sex": np.array([True, False, True])}
HALF = conjunction(DOMAIN, {"age": np.arange(12) < 4, "town": np.arange(6) < 3})
THREE = [
    conjunction(DOMAIN, {"hours": np.arange(8) < 5, "job": jobs})
    for jobs in (np.ones(4, bool), np.arange(4) < 2, np.arange(4) >= 2)
]
WEIGHTED = Marginal.of(LinearQuery.table(DOMAIN, ("town",), np.linspace(0, 1, 6)))

CASES: dict[str, tuple[dict, Plan]] = {
    "histogram, ranges": (GAUSSIAN, histogram_of("age")),
    "histogram, ranges, Laplace": (LAPLACE, histogram_of("age")),
    "histogram, ranges, private rows": (PRIVATE, histogram_of("age")),
    "histogram, subsets": (GAUSSIAN, histogram_of("town")),
    "histogram, subsets, Laplace": (LAPLACE, histogram_of("town")),
    "histogram, subsets, private rows, Laplace": (LAPLACE | PRIVATE, histogram_of("town")),
    "histogram, cells": (GAUSSIAN, cells_of("age")),
    "class of rectangles": (GAUSSIAN, class_of("age", "hours")),
    "class of conjunctions in a box": (GAUSSIAN, class_of("age", "town", **RANGES)),
    "class of prefixes and cells": (GAUSSIAN, class_of("age", "town", kinds=("prefixes", "cells"))),
    "class of suffixes and subsets in a box": (
        GAUSSIAN,
        class_of("hours", "job", kinds=("suffixes", "subsets"), **RANGES),
    ),
    "class of prefixes, Laplace": (LAPLACE, class_of("age", "sex", kinds=("prefixes", "cells"))),
    "class of conjunctions, Laplace": (LAPLACE, class_of("sex", "job")),
    "class of conjunctions, private rows": (PRIVATE, class_of("hours", "town")),
    "marginals(2)": (GAUSSIAN, marginals_of(2)),
    "fresh GROUP BY": (GAUSSIAN, fresh(Marginal(DOMAIN, ("age", "town")))),
    "fresh GROUP BY, Laplace": (LAPLACE, fresh(Marginal(DOMAIN, ("age", "town")))),
    "fresh count": (GAUSSIAN, fresh(HALF)),
    "fresh count, Laplace, private rows": (LAPLACE | PRIVATE, fresh(HALF)),
    "two looks": (GAUSSIAN, in_looks(HALF, 0.5)),
    "two looks, private rows": (PRIVATE, in_looks(HALF, 0.35)),
    "four looks": (GAUSSIAN, in_looks(HALF, 0.33, 0.46, 0.65)),
    "planned sum": (GAUSSIAN, completing(*THREE)),
    "fresh weights": (GAUSSIAN, fresh(WEIGHTED)),
    "number of rows": (PRIVATE, lambda calibrator, knowledge: RowCountPurchase.of(calibrator, SHARE)),
}


def mutant_of(case: str) -> float:
    """Bands so many times as wide are noticed. Noise varies most if of one value, or with the tails of Laplace."""
    varies = (
        "Laplace" in case
        or "looks" in case
        or case in ("fresh count", "planned sum", "fresh weights", "number of rows")
    )
    return (0.7 if AUDIT else 0.45) if varies else (0.8 if AUDIT else 0.65)


@pytest.mark.parametrize("case", CASES)
def test_a_purchase_keeps_its_share_of_beta(case, record_property):
    declared, plan = CASES[case]
    found = ratios(declared, plan)
    record_property("misses", f"{sum(ratio > 1 for ratio in found)} of {TRIALS}, share {SHARE}")
    assert_covers(found, SHARE, mutant=mutant_of(case))


def _narrower_histograms(patch):
    widths = histogram.half_widths
    patch.setattr(histogram, "half_widths", lambda *args: NARROWER * widths(*args))


def _narrower_classes(patch):
    band: Any = product_class.band
    patch.setattr(product_class, "band", lambda *args: NARROWER * band(*args))


def _narrower_cells(patch):
    patch.setattr(marginals_class, "ndtri", lambda share: NARROWER * ndtri(share))


def _cheaper_counts(patch):
    priced = Calibrator.price_of_counts
    patch.setattr(
        Calibrator,
        "price_of_counts",
        lambda calibrator, *args: priced(replace(calibrator, width=int(calibrator.width / NARROWER)), *args),
    )


def _single_members(patch):
    """The band of one question, for a whole class: what nobody notices who does not steer."""
    patch.setattr(product_class, "band", lambda product, share: norm.isf(share / 2) * product.norm(2))


def _single_cells(patch):
    patch.setattr(marginals_class, "ndtri", lambda share: ndtri(SHARE / 2))


def _weights_after_the_draws(patch):
    """Both looks are seen before they are weighed: the larger count gets all of the weight."""
    patch.setattr(LookPurchase, "_together", lambda look, before, noisy: np.maximum(before, noisy))


def _one_band_for_all_looks(patch):
    """The noise of early looks, with the band that only all looks together have."""
    patch.setattr(LookPurchase, "_width", lambda look, calibrator: float(calibrator.width))


def _narrower_sums(patch):
    varied = planned_sums.variance_of_sum
    patch.setattr(planned_sums, "variance_of_sum", lambda width, *rest: varied(width / NARROWER, *rest))


MORE = pytest.mark.slow("more mutants of the same kind")

MUTANTS = [
    ("histogram, ranges", _narrower_histograms, 600),
    ("class of rectangles", _narrower_classes, 200),
    ("class of rectangles", _single_members, 60),
    ("marginals(2)", _single_cells, 40),
    ("fresh GROUP BY", _cheaper_counts, 400),
    pytest.param("histogram, ranges, Laplace", _narrower_histograms, 900, marks=MORE),
    pytest.param("histogram, subsets", _narrower_histograms, 900, marks=MORE),
    pytest.param("marginals(2)", _narrower_cells, 160, marks=MORE),
    pytest.param("two looks", _weights_after_the_draws, 1500, marks=MORE),
    pytest.param("four looks", _one_band_for_all_looks, 1500, marks=MORE),
    pytest.param("planned sum", _narrower_sums, 1500, marks=MORE),
    pytest.param("fresh GROUP BY, Laplace", _cheaper_counts, 900, marks=MORE),
]


@pytest.mark.parametrize(
    ("case", "mutant", "trials"), MUTANTS, ids=lambda part: getattr(part, "__name__", str(part))
)
def test_a_purchase_with_too_narrow_a_band_is_noticed(case, mutant, trials, monkeypatch):
    mutant(monkeypatch)
    found = sum(ratio > 1 for ratio in ratios(*CASES[case], trials))
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(found, trials, SHARE)


# ---- bounded noise, which promises its error for sure

BOUNDED = {"budget": Budget.of(1000, 1e-2, key_delta=9e-3, filter="renyi")}
SURE = {
    "count": certain(HALF),
    "GROUP BY": certain(Marginal(DOMAIN, ("age", "town"))),
}


@pytest.mark.parametrize("case", SURE)
def test_counts_with_bounded_noise_are_never_off_by_more_than_their_error(case, monkeypatch):
    found = ratios(BOUNDED, SURE[case])
    assert max(found) <= 1
    assert max(found) > 0.5  # noise that is hardly there would promise nothing
    priced = Calibrator.price_of_certain
    monkeypatch.setattr(
        Calibrator,
        "price_of_certain",
        lambda calibrator, *args, **more: priced(
            replace(calibrator, width=int(calibrator.width / 0.7)), *args, **more
        ),
    )
    assert max(ratios(BOUNDED, SURE[case])) > 1  # noise that reaches further is noticed


@pytest.mark.parametrize(
    "kinds", [("ranges", "subsets"), ("prefixes", "cells"), ("suffixes", "ranges"), ("cells", "subsets")]
)
def test_a_band_for_a_rare_failure_covers_every_member(kinds):
    """Where a session's share of β is small a union bound takes the place of the simulation."""
    share, draws = 1e-3, 20_000
    product = product_of((7, 4), kinds, laplace=False)
    width = band(product, share)
    assert width is not None
    shape = (draws, *(len(matrix) for matrix in product.matrices))
    found = product.suprema(np.random.default_rng(9).normal(size=shape))
    assert_at_most(int((found > width).sum()), draws, share)
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(int((found > NARROWER * width).sum()), draws, share)
