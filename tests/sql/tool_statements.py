"""Statements that other programs write about the demo's town: 34 that were recorded, and the public shapes of more.

An answered one has what DuckDB must run in its place on the same rows, where that is not the statement itself. A refused
one has the words of its refusal, and a statement with what the refusal suggests, which is answered.
"""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """A statement, and what becomes of it.

    without_bounds  it is made of released rows
    same_as         what DuckDB runs instead
    refused         a piece of the refusal; `instead` is then answered, and holds one of its suggestions
    """

    sql: str
    without_bounds: bool = False
    same_as: str = ""
    refused: str = ""
    instead: str = ""


RECORDED = {
    "superset count": Written("SELECT sex AS sex, COUNT(*) AS count FROM public.town GROUP BY sex ORDER BY count DESC LIMIT 10000"),
    "metabase count": Written('SELECT "public"."town"."sex" AS "sex", COUNT(*) AS "count" FROM "public"."town" GROUP BY "public"."town"."sex" ORDER BY "public"."town"."sex" ASC'),
    "metabase scan": Written('SELECT "public"."town"."district" AS "district" FROM "public"."town" GROUP BY "public"."town"."district" ORDER BY "public"."town"."district" ASC LIMIT 1000'),
    "metabase bin": Written('SELECT (FLOOR((("public"."town"."age" - 0.0) / 10.0)) * 10.0) + 0.0 AS "age", COUNT(*) AS "count" FROM "public"."town" GROUP BY 1 ORDER BY 1 ASC'),
    "unqualified bin": Written('SELECT (FLOOR(((age - 0.0) / 10.0)) * 10.0) + 0.0 AS "age", COUNT(*) AS "count" FROM town GROUP BY 1 ORDER BY 1 ASC'),
    "metabase trunc": Written(
        """SELECT CAST(DATE_TRUNC('year', "town"."moved_in") AS date) AS "moved_in", COUNT(*) AS "count" FROM "town" GROUP BY CAST(DATE_TRUNC('year', "town"."moved_in") AS date)""",
        refused="varies inside a bin of moved_in",
        instead='SELECT bin_start("town"."moved_in") AS "moved_in", COUNT(*) AS "count" FROM "town" GROUP BY 1',
    ),
    "metabase decade sum": Written('SELECT SUM("town"."children") AS "sum", AVG("town"."income") AS "avg" FROM "town"'),
    "metabase filter text": Written("""SELECT COUNT(*) AS "count" FROM "town" WHERE "town"."district" = 'Inkwharf' OR "town"."district" = 'Emberquay'"""),
    "metabase share": Written("""SELECT CAST(SUM(CASE WHEN "town"."smoker" = TRUE THEN 1 ELSE 0.0 END) AS float) / NULLIF(COUNT(*), 0) AS "share" FROM "town" """),
    "superset virtual": Written("SELECT sex, sum(n) FROM (SELECT sex, count(*) AS n FROM town GROUP BY sex) AS virtual_table GROUP BY sex"),
    "superset distinct": Written("SELECT DISTINCT district FROM public.town LIMIT 1000"),
    "superset filter in": Written("SELECT count(*) FROM town WHERE district IN ('Inkwharf') AND age >= 20 AND age < 40"),
    "superset minmax": Written(
        "SELECT MIN(moved_in), MAX(moved_in) FROM public.town",
        refused="hangs on single rows",
        instead="SELECT quantile_disc(moved_in, 0.01), quantile_disc(moved_in, 0.99) FROM public.town",
    ),
    "superset count distinct": Written(
        "SELECT COUNT(DISTINCT district) FROM town",
        refused="how many different values occur is not a count of people",
        instead="SELECT district, count(*) FROM town GROUP BY district",
    ),
    "grafana": Written(
        "SELECT district AS metric, count(*) AS value FROM town WHERE moved_in BETWEEN '2000-01-01' AND '2020-01-01' GROUP BY district ORDER BY 1",
        refused="cuts the bin",
        instead="SELECT district AS metric, count(*) AS value FROM town WHERE moved_in >= '2000-01-01' AND moved_in < '2020-01-01' GROUP BY district ORDER BY 1",
    ),
    "grafana ts": Written(
        """SELECT moved_in AS "time", count(*) AS value FROM town WHERE moved_in BETWEEN '2000-01-01T00:00:00Z' AND '2020-01-01T00:00:00Z' GROUP BY 1 ORDER BY 1""",
        refused="cuts the bin",
        instead="""SELECT bin_start(moved_in) AS "time", count(*) AS value FROM town WHERE moved_in >= '2000-01-01T00:00:00Z' AND moved_in < '2020-01-01' GROUP BY 1 ORDER BY 1""",
    ),
    "tableau": Written("""SELECT "town"."sex" AS "sex", COUNT(1) AS "cnt:sex:ok", SUM(1) AS "sum:n" FROM "public"."town" "town" GROUP BY 1"""),
    "powerbi": Written("""select "sex", count(*) as "a0" from "public"."town" "$Table" group by "sex" """),
    "sqlalchemy": Written("SELECT town.sex, count(*) AS count_1 \nFROM town \nWHERE town.age < 30 GROUP BY town.sex"),
    "sqlalchemy schema": Written("SELECT public.town.sex, count(*) AS count_1 \nFROM public.town GROUP BY public.town.sex"),
    "ibis": Written('SELECT "t0"."sex", COUNT(*) AS "n" FROM "town" AS "t0" GROUP BY 1'),
    "ibis filter": Written('SELECT "t1"."sex", COUNT(*) AS "n" FROM (SELECT * FROM "town" AS "t0" WHERE "t0"."age" < 30) AS "t1" GROUP BY 1'),
    "cte": Written("WITH x AS (SELECT sex, count(*) AS n FROM town GROUP BY sex) SELECT * FROM x"),
    "count(1)": Written("SELECT COUNT(1) FROM town"),
    "quoted case": Written('SELECT "Sex", COUNT(*) FROM "Town" GROUP BY "Sex"'),
    "preview": Written(
        "SELECT * FROM public.town LIMIT 100", refused="rows are private", instead="SELECT count(*) FROM town LIMIT 100"
    ),
    "trailing comment": Written("SELECT count(*) FROM town -- Metabase:: userID: 1 queryType: MBQL"),
    "leading comment": Written("-- Metabase:: userID: 1\nSELECT count(*) FROM town"),
    "pg cast": Written("SELECT count(*)::bigint, avg(age)::numeric FROM town", same_as="SELECT count(*), avg(age) FROM town"),
    "pg round": Written("SELECT round(avg(age)::numeric, 2) FROM town", same_as="SELECT round(avg(age), 2) FROM town"),
    "string int": Written("SELECT count(*) FROM town WHERE age < '30'"),
    "width_bucket": Written(
        "SELECT width_bucket(age, 0, 100, 10), count(*) FROM town GROUP BY 1",
        same_as="SELECT least(floor(age / 10)::int + 1, 11), count(*) FROM town GROUP BY 1",
    ),
    "stddev": Written(
        "SELECT stddev(children) FROM town",
        refused="is the standard deviation",
        instead="SELECT sqrt(avg(children * children) - avg(children) * avg(children)) FROM town",
    ),
    "percentile": Written("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY income) FROM town"),
}  # fmt: skip
"""What was recorded of programs in front of a server that took 11 of them."""

