"""Rows from stand-ins: the declaration reads back from them the very codes that they were made of."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.attribute import Attribute, Boolean, Categories, Outside
from understudy.domain.bins import Bins
from understudy.domain.date_format import DateFormat
from understudy.domain.domain import Domain
from understudy.domain.instants import Instants
from understudy.domain.intake import Intake
from understudy.errors import ParameterError, TooLargeError
from understudy.releases.column_storage import framed
from understudy.releases.stored import StoredRates
from understudy.releases.synthetic import Within, as_table, sample_codes, systematic
from understudy.standin.table import SmallTable
from understudy.table.source import in_memory


def attributes() -> list[Attribute]:
    """One attribute for each kind, each place of values outside, with and without a null cell."""
    edges = {
        "integer": [0, 3, 10, 20],
        "real": [-1.5, 0.0, 2.5, 1e6],
        "date": [dt.date(1960, 1, 1), dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2024, 12, 31)],
    }
    made: list[Attribute] = []
    for null, (kind, values), outside in product((False, True), edges.items(), Outside):
        if outside is not Outside.NULL or null:
            made.append(Bins.between(f"{kind} {outside} {null}", values, outside=outside, null=null))
    moments = [dt.datetime(1960, 1, 1), dt.datetime(1970, 1, 1, 0, 1), dt.datetime(2024, 2, 29, 9, 30)]
    for null, step, outside in product((False, True), (1, 30), Outside):
        if outside is not Outside.NULL or null:
            name = f"timestamp {outside} {null} {step}"
            made.append(Instants.between(name, moments, outside=outside, null=null, step=step))
    for null, outside in product((False, True), (Outside.OTHER, Outside.NULL)):
        if outside is not Outside.NULL or null:
            made.append(Categories(name=f"c {outside} {null}", values=("a", "b"), outside=outside, null=null))
        made.append(Boolean(name=f"b {null} {outside}", null=null))
    made.append(Categories(name="taken", values=("other", "other value", "x"), null=True))
    made.append(Bins.integers("each", -5, 5))
    return made


@pytest.mark.parametrize("within", Within)
@pytest.mark.parametrize("attribute", attributes(), ids=lambda a: a.name)
def test_codes_come_back(attribute, within):
    codes = np.tile(np.arange(attribute.size), 40)
    domain = Domain((attribute,))
    table = as_table(domain, {attribute.name: codes}, np.random.default_rng(1), within=within)
    assert [attribute.code(value) for value in table[attribute.column].to_pylist()] == codes.tolist()
    read = [batch[attribute.name] for batch in in_memory(table).batches(domain, domain.names)]
    assert np.concatenate(read).tolist() == codes.tolist()


def test_values_lie_inside_their_bins():
    age = Bins.between("age", [0, 18, 65, 120])
    codes = np.repeat(np.arange(3), 2000)
    drawn = as_table(Domain((age,)), {"age": codes}, np.random.default_rng(1))["age"].to_numpy()
    for cell, (low, high) in enumerate([(0, 17), (18, 64), (65, 120)]):
        assert set(drawn[codes == cell]) == set(range(low, high + 1))  # every value, both ends included
    middle = as_table(Domain((age,)), {"age": codes}, np.random.default_rng(1), within=Within.MIDDLE)
    assert set(middle["age"].to_pylist()) == {8, 41, 92}


def test_reals_never_reach_the_next_bin():
    tight = Bins.between("x", [1.0, float(np.nextafter(1.0, 2)), 2.0])
    codes = np.zeros(500, np.int64)
    values = as_table(Domain((tight,)), {"x": codes}, np.random.default_rng(0))["x"].to_numpy()
    assert (values == 1.0).all()


def test_null_and_other_are_restored():
    sex = Categories(name="sex", values=("F", "M"), null=True)
    pay = Bins.between("pay", [0.0, 10.0], outside=Outside.OTHER)
    both = Bins.between("both", [0, 10], outside=Outside.OTHER, null=True)
    codes = {"sex": np.array([0, 1, 2, 3]), "pay": np.array([0, 0, 1, 1]), "both": np.array([0, 1, 2, 2])}
    table = as_table(Domain((sex, pay, both)), codes, np.random.default_rng(0))
    assert table["sex"].to_pylist() == ["F", "M", "other", None]
    assert [value is None for value in table["pay"].to_pylist()] == [False, False, True, True]
    assert table["both"].to_pylist()[1:] == [11, None, None]


def test_columns_have_the_sources_types():
    born = Bins.between("born", [dt.date(1960, 1, 1), dt.date(2020, 1, 1)])
    domain = Domain(
        (Bins.integers("age", 0, 120), Boolean(name="yes"), born, Categories(name="c", values=("1", "2")))
    )
    codes = {name: np.zeros(3, np.int64) for name in domain.names}

    def types(**source: str) -> list[pa.DataType]:
        return as_table(domain, codes, np.random.default_rng(0), types=source).schema.types

    assert types() == [pa.int64(), pa.bool_(), pa.date32(), pa.string()]
    narrow = types(age="int8", yes="int16", born="timestamp(6)", c="string")
    assert narrow == [pa.int8(), pa.int16(), pa.timestamp("us"), pa.string()]
    assert types(age="!uint16", born="!date")[::2] == [pa.uint16(), pa.date32()]
    assert (
        types(age="float64")[0] == types(age="int64")[0] == pa.int64()
    )  # one missing value turns one into the other
    wide = Domain((Bins.integers("age", 0, 300),))
    assert as_table(wide, codes, np.random.default_rng(0), types={"age": "int8"}).schema.types == [pa.int64()]


TYPED = [
    (Bins.between("x", [0, 3, 10, 20]), "decimal(9, 2)", pa.decimal128(9, 2)),
    (Bins.between("x", [0, 3, 10, 20], null=True, outside=Outside.OTHER), "uint8", pa.uint8()),
    (Bins.between("x", [-1.5, 0.25, 2.5, 99.0], null=True, outside=Outside.OTHER), "float32", pa.float32()),
    (Bins.between("x", [0.1, 0.2, 0.3, 99.0], null=True, outside=Outside.OTHER), "float32", pa.float32()),
    (Bins.between("x", [0.0, 1e-9, 1.0]), "decimal(9, 2)", pa.decimal128(9, 2)),
    (Bins.between("x", [0.001, 0.002, 1.0]), "decimal(9, 2)", pa.float64()),
    (Bins.between("x", [1.0, 1.0 + 2**-40, 1.0 + 2**-39, 2.0]), "float32", pa.float64()),
    (
        Bins.between("x", [0.1, 0.2, 9.9], null=True, outside=Outside.OTHER),
        "decimal(5, 2)",
        pa.decimal128(5, 2),
    ),
    (Categories(name="x", values=("1", "2", "10")), "int16", pa.int16()),
    (Categories(name="x", values=("1", "2", "10"), null=True), "int64", pa.int64()),
    (Categories(name="x", values=("1", "2", "10"), null=True), "float64", pa.int64()),
    (Categories(name="x", values=("01", "2")), "int64", pa.string()),
    (Categories(name="x", values=("1", "2", "127"), null=True), "int8", pa.int64()),
    (Categories(name="x", values=("true", "false")), "boolean", pa.bool_()),
    (Categories(name="x", values=("true", "false"), null=True), "boolean", pa.string()),
    (Boolean(name="x", null=True), "string", pa.string()),
]
DAYS = [dt.date(1980, 1, 1), dt.date(1980, 1, 2), dt.date(2001, 12, 31), dt.date(2024, 2, 29)]
DATED = [
    ("timestamp(9)", "", pa.timestamp("ns")),
    ("timestamp('UTC', 3)", "", pa.timestamp("ms", "UTC")),
    ("string", "", pa.string()),
    ("string", "%d/%m/%Y", pa.string()),
    ("string", "%A, %d %B %y %I:%M:%S.%f %p %z", pa.string()),
    ("int32", "%Y%m%d", pa.int32()),
    ("int16", "%Y%m%d", pa.int64()),
]
TYPED += [
    (
        Bins(
            name="x", starts=tuple(DAYS[:-1]), upper=DAYS[-1], intake=Intake(tuple(map(DateFormat, formats)))
        ),
        source,
        kind,
    )
    for source, text, kind in DATED
    for formats in ([text] if text else [],)
]
OLD = [dt.date(1950, 1, 1), dt.date(1980, 1, 1), dt.date(2024, 12, 31)]
NOON = [dt.datetime(1950, 1, 1), dt.datetime(2024, 2, 29, 9, 30), dt.datetime(2024, 2, 29, 9, 32)]
TYPED += [
    (
        made(
            name="x",
            starts=tuple(edges[:-1]),
            upper=edges[-1],
            intake=Intake(tuple(map(DateFormat, formats))),
            null=True,
            outside=Outside.OTHER,
        ),
        source,
        kind,
    )
    for made, edges, source, formats, kind in [
        (Bins, OLD, "string", ["%d.%m.%y"], pa.string()),
        (Bins, OLD, "int32", ["%y%m%d"], pa.int32()),
        (Bins, OLD, "int32", ["%d/%m/%Y", "%Y%m%d"], pa.int32()),
        (Bins, OLD, "int32", ["%Y%m%d%H%M"], pa.int64()),
        (Bins, OLD, "uint32", ["%d%m%Y"], pa.date32()),
        (Bins, OLD, "int64", ["%Y%m%d%H%M%S%f"], pa.date32()),
        (Bins, [dt.date(1950, 1, 1), *DAYS], "int64", ["%y%m%d"], pa.int64()),
        (Bins, [dt.date(1900, 1, 1), *OLD], "int64", ["%y%m%d"], pa.date32()),
        (Instants, NOON, "string", ["%d/%m/%Y %H:%M"], pa.string()),
        (Instants, NOON, "string", ["%d/%m/%Y", "%d/%m/%Y %I:%M %p"], pa.string()),
        (Instants, NOON[:2], "string", ["%y-%m-%d %H h"], pa.string()),
        (Instants, NOON, "int64", ["%Y%m%d%H%M"], pa.int64()),
        (Instants, NOON, "int64", ["%Y%m%d%H"], pa.timestamp("s")),
        (Instants, NOON, "timestamp(6)", ["%d/%m/%Y %H:%M"], pa.timestamp("us")),
    ]
]
MARKED = Intake(decimal=",", thousands=".", strip=("€",), percent=True, missing=("N/A",))
TYPED += [
    (
        Bins(
            name="x",
            starts=starts,
            upper=upper,
            intake=intake,
            null=True,
            outside=Outside.OTHER,
            decimals=decimals,
        ),
        "string",
        pa.string(),
    )
    for intake in (MARKED, Intake())
    for starts, upper, decimals in [
        ((-5000, 0, 12), 10**9, None),
        ((-5e3, 0.0, 0.001, 1e20), 1e21, 2),
        ((0.0, 2e-9), 0.5, None),
    ]
]


@pytest.mark.parametrize("within", Within)
@pytest.mark.parametrize(("attribute", "source", "kind"), TYPED)
def test_codes_come_back_from_columns_of_the_sources_types(attribute, source, kind, within):
    codes = np.tile(np.arange(attribute.size), 40)
    domain = Domain((attribute,))
    table = as_table(domain, {"x": codes}, np.random.default_rng(1), within=within, types={"x": source})
    assert table.schema.types == [kind]
    read = [batch["x"] for batch in in_memory(table).batches(domain, domain.names)]
    assert np.concatenate(read).tolist() == codes.tolist()


def test_moments_are_shown_as_finely_as_their_format_tells():
    """Every minute of a bin, its first and its last, and no second between two of them."""
    opened = Instants.between("x", [dt.datetime(2024, 2, 29, 9, 0, 30), dt.datetime(2024, 2, 29, 9, 4)])
    written = replace(opened, intake=Intake((DateFormat("%d/%m/%Y %H:%M"),)))
    table = as_table(Domain((written,)), {"x": np.zeros(400, int)}, np.random.default_rng(0))
    assert {str(moment)[11:] for moment in table["x"].to_pylist()} == {f"09:0{i}:00" for i in range(1, 5)}


def test_a_bin_that_no_format_can_write_is_shown_all_the_same():
    """Between two minutes lies no minute: such a cell is written with its seconds, and nothing fails."""
    opened = Instants.between("x", [dt.datetime(2024, 2, 29, 9, 0, 30), dt.datetime(2024, 2, 29, 9, 0, 50)])
    written = replace(opened, intake=Intake((DateFormat("%d/%m/%Y %H:%M"),)))
    codes, types = {"x": np.zeros(4, int)}, {"x": "string"}
    table = as_table(Domain((written,)), codes, np.random.default_rng(0), types=types)
    assert all(text.startswith("2024-02-29 09:00:") for text in table["x"].to_pylist())


def test_text_is_written_as_it_is_declared():
    born = Bins(
        name="born",
        starts=(dt.date(1987, 3, 9),),
        upper=dt.date(1987, 3, 9),
        intake=Intake((DateFormat("%d/%m/%Y"),)),
    )
    pay = Bins(name="pay", starts=(1234.5,), upper=1234.51, intake=MARKED, decimals=2)
    zipped = Categories(name="zip", values=("01067", " blank ", ""))
    codes = {"born": np.zeros(3, int), "pay": np.zeros(3, int), "zip": np.arange(3)}
    types = dict.fromkeys(codes, "string")
    table = as_table(Domain((born, pay, zipped)), codes, np.random.default_rng(0), types=types)
    assert table["born"].to_pylist() == ["09/03/1987"] * 3
    assert table["pay"].to_pylist() == ["1.234,50%"] * 3
    assert table["zip"].to_pylist() == ["01067", " blank ", ""]


@pytest.mark.parametrize(
    ("words", "source", "written"),
    [
        (("yes", "no"), "string", ["no", "yes", None]),
        (("T", "F"), "string", ["F", "T", None]),
        (("1", "0"), "string", ["0", "1", None]),
        (("true", "false"), "string", ["false", "true", None]),
        (("yes", "no"), "boolean", [False, True, None]),  # a column with a type of its own has no words
        (("yes", "no"), "int8", [0, 1, None]),
        (("1", "0"), "", [False, True, None]),
    ],
)
def test_truth_values_are_written_in_the_declared_words(words, source, written):
    domain = Domain((Boolean(name="x", null=True, words=words),))
    table = as_table(domain, {"x": np.arange(3)}, np.random.default_rng(0), types={"x": source})
    assert table["x"].to_pylist() == written
    (batch,) = in_memory(table).batches(domain, ("x",))
    assert batch["x"].tolist() == [0, 1, 2]


def test_a_column_that_two_attributes_cut_is_written_once():
    fine = Bins.integers("fine", 0, 9)
    coarse = Bins(name="coarse", column="fine", starts=(0, 5), upper=9)
    codes = {"fine": np.array([7]), "coarse": np.array([0])}
    assert as_table(Domain((fine, coarse)), codes, np.random.default_rng(0)).to_pydict() == {"fine": [7]}


@given(
    st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=60),
    st.integers(0, 5000),
    st.integers(0, 100),
)
def test_systematic_rows_are_off_by_less_than_one_in_every_run_of_cells(masses, rows, seed):
    rates = np.array(masses)
    if rates.sum() <= 0:
        return
    cells = systematic(rates, rows, np.random.default_rng(seed))
    assert cells.size == rows
    counts = np.bincount(cells, minlength=rates.size)
    assert not counts[rates == 0].any()
    expected = np.cumsum(rates) / rates.sum() * rows
    runs = (np.cumsum(counts)[:, None] - np.cumsum(counts)) - (expected[:, None] - expected)
    assert np.abs(runs).max() <= 1 + 1e-6


def test_a_dense_stand_in_keeps_its_marginals():
    domain = Domain(tuple(Bins.integers(name, 0, 3) for name in "abc"))
    rates = np.random.default_rng(2).random(domain.shape())
    standin = StoredRates(domain, rates / rates.sum())
    codes = sample_codes(standin, 10_000, np.random.default_rng(0))
    again = SmallTable.of_rows(domain, np.column_stack(list(codes.values())))
    assert np.abs(again.project(("a", "b")) - standin.project(("a", "b"))).max() * 10_000 < 1
    assert np.abs(again.project(("b", "c")) - standin.project(("b", "c"))).max() < 0.002
    assert np.unique(np.diff(codes["a"])).size > 2  # rows stand in no order


def test_a_sampler_of_its_own_is_used():
    class Own(StoredRates):
        def sample_codes(self, rows, rng):
            return np.ones((rows, 1))

    domain = Domain((Bins.integers("a", 0, 3),))
    own = Own(domain, np.full(4, 0.25))
    assert sample_codes(own, 5, np.random.default_rng(0))["a"].tolist() == [1] * 5


def test_refusals():
    wide = Domain(tuple(Bins.integers(f"a{i}", 0, 9) for i in range(12)))
    rng = np.random.default_rng(0)
    with pytest.raises(TooLargeError):
        sample_codes(StoredRates(wide, np.ones(1)), 5, rng)
    with pytest.raises(ParameterError, match="between 0"):
        sample_codes(StoredRates(wide, np.ones(1)), -1, rng)
    with pytest.raises(ParameterError, match="sum to more than 0"):
        systematic(np.zeros(3), 5, rng)
    with pytest.raises(ParameterError, match="backend"):
        framed(pa.table({}), "excel", {})


def test_frames_keep_whole_numbers_whole():
    table = pa.table({"a": [1, 2], "b": pa.array([1, None]), "c": pa.array([True, None]), "d": ["x", None]})
    pandas = framed(table, "pandas", {})
    assert list(map(str, pandas.dtypes))[:3] == ["int64", "Int64", "boolean"]
    assert list(pandas.columns) == list("abcd")
    assert framed(table, "polars", {}).schema.names() == list("abcd")
    assert framed(table, "arrow", {}) is table
