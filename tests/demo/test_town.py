from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from datetime import date
from math import isfinite
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import yaml

from statistical import assert_does_not_follow, assert_follows
from understudy.errors import ParameterError
from understudy_demo import demo, town
from understudy_demo.town import QUESTIONS, TownQuestion, declaration, people, true_values

DECLARED: dict[str, Any] = yaml.safe_load(declaration("town.parquet"))
# YAML reads the bare key `null` as a null, so the words are restored here.
ATTRIBUTES: dict[str, dict[str, Any]] = {
    name: {"null" if key is None else key: value for key, value in declared.items()}
    for name, declared in DECLARED["attributes"].items()
}
TYPES = {"category": pa.string(), "integer": pa.int64(), "real": pa.float64(), "date": pa.date32()}
TYPES["boolean"] = pa.bool_()

COMPARISON = re.compile(r"(\w+)\s*(!=|<=|>=|=|<|>)\s*('[^']*'|[^\s()]+)")
MEMBERSHIP = re.compile(r"(\w+)\s+in\s+\(([^)]*)\)")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return people()


@pytest.fixture(scope="module")
def columns(table: pa.Table) -> dict[str, np.ndarray]:
    """Dates as days; a missing income is nan, a missing commute is empty."""
    filled = {name: table[name].combine_chunks() for name in table.column_names}
    filled["moved_in"] = filled["moved_in"].cast(pa.int32())
    filled["commute"] = filled["commute"].fill_null("")
    filled["income"] = filled["income"].fill_null(np.nan)
    return {name: column.to_numpy(zero_copy_only=False) for name, column in filled.items()}


def test_the_town_is_a_project_of_its_own_people_and_budget():
    project = town.project(300, seed=3)
    assert project.curator.rows == 300
    assert project.declaration.budget.epsilon == DECLARED["budget"]["epsilon"]
    exact = [row["sex"] for row in people(300, seed=3).to_pylist()].count("F")
    assert abs(float(project.ask("count sex = F", epsilon=1.5).value) - exact) < 60  # 40 scales of the noise


def cells(name: str) -> list[str]:
    """Labels of an attribute that has one cell per value."""
    declared = ATTRIBUTES[name]
    if declared["type"] == "boolean":
        return ["false", "true"]
    if "bounds" in declared:
        low, high = declared["bounds"]
        return [str(value) for value in range(low, high + 1)]
    return declared["values"]


def split(question: TownQuestion) -> tuple[str, str, list[str]]:
    """What is asked, the condition, the attributes grouped by."""
    what, _, rest = question.text.partition(" ")
    condition, _, by = f" {rest}".partition(" by ")
    return what, condition.strip(), [name.strip() for name in by.split(",")] if by else []


def comparisons(condition: str) -> list[tuple[str, str, str]]:
    found = [(name, op, value.strip("'")) for name, op, value in COMPARISON.findall(condition)]
    for name, values in MEMBERSHIP.findall(condition):
        found += [(name, "=", value.strip().strip("'")) for value in values.split(",")]
    return found


def as_sql(condition: str) -> str:
    """The product's language is SQL but for bare words: quote them."""
    quoted = COMPARISON.sub(lambda found: " ".join((found[1], found[2], f"'{found[3]}'")), condition)
    quoted = MEMBERSHIP.sub(
        lambda found: f"{found[1]} in (" + re.sub(r"(\w+)", r"'\1'", found[2]) + ")", quoted
    )
    return quoted.replace("''", "'") or "true"


def test_the_same_seed_gives_the_same_town() -> None:
    assert people(2_000, seed=3).equals(people(2_000, seed=3))
    assert not people(2_000, seed=3).equals(people(2_000, seed=4))
    assert people(2_000).equals(people(2_000, seed=7))


