"""What is special about Spark: sessions, tables of a catalogue, time limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.bins import Bins
from understudy.declaration import SourceSpec
from understudy.domain import Domain
from understudy.errors import SourceChangedError, SourceError
from understudy.table.source import open_source
from understudy.table.truth import Truth

pytestmark = [
    # Spark leaves sockets of its own to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DOMAIN = Domain((Bins.integers("x", 0, 9),))


def test_a_table_of_the_catalogue_and_its_changes(spark):
    spark.range(100).selectExpr("id % 10 AS x").createOrReplaceGlobalTempView("people")
    source = open_source(SourceSpec("spark", "people", schema="global_temp"), base=Path())
    assert Truth(source, DOMAIN).count(("x",)).tolist() == [10] * 10
    source.check_unchanged()
    spark.range(100).selectExpr("id % 10 AS y").createOrReplaceGlobalTempView("people")
    with pytest.raises(SourceChangedError):
        source.check_unchanged()


def test_a_statement_that_takes_too_long_is_ended(spark):
    slow = "CAST(id % 10 AS INT) + length(coalesce(reflect('java.lang.Thread', 'sleep', 500L), '')) AS x"
    spark.range(0, 100, 1, 2).selectExpr(slow).createOrReplaceGlobalTempView("slow")
    source = open_source(SourceSpec("spark", "slow", schema="global_temp", time_limit=1), base=Path())
    with pytest.raises(SourceError, match="could not read the table"):
        source.read_through(DOMAIN)


def test_an_error_of_the_engine_quotes_nothing(spark):
    failing = "assert_true(id < 5, concat('SECRET', id)) IS NULL AS ok"
    spark.range(10).selectExpr(failing, "CAST(id AS INT) AS x").where("ok").createOrReplaceGlobalTempView(
        "failing"
    )
    source = open_source(SourceSpec("spark", "failing", schema="global_temp"), base=Path())
    with pytest.raises(SourceError) as failed:
        Truth(source, DOMAIN).count(("x",))
    assert "SECRET" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_what_cannot_be_opened_says_so(spark, tmp_path):
    with pytest.raises(SourceError, match="one of them"):
        open_source(SourceSpec("spark"), base=tmp_path)
    with pytest.raises(SourceError, match="does not have the table"):
        open_source(SourceSpec("spark", "absent"), base=tmp_path)
    with pytest.raises(SourceError, match="does not have the table"):
        open_source(SourceSpec("spark", path="absent.parquet"), base=tmp_path)
    with pytest.raises(SourceError, match="already runs Spark"):
        open_source(SourceSpec("spark://elsewhere:7077", "people"), base=tmp_path)
