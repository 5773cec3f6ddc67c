"""Times at the ends of their range, on Spark: rows are routed without overflow, and none is lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

import weir
from weir.partition.placement import Placement
from weir.spark.union import assign_partitions

from .streams import read_bag, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SECOND = 1_000_000
LEAST, MOST = -(2**63), 2**63 - 1
STEPS = (0, 1, 4, 9, 30, 200)
TIMES = [
    *(MOST - step * SECOND for step in STEPS),
    *(LEAST + step * SECOND for step in STEPS),
    *(2**53 + step * SECOND + 1 for step in STEPS),
    *(-(2**62) + step * SECOND - 1 for step in STEPS),
]
WINDOW = 8


@pytest.fixture(params=[False, True], ids=["plain", "ansi"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    return session


def _wanted() -> Counter[Any]:
    rows = list(enumerate(TIMES))
    return Counter(
        (a, b) for a, s in rows for b, t in rows if abs(s - t) < WINDOW * SECOND and a % 3 <= b % 3
    )


@pytest.mark.parametrize(
    ("spread", "convert"),
    [("psp", "timestamp_micros(t)"), ("atr", "CAST(timestamp_micros(t) AS timestamp_ntz)")],
)
def test_extreme_times_are_routed(spread: str, convert: str, session: SparkSession, tmp_path: Path) -> None:
    """The last batch brings all rows, since times of both ends do not fit into one watermark."""
    table = pa.table({"t": pa.array(TIMES, pa.int64()), "id": range(len(TIMES))})
    table = table.append_column("k", pa.array([number % 3 for number in range(len(TIMES))]))
    frames = write_feed(tmp_path / "in", {"a": [table], "b": [table]}).frames(session)
    join = weir.join(
        **frames,
        on="a.k <= b.k",
        time=convert,
        within=f"{WINDOW} seconds",
        spread=spread,
        partitions=3,
        ahead=None,
        select="a.id AS a, b.id AS b",
    )
    query = run(join, tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == _wanted()
    assert query.recentProgress[0]["weir"]["streams"]["a"]["numInputRows"] == len(TIMES)


def test_static_frames_are_divided_by_time(session: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"t": pa.array(TIMES, pa.int64()), "id": range(len(TIMES))})
    feed = write_feed(tmp_path / "in", {"a": [table], "b": [table]})
    frames = {name: frame.withColumn("k", frame.id % 3) for name, frame in feed.statics(session).items()}
    join = weir.join(
        **frames,
        on="a.k <= b.k",
        time="timestamp_micros(t)",
        within=f"{WINDOW} seconds",
        partitions=3,
        select="a.id AS a, b.id AS b",
    )
    assert join.routing.name == "atr"
    assert Counter((row.a, row.b) for row in join.toDF().collect()) == _wanted()


def test_spark_divides_time_as_the_placement_does(session: SparkSession) -> None:
    edges = [0, 1, 7, 2**53 + 1, 2**61, 2**62, MOST]
    signed = [sign * edge + shift for edge in edges for sign in (1, -1) for shift in (-1, 0)]
    times = sorted({max(LEAST, time) for time in signed})
    rows = session.createDataFrame([(time,) for time in times], "t bigint")
    rows = rows.select(F.col("t").alias("weir_time"), F.col("t").alias("slot0"))
    for cell in (1, 7, 2**61):
        placement = Placement("psp", 3, cell=cell, homes=(0, 1, 2, 1, 0))
        placed = assign_partitions(rows, placement).collect()
        wanted = {time: placement.partition_at(time) for time in times}
        assert {row.slot0: row.weir_partition for row in placed} == wanted
