"""Functions of dates, casts, bins and bounds; the order of released numbers; who is counted."""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import datetime as dt
from itertools import pairwise

import numpy as np
import pytest

from sql.generate import DOMAIN, codes, exact_sums
from understudy.domain.attribute import Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.sql import CompiledSql, Estimate, compile_sql
from understudy.sql.dates import GRAINS, begin

DATA = codes(300, seed=9)
MONTHS = [dt.date(2020 + i // 12, i % 12 + 1, 1) for i in range(24)]
CALENDAR = Domain(
    (
        Bins.between("d", [*MONTHS, dt.date(2021, 12, 31)]),
        Bins.between("open_end", [dt.date(2019, 1, 1), dt.date(2020, 1, 1), dt.date(2021, 1, 1)]),
        Categories(name="sex", values=("F", "M")),
    )
)


def compiled(text: str, domain: Domain = DOMAIN, **terms) -> CompiledSql:
    found = compile_sql(text, domain, tables=["t"], **terms)
    assert isinstance(found, CompiledSql)
    return found


def rows(text: str, error: float = 0.0):
    found = compiled(text)
    sums = [exact_sums(marginal, DATA) for marginal in found.marginals]
    return found.evaluate(sums, [error] * len(sums))


def keys(text: str, domain: Domain) -> list:
    found = compiled(text, domain)
    zeros = [np.zeros(marginal.shape) for marginal in found.marginals]
    return [row[0] for row in found.evaluate(zeros, zeros)]


# ---- dates


@pytest.mark.parametrize("grain", ["month", "quarter", "year", "decade"])
def test_periods_are_groups_where_no_bin_crosses_their_end(grain):
    expected = sorted({begin(day, grain) for day in MONTHS})
    for text in (
        f"date_trunc('{grain}', d)",
        f"CAST(DATE_TRUNC('{grain.upper()}', t.d) AS date)",
        f"date_trunc('{grain}', d)::timestamp",
    ):
        statement = f"SELECT {text} AS p, count(*) FROM t GROUP BY {text} ORDER BY p"
        assert keys(statement, CALENDAR) == expected
        assert compiled(statement, CALENDAR).columns[0].type == "date"
    assert keys("SELECT extract(year FROM d), count(*) FROM t GROUP BY 1", CALENDAR) == [2020, 2021]
    assert keys("SELECT year(d) * 100 + month(d) AS ym, count(*) FROM t GROUP BY 1", CALENDAR)[:2] == [
        202001,
        202002,
    ]


def test_a_period_that_bins_cross_is_refused_with_the_shortest_that_fits():
    with pytest.raises(QueryError) as refused:
        compiled("SELECT date_trunc('week', d), count(*) FROM t GROUP BY 1", CALENDAR)
    assert refused.value.suggestions == ("date_trunc('month', d)", "bin_start(d)")
    for suggestion in refused.value.suggestions:
        assert keys(f"SELECT {suggestion}, count(*) FROM t GROUP BY 1", CALENDAR)
    with pytest.raises(QueryError, match=r"(?i)hour.* varies inside a bin of d") as refused:
        compiled("SELECT date_trunc('hour', d), count(*) FROM t GROUP BY 1", CALENDAR)
    assert refused.value.suggestions == ("date_trunc('month', d)", "bin_start(d)")
    with pytest.raises(QueryError, match=r"the periods are .*day, week, month, quarter, year, decade"):
        compiled("SELECT date_trunc('millennium', d), count(*) FROM t GROUP BY 1", CALENDAR)


def test_a_last_bin_that_holds_its_upper_edge_is_named():
    with pytest.raises(QueryError) as refused:
        compiled("SELECT year(open_end), count(*) FROM t GROUP BY 1", CALENDAR)
    assert "the last bin of open_end holds its upper edge 2021-01-01" in str(refused.value)


@pytest.mark.parametrize("grain", GRAINS)
def test_the_begin_of_a_period_is_the_first_day_with_it(grain):
    for ordinal in range(1, 800_000, 977):
        day = dt.date.fromordinal(ordinal)
        first = begin(day, grain)
        assert first <= day
        assert begin(first, grain) == first
        if first > dt.date.min:
            assert begin(first - dt.timedelta(days=1), grain) < first


@pytest.mark.parametrize(
    "part", ["year", "quarter", "month", "day", "decade", "week", "isoyear", "doy", "dow", "isodow", "epoch"]
)
def test_a_part_of_a_date_holds_for_every_day_of_a_bin(part):
    from sqlglot import exp

    from understudy.sql.attributes import grid_evaluator
    from understudy.sql.dates import _PARTS, part_of_date

    value = part_of_date(grid_evaluator(CALENDAR), part, exp.column("d"))
    for cell, start in enumerate(MONTHS):
        end = MONTHS[cell + 1] if cell + 1 < len(MONTHS) else dt.date(2022, 1, 1)
        found = [_PARTS[part](start + dt.timedelta(days=i)) for i in range((end - start).days)]
        assert value.low[cell] <= min(found)
        assert max(found) <= value.high[cell]
        if part in ("year", "quarter", "month", "decade"):
            assert value.low[cell] == value.high[cell] == found[0]


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("date '2020-01-31' + interval '1 month'", "2020-02-29"), ("date '2020-03-31' - interval '1 month'", "2020-02-29"),
        ("date '2020-12-15' + interval '1 month'", "2021-01-15"), ("date '2021-02-28' + interval '1 year'", "2022-02-28"),
        ("date '2020-01-01' + interval '2 weeks'", "2020-01-15"), ("interval '1 quarter' + date '2020-01-01'", "2020-04-01"),
        ("date '2020-02-29' - interval '1 decade'", "2010-02-28"), ("make_date(2020, 2, 29)", "2020-02-29"),
        ("date('2020-05-05 12:00')", "2020-05-05"), ("'2020-05-05 00:00:00'::timestamp", "2020-05-05"),
    ],
)  # fmt: skip
def test_constants_of_time(written, day):
    edge = dt.date.fromisoformat(day)
    domain = Domain((Bins.between("d", [dt.date(2000, 1, 1), edge, dt.date(2030, 1, 1)]),))
    (marginal,) = compiled(f"SELECT count(*) FROM t WHERE d < {written}", domain).marginals
    assert marginal.where.factors[0].weights.tolist() == [1, 0]


