"""Good inputs of every door, and the words of each door's language: what the fuzzers start from."""

from __future__ import annotations

import json


def words(text: str) -> list[str]:
    """Words that spaces part; a dot in the middle stands for a space inside one."""
    return [word.replace("·", " ") for word in text.split()]


PLAIN_DECLARATION = """\
understudy: 1
name: t
source: t.parquet
budget: {epsilon: 1}
attributes:
  a: {type: integer, edges: [0, 1, 2]}
  b: {type: category, values: [x, y], null: true}
"""
RICH_DECLARATION = """\
understudy: 1
name: visits
source: {url: "postgresql://host/base", table: visits, schema: s, password_variable: PW, time_limit: 9}
neighbours: add-remove
budget: {epsilon: 1.5, delta: 1e-6}
opening: {epsilon: 0.25}
limits: {analyst: 0.2, day: 0.5}
unit: {column: person, max_rows: 3}
rows: {at_least: 10, at_most: 100000}
ledger: books.ledger
witness: seen.json
attributes:
  day: {type: date, edges: [2024-01-01, 2024-02-01, 2024-03-01], outside: other}
  age: {type: integer, bounds: [0, 99], width: 10}
  pay: {type: real, bounds: [0, 1e5], bins: 20, null: true}
  smokes: {type: boolean}
  town: {type: category, values: ["no", "yes", 'on'], column: place}
"""
DECLARATIONS = (PLAIN_DECLARATION, RICH_DECLARATION)
YAML_WORDS = words("""
    understudy name source budget epsilon delta attributes type integer edges category values null rows
    at_least unit neighbours replace add-remove outside other bounds bins width boolean date real protect
    validity ~ true [] {} :· ,· -· | > &a· *a !!str· !!python/object:os.system· <<:· %YAML·1.1 --- ... @
    2024-01-01 9999-12-31 ../.. ${HOME} ?· #·MISSING:·x user:pw@ token=1 0o17 1:30 =
""")

SQL = (
    "SELECT count(*) FROM t",
    "SELECT b, count(*) AS n FROM t WHERE a = 1 AND NOT b IN ('x', 'y') GROUP BY b HAVING n > 2 ORDER BY n",
    "SELECT sum(a), avg(a), median(a) FROM t WHERE a BETWEEN 0 AND 1 OR b IS NULL LIMIT 3",
    "SELECT CASE WHEN a < 1 THEN 'low' ELSE 'high' END AS c, count(*) * 100 / 4 FROM t GROUP BY 1",
    "SELECT count(DISTINCT b), CAST(avg(a) AS INT) FROM t WHERE b LIKE 'x%' -- and more",
)
SQL_WORDS = words("""
    SELECT count(*) sum( avg( median( FROM·t WHERE a b = < 'x' NULL IS NOT IN ( ) , AND OR GROUP·BY HAVING CASE
    UNION·ALL·SELECT JOIN·t WITH·t·AS·( OVER·() EXISTS·(SELECT /* */ -- ; DROP·TABLE·t CAST(a·AS·INT) $1 a::text
    INTERVAL·'1'·DAY {{a}} quantile(a,·0.5) read_csv('/etc/passwd') * ROW_NUMBER() COLLATE FILTER·(WHERE
    ? :a [1] -> TRUE DATE·'2024-01-01' EXTRACT(year·FROM·a) TRY_CAST( LATERAL PIVOT QUALIFY
""")

QUESTIONS = (
    "count",
    "count a = 1 and not b = x by b",
    "share a < 2 and (b in (x, y) or b = null) by a, b",
    'count a >= 1 by "b"',
    "share b != 'x' by a",
)
QUESTION_WORDS = words("count share by and or not in a b = != < <= x y z ( ) , null between select")

WORKLOADS = {
    "w.yml": ("[[a, b], {by: [b], weight: 2}]", "marginals:\n- a\n- [a, b]\n- {by: b, weight: 0.5}\n"),
    "w.csv": ("a,b\nb,2\n# no\n\na, 1e3\n", '"a",b,1/2\n'),
    "w.json": ('{"marginals": [["a", "b"], {"by": ["b"], "weight": 2}]}',),
}
WORKLOAD_WORDS = [*YAML_WORDS, *words("marginals by weight a b ,a")]

DESCRIPTIONS = (
    """{"name": "p", "resources": [{"name": "t", "path": "t.csv", "schema": {"fields": [
    {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
    {"name": "b", "type": "string", "constraints": {"enum": ["x"]}},
    {"name": "d", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2021-01-01"}}],
    "missingValues": ["", "NA"], "primaryKey": "a"}, "dialect": {"delimiter": ";"}}]}""",
    """"":
  s:
    t:
      row_privacy: true
      max_ids: 2
      id: {type: int, private_id: True}
      age: {type: int, lower: 0, upper: 99}
      town: {type: string, card: 4}
      x: {type: float, lower: 0.5, upper: 2}
""",
)
DESCRIPTION_WORDS = [*YAML_WORDS, *words("fields schema minimum enum private_id lower string any geojson")]

EVENTS = tuple(
    json.dumps(event)
    for event in (
        {"event": "LaplaceNoise", "l1": "1", "scale": "1/2"},
        {"event": "GaussianNoise", "l2_squared": "2", "variance": "40"},
        {"event": "RoundedNormal", "l2_squared": "2", "variance": "40"},
        {
            "event": "BoundedNoise",
            "reach": "200",
            "l1": "2",
            "largest": "1",
            "set_aside": "5",
            "order": "3",
            "divergence": "1",
            "delta": "1/1000",
        },
        {"event": "Selection", "epsilon": "1/7"},
        {
            "event": "Together",
            "events": [
                {
                    "event": "Located",
                    "noise": {"event": "LaplaceNoise", "l1": "1", "scale": "10"},
                    "region": [["a ab12", 2, "1"], ["b cd34", 3, "5"]],
                    "relation": "replace @ab12",
                    "split": False,
                },
                {"event": "SparseVector", "epsilon": "3/10"},
            ],
        },
    )
)
EVENT_WORDS = words("""
    "event" "events" "Together" "Located" "noise" "region" "relation" "split" "epsilon" "1/0" "-1" null true [] {}
    "add-remove·3" "1e999999999" 1e999999999 "nan" "ff" 99999999999 "9999999999/7" "SpentBefore" "NoisyMaximum" , :
    "RandomizedReport" "LaplaceNoise" 9223372036854775808 "RoundedNormal" "BoundedNoise" "reach" "order" "100000"
""")

FLAGS = [
    *words("""
    ask check plan release audit ledger show verify export session holdout init score create --json --project -p
    --epsilon --rho --error --beta --mechanism nobody --samples 0 -1 4 1e9 nan --dry-run --request --last --help
    --version nowhere.yml understudy.yml count count·by·a select·count(*)·from·t --method residual --out --name
    --analyst --from --workload all-2-way --alpha --queries --force --yes - -- =
    """),
    "", "\x00", "\ud800", "é" * 40, "9" * 400,
]  # fmt: skip
