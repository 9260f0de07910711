"""Ends that a release tells are certain: where its error bars hold, so does whatever is made of them.

Small random tables, and releases of them with random intervals in which the table's counts lie, some of them
without a bound. So there is no chance in what has to hold: every number that such a release is asked for has the
truth between all ends that are told with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tiny_release import Product
from understudy.answer.answer import Answer
from understudy.answer.sql_answer import SqlAnswer
from understudy.declaration.file import parse
from understudy.releases.release import Release
from understudy.releases.run import MarginalAnswer

DOMAIN = parse("""
understudy: 1
name: people
source: people.csv
budget: {epsilon: 1}
attributes:
  a: {type: integer, edges: [0, 10, 20, 30]}
  b: {type: boolean}
  c: {type: category, values: [x, y, z]}
""").domain

Table = dict[str, NDArray[Any]]
Rows = NDArray[np.bool_]

CONDITIONS: dict[str, Callable[[Table], Rows]] = {
    "a < 15": lambda t: t["a"] < 15,
    "a >= 15": lambda t: t["a"] >= 15,
    "a < 20": lambda t: t["a"] < 20,
    "b = true": lambda t: t["b"] == "true",
    "a < 15 and b = true": lambda t: (t["a"] < 15) & (t["b"] == "true"),
    "a >= 20 and a < 25 and c = x": lambda t: (t["a"] >= 20) & (t["a"] < 25) & (t["c"] == "x"),
}
GROUPS = ((), ("b",), ("c",), ("b", "c"), ("a",))
"""What is asked of each condition is grouped by these."""


def table(draw: np.random.Generator) -> Table:
    rows = int(draw.integers(1, 40))
    return {
        "a": draw.integers(0, 31, rows),
        "b": np.where(draw.random(rows) < draw.random(), "true", "false"),
        "c": draw.choice(["x", "y", "z"], rows, p=draw.dirichlet([0.5] * 3)),
    }


def in_group(people: Table, by: Sequence[str], labels: Sequence[Any]) -> Rows:
    """Which rows are in the group that bears these labels."""
    inside = np.ones(len(people["a"]), bool)
    for name, label in zip(by, labels, strict=True):
        if name == "a":  # 10-14, or a single value
            ends = str(label).split("-")
            inside &= (people["a"] >= int(ends[0])) & (people["a"] <= int(ends[-1]))
        else:
            inside &= people[name] == str(label).lower()
    return inside


def released(people: Table, draw: np.random.Generator, neighbours: str) -> Release:
    """A release with a few marginals of the table, whose counts are in their intervals."""
    codes = {name: [DOMAIN[name].labels.index(label) for label in people[name]] for name in ("b", "c")}
    codes["a"] = np.minimum(people["a"] // 10, 2).tolist()
    cliques = [clique for size in (0, 1, 2, 3) for clique in combinations(DOMAIN.names, size)]
    answers: list[MarginalAnswer] = []
    for place in draw.permutation(len(cliques))[: draw.integers(1, 5)]:
        clique = cliques[place]
        counts = np.zeros(DOMAIN.shape(clique))
        for i in range(len(people["a"])):
            counts[tuple(codes[name][i] for name in clique)] += 1
        low, high = (side * draw.gamma(1, draw.choice([0.01, 1, 10]), counts.shape) for side in (-1, 1))
        if draw.random() < 0.3:  # in some cells, or in all of them, nothing is proved
            unknown = draw.random(counts.shape) < draw.choice([0.3, 2])
            low, high = np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)
        inside = np.clip(draw.normal(0, 2, counts.shape), low, high)
        proved = np.isfinite(high - low).all()
        basis = str(draw.choice(["measured", "certified"])) if proved else "uncertified"
        answers.append(MarginalAnswer(clique, counts + inside, counts + low, counts + high, basis))
    standin = Product(DOMAIN, {name: draw.dirichlet(np.ones(DOMAIN[name].size)) for name in DOMAIN.names})
    told = {
        "table": "people",
        "beta": 0.05,
        "cost": {"currency": "epsilon", "amount": 1.0},
        "privacy": {"neighbours": neighbours},
        "method": "drawn",
    }
    rows = float(len(people["a"])) if neighbours == "replace" else float(draw.integers(0, 60))
    return Release(DOMAIN, standin, rows, tuple(answers), told)


def check(told: Answer, truth: Callable[[tuple[str, ...]], float | None]) -> None:
    asked = told.described
    ends = [(told.value - told.error, told.value + told.error)]
    if told.low is not None and told.high is not None:
        ends.append((told.low, told.high))
    if told.cut_bins is not None:
        cut = told.cut_bins
        ends.append((cut.low, cut.high))
        assert (cut.low <= told.value + 1e-9).all(), asked
        assert (told.value <= cut.high + 1e-9).all(), asked
        # What nobody vouches for has no part that comes from bins, and what somebody does has one.
        assert (np.isinf(told.error) == np.isinf(cut.discretisation)).all(), asked
        assert (np.isinf(told.error) | (cut.discretisation <= (cut.high - cut.low) / 2 + 1e-9)).all(), asked
    if not told.unit.startswith("people"):
        assert all((low <= 1).all() and (high >= 0).all() for low, high in ends), asked
    for i, labels in enumerate(told.query.labels()):
        if (exact := truth(labels)) is not None:
            for low, high in ends:
                assert low.flat[i] - 1e-9 <= exact <= high.flat[i] + 1e-9, (asked, labels, told.as_dict())


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("seed", range(30))
def test_the_truth_lies_between_the_ends_of_all_answers(neighbours, seed):
    draw = np.random.default_rng([seed, 17])
    people = table(draw)
    made = released(people, draw, neighbours)
    for condition, holds in CONDITIONS.items():
        meeting = holds(people)
        for by in GROUPS:
            listed = ", ".join(by)
            grouped = f" by {listed}" if by else ""

            def count(labels, by=by, meeting=meeting):
                return (in_group(people, by, labels) & meeting).sum()

            def share(labels, count=count):
                return count(labels) / len(people["a"])

            def rate(labels, by=by, count=count):
                group = in_group(people, by, labels).sum()
                return count(labels) / group if group else None

            check(made.answer(f"count {condition}{grouped}"), count)
            check(made.answer(f"share {condition}{grouped}"), share)
            if by and by != ("a",):
                check(made.answer(f"rate {condition} within {listed}"), rate)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("seed", range(10))
def test_the_truth_lies_between_the_bounds_of_statements(neighbours, seed):
    draw = np.random.default_rng([seed, 18])
    people = table(draw)
    made = released(people, draw, neighbours)
    for condition, holds in CONDITIONS.items():
        meeting = holds(people)
        written = condition.replace("= x", "= 'x'")
        for by in GROUPS[:4]:
            listed = "".join(f"{name}, " for name in by)
            grouped = f" GROUP BY {', '.join(by)}" if by else ""
            told = made.answer(
                f"SELECT {listed}count(*) AS n, avg(CASE WHEN b THEN 1 ELSE 0 END) AS r FROM people "
                f"WHERE {written}{grouped}"
            )
            assert isinstance(told, SqlAnswer)
            for row in told.cells:
                group = in_group(people, by, row[: len(by)]) & meeting
                exact = group.sum(), (people["b"][group] == "true").mean() if group.any() else None
                for number, truth in zip(row[len(by) :], exact, strict=True):
                    assert truth is None or number.low is None or number.low - 1e-9 <= truth, (told.text, row)
                    assert truth is None or number.high is None or truth <= number.high + 1e-9, (
                        told.text,
                        row,
                    )