def test_blocks_join_into_one_town(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(town, "BLOCK", 300)
    joined = people(1_000)
    assert joined.num_rows == 1_000
    assert joined["age"].num_chunks == 4
    assert joined["person"].to_pylist() == list(range(1, 1_001))
    # Each block continues the stream: a restarted generator would repeat the first block.
    assert not joined.slice(0, 300).drop(["person"]).equals(joined.slice(300, 300).drop(["person"]))


@pytest.mark.parametrize("count", [0, 1, 10])
def test_small_towns(count: int) -> None:
    small = people(count)
    assert small.num_rows == count
    assert small.schema == town.SCHEMA
    for question in QUESTIONS:
        values = true_values(small, question)
        assert all(0 <= value <= count for value in values)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ParameterError, match="negative"):
        people(-1)


def test_columns_are_the_declared_attributes_and_an_identifier(table: pa.Table) -> None:
    assert table.num_rows == 100_000
    assert table.column_names == ["person", *ATTRIBUTES]
    assert len(ATTRIBUTES) >= 14
    assert table.schema.field("person").type == pa.int64()
    assert len(table["person"].unique()) == table.num_rows
    for name, declared in ATTRIBUTES.items():
        assert table.schema.field(name).type == TYPES[declared["type"]], name


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_value_lies_in_the_declared_domain(table: pa.Table, name: str) -> None:
    declared, column = ATTRIBUTES[name], table[name]
    assert set(declared) <= {"type", "edges", "values", "bounds", "null"}
    assert (column.null_count > 0) == declared.get("null", False)
    present = column.drop_null()
    if declared["type"] == "boolean":
        assert set(present.unique().to_pylist()) == {False, True}
    elif declared["type"] == "category":
        assert len(set(declared["values"])) == len(declared["values"])
        assert all(isinstance(value, str) for value in declared["values"])
        assert set(present.unique().to_pylist()) == set(declared["values"])
    else:
        limits = declared["edges"] if "edges" in declared else declared["bounds"]
        assert limits == sorted(set(limits))
        distinct = present.unique().to_pylist()
        assert limits[0] <= min(distinct) <= max(distinct) <= limits[-1]
        assert all(isinstance(limit, date if declared["type"] == "date" else int) for limit in limits)


@pytest.mark.parametrize("name", [name for name in ATTRIBUTES if "edges" in ATTRIBUTES[name]])
def test_no_declared_bin_is_empty(table: pa.Table, name: str) -> None:
    declared, values = ATTRIBUTES[name], table[name].drop_null().to_numpy()
    edges = np.array(declared["edges"], values.dtype)
    cell = np.minimum(np.searchsorted(edges, values, side="right") - 1, len(edges) - 2)
    counts = np.bincount(cell, minlength=len(edges) - 1)
    assert counts.min() > 0


def test_declaration_says_how_the_town_is_protected() -> None:
    assert {key: value for key, value in DECLARED.items() if key != "attributes"} == {
        "understudy": 1,
        "name": "town",
        "source": "town.parquet",
        "protect": "privacy",
        "neighbours": "replace",
        "budget": {"epsilon": 2},
    }
    assert ATTRIBUTES["age"]["edges"] == list(range(0, 106, 5))


@pytest.mark.parametrize(
    "source", ["data/my town.parquet", "true", "12", "a: b #c", "C:\\x'\"y", "Zürich.csv", "-"]
)
def test_declaration_keeps_any_source(source: str) -> None:
    assert yaml.safe_load(declaration(source))["source"] == source


def test_nobody_contradicts_themselves(columns: dict[str, np.ndarray]) -> None:
    age, occupation = columns["age"], columns["occupation"]
    child = age < 16
    idle = np.isin(occupation, ["child", "student", "not working", "retired"])
    assert ((occupation == "child") == child).all()
    assert (np.isnan(columns["income"]) == child).all()
    assert ((columns["hours"] == 0) == idle).all()
    assert ((columns["commute"] == "") == (idle & (occupation != "student"))).all()
    assert (columns["education"][occupation == "physician"] == "master").all()
    assert (columns["education"][age < 11] == "none").all()
    assert (columns["marital"][age < 18] == "single").all()
    assert (columns["children"][age < 18] == 0).all()
    assert (columns["household"][age < 18] >= 2).all()
    assert (columns["household"][columns["marital"] == "married"] >= 2).all()
    assert not columns["smoker"][age < 15].any()
    lived_here = (town.CENSUS_DAY - date(1970, 1, 1)).days - columns["moved_in"]
    assert (lived_here >= 0).all()
    assert (lived_here <= (age + 1) * 365.25).all()


