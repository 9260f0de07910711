"""Sessions that buy ahead at once, for the tests of what such purchases tell."""

from __future__ import annotations

import pytest

from understudy.sessions import allowance, histogram_rent, ski_rental


@pytest.fixture
def generous(monkeypatch):
    """Without an allowance and without rent: histograms are bought at once, and classes as soon as they are
    expected to pay off.
    """
    monkeypatch.setattr(allowance, "FREE", 10**6)
    monkeypatch.setattr(ski_rental, "FORECAST", 2.0)
    monkeypatch.setattr(histogram_rent, "RENT", 0.0)
    monkeypatch.setattr(histogram_rent, "COUNTS", 0.0)
