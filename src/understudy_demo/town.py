"""An invented town: its people, its declaration, and twenty questions with their true values.

Nobody in this table exists, so the demo may do what is never done with real data: show the truth beside the
private answer. Rows are persons drawn independently; households are not linked to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from understudy.declaration.file import parse
from understudy.errors import ParameterError
from understudy.project import Project

Values = NDArray[Any]  # codes, counts, amounts or days, one a row
Columns = dict[str, Values]

BLOCK = 1 << 18
"""Rows drawn at a time, so that working memory does not grow with the town."""

CENSUS_DAY = date(2024, 12, 31)

# name: weight, log income, tilt towards the old, tilt towards schooling, how central
DISTRICTS = {
    "Amberfold": (11, 0.10, 0.10, 0.10, 0.6),
    "Brackwater": (9, -0.14, 0.05, -0.20, 0.3),
    "Cindermill": (10, -0.22, -0.15, -0.30, 0.5),
    "Dovegarth": (8, 0.12, 0.30, 0.10, 0.2),
    "Emberquay": (7, 0.20, -0.25, 0.35, 1.0),
    "Foxhollow": (6, 0.28, 0.25, 0.30, 0.1),
    "Glimmerford": (9, 0.00, 0.00, 0.00, 0.4),
    "Hazelcross": (10, -0.05, 0.10, -0.05, 0.3),
    "Inkwharf": (8, -0.28, -0.30, -0.25, 0.9),
    "Juniper Row": (5, 0.05, -0.40, 0.45, 0.9),
    "Kestrelgate": (9, 0.06, 0.00, 0.10, 0.5),
    "Lanternhill": (8, -0.08, 0.20, -0.10, 0.2),
}
WEIGHT, WEALTH, ELDERLY, LEARNED, CENTRAL = np.array(list(DISTRICTS.values())).T

# name: weight, usual schooling, spread around it, least schooling, log odds of a man, median pay
JOBS = {
    "labourer": (14, 1.0, 1.2, 0, 0.5, 24_000),
    "driver": (8, 1.6, 1.1, 0, 1.1, 28_000),
    "shop assistant": (14, 2.0, 1.2, 0, -0.5, 23_000),
    "craft worker": (14, 3.0, 1.0, 1, 1.2, 32_000),
    "clerk": (18, 2.8, 1.2, 2, -0.4, 30_000),
    "nurse": (6, 3.3, 0.9, 3, -1.3, 34_000),
    "teacher": (7, 4.4, 0.8, 4, -0.7, 39_000),
    "engineer": (8, 4.3, 0.9, 3, 1.0, 50_000),
    "manager": (8, 4.0, 1.5, 1, 0.4, 58_000),
    "physician": (2, 5.0, 0.6, 5, 0.0, 88_000),
}
DEMAND, USUAL, SPREAD, LEAST, MALE, PAY = np.array(list(JOBS.values())).T

CHILD, STUDENT, NOT_WORKING, RETIRED, WORKING = range(5)

CATEGORIES: dict[str, tuple[str, ...]] = {
    "sex": ("F", "M"),
    "district": tuple(DISTRICTS),
    "marital": ("single", "married", "divorced", "widowed"),
    "education": ("none", "primary", "secondary", "vocational", "bachelor", "master"),
    "occupation": ("child", "student", "not working", "retired", *JOBS),
    "tenure": ("owned", "mortgaged", "rented", "social"),
    "commute": ("walk", "bicycle", "bus", "train", "car", "at home"),
    "health": ("poor", "fair", "good", "excellent"),
}

SCHEMA = pa.schema(
    {
        "person": pa.int64(),
        "age": pa.int64(),
        "sex": pa.string(),
        "district": pa.string(),
        "marital": pa.string(),
        "children": pa.int64(),
        "household": pa.int64(),
        "education": pa.string(),
        "occupation": pa.string(),
        "hours": pa.int64(),
        "income": pa.float64(),
        "tenure": pa.string(),
        "commute": pa.string(),
        "health": pa.string(),
        "smoker": pa.bool_(),
        "chronic": pa.bool_(),
        "internet": pa.bool_(),
        "moved_in": pa.date32(),
    }
)

AGE = np.arange(105)
MEANS = np.arange(4)
SCHOOLING = np.arange(6)
TOP_INCOME = 400_000


def people(count: int = 100_000, *, seed: int = 7) -> pa.Table:
    """A table of `count` invented persons; the same `count` and `seed` give the same table.

    This is a simulation and not privacy noise: nobody is protected by it, so it draws from a seeded PCG64 of
    its own and never from `understudy.noise`. Income is missing for persons under 16, commute for those who
    neither work nor study; nothing else is missing.
    """
    if count < 0:
        raise ParameterError(f"count must not be negative, not {count}")
    rng = np.random.Generator(np.random.PCG64(seed))
    blocks = [_block(rng, start, min(BLOCK, count - start)) for start in range(0, count, BLOCK)]
    return pa.Table.from_batches(blocks, schema=SCHEMA)


def _block(rng: np.random.Generator, start: int, rows: int) -> pa.RecordBatch:
    known: Columns = {"person": np.arange(start + 1, start + rows + 1)}
    for stage in (_birth, _family, _work, _income, _home, _health):
        known |= stage(rng, known)
    missing = {
        "income": known["occupation"] == CHILD,
        "commute": np.isin(known["occupation"], (CHILD, NOT_WORKING, RETIRED)),
    }
    columns = []
    for name in SCHEMA.names:
        column = pa.array(known[name], mask=missing.get(name))
        if name in CATEGORIES:
            column = pa.array(CATEGORIES[name]).take(column)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _draw(rng: np.random.Generator, weights: NDArray[np.float64], *given: Values) -> NDArray[np.int64]:
    """One cell per row, from the law `weights[given]` over the last axis; a weight of 0 is never drawn.

    The cumulated laws are laid end to end, law r on [r, r + 1), so that one search serves every row. Uniforms
    have 32 bits: r + u is then exact and cannot round up into the next law.
    """
    cells = weights.shape[-1]
    laws = np.cumsum(weights.reshape(-1, cells), axis=1, dtype=np.float64)
    laws /= laws[:, -1:]
    steps = (laws + np.arange(len(laws))[:, None]).ravel()
    law = np.ravel_multi_index(given, weights.shape[:-1])
    uniform = rng.integers(1 << 32, size=law.shape, dtype=np.uint32) * 2.0**-32
    return np.searchsorted(steps, uniform + law, side="right") - law * cells


def _happens(rng: np.random.Generator, odds: NDArray[np.float64], *given: Values) -> NDArray[np.bool_]:
    """An event per row with log odds `odds[given]`; minus infinity never happens."""
    return rng.random(given[0].shape) < _logistic(odds)[given]


def _logistic(x: NDArray[np.floating]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def _birth(rng: np.random.Generator, known: Columns) -> Columns:
    everyone = np.zeros(len(known["person"]), np.int64)
    district = _draw(rng, WEIGHT[None], everyone)
    # A baby boom and its echo, then Gompertz survival; men die earlier.
    cohort = 0.85 + 0.3 * np.exp(-(((AGE - 58) / 9) ** 2)) + 0.2 * np.exp(-(((AGE - 31) / 8) ** 2))
    alive = np.exp(-2e-4 * (np.exp(0.1 * AGE) - 1))
    age = _draw(rng, cohort * alive * np.exp(ELDERLY[:, None] * (AGE - 40) / 20), district)
    women = 0.488 * np.exp(0.03 * np.maximum(AGE - 55, 0))
    sex = _draw(rng, np.stack([women, np.full(len(AGE), 0.512)], axis=-1), age)
    return {"district": district, "age": age, "sex": sex}


def _family(rng: np.random.Generator, known: Columns) -> Columns:
    age, sex = known["age"], known["sex"]
    settled = _logistic((AGE - 29) / 4)
    single = 1 - 0.86 * settled
    divorced = 0.16 * _logistic((AGE - 40) / 6)
    widowed = np.outer(np.exp((AGE - 82) / 8), (1.6, 0.6))
    law = np.stack(np.broadcast_arrays(single, 0.75 * settled, divorced, widowed.T), axis=-1)
    law[:, AGE < 18, 1:] = 0
    marital = _draw(rng, law, sex, age)

    expected = _logistic((AGE - 31) / 3.5)[:, None] * np.array([0.35, 1.9, 1.6, 2.1])
    expected[AGE < 18] = 0
    born = np.arange(7)
    children = _draw(rng, expected[..., None] ** born / np.cumprod(np.maximum(born, 1)), age, marital)

    at_home = np.clip((65 - AGE) / 25, 0.05, 1)
    # Parents and siblings: one to four for minors, up to two for adults, mostly the young.
    nearest = (AGE < 18) * 1
    relatives = np.where(AGE < 18, 3, 2)
    together = np.where(AGE < 18, 0.55, np.clip((30 - AGE) / 14, 0.04, 0.6))
    household = 1 + (marital == 1) + rng.binomial(children, at_home[age])
    household += nearest[age] + rng.binomial(relatives[age], together[age])
    return {"marital": marital, "children": children, "household": np.minimum(household, 8)}


def _work(rng: np.random.Generator, known: Columns) -> Columns:
    age, sex, children = known["age"], known["sex"], known["children"]
    usual = np.array([1, 13, 33, 24, 18, 11])
    possible = np.array([0, 11, 17, 18, 21, 23]) <= AGE[:, None]
    tilt = 1.4 * LEARNED[:, None] - 0.012 * (AGE - 45)
    schooling = _draw(rng, usual * possible * np.exp(tilt[..., None] * SCHOOLING), known["district"], age)

    activity = np.zeros((len(AGE), 2, len(SCHOOLING), 5))
    year = AGE[:, None, None]
    activity[..., CHILD] = year < 16
    activity[..., STUDENT] = (year >= 16) * (year < 35) * 6 * np.exp(-(year - 16) / 3.5)
    activity[..., NOT_WORKING] = (year >= 16) * (0.06 + 0.10 * np.exp(-0.5 * SCHOOLING))
    activity[:, 0, :, NOT_WORKING] *= 1.7
    activity[..., RETIRED] = (year >= 55) * np.exp((year - 64.5) / 1.6)
    activity[..., WORKING] = (year >= 16) * (year < 80)
    does = _draw(rng, activity, age, sex, schooling)

    fit = np.exp(-(((SCHOOLING[:, None] - USUAL) / SPREAD) ** 2)) * (SCHOOLING[:, None] >= LEAST)
    lean = np.exp(np.outer((-0.5, 0.5), MALE))
    job = _draw(rng, DEMAND * fit * lean[:, None], sex, schooling)
    occupation = np.where(does == WORKING, WORKING + job, does)

    minors = np.minimum(children, 3) * (age < 50)
    part_time = _happens(rng, np.array([[-1.0, -0.3, 0.2, 0.5], [-2.4, -2.4, -2.3, -2.2]]), sex, minors)
    busy = (PAY > 55_000)[job]
    full = 40 + 6 * busy + (4 + 4 * busy) * rng.standard_normal(len(age))
    hours = np.where(part_time, rng.integers(8, 33, len(age)), np.clip(np.rint(full), 33, 80))
    hours = np.where(does == WORKING, hours, 0).astype(np.int64)
    return {"education": schooling, "occupation": occupation, "hours": hours}


def _income(rng: np.random.Generator, known: Columns) -> Columns:
    """Yearly, log-normal; and `means`, four classes of it, where a child counts as its district does."""
    works = known["occupation"] >= WORKING
    median = np.concatenate([(1.0, 7_000, 10_000, 20_000), PAY])
    experience = 0.45 * (1 - np.exp(-np.maximum(AGE - 18, 0) / 12)) - 0.25
    log_income = (
        np.log(median)[known["occupation"]]
        + 0.07 * (known["education"] - 2)
        + WEALTH[known["district"]]
        + works * (experience[known["age"]] + np.log(np.maximum(known["hours"], 1) / 40))
        - 0.12 * (known["sex"] == 0)
        + 0.3 * rng.standard_normal(len(works))
    )
    income = np.minimum(np.round(np.exp(log_income), 2), TOP_INCOME)
    means = np.searchsorted((15_000, 30_000, 50_000), income)
    child_means = 1 + (WEALTH > 0)
    means = np.where(known["occupation"] == CHILD, child_means[known["district"]], means)
    return {"income": income, "means": means}


def _home(rng: np.random.Generator, known: Columns) -> Columns:
    # A minor lives where parents some thirty years older do.
    head = np.where(AGE < 18, AGE + 30, AGE)[:, None]
    owned = 0.1 * np.exp(0.04 * (head - 30) + 0.4 * MEANS)
    mortgaged = 0.5 * np.exp(-(((head - 42) / 14) ** 2) + 0.5 * MEANS)
    rented = 0.9 * np.exp(-0.02 * (head - 25)) + 0 * MEANS
    social = 0.6 * np.exp(-0.8 * MEANS - 3 * WEALTH[:, None, None])
    law = np.stack(np.broadcast_arrays(owned, mortgaged, rented, social), axis=-1)
    tenure = _draw(rng, law, known["district"], known["age"], known["means"])

    occupation = np.arange(len(CATEGORIES["occupation"]))
    desk = np.isin(occupation, [CATEGORIES["occupation"].index(o) for o in ("clerk", "engineer", "manager")])
    central = CENTRAL[:, None]
    drives = 1 - 0.75 * (occupation == STUDENT)
    modes = (
        0.1 + 0.4 * central,
        0.25,
        0.35,
        0.25 - 0.1 * central,
        (1.6 - 1.2 * central) * drives,
        0.3 * desk,
    )
    law = np.stack(np.broadcast_arrays(*modes), axis=-1)
    commute = _draw(rng, law, known["district"], known["occupation"])

    # Exponential stays, longest for owners, cut off at the person's own lifetime.
    stay, life = np.array([22.0, 12.0, 5.0, 11.0])[tenure], known["age"] + 0.5
    years = -stay * np.log1p(-rng.random(len(stay)) * -np.expm1(-life / stay))
    moved_in = np.datetime64(CENSUS_DAY) - np.floor(years * 365.25).astype("timedelta64[D]")
    return {"tenure": tenure, "commute": commute, "moved_in": moved_in}


def _health(rng: np.random.Generator, known: Columns) -> Columns:
    age, sex, means, schooling = known["age"], known["sex"], known["means"], known["education"]
    year = AGE[:, None, None].astype(float)
    smokes = -0.9 + 0.25 * np.arange(2)[:, None] - 0.28 * (SCHOOLING - 2) - 0.03 * np.maximum(year - 55, 0)
    smokes[AGE < 18] -= 1.5
    smokes[AGE < 15] = -np.inf
    smoker = _happens(rng, smokes, age, sex, schooling)

    yes = np.arange(2)
    chronic = _happens(rng, -3.6 + 0.055 * AGE[:, None] + 0.6 * yes, age, smoker.astype(np.int64))

    burden = (
        0.03 * (AGE[:, None, None, None] - 40)
        + 0.8 * yes[:, None, None]
        + 1.3 * yes[:, None]
        - 0.25 * (MEANS - 1.5)
    )
    at_most = _logistic(burden[..., None] + np.array([-3.8, -1.8, 0.4, np.inf]))
    health = _draw(rng, np.diff(at_most, prepend=0), age, smoker, chronic, means)

    online = 3.8 + 0.5 * MEANS - 0.09 * np.maximum(AGE - 45, 0)[:, None]
    internet = _happens(rng, online, age, means)
    return {"smoker": smoker, "chronic": chronic, "health": health, "internet": internet}


def _edges(kind: str, edges: Sequence[object], extra: str = "") -> str:
    return f"{{type: {kind}, edges: [{', '.join(map(str, edges))}]{extra}}}"


def _values(name: str, extra: str = "") -> str:
    return f"{{type: category, values: [{', '.join(CATEGORIES[name])}]{extra}}}"


def declaration(source: str) -> str:
    """The text of an ``understudy.yml`` for the town whose table is at `source`."""
    thousands = (0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 100, 120, 150, 200, 300, 400)
    years = (1920, 1950, 1960, 1970, 1980, 1990, 2000, 2005, 2010, 2015, 2020, 2025)
    where = yaml.safe_dump({"source": source}, width=10_000, allow_unicode=True).strip()
    return f"""\
