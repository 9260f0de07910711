"""Events of every kind, for tests of what they cost together."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from understudy.privacy.event import (
    GaussianNoise,
    LaplaceNoise,
    RandomizedReport,
    RoundedNormal,
    Selection,
    SparseVector,
    SpentBefore,
    Together,
)

parameters = st.fractions(Fraction(1, 1000), Fraction(1, 2), max_denominator=10**6)
singles = st.one_of(
    st.builds(LaplaceNoise, l1=st.integers(0, 3).map(Fraction), scale=st.integers(1, 50).map(Fraction)),
    st.builds(Selection, epsilon=parameters),
    st.builds(SparseVector, epsilon=parameters),
    st.builds(RandomizedReport, epsilon=parameters),
    st.builds(SpentBefore, epsilon=parameters),
)
pure_events = singles | st.lists(singles, max_size=3).map(lambda events: Together(tuple(events)))
any_events = pure_events | st.builds(
    lambda kind, l2_squared, variance: kind(l2_squared=Fraction(l2_squared), variance=Fraction(variance)),
    st.sampled_from([GaussianNoise, RoundedNormal]),
    st.integers(0, 3),
    st.integers(1, 99),
)
