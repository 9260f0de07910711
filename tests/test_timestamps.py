"""Timestamps from the declaration to the answer: cuts at any second, groups by periods, and moments told."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import understudy as us
from understudy.declaration.file import parse
from understudy.domain.attribute import Outside
from understudy.domain.bins import Bins
from understudy.domain.date_format import DateFormat
from understudy.domain.domain import Domain
from understudy.domain.instants import Instants
from understudy.domain.intake import Intake
from understudy.domain.plain import domain_as_plain, domain_from_plain
from understudy.domain.refinement import refined
from understudy.errors import DeclarationError, DomainError, QueryError
from understudy.query.box import from_plain, plain
from understudy.query.expression import parse as parse_question
from understudy.query.within_bins import portions
from understudy.table.source import in_memory

FIRST = dt.datetime(2024, 2, 27)
LAST = dt.datetime(2024, 3, 2, 23, 59, 59)
ROWS = 3_000
OPENED = f"  opened: {{type: timestamp, bounds: ['{FIRST}', '{LAST}'], width: 86400, null: true}}\n"
HEAD = "understudy: 1\nname: t\nsource: {source}\nbudget: {{epsilon: 1000}}\nattributes:\n"
NOON = dt.datetime(2024, 3, 1, 9, 30)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(21)
    micros = draw.integers(0, 5 * 86_400 * 10**6, ROWS)
    opened = pd.Series(pd.Timestamp(FIRST) + pd.to_timedelta(micros, unit="us"))
    opened[draw.random(ROWS) < 0.05] = pd.NaT
    opened[7] = pd.Timestamp(NOON)
    opened[8] = pd.Timestamp(NOON) - pd.Timedelta("1us")
    return pd.DataFrame({"opened": opened, "sex": draw.choice(["F", "M"], ROWS)})


@pytest.fixture(scope="module", params=["csv", "parquet", "frame", "zoned"])
def project(request, frame, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "frame":
        cells = {"opened": {"type": "timestamp", "bounds": [FIRST, LAST], "width": 86400, "null": True}}
        with us.declare(frame, cells, name="t", epsilon=1000) as opened:
            yield opened
        return
    if request.param == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    elif request.param == "parquet":
        frame.to_parquet(folder / "t.parquet")
    else:
        zoned = frame.assign(opened=frame["opened"].dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata"))
        zoned.to_parquet(folder / "t.parquet")
    source = "t.csv" if request.param == "csv" else "t.parquet"
    (folder / "understudy.yml").write_text(HEAD.format(source=source) + OPENED)
    with us.open(folder / "understudy.yml") as opened:
        yield opened


CUTS = [
    ("count opened >= '2024-03-01 09:30'", lambda t: t >= NOON),
    ("count opened < 2024-03-01", lambda t: t < dt.datetime(2024, 3, 1)),
    ("count opened <= '2024-03-01 09:30:00'", lambda t: t < NOON + dt.timedelta(seconds=1)),
    ("SELECT count(*) FROM t WHERE opened < timestamp '2024-03-01 09:30:00'", lambda t: t < NOON),
    ("SELECT count(*) FROM t WHERE opened >= '2024-03-01T15:00:00+05:30'", lambda t: t >= NOON),
    ("SELECT count(*) FROM t WHERE opened::date = '2024-02-29'", lambda t: t.dt.date == dt.date(2024, 2, 29)),
    ("SELECT count(*) FROM t WHERE hour(opened) BETWEEN 9 AND 16", lambda t: t.dt.hour.between(9, 16)),
    (
        "SELECT count(*) FROM t WHERE opened >= '2024-03-01 12:30' - interval '3 hours' AND opened IS NOT NULL",
        lambda t: t >= NOON,
    ),
    ("SELECT count(*) FROM t WHERE opened IS NULL", lambda t: t.isna()),
]


def test_a_condition_cuts_at_any_second_whatever_the_file(project, frame):
    for question, held in CUTS:
        told = project.ask(question, epsilon=60)
        value = told.cells[0][0].value if isinstance(told, us.SqlAnswer) else float(told.value)
        assert value == int(held(frame["opened"]).sum()), question


def test_periods_are_groups_though_bins_cross_them(project, frame):
    """The declared bins are days: hours are cut for the question, and put together where it does."""
    hours = project.ask("SELECT hour(opened) AS h, count(*) AS n FROM t GROUP BY h ORDER BY h", epsilon=60)
    expected = frame["opened"].dt.hour.value_counts()
    assert {row[0]: row[1].value for row in hours.cells if row[0] is not None} == expected.to_dict()
    assert hours.columns[0].type == "int"
    begun = project.ask(
        "SELECT date_trunc('hour', opened) AS h, count(*) AS n FROM t WHERE opened < '2024-02-28' GROUP BY h",
        epsilon=60,
    )
    assert begun.columns[0].type == "timestamp"
    counted = frame["opened"].dt.floor("h").value_counts()
    assert {row[0]: row[1].value for row in begun.cells} == {
        moment: int(counted.get(moment, 0)) for moment in pd.date_range(FIRST, periods=24, freq="h")
    }
    years = project.ask(
        "SELECT year(opened) AS y, count(*) AS n FROM t WHERE opened IS NOT NULL GROUP BY y", epsilon=60
    )
    assert [(row[0], row[1].value) for row in years.cells] == [(2024, frame["opened"].notna().sum())]


def test_periods_that_are_too_many_are_refused_before_anything_is_paid(project):
    spent = project.ledger.spent
    with pytest.raises(QueryError, match="varies inside a bin of opened") as refusal:
        project.ask("SELECT minute(opened), count(*) FROM t GROUP BY 1", epsilon=1)
    assert "date_trunc('day', opened)" in refusal.value.suggestions
    assert project.ledger.spent == spent


def test_a_median_is_a_moment_within_its_bounds(project, frame):
    told = project.ask("SELECT median(opened) AS m FROM t", epsilon=100)
    (cell,) = told.cells[0]
    assert told.columns[0].type == "timestamp"
    assert cell.low <= frame["opened"].median() <= cell.high
    assert {type(part) for part in (cell.value, cell.low, cell.high)} == {dt.datetime}
    assert cell.high - cell.low < dt.timedelta(days=1)
    assert str(told.to_frame().schema.field("m").type) == "timestamp[s]"


def test_a_session_answers_cuts_within_its_promise(frame, tmp_path):
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "understudy.yml").write_text(HEAD.format(source="t.parquet") + OPENED)
    with us.open(tmp_path / "understudy.yml") as opened:
        session = us.session(opened, alpha=0.05, beta=1e-9, queries=20)
        told = session.ask("count opened >= '2024-03-01 09:30'")
        assert abs(float(told.value) - (frame["opened"] >= NOON).sum()) <= 0.05 * ROWS
        again = session.ask("SELECT count(*) FROM t WHERE opened >= '2024-03-01 09:30:00Z'")
        assert again.cells[0][0].value == float(told.value)


# ---- the declaration


def declared(fields: str) -> Instants:
    found = parse(HEAD.format(source="t.csv") + f"  opened: {{type: timestamp, {fields}}}\n").domain["opened"]
    assert isinstance(found, Instants)
    return found


def test_edges_are_moments_in_utc():
    found = declared('edges: [2024-03-01, "2024-03-01T11:30:00+02:00", 2024-03-01 18:00Z], resolution: 60')
    assert found.starts == (dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 1, 9, 30))
    assert found.labels == (
        "2024-03-01 00:00:00..2024-03-01 09:29:00",
        "2024-03-01 09:30:00..2024-03-01 18:00:00",
    )
    assert found.code(dt.datetime(2024, 3, 1, 9, 29, 59, 999_999)) == 0
    assert found.code(dt.datetime(2024, 3, 1, 15, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30)))) == 1


@pytest.mark.parametrize(
    ("bounds", "size", "second"),
    [
        ("[2024-03-01 09:30, 2024-03-01 09:30:30]", 30, "2024-03-01 09:30:01"),
        ("[2024-03-01 09:30, 2024-03-02 09:29:59]", 25, "2024-03-01 10:00:00"),
        ("[2024-03-01 09:30, 2024-03-20]", 38, "2024-03-01 12:00:00"),
        ("[2024-01-15 09:30, 2025-12-31 23:59:59]", 12, "2024-03-01 00:00:00"),
    ],
)
def test_bounds_alone_make_bins_of_a_usual_length(bounds, size, second):
    found = declared(f"bounds: {bounds}")
    assert (found.size, str(found.starts[1])) == (size, second)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("bounds: [2024-03-01, soon]", "'soon' is not a moment"),
        ("bounds: [2024-03-01, 2024-02-30]", "is not a moment"),
        ("bounds: [2024-03-02, 2024-03-01]", "two rising values"),
        ("edges: [2024-03-01 09:30:00.5, 2024-03-02]", "whole seconds"),
        ("edges: [2024-03-01 09:30:30, 2024-03-02], resolution: 60", "between two steps of 60 seconds"),
        ("bounds: [2024-03-01, 2024-03-02], resolution: 0", "whole number of seconds"),
        ("bounds: [2024-03-01, 2024-03-02], width: 0", "at least one second"),
        ("bounds: [1024-03-01, 2024-03-02], width: 1", "cells for one attribute"),
        ("bounds: [2024-03-01, 2024-03-02], bins: 3", "means nothing for a timestamp"),
        ("edges: [0001-01-01, 2024-03-02]", "timestamps lie between"),
    ],
)
def test_what_is_no_timestamp_is_refused_in_words(fields, problem):
    with pytest.raises(DeclarationError, match=problem):
        declared(fields)


def test_a_date_keeps_its_meaning_on_a_column_of_timestamps(frame):
    """Declarations of 0.1 read a timestamp as its day; in Python a moment among bounds stands for its day."""
    with us.declare(frame, {"opened": (FIRST, LAST)}, name="t", epsilon=1000) as opened:
        attribute = opened.domain["opened"]
        assert (attribute.kind, attribute.size) == ("date", 5)
        told = opened.ask("count opened < 2024-03-01", epsilon=60)
        held = (frame["opened"] < "2024-03-01").sum() + frame["opened"].isna().sum()
        assert int(told.value) == held
        noon = opened.ask("SELECT count(*) FROM t WHERE opened < '2024-03-01 09:30'", epsilon=60)
        assert noon.cells[0][0].value == (frame["opened"] < "2024-03-02").sum() + frame["opened"].isna().sum()
        with pytest.raises(QueryError, match="a date has no hour"):
            opened.ask("SELECT count(*) FROM t WHERE hour(opened) = 9", epsilon=1)


def test_attributes_of_earlier_versions_keep_their_identity():
    days = Bins.between("born", [dt.date(1990, 1, 1), dt.date(2000, 1, 1), dt.date(2010, 1, 1)])
    ages = Bins.between("age", [0, 18, 65])
    assert days.identity == "born 2bca798fbc1860cf"
    assert ages.identity == "age bf26dd6703c28234"


# ---- the attribute


MOMENTS = Instants.between(
    "opened",
    [FIRST, dt.datetime(2024, 3, 1), LAST.replace(second=0)],
    step=60,
    null=True,
    outside=Outside.OTHER,
)


def test_a_moment_between_two_steps_is_compared_as_such():
    domain = refined(Domain((MOMENTS,)), "opened", [NOON, NOON + dt.timedelta(minutes=1)])
    found = domain["opened"]
    for inside in ("2024-03-01 09:30:30", "2024-03-01 09:30:00.25", "2024-03-01 09:30:59.999999"):
        after = found.compare(">=", NOON + dt.timedelta(minutes=1))
        for operator in (">", ">="):
            np.testing.assert_array_equal(found.compare(operator, inside).true, after.true)
        for operator in ("<", "<="):
            np.testing.assert_array_equal(found.compare(operator, inside).true, (~after).true)
        assert not found.compare("=", inside).true.any()
        assert found.compare("!=", inside).true[: found.proper_size].all()


def test_a_domain_and_a_question_with_cuts_can_be_written_down():
    domain = Domain((MOMENTS,))
    assert domain_from_plain(domain_as_plain(domain)) == domain
    asked = parse_question("count opened < '2024-03-01 09:30'", refined(domain, "opened", [NOON])).marginal
    assert from_plain(domain, plain(asked)) == asked


def test_parts_of_a_bin_have_their_share_of_its_steps():
    domain = Domain((MOMENTS,))
    whole = (LAST.replace(second=0) - dt.datetime(2024, 3, 1)) // dt.timedelta(minutes=1) + 1
    shares = portions(refined(domain, "opened", [NOON]), domain, "opened")
    np.testing.assert_allclose(shares[1:3], [570 / whole, 1 - 570 / whole])


def test_many_moments_that_are_anyhow_apart_are_found_by_blocks():
    """More starts than conditions are planned for, at no equal distance: the engine counts within a block."""
    starts = tuple(dt.datetime(1950, 1, 1) + dt.timedelta(seconds=i * i * 1_000_003) for i in range(150))
    found = Instants(name="t", starts=starts, upper=starts[-1] + dt.timedelta(days=1), outside=Outside.OTHER)
    near = [start + dt.timedelta(microseconds=by) for start in starts for by in (-1, 0, 1, 999_999)]
    near += [found.upper, found.end - dt.timedelta(microseconds=1), found.end]
    for values in (pa.array(near, pa.timestamp("us")), pa.array([str(moment) for moment in near])):
        (read,) = (
            batch["t"] for batch in in_memory(pa.table({"t": values})).batches(Domain((found,)), ("t",))
        )
        assert read.tolist() == [found.code(moment) for moment in near]


def test_steps_are_checked():
    with pytest.raises(DomainError, match="without a time zone"):
        Instants.between("t", [FIRST.replace(tzinfo=dt.UTC), LAST.replace(tzinfo=dt.UTC)])
    with pytest.raises(DomainError, match="between two steps"):
        Instants.between("t", [FIRST, LAST], step=60)


@pytest.mark.parametrize(
    "text", ["%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S", "%d %b %Y %I:%M:%S %p", "%m/%d/%y %H:%M:%S.%f %z"]
)
def test_a_written_moment_is_read_back(text):
    intake = Intake((DateFormat(text),))
    for moment in (FIRST, LAST, NOON, NOON.replace(hour=12), NOON.replace(hour=0, minute=5)):
        assert intake.value(intake.written(moment), "timestamp") == moment