# The public description of an invented town. Everything here may be read by anyone, so write down what is
# known without looking at the table. The column `person` identifies people and is left out on purpose.
understudy: 1
name: town
{where}
protect: privacy            # of the people in the table; `validity` protects conclusions only
neighbours: replace         # the number of rows is public; all that is in any one row is protected
budget: {{epsilon: 2}}        # all that will ever be spent on this table
attributes:
  # Bins [0, 5), [5, 10), ...; the last bin includes its upper edge. Questions compare at edges: age<30.
  age: {_edges("integer", range(0, 106, 5))}
  sex: {_values("sex")}
  district: {_values("district")}
  marital: {_values("marital")}
  # Without edges every integer within the bounds is a cell.
  children: {{type: integer, bounds: [0, 6]}}
  household: {{type: integer, bounds: [1, 8]}}
  education: {_values("education")}
  occupation: {_values("occupation")}
  # Hours of paid work a week; the first bin is none.
  hours: {_edges("integer", (0, 1, 10, 20, 30, 35, 40, 45, 50, 60, 80))}
  # A year, before tax. `null: true` adds a cell for missing values: here, persons under 16.
  income: {_edges("real", [1000 * k for k in thousands], ", null: true")}
  tenure: {_values("tenure")}
  # Missing for those who neither work nor study.
  commute: {_values("commute", ", null: true")}
  health: {_values("health")}
  smoker: {{type: boolean}}
  chronic: {{type: boolean}}
  internet: {{type: boolean}}
  moved_in: {_edges("date", [date(year, 1, 1) for year in years])}
