"""A batch that fails is one sentence of the right class; a batch that is stopped is not a failure."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import weir
from weir.errors import QueryError
from weir.spark.errors import DamagedStateError
from weir.spark.failure import Failure, find_own_error
from weir.spark.join import SparkJoin
from weir.spark.preflight import use_own_python
from weir.spark.query import SparkQuery

from .streams import PAIR, Feed, expected, pair_feed, read_bag, run

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return pair_feed(tmp_path_factory.mktemp("failure") / "in", 1)


@pytest.fixture(scope="module")
def join(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.frames(spark), **PAIR, partitions=1)


def start(join: SparkJoin, checkpoint: Path, call: Any) -> SparkQuery:
    writer = join.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(call)
    return writer.trigger(availableNow=True).start()


def test_an_error_of_ours_keeps_its_class_and_sentence(
    join: SparkJoin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(results: DataFrame, batch: int) -> None:
        raise DamagedStateError("slice 5 is damaged; restore it")

    query = start(join, tmp_path / "c", fail)
    for ask in (lambda: query.awaitTermination(120), query.processAllAvailable):
        with pytest.raises(DamagedStateError) as error:
            ask()
        assert str(error.value) == "slice 5 is damaged; restore it" and error.value.__cause__ is None
        assert error.value.__notes__ == ["weir: batch 0 failed; the next start repeats it"]
    assert isinstance(query.exception(), DamagedStateError) and not query.isActive
    assert not [record for record in caplog.records if record.name.startswith("py4j")]
    monkeypatch.setenv("WEIR_DEBUG", "1")
    shown = query.exception()
    assert shown is not None and isinstance(shown.__cause__, StreamingQueryException)


def test_an_error_of_the_users_own_comes_with_his_traceback(join: SparkJoin, tmp_path: Path) -> None:
    def fail(results: DataFrame, batch: int) -> None:
        raise KeyError("no such customer")

    query = start(join, tmp_path / "c", fail)
    with pytest.raises(StreamingQueryException) as error:
        query.awaitTermination(120)
    sentence = "weir: batch 0 failed: KeyError: 'no such customer'; the next start repeats it"
    assert str(error.value) == sentence
    cause = error.value.__cause__
    assert isinstance(cause, KeyError) and cause.__traceback__ is not None
    assert cause.__traceback__.tb_next is not None  # down to the user's function


def test_an_error_of_ours_in_a_worker_is_one_sentence(
    feed: Feed, spark: SparkSession, tmp_path: Path
) -> None:
    def short(left: pa.Array, right: pa.Array) -> pa.Array:
        return pa.array([True])

    asked = {**PAIR, "on": "a.k = b.k AND short(a.v, b.v)", "functions": {"short": weir.udf(short)}}
    with pytest.raises(QueryError, match=r"^function 'short' ") as error:
        run(weir.join(**feed.frames(spark), **asked, partitions=1), tmp_path / "c", tmp_path / "out")
    assert "\n" not in str(error.value) and len(str(error.value)) < 400
    assert "batch 0 failed" in error.value.__notes__[0]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            {"on": "a.k = b.k AND  10 / (a.id\n - 3) > 0"},
            r"the filter 10 / \(a.id - 3\) > 0 of stream 'a' fails: Division by zero \[DIVIDE_BY_ZERO\]; use",
        ),
        (
            {"on": "cast(b.id - 2 AS string) || 'x' = a.k"},
            r"the expression CAST\(.*\) of stream 'b' fails: The value '-?\d+x' .* cast to .BIGINT. ",
        ),
    ],
    ids=["filter", "key"],
)
def test_an_error_of_sparks_on_data_names_the_stream(
    asked: dict[str, str], says: str, feed: Feed, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        join = weir.join(**feed.frames(spark), **{**PAIR, **asked}, partitions=1)
        with pytest.raises(weir.EvaluationError, match=says) as error:
            run(join, tmp_path / "c", tmp_path / "out")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "false")
    assert "\n" not in str(error.value) and len(str(error.value)) < 400
    assert error.value.__notes__ == ["weir: batch 0 failed; the next start repeats it"]


def test_own_errors_are_found_in_what_workers_print() -> None:
    printed = (
        "Job aborted\nTraceback (most recent call last):\n  File 'x'\n"
        "weir.spark.errors.DamagedStateError: slice 7 is missing; restore it\n\n\tat java.lang.Thread"
    )
    found = find_own_error(RuntimeError(printed))
    assert type(found) is DamagedStateError and str(found) == "slice 7 is missing; restore it"
    assert find_own_error(RuntimeError("weird.errors.QueryError: no")) is None
    assert find_own_error(ValueError("no")) is None
    inner = QueryError("the inner one")
    outer = RuntimeError("outer")
    outer.__cause__ = inner
    assert find_own_error(outer) is inner
    assert str(Failure(inner, 3)).startswith("weir: batch 3 failed: the inner one;")


def test_a_query_stopped_in_a_batch_has_not_failed(
    feed: Feed, join: SparkJoin, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()

    def linger(results: DataFrame, batch: int) -> None:
        begun.set()
        while True:  # until a call into Java finds out that the query was stopped
            results.sparkSession.range(10).count()
            time.sleep(0.05)

    query = start(join, tmp_path / "c", linger)
    assert begun.wait(120)
    with caplog.at_level(logging.INFO):
        query.stop()
    assert not query.isActive and query.exception() is None
    assert not [record for record in caplog.records if record.exc_info]
    run(join, tmp_path / "c", tmp_path / "out")  # the next start repeats the batch
    assert read_bag(tmp_path / "out") == expected(feed.tables(), **PAIR)


@pytest.mark.parametrize(
    ("environment", "master", "setting", "runs"),
    [
        ({}, "local[2]", None, "own"),
        ({}, "spark://host:7077", None, "python3"),
        ({}, "local[2]", "/opt/python", "python3"),
        ({"PYSPARK_PYTHON": "python3"}, "local[2]", None, "python3"),
    ],
)
def test_workers_on_one_host_run_the_drivers_python(
    environment: dict[str, str], master: str, setting: str | None, runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", environment)
    monkeypatch.setattr("sys.executable", "own")
    settings = {"spark.pyspark.python": setting}
    context = SimpleNamespace(pythonExec="python3", master=master, getConf=lambda: settings)
    use_own_python(SimpleNamespace(sparkContext=context))  # type: ignore[arg-type]
    assert context.pythonExec == runs
