"""What docs/sql.md lists is answered, or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from understudy.declaration.file import parse
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import QueryError
from understudy.sql import compile_sql
from understudy.sql.remedies import AGGREGATES, SCALARS
from understudy_demo.town import declaration

TEXT = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
ANSWERED, REFUSED = (block.strip().splitlines() for block in re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL))
DOMAIN = parse(declaration("town.parquet")).domain


@pytest.mark.parametrize("text", ANSWERED)
def test_documented_statements_are_answered(text):
    assert compile_sql(text, DOMAIN, tables=["town"], rows_public=True).marginals


@pytest.mark.parametrize("text", REFUSED)
def test_documented_refusals_are_refused(text):
    with pytest.raises(QueryError):
        compile_sql(text, DOMAIN, tables=["town"], rows_public=True)


def test_every_function_is_documented():
    for name in (*AGGREGATES.split(", "), *SCALARS.split(", ")):
        assert re.search(rf"\b{name}\b", TEXT), name


@pytest.mark.parametrize("name", AGGREGATES.split(", "))
def test_every_aggregate_that_refusals_list_is_answered(name):
    domain = Domain((Bins.measure("a", 0, 100), Bins.measure("b", 0, 100)))
    given = "a, b" if "covar" in name else "a >= 50" if name == "count_if" else "a"
    given = "a, 0.5" if "quantile" in name else given
    call = f"{name}(0.5) WITHIN GROUP (ORDER BY a)" if "percentile" in name else f"{name}({given})"
    assert compile_sql(f"SELECT {call} FROM t", domain, tables=["t"], measured="positions").marginals


def test_an_aggregate_that_is_not_answered_is_told_all_that_are():
    with pytest.raises(QueryError, match=r"(?i)kurtosis.* is not answered") as refusal:
        compile_sql("SELECT kurtosis(age) FROM town", DOMAIN, tables=["town"])
    assert AGGREGATES in str(refusal.value)
    assert list(refusal.value.suggestions) == AGGREGATES.split(", ")