def test_marginals_are_plausible(columns: dict[str, np.ndarray]) -> None:
    age, income = columns["age"], columns["income"]
    assert 38 < age.mean() < 46
    assert 0.15 < (age < 16).mean() < 0.22
    assert 0.12 < (age >= 70).mean() < 0.22
    assert 0.48 < (columns["sex"] == "F").mean() < 0.55
    assert 15_000 < np.nanmedian(income) < 30_000
    assert np.nanmin(income) > 500
    assert (income == town.TOP_INCOME).sum() < 10
    assert 0.03 < (columns["health"] == "poor").mean() < 0.12
    assert 0.15 < columns["smoker"].mean() < 0.25


def test_dependencies_are_strong_enough_to_show(columns: dict[str, np.ndarray]) -> None:
    age, income, poor = columns["age"], columns["income"], columns["health"] == "poor"

    def median_income(mask: np.ndarray) -> float:
        return float(np.nanmedian(income[mask & (age >= 25)]))

    steps = [median_income(columns["education"] == level) for level in ATTRIBUTES["education"]["values"]]
    assert steps == sorted(steps)
    assert steps[-1] > 2 * steps[1]
    assert median_income(columns["district"] == "Foxhollow") > 1.5 * median_income(
        columns["district"] == "Inkwharf"
    )
    assert median_income(columns["sex"] == "M") > 1.15 * median_income(columns["sex"] == "F")
    assert poor[age >= 75].mean() > 5 * poor[age < 40].mean()
    middle = (age >= 40) & (age < 60)
    smoker = columns["smoker"]
    assert poor[middle & smoker].mean() > 1.8 * poor[middle & ~smoker].mean()
    assert columns["chronic"][age >= 65].mean() > 4 * columns["chronic"][age < 40].mean()
    assert columns["internet"][age < 60].mean() > columns["internet"][age >= 80].mean() + 0.2
    schooled = np.isin(columns["education"], ["bachelor", "master"])
    grown = age >= 25
    assert schooled[grown & (age < 45)].mean() > 1.3 * schooled[age >= 75].mean()
    assert smoker[grown & ~schooled].mean() > 1.4 * smoker[grown & schooled].mean()


def test_districts_follow_their_weights(columns: dict[str, np.ndarray]) -> None:
    counts = [int((columns["district"] == name).sum()) for name in town.DISTRICTS]
    law = town.WEIGHT / town.WEIGHT.sum()
    assert_follows(counts, law.tolist())
    mutant = law * np.where(np.arange(len(law)) % 2, 0.8, 1.25)
    assert_does_not_follow(counts, (mutant / mutant.sum()).tolist())


def test_draws_follow_the_law_of_their_group() -> None:
    weights = np.array(
        [[[0.0, 3.0, 1.0, 0.0], [1.0, 1.0, 1.0, 5.0]], [[0.0, 0.0, 0.0, 2.0], [7.0, 0.0, 1.0, 0.0]]]
    )
    rng = np.random.default_rng(11)
    first, second = rng.integers(2, size=(2, 40_000))
    drawn = town._draw(rng, weights, first, second)
    for i, j in np.ndindex(2, 2):
        counts = np.bincount(drawn[(first == i) & (second == j)], minlength=4).tolist()
        law = weights[i, j] / weights[i, j].sum()
        assert_follows(counts, law.tolist())
        assert [count > 0 for count in counts] == [weight > 0 for weight in law]
        other = weights[i, 1 - j] / weights[i, 1 - j].sum()
        shifted = (law + other) / 2
        assert_does_not_follow(counts, shifted.tolist())


