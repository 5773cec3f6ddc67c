"""Every spread gives the results of one partition."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.options import JoinOptions
from weir.plan.tree import hops
from weir.plan.tree import join as tree
from weir.spark.errors import ChangedQueryError
from weir.spark.job_changes import check_changes
from weir.spark.job_description import describe_job
from weir.spark.routing import Routing

from .streams import LATE, Feed, add_batch, bag, generate, read_bag, repeat_last_batch, rows, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


PREDICATES = {
    "band": ("abs(a.v - b.v) <= 1", "abs(b.v - c.v) <= 1", "abs(c.v - d.v) <= 1"),
    "python": ("near(a.v, b.v)", "near(b.v, c.v)", "near(c.v, d.v)"),
    "two keys": ("a.k = b.k", "b.v = c.v", "c.k = d.k"),
}


def asked(kind: str, streams: int) -> dict[str, Any]:
    names = "abcd"[:streams]

    def near(one: pa.Array, other: pa.Array) -> pa.Array:
        return pc.less_equal(pc.abs(pc.subtract(one, other)), 1)

    return {
        "on": " AND ".join(PREDICATES[kind][: streams - 1]),
        "within": "8 seconds",
        "late": LATE,
        "select": ", ".join(f"{x}.v AS {x}v, {x}.k AS {x}k" for x in names),
        "functions": {"near": weir.udf(near)} if kind == "python" else None,
    }


@pytest.mark.parametrize(
    ("spread", "kind", "streams", "more"),
    [
        ("psp", "band", 3, {}),
        ("share", "python", 3, {"driver_order": "least-work"}),
        ("share", "two keys", 4, {"format": "json"}),
        ("auto", "two keys", 3, {}),
        ("atr", "two keys", 3, {"plan": tree(tree("a", "b"), "c"), "format": "json"}),
    ],
)
def test_any_predicate_over_several_partitions(
    spread: str, kind: str, streams: int, more: dict[str, Any], spark: SparkSession, tmp_path: Path
) -> None:
    batches = generate(streams, 3, 40, 9, seed=streams)
    feed = write_feed(tmp_path / "in", batches)
    given = asked(kind, streams)
    wanted = bag(weir.join(**feed.tables(), **given).to_arrow())
    form = more.pop("format", "parquet")
    join = weir.join(**feed.frames(spark), **given, partitions=3, spread=spread, **more)
    assert join.routing.partitions == 3 and join.routing.name == ("share" if spread == "auto" else spread)
    query = run(join, tmp_path / "ckpt", tmp_path / "out", form)
    assert sum(wanted.values()) > 20
    assert read_bag(tmp_path / "out", form) == wanted
    told = [one["weir"] for one in query.recentProgress]
    rows = Counter[str]()
    for section in told:
        rows.update({name: found["numInputRows"] for name, found in section["streams"].items()})
    assert rows == dict.fromkeys("abcd"[:streams], 120)
    assert sum(section["numOutputRows"] for section in told) == sum(wanted.values())


@pytest.mark.parametrize("spread", ["share", "psp"])
def test_each_row_is_stored_once_and_a_repeat_gives_the_same(
    spread: str, spark: SparkSession, tmp_path: Path
) -> None:
    batches = generate(2, 4, 50, 9, seed=8)
    feed = write_feed(tmp_path / "in", {name: found[:3] for name, found in batches.items()})
    given = asked("band", 2)
    # An allowance is obeyed across partitions too: the sample passes, some ages are not looked at.
    plan = tree("a", "b")
    allowance = weir.Allowance(ages={hops(plan)[0]: weir.Ages(2_000_000, frozenset({0, 2}))}, sample=0.5)
    more: dict[str, Any] = {"partitions": 4, "spread": spread, "plan": plan, "driver_order": ["a", "b"]}
    query = run(
        weir.join(**feed.frames(spark), **given, **more, allowance=allowance),
        tmp_path / "ckpt",
        tmp_path / "out",
    )
    local = weir.join(
        **feed.tables(), **given, plan=plan, driver_order=["a", "b"], allowance=allowance
    ).start()
    wanted = [bag(local.process({name: found[i] for name, found in feed.batches.items()})) for i in range(3)]
    assert read_bag(tmp_path / "out") == wanted[0] + wanted[1] + wanted[2]
    told, known = query.lastProgress["weir"], local.lastProgress["weir"]
    for hop, found in known["hops"].items():
        assert told["hops"][hop]["probes"] == found["probes"]
        assert told["hops"][hop]["matches"] == found["matches"]
    # What harvesting learns from is counted wherever a result is completed.
    lags = [one["weir"]["lags"] for one in query.recentProgress]
    assert lags == [one["weir"]["lags"] for one in local.recentProgress]
    assert sum(lags[-1]["lags"]["b"]["counts"]) > 10
    for node, found in known["state"].items():
        assert told["state"][node]["numRowsTotal"] <= 1.5 * found["numRowsTotal"] + 10
    repeat_last_batch(tmp_path / "ckpt")
    feed = add_batch(feed, {name: found[3] for name, found in batches.items()})
    run(weir.join(**feed.frames(spark), **given, **more), tmp_path / "ckpt", tmp_path / "out")
    local.allow(None)
    wanted.append(bag(local.process({name: found[3] for name, found in batches.items()})))
    assert read_bag(tmp_path / "out") == sum(wanted[1:], wanted[0])


def test_the_number_of_partitions_may_change_between_two_starts(spark: SparkSession, tmp_path: Path) -> None:
    """Old slices stay where they are until they are dead; new ones go to the partitions there are now."""
    batches = generate(3, 4, 40, 9, seed=12)
    given = asked("band", 3)
    feed = write_feed(tmp_path / "in", {name: found[:1] for name, found in batches.items()})
    for number, (spread, partitions) in enumerate([("auto", 1), ("psp", 4), ("share", 3), ("psp", 1)]):
        if number:
            feed = add_batch(feed, {name: found[number] for name, found in batches.items()})
        join = weir.join(**feed.frames(spark), **given, partitions=partitions, spread=spread)
        query = run(join, tmp_path / "ckpt", tmp_path / "out")
        told = query.lastProgress["weir"]["placement"]
        assert (told["spread"], told["partitions"]) == (spread.replace("auto", "hash"), partitions)
    assert read_bag(tmp_path / "out") == bag(weir.join(**feed.tables(), **given).to_arrow())


def test_a_late_row_that_is_copied_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    late = [second / 4 for second in range(80)]  # longer than a segment, so that some reach into two
    batches = {
        "a": [rows([0, 20, 40], [1, 1, 1]), rows([41], [1])],
        "b": [rows([0, 20, 40], [1, 1, 1]), rows([*late, 41], [1] * 81)],
    }
    feed = write_feed(tmp_path / "in", batches)
    join = weir.join(**feed.frames(spark), on="a.k = b.k", within="1 second", partitions=3, spread="atr")
    query = run(join, tmp_path / "ckpt", format="count")
    told = query.lastProgress["weir"]
    assert told["streams"]["b"]["numInputRows"] == 81
    assert told["streams"]["b"]["numRowsDroppedByWatermark"] == 80
    assert told["numOutputRows"] == 1


def test_static_frames_are_divided_by_time(spark: SparkSession, tmp_path: Path) -> None:
    tables = write_feed(tmp_path / "in", generate(3, 20, 12, 9, seed=4)).tables()
    given = asked("band", 3)
    frames = {name: spark.createDataFrame(table.to_pandas()) for name, table in tables.items()}
    # Times without a zone are UTC, whatever the session's zone is.
    frames["b"] = frames["b"].withColumn("ts", frames["b"].ts.cast("timestamp_ntz"))
    join = weir.join(**frames, **given, partitions=4)
    assert join.routing.name == "atr" and "by segments of" in join.explanation()
    wanted = bag(weir.join(**tables, **given).to_arrow())
    assert join.toDF().count() == sum(wanted.values()) > 100
    with pytest.raises(QueryError, match="spread='psp' is for streams; static DataFrames take"):
        weir.join(**frames, **given, spread="psp")
    with pytest.raises(QueryError, match=r"one key that all streams share.*use spread='atr', or leave it"):
        weir.join(**frames, **given, spread="hash")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (("hash", 2), ("hash", 2), None),
        (("hash", 1), ("psp", 4), None),
        (("psp", 4), ("share", 1), None),
        (("hash", 2), ("hash", 3), None),
        (("atr", 3), ("atr", 2), None),
        (("hash", 1), ("atr", 2), None),
        (("hash", 2), ("share", 2), "with spread='hash' and the query asks for 'share'; pass spread='hash'"),
        (("share", 2), ("hash", 2), "with spread='share' and the query asks for 'hash'; pass spread='share'"),
        (("atr", 2), ("hash", 2), "with spread='atr' and the query asks for 'hash'; pass spread='atr'"),
        (("atr", 2), ("psp", 2), "with spread='atr' and the query asks for 'psp'; pass spread='atr'"),
    ],
)
def test_a_restart_may_change_the_spread_only_where_the_state_allows_it(
    before: tuple[str, int], after: tuple[str, int], message: str | None, tmp_path: Path
) -> None:
    join = weir.join(**Feed(tmp_path, generate(2, 1, 1, 1, seed=1)).tables(), **asked("band", 2))
    columns: dict[str, dict[str, str]] = {"a": {}, "b": {}}
    job = describe_job("0123456789ab", join.query, JoinOptions(), columns, join.planned.plan, Routing(1))
    jobs = [
        replace(job, spread=spread, partitions=count if spread in ("hash", "atr") else None)
        for spread, count in (before, after)
    ]
    with pytest.raises(ChangedQueryError, match=message) if message else nullcontext():
        check_changes(*jobs, join.query, str(tmp_path))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"spread": "ring"}, "spread is 'auto', 'hash', 'share', 'psp' or 'atr'; got 'ring'"),
        (
            {"spread": "hash"},
            "one key that all streams share.*use spread='share' or 'psp', or leave it 'auto'",
        ),
        ({"spread": "hash", "partitions": 1}, "spread='hash' needs one key that all streams share"),
        ({"spread": "share", "plan": tree(tree("a", "b"), "c")}, "needs an mjoin, not the tree"),
        ({"spread": "psp", "plan": tree(tree("a", "b"), "c")}, "spread='psp' needs an mjoin"),
        ({"spread": "share", "driver_order": "timestamp"}, "choose another order"),
        ({"spread": "share", "partitions": 0}, "at least 1"),
        ({"spread": "share", "within": "50 rows"}, "counts all its rows, so it needs partitions=1"),
    ],
)
def test_impossible_spreads_are_refused(
    given: dict[str, Any], message: str, spark: SparkSession, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 1, 5, 3, seed=1))
    with pytest.raises(QueryError, match=message):
        weir.join(**feed.frames(spark), **{**asked("band", 3), "partitions": 3, **given})


def test_local_tables_refuse_spread() -> None:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
    with pytest.raises(QueryError, match="spread= applies to Spark DataFrames"):
        weir.join(a=schema, b=schema, on="a.k = b.k", within="1 second", spread="share")
