"""Columns whose values are not spread evenly are cut so that no bin holds almost everybody."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.declaration.file import parse
from understudy.declaration.round_edges import round_edges
from understudy.declaration.skew import CROWDED, _crowd, cut_of
from understudy.table.draft_file import write

SPREAD = np.random.default_rng(5)
PAY = SPREAD.lognormal(8, 1.5, 3000).round(2)
KINDS = {
    "pay": PAY,
    "often nothing": np.where(SPREAD.random(3000) < 0.7, 0, PAY),
    "debts and assets": np.where(SPREAD.random(3000) < 0.4, -PAY, PAY),
    "near the top": 1_000_000 - SPREAD.exponential(200, 3000),
    "tiny": PAY / 1e9,
}


def equal(values: np.ndarray, kind: str = "real") -> list[Fraction]:
    return round_edges(Fraction(float(values.min())), Fraction(float(values.max())), kind)


@pytest.mark.parametrize("name", ["pay", "often nothing", "debts and assets", "tiny"])
def test_skewed_values_are_cut_in_growing_steps(name: str):
    values = KINDS[name]
    others = values[values != 0].tolist()
    cut = cut_of(equal(values), values.tolist(), whole=False)
    assert _crowd(equal(values), others) > 0.55
    assert _crowd(cut.edges, others) < 0.35
    assert cut.why.startswith("cut at 1, 2 and 5 times powers of ten: of equal bins one would hold ")
    assert len(cut.edges) <= 41


def test_values_near_the_top_of_a_wide_range_are_cut_near_quantiles():
    values = np.concatenate([KINDS["near the top"], [0.0]])
    cut = cut_of(equal(values), values.tolist(), whole=False)
    assert "near quantiles" in cut.why
    assert _crowd(cut.edges, sorted(values.tolist())) < 0.15
    assert all(edge.denominator == 1 for edge in cut.edges[1:-1])  # round


def test_values_that_are_spread_evenly_are_cut_evenly():
    values = SPREAD.normal(50, 10, 1000)
    assert cut_of(equal(values), values.tolist(), whole=False).edges == tuple(equal(values))
    assert cut_of(equal(PAY), PAY[:40].tolist(), whole=False).why == ""  # too few to tell


@given(st.lists(st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, 1e-9, 1e9]), min_size=2, max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_sample_gives_rising_edges_from_bound_to_bound(values: list[float]):
    if min(values) == max(values):
        return
    for whole in (False, True):
        kind = "integer" if whole else "real"
        edges = equal(np.array(values), kind)
        cut = cut_of(edges, values, whole=whole).edges
        assert (cut[0], cut[-1]) == (edges[0], edges[-1])
        assert all(low < high for low, high in pairwise(cut))
        assert len(cut) <= 43
        assert not whole or all(edge.denominator == 1 for edge in cut[1:-1])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_draft_cuts_money_and_says_why(tmp_path: Path, ending: str):
    frame = pd.DataFrame(
        {"pay": PAY, "cents": (PAY * 100).astype(int), "size": SPREAD.normal(170, 10, 3000).round(1)}
    )
    getattr(frame, f"to_{ending}")(tmp_path / f"t.{ending}", index=False)
    drafted = write(tmp_path / f"t.{ending}", tmp_path / "understudy.yml")
    said = {note.name: note.why for note in drafted.columns}
    domain = parse(drafted.text).domain
    for name in ("pay", "cents"):
        assert "; cut at 1, 2 and 5 times powers of ten: of equal bins one would hold 9" in said[name]
        counts = np.bincount([domain[name].code(value) for value in frame[name].tolist()])
        assert counts.max() < CROWDED * len(frame)
    assert "cut at" not in said["size"]
    assert all("READ OFF THE DATA" in line for line in drafted.text.splitlines() if "edges:" in line)
