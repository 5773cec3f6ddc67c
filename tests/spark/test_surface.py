"""What Spark's writer, query and progress have, ours have too, with the same parameters."""

from __future__ import annotations

import inspect
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import weir
from weir.errors import QueryError
from weir.spark.join import SparkJoin
from weir.spark.progress import JoinProgress
from weir.spark.query import SparkQuery
from weir.spark.writer import JoinWriter

from .streams import PAIR, Feed, finish, pair_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PAIRS = [
    (DataStreamWriter, JoinWriter),
    (StreamingQuery, SparkQuery),
    (StreamingQueryProgress, JoinProgress),
]
MEMBERS = [
    (spark_class, our_class, name)
    for spark_class, our_class in PAIRS
    for name in vars(spark_class)
    if not name.startswith("_")
]
# There by name, refused with a sentence that says what to use.
REFUSED = {"foreach": "foreachBatch", "clusterBy": "partitionBy"}


def parameters_of(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(
    ("spark_class", "our_class", "name"),
    MEMBERS,
    ids=[f"{ours.__name__}.{name}" for _, ours, name in MEMBERS],
)
def test_every_member_of_sparks_class_is_there_as_spark_has_it(
    spark_class: type, our_class: type, name: str
) -> None:
    theirs, ours = inspect.getattr_static(spark_class, name), inspect.getattr_static(our_class, name)
    assert isinstance(ours, property) == isinstance(theirs, property)
    assert isinstance(ours, classmethod) == isinstance(theirs, classmethod)
    if callable(theirs):
        # Spark 4.0 has one trigger fewer.
        extra = [each for each in parameters_of(ours) if each not in parameters_of(theirs)]
        assert [each for each in parameters_of(ours) if each not in extra] == parameters_of(theirs)
        assert extra in ([], [("realTime", inspect.Parameter.KEYWORD_ONLY, None)])


@pytest.fixture(scope="module")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Feed:
    return pair_feed(tmp_path_factory.mktemp("surface") / "in", 2)


@pytest.fixture(scope="module")
def join(feed: Feed, spark: SparkSession) -> SparkJoin:
    return weir.join(**feed.frames(spark), **PAIR, partitions=1)


@pytest.fixture(scope="module")
def ended(join: SparkJoin) -> Iterator[SparkQuery]:
    yield finish(join.writeStream.trigger(availableNow=True).start(format="memory", queryName="weir_surface"))


@pytest.mark.parametrize(("name", "instead"), REFUSED.items())
def test_what_a_join_cannot_do_is_refused_by_name(name: str, instead: str, join: SparkJoin) -> None:
    with pytest.raises(QueryError, match=rf"{name} .*{instead}"):
        getattr(join.writeStream, name)("k")


def test_start_takes_sparks_arguments(ended: SparkQuery, spark: SparkSession) -> None:
    assert ended.name == "weir_surface" and not ended.isActive
    assert spark.table("weir_surface").count() > 50
    assert uuid.UUID(ended.id) and uuid.UUID(ended.runId) and ended.exception() is None
    assert ended.status["isDataAvailable"] is False


def test_to_table_takes_sparks_arguments(join: SparkJoin, spark: SparkSession, tmp_path: Path) -> None:
    writer = join.writeStream.trigger(once=True).option("checkpointlocation", tmp_path / "c")
    try:
        table = writer.toTable("weir_orc", "orc", "append", ["k"], "into_orc", path=str(tmp_path / "t"))
        assert finish(table).name == "into_orc"
        assert (tmp_path / "t" / "k=1").is_dir()
        assert spark.table("weir_orc").where("k = 1").count() > 10
        assert list((tmp_path / "t").rglob("part-*.orc"))
    finally:
        spark.sql("DROP TABLE IF EXISTS weir_orc")


def test_progress_has_sparks_attributes_and_a_section(ended: SparkQuery) -> None:
    last = ended.lastProgress
    assert last is not None and isinstance(last, StreamingQueryProgress) and isinstance(last, dict)
    assert last.batchId == last["batchId"] == 1 and last.numInputRows == last["numInputRows"] > 0
    assert last.id == uuid.UUID(ended.id) == uuid.UUID(last["id"]) and last.name == "weir_surface"
    assert sum(source.numInputRows for source in last.sources) == last.numInputRows
    assert last.weir is not None and last.weir == last["weir"] and last.weir["numOutputRows"] > 0
    assert json.loads(json.dumps(last))["weir"] == json.loads(last.json)["weir"]
    assert json.loads(last.prettyJson)["id"] == ended.id and str(last) == last.prettyJson
    assert json.loads(json.dumps(last))["runId"] == ended.runId
    assert [progress.batchId for progress in ended.recentProgress] == [0, 1]


def test_options_are_case_insensitive(join: SparkJoin, tmp_path: Path) -> None:
    writer = join.writeStream.option("CHECKPOINTLOCATION", str(tmp_path / "c")).option("PATH", None)
    writer.options(Header=True).format("CSV").trigger(once=True)
    finish(writer.option("PATH", str(tmp_path / "out")).start())
    assert (tmp_path / "c" / "weir").is_dir()
    assert next((tmp_path / "out").glob("part-*.csv")).read_text().startswith("k,av,bv,aid,bid")
