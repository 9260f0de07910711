"""Random statements over a small domain, and the same table with representatives in DuckDB."""

# ruff: noqa: E501 (a statement stands on one line)
from __future__ import annotations

import datetime as dt
import random

import duckdb
import numpy as np

from understudy.domain.attribute import Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.query.marginal import Marginal

DOMAIN = Domain(
    (
        Bins.between("age", [0, 10, 20, 30]),
        Bins.integers("kids", -2, 3),
        Bins.between("income", [0.0, 0.5, 1.0, 4.0], null=True),
        Bins.between("hours", [-10, 0, 5, 20]),
        Bins.between("score", [0, 1, 4, 9], outside=Outside.OTHER),
        Categories(name="sex", values=("F", "M")),
        Categories(name="home town", values=("Bree", "Old Forest", "bree"), outside=Outside.NULL, null=True),
        Boolean(name="smoker", null=True),
        Bins.between("born", [dt.date(1990, 1, 1), dt.date(2000, 1, 1), dt.date(2010, 1, 1)]),
    )
)
OTHER = "⁂"
EPOCH = dt.date(1970, 1, 1)


def representative(name: str, cell: int):
    """What DuckDB's table holds for a cell."""
    attribute = DOMAIN[name]
    if cell >= attribute.proper_size:
        unknown = attribute.labels[cell] == "other" and not isinstance(attribute, Bins)
        return OTHER if unknown else None
    if isinstance(attribute, Bins):
        point = float(attribute.representatives[cell])
        if attribute.kind == "date":
            return EPOCH + dt.timedelta(days=int(np.floor(point)))
        return int(point) if name == "kids" else point
    return bool(cell) if attribute.kind == "boolean" else attribute.labels[cell]


def inside(name: str, cell: int, rng: random.Random):
    """Some value that falls into a cell: what a real table might hold."""
    attribute = DOMAIN[name]
    if not isinstance(attribute, Bins) or cell >= attribute.proper_size:
        return representative(name, cell)
    edges = (*attribute.starts, attribute.upper)
    low, high = edges[cell], edges[cell + 1]
    last = cell == attribute.proper_size - 1
    if attribute.kind == "real":
        return rng.choice((low, rng.uniform(low, high), high if last else low))
    if attribute.kind == "date":
        return low + dt.timedelta(days=rng.randint(0, (high - low).days - (0 if last else 1)))
    return rng.randint(low, max(low, high if last else high - 1))