"""


def project(count: int = 100_000, *, seed: int = 7) -> Project:
    """The town as a project: `count` invented people, the declaration of the town, and a ledger in memory."""
    return Project.frame(people(count, seed=seed), parse(declaration("town.parquet")))


@dataclass(frozen=True, slots=True)
class TownQuestion:
    """One question in the language of the product, and again in SQL over `people` for its true value.

    The SQL gives one number, or rows (label, ..., value) for every declared cell in declared order.
    """

    text: str
    sql: str


def true_values(table: pa.Table, question: TownQuestion) -> list[float]:
    """What `question` would get from the unprotected table: one number, or one per cell in declared order."""
    with duckdb.connect() as connection:
        connection.register("people", table)
        return [float(row[-1]) for row in connection.execute(question.sql).fetchall()]


def _ask(what: str, condition: str, where: str, *by: str) -> TownQuestion:
    """`condition` in the product's language and `where` in SQL are two writings of the same thing."""
    total = "1" if what == "count" else "greatest((SELECT count(*) FROM people), 1)"
    value = f"count(person) FILTER (WHERE {where}) / {total}"
    if not by:
        return TownQuestion(f"{what} {condition}", f"SELECT {value} FROM people")
    names = ", ".join(by)
    # Cells come from the declaration, so that one which holds nobody still has its row.
    cells = {name: "[" + ", ".join(f"'{label}'" for label in CATEGORIES[name]) + "]" for name in by}
    every_cell = " CROSS JOIN ".join(f"(SELECT unnest({labels}) AS {name})" for name, labels in cells.items())
    order = ", ".join(f"list_position({labels}, {name})" for name, labels in cells.items())
    return TownQuestion(
        " ".join(part for part in (what, condition, "by", names) if part),
        f"SELECT {names}, {value} FROM {every_cell} LEFT JOIN people USING ({names}) "
        f"GROUP BY {names} ORDER BY {order}",
    )