# ---- bins and bounds


def test_ends_of_bins_are_names_of_groups_with_types():
    found = compiled("SELECT bin_start(age) AS a, bin_stop(age) AS b, age, count(*) FROM t GROUP BY age")
    assert [(c.name, c.kind, c.type) for c in found.columns[:2]] == [("a", "key", "int"), ("b", "key", "int")]
    assert [row[:3] for row in rows("SELECT bin_start(age), bin_stop(age), age, count(*) FROM t GROUP BY age")] == [
        (0, 10, "0-9"), (10, 20, "10-19"), (20, 30, "20-30"),
    ]  # fmt: skip
    starts = [row[0] for row in rows("SELECT bin_start(income), count(*) FROM t GROUP BY income")]
    assert starts == [0.0, 0.5, 1.0, None]  # missing values have no bin
    scores = [row[0] for row in rows("SELECT bin_start(score), count(*) FROM t GROUP BY score")]
    assert scores == [0, 1, 4, None]  # neither has the cell of all others
    assert compiled("SELECT bin_start(born), count(*) FROM t GROUP BY 1").columns[0].type == "date"


def test_the_ends_of_bounds_are_released_numbers_without_an_error():
    ((n, low, high, wide, mean),) = rows(
        "SELECT count(*), low(count(*)), high(count(*)), high(count(*)) - low(count(*)), low(avg(age)) FROM t WHERE smoker",
        error=7.0,
    )
    assert (low.value, high.value) == (n.low, n.high)
    for cell in (low, high):
        assert cell.low == cell.high == cell.value
        assert cell.discretisation == 0
    assert wide.value == n.high - n.low
    assert mean.discretisation == 0
    ((ratio, top),) = rows(
        "SELECT sum(kids) / count(*), high(sum(kids) / count(*)) FROM t WHERE kids > 0", error=1e6
    )
    assert ratio.high is None
    assert top == Estimate(None, 0.0, 0.0, 0.0) or top.value is None
    ((day, first),) = rows("SELECT quantile_disc(born, 0.5), low(quantile_disc(born, 0.5)) FROM t", error=3.0)
    assert first.value == day.low


def test_an_end_of_bounds_says_nothing_of_the_population():
    found = compiled("SELECT count(*), low(count(*)) FROM t WHERE smoker")
    sums = [exact_sums(marginal, DATA) for marginal in found.marginals]
    ((n, low),) = found.reach(sums, [3.0] * len(sums), [9.0] * len(sums))
    assert n == 9.0
    assert low is None