def codes(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {a.name: rng.integers(0, a.size, rows).astype(np.uint8) for a in DOMAIN}


def table(data: dict[str, np.ndarray], value=representative) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET ieee_floating_point_ops = false")  # a division by 0 is missing, as in SQL
    connection.execute(
        'CREATE TABLE t (age DOUBLE, kids INTEGER, income DOUBLE, hours DOUBLE, score DOUBLE, sex VARCHAR, "home town" VARCHAR, '
        "smoker BOOLEAN, born DATE)"
    )
    rows = [
        [value(name, int(cells[i])) for name, cells in data.items()]
        for i in range(len(next(iter(data.values()))))
    ]
    if rows:
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    return connection


def exact_sums(marginal: Marginal, data: dict[str, np.ndarray]) -> np.ndarray:
    """What a mechanism without noise would release."""
    rows = len(next(iter(data.values())))
    total = np.zeros(marginal.shape)
    weights = np.broadcast_to(marginal.where.row_weights(data), rows)
    place = tuple(data[name] for name in marginal.by)
    if place:
        np.add.at(total, place, weights)
    else:
        total[()] = weights.sum()
    return total


class Writer:
    """Writes statements. Every method returns SQL that both sides read; `sum` alone needs two spellings."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def pick(self, *choices):
        return self.rng.choice(choices)

    def constant(self) -> str:
        return self.pick("0", "1", "2", "3", "10", "0.5", "2.5", "-1", "20", "7")

    def number(self, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.3:
            return self.pick(
                "age", "kids", "kids", "income", "hours", self.constant(), "year(born)", 'length("home town")'
            )
        a, b = self.number(depth - 1), self.number(depth - 1)
        return self.pick(
            f"{a} + {b}", f"({a} - {b})", f"{a} * {self.constant()}", f"({a}) * ({b})", f"({a}) / 4", f"-({a})",
            f"abs({a})", f"floor({a})", f"ceil({a})", f"round({a})", f"round({a}, 1)", f"greatest({a}, {b})",
            f"least({a}, {b})", f"coalesce({a}, {b})", f"nullif(kids, {self.pick('0', '1', '-2')})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {b} END",
            f"CASE WHEN {self.condition(depth - 1)} THEN {a} END",
            f"if({self.condition(depth - 1)}, {a}, {b})", "(kids % 2)", "mod(kids, 2)", "kids // 2", "kids ** 2", "sqrt(kids + 2)",
            f"CASE sex WHEN 'F' THEN {a} WHEN 'M' THEN {b} ELSE 0 END", f"sign({a})",
            "extract(month FROM born)", "quarter(born)", "kids::double", "smoker::int", "date_part('year', born)",
            f"({a})::double", f"CAST({a} AS DECIMAL(18, 2))", "extract(decade FROM born)", "extract(isodow FROM born)", "'2'::int",
        )  # fmt: skip

    def text(self, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.4:
            return self.pick('"home town"', '"home town"', "'F'", "'Bree'", "''")
        a = self.text(depth - 1)
        return self.pick(
            f"lower({a})", f"upper({a})", f"substr({a}, 1, 2)", f"left({a}, 1)", f"right({a}, 2)",
            f"{a} || {self.text(depth - 1)}", f"coalesce({a}, {self.text(depth - 1)})", f"reverse({a})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {a} ELSE {self.text(depth - 1)} END",
            f"trim({a})", f"concat({a}, 'x')",
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.25:
            return self.leaf()
        a, b = self.condition(depth - 1), self.condition(depth - 1)
        return self.pick(
            f"{a} AND {b}", f"({a}) OR ({b})", f"NOT ({a})", f"({a} OR {b}) AND {self.leaf()}",
            f"{self.number(depth - 1)} {self.operator()} {self.constant()}",
            f"{self.number(depth - 1)} {self.operator()} {self.number(depth - 1)}",
            f"({a}) IS NULL", f"({a}) IS NOT TRUE", f"({a}) IS FALSE",
            f"{self.number(depth - 1)} BETWEEN {self.constant()} AND {self.constant()}",
            f"{self.text(depth - 1)} {self.pick('=', '<>')} {self.text(0)}",
            f"{self.text(depth - 1)} LIKE '{self.pattern()}'", f"{self.text(depth - 1)} {self.pick('', 'NOT')} ILIKE '{self.pattern()}'",
            f"starts_with({self.text(depth - 1)}, 'B')", f"contains({self.text(depth - 1)}, 'r')",
            f"length({self.text(depth - 1)}) {self.operator()} 3",
        )  # fmt: skip

    def operator(self) -> str:
        return self.pick("=", "<>", "<", "<=", ">", ">=", "!=")

    def pattern(self) -> str:
        return self.pick("F", "B%", "%e%", "_ree", "%", "", "%r_e", "%e%e%", "b__e")

    def leaf(self) -> str:
        return self.pick(
            f"age {self.pick('<', '>=')} {self.pick(10, 20)}", f"age {self.pick('<=', '>')} {self.pick(9, 19, 30)}",
            f"kids {self.operator()} {self.pick(-2, -1, 0, 1, 2, 3, 9)}", f"{self.pick(0, 1)} < kids",
            f"income {self.pick('<', '>=')} {self.pick('0.5', '1.0')}", "age BETWEEN 10 AND 19",
            f"hours {self.pick('<', '>=')} {self.pick(0, 5)}", "hours NOT BETWEEN 0 AND 4", f"score {self.pick('<', '>=')} {self.pick(1, 4)}", "income IS NULL",
            f"sex {self.pick('=', '<>')} '{self.pick('F', 'M')}'", "sex IN ('F')", "sex NOT IN ('F', 'M')",
            "\"home town\" = 'Bree'", "\"home town\" IN ('bree', 'Old Forest')", '"home town" IS NOT NULL',
            "smoker", "NOT smoker", "smoker IS NULL", "smoker = true", "smoker IS NOT FALSE",
            "born < date '2000-01-01'", "born >= '2000-01-01'", "year(born) < 2000", "kids IN (0, 1, 3)",
            "true", "1 = 0", "NULL", "kids = kids + 0", "age * 2 < 40", "income * 2 >= 1",
            "age < '20'", "kids IN ('0', '1')", "'2' >= kids", "kids::text = '1'", "kids + 1 > '2'", "smoker = 'true'",
            "born < timestamp '2000-01-01 00:00:00'", "born < '1999-12-31'::date + interval '1 day'", "born >= make_date(2000, 1, 1)",
            "date_trunc('decade', born) < date '2000-01-01'", "sex IS DISTINCT FROM 'F'", "smoker IS NOT DISTINCT FROM true",
            "income IS DISTINCT FROM NULL", "kids = ANY([1, 2])", "extract(epoch FROM born) < 0",
        )  # fmt: skip

    def aggregate(self, depth: int) -> tuple[str, str]:
        """An aggregate for us, and for DuckDB, whose sum over no rows is missing."""
        where = f" FILTER (WHERE {self.condition(depth)})" if self.rng.random() < 0.3 else ""
        inner = self.number(depth) if self.rng.random() < 0.9 else "score"
        kind = self.rng.randrange(8)
        if kind <= 1:
            return (f"count(*){where}",) * 2
        if kind == 2:
            of = self.pick(inner.replace("score", "kids"), self.text(depth))
            return (f"count({of}){where}",) * 2
        if kind <= 4:
            return f"sum({inner}){where}", f"coalesce(sum({inner}){where}, 0)"
        if kind <= 6:
            return (f"avg({inner}){where}",) * 2
        of, level = self.pick("age", "kids", "income"), self.pick("0.5", "0.25", "0.9", "0", "1", "0.33")
        form = self.pick(
            f"median({of})", f"quantile_cont({of}, {level})", f"quantile_disc({of}, {level})",
            f"percentile_cont({level}) WITHIN GROUP (ORDER BY {of})",
        )  # fmt: skip
        return (form,) * 2

    def column(self, depth: int) -> tuple[str, str]:
        ours, theirs = self.aggregate(depth)
        if self.rng.random() < 0.3:
            more, other = self.aggregate(depth)
            form = self.pick("{} + {}", "{} / {}", "100.0 * {} / {}", "{} - 2 * {}", "coalesce({}, 0) + {}",
                             "greatest({}, {})", "round({} / 3, 2) + {}", "abs({}) * {}")  # fmt: skip
            return form.format(ours, more), form.format(theirs, other)
        return ours, theirs

    def group(self, depth: int) -> list[str]:
        choices = ["sex", "age", "kids", "smoker", '"home town"', "income", "born"]
        keys = self.rng.sample(choices, self.rng.choice([0, 0, 1, 1, 2]))
        if self.rng.random() < 0.3:
            keys.append(self.pick(
                f"CASE WHEN {self.condition(depth)} THEN 'a' ELSE 'b' END", "kids > 0", "floor(age / 100)",
                "abs(kids)", "lower(sex)", "coalesce(\"home town\", '-')", "kids + 1",
                f"CASE WHEN {self.condition(depth)} THEN kids END", "kids::varchar", "smoker::int",
            ))  # fmt: skip
        return keys

    def statement(self) -> tuple[str, str, int]:
        """Our statement, DuckDB's, and how many of its first columns are keys."""
        depth = self.rng.choice([0, 1, 2, 3])
        keys = self.group(depth)
        columns = [self.column(depth) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        tail = f" WHERE {self.condition(depth)}" if self.rng.random() < 0.6 else ""
        if keys:
            tail += " GROUP BY " + ", ".join(keys)
        ours = "SELECT " + ", ".join([*keys, *(c for c, _ in columns)]) + " FROM t" + tail
        theirs = "SELECT " + ", ".join([*keys, *(c for _, c in columns)]) + " FROM t" + tail
        return ours, theirs, len(keys)
