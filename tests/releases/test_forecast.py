"""What a release would say is forecast from public numbers, and comes out as forecast."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import understudy as us
from program import call
from understudy.declaration.file import parse
from understudy.errors import ParameterError, RefusedError
from understudy.noise.samplers import SeededNoise
from understudy.query.workload import Workload
from understudy.releases.method_plan import plan_release

TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {{epsilon: 1, delta: 1e-9}}
attributes:
  age: {{type: integer, edges: [0, 18, 30, 45, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
  smoker: {{type: boolean}}
"""
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(0, 100, 20_000),
        "sex": RNG.choice(["F", "M"], 20_000),
        "smoker": RNG.random(20_000) < 0.2,
    }
)


def project(neighbours: str = "replace", seed: int = 1) -> us.Project:
    declared = parse(TEXT.format(neighbours=neighbours))
    return us.Project.frame(FRAME, declared, noise=SeededNoise(seed))


@pytest.mark.parametrize("method", ["residual", "mwem", "adaptive"])
@pytest.mark.parametrize("order", [1, 2])
def test_errors_come_out_as_forecast(method, order):
    p = project()
    told = us.forecast(p, us.marginals(order), epsilon=0.5, method=method)
    assert p.ledger.spent.units == 0
    assert told.method == method
    made = us.release(p, us.marginals(order), epsilon=0.5, method=method)
    assert made.certificate["cost"]["amount"] <= told.cost.amount * (1 + 1e-9)
    truth = {c: p.curator._truth.count(c) for c in Workload.all_marginals(p.domain, order)}
    off = np.concatenate([np.abs(a.counts - truth[a.clique]).ravel() for a in made.answers])
    forecasts = {one.clique: one for one in told.marginals}
    for answer in made.answers:
        one = forecasts[answer.clique]
        assert one.cells == answer.counts.size
        assert answer.half_width.max() <= 1.02 * one.half_width
    assert off.mean() <= 2 * np.mean([one.usual for one in told.marginals])
    rows = made.sample(20_000)
    drawn = np.array([(rows["sex"] == sex).mean() for sex in "FM"])
    exact = np.array([(FRAME["sex"] == sex).mean() for sex in "FM"])
    assert np.abs(drawn - exact).sum() / 2 <= 3 * told.rows_error + 0.01


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("method", "delta"), [("mwem", 0), ("mwem", 1e-9), ("residual", 1e-9), ("adaptive", 1e-9)]
)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_no_interval_is_certified_that_is_longer_than_forecast(method, delta, order, neighbours):
    text = TEXT.format(neighbours=neighbours).replace("epsilon: 1", "epsilon: 5")
    declared = parse(text)
    if neighbours == "add-remove":  # else nothing is forecast of an adaptive release
        declared = replace(declared, rows_at_least=20_000)
    ratios = []
    for seed in range(3):
        p = us.Project.frame(FRAME, declared, noise=SeededNoise(seed))
        told = us.forecast(p, us.marginals(order), epsilon=0.5, delta=delta, method=method)
        made = us.release(p, us.marginals(order), epsilon=0.5, delta=delta, method=method)
        everything = (*told.marginals, *told.beside)
        known = {one.clique: one.half_width for one in everything if one.half_width is not None}
        answered = (*made.answers, *made.also)
        ratios += [a.half_width.max() / known[a.clique] for a in answered if a.clique in known]
        assert {one.clique for one in told.beside} == {a.clique for a in made.also}
        assert {one.clique[0] for one in told.columns} == set(p.domain.names)
    assert max(ratios, default=0.0) <= 1.02
    assert not ratios or max(ratios) > 0.5  # and not twice what comes out


def test_the_method_is_the_one_that_release_takes():
    for order in (1, 2, 3):
        p = project()
        told = us.forecast(p, us.marginals(order), epsilon=0.5)
        assert told.method == us.release(p, us.marginals(order), epsilon=0.5).certificate["method"]
        assert 0 < told.share < 0.5


def test_what_is_not_known_beforehand_is_not_forecast():
    told = us.forecast(project(), us.marginals(2), epsilon=0.5, method="aim")
    assert told.largest_half_width is None
    assert json.loads(json.dumps(told.as_dict()))["marginals"][0]["half_width"] is None
    assert (
        us.forecast(project("add-remove"), us.marginals(2), epsilon=0.5, method="residual").largest_half_width
        > 0
    )
    with pytest.raises(RefusedError, match="does not fit"):
        us.forecast(project(), us.marginals(2), epsilon=0.5, delta=0, method="residual")