def test_buckets_of_equal_width():
    assert [row[0] for row in rows("SELECT width_bucket(kids, -1, 3, 2), count(*) FROM t GROUP BY 1")] == [
        0,
        1,
        2,
        3,
    ]
    for wrong in (
        "width_bucket(kids, 3, -1, 2)",
        "width_bucket(kids, 0, 3, 0)",
        "width_bucket(kids, 0, 'x', 3)",
    ):
        with pytest.raises(QueryError):
            compiled(f"SELECT {wrong}, count(*) FROM t GROUP BY 1")


# ---- the order of released numbers


def is_in_order(text: str, error: float):
    found = compiled(text)
    sums = [exact_sums(marginal, DATA) for marginal in found.marginals]
    return found.is_in_order(sums, [error] * len(sums))


def test_an_order_is_certified_where_bounds_do_not_overlap():
    text = "SELECT age, count(*) n FROM t GROUP BY age ORDER BY n DESC"
    counts = sorted((row[1].value for row in rows(text)), reverse=True)
    gap = min(a - b for a, b in pairwise(counts))
    assert gap > 0
    assert is_in_order(text, gap / 2 - 0.01) is True
    assert is_in_order(text, gap / 2 + 0.01) is False
    assert is_in_order("SELECT age, count(*) FROM t GROUP BY age ORDER BY age", 50.0) is None
    assert is_in_order("SELECT age, count(*) FROM t GROUP BY age", 50.0) is None
    assert is_in_order("SELECT age, count(*) n FROM t GROUP BY age ORDER BY age DESC, n", 50.0) is True
    assert is_in_order("SELECT count(*) FROM t ORDER BY 1", 50.0) is True


def test_a_limit_is_certified_with_what_it_cuts_off():
    text = "SELECT age, count(*) n FROM t GROUP BY age ORDER BY n DESC"
    counts = sorted((row[1].value for row in rows(text)), reverse=True)
    first = (counts[0] - counts[1]) / 2
    assert is_in_order(f"{text} LIMIT 1", first - 0.01) is True
    assert is_in_order(f"{text} LIMIT 1", first + 0.01) is False
    assert is_in_order(f"{text} LIMIT 1 OFFSET 1", 0.0) is True
    assert is_in_order(f"{text} LIMIT 0", 99.0) is True


def test_an_empty_group_with_wide_bounds_is_not_first_in_silence():
    text = "SELECT kids, avg(age) m FROM t WHERE kids > 0 OR age < 10 GROUP BY kids ORDER BY m DESC"
    assert is_in_order(text, 200.0) is False
    by_low = rows("SELECT kids, avg(age) m FROM t GROUP BY kids ORDER BY low(avg(age)) DESC", error=10.0)
    lows = [row[1].low for row in by_low]
    assert lows == sorted(lows, reverse=True)


# ---- who is counted


def test_people_are_counted_where_each_has_one_row():
    one = compiled("SELECT count(DISTINCT person) FROM t WHERE age < 10", person=("person", 1))
    assert [m.describe() for m in one.marginals] == ["age in (0-9)"]
    with pytest.raises(QueryError, match=r"between count\(\*\) / 3 and count\(\*\)"):
        compiled("SELECT count(DISTINCT person) FROM t", person=("Person", 3))
    for text in ("SELECT count(DISTINCT sex) FROM t", "SELECT count(DISTINCT person) FROM t"):
        with pytest.raises(QueryError, match="not a count of people"):
            compiled(text, person=("who", 1))
    with pytest.raises(QueryError, match="DISTINCT belongs to no aggregate but count"):
        compiled("SELECT avg(DISTINCT person) FROM t", person=("person", 1))


# ---- labels


def test_the_label_of_a_bin_is_compared_as_a_group_shows_it():
    domain = Domain((Bins.between("a", [0, 1, 4, 9], outside=Outside.OTHER, null=True),))
    for text, cells in (
        ("a = '1-3'", [0, 1, 0, 0, 0]),
        ("a <> '1-3'", [1, 0, 1, 1, 0]),
        ("a = 'other'", [0, 0, 0, 1, 0]),
    ):
        (marginal,) = compiled(f"SELECT count(*) FROM t WHERE {text}", domain).marginals
        assert marginal.where.factors[0].weights.tolist() == cells, text
    with pytest.raises(QueryError, match="a is a number"):
        compiled("SELECT count(*) FROM t WHERE a < '1-3'", domain)
    with pytest.raises(QueryError):
        compiled("SELECT count(*) FROM t WHERE a = '1-4'", domain)
