"""The card of column profiling."""

from __future__ import annotations

from understudy.mechanism.card import Card, Family
from understudy.privacy.event import GaussianNoise, LaplaceNoise

CARD = Card(
    name="column profiling, on grids that follow the mass",
    family=Family.DATABASE,
    privacy="ε, or ρ, for all columns together",
    accuracy="measured: `python -m bench columns`",
    source="octave histograms, Haar thresholds",
    events=(LaplaceNoise, GaussianNoise),
)