@pytest.mark.parametrize("method", ["ic", "auto", "mwem"])
def test_a_device_that_is_not_there_is_refused_before_anything_is_forecast(method):
    words = "GPU|CUDA|CuPy" if method == "ic" else "method='ic'"
    for make in (us.forecast, us.release):
        p = project()
        with pytest.raises(ParameterError, match=words):
            make(p, us.marginals(1), epsilon=0.5, method=method, device="cuda")
        assert p.ledger.spent.units == 0


def test_longer_bars_beside_the_workload_are_forecast_and_told():
    """Single columns are sums of the cells that a plan for triples measures precisely: their bars are longer."""
    p = project()
    told = us.forecast(p, us.marginals(3), epsilon=0.5, method="residual")
    made = us.release(p, us.marginals(3), epsilon=0.5, method="residual")
    assert made.largest_half_width_beside == pytest.approx(told.largest_half_width_beside, rel=0.02)
    assert made.largest_half_width_beside > 1.3 * made.largest_half_width
    plain = json.loads(json.dumps(told.as_dict()))
    assert plain["largest_half_width_beside"] == told.largest_half_width_beside
    assert {tuple(one["by"]) for one in plain["beside"]} == {a.clique for a in made.also}
    alone = us.forecast(p, us.marginals(1), epsilon=0.5, method="residual")
    assert (alone.beside, alone.largest_half_width_beside) == ((), None)


@pytest.mark.parametrize("target", ["age", "sex", "smoker"])
@pytest.mark.parametrize("method", ["residual", "adaptive", "auto"])
def test_no_interval_is_certified_that_is_longer_than_forecast_with_a_target(method, target):
    for seed in range(2):
        p = project(seed=seed)
        terms = {"epsilon": 0.4, "method": method, "target": target}
        known = {one.clique: one.half_width for one in us.forecast(p, us.marginals(2), **terms).marginals}
        made = us.release(p, us.marginals(2), **terms)
        assert made.answers
        assert all(answer.half_width.max() <= 1.02 * known[answer.clique] for answer in made.answers)


WIDE = (
    TEXT
    + """\
  city: {{type: category, values: [A, B, C, D, E]}}
  grade: {{type: category, values: [low, mid, high]}}
"""
)


@pytest.mark.parametrize("method", ["residual", "adaptive", "auto"])
@pytest.mark.parametrize("order", [2, 3])
def test_a_target_never_widens_the_bars_of_its_own_marginals(method, order):
    """`auto` compares methods by errors in which the target's count more, as they do in the release."""
    frame = FRAME.assign(city="A", grade="mid")
    p = us.Project.frame(frame, parse(WIDE.format(neighbours="replace")), noise=SeededNoise(1))
    plain = us.forecast(p, us.marginals(order), epsilon=0.5, method=method)
    for target in p.domain.names:
        told = us.forecast(p, us.marginals(order), epsilon=0.5, method=method, target=target)
        pairs = zip(told.marginals, plain.marginals, strict=True)
        own = [(one.half_width, before.half_width) for one, before in pairs if target in one.clique]
        known = [(error, before) for error, before in own if before is not None]
        assert all(error is not None and error <= before * (1 + 1e-9) for error, before in known)
        if method != "adaptive":
            assert sum(error for error, _ in own) < 0.97 * sum(before for _, before in own)


@pytest.mark.parametrize(
    ("method", "delta", "words"),
    [
        ("mwem", None, "method='residual'"),
        ("smalldb", None, "treats all marginals alike"),
        ("ic", None, "method='adaptive'"),
        ("auto", 0, "Leave out `delta`"),
    ],
)
def test_a_target_that_would_change_nothing_is_refused(method, delta, words):
    text = TEXT.replace("[0, 18, 30, 45, 65, 120]", "[0, 45, 120]") if method == "smalldb" else TEXT
    p = us.Project.frame(FRAME, parse(text.format(neighbours="replace")), noise=SeededNoise(1))
    terms = {"epsilon": 0.5, "delta": delta, "method": method}
    for make in (us.forecast, us.release):
        with pytest.raises(RefusedError, match=words):
            make(p, us.marginals(2), target="smoker", **terms)
    assert p.ledger.spent.units == 0
    assert us.forecast(p, us.marginals(2), **terms).marginals


