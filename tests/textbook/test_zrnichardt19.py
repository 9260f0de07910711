"""Zrnic and Hardt's natural analysts: an assumption about the analyst, of which no certificate is made."""

from __future__ import annotations

from math import ceil, log, sqrt
from pathlib import Path

import pytest

from understudy import theory
from understudy_textbook.natural_analysts import progressive_width

PACKAGE = Path(theory.__file__).resolve().parents[1]


def remembered(contraction: float) -> int:
    """Rounds until what was heard has faded to 1 - λ: λ^i ≤ 1 - λ."""
    rounds, memory = 0, 1.0
    while memory > (1 - contraction) * (1 + 1e-12):
        rounds, memory = rounds + 1, memory * contraction
    return rounds


@pytest.mark.parametrize("contraction", [0.01, 0.3, 0.5, 0.9, 0.99, 0.999])
def test_zrnichardt19_the_memory_is_the_rounds_until_it_fades(contraction):
    """K = 1 + ln(1/(1-λ))/ln(1/λ): the rounds that are remembered, and this one."""
    n, t, d = 10**4, 500, 3
    memory = progressive_width(n, t, d, contraction) ** 2 * n / (d * log(t + 1))
    assert ceil(memory - 1e-9) == remembered(contraction) + 1


def test_zrnichardt19_without_memory_it_is_the_width_of_independent_queries():
    assert progressive_width(10**4, 99, 2, 1e-12) == pytest.approx(sqrt(2 * log(100) / 10**4), rel=1e-6)


def test_zrnichardt19_is_no_certificate():
    """Nothing in the package, and so nothing that promises a width to anybody, imports it."""
    told = [path for path in PACKAGE.rglob("*.py") if "natural_analysts" in path.read_text(encoding="utf-8")]
    assert told == []
