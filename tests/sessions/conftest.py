"""Sessions that buy ahead at once, for the tests of what such purchases tell."""

from __future__ import annotations

import pytest

from understudy.sessions import allowance


@pytest.fixture
def generous(monkeypatch):
    """Without an allowance: histograms and classes are bought as soon as they are expected to pay off."""
    monkeypatch.setattr(allowance, "FREE", 10**6)
