"""However a conjunction is written, by a person or by a program, it is the same question."""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from sql.generate import DOMAIN
from understudy.sql import CompiledSql, compile_sql

CONDITIONS = {
    "age": ("age < 10", "age >= 10", "age < 20", "age BETWEEN 10 AND 19"),
    "kids": ("kids > 0", "kids = 1", "kids IN (0, 1, 3)", "kids <> -2"),
    "income": ("income < 0.5", "income >= 1.0", "income IS NULL"),
    "sex": ("sex = 'F'", "sex IN ('F', 'M')", "sex <> 'M'"),
    "smoker": ("smoker", "NOT smoker", "smoker IS NOT NULL"),
    "born": ("born < date '2000-01-01'", "born >= date '2000-01-01'"),
}
SPELT = {
    "age < 10": ("age < '10'", "NOT age >= 10", "age = '0-9'", "10 > age", "CAST(age AS double) < 10", "age::numeric < 10"),
    "age >= 10": ("age >= '10'", "age <> '0-9'", "age IN ('10-19', '20-30')"),
    "age < 20": ("age <= 19", "CASE WHEN age < 20 THEN true ELSE false END", "age IN ('0-9', '10-19')"),
    "age BETWEEN 10 AND 19": ("age >= 10 AND age < 20", "age = '10-19'", "age BETWEEN '10' AND '19'"),
    "kids > 0": ("kids >= '1'", "greatest(kids, 0) <> 0", "kids IN (1, 2, 3)", "kids::int > 0"),
    "kids = 1": ("kids = ANY (ARRAY[1])", "kids IN ('1')", "kids IS NOT DISTINCT FROM 1", "kids::text = '1'"),
    "kids IN (0, 1, 3)": ("kids = ANY(ARRAY[3, 1, 0])", "kids = 0 OR kids = 1 OR kids = 3"),
    "kids <> -2": ("kids IS DISTINCT FROM -2", "NOT kids = -2", "kids > '-2'"),
    "income < 0.5": ("income < '0.5'", "NOT income >= 0.5"),
    "income >= 1.0": ("income >= '1'", "income::double >= 1.0"),
    "income IS NULL": ("income IS NOT DISTINCT FROM NULL", "coalesce(income, -1) = -1"),
    "sex = 'F'": ("sex IN ('F')", "sex::text = 'F'", "'F' = sex", "sex = ANY(ARRAY['F'])"),
    "sex IN ('F', 'M')": ("sex = 'F' OR sex = 'M'",),
    "sex <> 'M'": ("sex NOT IN ('M')", "NOT (sex = 'M')"),
    "smoker": ("smoker = true", "smoker = 'true'", "smoker = 1", "smoker IS TRUE"),
    "NOT smoker": ("smoker = false", "smoker = 'false'", "smoker = 0", "smoker IS FALSE"),
    "smoker IS NOT NULL": ("smoker IN (true, false)", "NOT (smoker IS NULL)"),
    "born < date '2000-01-01'": ("born < '2000-01-01'", "born < timestamp '2000-01-01 00:00:00'", "year(born) < 2000", "born <= '1999-12-31T08:30:00Z'", "date_trunc('decade', born) < '2000-01-01'", "born < date '1999-01-01' + interval '1 year'"),
    "born >= date '2000-01-01'": ("born >= '2000-01-01'::date", "extract(year FROM born) >= 2000", "date_part('decade', born) >= 200", "born > '1999-12-31 12:00'", "born >= to_date('2000-01-01', 'YYYY-MM-DD')"),
}  # fmt: skip
ITEMS = (
    ("count(*)", "count(1)"),
    ("count(*)", "sum(1)"),
    ("sum(kids)", "sum(CAST(kids AS bigint))"),
    ("count(*) FILTER (WHERE smoker)", "count(CASE WHEN smoker THEN 1 END)"),
    ("count(*) FILTER (WHERE smoker)", "sum(CASE WHEN smoker THEN 1 ELSE 0 END)"),
    ("avg(kids)", "avg(kids::double)"),
    ("100.0 * count(*) FILTER (WHERE smoker) / count(*)", "100.0 * count_if(smoker = 1) / count(*)"),
)


