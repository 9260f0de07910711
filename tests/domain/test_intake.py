"""How text is read before it is put into a cell: dates, numbers, and texts that stand for nothing."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain.attribute import Boolean, Categories, Outside, unique_label
from understudy.domain.bins import Bins
from understudy.domain.date_format import DateFormat
from understudy.domain.intake import Intake
from understudy.errors import DomainError, QueryError

DAYS = [
    ("%d/%m/%Y", "31/12/2024", dt.date(2024, 12, 31)),
    ("%d/%m/%Y", "1/2/2024", dt.date(2024, 2, 1)),
    ("%d/%m/%Y", "31/02/2024", None),
    ("%d/%m/%Y", "12/31/2024", None),
    ("%d/%m/%Y", "2024-12-31", None),
    ("%d/%m/%Y", "31/12/2024 ", None),
    ("%Y%m%d", "20241231", dt.date(2024, 12, 31)),
    ("%Y%m%d", "2024123", None),
    ("%d.%m.%y", "31.12.69", dt.date(1969, 12, 31)),
    ("%d.%m.%y", "31.12.68", dt.date(2068, 12, 31)),
    ("%b %d, %Y", "DEC 5, 2024", dt.date(2024, 12, 5)),
    ("%d %B %Y", "5 may 2024", dt.date(2024, 5, 5)),
    ("%a %d-%b-%Y %I:%M %p", "Tue 31-Dec-2024 11:59 pm", dt.date(2024, 12, 31)),
    ("%Y-%m-%dT%H:%M:%S%z", "2024-12-31T23:59:59+02:00", dt.date(2024, 12, 31)),
    ("100%% %d/%m/%Y", "100% 1/1/2000", dt.date(2000, 1, 1)),
    ("%d/%m/%Y", "01/01/0000", None),
]


@pytest.mark.parametrize(("format", "text", "day"), DAYS)
def test_a_format_reads_days_as_they_are_written(format, text, day):
    assert DateFormat(format).read(text) == day


@given(
    st.dates(dt.date(1000, 1, 1)),
    st.sampled_from(["%d/%m/%Y", "%m-%d-%Y", "%Y%m%d", "%d %b %Y", "%B %d, %Y"]),
)
def test_what_a_format_writes_it_reads(day, format):
    assert DateFormat(format).read(day.strftime(format)) == day


@pytest.mark.parametrize(
    "format", ["", "%d/%m", "%d/%m/%Y/%d", "%d/%m/%Y %y", "%q/%d/%m/%Y", "%d/%m/%Y\n", "%d%m%"]
)
def test_a_format_that_says_no_day_is_refused(format):
    with pytest.raises(DomainError, match="format"):
        DateFormat(format)


NUMBERS = [
    (Intake(decimal=",", thousands="."), "1.234,50", 1234.5),
    (Intake(decimal=",", thousands="."), "1234,5", 1234.5),
    (Intake(decimal=",", thousands="."), "1.5", None),  # not 15
    (Intake(decimal=",", thousands="."), "1.234.56", None),
    (Intake(decimal=","), "1.5", None),
    (Intake(thousands=","), "12,34,567.5", 1234567.5),
    (Intake(thousands="\u202f"), "1\u202f234", 1234.0),
    (Intake(strip=("€", "EUR")), "-€ 5", None),
    (Intake(strip=("€", " ")), "-€ 5", -5.0),
    (Intake(strip=("EUR",)), "5 EUR", 5.0),
    (Intake(percent=True), "13.5 %", 13.5),
    (Intake(percent=True), "13.5", 13.5),
    (Intake(missing=("N/A", "-")), " N/A ", None),
    (Intake(missing=("-9",)), "-9", None),
]


@pytest.mark.parametrize(("intake", "text", "number"), NUMBERS)
def test_numbers_are_read_with_their_marks(intake, text, number):
    assert intake.value(text, "real") == number


@pytest.mark.parametrize(
    "keys",
    [
        {"decimal": ";"},
        {"thousands": "x"},
        {"decimal": ",", "thousands": ","},
        {"strip": ("1",)},
        {"strip": ("-",)},
        {"strip": ("",)},
        {"strip": (",",), "decimal": ","},
        {"missing": ("a\0",)},
    ],
)
def test_marks_that_would_change_a_number_are_refused(keys):
    with pytest.raises(DomainError):
        Intake(**keys)


def test_an_attribute_without_intake_is_called_what_it_was_called():
    """Names of attributes stand in ledgers: they are made of the representation, which is that of version 0.1."""
    age = Bins.integers("age", 0, 9)
    assert "intake" not in repr(age)
    assert "unreadable" not in repr(age)
    assert age.identity == "age 1309626546836299"


def test_an_attribute_that_is_read_otherwise_is_another_one():
    plain, tokens = Bins.integers("age", 0, 9), Intake(missing=("-",))
    other = Bins(name="age", starts=tuple(range(10)), upper=9, intake=tokens)
    assert plain.identity != other.identity
    assert plain != other
    assert plain.code("-") == other.code("-") == 0


def test_a_text_that_stands_for_nothing_is_missing_in_every_kind():
    tokens = Intake(missing=("N/A", "é"))
    for attribute in (
        Categories(name="x", values=("N/A", "a"), null=True, intake=tokens),
        Boolean(name="x", null=True, intake=tokens),
        Bins(name="x", starts=(0, 5), upper=9, null=True, intake=tokens),
    ):
        assert (
            attribute.code(" N/A") == attribute.code("e\u0301") == attribute.null_cell == attribute.size - 1
        )


# ---- the label of our own cells


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (("a",), ("a", "other", "null")),
        (("a", "other"), ("a", "other", "(other)", "null")),
        (("other", "(other)", "null"), ("other", "(other)", "null", "((other))", "(null)")),
    ],
)
def test_our_cells_have_labels_that_no_value_has(values, labels):
    attribute = Categories(name="x", values=values, null=True)
    assert attribute.labels == labels
    assert len(set(attribute.labels)) == attribute.size


def test_the_cell_of_all_others_is_asked_for_by_its_label():
    plain, taken = Categories(name="x", values=("a", "b")), Categories(name="x", values=("a", "other"))
    assert plain.compare("=", "other").true.tolist() == [False, False, True]
    assert plain.compare("!=", "other").true.tolist() == [True, True, False]
    assert taken.compare("=", "other").true.tolist() == [False, True, False]
    assert taken.compare("=", "(other)").true.tolist() == [False, False, True]
    closed = Categories(name="x", values=("a",), outside=Outside.NULL, null=True)
    with pytest.raises(QueryError, match="not a declared value"):
        closed.compare("=", "other")
    assert unique_label("other", ()) == "other"


@pytest.mark.parametrize("number", [13.5, -0.25, 1234.0, 0.0])
def test_a_number_of_per_cent_is_written_with_its_sign_and_read_back(number):
    intake = Intake(decimal=",", thousands=".", percent=True)
    assert intake.written(number).endswith("%")
    assert intake.value(intake.written(number), "real") == number