def test_mwem_picks_by_weights_and_takes_a_target():
    terms = {"epsilon": 0.5, "method": "mwem", "rounds": 1, "per_round": 1}
    assert us.forecast(project(), us.marginals(2), target="smoker", **terms).method == "mwem"


def test_a_target_weighs_and_is_told():
    p = project()
    told = us.forecast(p, us.marginals(2), epsilon=0.5, method="residual", target="smoker")
    plain = us.forecast(p, us.marginals(2), epsilon=0.5, method="residual")
    made = us.release(p, us.marginals(2), epsilon=0.5, method="residual", target="smoker")
    assert made.certificate["target"] == "smoker"
    errors = {one.clique: one.usual for one in told.marginals}
    before = {one.clique: one.usual for one in plain.marginals}
    assert errors["sex", "smoker"] < before["sex", "smoker"]
    assert errors["age", "sex"] > before["age", "sex"]
    assert "target" not in us.release(p, us.marginals(2), epsilon=0.1, method="residual").certificate
    for wrong, order in (("nose", 2), ("smoker", 1)):
        with pytest.raises(ParameterError, match="target"):
            us.forecast(p, us.marginals(order), epsilon=0.1, target=wrong)


def test_smalldb_and_the_construction_are_forecast_by_their_theorems():
    for method in ("smalldb", "ic"):
        p = project()
        told = us.forecast(p, us.marginals(1), epsilon=1, method=method)
        made = us.release(p, us.marginals(1), epsilon=1, method=method)
        assert made.largest_half_width <= told.largest_half_width + 1


# ---- the program


@pytest.fixture
def folder(tmp_path):
    FRAME.head(2000).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "understudy.yml").write_text(TEXT.format(neighbours="replace"))
    return tmp_path


def test_a_dry_run_forecasts_and_leaves_nothing(folder):
    before = sorted(folder.iterdir())
    said = call("release", "--workload", "all-2-way", "--epsilon", "0.5", "--dry-run", cwd=folder).stdout
    for words in (
        "marginal of the workload",
        "marginal told beside it",
        "age, sex",
        "error bar (people)",
        "usual error",
        "synthetic rows",
        "% of the budget",
        "of memory",
    ):
        assert words in said
    plain = json.loads(
        call(
            "release", "--workload", "all-2-way", "--epsilon", "0.5", "--dry-run", "--json", cwd=folder
        ).stdout
    )
    assert {"method", "marginals", "rows_error", "memory", "share", "remaining_share"} <= plain.keys()
    assert sorted(folder.iterdir()) == before
    assert "--out FOLDER" in call("release", "--epsilon", "0.5", cwd=folder, status=2).stderr


def test_a_release_that_is_too_large_says_so_with_options(folder):
    options = ("--workload", "all-2-way", "--epsilon", "0.5", "--memory", "1KB", "--rows", "1", "-o", "out")
    said = call("release", *options, cwd=folder, status=2).stderr
    assert "1 KB is allowed" in said
    assert "--max-cells" in said
    assert "--memory " in said
    assert not (folder / "understudy.ledger").exists()
    rows = (
        "--workload",
        "all-1-way",
        "--epsilon",
        "0.5",
        "--memory",
        "1GB",
        "--rows",
        "900000000",
        "-o",
        "out",
    )
    assert (
        "Draw fewer synthetic rows, at most --rows 3500000, then residual fits"
        in call("release", *rows, cwd=folder, status=2).stderr
    )
    assert not (folder / "understudy.ledger").exists()


def test_the_planner_knows_the_methods_of_a_release(folder):
    declared = parse(TEXT.format(neighbours="replace"))
    found = plan_release(declared, Workload.all_marginals(declared.domain, 2), rows=20_000)
    assert {one.method for one in found} == {"smalldb", "ic", "mwem", "residual", "adaptive", "aim"}
    (chosen,) = [one for one in found if one.chosen]
    told = us.forecast(project(), us.marginals(2), epsilon=1)
    assert chosen.method == told.method
    assert chosen.half_width == pytest.approx(told.largest_half_width)
    options = ("--project", "understudy.yml", "--rows", "20000", "--marginals", "2")
    said = call("plan", *options, cwd=folder).stdout
    assert f"* {chosen.method}" in said
    plain = json.loads(call("plan", *options, "--json", cwd=folder).stdout)
    assert {one["method"] for one in plain["release"]} == {one.method for one in found}
    assert (
        "as one release"
        not in call("plan", "--rows", "1e5", "--queries", "9", "--epsilon", "1", cwd=folder).stdout
    )
