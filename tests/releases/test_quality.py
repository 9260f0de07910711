"""The quality of a release, from released numbers: proved where it says so, near the truth where it estimates."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np
import pytest

import tiny_release
from understudy.query.marginal import Marginal
from understudy.query.workload import marginals
from understudy.releases.making import release
from understudy.releases.quality import (
    MarginalQuality,
    QualityJudge,
    ReleaseQuality,
    mean_distance,
    sampling_distance,
)
from understudy.releases.quality_part import VERDICTS, pairs_part, quality_part, verdict, warning
from understudy.releases.release import Release
from understudy.releases.run import MarginalAnswer
from understudy.releases.stored import StoredRates

PRIVATE = tiny_release.DECLARATION.replace("budget: {epsilon: 2}", "budget: {epsilon: 2, delta: 1e-9}")
ADDED = PRIVATE + "neighbours: add-remove\nrows: {at_most: 2000}\n"


def truth_of(project, clique):
    """The exact table of a marginal, which only a test may look at."""
    table = tiny_release.people()
    domain = project.domain
    codes = [[domain[name].code(v) for v in table[domain[name].column].to_pylist()] for name in clique]
    counts = np.zeros(domain.shape(clique))
    np.add.at(counts, tuple(map(np.array, codes)), 1)
    return counts


@pytest.fixture(scope="module")
def told():
    """A release by the law of its noise, its rows, and the project that only the tests ask for the truth."""
    project = tiny_release.project(PRIVATE)
    made = release(project, marginals(2), epsilon=1, delta=1e-9, method="residual")
    codes = made.draw()
    return project, made, codes, QualityJudge(made, codes).judge(made.domain.names)


def test_the_sampling_error_is_that_of_binomial_counts():
    shares = np.array([0.5, 0.3, 0.19, 0.01, 0.0])
    for rows in (1, 2, 7, 40):
        exact = sum(
            sum(abs(k - rows * p) * comb(rows, k) * p**k * (1 - p) ** (rows - k) for k in range(rows + 1))
            for p in shares
        )
        assert sampling_distance(shares, rows) == pytest.approx(exact / 2 / rows, rel=1e-9)
    assert sampling_distance(np.array([1.0, 0.0]), 10) == 0
    assert sampling_distance(shares, 0) == 1


def test_a_sample_is_as_far_from_its_population_as_the_sampling_error_says():
    draw, shares = np.random.default_rng(3), np.array([0.4, 0.3, 0.2, 0.1])
    found = np.abs(draw.multinomial(200, shares, 4000) / 200 - shares).sum(axis=1) / 2
    assert found.mean() == pytest.approx(sampling_distance(shares, 200), rel=0.05)


def test_the_bound_holds_and_the_estimate_is_near(told):
    """The rows are no further from the table than the bound; estimates are within a factor of 3 of the truth."""
    project, made, _, quality = told
    off, estimates = [], []
    for found in (*quality.columns, *quality.pairs):
        exact = truth_of(project, found.clique)
        rows = QualityJudge(made, made.draw()).shown(found.clique)[1]
        distance = np.abs(rows - exact).sum() / 2 / tiny_release.ROWS
        assert distance <= found.bound + 1e-9
        assert found.expected <= found.bound
        assert found.distance >= found.expected
        off.append(distance)
        estimates.append(found.distance)
    assert len(quality.pairs) == 10
    assert np.mean(off) / 3 <= np.mean(estimates) <= 3 * np.mean(off)


def test_private_numbers_of_rows_are_bounded_too():
    project = tiny_release.project(ADDED)
    made = release(project, marginals(1), epsilon=1, delta=1e-9, method="residual")
    judge = QualityJudge(made, made.draw())
    for found in judge.judge(made.domain.names).columns:
        exact, rows = truth_of(project, found.clique), judge.shown(found.clique)[1]
        distance = np.abs(rows / rows.sum() - exact / exact.sum()).sum() / 2
        assert distance <= found.bound


def test_the_worst_cells_are_certainly_no_further_off_than_they_say(told):
    project, _, _, quality = told
    assert {len(cell.clique) for cell in quality.worst} == {1, 2}
    assert [cell.reach for cell in quality.worst[:8]] == sorted(
        (c.reach for c in quality.worst[:8]), reverse=True
    )
    for cell in quality.worst:
        codes = [
            project.domain[name].labels.index(label)
            for name, label in zip(cell.clique, cell.labels, strict=True)
        ]
        assert abs(cell.rows - truth_of(project, cell.clique)[tuple(codes)]) <= cell.reach


def judged(counts, error, *, rows=100.0, basis="measured", currency="rho", draw=100):
    """A release of one column with these counts, judged."""
    project = tiny_release.project()
    domain = project.domain
    clique = ("age",)
    rates = np.full(domain.shape(clique), 1 / 3)
    answer = MarginalAnswer.around(clique, np.array(counts, float), np.array(error, float), basis)
    certificate = {
        "beta": 0.05, "cost": {"currency": currency}, "privacy": {"neighbours": "replace"}, "table": "t",
    }  # fmt: skip
    small = type(domain)((domain["age"],))
    made = Release(small, StoredRates(small, rates), rows, (answer,), certificate)
    return QualityJudge(made, made.draw(draw)).judge(("age",))


def test_noise_is_what_bars_exceed():
    assert judged([80, 15, 5], [2, 2, 2]).columns[0].noise == 0
    assert judged([80, 15, 5], [20, 20, 20]).columns[0].noise == pytest.approx(0.2)
    noisy = judged([40, 35, 25], [60, 60, 60])
    assert noisy.columns[0].is_noise
    assert noisy.is_noise
    assert verdict(noisy.columns[0]) == "noise"
    assert "Mostly noise" in warning(noisy)
    assert "1 of 1 column" in warning(noisy)
    assert warning(judged([80, 15, 5], [2, 2, 2])) == ""


def test_wider_bars_never_look_better():
    scores = [judged([50, 30, 20], [e, e, e]).columns[0] for e in (0.1, 1, 5, 20, 90)]
    distances = [found.distance for found in scores]
    assert distances == sorted(distances)
    assert [found.bound for found in scores] == sorted(found.bound for found in scores)
    assert {found.sampling for found in scores} == {scores[0].sampling}
    pure = judged([50, 30, 20], [5, 5, 5], currency="epsilon").columns[0]
    assert 0 < pure.expected < pure.bound


def test_nothing_certified_nothing_scored():
    bare = judged([50, 30, 20], [np.inf] * 3, basis="uncertified")
    (found,) = bare.columns
    assert (found.expected, found.distance, found.score, found.ratio, found.noise) == (None,) * 5
    assert found.bound == 1
    assert verdict(found) == "none"
    assert bare.is_noise is None
    assert bare.worst == ()
    assert mean_distance(bare.columns) is None
    by_theorem = judged([50, 30, 20], [3, 3, 3], basis="certified")
    assert by_theorem.columns[0].expected is None
    assert by_theorem.columns[0].bound == pytest.approx(0.2)
    assert VERDICTS["none"] in quality_part(by_theorem)


def test_no_rows_no_gap():
    (found,) = judged([50, 30, 20], [3, 3, 3], draw=0).columns
    assert found.gap is None
    assert found.distance == found.expected


def test_verdicts_compare_with_the_sampling_error():
    def of(expected):
        return MarginalQuality(("a",), 3, expected, 1.0, 0.0, 0.01, 0.0)

    assert [verdict(of(x)) for x in (0.0, 0.01, 0.029, 0.2)] == ["good", "good", "near", "above"]
    assert of(0.02).ratio == 2
    assert of(0.02).score == 0.98
    shown = quality_part(ReleaseQuality((of(0.02),), (), (), left_out=3))
    assert "2.0 × sampling error" in shown
    assert "3 pairs" in shown


def test_some_noise_is_a_warning(told):
    _, _, _, quality = told
    some = replace(quality.columns[0], noise=0.9)
    calm = tuple(replace(found, noise=0.0) for found in quality.columns)
    pairs = tuple(replace(found, noise=0.0) for found in quality.pairs)
    assert warning(replace(quality, columns=calm, pairs=pairs)) == ""
    assert "Some parts are mostly noise" in warning(replace(quality, columns=(some, *calm[1:]), pairs=pairs))


def test_pairs_are_drawn_as_answers_and_as_rows(told):
    _, made, codes, quality = told
    shown = pairs_part(made, QualityJudge(made, codes), quality)
    assert shown.count("<span>released answers</span>") == 6
    assert shown.count("<span>synthetic rows</span>") == 6
    first = max(quality.pairs, key=lambda found: found.association - found.expected)
    a, b = first.clique
    assert f"{a} (down) × {b} (across)" in shown
    value = made.answer(Marginal(made.domain, first.clique)).value
    assert f"{value.max():,.0f} people" in shown
