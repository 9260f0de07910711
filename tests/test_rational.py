"""Numbers as their author wrote them, within what a ledger can write down and read again."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from understudy.errors import ParameterError
from understudy.rational import exact


@pytest.mark.parametrize(
    "long", [Fraction(10**4100 + 1, 10**4100), Decimal("1e-100000000"), Decimal("0." + "1" * 2000), 10**2000]
)
def test_numbers_that_no_ledger_could_read_again_are_refused(long):
    with pytest.raises(ParameterError, match="fewer digits"):
        exact(long)


def test_numbers_of_many_digits_are_exact():
    assert exact(Decimal("0." + "1" * 900)) == Fraction(int("1" * 900), 10**900)
    assert exact(1e-300) == Fraction(1, 10**300)
