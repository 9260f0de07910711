"""What is special about Spark: sessions, tables of a catalogue, time limits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from program import run
from understudy.declaration.declaration import SourceSpec
from understudy.domain.bins import Bins
from understudy.domain.domain import Domain
from understudy.errors import SourceChangedError, SourceError
from understudy.table.source import open_source
from understudy.table.spark import _start
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


def test_a_statement_is_ended_although_the_first_interruption_came_before_its_job(spark, monkeypatch):
    """Spark plans a statement before it has a job that could be interrupted: on a busy machine, for seconds."""
    context, missed = type(spark.sparkContext), []
    cancel = context.cancelJobsWithTag

    def cancel_from_the_second_time(self, tag):
        if missed:
            cancel(self, tag)
        missed.append(tag)

    monkeypatch.setattr(context, "cancelJobsWithTag", cancel_from_the_second_time)
    slow = "CAST(id % 10 AS INT) + length(coalesce(reflect('java.lang.Thread', 'sleep', 300L), '')) AS x"
    spark.range(0, 100, 1, 2).selectExpr(slow).createOrReplaceGlobalTempView("slow_to_plan")
    source = open_source(SourceSpec("spark", "slow_to_plan", schema="global_temp", time_limit=1), base=Path())
    with pytest.raises(SourceError, match="could not read the table"):
        source.read_through(DOMAIN)
    assert len(missed) >= 2


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


@pytest.mark.parametrize(
    ("place", "bound"), [("local[4]", "127.0.0.1"), ("spark://elsewhere:7077", None), ("", None)]
)
def test_a_spark_of_our_own_is_started_silently_and_alone(monkeypatch, place, bound):
    """What some lines of Java say comes before every setting, so its process gets no place to write to."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    context = pytest.importorskip("pyspark.core.context")
    gateway = pytest.importorskip("pyspark.java_gateway")
    started: dict[str, Any] = {}

    class Context:
        _gateway = _jvm = None

        def __init__(self, *, conf: Any, gateway: object) -> None:
            started.update(conf=dict(conf.getAll()), gateway=gateway)

        def setLogLevel(self, level: str) -> None:
            started["log"] = level

    def launch(conf: Any, popen: dict[str, int]) -> str:
        started.update(launched=dict(conf.getAll()), popen=popen)
        return "a gateway"

    monkeypatch.setattr(pyspark, "SparkContext", Context)
    monkeypatch.setattr(context, "SparkContext", Context)  # where settings look for a process that runs
    monkeypatch.setattr(gateway, "launch_gateway", launch)
    _start(place)
    assert started["popen"] == {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    assert started["conf"] == started["launched"]
    assert (
        started["conf"].get("spark.driver.bindAddress") == started["conf"].get("spark.driver.host") == bound
    )
    assert started["conf"].get("spark.ui.enabled") == ("false" if bound else None)
    assert started["conf"].get("spark.master", "") == place
    assert (started["gateway"], started["log"]) == ("a gateway", "OFF")


@pytest.mark.slow("starts Spark once more")
def test_nothing_is_written_beside_the_answer(spark, tmp_path):
    spark.range(100).selectExpr("id % 10 AS x").write.parquet(str(tmp_path / "t"))
    (tmp_path / "understudy.yml").write_text(
        "understudy: 1\nname: t\nsource: {url: 'spark:local[1]', path: t}\nbudget: {epsilon: 1}\n"
        "attributes:\n  x: {type: integer, bounds: [0, 9]}\n"
    )
    done = run("check", "--read", cwd=tmp_path)
    assert "100 rows were read" in done.stdout
    assert done.stderr == ""