def key(text: str) -> str:
    compiled = compile_sql(text, DOMAIN, tables=["t"])
    assert isinstance(compiled, CompiledSql), text
    return compiled.key


def measured(text: str) -> list[str]:
    """What is counted for a statement; a sum of 0 and 1 is called a sum, and counts the same people."""
    return sorted(marginal.key for marginal in compile_sql(text, DOMAIN, tables=["t"]).marginals)


def plain(item: str, conditions: list[str], groups: list[str]) -> str:
    where = " AND ".join(conditions) or "true"
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join([*groups, item])} FROM t WHERE {where}{by}"


def rewritings(item: str, conditions: list[str], groups: list[str], rng: random.Random) -> list[str]:
    """The same question as different programs write it."""
    cut = rng.randint(0, len(conditions))
    inner, outer = " AND ".join(conditions[:cut]) or "true", " AND ".join(conditions[cut:]) or "true"
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    listed = ", ".join([*groups, item])
    whole = " AND ".join(f"({c})" for c in conditions) or "1 = 1"
    numbered = f" GROUP BY {', '.join(str(i + 1) for i in range(len(groups)))}" if groups else ""
    columns = ", ".join(f'"{name}" AS "{name}"' for name in DOMAIN.names)
    texts = [
        f"-- a chart\nSELECT {listed} FROM public.t WHERE {whole}{by};",
        f'/* a chart */ SELECT {listed} FROM "understudy"."public"."t" WHERE ({whole}){numbered} -- the end',
        f"SELECT {listed} FROM (SELECT * FROM t WHERE {inner}) AS virtual_table WHERE {outer}{by}",
        f'SELECT {listed} FROM (SELECT {columns} FROM "public"."t" AS "u" WHERE {inner}) AS "source" WHERE {outer}{by}',
        f"WITH source AS (SELECT * FROM t WHERE {inner}) SELECT {listed} FROM source WHERE {outer}{numbered}",
        f"WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a WHERE {inner}) SELECT {listed} FROM (SELECT * FROM b) AS c WHERE {outer}{by}",
        f"(SELECT {listed} FROM ((t)) WHERE {whole}{by})",
    ]
    named = ", ".join([*groups, f"{item} AS n"])
    texts.append(f"SELECT {', '.join([*groups, 'n'])} FROM (SELECT {named} FROM t WHERE {whole}{by}) AS x")
    texts.append(f"WITH x AS (SELECT {named} FROM t WHERE {inner} AND {outer}{by}) SELECT * FROM x")
    if item in ("count(*)", "sum(kids)", "count(*) FILTER (WHERE smoker)"):  # what can be added up
        keys = ", ".join([*groups, '"home town"'])
        summed = ", ".join([*groups, "sum(n)"])
        texts.append(
            f"SELECT {summed} FROM (SELECT {keys}, {item} AS n FROM t WHERE {whole} GROUP BY {keys}) AS v{by}"
        )
    return texts


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_every_rewriting_is_the_plain_question(seed):
    rng = random.Random(seed)
    chosen = rng.sample(sorted(CONDITIONS), rng.randint(0, 4))
    conditions = [rng.choice(CONDITIONS[name]) for name in chosen]
    groups = rng.sample(["sex", "kids", "age", "smoker", "born"], rng.choice([0, 1, 1, 2]))
    item, other = rng.choice(ITEMS)
    wanted = key(plain(item, conditions, groups))
    spelt = [rng.choice((condition, *SPELT[condition])) for condition in conditions]
    spelt = [f"({condition})" for condition in rng.sample(spelt, len(spelt))]
    assert measured(plain(other, spelt, groups)) == measured(plain(item, conditions, groups)), (other, spelt)
    for text in rewritings(item, spelt, groups, rng):
        assert key(text) == wanted, (text, conditions)


def test_every_spelling_of_a_condition_is_one_question():
    for condition, others in SPELT.items():
        wanted = key(f"SELECT count(*) FROM t WHERE {condition}")
        for other in others:
            assert key(f"SELECT count(*) FROM t WHERE {other}") == wanted, other