@pytest.mark.parametrize(("bits", "expected"), [(0, [1, 0, 3, 0]), (2**32 - 1, [2, 3, 3, 2])])
def test_extreme_uniforms_draw_no_impossible_cell(bits: int, expected: list[int]) -> None:
    class Stuck(np.random.Generator):
        def integers(self, *_: Any, size: Any, **__: Any) -> Any:
            return np.full(size, bits, np.uint32)

    weights = np.array([[0.0, 3, 1, 0], [1, 1, 1, 5], [0, 0, 0, 2], [7, 0, 1, 0]])
    assert town._draw(Stuck(np.random.PCG64(1)), weights, np.arange(4)).tolist() == expected


def test_twenty_questions() -> None:
    assert len(QUESTIONS) == len({question.text for question in QUESTIONS}) == 20
    assert sum(bool(split(question)[2]) for question in QUESTIONS) == 6
    with pytest.raises(FrozenInstanceError):
        QUESTIONS[0].text = "count"  # type: ignore[misc]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_questions_can_be_asked_of_the_declared_domain(question: TownQuestion) -> None:
    what, condition, by = split(question)
    assert what in {"count", "share"}
    tests = comparisons(condition)
    assert len({name for name, _, _ in tests} | set(by)) in range(1, 5)
    for name, op, value in tests:
        declared = ATTRIBUTES[name]
        if "edges" in declared:
            assert op in {"<", ">="}, "the other comparisons would cut a bin"
            assert value in {str(edge) for edge in declared["edges"]}, "not a declared edge"
        else:
            assert value in cells(name)
    for name in re.findall(r"(\w+) is null", condition):
        assert ATTRIBUTES[name]["null"]
    assert np.prod([len(cells(name)) for name in by]) <= 12


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_true_values_agree_with_the_text(table: pa.Table, question: TownQuestion) -> None:
    what, condition, by = split(question)
    values = true_values(table, question)
    assert all(isfinite(value) for value in values)

    where = as_sql(condition)
    scale = 1 if what == "count" else table.num_rows
    with duckdb.connect() as connection:
        connection.register("people", table)
        select = ", ".join([*by, "count(*)"])
        rows = connection.execute(f"SELECT {select} FROM people WHERE {where} GROUP BY ALL").fetchall()
        labels = [row[:-1] for row in connection.execute(question.sql).fetchall()]
    found = {row[:-1]: row[-1] / scale for row in rows}
    expected_labels = [()]
    for name in by:
        expected_labels = [(*label, cell) for label in expected_labels for cell in cells(name)]
    assert labels == expected_labels
    assert values == pytest.approx([found.get(label, 0) for label in expected_labels], abs=0, rel=1e-12)

    total = sum(values) * scale
    assert 30 <= total <= table.num_rows


def test_empty_cells_still_have_a_value() -> None:
    one = people(1)
    by_district = next(question for question in QUESTIONS if question.text == "count by district")
    assert sorted(true_values(one, by_district)) == [0.0] * 11 + [1.0]


def test_a_town_replaces_an_earlier_one_and_nothing_else(tmp_path):
    for _ in range(2):
        demo._check_free(tmp_path, declaration("town.parquet"))
        (tmp_path / "understudy.yml").write_text(declaration("town.parquet"), encoding="utf-8")
        (tmp_path / "town.parquet").write_bytes(b"a town")
    (tmp_path / "understudy.yml").write_text("name: people\n")
    with pytest.raises(ParameterError, match="another project"):
        demo.run(tmp_path, people=10, seed=1)
    assert (tmp_path / "town.parquet").read_bytes() == b"a town"
    (tmp_path / "understudy.yml").unlink()
    with pytest.raises(ParameterError, match="another project"):
        demo.run(tmp_path, people=10, seed=1)
    (tmp_path / "town.parquet").unlink()
    (tmp_path / "demo.html").write_text("<p>somebody's page</p>")
    with pytest.raises(ParameterError, match="another project"):
        demo.run(tmp_path, people=10, seed=1)
    assert (tmp_path / "demo.html").read_text() == "<p>somebody's page</p>"
