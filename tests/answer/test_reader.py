"""One reader for three sources: what is asked, and what is made of counts wherever they come from."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import understudy as us
from understudy.answer.answer import Answer
from understudy.answer.counts import CellCounts, PopulationReach, RowBounds, SourceCounts
from understudy.answer.ratios import share
from understudy.answer.reader import CountQuestion, QuestionReader, SelectQuestion, ShareQuestion
from understudy.answer.sql_answer import SqlAnswer
from understudy.curator.calibration import Calibration
from understudy.declaration.file import parse
from understudy.domain.attribute import Categories
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import ParameterError, QueryError
from understudy.noise.samplers import SeededNoise
from understudy.privacy.cost import PureDP
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.releases.making import release

DOMAIN = Domain((Bins.between("age", [0, 18, 65, 120]), Categories(name="sex", values=("F", "M"))))
TEXT = """\
understudy: 1
name: t
source: t.csv
neighbours: {neighbours}
budget: {{epsilon: 100}}
{rows}
attributes:
  age: {{type: integer, edges: [0, 18, 65, 120]}}
  sex: {{type: category, values: [F, M]}}
"""
FRAME = pd.DataFrame({"age": [10, 30, 70, 40] * 250, "sex": ["F", "M", "F", "F"] * 250})


def reader(*, public: bool = True, counts_everyone: bool = False) -> QuestionReader:
    return QuestionReader(DOMAIN, tables={"t"}, rows_public=public, counts_everyone=counts_everyone)


def counted(
    value: list[float], error: float, *, marginal: Marginal | None = None, **more: object
) -> CellCounts:
    array, off = np.array(value, float), np.full(len(value), float(error))
    answer = Answer(marginal or Marginal(DOMAIN, ("age",)), array, off, array, PureDP(3), 0.05, **more)
    return CellCounts(answer, array, off)


# ---- reading


def test_a_text_is_read_once_and_queries_are_counts():
    read = reader()
    assert read.read("count age < 18 by sex") is read.read("count age < 18 by sex")
    assert isinstance(read.read("share by sex"), ShareQuestion)
    assert isinstance(read.read("  select count(*) FROM t"), SelectQuestion)
    query = LinearQuery.everyone(DOMAIN)
    assert read.read(query) == read.read(Marginal.of(query)) == CountQuestion(Marginal(DOMAIN, ()))
    for wrong in (3, None, ["count"]):
        with pytest.raises(QueryError, match="text, a marginal or a linear query"):
            read.read(wrong)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="another domain"):
        read.read(Marginal(Domain(DOMAIN.attributes[:1]), ("age",)))
    with pytest.raises(QueryError):
        read.select("count by sex")


def test_a_share_counts_everyone_only_where_nobody_knows_how_many_there_are():
    assert len(reader().read("share by sex").marginals) == 1
    by, everyone = reader(public=False, counts_everyone=True).read("share by sex").marginals
    assert (by.by, everyone) == (("sex",), Marginal(DOMAIN, ()))


# ---- shares


@given(
    counts=st.lists(st.floats(0, 500), min_size=3, max_size=3),
    noise=st.lists(st.floats(-40, 40), min_size=3, max_size=3),
    least=st.integers(1, 2000),
    slack=st.integers(0, 300),
    estimate=st.booleans(),
)
def test_a_share_is_within_its_error_whatever_the_counts_and_rows(counts, noise, least, slack, estimate):
    rows = max(least + slack // 2, 1 + sum(map(int, counts)) + 3)
    bounds = RowBounds(rows - slack // 2, rows + slack, rows if estimate and slack else None)
    noisy = np.add(counts, noise)
    cells = counted(np.clip(noisy, 0, None).tolist(), 40.0)
    answer = share(CellCounts(cells.answer, noisy, cells.half_width), bounds)
    assert (np.abs(answer.value - np.array(counts) / rows) <= answer.error + 1e-12).all()


def test_a_share_of_perhaps_nobody_says_so_and_what_nobody_vouches_for_stays_so():
    nothing = share(counted([5, 2, 0], 3), RowBounds(-4, 20, 8))
    assert (nothing.value == 0.5).all()
    assert (nothing.error == 0.5).all()
    for rows in (
        RowBounds(10, 20),
        RowBounds(10, np.inf),
        RowBounds(-np.inf, np.inf, 10.0),
        RowBounds(10, 10),
    ):
        unknown = share(counted([5, 2, 0], np.inf, source="uncertified"), rows)
        assert np.isinf(unknown.error).all()
        assert np.isfinite(unknown.value).all()


def test_the_population_error_of_a_share_is_scaled_or_the_sources_own():
    reach = np.full(3, 30.0)
    cells = counted([50, 20, 30], 4, population_error=reach, population_beta=0.05)
    known = share(cells, RowBounds(200, 200))
    assert (known.population_error == 30 / 200).all()
    assert known.population_beta == 0.05
    unknown = share(
        cells, RowBounds(190, 210, share_population=lambda: PopulationReach(0.2, 0.07, "a theorem"))
    )
    assert (unknown.population_error == 0.2).all()
    assert (unknown.population_beta, unknown.population_theorem) == (0.07, "a theorem")
    neither = share(cells, RowBounds(190, 210))
    assert (neither.population_error, neither.population_beta) == (None, None)


# ---- statements


def test_a_statement_reaches_as_far_as_its_counts():
    young = "count(*) FILTER (WHERE age < 18)"
    question = reader().select(f"SELECT {young} % 10 AS last, {young} AS n FROM t")
    value, error = np.array(23.0), np.array(1.0)
    told = Answer(question.marginals[0], value, error, value, PureDP(3), 0.05)
    told = replace(told, population_error=np.array(4.5), population_beta=0.05)
    cells = (CellCounts(told, value, error),)
    answer = question.answer(SourceCounts(cells, RowBounds(100, 100), 0.01, PureDP(0)))
    [[last, people]] = answer.population_error
    assert people == 4.5
    assert last == pytest.approx(7)  # expected counts need not be whole: up to 10, not 9
    [[told, _]] = answer.cells
    assert (told.low, told.high) == (2, 4)
    assert answer.cost == PureDP(3)
    with pytest.raises(ParameterError, match="only then"):
        replace(answer, population_beta=None)


# ---- three sources


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_every_source_answers_every_kind_of_question(neighbours):
    """What is asked of the table, of a session or of a release gets the same kind of answer, and it holds."""
    rows = "" if neighbours == "replace" else "rows: {at_least: 500, at_most: 2000}"
    declared = parse(TEXT.format(neighbours=neighbours, rows=rows))
    project = us.Project.frame(FRAME, declared, noise=SeededNoise(3))
    session = us.session(project, alpha=0.1, beta=1e-9, queries=20)
    method = "mwem" if neighbours == "replace" else "auto"
    made = release(project, "all-2-way", epsilon=20, beta=1e-9, method=method)
    ask = (lambda q: project.ask(q, epsilon=2, beta=1e-9), session.ask, made.answer)
    marginal = Marginal(declared.domain, ("sex",))
    for one in ask:
        for question in ("count by sex", marginal):
            answer = one(question)
            assert isinstance(answer, Answer)
            assert (np.abs(answer.value - [750, 250, 0]) <= answer.error).all()
        part = one("share by sex")
        assert (np.abs(part.value - [0.75, 0.25, 0]) <= part.error + 1e-12).all()
        rows = one("SELECT sex, count(*), avg(age) FROM t GROUP BY sex")
        assert isinstance(rows, SqlAnswer)
        for (_, people, mean), (exact, average) in zip(rows.cells, [(750, 40), (250, 30)], strict=False):
            assert people.low <= exact <= people.high
            assert mean.low <= average <= mean.high


# ---- prepared questions


@pytest.mark.parametrize(
    "question", ["count by sex", "share age < 18", "SELECT sex, count(*), avg(age) FROM t GROUP BY sex"]
)
@pytest.mark.parametrize("price", [{"epsilon": Fraction(1, 2)}, {"error": 30}, {}])
def test_a_prepared_question_is_read_and_priced_once_and_pays_what_it_quotes(question, price, monkeypatch):
    project = us.Project.frame(FRAME, parse(TEXT.format(neighbours="replace", rows="")), noise=SeededNoise(1))
    if "error" in price and question.startswith("share"):
        price = {"error": 0.1}  # in its own unit
    prepared = project.prepare(question, **price)
    assert project.ledger.spent.units == 0
    assert replace(prepared.quote, due=prepared.due()) == project.quote(question, **price)
    for name in ("mechanism", "price_of", "prepare"):
        monkeypatch.setattr(Calibration, name, None)
    monkeypatch.setattr(QuestionReader, "read", None)
    first = prepared.run(request="mine", analyst="ada")
    assert first.cost == prepared.quote.cost == project.ledger.spent
    again = prepared.run(request="mine", analyst="ada")
    assert again.as_dict() == first.as_dict()
    assert project.ledger.spent == first.cost
    with pytest.raises(ParameterError, match="must not hold '#'"):
        prepared.run(request="mine#1")


def test_what_was_measured_is_not_called_public():
    project = us.Project.frame(FRAME, parse(TEXT.format(neighbours="replace", rows="")), noise=SeededNoise(1))
    sharp = project.ask("count age < 18", epsilon=90)
    assert (float(sharp.error), sharp.source) == (0, "measured")
    assert project.ask("count").source == "public"


ONLY_A_SELECT_LOADS_THE_COMPILER = """
import sys
import understudy as us
from understudy.answer.reader import QuestionReader
from understudy.domain.attribute import Categories
domain = us.Domain((Categories(name="sex", values=("F", "M")),))
reader = QuestionReader(domain, tables=["t"], rows_public=True, counts_everyone=False)
reader.read("count sex = F")
reader.read("share by sex")
print(any(name.startswith("understudy.sql") for name in sys.modules))
reader.read("select count(*) from t")
print("understudy.sql.compiler" in sys.modules)
"""


def test_only_a_select_statement_loads_the_sql_compiler():
    done = subprocess.run(
        [sys.executable, "-c", ONLY_A_SELECT_LOADS_THE_COMPILER], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("asked", ["count", "share"])
def test_groups_that_the_condition_rules_out_are_certainly_empty(asked):
    """Noise on them would be shown as people who may be there."""
    frame = pd.DataFrame({"age": np.arange(1_000) % 100, "sex": ["F", "M"] * 500})
    attributes = {"age": {"bounds": [0, 99], "width": 10}, "sex": ["F", "M"]}
    with us.declare(
        frame, attributes=attributes, name="t", neighbours="add-remove", epsilon=20, delta=1e-9
    ) as opened:
        told = opened.ask(f"{asked} age < 30 and sex = F by age, sex", rho=0.001)
        ruled_out = np.ones(told.value.shape, bool)
        ruled_out[:3, 0] = False
        assert not told.value[ruled_out].any()
        assert not told.error[ruled_out].any()
        assert (told.error[~ruled_out] > 0).all()
        assert opened.ask(f"{asked} age < 30 by sex", rho=0.001).query.excluded is None
