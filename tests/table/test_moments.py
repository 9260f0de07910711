"""Sums of moments in the engines: the rule of `Bins.step_of`, exactly, in any order, and without overflow."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.declaration.declaration import SourceSpec, Unit
from understudy.domain.attribute import Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.domain.intake import Intake
from understudy.query.linear import LinearQuery
from understudy.query.marginal import Marginal
from understudy.query.moment import Moment
from understudy.query.told_cells import TOLD_CELLS
from understudy.table.source import in_memory, open_source
from understudy.table.truth import Truth

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

UNIT = 1 << 20
REALS = [
    nan,
    inf,
    -inf,
    -0.0,
    0.004,
    0.005,
    0.015,
    7.25,
    1e308,
    -1e308,
    5e-324,
    99.994999,
    99.995,
    100.0,
    None,
]
WHOLE = [-(2**63), 2**63 - 1, 0, 1, 17, 18, 19, 23, 89, 90, 91, -5, None, 2**53 + 1, 50]
SHORT = [-(2**15), 2**15 - 1, 0, 17, 90, None, 1, 2, 3, 4, 5, 6, 7, 8, 9]
TEXT = [
    "5",
    " 7.5 ",
    "1e1",
    "nan",
    "inf",
    "-inf",
    "x",
    "",
    None,
    "1_0",
    "9" * 400,
    "-3",
    "0.005",
    "3.14159",
    "5",
]
AMOUNT = [
    "€ 1,50",
    "€ 99,99",
    "n/a",
    "x",
    "",
    None,
    "-€ 3",
    "0,005",
    "7",
    "1.234,5",
    "50",
    "€ 50",
    "1,2",
    "3",
    "4",
]
DECIMALS = [
    *(Decimal(t) for t in ("0", "0.005", "99.99", "-12345678901234567890.5", "7.255")),
    None,
    *[Decimal(1)] * 9,
]
ROWS = len(REALS)

MEASURES = {
    "real": Bins.measure("real", 0.0, 100.0, resolution=0.01, null=True),
    "whole": Bins.measure("whole", 17, 90, null=True),
    "coarse": Bins(name="coarse", column="whole", starts=(0, 50), upper=100, null=True, resolution=Fraction(5)),
    "whole real": Bins(
        name="whole real", column="whole", starts=(-10.0, 0.0), upper=90.0, resolution=Fraction(1, 2)
    ),
    "real whole": Bins(name="real whole", column="real", starts=(0, 5), upper=10, resolution=Fraction(1)),
    "short": Bins.measure("short", -100, 100, resolution=1),
    "text": Bins.measure("text", 0.0, 10.0, resolution=0.005, outside=Outside.OTHER, null=True),
    "decimal": Bins.measure("decimal", 0.0, 50.0, resolution=0.25, null=True),
    "amount": Bins(
        name="amount", starts=(0.0, 5.0), upper=100.0, null=True, resolution=Fraction(1, 100),
        intake=Intake((), ("n/a",), ("€", " "), ",", "."),
    ),
}  # fmt: skip
DOMAIN = Domain((Categories(name="sex", values=("F", "M")), *MEASURES.values()))
BY_RULE = ("real", "whole", "coarse", "whole real", "real whole", "short")


def table() -> pa.Table:
    return pa.table(
        {
            "sex": ["F", "M", "x"] * (ROWS // 3),
            "real": pa.array(REALS, pa.float64()),
            "whole": pa.array(WHOLE, pa.int64()),
            "short": pa.array(SHORT, pa.int16()),
            "text": pa.array(TEXT, pa.string()),
            "amount": pa.array(AMOUNT, pa.string()),
            "decimal": pa.array(DECIMALS, pa.decimal128(38, 12)),
            "person": pa.array([i // 4 for i in range(ROWS)], pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def parquet(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("moments") / "values.parquet"
    pq.write_table(table(), path)
    return path


@pytest.fixture(scope="module")
def postgres_table(server) -> str:
    import psycopg

    types = {
        "sex": "text", "real": "double precision", "whole": "bigint", "short": "smallint", "text": "text",
        "amount": "text", "decimal": "numeric(38, 12)", "person": "int",
    }  # fmt: skip
    with psycopg.connect(server.url) as connection:
        listed = ", ".join(f'"{name}" {written}' for name, written in types.items())
        connection.execute(f"CREATE TABLE measured ({listed})")
        rows = [tuple(row[name] for name in types) for row in table().to_pylist()]
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO measured VALUES ({', '.join(['%s'] * len(types))})", rows)
    return "measured"


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def truth(request, parquet) -> Truth:
    if request.param == "postgres":
        name = request.getfixturevalue("postgres_table")
        spec = SourceSpec(request.getfixturevalue("server").url, name)
    elif request.param == "spark":
        request.getfixturevalue("spark")
        spec = SourceSpec("spark", path=str(parquet))
    else:
        spec = SourceSpec(str(parquet))
    return Truth(open_source(spec, base=Path()), DOMAIN)


@pytest.fixture(scope="module")
def by_duckdb(parquet) -> dict[str, list[int]]:
    found = Truth(open_source(SourceSpec(str(parquet)), base=Path()), DOMAIN)
    return {name: found.sums(moment(name), resolution=UNIT).tolist() for name in MEASURES}


def moment(name: str, kind: str = "square", by: tuple[str, ...] = ("sex",)) -> Marginal:
    return Marginal(DOMAIN, by, moment=Moment(kind, (name,)))


def by_rule(name: str, kind: str = "square") -> list[int]:
    """The sums by `Bins.step_of`, in exact fractions."""
    measure = MEASURES[name]
    column = {"coarse": WHOLE, "whole real": WHOLE, "real whole": REALS}.get(name)
    values = table()[name].to_pylist() if column is None else column
    found = []
    for group in range(3):
        total = sum(
            (
                Fraction(measure.step_of(v), measure.steps) ** 2
                for i, v in enumerate(values)
                if i % 3 == group
            ),
            Fraction(0),
        )
        found.append(int((2 * total * UNIT + 1) // 2))
    return found


def test_every_engine_sums_alike(truth, by_duckdb):
    marginals = [moment(name) for name in MEASURES]
    for name, sums in zip(MEASURES, truth.sums_of(marginals, resolution=UNIT), strict=True):
        assert sums.tolist() == by_duckdb[name], name


@pytest.mark.parametrize("name", BY_RULE)
def test_the_rule_is_that_of_the_attribute(by_duckdb, name):
    assert by_duckdb[name] == by_rule(name)


def test_counts_and_moments_come_from_one_look(truth):
    counted, summed = truth.sums_of(
        [Marginal(DOMAIN, ("sex",)), moment("whole", "position")], resolution=UNIT
    )
    assert counted.tolist() == [ROWS // 3 * UNIT] * 3
    assert summed.shape == (3,)


def test_conditions_are_met_and_large_ones_too(truth):
    """A condition over more cells than are told to an engine is grouped by, and weighed here."""
    sides = {"sex": [1, 0, 0], "whole": np.r_[np.zeros(3), np.ones(DOMAIN["whole"].size - 3)]}
    small = LinearQuery.conjunction(DOMAIN, sides)
    names = ("sex", "real", "whole", "text", "decimal")
    shape = DOMAIN.shape(names)
    assert np.prod(shape) > TOLD_CELLS
    weights = np.ones(shape)
    weights[1:] = 0
    weights[:, :, :3] = 0
    large = LinearQuery.table(DOMAIN, names, weights)
    wanted = Moment("product", ("whole", "short"))
    one, other = truth.sums_of(
        [Marginal(DOMAIN, (), small, wanted), Marginal(DOMAIN, (), large, wanted)], resolution=UNIT
    )
    assert int(one) == int(other) > 0
    grouped = truth.sums(Marginal(DOMAIN, ("whole",), small, wanted), resolution=UNIT)
    assert abs(int(grouped.sum()) - int(one)) <= DOMAIN["whole"].size


def test_the_order_of_rows_does_not_matter_where_floats_would_tell():
    draw = np.random.default_rng(1)
    values = np.round(draw.lognormal(8, 3, 5_000).clip(0, 1e5), 2)
    domain = Domain((Bins.measure("pay", 0.0, 1e5, resolution=0.01),))
    asked = Marginal(domain, (), moment=Moment("square", ("pay",)))
    orders = [values, values[::-1], draw.permutation(values)]
    assert len({float(np.cumsum((order / 1e5) ** 2)[-1]) for order in orders}) > 1
    found = {
        int(Truth(in_memory(pd.DataFrame({"pay": o})), domain).sums(asked, resolution=UNIT)) for o in orders
    }
    assert len(found) == 1


def test_the_largest_steps_do_not_overflow():
    domain = Domain((Bins.measure("x", 0, 2**26), Bins.measure("y", 0, 2**26)))
    rows = 3_000
    frame = pd.DataFrame({"x": [2**26] * rows, "y": [2**26] * rows})
    truth = Truth(in_memory(frame), domain)
    for kind, names in (("square", ("x",)), ("product", ("x", "y"))):
        found = truth.sums(Marginal(domain, (), moment=Moment(kind, names)), resolution=UNIT)
        assert int(found) == rows * UNIT


def test_a_persons_rows_are_kept_alike_whatever_their_order():
    """Rows of equal codes differ in what is summed: those that are kept depend on the person's rows alone."""
    domain = Domain((Bins.measure("pay", 0, 1000, edges=[0, 1000]), Categories(name="sex", values=("F",))))
    frame = pd.DataFrame({"pay": [1, 900, 30, 4, 700, 2], "sex": "F", "person": [1, 1, 1, 2, 2, 3]})
    unit = Unit("person", 1, key="k")
    asked = Marginal(domain, (), moment=Moment("position", ("pay",)))
    found = {
        int(Truth(in_memory(frame.iloc[order]), domain, unit).sums(asked, resolution=UNIT))
        for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 1, 4, 5, 3])
    }
    assert found == {round((1 + 4 + 2) / 1000 * UNIT)}


def test_a_table_of_which_the_codes_are_in_memory_is_read_again_for_values(tmp_path):
    frame = pd.DataFrame({"pay": np.arange(100), "sex": "F"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    domain = Domain((Bins.measure("pay", 0, 99, edges=[0, 50, 99]), Categories(name="sex", values=("F",))))
    truth = Truth(open_source(SourceSpec("t.csv"), base=tmp_path), domain)
    asked = Marginal(domain, (), moment=Moment("position", ("pay",)))
    first = int(truth.sums(asked, resolution=99))
    truth.count(("pay",))
    truth.count(("sex",))
    truth.count(("pay", "sex"))
    assert int(truth.sums(asked, resolution=99)) == first == sum(range(100))


def test_a_date_is_no_measure():
    from understudy.errors import DomainError

    with pytest.raises(DomainError, match="dates are not summed"):
        Bins(name="d", starts=(dt.date(2000, 1, 1),), upper=dt.date(2001, 1, 1), resolution=Fraction(1))
