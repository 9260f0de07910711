"""Joint coverage of sessions by what their answers rest on: quantiles by ranges, one look for two, bounded noise.

As in `test_coverage`, analysts who know the table steer to the worst of what was released. A quantile holds if its
interval has the true one in it; the ranges that it rests on are asked for as counts. Counts with bounded noise
promise their error for sure: of whole sessions that buy nothing else, none may miss. UNDERSTUDY_AUDIT=1 runs 500
sessions of each kind.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from counted import ROUNDING
from session_analysts import Heard, Interview
from sessions.test_coverage import (
    AUDIT,
    BETA,
    LARGE,
    SESSIONS,
    Kind,
    anything,
    interviewed,
    rare,
    ratios,
    visited,
)
from statistical import assert_at_most, assert_covers
from understudy.privacy.budget import Budget
from understudy.query.marginal import Marginal
from understudy.sessions import product_class
from understudy.sessions.calibrator import Calibrator
from understudy.sessions.direct import DirectPurchase
from understudy.sessions.forecast import Forecast
from understudy.sessions.looks import LookPurchase

pytestmark = pytest.mark.usefixtures("generous")

MORE = pytest.mark.slow("hundreds of sessions")


def sessions_of(kind: Kind) -> int:
    return SESSIONS if AUDIT else kind.few


# ---- quantiles by ranges

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
QUANTILES = Kind(
    8,
    mutant=(0.6, 0.75),
    count=4,
    terms={"queries": 60},
    buys=("grids",),
)


def quantiled(kind: Kind, seed: int, beta: float) -> tuple[Heard, Counter[str]]:
    """One session that is asked for quantiles of ages and hours, of everybody and by group, and then steered."""
    session = kind.open(seed, beta)
    interview, draw = Interview(session, kind.truth), np.random.default_rng(seed)
    for _ in range(kind.count):
        measured = str(draw.choice(["age", "hours"]))
        group = str(draw.choice(["", "sex", "town", "job"]))
        levels = (
            LEVELS if draw.random() < 0.5 else (float(draw.choice(LEVELS)),)
        )  # by ranges, or searched for
        ask_quantiles(interview, measured, group, levels)
    interview.steer()
    return interview.heard, Counter(plan["kind"] for plan in session._buyer.journal.all())


def ask_quantiles(interview: Interview, measured: str, group: str, levels: tuple[float, ...]) -> None:
    """Quantiles of an attribute in each group, compared with those of the table's own cells."""
    heard, truth = interview.heard, interview.truth
    told = ", ".join(f"quantile_disc({measured}, {level})" for level in levels)
    by = f" GROUP BY {group} ORDER BY {group}" if group else ""
    answer = interview.session.ask(f"SELECT {group + ', ' if group else ''}{told} FROM t{by}")
    heard.asked += 1
    if answer.source == "uncertified":
        heard.uncertified += 1
        return
    counts = truth.count(truth.domain.clique((measured, group) if group else (measured,)))
    if group and truth.domain.clique((measured, group))[0] == measured:
        counts = counts.T
    labels = [str(label) for label in truth.domain[group].labels] if group else [""]
    wanted = dict(zip(labels, counts.reshape(len(labels), -1), strict=True))
    for row in answer.cells:
        name, found = (str(row[0]), row[1:]) if group else ("", row)
        running = np.cumsum(wanted[name])
        for level, cell in zip(levels, found, strict=True):
            true = int(np.searchsorted(running, level * running[-1]))
            heard.missed |= not cell.low - ROUNDING <= true <= cell.high + ROUNDING


def test_quantiles_and_the_ranges_they_rest_on_hold_together():
    beta = BETA if AUDIT else QUANTILES.beta
    heard = visited("quantiles by ranges", QUANTILES, sessions_of(QUANTILES), beta, visit=quantiled)
    assert_covers(ratios(heard), beta, mutant=QUANTILES.mutant[AUDIT])


def _narrower_ranges(patch):
    band: Any = product_class.band
    patch.setattr(product_class, "band", lambda *args: 0.8 * band(*args))


def _a_range_for_itself(patch):
    """The band of one range, for all of them: what nobody notices who does not steer."""
    patch.setattr(product_class, "band", lambda product, share: norm.isf(share / 2) * product.norm(2))


@pytest.mark.parametrize(
    ("mutant", "sessions"), [(_a_range_for_itself, 18), pytest.param(_narrower_ranges, SESSIONS, marks=MORE)]
)
def test_quantiles_on_a_band_that_is_too_narrow_are_noticed(mutant, sessions, monkeypatch):
    mutant(monkeypatch)
    heard = visited(f"mutant {mutant.__name__}", QUANTILES, sessions, BETA, visit=quantiled)
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(sum(one.missed for one in heard), sessions, BETA)