SHAPES = {
    "superset pivot": Written("SELECT district AS district, sex AS sex, COUNT(*) AS count, AVG(age) AS avg_age FROM public.town WHERE ((age >= 20 AND age < 65)) GROUP BY district, sex ORDER BY count DESC LIMIT 50000"),
    "superset time filter": Written("SELECT sex AS sex, COUNT(*) AS count FROM public.town WHERE moved_in >= TO_DATE('2000-01-01', 'YYYY-MM-DD') AND moved_in < TO_DATE('2020-01-01', 'YYYY-MM-DD') GROUP BY sex", same_as="SELECT sex, count(*) FROM town WHERE moved_in >= DATE '2000-01-01' AND moved_in < DATE '2020-01-01' GROUP BY sex"),
    "superset timestamp filter": Written("SELECT COUNT(*) AS count FROM public.town WHERE moved_in >= TO_TIMESTAMP('2000-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')", same_as="SELECT count(*) FROM town WHERE moved_in >= DATE '2000-01-01'"),
    "superset time grain": Written("SELECT DATE_TRUNC('month', moved_in) AS moved_in, COUNT(*) AS count FROM public.town GROUP BY DATE_TRUNC('month', moved_in) ORDER BY count DESC LIMIT 10000", refused="makes no groups", instead="SELECT bin_start(moved_in) AS moved_in, COUNT(*) AS count FROM public.town GROUP BY 1 ORDER BY count DESC LIMIT 10000"),
    "superset virtual dataset": Written("SELECT district AS district, SUM(n) AS sum_n FROM (SELECT district, sex, count(*) AS n FROM town GROUP BY district, sex) AS virtual_table GROUP BY district ORDER BY sum_n DESC LIMIT 100"),
    "superset virtual rows": Written("SELECT education AS education, COUNT(*) AS count FROM (select * from town where smoker) AS virtual_table GROUP BY education LIMIT 100"),
    "superset custom metric": Written("SELECT district AS district, SUM(CASE WHEN smoker THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS pct FROM public.town GROUP BY district ORDER BY pct DESC LIMIT 100"),
    "superset row count": Written("SELECT COUNT(*) AS rowcount FROM (SELECT district AS district, count(*) AS n FROM public.town GROUP BY district LIMIT 1000) AS rowcount_qry", without_bounds=True, same_as="SELECT 13"),
    "superset series limit": Written("SELECT district AS district, COUNT(*) AS count FROM public.town JOIN (SELECT district AS district__, COUNT(*) AS mme_inner__ FROM public.town GROUP BY district ORDER BY mme_inner__ DESC LIMIT 5) AS series_limit ON district = district__ GROUP BY district", refused="rows are not joined", instead="SELECT district AS district, COUNT(*) AS count FROM public.town GROUP BY district ORDER BY count DESC LIMIT 5"),
    "metabase distinct": Written('SELECT "public"."town"."district" AS "district", COUNT(*) AS "count" FROM "public"."town" WHERE ("public"."town"."sex" = \'F\') AND ("public"."town"."age" >= 20) GROUP BY "public"."town"."district" ORDER BY "count" DESC, "public"."town"."district" ASC LIMIT 10'),
    "metabase nested": Written('SELECT "source"."district" AS "district", "source"."count" AS "count" FROM (SELECT "public"."town"."district" AS "district", COUNT(*) AS "count" FROM "public"."town" GROUP BY "public"."town"."district") AS "source" WHERE "source"."count" > 50 ORDER BY "source"."count" DESC'),
    "metabase nested rows": Written('SELECT "source"."sex" AS "sex", AVG("source"."age") AS "avg" FROM (SELECT "public"."town"."age" AS "age", "public"."town"."sex" AS "sex" FROM "public"."town" WHERE "public"."town"."smoker" = TRUE) AS "source" WHERE "source"."age" < 65 GROUP BY "source"."sex" ORDER BY "source"."sex" ASC'),
    "metabase custom column": Written('SELECT CASE WHEN "public"."town"."age" < 20 THEN \'young\' ELSE \'old\' END AS "Group", COUNT(*) AS "count" FROM "public"."town" GROUP BY CASE WHEN "public"."town"."age" < 20 THEN \'young\' ELSE \'old\' END'),
    "metabase between dates": Written("""SELECT COUNT(*) AS "count" FROM "public"."town" WHERE ("public"."town"."moved_in" >= DATE '2000-01-01') AND ("public"."town"."moved_in" < DATE '2010-01-01')"""),
    "metabase timestamptz": Written("""SELECT COUNT(*) AS "count" FROM "public"."town" WHERE "public"."town"."moved_in" >= timestamp with time zone '2000-01-01 00:00:00.000Z'"""),
    "metabase cumulative": Written('SELECT "district", SUM(COUNT(*)) OVER (ORDER BY "district" ASC ROWS UNBOUNDED PRECEDING) AS "sum" FROM "public"."town" GROUP BY "district" ORDER BY "district" ASC', without_bounds=True),
    "metabase field values": Written('SELECT DISTINCT "public"."town"."education" AS "education" FROM "public"."town" ORDER BY "public"."town"."education" ASC LIMIT 1000'),
    "metabase fingerprint": Written('SELECT "public"."town"."age" AS "age", "public"."town"."sex" AS "sex" FROM "public"."town" LIMIT 10000', refused="rows are private", instead='SELECT DISTINCT "public"."town"."sex" AS "sex" FROM "public"."town" LIMIT 10000'),
    "grafana table": Written("SELECT district, count(*) AS n FROM town WHERE smoker = true GROUP BY district ORDER BY n DESC LIMIT 5 -- panel 3"),
    "grafana time group": Written("SELECT floor(extract(epoch from moved_in)/31536000)*31536000 AS \"time\", count(*) AS value FROM town GROUP BY 1 ORDER BY 1", refused="makes no groups", instead="SELECT bin_start(moved_in) AS \"time\", count(*) AS value FROM town GROUP BY 1 ORDER BY 1"),
    "grafana time filter": Written("SELECT count(*) AS value FROM town WHERE moved_in BETWEEN '2000-01-01T00:00:00Z' AND '2019-12-31T23:59:59Z'", same_as="SELECT count(*) FROM town WHERE moved_in >= DATE '2000-01-01' AND moved_in < DATE '2020-01-01'"),
    "grafana variable": Written("SELECT DISTINCT district FROM town ORDER BY 1"),
    "grafana multi-value": Written("SELECT sex AS metric, avg(hours) AS value FROM town WHERE district IN ('Inkwharf','Emberquay') GROUP BY sex"),
    "tableau sum": Written('SELECT "town"."district" AS "district", SUM("town"."children") AS "sum:children:ok" FROM "public"."town" "town" GROUP BY 1'),
    "tableau average": Written('SELECT "town"."sex" AS "sex", AVG(CAST("town"."age" AS DOUBLE PRECISION)) AS "avg:age:ok" FROM "public"."town" "town" GROUP BY 1'),
    "tableau filter": Written('SELECT SUM(1) AS "sum:Number of Records:ok" FROM "public"."town" "town" WHERE (("town"."district" IN (\'Inkwharf\', \'Juniper Row\')) AND ("town"."age" >= 20) AND ("town"."age" <= 64)) HAVING (COUNT(1) > 0)'),
    "tableau year": Written('SELECT CAST(EXTRACT(YEAR FROM "town"."moved_in") AS INTEGER) AS "yr:moved_in:ok", COUNT(1) AS "cnt" FROM "public"."town" "town" GROUP BY 1', refused="makes no groups", instead='SELECT bin_start("town"."moved_in") AS "yr:moved_in:ok", COUNT(1) AS "cnt" FROM "public"."town" "town" GROUP BY 1'),
    "tableau percent of total": Written('SELECT "town"."sex" AS "sex", COUNT(1) * 100.0 / SUM(COUNT(1)) OVER () AS "pcto" FROM "public"."town" "town" GROUP BY 1', without_bounds=True),
    "tableau quick filter": Written('SELECT "town"."commute" AS "commute" FROM "public"."town" "town" GROUP BY 1 ORDER BY 1 ASC'),
    "tableau text": Written('SELECT CAST("town"."sex" AS TEXT) AS "sex", COUNT(1) FROM "public"."town" "town" GROUP BY 1'),
    "powerbi sum": Written('select "_"."district", sum("_"."children") as "a0" from "public"."town" "_" where "_"."sex" = \'F\' group by "_"."district"'),
    "powerbi nested": Written('select "rows"."district" as "district", count(1) as "a0" from ( select "_"."district", "_"."sex", "_"."age" from "public"."town" "_" where "_"."age" >= 20 and "_"."age" < 40 ) "rows" group by "district" order by "a0" desc limit 1000001'),
    "powerbi top": Written('select "district", count(*) as "n" from "public"."town" "$Table" group by "district" order by 2 desc limit 3'),
    "powerbi distinct": Written('select distinct "_"."tenure" from "public"."town" "_" order by 1 limit 501'),
    "dbeaver count": Written('SELECT COUNT(*) FROM public.town'),
    "dbeaver rows": Written("SELECT count(*) FROM (SELECT district, count(*) AS n FROM town GROUP BY district) dbvrcnt", without_bounds=True, same_as="SELECT 13"),
    "dbeaver group": Written("SELECT marital, COUNT(*) FROM public.town GROUP BY marital ORDER BY 2 DESC"),
    "dbeaver filter": Written("SELECT sex, count(*) FROM (SELECT sex, count(*) FROM town GROUP BY sex) dbvrc WHERE sex = 'F'", refused="neither grouped by nor aggregated", instead="SELECT sex, count(*) FROM town WHERE sex = 'F' GROUP BY sex"),
    "looker": Written("SELECT town.district AS \"town.district\", COUNT(*) AS \"town.count\", COUNT(CASE WHEN town.smoker THEN 1 ELSE NULL END) AS \"town.smokers\" FROM public.town AS town GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY"),
    "redash": Written("SELECT date_part('decade', moved_in) AS d, count(*) FROM town WHERE moved_in < '1950-01-01' GROUP BY 1", refused="makes no groups", instead="SELECT bin_start(moved_in) AS d, count(*) FROM town WHERE moved_in < '1950-01-01' GROUP BY 1"),
    "sqlalchemy any": Written("SELECT count(*) AS count_1 FROM public.town WHERE public.town.district = ANY (ARRAY['Inkwharf', 'Emberquay'])", same_as="SELECT count(*) FROM town WHERE district IN ('Inkwharf', 'Emberquay')"),
    "pandas subquery": Written("SELECT * FROM (SELECT district, avg(income) AS m FROM town GROUP BY district) AS q ORDER BY m DESC LIMIT 4"),
    "dbt model": Written("WITH source AS (SELECT * FROM public.town), adults AS (SELECT * FROM source WHERE age >= 20), final AS (SELECT district, count(*) AS n, avg(hours) AS h FROM adults GROUP BY district) SELECT * FROM final"),
    "year on year": Written("WITH a AS (SELECT sex, count(*) AS n FROM town WHERE age < 30 GROUP BY sex), b AS (SELECT sex, count(*) AS n FROM town GROUP BY sex) SELECT a.sex, a.n * 1.0 / b.n AS r FROM a JOIN b ON a.sex = b.sex WHERE b.n > 100", without_bounds=True),
    "totals": Written("SELECT sex, count(*) FROM town WHERE sex IN ('F', 'M') GROUP BY sex UNION ALL SELECT 'all', count(*) FROM town", without_bounds=True),
    "share of a scalar": Written("SELECT (SELECT count(*) FROM town WHERE smoker) * 1.0 / (SELECT count(*) FROM town) AS share", without_bounds=True),
    "share of all": Written("SELECT sex, count(*) * 1.0 / (SELECT count(*) FROM town) AS share FROM town GROUP BY sex", without_bounds=True),
    "top of each": Written("SELECT sex, education, n FROM (SELECT sex, education, count(*) AS n, row_number() OVER (PARTITION BY sex ORDER BY count(*) DESC) AS r FROM town WHERE sex IN ('F', 'M') GROUP BY sex, education) AS t WHERE r <= 2", without_bounds=True),
    "flag": Written("SELECT district, CASE WHEN count(*) > 150 THEN 'large' ELSE 'small' END AS size FROM town WHERE district <> 'other' GROUP BY district", without_bounds=True, same_as="SELECT district, CASE WHEN count(*) > 150 THEN 'large' ELSE 'small' END FROM town GROUP BY district"),
    "lower bound": Written("SELECT district, count(*) AS n, low(count(*)) AS n_low, high(count(*)) AS n_high FROM town GROUP BY district ORDER BY n_low DESC", same_as="SELECT district, count(*), count(*), count(*) FROM town GROUP BY district"),
    "qualify": Written("SELECT district, count(*) AS n FROM town GROUP BY district QUALIFY row_number() OVER (ORDER BY count(*) DESC) <= 3", without_bounds=True),
    "misspelt": Written("SELECT coutn(*) FROM town", refused="did you mean count?", instead="SELECT count(*) FROM town"),
    "bin label": Written("SELECT count(*) FROM town WHERE age IN ('20-24', '25-29')", same_as="SELECT count(*) FROM town WHERE age >= 20 AND age < 30"),
    "catalog": Written('SELECT count(*) FROM "understudy"."public"."town" WHERE "understudy"."public"."town"."sex" = \'F\'', same_as="SELECT count(*) FROM town WHERE sex = 'F'"),
    "fetch first": Written("SELECT DISTINCT marital FROM town ORDER BY marital FETCH FIRST 2 ROWS ONLY", same_as="SELECT DISTINCT marital FROM town ORDER BY marital LIMIT 2"),
    "null handling": Written("SELECT count(*) FROM town WHERE commute IS NOT DISTINCT FROM NULL AND COALESCE(income, 0) < 5000"),
}  # fmt: skip
"""Public shapes of statements of programs that draw charts, written by hand."""
