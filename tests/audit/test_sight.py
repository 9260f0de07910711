"""What an audit says of its own sight: the smallest violation that its draws would have detected, in words."""

from __future__ import annotations

import re

import pytest

from understudy_audit.confidence import certified_epsilon
from understudy_audit.privacy import PairFinding, Verdict
from understudy_audit.registry import EFFORTS, Effort
from understudy_audit.report import AuditReport
from understudy_audit.sight import LIMITS, sharpest, sight


def verdict(trials: int, *, claimed: float = 1.0, delta: float = 0.0) -> Verdict:
    found = PairFinding(
        "a pair", "first", delta, claimed, 0.0, 0.0, "an event", (0, 0), (trials, trials), 1e-8
    )
    return Verdict("laplace", "here", 2 * trials, 1e-6, 1, (found,))


def test_the_words_name_the_smallest_violation_that_would_have_been_certified():
    seen = verdict(10_000)
    told = sight(seen)
    least = float(re.search(r"epsilon of ([0-9.]+) or more, (\d+)% above the promised 1;", told)[1])
    best = sharpest(seen)
    assert best is not None
    assert least == pytest.approx(best.detectable, rel=1e-3)
    from math import exp

    for truth, shows in ((least * 1.01, True), (least * 0.95, False)):  # counts of randomised response
        hits = round(10_000 / (1 + exp(-truth))), round(10_000 / (1 + exp(truth)))
        assert (certified_epsilon(hits, (10_000, 10_000), delta=0.0, error=1e-8) > 1) == shows
    assert "a smaller excess could have gone unnoticed" in told


def test_too_few_draws_and_none_say_so():
    assert "too few to see any violation, however large" in sight(verdict(10))
    assert "nothing could have been seen" in sight(Verdict("laplace", "here", 10, 1e-6, 1, ()))
    assert "where 0 is promised" in sight(verdict(10_000, claimed=0.0, delta=0.1))


def test_every_report_says_it_and_fits_a_terminal():
    report = AuditReport("0", "today", "a seed", 1e-6, (verdict(10_000), verdict(10)))
    narrow = report.text(60)
    assert max(map(len, narrow.splitlines())) <= 60
    assert " ".join(LIMITS.split()) in " ".join(narrow.split())
    assert "could have gone unnoticed" in report.html()
    assert report.as_dict()["mechanisms"][1]["sight"] == sight(verdict(10))


def test_a_quick_pilot_looks_at_pairs_spread_over_all():
    assert Effort(4, 1, 4, among=6).considered(30) == [0, 5, 10, 15, 20, 25]
    assert Effort(4, 1, 4, among=6).considered(4) == [0, 1, 2, 3]
    assert EFFORTS["full"]["slow"].considered(30) == list(range(30))
