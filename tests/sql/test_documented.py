"""What docs/sql.md lists is answered, or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from understudy.declaration.file import parse
from understudy.errors import QueryError
from understudy.sql import compile_sql
from understudy.sql.remedies import SCALARS
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
    for name in SCALARS.split(", "):
        assert re.search(rf"\b{name}\b", TEXT), name
