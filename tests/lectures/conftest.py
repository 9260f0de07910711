"""Algorithms of the notes that answer every question anew, for the tests of what is counted."""

from __future__ import annotations

import pytest

from understudy.lectures import asking


@pytest.fixture
def forgetful(monkeypatch):
    """Nothing is remembered: a question that is put again is another query, as in the notes."""
    monkeypatch.setattr(asking, "MOST_ANSWERS", 0)
