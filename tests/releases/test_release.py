"""A release answers, samples, refuses and resumes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny_release
import understudy
from tiny_release import DECLARATION, ROWS, tiny
from understudy.declaration.file import parse
from understudy.errors import (
    DeclarationError,
    InsufficientBudgetError,
    ParameterError,
    QueryError,
    RefusedError,
)
from understudy.project import Project
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.workload import Workload, marginals
from understudy.releases import methods
from understudy.releases.making import release
from understudy.releases.method_choice import chosen
from understudy.releases.purchases import paid_before
from understudy.releases.release import Release
from understudy.releases.run import MarginalAnswer, Outcome, Run
from understudy.releases.stored import StoredRates
from understudy.releases.workload_file import as_workload

DELTA = DECLARATION.replace("{epsilon: 2}", "{epsilon: 2, delta: 1.0e-6}")
PRIVATE = DECLARATION.replace("budget:", "neighbours: add-remove\nbudget:")


@pytest.fixture(scope="module")
def made() -> Release:
    return release(tiny_release.project(), "1-way", epsilon=1, method=tiny)


# ---- answers


def test_an_answered_marginal_is_its_answer(made):
    answer = made.answer("count by age")
    stored = made.answers[0]
    assert np.array_equal(answer.noisy, stored.counts)
    assert np.array_equal(answer.error, stored.error)
    assert (answer.source, answer.beta, answer.cost.units) == ("measured", 0.05, 0)
    assert made.answer(Marginal(made.domain, ("age",))).rows() == answer.rows()


def test_questions_inside_a_marginal_add_up_its_cells(made):
    stored = made.answers[0]
    young = made.answer("count age < 65")
    assert float(young.error) == min(2 * stored.error[0], stored.error[2])
    assert float(made.answer("count age < 18").error) == stored.error[0]
    assert float(made.answer("count age < 18").noisy) == stored.counts[0]
    by_query = made.answer(LinearQuery.conjunction(made.domain, {"age": [1, 0, 0]}))
    assert float(by_query.value) == float(made.answer("count age < 18").value)


def test_everybody_is_known_where_rows_are_public(made):
    everybody = made.answer("count")
    assert (float(everybody.value), float(everybody.error)) == (ROWS, 0)
    assert float(made.answer("share").value) == 1


def test_a_share_is_a_rate(made):
    share, count = made.answer("share by sex"), made.answer("count by sex")
    assert np.allclose(share.value * ROWS, count.value)
    assert np.allclose(share.error * ROWS, count.error)


def test_the_stand_in_answers_the_rest_without_a_promise(made):
    answer = made.answer("count age < 18 by sex")
    assert answer.source == "uncertified"
    assert np.isinf(answer.error).all()
    expected = Marginal(made.domain, ("age", "sex")).answer(made.standin)[0] * ROWS
    assert np.allclose(answer.value, expected)


def test_errors_are_joint_and_hold(made):
    truth = {a.clique: tiny_release.project().curator._truth.count(a.clique) for a in made.answers}  # type: ignore[attr-defined]
    assert all((np.abs(a.counts - truth[a.clique]) <= a.error).all() for a in made.answers)


def test_all_marginals_that_contain_a_question_answer_it_together(made):
    def answer(clique, counts, error, basis="certified"):
        shape = made.domain.shape(clique)
        return MarginalAnswer.around(clique, np.full(shape, counts), np.full(shape, error), basis)

    one, other = answer(("age", "sex"), 50.0, 5.0), answer(("age", "smoker"), 70.0, 6.0, "measured")
    both = replace(made, answers=(one, other)).answer("count by age")  # 200 ± 20 and 210 ± 18
    assert both.source == "checked"
    assert np.array_equal(both.value, np.full(3, 210.0))  # the one with the smaller error
    assert np.array_equal(both.error, np.full(3, 18.0))  # within [192, 220]
    assert replace(made, answers=(other,)).answer("count by age").source == "measured"
    sharper = replace(made, answers=(answer(("age",), 200.0, 30.0, "measured"), other)).answer("count by age")
    assert np.array_equal(sharper.value, np.full(3, 210.0))  # of 200 ± 30 and 210 ± 18
    assert np.array_equal(sharper.error, np.full(3, 18.0))
    apart = replace(made, answers=(one, answer(("age",), 300.0, 1.0))).answer("count by age")
    assert np.isfinite(apart.error).all()  # an error bar failed: the answer says no more than both of them


def test_an_error_that_is_infinite_in_places(made):
    error = np.array([[0.5] * 4, [np.inf] * 4, [np.inf] * 4])
    unsure = replace(
        made, answers=(MarginalAnswer.around(("age", "sex"), np.full((3, 4), 50.0), error, "certified"),)
    )
    assert float(unsure.answer("count age < 18").error) <= 4.0
    assert np.isinf(unsure.answer("count by sex").error).all()
    assert unsure.answer("count by sex").source == "uncertified"
    assert np.isfinite(unsure.answer("count by age").error).tolist() == [True, False, False]


@given(st.integers(0, 2**32), st.sampled_from(["replace", "add-remove"]), st.integers(0, 2))
def test_where_all_answers_hold_so_does_every_certified_question(made, seed, neighbours, order):
    """Truth and answers are invented so that every answer is within its error; then so is whatever is asked."""
    rng = np.random.default_rng(seed)
    domain = made.domain
    counts = rng.multinomial(ROWS, rng.dirichlet(np.full(domain.size(), 0.05))).reshape(domain.shape())
    truth = StoredRates(domain, counts / ROWS)
    answers = []
    for clique in Workload.all_marginals(domain, 2).cliques[:: 1 + order]:
        exact = truth.project(clique) * ROWS
        below, above = (rng.uniform(0, 60, exact.shape) * (rng.random(exact.shape) < 0.9) for _ in range(2))
        low, high = exact - below, exact + above
        told = low + (high - low) * rng.random(exact.shape)
        answers.append(MarginalAnswer(clique, told, low, high, "measured"))
    certificate = {**made.certificate, "privacy": {**made.certificate["privacy"], "neighbours": neighbours}}
    known = replace(made, answers=tuple(answers), certificate=certificate)
    name = domain.names[int(rng.integers(len(domain)))]
    weights = LinearQuery.conjunction(domain, {name: rng.integers(0, 2, domain[name].size)})
    others = [other for other in domain.names if other != name]
    by = tuple(rng.choice(others, order % 2, replace=False))
    asked = Marginal(domain, by, weights)
    found = known.answer(asked)
    exact = asked.answer(truth) * ROWS
    assert (np.abs(found.value - exact) <= found.error + 1e-6).all()
    if found.low is not None and found.high is not None:
        assert (found.low <= exact + 1e-6).all()
        assert (exact <= found.high + 1e-6).all()
        assert np.allclose(found.error, np.maximum(found.high - found.value, found.value - found.low))
    else:
        assert found.source == "uncertified"


def uneven(made: Release) -> Release:
    """A release whose intervals reach much farther to one side than to the other; 600 people are public."""
    ages = MarginalAnswer(
        ("age",),
        np.array([90.0, 400.0, 110.0]),
        np.array([80.0, 300.0, 0.0]),
        np.array([180.0, 410.0, 120.0]),
        "measured",
    )
    return replace(made, answers=(ages,))


def test_intervals_need_not_lie_evenly_around_the_value(made):
    """Counts, shares and rows of a SELECT have the ends of their cells, and not the error to both sides."""
    known = uneven(made)
    counted, share = known.answer("count by age"), known.answer("share by age")
    assert counted.low is not None
    assert counted.high is not None
    assert (counted.low.tolist(), counted.high.tolist()) == ([80, 300, 0], [180, 410, 120])
    assert counted.error.tolist() == [90, 100, 110]
    assert share.low is not None
    assert share.high is not None
    assert np.allclose([share.low, share.high], np.array([[80, 300, 0], [180, 410, 120]]) / ROWS)
    young = known.answer("count age < 18")
    assert (float(young.low), float(young.high)) == (80, 180)
    # 600 people less those of the others, 300 to 530, are 70 to 300: the sum of the cells says more.
    (row,) = known.answer("SELECT count(*) AS n FROM people WHERE age < 18").cells
    assert (row[0].value, row[0].low, row[0].high) == (90, 80, 180)
    grown = known.answer("count age >= 18")
    assert (float(grown.low), float(grown.high)) == (600 - 180, 600 - 80)  # less than 300 to 530
    ordered = known.answer("SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY n DESC")
    assert ordered.order == "uncertified"  # 80 to 180 and 0 to 120 overlap
    assert list(counted.to_frame().column_names) == ["age", "value", "error", "noisy", "low", "high"]


def test_no_error_is_wider_than_what_is_possible(made):
    wide = replace(
        made, answers=(MarginalAnswer.around(("age",), np.zeros(3), np.full(3, 1e9), "certified"),)
    )
    assert np.array_equal(wide.answer("count by age").error, np.full(3, float(ROWS)))


def test_shares_of_private_rows_are_certified_with_the_error_of_their_number():
    made = release(tiny_release.project(PRIVATE), "1-way", epsilon=1, method=tiny)
    counted, everyone = made.answer("count by age"), made.answer("count")
    share = made.answer("share by age")
    assert counted.source == share.source == "measured"
    least, most = everyone.noisy - everyone.error, everyone.noisy + everyone.error
    assert (share.value - share.error <= np.clip((counted.noisy - counted.error) / most, 0, 1) + 1e-12).all()
    assert (share.value + share.error >= np.clip((counted.noisy + counted.error) / least, 0, 1) - 1e-12).all()
    assert (share.error < 1).all()
    beyond = made.answer("share age < 18 by sex")
    assert beyond.source == "uncertified"
    assert np.isinf(beyond.error).all()
    alone = replace(made, answers=()).answer("share by age")
    assert np.isinf(alone.error).all()
    assert alone.value.sum() == pytest.approx(1)
    assert float(made.answer("count").error) > 0
    assert made.certificate["privacy"]["neighbours"] == "add-remove"


def test_sql(made):
    (row,) = made.answer("SELECT count(*) FROM people WHERE age < 18").cells
    same = made.answer("count age < 18")
    assert row[0].value == float(same.value)
    assert (row[0].low, row[0].high) == (same.value - same.error, same.value + same.error)
    grouped = made.sql("SELECT sex, count(*) AS n FROM people GROUP BY sex")
    assert [cells[0] for cells in grouped.cells] == ["F", "M", "other", None]
    assert (grouped.sources, grouped.cost.units, grouped.beta) == (("measured",), 0, 0.05)
    pair = made.sql("SELECT count(*) FROM people WHERE age < 18 AND smoker")
    assert pair.sources == ("uncertified",)
    (only,) = pair.cells[0]
    assert (only.low, only.high) == (0, ROWS)


def test_questions_that_cannot_be_asked(made):
    with pytest.raises(QueryError, match="elsewhere"):
        made.answer("SELECT count(*) FROM elsewhere")
    with pytest.raises(QueryError, match="is an integer"):
        made.answer("count age < 17.5")
    other = tiny_release.project(DECLARATION.replace("120]", "130]")).domain
    with pytest.raises(QueryError, match="another domain"):
        made.answer(Marginal(other, ("age",)))


# ---- rows and pages


def test_samples(made):
    frame = made.sample(50)
    assert list(frame.columns) == ["age", "sex", "born", "income", "smoker"]
    assert len(frame) == 50
    assert len(made.sample(backend="arrow")) == ROWS
    assert made.sample(70, backend="polars").equals(made.sample(70, backend="polars"))
    assert not made.sample(70, backend="polars").equals(made.sample(70, backend="polars", seed=1))
    middle = made.sample(200, within="middle")["age"]
    assert set(middle) <= {8, 41, 92}
    cells = [made.domain["age"].code(value) for value in made.sample(200)["age"]]
    assert [made.domain["age"].code(value) for value in middle] == cells == made.draw(200)["age"].tolist()
    for wrong in ({"backend": "excel"}, {"within": "edge"}, {"rows": -1}):
        with pytest.raises(ParameterError):
            made.sample(**wrong)


def test_the_page_in_a_notebook(made):
    assert "people" in made._repr_html_()
    assert "epsilon 1" in made._repr_html_()
    assert repr(made) == "Release('people', tiny, 600 people, 5 marginals)"


def test_the_certificate(made):
    told = made.certificate
    assert told["cost"] == {"currency": "epsilon", "amount": 1.0, "units": 10**15}
    assert told["requests"] == [f"{told['run']} count {name}" for name in made.domain.names]
    assert sum(Fraction(step["cost"]).limit_denominator(10**15) for step in told["steps"]) == 1
    assert told["program"] == f"understudy {understudy.__version__}"
    assert told["mechanism"] == "noise on every attribute"
    assert told["parameters"] == {"attributes": 5}


def test_rows_have_the_types_of_the_declared_columns():
    made = release(tiny_release.project(), "1-way", epsilon=1, method=tiny)
    types = {"age": "int32", "sex": "string", "born": "date", "income": "float64", "smoker": "boolean"}
    assert made.certificate["columns"] == types
    assert made.sample(3, backend="arrow").schema.equals(tiny_release.people().schema)


def test_the_type_that_a_missing_value_gives_a_pandas_column_is_not_told_apart():
    text = DECLARATION.replace("120]}", "120], null: true}")
    whole = tiny_release.people().to_pandas()
    whole["age"] = whole["age"].astype("int64")
    holed = whole.astype({"age": "float64"})
    holed.loc[0, "age"] = float("nan")
    schemas = [
        release(Project.frame(frame, parse(text)), "1-way", epsilon=1, method=tiny)
        .sample(9, backend="arrow")
        .schema
        for frame in (whole, holed)
    ]
    assert schemas[0].equals(schemas[1])


# ---- budgets


def test_delta_is_the_projects_unless_it_is_given():
    made = release(tiny_release.project(DELTA), "1-way", epsilon=1, method=tiny)
    assert made.certificate["privacy"]["delta"] == 1e-6
    assert made.certificate["cost"]["currency"] == "rho"
    assert made.answer("count by age").cost.currency == "rho"
    assert made.certificate["steps"][0]["cost"] > 0
    pure = release(tiny_release.project(DELTA), "1-way", epsilon=0.5, delta=0, method=tiny)
    assert pure.certificate["privacy"]["delta"] == 0
    assert pure.certificate["cost"]["amount"] == pytest.approx(5 * 0.1**2 / 2)
    with pytest.raises(RefusedError, match="pure epsilon"):
        release(tiny_release.project(), "1-way", epsilon=1, delta=1e-6, method=tiny)


def test_what_the_ledger_cannot_pay_is_refused_before_the_first_debit():
    project = tiny_release.project()
    with pytest.raises(InsufficientBudgetError):
        release(project, "1-way", epsilon=3, method=tiny)
    assert project.ledger.spent.units == 0


def test_a_run_that_broke_off_goes_on_under_its_name_and_pays_once():
    project, stop = tiny_release.project(), []

    def broken(progress):
        if progress.done == 3 and not stop:
            stop.append(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(project, "1-way", epsilon=2, method=tiny, name="mine", progress=broken)
    assert paid_before(project.ledger, "mine") == project.ledger.spent.units == 12 * 10**14
    made = release(project, "1-way", epsilon=2, method=tiny, name="mine", progress=broken)
    assert project.ledger.spent.units == 2 * 10**15  # the whole budget, although little was left
    again = release(project, "1-way", epsilon=2, method=tiny, name="mine")
    assert project.ledger.spent.units == 2 * 10**15
    assert again.certificate == made.certificate
    assert all(np.array_equal(a.counts, b.counts) for a, b in zip(again.answers, made.answers, strict=True))
    with pytest.raises(InsufficientBudgetError):
        release(project, "1-way", epsilon=2, method=tiny, name="another")


@pytest.mark.parametrize("name", ["", " a", "a\n", "a b", "x" * 101])
def test_names_that_a_ledger_could_not_keep(name):
    with pytest.raises(ParameterError, match="name of a release"):
        release(tiny_release.project(), "1-way", epsilon=1, method=tiny, name=name)


# ---- methods


def test_unknown_methods_and_options_are_refused_before_any_debit():
    project = tiny_release.project()
    for match, arguments in (
        ("a method is one of auto, smalldb", {"method": "magic"}),
        ("does not take rounds; it takes alpha, speed", {"method": tiny, "rounds": 3}),
        ("net needs databases", {"method": "net"}),
    ):
        with pytest.raises(ParameterError, match=match):
            release(project, "1-way", epsilon=1, **arguments)
    assert project.ledger.spent.units == 0


def run_of(project, order=1, **changes) -> Run:
    arguments = {"budget": project.declaration.budget, "name": "r", **changes}
    return Run(project.curator, Workload.all_marginals(project.domain, order), **arguments)


WIDE = DECLARATION + "".join(f"  x{i}: {{type: integer, bounds: [0, 999]}}\n" for i in range(4))


def wide_project():
    table = tiny_release.people()
    for i in range(4):
        table = table.append_column(f"x{i}", table["age"])
    return Project.frame(table, parse(WIDE))


def fitting(run):
    """The methods that fit the run and have a predicted error."""
    known = methods.METHODS.values()
    return [m.name for m in known if m.predicted is not None and methods.fits(m, run, {})]


def test_auto_takes_what_fits():
    assert chosen(run_of(tiny_release.project(), 2)) in methods.METHODS
    assert fitting(run_of(wide_project(), 3)) == []
    with pytest.raises(RefusedError, match=r"no method fits.*smalldb.*mwem: it holds every cell"):
        chosen(run_of(wide_project(), 3))


def test_a_method_that_does_not_fit_names_one_that_does(monkeypatch):
    project = wide_project()
    with pytest.raises(RefusedError, match=r"mwem does not fit: it holds every cell.*delta: 1e-9.*adaptive"):
        release(project, "2-way", epsilon=1, method="mwem")
    monkeypatch.setattr(methods, "METHODS", tiny_release.with_tiny())
    with pytest.raises(RefusedError, match=r"mwem does not fit: .*Take `method='tiny'`"):
        release(project, "2-way", epsilon=1, method="mwem")
    assert project.ledger.spent.units == 0
    assert release(project, "1-way", epsilon=1, method="auto").certificate["method"] == "tiny"


def test_auto_takes_the_smallest_predicted_error():
    text = DECLARATION.split("  age:")[0] + "  smoker: {type: boolean}\n"
    few = run_of(tiny_release.project(text))
    wider = run_of(tiny_release.project(), 2)
    for run in (few, wider):
        predicted = {name: methods.METHODS[name].predicted(run) for name in fitting(run)}
        assert chosen(run) == min(predicted, key=predicted.get)
    assert chosen(wider) == "mwem"


def test_predicted_errors_are_those_that_are_certified():
    project = tiny_release.project()
    predicted = methods.METHODS["mwem"].predicted(run_of(project, 2))
    made = release(project, "2-way", epsilon=2, method="mwem")
    assert predicted / 2 <= made.largest_half_width <= 3 * predicted


def test_options_change_what_fits():
    run = run_of(wide_project())
    assert "at most 1,048,576" in methods.METHODS["mwem"].obstacle(run, {})
    assert "at most 67,108,864" in methods.METHODS["mwem"].obstacle(run, {"cells": 10**9})
    assert methods.METHODS["mwem"].obstacle(run_of(tiny_release.project()), {"cells": 10}) != ""
    assert methods.METHODS["ic"].obstacle(run, {}) != ""
    assert methods.METHODS["ic"].obstacle(run, {"update": object()}) == ""


def test_private_rows_rule_smalldb_out():
    assert "smalldb" not in fitting(run_of(tiny_release.project(PRIVATE)))


@pytest.mark.parametrize(
    ("method", "options"),
    [("mwem", {}), ("mwem", {"rounds": 2, "per_round": 2}), ("ic", {}), ("smalldb", {"size": 2})],
    ids=str,
)
def test_every_method_makes_a_release_whose_errors_hold(method, options, tmp_path):
    text = DECLARATION.split("  born:" if method == "smalldb" else "  income:")[0]
    project = tiny_release.project(text, seed=11, rows=20_000)
    made = release(project, "2-way", epsilon=2, method=method, **options)
    assert made.certificate["method"] == method
    assert project.ledger.spent.units == made.certificate["cost"]["units"] <= 2 * 10**15
    truth = project.curator._truth  # type: ignore[attr-defined]  # nobody in this table exists
    for answer in made.answers:
        assert (np.abs(answer.counts - truth.count(answer.clique)) <= answer.error).all()
    made.save(tmp_path / "out", rows=30)
    loaded = Release.load(tmp_path / "out")
    assert loaded.certificate == made.certificate
    assert loaded.sample(30).equals(made.sample(30))
    assert np.allclose(loaded.standin.project(("age", "sex")), made.standin.project(("age", "sex")))


# ---- workloads


def domain():
    return tiny_release.project().domain


def test_workloads_by_name():
    assert len(as_workload(domain(), "all-2-way")) == len(as_workload(domain(), "2-way")) == 10
    assert as_workload(domain(), marginals(2)).cliques == as_workload(domain(), "2-way").cliques
    assert len(as_workload(domain(), "2-way", max_cells=9)) == 3
    assert len(as_workload(domain(), "0-way")) == 1
    with pytest.raises(QueryError, match="more than 1 cells"):
        as_workload(domain(), "2-way", max_cells=1)
    with pytest.raises(QueryError, match="has no 9-way"):
        as_workload(domain(), "9-way")
    with pytest.raises(QueryError, match="is no workload"):
        as_workload(domain(), "everything")
    other = tiny_release.project(DECLARATION.replace("120]", "130]")).domain
    with pytest.raises(QueryError, match="another domain"):
        as_workload(other, Workload.all_marginals(domain(), 1))


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("yml", "- [sex, age]\n- {by: [income], weight: 2.5}\n- smoker\n"),
        (
            "yaml",
            "marginals:\n  - [age, sex]\n  - {by: income, weight: 5/2}\n".replace("5/2", "2.5")
            + "  - smoker",
        ),
        ("json", '[["age", "sex"], {"by": ["income"], "weight": 2.5}, ["smoker"]]'),
        ("csv", "# marginals\nage, sex\n\nincome,2.5\nsmoker\n"),
    ],
)
def test_workloads_from_files(tmp_path, ending, text):
    path = tmp_path / f"workload.{ending}"
    path.write_text(text)
    found = as_workload(domain(), path)
    assert found.cliques == (("age", "sex"), ("income",), ("smoker",))
    assert found.weights == (1, Fraction(5, 2), 1)


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("w.yml", "- [age]\n- [agee]\n", r"w\.yml, line 2.*no attribute 'agee'.*age"),
        ("w.yml", "- [age, age]\n", "line 1.*twice"),
        ("w.yml", "- [age]\n- {by: [age]}\n", "line 2.*listed twice"),
        ("w.yml", "- [age]\n- {weight: 2}\n", "line 2.*'by' is missing"),
        ("w.yml", "- {by: age, weight: 0}\n", "line 1.*more than 0"),
        ("w.yml", "- {by: age, weight: much}\n", "line 1.*not a finite number"),
        ("w.yml", "- {for: age}\n", "line 1.*not understood"),
        ("w.yml", "- [age\n- sex", "line 2.*not YAML"),
        ("w.yml", "marginal: [age]\n", "not understood"),
        ("w.yml", "{}", "'marginals' is missing"),
        ("w.yml", "", "empty"),
        ("w.json", '[["age"],\n ["x"]]', "line 2.*no attribute"),
        ("w.csv", "age\nx,y\n", "line 2.*no attribute"),
        ("w.csv", "age\nsex,-1\n", "line 2.*more than 0"),
        ("w.csv", "age\n\nage,2\n", "line 3.*twice"),
        ("w.csv", "", "empty"),
    ],
)
def test_a_mistake_in_a_workload_file_names_its_line(tmp_path, name, text, match):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DeclarationError, match=match):
        as_workload(domain(), path)


def test_workload_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DeclarationError, match="no such file"):
        as_workload(domain(), tmp_path / "none.yml")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DeclarationError, match="cannot be read"):
        as_workload(domain(), tmp_path / "bad.csv")


# ---- the public name


def test_the_public_name_is_the_function_whatever_was_imported_before():
    """A package of the function's own name would hide it once it is imported."""
    code = (
        "import understudy as us, understudy.releases.mwem, understudy.sessions.session\n"
        "rooms = {'metrics', 'lectures'}  # these two are modules\n"
        "assert all(callable(getattr(us, name)) for name in us.__all__ if name not in rooms)\n"
        "assert us.release.__name__ == 'release' and us.session.__name__ == 'session'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_outcome_without_answers_or_proof_is_still_a_release():
    def bare(run):
        parts = {a.name: np.full(a.size, 1 / a.size) for a in run.domain}
        return Outcome("bare", tiny_release.Product(run.domain, parts), 10, (), {})

    made = release(tiny_release.project(), "1-way", epsilon=1, method=bare)
    assert made.answer("count by age").source == "uncertified"
    assert made.certificate["theorem"] == ""
    assert np.isinf(made.largest_half_width)
