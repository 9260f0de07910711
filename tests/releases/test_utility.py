"""What models learn from the rows: their accuracy in the table is told without a look, within its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tiny_release
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.releases.making import release
from understudy.releases.release import Release
from understudy.releases.run import MarginalAnswer
from understudy.releases.stored import StoredRates
from understudy.releases.utility import predictions
from understudy.releases.utility_part import utility_part

DOMAIN = Domain(tuple(Bins.integers(name, 0, 2) for name in "abc"))


def people(rows: int, seed: int) -> dict[str, np.ndarray]:
    """A table in which b follows a nine times in ten, and c nothing."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.9, a, rng.integers(0, 3, rows))
    return {"a": a, "b": b, "c": rng.integers(0, 3, rows)}


def counted(codes: dict[str, np.ndarray], clique: tuple[str, ...]) -> np.ndarray:
    shape = DOMAIN.shape(clique)
    cells = np.ravel_multi_index([codes[name] for name in clique], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def answered(codes: dict[str, np.ndarray], error: float, *, public: bool) -> Release:
    """The table's pairs, each cell off by noise within the error bar."""
    rng = np.random.default_rng(7)
    base = release(tiny_release.project(), "1-way", epsilon=1, method=tiny_release.tiny)
    answers = tuple(
        MarginalAnswer.around(
            clique,
            counted(codes, clique) + rng.uniform(-error, error, DOMAIN.shape(clique)),
            np.full(DOMAIN.shape(clique), error),
            "measured",
        )
        for clique in (("a", "b"), ("a", "c"), ("b", "c"))
    )
    privacy = base.certificate["privacy"] | {"neighbours": "replace" if public else "add-remove"}
    return replace(
        base, domain=DOMAIN, answers=answers, also=(), rows=float(len(codes["a"])),
        certificate=base.certificate | {"privacy": privacy},
    )  # fmt: skip


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("error", [0.0, 5.0, 60.0, 5000.0])
def test_the_interval_holds_the_accuracy_in_the_table(error, public):
    truth = people(4000, 1)
    found = {one.target: one for one in predictions(answered(truth, error, public=public), people(3000, 2))}
    assert set(found) == {"a", "b", "c"}
    assert found["b"].features == ("a",)
    right = float((truth["a"] == truth["b"]).mean())  # what a decision table over a learns of b
    assert found["b"].low - 1e-9 <= right <= found["b"].high + 1e-9
    assert 0 <= found["b"].low <= found["b"].high <= 1
    assert found["b"].on_rows == pytest.approx(0.93, abs=0.03)
    if error == 0:
        assert found["b"].low == pytest.approx(found["b"].high) == pytest.approx(right)
        assert found["b"].in_table == pytest.approx(right)
        assert found["b"].baseline == pytest.approx(counted(truth, ("b",)).max() / 4000)


def test_rows_that_mislead_are_told_by_the_answers():
    truth, rows = people(4000, 1), people(3000, 2)
    rows["b"] = (rows["a"] + 1) % 3  # these rows say that b never equals a
    (found,) = [one for one in predictions(answered(truth, 5.0, public=True), rows) if one.target == "b"]
    assert found.on_rows > 0.99
    assert found.high < 0.1


def test_a_part_of_the_rows_is_like_all_of_them():
    """Rows come from `draw`, whose order is that of a generator with a small seed."""
    truth = people(60_000, 1)
    rates = counted(truth, ("a", "b", "c")) / 60_000
    made = replace(answered(truth, 5.0, public=True), standin=StoredRates(DOMAIN, rates))
    for seed in (0, 1, 60_000):
        found = {one.target: one for one in predictions(made, made.draw(seed=seed))}
        assert abs(found["b"].on_rows - found["b"].in_table) < 0.015
        assert abs(found["c"].on_rows - 1 / 3) < 0.02


def test_where_nothing_tells_nothing_is_said():
    truth = people(400, 1)
    known = answered(truth, 1.0, public=True)
    unknown = tuple(replace(answer, high=np.full(answer.counts.shape, np.inf)) for answer in known.answers)
    assert predictions(replace(known, answers=unknown), truth) == ()
    assert (
        predictions(answered(truth, 1.0, public=True), {name: column[:0] for name, column in truth.items()})
        == ()
    )
    assert utility_part((), 0.05) == ""


def test_the_section_tells_every_number():
    found = predictions(answered(people(4000, 1), 5.0, public=True), people(3000, 2))
    text = utility_part(found, 0.05)
    assert text.count("<tr") == 4
    assert "probability 0.95" in text
    assert ">nothing<" not in text
    assert ">nothing<" in utility_part([replace(found[0], low=0.0, high=1.0)], 0.05)