QUESTIONS: tuple[TownQuestion, ...] = (
    _ask("count", "age<30 and sex=F", "age < 30 AND sex = 'F'"),
    _ask("count", "", "true", "district"),
    _ask("share", "income>=40000", "income >= 40000"),
    _ask("share", "income>=40000", "income >= 40000", "education"),
    _ask("count", "age>=75 and household=1", "age >= 75 AND household = 1"),
    _ask("count", "age<5", "age < 5", "district"),
    _ask(
        "count",
        "occupation in (nurse, teacher) and age>=40",
        "occupation IN ('nurse', 'teacher') AND age >= 40",
    ),
    _ask("count", "occupation='not working' and age<30", "occupation = 'not working' AND age < 30"),
    _ask("share", "smoker=true", "smoker"),
    _ask("count", "smoker=true and health=poor", "smoker AND health = 'poor'", "district"),
    _ask(
        "count",
        "chronic=true and (health=poor or health=fair) and age<50",
        "chronic AND health IN ('poor', 'fair') AND age < 50",
    ),
    _ask("share", "chronic=true and age>=60", "chronic AND age >= 60", "sex", "health"),
    _ask("count", "internet=false and age>=70", "NOT internet AND age >= 70"),
    _ask(
        "count",
        "marital!=married and children>=3 and income<10000",
        "marital <> 'married' AND children >= 3 AND income < 10000",
    ),
    _ask("count", "district=Inkwharf and tenure=social", "district = 'Inkwharf' AND tenure = 'social'"),
    _ask(
        "count",
        "tenure=rented and age<35 and moved_in>=2020-01-01",
        "tenure = 'rented' AND age < 35 AND moved_in >= DATE '2020-01-01'",
    ),
    _ask("count", "commute in (walk, bicycle)", "commute IN ('walk', 'bicycle')", "tenure"),
    _ask("count", "commute is null and age>=20 and age<60", "commute IS NULL AND age >= 20 AND age < 60"),
    _ask(
        "count",
        "occupation=physician and district='Juniper Row'",
        "occupation = 'physician' AND district = 'Juniper Row'",
    ),
    _ask(
        "share",
        "not (education=bachelor or education=master) and hours>=40 and sex=M",
        "education NOT IN ('bachelor', 'master') AND hours >= 40 AND sex = 'M'",
    ),
)
