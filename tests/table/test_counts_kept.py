"""What was counted once is not counted again, within bounds, and never of a table that changed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy.declaration.declaration import SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import SourceChangedError
from understudy.table import kept_counts
from understudy.table import truth as module
from understudy.table.source import in_memory, open_source
from understudy.table.truth import Truth

DOMAIN = Domain(tuple(Bins.integers(name, 0, 3) for name in "abc"))


def frame(seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(seed).integers(0, 4, (500, 3)), columns=list("abc"))


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many cliques each pass over the rows counted."""
    found: list[int] = []
    counter = module.MarginalCounter

    def counted(sizes, cliques):
        found.append(len(cliques))
        return counter(sizes, cliques)

    monkeypatch.setattr(module, "MarginalCounter", counted)
    return found


def test_only_what_is_new_is_counted(passes: list[int]):
    truth = Truth(in_memory(frame()), DOMAIN)
    first = truth.counts([("a", "b"), ("b", "c")])
    again = truth.counts([("b", "c"), ("a",), ("a", "b")])
    assert passes == [2, 1]
    for clique, table in first.items():
        np.testing.assert_array_equal(again[clique], table)
    with pytest.raises(ValueError, match="read-only"):
        again["a", "b"][0] = 1


def test_what_is_kept_is_bounded(passes: list[int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kept_counts, "COUNTED_CELLS", 20)
    truth = Truth(in_memory(frame()), DOMAIN)
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    exact = {clique: frame().groupby(list(clique)).size().unstack().to_numpy() for clique in pairs}
    for _ in range(2):
        found = truth.counts(pairs)
        assert all((found[clique] == exact[clique]).all() for clique in pairs)
    assert passes == [3, 2]


def test_a_file_that_changed_is_refused_though_its_counts_are_kept(tmp_path):
    path = tmp_path / "table.csv"
    frame().to_csv(path, index=False)
    truth = Truth(open_source(SourceSpec("table.csv"), base=tmp_path), DOMAIN)
    truth.counts([("a", "b")])
    frame(1).to_csv(path, index=False)
    with pytest.raises(SourceChangedError):
        truth.counts([("a", "b")])


def test_what_is_announced_is_counted_in_the_next_pass(passes: list[int]):
    truth = Truth(in_memory(frame()), DOMAIN)
    truth.anticipate([("a",), ("a", "b"), ("b", "c"), ("a",)])
    everybody = truth.counts([()])[()]
    assert everybody == 500
    found = truth.counts([("a", "b"), ("a",)])
    assert passes == [4]
    np.testing.assert_array_equal(found["a", "b"].sum(axis=1), found["a",])
    np.testing.assert_array_equal(found["a",], frame().groupby("a").size())