# ---- two looks, of which only one can be paid

LOOKS = Kind(
    0,
    mutant=(0.5, 0.65),
    count=30,
    ask=rare,
    truth=LARGE,
    declared={"epsilon": 0.03},
    terms={"alpha": 0.02, "queries": 30},
    buys=("look", "fresh", "one look for two"),
)
"""The budget pays for two looks at first, then for counts in one look alone, and at last for nothing."""


def poorly(kind: Kind, seed: int, beta: float) -> tuple[Heard, Counter[str]]:
    """One session of `test_coverage`, with the number of forecasts that took one look for two."""
    found = 0
    answering = Forecast._answering

    def noted(self: Forecast, marginal: Marginal, *, asked: int) -> Any:
        nonlocal found
        purchases = answering(self, marginal, asked=asked)
        wanted = self.policy.counts(self.knowledge, marginal, asked=asked)
        found += isinstance(wanted, LookPurchase) and isinstance(purchases[0], DirectPurchase)
        return purchases

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Forecast, "_answering", noted)
        heard, bought = interviewed(kind, seed, beta)
    return heard, bought + Counter({"one look for two": found})


@MORE
def test_counts_in_one_look_where_two_cannot_be_paid_hold_together():
    heard = visited("two looks, one paid", LOOKS, SESSIONS, BETA, visit=poorly)
    assert_covers(ratios(heard), BETA, mutant=LOOKS.mutant[True])


def _noisier_counts(patch):
    """Counts in one look with normal noise of four times the deviation that their plan says, with its band."""
    make = DirectPurchase.make

    def noisier(purchase: DirectPurchase, *made: Any) -> Any:
        price = replace(purchase.price, amount=purchase.price.amount / 16)
        return make(purchase if purchase.is_certain else replace(purchase, price=price), *made)

    patch.setattr(DirectPurchase, "make", noisier)


@MORE
def test_counts_in_one_look_that_are_noisier_than_planned_are_noticed(monkeypatch):
    _noisier_counts(monkeypatch)
    heard = visited("mutant, two looks, one paid", LOOKS, 120, BETA, visit=poorly)
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(sum(one.missed for one in heard), len(heard), BETA)


# ---- bounded noise

RENYI = {"budget": Budget.of(50, 1e-6, key_delta=5e-7, filter="renyi")}
"""A budget that has a price for bounded noise."""

CERTAIN = Kind(6, count=20, ask=anything, declared=RENYI, terms={"noise": "bounded", "mechanism": "direct"})
MIXED = Kind(
    5,
    mutant=(0.75, 0.85),
    count=25,
    ask=anything,
    truth=LARGE,
    declared=RENYI,
    terms={"queries": 1000},
    buys=("histogram", "look", "bounded", "usual"),
)
"""Bounded and normal noise in one session: the first takes nothing of β, the second all that it says."""


def by_noise(kind: Kind, seed: int, beta: float) -> tuple[Heard, Counter[str]]:
    """One session of `test_coverage`, with the kinds of noise that counts were bought with by themselves."""
    return interviewed(kind, seed, beta, lambda plan: plan.get("noise", "usual"))


def test_a_session_that_buys_bounded_noise_alone_never_misses():
    heard = visited("bounded noise alone", CERTAIN, sessions_of(CERTAIN), BETA, visit=by_noise)
    assert not any(one.missed for one in heard)
    assert max(one.nearest for one in heard) > 0.5  # there was noise


def _a_longer_reach(patch):
    """Noise that is bounded, and reaches beyond the error that is promised."""
    priced = Calibrator.price_of_certain
    patch.setattr(
        Calibrator,
        "price_of_certain",
        lambda calibrator, *args, **more: priced(
            replace(calibrator, width=int(calibrator.width / 0.7)), *args, **more
        ),
    )


def test_noise_that_reaches_further_than_its_error_is_noticed(monkeypatch):
    _a_longer_reach(monkeypatch)
    heard = visited("mutant _a_longer_reach", CERTAIN, sessions_of(CERTAIN), BETA, visit=by_noise)
    assert any(one.missed for one in heard)


def test_bounded_and_normal_noise_hold_together():
    beta = BETA if AUDIT else MIXED.beta
    heard = visited("bounded and normal noise", MIXED, sessions_of(MIXED), beta, visit=by_noise)
    assert_covers(ratios(heard), beta, mutant=MIXED.mutant[AUDIT])


@MORE
def test_normal_noise_beside_bounded_noise_that_is_noisier_than_planned_is_noticed(monkeypatch):
    _noisier_counts(monkeypatch)
    heard = visited("mutant, bounded and normal noise", MIXED, 60, BETA, visit=by_noise)
    with pytest.raises(AssertionError, match="failures"):
        assert_at_most(sum(one.missed for one in heard), len(heard), BETA)
